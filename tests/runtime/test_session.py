"""Machine and codec together, without a socket: whole exchanges as byte streams (050, 060)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from iltp.stream_samples import merge_runs
from interlace.pair import ALL, VERIFIER_A, VERIFIER_B, blob, config_of, group_module, plex
from lace.errors import LaceError
from lace.iltp.items import BlankLine, EndOfStream, FactLines, Item, Preface, RecordItem, Resource
from lace.iltp.reader import StreamReader
from lace.iltp.writer import encode_resource
from lace.interlace.reasons import AbortReason
from lace.interlace.setup.terms import Link
from lace.limits import SECOND_NS
from lace.policy.compile import agree
from lace.policy.operand import Module
from lace.records.validate import validate
from lace.runtime.link.backlog import REQUEST_BYTES, Backlog
from lace.runtime.link.session import Session, received
from lace.runtime.link.stepper import LinkStepper
from lace.runtime.link.synchronous import carry_out
from lace.runtime.node.bounds import DriveLimits
from lace.store.memory import MemoryStore
from lace.thresholds import StreamThresholds
from runtime.memory_link import End, MemoryLink


def make_end(index: int, records: Sequence[bytes] = (), module: Module = ALL, **options: Any) -> End:
    store = MemoryStore()
    store.put([validate(record) for record in records])
    return End(config_of(index, module, **options), store)


def make_ends(first: Sequence[bytes], second: Sequence[bytes], **options: Any) -> tuple[End, End]:
    return make_end(0, first, **options), make_end(1, second, **options)


def items_of(data: bytes) -> list[Item]:
    reader = StreamReader()
    items = reader.feed(data)
    reader.receive_eof()
    return list(merge_runs([*items, *reader.read_all()]))


@pytest.mark.clause("060-PHASE-03")
@pytest.mark.parametrize("salts", [(None, None), (11, 12)])
@pytest.mark.parametrize("options", [{}, {"partition_threshold_bytes": 0}, {"min_compared": 0}])
def test_every_block_of_facts_ends_with_a_blank_line(salts: Sequence[int | None], options: dict[str, Any]) -> None:
    """On the wire, before a record, a resource or the end could follow."""
    ends = []
    for index in (0, 1):
        records = [plex(f"n/{n}") for n in range(50)] + [plex(f"own/{index}/{n}") for n in range(3)]
        store = MemoryStore()
        store.put([validate(record) for record in records])
        ends.append(End(config_of(index, group_module("u"), salt=salts[index], compression=False, **options), store))
    MemoryLink(ends).run()
    for end in ends:
        assert end.outcome.result.fixed_point
        items = items_of(bytes(end.sent))
        kinds = [type(item) for item in items]
        assert FactLines in kinds
        for kind, follows in itertools.pairwise(kinds):
            if kind is FactLines:
                assert follows is BlankLine


@pytest.mark.clause("060-PHASE-03")
def test_a_block_without_its_blank_line_is_not_over_and_a_stream_that_ends_there_is_cut() -> None:
    alice, bob = make_ends([HELLO_WORLD], [DATA], module=ALL)
    MemoryLink([alice, bob]).run()
    sent = bytes(alice.sent)
    ends = [at for at in range(len(sent)) if sent[at - 1 : at + 1] == b"\n\n" and sent[:at].count(b"Hello")]
    for at in ends[:2]:  # after hello, and after the first listing
        other = End(config_of(1, ALL), MemoryStore())
        other.session.start(0)
        other.session.receive_data(sent[:at], 0)
        other.perform(0)
        waiting = other.session.machine.phase
        other.session.receive_eof(0)
        other.perform(0)
        assert other.session.outcome is not None
        assert other.session.outcome.abort == AbortReason.STREAM_BROKEN.value, waiting


@pytest.mark.clause("060-PREF-10")
@pytest.mark.parametrize("index", [0, 1])
def test_the_preface_waits_for_nobody(index: int) -> None:
    """Neither for the peer's preface nor for anything else of it; and it comes before all other bytes."""
    end = End(config_of(index, ALL), MemoryStore())
    end.session.start(0)
    end.perform(0)
    assert bytes(end.sent).startswith("🪢: iltp/1\n".encode())
    assert b"ExchangeOperand" in bytes(end.sent)
    assert end.session.bytes_in == 0


