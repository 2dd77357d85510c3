"""Peers that break the rules on purpose, over real sockets: each ends as the texts say, and the node serves on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from interlace.pair import ALL, VERIFIER_A, blob, group_module, hash_of, plex
from interop.harness import exchange_once, hashes, honest_stream, send_raw, serving, terms_of
from lace.facts.predicates import FIELD, HAVE
from lace.interlace.reasons import AbortReason as Why
from lace.limits import MIB, ExchangeLimits
from lace.notation.digest import digest
from lace.notation.identifiers import LacegramId
from lace.store.base import RecordStore

OURS, THEIRS = blob(b"data!"), blob(b"hello world")
GROUP = group_module("u")
PIECE = b"\xf0\x9f\xa7\xa9: "
Spoil = Callable[[bytes], bytes]


def swap(old: bytes, new: bytes) -> Spoil:
    """Replace the first occurrence, which must exist."""

    def spoil(stream: bytes) -> bytes:
        assert old in stream, old
        return stream.replace(old, new, 1)

    return spoil


def line(predicate: bytes, new: Callable[[bytes], bytes]) -> Spoil:
    """Rewrite the first line of a predicate."""

    def spoil(stream: bytes) -> bytes:
        start = stream.index(b"\n" + predicate + b"(") + 1
        end = stream.index(b"\n", start)
        return stream[:start] + new(stream[start:end]) + stream[end:]

    return spoil


def before(predicate: bytes, inserted: bytes) -> Spoil:
    return line(predicate, lambda found: inserted + found)


def until(predicate: bytes, then: bytes) -> Spoil:
    """The stream up to a line, then something else."""

    def spoil(stream: bytes) -> bytes:
        return stream[: stream.index(b"\n" + predicate + b"(") + 1] + then

    return spoil


def module_block(text: bytes) -> tuple[bytes, bytes]:
    identifier = str(LacegramId.of(digest(text))).encode()
    return identifier, PIECE + identifier + b" lacegram\n" + text + b"\n\n"


def with_module(text: bytes) -> Spoil:
    """Another operand than the honest one."""

    def spoil(stream: bytes) -> bytes:
        identifier, block = module_block(text)
        setup = stream.index(b"\nExchangeOperand(") + 1
        head = stream[: stream.index(PIECE)]
        return head + block + stream[setup:].replace(ALL.id.encode(), identifier, 1)

    return spoil


MALFORMED = Why.MALFORMED_FACT_BLOCK
STREAM_ERRORS: dict[str, tuple[Spoil, Why]] = {
    "wrong preface": (swap(b"iltp/1", b"iltp/2"), MALFORMED),
    "preface with CRLF": (swap(b"iltp/1\n", b"iltp/1\r\n"), MALFORMED),
    "blank line after the preface": (swap(b"iltp/1\n", b"iltp/1\n\n"), MALFORMED),
    "an HTTP request": (lambda stream: b"GET /note HTTP/1.1\r\n\r\n", MALFORMED),
    "CRLF after a fact": (line(b"HelloTAI", lambda found: found + b"\r"), MALFORMED),
    "an over-long fact line": (before(b"HelloTAI", b"Have('" + b"x" * 1020 + b"')\n"), MALFORMED),
    "an endless line": (until(b"HelloTAI", b"Have('" + b"x" * 100_000), MALFORMED),
    "an over-long comment": (before(b"HelloTAI", b"#" + b"x" * 128 + b"\n"), MALFORMED),
    "two comments": (before(b"HelloTAI", b"# a\n# b\n"), MALFORMED),
    "an unknown emoji": (before(b"Advertised", b"\xf0\x9f\x98\x80: x\n"), MALFORMED),
    "a trailer record": (before(b"Advertised", "⋯🖧: B.x\n".encode()), MALFORMED),
    "a second preface": (before(b"Advertised", b"\xf0\x9f\xaa\xa2: iltp/1\n"), MALFORMED),
    "bytes that are no text": (before(b"HelloTAI", b"Have('\xff')\n"), MALFORMED),
    "text that is not NFC": (before(b"HelloTAI", b"Have('e\xcc\x81')\n"), MALFORMED),
    "a non-canonical resource": (swap(b":- Have(P).", b":-  Have(P)."), MALFORMED),
    "a resource under another id": (swap(ALL.id.encode() + b" lace", b"R." + b"0" * 43 + b" lace"), MALFORMED),
    "an unknown resource kind": (swap(b" lacegram\n", b" cake\n"), MALFORMED),
    "a resource between facts": (before(b"HelloTAI", module_block(b"A(P) :- Have(P).")[1]), MALFORMED),
    "257 resources": (before(b"HelloExchangePlan", module_block(b"A(P) :- Have(P).")[1] * 256), MALFORMED),
    "a resource over 1 MiB": (
        before(b"HelloExchangePlan", PIECE + ALL.id.encode() + b" lacegram\n" + b"x" * (MIB + 1) + b"\n\n"),
        MALFORMED,
    ),
    "a resource of 4,097 lines": (
        before(b"HelloExchangePlan", PIECE + ALL.id.encode() + b" lacegram\n" + b"x\n" * 4097 + b"\n"),
        MALFORMED,
    ),
    "a giant length announced": (swap(b"Data-Length: 11", b"Data-Length: 33554433"), MALFORMED),
    "a length that is none": (swap(b"Data-Length: 11", b"Data-Length: 011"), MALFORMED),
    "519 header lines": (swap(b"Data-Length: 11", b"h\n" * 519 + b"Data-Length: 11"), MALFORMED),
    "facts in a record batch": (
        swap(THEIRS, b"NotAvailable('" + hash_of(THEIRS).encode() + b"')\n" + THEIRS),
        MALFORMED,
    ),
}

TABLE: dict[str, tuple[Spoil, Why]] = {
    "050-ERR-02 a signer without proof": (
        before(b"HelloTAI", f"HelloSigner('{VERIFIER_A}')\n".encode()),
        Why.PEER_VERIFIER_MISMATCH,
    ),
    "050-ERR-02 an origin that claims a verifier": (
        swap(b"'Opq_", f"'{VERIFIER_A}','selector')\n#".encode()),
        Why.PEER_VERIFIER_MISMATCH,
    ),
    "050-ERR-03 another plan": (
        line(b"HelloExchangePlan", lambda found: b"HelloExchangePlan('E." + b"0" * 43 + b"')"),
        Why.EXCHANGE_PLAN_MISMATCH,
    ),
    "050-ERR-04 another record format": (
        swap(b"HelloRecordFormat('H3')", b"HelloRecordFormat('H9')"),
        Why.UNSUPPORTED_RECORD_FORMAT,
    ),
    "050-ERR-06 an unknown fact in hello": (before(b"HelloTAI", b"Have('x')\n"), MALFORMED),
    "050-ERR-06 a fact of another phase": (before(b"Advertised", b"MayRequest('x')\n"), MALFORMED),
    "050-ERR-06 a field outside the schema": (
        before(b"Advertised", b"AdvertisedField('" + hash_of(THEIRS).encode() + b"','Opq_s','Group','0','u')\n"),
        MALFORMED,
    ),
    "050-ERR-06 no hello time": (line(b"HelloTAI", lambda found: b"# nothing"), MALFORMED),
    "050-ERR-06 an empty setup": (until(b"ExchangeOperand", b"\n"), MALFORMED),
    "050-ERR-06 NotAvailable for what nobody asked": (
        swap(THEIRS + b"\n", THEIRS + b"\nNotAvailable('" + hash_of(OURS).encode() + b"')\n"),
        MALFORMED,
    ),
    "050-ERR-07 a module without exports": (with_module(b"A(P) :- Have(P)."), Why.MALFORMED_MODULE),
    "050-ERR-07 a module that writes MayRequest": (
        with_module(b"MayRequest(P) :- Advertised(P,S).\n" + ALL.text.encode()),
        Why.MALFORMED_MODULE,
    ),
    "050-ERR-07 a module that was not sent": (
        lambda stream: stream.replace(ALL.id.encode() + b"','Opq", b"R." + b"0" * 43 + b"','Opq", 1),
        Why.MALFORMED_MODULE,
    ),
    "050-ERR-10 a malformed partition summary": (
        until(b"Advertised", b"AdvertisementPartition('EA','x','y')\n\n"),
        Why.MALFORMED_PARTITION_SUMMARY,
    ),
    "050-ERR-11 a root that does not fit its listing": (
        until(
            b"Advertised",
            b"AdvertisementPartition('EA','1','" + b"0" * 43 + b"')\n\n\n"
            b"Advertised('" + hash_of(THEIRS).encode() + b"','@SOURCE@')\n\n",
        ),
        Why.LIST_ROOT_MISMATCH,
    ),
    "050-ERR-11 a count that lies": (
        until(
            b"Advertised",
            b"AdvertisementPartition('EA','2','" + b"0" * 43 + b"')\n\n\n"
            b"Advertised('" + hash_of(THEIRS).encode() + b"','@SOURCE@')\n\n",
        ),
        Why.LIST_ROOT_MISMATCH,
    ),
    "050-ERR-15 a record nobody asked for": (swap(THEIRS, blob(b"something else")), Why.RECORD_NOT_REQUESTED),
    "050-ERR-15 a record twice": (swap(THEIRS, THEIRS + THEIRS), Why.RECORD_NOT_REQUESTED),
    "050-ERR-15 a record in hello": (before(b"HelloTAI", THEIRS), MALFORMED),
    "050-ERR-15 a record before setup": (swap(PIECE, THEIRS + PIECE), Why.RECORD_NOT_REQUESTED),
}  # fmt: skip


def run_spoilt(spoil: Spoil, why: Why, tmp_path: Path, scheme: str = "unix", *, close: bool = False) -> None:
    """The spoilt stream ends with that reason, the store is whole, and an honest peer is served after it."""

    async def run() -> None:
        async with serving([OURS], tmp_path, scheme) as server:
            stream = honest_stream([THEIRS], [OURS])
            source = stream.split(b"\nAdvertised('", 1)[1].split(b"'")[2]
            await send_raw(server.address, spoil(stream).replace(b"@SOURCE@", source), close=close)
            outcome = await server.next_outcome()
            assert (outcome.abort, bool(outcome.detail)) == (why, True)
            assert hashes(server.store) <= {str(hash_of(OURS)), str(hash_of(THEIRS))}
            assert server.store.check_integrity() == []
            after, store = await exchange_once(server.address, [blob(b"honest")])
            assert after.is_complete
            assert after.result.fixed_point
            assert hashes(store) == hashes(server.store)

    asyncio.run(run())


@pytest.mark.clause("060-PREF-06", "060-RES-38", "060-RES-39", "060-RES-40", "060-REC-10", "060-LIM-07", "060-CMT-10")
@pytest.mark.parametrize("name", STREAM_ERRORS)
def test_every_stream_error_ends_its_exchange_alone(name: str, tmp_path: Path) -> None:
    run_spoilt(*STREAM_ERRORS[name], tmp_path)


@pytest.mark.clause("050-ERR-02", "050-ERR-03", "050-ERR-04", "050-ERR-06", "050-ERR-07", "050-ERR-10", "050-ERR-11")
@pytest.mark.clause("050-ERR-15", "060-POL-06", "060-RT-07", "060-REC-06")
@pytest.mark.parametrize("name", TABLE)
def test_every_row_of_the_failure_table_ends_its_exchange_alone(name: str, tmp_path: Path) -> None:
    run_spoilt(*TABLE[name], tmp_path)


@pytest.mark.parametrize("scheme", ["tcp", "ws"])
@pytest.mark.parametrize("name", ["wrong preface", "a giant length announced", "an endless line"])
def test_the_same_faults_end_the_same_over_other_transports(name: str, scheme: str, tmp_path: Path) -> None:
    run_spoilt(*STREAM_ERRORS[name], tmp_path, scheme)


@pytest.mark.clause("050-ERR-05")
def test_a_schema_that_lacks_a_required_field_aborts(tmp_path: Path) -> None:
    async def run() -> None:
        theirs, ours = plex("a"), plex("b")
        async with serving([ours], tmp_path, terms=terms_of(GROUP)) as server:
            stream = honest_stream([theirs], [ours], GROUP)
            await send_raw(server.address, stream.replace(b"HelloAdvertisedField('Group')\n", b"", 1), close=False)
            assert (await server.next_outcome()).abort == Why.UNSUPPORTED_FIELD_SCHEMA

    asyncio.run(run())


@pytest.mark.clause("050-ERR-16", "060-REC-09", "060-REC-13")
def test_a_corrupt_record_is_refused_and_the_round_goes_on(tmp_path: Path) -> None:
    async def run() -> None:
        good = blob(b"another")
        async with serving([], tmp_path) as server:
            stream = honest_stream([THEIRS, good], [])
            await send_raw(server.address, stream.replace(b"hello world", b"hello_world", 1))
            outcome = await server.next_outcome()
            assert not outcome.abort
            assert outcome.result.fixed_point
            assert list(outcome.result.rejected_hashes) == [str(hash_of(THEIRS))]
            assert hashes(server.store) == {str(hash_of(good))}

    asyncio.run(run())


def group_facts(store: RecordStore) -> list[tuple[str, ...]]:
    """What a store's record facts say of groups."""
    return sorted(store.snapshot().query(FIELD, None, "Group"))


