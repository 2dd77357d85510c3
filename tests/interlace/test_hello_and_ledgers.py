"""Hellos, requests, ledgers and ticks, each by itself and at its bounds (050)."""

from __future__ import annotations

import pytest

from interlace.deciding import RECORDS, reason_of
from lace.interlace.effects import Evaluate
from lace.interlace.ledger import Ledger, keep_newest
from lace.interlace.loop.requests import RequestBook, choose_requests
from lace.interlace.loop.ticks import TickState
from lace.interlace.reasons import AbortReason
from lace.interlace.runtimefacts import RuntimeFacts
from lace.interlace.setup.hello import (
    COMPRESSION,
    DIFFERENCES,
    HOLDS_NOTHING,
    NO_FIELDS,
    PARTITION_LIMIT,
    SALT,
    TAKE,
    Hello,
    agree,
    is_canonical_decimal,
    offered_capabilities,
    offered_limits,
    read_hello,
    says_it_holds_nothing,
)
from lace.interlace.vocabulary import (
    HELLO_LIMIT,
    HELLO_TICK_INTERVAL,
)
from lace.limits import ExchangeLimits
from lace.notation.fact import Fact
from lace.notation.identifiers import ExchangePlanId
from lace.notation.tai import TAI

# --- hello -----------------------------------------------------------------------------------------------------------

PLAN = ExchangePlanId.of(bytes(32))


def hello(tai: str = "1640995237:000000000", tick: int = 5, **more: object) -> Hello:
    return Hello(
        **{"plan": PLAN, "tai": TAI(tai), "tick_interval_ns": tick, "record_formats": frozenset({"H3"}),
           "schema": NO_FIELDS, **more}  # type: ignore[arg-type]
    )  # fmt: skip


@pytest.mark.clause("050-TAI-03", "050-TAI-04", "050-TAI-07", "050-HLIM-02")
def test_two_hellos_come_to_one_agreement() -> None:
    ours = hello(limits=((PARTITION_LIMIT, 9), ("max_narrowing_depth", 3)), capabilities=((COMPRESSION, 1),))
    theirs = hello(
        "1640995240:999999999", 7, limits=((PARTITION_LIMIT, 1), (PARTITION_LIMIT, 5)), capabilities=((COMPRESSION, 1),)
    )
    for one, other in ((ours, theirs), (theirs, ours)):
        found = agree(one, other, ExchangeLimits(max_narrowing_depth=2), frozenset())
        assert (found.start, found.skew_seconds, found.tick_interval_ns) == ("1640995240:999999999", 3, 7)
        assert (found.limits.max_partition_summaries, found.limits.max_narrowing_depth) == (1, 2)
        assert (found.partitions, found.differences, found.compression) == (True, False, True)
    for limits in ((), ((PARTITION_LIMIT, 0),), ((PARTITION_LIMIT, 4), (PARTITION_LIMIT, 0))):
        assert not agree(ours, hello(limits=limits), ExchangeLimits(), frozenset()).partitions
        assert not agree(hello(limits=limits), ours, ExchangeLimits(), frozenset()).partitions
    assert says_it_holds_nothing(hello(capabilities=((HOLDS_NOTHING, 1),)))
    assert not says_it_holds_nothing(hello(capabilities=((HOLDS_NOTHING, 0),)))


@pytest.mark.clause("070-TAKE-01", "070-CAP-01")
def test_both_take_as_many_as_either_said() -> None:
    def takes(*said: tuple[tuple[str, int], ...]) -> int:
        found = {agree(hello(capabilities=a), hello(capabilities=b), ExchangeLimits(), frozenset()).takes
                 for a, b in (said, said[::-1])}  # fmt: skip
        assert len(found) == 1
        return found.pop()

    on = (DIFFERENCES, 1)
    assert takes((on, (TAKE, 7)), (on, (TAKE, 9))) == 7
    assert takes((on, (TAKE, 7), (TAKE, 3)), (on, (TAKE, 9))) == 3
    assert takes((on, (TAKE, 7)), (on,)) == 0
    assert takes((on, (TAKE, 7)), (on, (TAKE, 0))) == 0
    assert takes(((TAKE, 7),), (on, (TAKE, 9))) == 0  # it belongs to comparing
    assert takes(((DIFFERENCES, 0), (TAKE, 7)), (on, (TAKE, 9))) == 0


def test_what_is_offered_is_what_is_spoken() -> None:
    limits = ExchangeLimits(max_partition_summaries=9)
    assert dict(offered_limits(limits, partitions=True))[PARTITION_LIMIT] == 9
    assert dict(offered_limits(limits, partitions=False))[PARTITION_LIMIT] == 0
    assert dict(offered_limits(limits, partitions=False))["max_narrowing_depth"] == 12
    for differences, compression, nothing, names in (
        (True, True, False, [DIFFERENCES, SALT, COMPRESSION]),
        (True, False, True, [DIFFERENCES, SALT, HOLDS_NOTHING]),
        (False, True, True, [COMPRESSION]),
        (False, False, False, []),
    ):
        asked = {"differences": differences, "compression": compression, "holds_nothing": nothing}
        offered = offered_capabilities(salt=44, **asked)
        assert offered == tuple((name, 44 if name == SALT else 1) for name in names)
        assert offered_capabilities(salt=None, **asked) == ()