HELLO_WORLD, DATA = blob(b"hello world"), blob(b"data!")


# --- the trace of 060 -------------------------------------------------------------------------------------------------


@pytest.mark.clause("060-TRACE-01", "060-TRACE-02", "060-TRACE-03", "060-TRACE-04", "060-TRACE-05", "060-TRACE-06")
@pytest.mark.clause("060-TRACE-07", "060-PREF-10", "060-RES-21", "060-RES-22", "060-AVAIL-05", "060-STREAM-02")
@pytest.mark.clause("060-PHASE-04", "060-PHASE-11", "060-POL-07")
def test_the_trace_of_the_specification_with_real_identifiers() -> None:
    alice, bob = make_ends([HELLO_WORLD], [DATA], module=ALL)
    MemoryLink([alice, bob]).run()
    hello, data = HELLO_WORLD.split(b"\n", 1)[0][6:].decode(), DATA.split(b"\n", 1)[0][6:].decode()
    assert alice.have == bob.have == {hello, data}
    assert alice.outcome.is_complete
    assert alice.outcome.result.fixed_point
    sent = bytes(alice.sent).decode()
    label = sent.split("ExchangeOperand('0','", 1)[1].split("'")[2]
    plan = alice.outcome.result.exchange_plan_id
    listing = sent.split(f"Advertised('{hello}','")[1].split("'")[0]
    assert sent == (
        "🪢: iltp/1\n"
        f"🧩: {ALL.id} lacegram\n{ALL.text}\n\n"
        f"ExchangeOperand('0','{ALL.id}','{label}','selector')\n\n"
        f"HelloExchangePlan('{plan}')\n" + sent.split(f"HelloExchangePlan('{plan}')\n")[1].split("\n\n")[0] + "\n\n"
        f"Advertised('{hello}','{listing}')\n\n"
        f"MayRequest('{data}')\n\n" + HELLO_WORLD.decode() + "\n\n" + "".join(
            f"Advertised('{record}','{listing}')\n" for record in sorted((hello, data))
        ) + "\n\n"
    )  # fmt: skip
    assert label.startswith("Opq_")
    assert listing.startswith("Opq_")
    kinds = [type(item) for item in items_of(bytes(bob.sent))]
    setup, hello_block, listing_block = [Resource, FactLines, BlankLine], [FactLines, BlankLine], [FactLines, BlankLine]
    transfer = [RecordItem, BlankLine, BlankLine]
    quiet = [FactLines, BlankLine, BlankLine]
    assert kinds == [
        Preface, *setup, *hello_block, *listing_block, FactLines, BlankLine, *transfer, *quiet, EndOfStream
    ]  # fmt: skip


# --- recorded streams, played back ------------------------------------------------------------------------------------


def recorded(first: Sequence[bytes] = (HELLO_WORLD,), second: Sequence[bytes] = (DATA,), **options: Any) -> bytes:
    """What the dialer of an honest exchange writes."""
    alice, bob = make_ends(first, second, **options)
    MemoryLink([alice, bob]).run()
    assert alice.outcome.is_complete
    return bytes(alice.sent)


def play(data: bytes, end: End | None = None, *, piece: int = 1 << 20, eof: bool = True) -> End:
    """An acceptor that is given these bytes, whatever it answers."""
    end = end or make_end(1, [DATA])
    now_ns = MemoryLink([]).now_ns
    end.session.start(now_ns)
    end.perform(now_ns)
    for start in range(0, len(data), piece):
        end.session.receive_data(data[start : start + piece], now_ns)
        end.perform(now_ns)
    if eof and end.session.outcome is None:
        end.session.receive_eof(now_ns)
        end.perform(now_ns)
    return end


@pytest.mark.clause("060-STREAM-04", "060-STREAM-05", "060-STREAM-07", "060-PHASE-10")
@pytest.mark.parametrize("piece", [1, 7, 1 << 20])
def test_a_recorded_stream_plays_back_in_any_pieces_and_far_ahead(piece: int) -> None:
    """All of the peer's phases at once are read one after the other, each when its turn has come."""
    end = play(recorded(), piece=piece)
    assert end.outcome.is_complete
    assert end.outcome.result.fixed_point
    assert len(end.have) == 2


