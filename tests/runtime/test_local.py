"""Both sides in one process: the direct path, receipts, memory, wrappers (050 ENG, OPS, RCPT)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from interlace.pair import ALL, EXPOSE_ALL, blob, group_module, hash_of, plex
from lace.errors import LaceError
from lace.intake.received import judge_received
from lace.interlace import inputs as given
from lace.interlace.events import Advertising, Closed, Event, FixedPoint, Received, Requested
from lace.interlace.machine import InterlaceMachine
from lace.interlace.reasons import AbortReason
from lace.limits import EngineLimits, ExchangeLimits, RecordLimits
from lace.notation.identifiers import RecordHash
from lace.policy.operand import Module
from lace.policy.select import select_hash
from lace.records.keys import SigningKey
from lace.records.model import Seal
from lace.records.validate import validate
from lace.runtime.host.receipts import make_receipt
from lace.runtime.local.local import ExchangeAborted, exchange
from lace.runtime.local.party import Party, local_terms
from lace.store import open_store
from lace.store.base import RecordStore
from lace.store.memory import MemoryStore

mark = pytest.mark
ALICE, BOB = SigningKey(bytes(31) + b"\x05"), SigningKey(bytes(31) + b"\x09")


def store_with(*records: bytes) -> MemoryStore:
    store = MemoryStore()
    store.put([validate(record) for record in records])
    return store


def have(store: RecordStore) -> set[str]:
    return {record for _, record in store.records_since()}


def party(store: RecordStore, module: Module = ALL, **options: Any) -> Party:
    """A side that shows everything; an option that is none of the party is one of its terms."""
    own = {name: options.pop(name) for name in ("here", "cursor_key", "receipts") if name in options}
    return Party(store=store, terms=local_terms(module, **{"exposures": EXPOSE_ALL, **options}), **own)


X, Y, Z = blob(b"x"), blob(b"y"), plex("z")


@mark.clause("050-ENG-01", "050-ENG-02", "050-ENG-03", "050-ENG-04", "050-ENG-07", "050-MODEL-03")
@pytest.mark.parametrize(("is_direct", "threshold"), [(True, 1 << 19), (False, 1 << 19), (False, 0)])
def test_two_stores_in_one_process_converge(is_direct: bool, threshold: int) -> None:
    first, second = store_with(X, Y), store_with(Z)
    events: list[tuple[int, Event]] = []
    results = exchange(
        party(first, partition_threshold_bytes=threshold),
        party(second, partition_threshold_bytes=threshold),
        is_direct=is_direct,
        on_event=lambda side, event: events.append((side, event)),
    )
    assert have(first) == have(second) == {hash_of(X), hash_of(Y), hash_of(Z)}
    assert all(result.fixed_point for result in results)
    assert set(results[0].received_hashes) == {hash_of(Z)}
    assert results[0].sent_hashes
    kinds = {type(event) for _, event in events}
    assert {Advertising, Requested, Received, FixedPoint, Closed} <= kinds


@pytest.mark.long
@mark.clause("050-ENG-03", "050-VALID-05")
def test_large_transfers_go_through_workers_and_are_durable(tmp_path: Path) -> None:
    records = [blob(b"%d" % number) for number in range(5_000)]
    with open_store(tmp_path / "a.lace", create=True) as first, open_store(tmp_path / "b.lace", create=True) as second:
        first.put([validate(record) for record in records])
        results = exchange(party(first), party(second))
        assert len(results[1].received_hashes) == 5_000
    with open_store(tmp_path / "b.lace") as again:
        assert len(have(again)) == 5_000


@mark.clause("050-VALID-05", "050-VALID-06")
def test_what_came_under_a_hash_is_that_record_or_refused_by_it(tmp_path: Path) -> None:
    wrong = X[:-1] + b"w"
    received = judge_received([(hash_of(X), wrong), (hash_of(Y), Y), (hash_of(Z), X)], RecordLimits())
    with open_store(tmp_path / "a.lace", create=True) as store:
        received.commit(store)
        assert have(store) == {hash_of(Y)}
    assert received.stored == [hash_of(Y)]
    assert sorted(received.refused) == sorted([hash_of(X), hash_of(Z)])


def test_an_exchange_with_nothing_new_on_either_side_is_remembered() -> None:
    first, second = store_with(X), store_with(Y)
    parties = party(first, cursor_key="b"), party(second, cursor_key="a")
    assert exchange(*parties)[0].loops > 0
    again = exchange(*parties)
    assert [result.loops for result in again] == [0, 0]
    assert again[0].fixed_point
    assert again[0].advertised_by_peer == 2
    first.put([validate(Z)])
    assert exchange(*parties)[1].received_hashes == (hash_of(Z),)
    assert exchange(*parties)[0].loops == 0
    narrowed = party(second, group_module("v"), cursor_key="a")
    assert exchange(parties[0], narrowed)[0].loops > 0
    hidden = party(second, exposures=(), cursor_key="a")
    assert exchange(parties[0], hidden)[0].loops > 0


def test_a_plan_that_reads_time_is_never_remembered() -> None:
    timed = Module.author("SelectHave(P) :- Have(P), StartTAI(_).\nSelectAdvertised(P,S) :- Advertised(P,S).")
    parties = party(store_with(X), timed, cursor_key="b"), party(store_with(), cursor_key="a")
    exchange(*parties)
    assert exchange(*parties)[0].loops > 0


# --- receipts -------------------------------------------------------------------------------------------------------


@mark.clause("050-RCPT-01", "050-RCPT-02", "050-RCPT-03")
def test_a_receiver_may_publish_receipts() -> None:
    first, second = store_with(X), store_with()
    exchange(
        party(first, here=ALICE.verifier),
        party(second, here=BOB.verifier, receipts=BOB),
    )
    (receipt,) = have(second) - {hash_of(X)}
    record = validate(second.get(RecordHash(receipt)) or b"").record
    assert isinstance(record, Seal)
    assert record.signed_by == BOB.verifier
    plain = record.plex
    assert (plain.group, plain.app, plain.name) == ("lace", "receipt", f"store/{hash_of(X)}")
    assert plain.headers == (("Stored-From", ALICE.verifier), ("Stored-Hash", hash_of(X)))
    later = exchange(party(first, here=ALICE.verifier, receipts=ALICE), party(second, here=BOB.verifier, receipts=BOB))
    assert later[0].received_hashes == (receipt,)
    assert exchange(party(first, here=ALICE.verifier, receipts=ALICE), party(second, here=BOB.verifier))[1].fixed_point
    assert len(have(first)) == 2  # a receipt is not receipted


@mark.clause("050-RCPT-04")
def test_an_exchange_without_receipts_is_complete() -> None:
    first, second = store_with(X), store_with()
    results = exchange(party(first), party(second))
    assert all(result.fixed_point for result in results)
    assert have(second) == {hash_of(X)}
    from lace.notation.tai import TAI

    assert make_receipt(hash_of(X), ALICE.verifier, BOB, TAI("1640995200:000000000")).hash.type == "S"


# --- hostile operands -----------------------------------------------------------------------------------------------

CROSS = (
    "SelectHave(P) :- Have(P), Pair(P,_,_).\nPair(P,Q,R) :- Field(P,_,_,_), Field(Q,_,_,_), Field(R,_,_,_).\n"
    "SelectAdvertised(P,S) :- Advertised(P,S)."
)


@mark.clause("050-EVAL-04", "050-ERR-18")
def test_a_cross_product_ends_in_a_typed_abort_with_the_store_untouched() -> None:
    victim = store_with(*(plex(f"n{n}") for n in range(60)))
    before = have(victim)
    small = EngineLimits(max_derived_facts_per_predicate=10_000, max_working_rows=1 << 20)
    with pytest.raises(ExchangeAborted) as abort:
        exchange(party(store_with(), Module.author(CROSS)), party(victim, engine_limits=small))
    assert abort.value.reason is AbortReason.EVALUATION_FAILED
    assert have(victim) == before


@mark.clause("050-ERR-07", "050-ERR-08")
@pytest.mark.parametrize(
    "text",
    [
        "A(P) :- Have(P), not B(P).\nB(P) :- Have(P), not A(P).\nSelectHave(P) :- A(P).",
        "SelectHave(P) :- not Have(P).",
        "MaySend(P) :- Have(P).\nSelectHave(P) :- Have(P).",
    ],
)
def test_what_is_no_selector_never_becomes_a_module(text: str) -> None:
    with pytest.raises(LaceError):
        Module.author(f"{text}\nSelectAdvertised(P,S) :- Advertised(P,S).")


@pytest.mark.long
def test_a_module_of_256_rules_in_a_chain_is_evaluated() -> None:
    chain = "\n".join(f"H{n}(P) :- H{n - 1}(P)." for n in range(1, 250))
    deep = Module.author(
        f"H0(P) :- Have(P).\n{chain}\nSelectHave(P) :- H249(P).\nSelectAdvertised(P,S) :- Advertised(P,S)."
    )
    first, second = store_with(X), store_with()
    exchange(party(first, deep), party(second))
    assert have(second) == {hash_of(X)}


# --- wrappers -------------------------------------------------------------------------------------------------------


@mark.clause("050-OPS-01", "050-OPS-03", "050-EX-02")
def test_a_store_wrapper_is_a_selector_and_an_exchange() -> None:
    first, server = store_with(X, Y), store_with()
    exchange(party(first, select_hash(hash_of(X))), party(server))
    assert have(server) == {hash_of(X)}


@mark.clause("050-OPS-04", "050-OPS-05")
def test_listening_changes_nothing_that_travels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both machines are told the same by their peers, in the same order."""
    receive = InterlaceMachine.receive
    told: dict[int, list[str]] = {}

    def spy(machine: InterlaceMachine, item: Any, now_ns: int) -> Any:
        if isinstance(item, given.PeerInput):
            told.setdefault(machine.config.index, []).append(type(item).__name__)
        return receive(machine, item, now_ns)

    def run(listen: bool) -> dict[int, list[str]]:
        told.clear()
        events = (lambda *_: None) if listen else None
        exchange(party(store_with(X)), party(store_with(Y)), is_direct=False, on_event=events)
        return dict(told)

    monkeypatch.setattr(InterlaceMachine, "receive", spy)
    listened = run(listen=True)
    assert min(map(len, listened.values())) > 10
    assert listened == run(listen=False)


def test_long_listings_travel_by_partitions_when_asked_to() -> None:
    """As on a wire."""
    records = [blob(str(number).encode()) for number in range(4_200)]
    first, second = store_with(*records), store_with(*records[:5])
    exchange(*(party(store, partition_threshold_bytes=0) for store in (first, second)), is_direct=False)
    assert have(first) == have(second) == set(map(hash_of, records))


@mark.clause("050-LIM-06", "050-ERR-14")
def test_a_local_exchange_keeps_the_transfer_limit() -> None:
    first, second = store_with(X, Y), store_with()
    limits = ExchangeLimits(max_total_transferred_bytes=len(X) + 1)
    with pytest.raises(ExchangeAborted) as abort:
        exchange(party(first, limits=limits), party(second, limits=limits))
    assert abort.value.reason is AbortReason.TRANSFER_LIMIT_EXCEEDED
    assert len(have(second)) == 1
    assert len(abort.value.results[1].received_hashes) == 1