@pytest.mark.clause("040-FACET-05")
@pytest.mark.parametrize("honest_name", [True, False])
def test_a_record_selected_by_its_claims_has_facts_only_after_it_passed_validation(
    honest_name: bool, tmp_path: Path
) -> None:
    claimed, other = plex("a", group="u"), plex("a", group="v")
    name, other_name = str(hash_of(claimed)).encode(), str(hash_of(other)).encode()

    def lie(stream: bytes) -> bytes:
        """Group u is claimed and v is sent: under the name of v it is a valid record, under that of u it is none."""
        if honest_name:
            return stream.replace(claimed, other).replace(name, other_name)
        return stream.replace(claimed, other.replace(other_name, name))

    async def run() -> None:
        async with serving([], tmp_path, terms=terms_of(GROUP)) as server:
            await send_raw(server.address, lie(honest_stream([claimed], [], GROUP)))
            outcome = await server.next_outcome()
            assert not outcome.abort
            if honest_name:
                assert outcome.result.received_hashes == (hash_of(other),)
                assert group_facts(server.store) == [(hash_of(other), "Group", "0", "v")]
            else:
                assert list(outcome.result.rejected_hashes) == [hash_of(claimed)]
                assert group_facts(server.store) == []
                assert server.store.snapshot().count(HAVE) == 0

    asyncio.run(run())