@pytest.mark.clause("060-CMT-02", "060-CMT-15")
def test_comments_change_no_outcome() -> None:
    stream = recorded()
    noted = stream.replace(b"\n\n", b"\n# note\n\n", 1).replace(b"MayRequest", b"# I would like\nMayRequest")
    assert noted != stream
    # In a resource block a comment would be an error: the first blank line there is left alone.
    block_end = stream.index(b"\n\n") + 2
    noted = stream[:block_end] + stream[block_end:].replace(b"\n\n", b"\n# note\n\n", 2)
    plain, with_notes = play(stream), play(noted)
    assert with_notes.outcome == plain.outcome
    assert with_notes.have == plain.have


@pytest.mark.clause("060-RES-19", "060-RES-22", "060-RES-30", "060-RES-31")
def test_the_bytes_of_a_plan_are_not_sent_but_accepted_and_repeats_are_allowed() -> None:
    stream = recorded()
    assert b"exchange-plan" not in stream
    plan = agree(ALL, ALL)
    extra = encode_resource(plan.id, "exchange-plan", plan.transcript.encode())
    again = encode_resource(ALL.id, "lacegram", ALL.text.encode())
    for marker in (b"HelloExchangePlan(", b"Advertised(", b"MayRequest("):
        told = stream.replace(b"\n" + marker, b"\n" + extra + again + marker, 1)
        assert play(told).outcome == play(stream).outcome


@pytest.mark.clause("060-RES-40", "060-RES-29", "060-RES-36", "060-RES-37")
@pytest.mark.parametrize(
    "old, new",
    [
        (b"SelectHave(P) :- Have(P).", b"SelectHave(P)  :- Have(P)."),
        (b"lacegram", b"program"),
        (ALL.id.encode() + b" lacegram", b"R." + b"0" * 43 + b" lacegram"),
    ],
)
def test_a_faulty_resource_ends_the_exchange(old: bytes, new: bytes) -> None:
    outcome = play(recorded().replace(old, new, 1)).outcome
    assert outcome.abort == AbortReason.MALFORMED_FACT_BLOCK
    assert not outcome.result.received_hashes


@pytest.mark.clause("060-RES-29", "060-RES-09")
def test_a_faulty_plan_resource_ends_the_exchange() -> None:
    plan = agree(ALL, ALL)
    text = plan.transcript.encode()
    for identifier, body in (("E." + "0" * 43, text), (plan.id, text.replace(b"\n", b"\n\n", 1)), (plan.id, text[:-1])):
        block = b"\xf0\x9f\xa7\xa9: " + identifier.encode() + b" exchange-plan\n" + body + b"\n\n"
        outcome = play(recorded().replace(b"HelloExchangePlan(", block + b"HelloExchangePlan(", 1)).outcome
        assert outcome.abort == AbortReason.MALFORMED_FACT_BLOCK


@pytest.mark.clause("060-AVAIL-01", "060-AVAIL-02", "060-AVAIL-06", "060-RES-21")
def test_without_the_announced_bytes_setup_fails_and_with_a_cache_it_does_not() -> None:
    other = group_module("u")
    alice, bob = make_end(0, [plex("a")], module=other), make_end(1, [plex("b")])
    MemoryLink([alice, bob]).run()
    stream = bytes(alice.sent)
    block = encode_resource(other.id, "lacegram", other.text.encode())
    assert stream.count(block) == 1
    assert stream.index(block) < stream.index(b"ExchangeOperand(")
    without = stream.replace(block, b"", 1)
    refused = play(without, make_end(1, [plex("b")]))
    assert refused.outcome.abort == AbortReason.MALFORMED_MODULE
    cached = play(without, make_end(1, [plex("b")], known_modules=(other,)))  # 060-AVAIL-04
    assert cached.outcome.is_complete
    assert len(cached.have) == 2