@pytest.mark.clause("050-TAI-08", "050-TAI-09", "050-TAI-10", "050-HLIM-04", "050-HLIM-05", "050-HLIM-03")
def test_numbers_of_a_hello_are_canonical_and_within_bounds() -> None:
    plain = [fact for fact in hello().facts() if fact.predicate != HELLO_TICK_INTERVAL]

    def read(interval: str, *limits: tuple[str, str]) -> Hello:
        facts = [Fact(HELLO_TICK_INTERVAL, (interval,)), *(Fact(HELLO_LIMIT, limit) for limit in limits)]
        return read_hello([*plain, *facts], 100)

    assert [read(text).tick_interval_ns for text in ("1", "100")] == [1, 100]
    for text in ("0", "101", "01", "", "x"):
        assert reason_of(lambda text=text: read(text)) == f"tick interval {text!r} is not 1 to 100 ns"  # type: ignore[misc]
    found = read("1", (PARTITION_LIMIT, "0"), ("max_narrowing_depth", "2"), ("unknown", "x"), (COMPRESSION, "0"))
    assert found.limits == ((PARTITION_LIMIT, 0), ("max_narrowing_depth", 2))
    assert found.capabilities == ((COMPRESSION, 0),)
    for name, text in (("max_narrowing_depth", "0"), ("max_narrowing_depth", "01"), (PARTITION_LIMIT, "x")):
        assert reason_of(lambda limit=(name, text): read("1", limit)) == f"limit {name} = {text!r}"  # type: ignore[misc]
    assert is_canonical_decimal("9" * 40)
    assert not is_canonical_decimal("9" * 41)


# --- requests, ledger, ticks -----------------------------------------------------------------------------------------

RUNTIME = RuntimeFacts.__new__(RuntimeFacts)


def chosen(requestable: list[str], claimed: list[str], formats: str = "H3", **wanted: object) -> list[str]:
    asked = Evaluate(**{"runtime": RUNTIME, "max_requests": 10, "max_request_bytes": 10_000, **wanted})  # type: ignore[arg-type]
    return choose_requests(
        requestable, lambda records: [r for r in records if r in claimed], frozenset({formats}), asked
    )


@pytest.mark.clause("050-REQ-02", "050-REQ-06")
def test_the_smallest_hashes_that_fit_are_requested() -> None:
    shuffled = [*RECORDS[5:12], *RECORDS[:5]]
    line = len("MayRequest('')\n") + 48
    assert chosen(shuffled, RECORDS) == RECORDS[:10]
    assert chosen(shuffled, RECORDS, max_requests=3) == RECORDS[:3]
    assert chosen(shuffled, RECORDS, max_requests=0) == []
    assert chosen(shuffled, RECORDS[2:4]) == RECORDS[2:4]
    assert chosen(shuffled, RECORDS, refused=frozenset(RECORDS[:9])) == RECORDS[9:12]
    assert chosen(shuffled, RECORDS, "H4") == []
    assert chosen(shuffled, RECORDS, max_request_bytes=3 * line) == RECORDS[:3]
    assert chosen(shuffled, RECORDS, max_request_bytes=3 * line - 1) == RECORDS[:2]
    assert chosen(shuffled[:3], RECORDS, max_request_bytes=3 * line) == sorted(shuffled[:3])
    assert chosen(shuffled[:3], RECORDS, max_request_bytes=3 * line - 1) == sorted(shuffled[:3])[:2]


@pytest.mark.clause("050-XFER-09", "050-XFER-11", "050-REQF-10", "050-ERR-04")
def test_each_request_is_answered_once() -> None:
    book = RequestBook()
    book.outstanding = set(RECORDS[:6])
    assert book.arrive(RECORDS[:2]) == 2
    assert book.arrive([RECORDS[2], RECORDS[2], RECORDS[3]]) == 1
    assert book.outstanding == set(RECORDS[3:6])
    assert book.arrive([RECORDS[3], RECORDS[9]]) == 1
    assert book.arrive([]) == 0
    book.unavailable(RECORDS[4])
    assert reason_of(lambda: book.unavailable(RECORDS[4])) == (
        f"NotAvailable for {RECORDS[4]!r}, which is not requested"
    )
    book.reject([RECORDS[0]])
    assert book.refused == {RECORDS[4], RECORDS[0]}
    assert book.take_deferred() == [RECORDS[5]]
    assert book.outstanding == set()
    book.forgive()
    assert book.refused == frozenset()
    accepted = frozenset({"H3"})
    assert book.unasked("X.00.H4", accepted).reason is AbortReason.UNSUPPORTED_RECORD_FORMAT
    for text in (RECORDS[0], "X", "X.00"):
        assert book.unasked(text, accepted).reason is AbortReason.RECORD_NOT_REQUESTED