@pytest.mark.clause("050-ERR-12", "050-LIM-08")
@pytest.mark.parametrize("size", [0, 5, 60, 500, 700])
def test_silence_is_cut_at_the_phase_limit(size: int, tmp_path: Path) -> None:
    async def run() -> None:
        async with serving([OURS], tmp_path, terms=terms_of(timeout_s=0.3)) as server:
            stream = honest_stream([THEIRS], [OURS])
            await send_raw(server.address, stream[:size], close=False)
            assert (await server.next_outcome()).abort == Why.PHASE_TIMEOUT

    asyncio.run(run())


@pytest.mark.clause("050-ERR-12", "050-LIM-08")
def test_a_drip_of_bytes_does_not_hold_a_phase_open(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving([OURS], tmp_path, terms=terms_of(timeout_s=0.4)) as server:
            await send_raw(server.address, honest_stream([THEIRS], [OURS]), close=False, drip_s=0.05)
            assert (await server.next_outcome()).abort == Why.PHASE_TIMEOUT

    asyncio.run(run())


@pytest.mark.clause("050-ERR-13", "050-ERR-14", "050-LIM-06")
def test_a_peer_that_sends_more_than_agreed_is_cut(tmp_path: Path) -> None:
    async def run(limits: ExchangeLimits, why: Why, spoil: Spoil) -> None:
        async with serving([OURS], tmp_path, terms=terms_of(limits=limits)) as server:
            await send_raw(server.address, spoil(honest_stream([THEIRS], [OURS])), close=False)
            assert (await server.next_outcome()).abort == why

    asyncio.run(run(ExchangeLimits(max_total_transferred_bytes=50), Why.TRANSFER_LIMIT_EXCEEDED, lambda stream: stream))
    crowd = b"".join(b"HelloRecordFormat('X%d')\n" % n for n in range(200))
    asyncio.run(run(ExchangeLimits(max_fact_block_size=2000), Why.OVERSIZED_FACT_BLOCK, before(b"HelloTAI", crowd)))


@pytest.mark.clause("060-DISC-01", "060-DISC-02", "060-DISC-06")
@pytest.mark.long
def test_a_cut_at_every_byte_of_an_exchange_leaves_the_node_whole(tmp_path: Path) -> None:
    async def run() -> None:
        stream = honest_stream([THEIRS], [OURS])
        async with serving([OURS], tmp_path) as server:
            for size in range(len(stream) + 1):
                await send_raw(server.address, stream[:size])
                outcome = await server.next_outcome()
                assert outcome.abort in ("", Why.STREAM_BROKEN)
                server.store.delete(hash_of(THEIRS))  # the stream is for a node that lacks it
            assert server.store.check_integrity() == []
            assert (await exchange_once(server.address, [THEIRS]))[0].is_complete
            assert (await server.next_outcome()).is_complete  # the server's end of it may be over a moment later
            assert server.node.metrics.get("connections_active") == 0

    asyncio.run(run())


@pytest.mark.clause("050-ERR-17", "050-XFER-03")
def test_a_request_for_what_the_node_does_not_have_is_answered_and_the_round_goes_on(tmp_path: Path) -> None:
    async def run() -> None:
        asked = f"MayRequest('{hash_of(blob(b'nowhere'))}')\n".encode()
        async with serving([OURS], tmp_path, terms=terms_of(is_open=False)) as server:
            stream = before(b"MayRequest", asked)(honest_stream([THEIRS], [OURS]))
            said = await send_raw(server.address, stream, close=False)
            outcome = await server.next_outcome()
            assert asked.replace(b"MayRequest", b"NotAvailable") in said
            assert (outcome.abort, outcome.result.received_hashes) == ("", (hash_of(THEIRS),))
            assert outcome.result.unconfirmed_hashes == (hash_of(OURS),)

    asyncio.run(run())