@pytest.mark.clause("060-AVAIL-04")
def test_a_known_module_need_not_be_sent() -> None:
    other = group_module("u")
    stream = recorded([plex("a")], [plex("b")], module=other)
    block = encode_resource(other.id, "lacegram", other.text.encode())
    end = play(stream.replace(block, b"", 1), make_end(1, [plex("b")], module=other))
    assert end.outcome.is_complete  # both sides have the same operand


# --- ends -------------------------------------------------------------------------------------------------------------


@pytest.mark.clause("060-DISC-02", "060-DISC-03", "060-DISC-05", "060-DISC-06", "060-DISC-07", "060-DISC-08")
@pytest.mark.long
def test_a_cut_at_every_byte_is_a_clean_close_exactly_at_phase_boundaries() -> None:
    """Whatever is cut: no crash, a whole store, and records of finished items stay."""
    stream = recorded()
    boundaries = []
    for size in range(len(stream) + 1):
        end = play(stream[:size])
        outcome = end.outcome
        assert end.have >= {DATA.split(b"\n", 1)[0][6:].decode()}
        for record in outcome.result.received_hashes:
            assert end.store.get(record) is not None
        if not outcome.abort:
            boundaries.append(size)
        else:
            assert outcome.abort == AbortReason.STREAM_BROKEN
    # After hello; after each adv, req and complete response: and at the very end.
    ends = [at + 2 for at in range(len(stream)) if stream[at : at + 2] == b"\n\n"]
    assert boundaries
    assert set(boundaries) <= {*ends, len(stream), *(at - 1 for at in ends), *(at + 1 for at in ends)}
    assert boundaries[-1] == len(stream)
    assert stream.index(b"\nAdvertised(") + 1 in boundaries  # hello is complete, nothing of the loop came


@pytest.mark.clause("060-DISC-08", "060-RES-40")
def test_records_before_a_fault_are_kept() -> None:
    first, second = sorted([HELLO_WORLD, plex("a")], key=lambda record: record.split(b"\n", 1)[0])
    stream = recorded([first, second], [DATA])
    cut = play(stream[: stream.index(second) + 60])
    assert cut.outcome.abort == AbortReason.STREAM_BROKEN
    assert [str(record) for record in cut.outcome.result.received_hashes] == [first.split(b"\n", 1)[0][6:].decode()]
    faulty = play(stream.replace(second, b"?" + second, 1))
    assert faulty.outcome.abort == AbortReason.MALFORMED_FACT_BLOCK
    assert len(faulty.outcome.result.received_hashes) == 1


# --- records ----------------------------------------------------------------------------------------------------------


@pytest.mark.clause("060-REC-05", "060-REC-06")
@pytest.mark.parametrize("marker", [b"ExchangeOperand(", b"HelloExchangePlan(", b"Advertised(", b"MayRequest("])
def test_a_record_outside_its_phase_aborts_before_its_bytes_come(marker: bytes) -> None:
    stream = recorded()
    begun = blob(b"x" * 1000)[:70]
    at = stream.index(b"\n" + marker) + 1
    end = play(stream[:at] + begun, eof=False)
    assert end.outcome.abort == AbortReason.RECORD_NOT_REQUESTED


@pytest.mark.clause("060-REC-05")
def test_a_record_that_was_not_requested_aborts() -> None:
    stream = recorded()
    end = play(stream.replace(HELLO_WORLD, blob(b"unasked"), 1))
    assert end.outcome.abort == AbortReason.RECORD_NOT_REQUESTED
    twice = play(stream.replace(HELLO_WORLD, HELLO_WORLD + HELLO_WORLD, 1))
    assert twice.outcome.abort == AbortReason.RECORD_NOT_REQUESTED
    assert len(twice.outcome.result.received_hashes) == 1