@pytest.mark.clause("070-TAKE-05")
def test_what_comes_unasked_is_told_apart_from_what_is_wanted() -> None:
    book = RequestBook()
    book.ask(RECORDS[:2], RECORDS[:6])
    assert book.outstanding == set(RECORDS[:6])
    assert book.arrive([RECORDS[0], RECORDS[2]]) == 2
    assert book.wanted([RECORDS[0], RECORDS[2]]) == [RECORDS[0]]
    assert book.arrive([RECORDS[2]]) == 0  # once, wanted or not
    for record in (RECORDS[1], RECORDS[3]):
        book.unavailable(record)
    assert book.refused == {RECORDS[1]}
    assert book.arrive([RECORDS[9]]) == 0
    assert book.take_deferred() == []
    assert book.outstanding == set()
    book.ask(RECORDS[2:4])
    assert book.wanted(RECORDS[2:4]) == RECORDS[2:4]
    assert book.take_deferred() == RECORDS[2:4]
    book.ask(RECORDS[:1], RECORDS[:2])
    book.reset()
    assert (book.outstanding, list(book.wanted(RECORDS[:2]))) == (set(), RECORDS[:2])


@pytest.mark.clause("050-RESULT-08")
def test_a_ledger_counts_an_exchange_and_its_rounds() -> None:
    ledger = Ledger(max_hashes=2)
    ledger.count_loop()
    ledger.count_received(10)
    ledger.count_sent([(RECORDS[0], 3), (RECORDS[1], 4)])
    ledger.count_sent([(RECORDS[2], 5)])
    ledger.reject({RECORDS[3]: "bad", RECORDS[4]: "bad"})
    ledger.miss(RECORDS[5])
    ledger.miss(RECORDS[3])
    ledger.store([RECORDS[4]])
    ledger.reject({RECORDS[4]: "late"})
    ledger.miss(RECORDS[4])
    ledger.store([RECORDS[5]])
    ledger.miss(RECORDS[6])
    assert (ledger.bytes_received, ledger.bytes_sent, ledger.round_received, ledger.round_sent) == (10, 12, 10, 12)
    assert (list(ledger.received), ledger.rejected) == ([RECORDS[4], RECORDS[5]], {RECORDS[3]: "bad"})
    assert list(ledger.not_available) == [RECORDS[6]]
    ledger.begin_round()
    assert (ledger.loops, ledger.round_loops, ledger.round_received, ledger.round_sent) == (1, 0, 0, 0)
    assert (list(ledger.sent), list(ledger.unconfirmed)) == ([], RECORDS[1:3])
    ledger.refuse({RECORDS[1]: "full"})
    assert ledger.confirm() == [RECORDS[2]]
    assert (list(ledger.sent), list(ledger.unconfirmed), ledger.refused) == ([RECORDS[2]], [], {RECORDS[1]: "full"})
    assert [ledger.has_sent(record) for record in RECORDS[:3]] == [False, False, True]
    ledger.count_loop()
    ledger.count_loop()
    assert (ledger.loops, ledger.round_loops) == (3, 2)
    for most, left in ((0, []), (1, [3]), (3, [1, 2, 3]), (4, [1, 2, 3])):
        named = dict.fromkeys([1, 2, 3])
        keep_newest(named, most)
        assert list(named) == left


@pytest.mark.clause("050-TICK-05", "050-TICK-06", "050-TICK-07", "050-TICK-11", "050-TICK-16")
def test_shared_time_is_what_both_clocks_have_reached() -> None:
    start = TAI("0000000100:000000000")
    ticks = TickState(start, 10)
    now = start.to_ns()
    assert ticks.next_due_ns() == now + 10
    assert ticks.reached(now + 9) is None
    assert ticks.reached(now + 10) == start.plus_ns(10)
    assert ticks.reached(now + 29) == start.plus_ns(20)
    ticks.announce(start.plus_ns(20))
    ticks.announce(start.plus_ns(10))
    assert ticks.local_ready == start.plus_ns(20)
    assert ticks.reached(now + 29) is None
    assert ticks.reached(now + 30) == start.plus_ns(30)
    assert ticks.tick == start
    for after, ready in ((-10, 0), (9, 0), (10, 10), (11, 10), (10, 10), (0, 10), (30, 30), (20, 30)):
        ticks.hear(start.plus_ns(after))
        assert ticks.peer_ready == start.plus_ns(ready)
    assert ticks.tick == start.plus_ns(20)
