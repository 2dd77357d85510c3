"""How the two advertisement states of an epoch stand, step by step (050, 070)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from interlace.deciding import RECORDS
from interlace.pair import blob, group_module
from interlace.scripted import SECOND, Scripted
from lace.interlace.effects import Evaluate, KeepClaims, SetHandle
from lace.interlace.events import Ticked
from lace.interlace.inputs import ClaimsTaken, Evaluated
from lace.interlace.loop import transfer
from lace.interlace.loop.epoch import Epoch
from lace.interlace.phases import Question
from lace.limits import ExchangeLimits
from lace.notation.tai import TAI


def begun(**options: object) -> Epoch:
    """An epoch of which the hello is agreed."""
    return Scripted(**options).open().side.machine.epoch


def listings_count(epoch: Epoch, *, reads: bool = True) -> None:
    epoch.agreement = replace(epoch.agreement, have_reads_advertisements=reads)


@pytest.mark.clause("050-XFER-11")
def test_claims_that_changed_are_kept_and_forgive_what_was_refused() -> None:
    epoch = begun(cursor_key="here")
    core = epoch.core
    assert epoch.number == 1
    core.requests.reject(RECORDS[:1])
    core.take()
    epoch.note_claims(ClaimsTaken(5, changed=False))
    assert (epoch.claims, core.requests.refused, epoch.save_claims()) == (5, frozenset(RECORDS[:1]), False)
    epoch.note_claims(ClaimsTaken(6, changed=True))
    assert (epoch.claims, core.requests.refused) == (6, frozenset())
    assert epoch.save_claims()
    assert core.take() == [KeepClaims("here")]
    assert not epoch.save_claims()
    nameless = begun()
    nameless.note_claims(ClaimsTaken(6, changed=True))
    assert not nameless.save_claims()


@pytest.mark.clause("050-OPEN-13")
def test_the_next_epoch_keeps_claims_under_the_same_plan_only() -> None:
    first = begun(cursor_key="here")
    first.note_claims(ClaimsTaken(6, changed=True))
    second = Epoch(first.core, first.agreement, before=first)
    assert (second.number, second.claims, second.save_claims()) == (2, 6, True)
    assert second.claims_changed
    third = Epoch(first.core, begun(module=group_module("u")).agreement, before=second)
    assert (third.number, third.claims, third.save_claims(), third.claims_changed) == (3, 0, False, False)
    third.begin_with(4)
    assert (third.claims, third.claims_changed) == (4, True)
    third.begin_with(0)
    assert not third.claims_changed


@pytest.mark.clause("070-BASE-01")
def test_what_crossed_is_noted_from_a_base_on() -> None:
    epoch = begun()
    epoch.note_sent(RECORDS[:1])
    epoch.note_arrived(RECORDS[1:2])
    assert (epoch.sent, epoch.arrived) == (set(), set())
    epoch.note_reconciled()
    assert epoch.compared is None  # 070 is not spoken
    epoch.agreement = replace(epoch.agreement, negotiated=replace(epoch.agreement.negotiated, differences=True))
    epoch.note_reconciled()
    assert epoch.compared == epoch.own
    epoch.note_sent(RECORDS[:1])
    epoch.note_arrived(RECORDS[1:2])
    assert (epoch.sent, epoch.arrived) == ({RECORDS[0]}, {RECORDS[1]})
    epoch.note_reconciled()
    assert (epoch.sent, epoch.arrived) == (set(), set())


@pytest.mark.clause("070-CAP-05")
def test_who_holds_nothing_is_listed_to_once() -> None:
    epoch = begun(partition_threshold_bytes=77)
    assert not epoch.lists_at_once
    assert epoch.partition_threshold_bytes == 77
    epoch.agreement = replace(epoch.agreement, peer_holds_nothing=True)
    assert epoch.lists_at_once
    assert epoch.partition_threshold_bytes == epoch.agreement.negotiated.limits.max_fact_block_size
    epoch.compared = epoch.own
    assert not epoch.lists_at_once


@pytest.mark.parametrize(
    ("question", "lists", "requests"),
    [(Question.WHAT_TO_LIST, True, 0), (Question.WHAT_TO_REQUEST, False, 8), (Question.WHAT_TO_SERVE, False, 0),
     (Question.ANY_NEWS, True, 1)],
)  # fmt: skip
def test_each_question_is_asked_with_what_its_answer_needs(
    question: Question, lists: bool, requests: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    epoch = begun(max_requests=8)
    core, asked = epoch.core, list[Evaluate]()
    monkeypatch.setattr(core, "ask", lambda _, effect: asked.append(effect))
    core.requests.reject(RECORDS[:1])
    core.local_changed = True
    epoch.evaluate(question)
    assert asked[0].max_requests == requests
    assert core.local_changed is not lists
    assert bool(asked[0].measured_bytes) is lists
    assert asked[0].refused == (frozenset(RECORDS[:1]) if requests else frozenset())
    assert asked[0].max_request_bytes == epoch.agreement.negotiated.limits.max_fact_block_size - 64


@pytest.mark.clause("050-BOUND-09")
def test_listings_that_only_alternate_are_settled() -> None:
    epoch = begun(limits=ExchangeLimits(max_loop_iterations=2))
    assert epoch.note_listings()  # where no rule reads listings a quiet loop is the last
    listings_count(epoch)

    def quiet(ours: bytes, theirs: bytes) -> bool:
        epoch.own_listing = ours
        epoch.found = Evaluated(own=epoch.own, fingerprint=ours, claims_fingerprint=theirs)
        return epoch.note_listings()

    assert [quiet(b"a", b"1"), quiet(b"a", b"2"), quiet(b"a", b"1"), quiet(b"a", b"2")] == [False, False, True, True]
    assert [quiet(b"a", b"3"), quiet(b"a", b"1"), quiet(b"a", b"3")] == [False, False, True]  # the oldest was forgotten
    epoch.forget_listings()
    assert not quiet(b"a", b"3")
    for moved, fingerprint, reads, is_settled in (
        (False, b"a", True, True), (True, b"a", True, False), (False, b"b", True, False), (False, b"a", False, False),
    ):  # fmt: skip
        listings_count(epoch, reads=reads)
        epoch.found = Evaluated(own=SetHandle(99, 1), fingerprint=fingerprint)
        epoch.advertised, epoch.moved_by_itself = None, moved
        epoch.settle()
        assert epoch.is_advertised is is_settled


def test_a_set_that_changed_by_claims_alone_did_not_move_by_itself() -> None:
    epoch = begun()
    for sees, number, moved in ((False, epoch.own.number, False), (True, 50, False), (False, 51, True)):
        epoch.moved_by_itself = False
        epoch.sees_other_claims = sees
        epoch.accept(Evaluated(own=SetHandle(number, 0)))
        assert epoch.moved_by_itself is moved
    epoch.note_advertised()
    assert (epoch.moved_by_itself, epoch.is_advertised) == (False, True)


@pytest.mark.clause("050-TICK-14", "050-TICK-15", "050-TICK-13")
def test_ticks_are_announced_where_somebody_waits_for_them() -> None:
    assert not begun().announces_ticks
    assert begun(is_open=True).announces_ticks
    waiting = begun(ticks_before_close=2, stored=(blob(b"x"),))
    core = waiting.core
    assert waiting.announces_ticks
    assert not begun(is_open=True, ticks_before_close=2).has_ticked_enough
    assert not begun().has_ticked_enough
    core.local_changed = False
    assert waiting.is_advertised
    start = waiting.ticks.start
    for after, enough in ((1, False), (2, True), (3, True)):
        waiting.ticks.local_ready = waiting.ticks.peer_ready = start.plus_ns(after * waiting.ticks.interval_ns)
        assert waiting.has_ticked_enough is enough
    core.local_changed = True
    assert not waiting.has_ticked_enough
    core.local_changed, waiting.advertised = False, None
    assert not waiting.has_ticked_enough


def test_a_tick_that_both_reached_is_shown_once() -> None:
    epoch = begun(is_open=True)
    core = epoch.core
    interval = epoch.ticks.interval_ns
    assert interval == 10 * SECOND
    core.take()
    core.now_ns, core.local_changed = epoch.ticks.start.to_ns() + interval, False
    (fact,) = epoch.tick_facts()
    assert TAI(fact.values[0]).to_ns() == core.now_ns
    assert (epoch.tick_facts(), core.take(), core.local_changed) == ([], [], False)  # the peer has not reached it
    epoch.ticks.hear(fact.values[0])
    epoch.show_tick()
    assert [report.event for report in core.take()] == [Ticked(TAI(fact.values[0]))]  # type: ignore[union-attr]
    assert core.local_changed
    epoch.show_tick()
    assert core.take() == []


@pytest.mark.clause("050-LIM-06")
@pytest.mark.parametrize(
    ("sizes", "room", "expected"),
    [
        ([], 0, (0, 0)),
        ([3, 4], 7, (2, 7)),
        ([3, 4], 8, (2, 7)),
        ([3, 4], 6, (1, 7)),
        ([3, 4], 3, (1, 7)),
        ([3, 4], 2, (0, 3)),
        ([3, 4, 5], 3, (1, 7)),
        ([0, 0], 0, (2, 0)),
    ],
)
def test_records_count_up_to_the_first_that_does_not_fit(
    sizes: list[int], room: int, expected: tuple[int, int]
) -> None:
    assert transfer.fitting(sizes, room) == expected