@pytest.mark.clause("060-REC-09", "060-REC-13")
@pytest.mark.parametrize("old, new", [(b"hello world", b"hello_world"), (b"Data-Length: 11", b"x\ty\nData-Length: 11")])
def test_a_corrupt_record_is_rejected_and_the_round_goes_on(old: bytes, new: bytes) -> None:
    corrupt = HELLO_WORLD.replace(old, new)
    stream = recorded([HELLO_WORLD], [])
    # The honest rest of the stream lists the record again, and it is not asked for again (P12).
    end = play(stream.replace(HELLO_WORLD, corrupt, 1), make_end(1))
    outcome = end.outcome
    assert not outcome.abort
    assert list(outcome.result.rejected_hashes) == [HELLO_WORLD.split(b"\n", 1)[0][6:].decode()]
    assert outcome.result.bytes_received == len(corrupt)
    assert not end.have


@pytest.mark.clause("060-REC-10", "060-REC-12")
@pytest.mark.parametrize("length", [b"01", b"33554433", b"99999999999999999999"])
def test_a_record_that_cannot_be_delimited_aborts_at_its_announcement(length: bytes) -> None:
    stream = recorded()
    at = stream.index(b"Data-Length: 11")
    end = play(stream[:at] + b"Data-Length: " + length + b"\n\n", eof=False)
    assert end.outcome.abort == AbortReason.MALFORMED_FACT_BLOCK


# --- runtime facts ----------------------------------------------------------------------------------------------------


def runtime_names(end: End) -> set[str]:
    return {fact.predicate.name for facts in end.host.runtime for fact in facts}


@pytest.mark.clause("060-RT-01", "060-RT-02", "060-RT-03", "060-RT-04", "060-RT-05", "060-RT-06", "060-RT-13")
@pytest.mark.clause("060-RT-12")
def test_runtime_facts_are_what_the_link_proves_and_nothing_more() -> None:
    times = {"StartTAI", "TickTAI", "ClockSkewSeconds"}
    bare = make_ends([HELLO_WORLD], [DATA])
    MemoryLink(bare).run()
    assert runtime_names(bare[0]) == times
    named = make_ends([HELLO_WORLD], [DATA], link=Link(transport="tcp:h:1"))
    MemoryLink(named).run()
    assert runtime_names(named[0]) == times | {"Transport"}
    assert ("tcp:h:1",) in {fact.values for fact in named[0].host.runtime[0]}
    proven = make_ends([HELLO_WORLD], [DATA])
    links = [
        Link(here=VERIFIER_A, peer=VERIFIER_B, signs_hello=True, peer_signs_hello=True, encrypted=True),
        Link(here=VERIFIER_B, peer=VERIFIER_A, signs_hello=True, peer_signs_hello=True, encrypted=True),
    ]
    ends = [End(replace(end.config, link=link), end.store) for end, link in zip(proven, links, strict=True)]
    MemoryLink(ends).run()
    assert ends[0].outcome.is_complete
    assert runtime_names(ends[0]) == times | {"Here", "Peer", "TransportEncrypted"}
    assert all((VERIFIER_B,) in {fact.values for fact in facts} for facts in ends[0].host.runtime)


@pytest.mark.clause("060-RT-07", "060-TCP-02")
def test_a_hello_signer_without_proof_is_a_negotiation_failure() -> None:
    stream = recorded().replace(b"HelloTAI(", f"HelloSigner('{VERIFIER_A}')\nHelloTAI(".encode(), 1)
    assert play(stream).outcome.abort == AbortReason.PEER_VERIFIER_MISMATCH


MEMBERS = Module.author("SelectHave(P) :- Have(P).\nSelectAdvertised(P,S) :- Advertised(P,S), Peer(V).")
ENCRYPTED = Module.author("SelectHave(P) :- Have(P).\nSelectAdvertised(P,S) :- Advertised(P,S), TransportEncrypted().")
UNIX = Module.author(
    "SelectHave(P) :- Have(P).\nSelectAdvertised(P,S) :- Advertised(P,S), Transport(T), TextShape(T,'unix:','','')."
)


@pytest.mark.clause("060-RT-08", "060-RT-09", "060-RT-11", "060-POL-03", "060-POL-04")
@pytest.mark.parametrize(
    "module, link, received",
    [
        (MEMBERS, Link(), 0),
        (MEMBERS, Link(peer=VERIFIER_A), 1),
        (ENCRYPTED, Link(), 0),
        (ENCRYPTED, Link(peer=VERIFIER_A), 0),
        (ENCRYPTED, Link(encrypted=True), 1),
        (UNIX, Link(transport="tcp:h:1"), 0),
        (UNIX, Link(transport="unix:/s"), 1),
    ],
)
def test_rules_that_need_a_proof_request_nothing_without_it(module: Module, link: Link, received: int) -> None:
    alice, bob = make_end(0, [HELLO_WORLD], module=module, link=link), make_end(1, [DATA], module=module)
    MemoryLink([alice, bob]).run()
    assert alice.outcome.is_complete
    assert len(alice.outcome.result.received_hashes) == received


# --- time -------------------------------------------------------------------------------------------------------------


def test_silence_ends_at_the_phase_limit() -> None:
    end = make_end(1, [DATA])
    start = MemoryLink([]).now_ns
    end.session.start(start)
    end.perform(start)
    due = end.session.next_timer
    assert due == start + 30 * SECOND_NS
    end.session.handle_timer(due - 1)
    assert end.session.outcome is None
    end.session.handle_timer(due)
    assert end.outcome.abort == AbortReason.PHASE_TIMEOUT
    assert end.session.data_to_send() != b"never"  # what was said before may still be read
    assert end.session.next_timer is None


def test_a_drip_of_bytes_does_not_extend_a_phase() -> None:
    end = make_end(1, [DATA])
    stream = recorded()
    now = MemoryLink([]).now_ns
    end.session.start(now)
    for at in range(40):
        now += SECOND_NS
        end.session.receive_data(stream[at : at + 1], now)
        end.perform(now)
        due = end.session.next_timer
        if due is not None and due <= now:
            end.session.handle_timer(now)
        if end.session.outcome is not None:
            break
    assert end.outcome.abort == AbortReason.PHASE_TIMEOUT


def test_two_large_listings_cross() -> None:
    first = [blob(b"a%d" % n) for n in range(12)]
    second = [blob(b"b%d" % n) for n in range(12)]
    alice, bob = make_ends(first, second)
    MemoryLink([alice, bob], piece=100).run()
    assert alice.have == bob.have
    assert len(alice.have) == 24


@pytest.mark.parametrize("packs", [False, True])
def test_long_blocks_are_read_a_piece_at_a_time(monkeypatch: pytest.MonkeyPatch, packs: bool) -> None:
    """Whoever drives a session has its turn between two pieces of a listing, and the outcome is the same."""
    first, second = ([blob(b"%d/%d" % (side, n)) for n in range(60)] for side in (0, 1))
    options = {"salt": 7, "min_compared": 1000} if packs else {}
    ways = StreamThresholds(read_fact_bytes=1000, packed_bytes=1500)
    alice, bob = (
        make_end(index, records, stream_thresholds=ways, **options) for index, records in enumerate((first, second))
    )
    turns = []
    monkeypatch.setattr(Session, "go_on", lambda self, now, on=Session.go_on: (turns.append(self), on(self, now))[1])
    MemoryLink([alice, bob]).run()
    assert alice.have == bob.have
    assert len(alice.have) == 120
    assert turns.count(alice.session) >= 4
    assert not alice.session.is_behind


def test_many_short_blocks_are_read_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same of blocks that say next to nothing: of a peer that has written ahead, few are read in one go."""
    records = [blob(b"a%d" % n) for n in range(12)], [blob(b"b%d" % n) for n in range(12)]
    alice, bob = make_ends(*records, stream_thresholds=StreamThresholds(read_blocks=1))
    read: list[int] = []

    def counted(self: Session, now_ns: int, on: Callable[[Session, int], None] = Session._read) -> None:
        before = self.blocks_in
        on(self, now_ns)
        read.append(self.blocks_in - before)

    monkeypatch.setattr(Session, "_read", counted)
    MemoryLink([alice, bob]).run()
    assert alice.have == bob.have
    assert len(alice.have) == 24
    assert max(read) == 1
    assert not alice.session.is_behind


def test_a_session_refuses_what_cannot_be_written() -> None:
    end = make_end(0)
    with pytest.raises(LaceError):
        end.session.put_records([("", b"not a record")])


EVERY_FIELD = Module.author(
    "SelectHave(P) :- Have(P).\n"
    "SelectAdvertised(P,S) :- Advertised(P,S), AdvertisedField(P,S,N,I,V), IntCompare(I,'>=','0')."
)


@pytest.mark.clause("060-FACT-06")
def test_a_field_that_fits_no_line_is_left_out_and_its_record_still_advertised() -> None:
    fits, does_not = ("A-Fits", "x" * 800), ("B-Does-Not", "y" * 950)
    record = plex("a", headers=[fits, does_not])
    alice, bob = make_end(0, [record], module=EVERY_FIELD), make_end(1, module=EVERY_FIELD)
    MemoryLink([alice, bob]).run()
    assert alice.outcome.is_complete
    assert b"'A-Fits'" in alice.sent
    assert b"B-Does-Not" not in alice.sent[: alice.sent.index(record)]
    assert len(bob.outcome.result.received_hashes) == 1


# --- what waits, and who is charged for it ----------------------------------------------------------------------------


def asking_for(bogus: int) -> bytes:
    """What a dialer writes that asks for many records that nobody has, beside one that is here."""
    named = "".join(f"MayRequest('{validate(blob(b'%d' % n)).hash!s}')\n" for n in range(bogus)).encode()
    said = recorded()
    assert said.count(b"MayRequest('") == 1
    return said.replace(b"MayRequest('", named + b"MayRequest('")


@pytest.mark.parametrize("bogus", [0, 1, 300])
def test_requests_are_counted_until_they_have_an_answer_and_the_answer_until_it_is_taken(bogus: int) -> None:
    end = make_end(1, [DATA])
    waiting = Backlog(end.session, LinkStepper(end.session, end.host), DriveLimits(), None)
    now_ns = MemoryLink([]).now_ns
    end.session.start(now_ns)
    end.perform(now_ns)
    unserved, answered = [0], [0]
    for at in range(0, len(said := asking_for(bogus)), 64):
        end.session.receive_data(said[at : at + 64], now_ns)
        while requests := end.session.requests():
            for request in requests:
                unserved.append(end.session.machine.unserved_requests)
                held = waiting.held
                assert held >= unserved[-1] * REQUEST_BYTES
                carry_out(end.session, end.host, request, now_ns)
        answered.append(end.session.outbox.facts)
        assert waiting.held >= answered[-1] * REQUEST_BYTES
        end.perform(now_ns)
        assert end.session.outbox.facts == 0
    assert max(unserved) == bogus + 1
    assert max(answered) >= bogus  # that they are not available
    assert end.session.machine.unserved_requests == 0
    end.session.close()


def test_nothing_is_counted_of_what_will_not_be_said() -> None:
    end = make_end(1, [DATA])
    now_ns = MemoryLink([]).now_ns
    end.session.start(now_ns)
    end.session.outbox.put_records([HELLO_WORLD])
    assert end.session.outbox.bytes == len(HELLO_WORLD)
    assert end.session.outbox.blocks > 0
    assert end.session.outbox.facts > 0
    end.session.close()
    unsent = end.session.outbox
    assert (unsent.bytes, unsent.blocks, unsent.facts, bool(unsent), unsent.take()) == (0, 0, 0, False, b"")


@pytest.mark.parametrize("wanted", [["a"], ["b"], ["b", "a"], ["a", "b"], []])
def test_the_first_under_a_name_is_what_came_under_it(wanted: list[str]) -> None:
    expected = {"a": b"first", "b": b"other"}
    found = received([("a", b"first"), ("b", b"other"), ("a", b"second")], wanted)
    assert list(found.records) == [(name, expected[name]) for name in wanted]
    assert found.size == 5 * len(wanted)


@pytest.mark.parametrize("name", ["B.short.H3", "B." + "." * 43 + ".H3", "", "a b"])
def test_what_is_no_record_id_is_refused_as_soon_as_it_is_read(name: str) -> None:
    """Not after a million lines: the block has not ended."""
    said = recorded()
    at = said.index(b"MayRequest('")
    end = play(said[:at] + f"MayRequest('{name}')\n".encode(), eof=False)
    assert end.outcome.abort
    assert end.have == {str(validate(DATA).hash)}
