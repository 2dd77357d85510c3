"""Bounded and open exchanges, ticks, epochs, fixed points, timeouts and closing (050 TICK, BOUND, OPEN, LIM, ERR)."""

from __future__ import annotations

import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

from interlace.pair import ALL, START_NS, Pair, blob, changed, group_module, hash_of, make_pair, plex
from interlace.scripted import SECOND, TAI_TEXT, Scripted, limits_with
from lace.errors import LocalProtocolError
from lace.interlace import inputs as given
from lace.interlace.effects import EndBlock, Evaluate, KeepClaims, PreparePolicy, SendFacts, SetHandle
from lace.interlace.events import Closed, EpochBegan, FixedPoint, Ticked
from lace.interlace.host import Call
from lace.interlace.loop.ticks import TickState
from lace.interlace.machine import InterlaceMachine
from lace.interlace.phases import MOVES, Move, Phase, move
from lace.interlace.reasons import AbortReason, ProtocolAbort
from lace.interlace.setup.hello import FieldSchema
from lace.limits import ExchangeLimits
from lace.notation.tai import TAI
from lace.policy.operand import Module

mark = pytest.mark
X, Y, Z = blob(b"x"), blob(b"y"), blob(b"z")
START = TAI(TAI_TEXT)
TICK = 10 * SECOND
NOT_THEIRS = Module.author(
    "SelectHave(P) :- Have(P), not Theirs(P).\nTheirs(P) :- Advertised(P,_).\nSelectAdvertised(P,S) :- Advertised(P,S)."
)


def resting(*modules: Module, **options: object) -> Pair:
    """An open pair at its first fixed point."""
    pair = make_pair(*modules, is_open=True, **options)
    pair.start()
    pair.run()
    return pair


def rested(**options: object) -> Scripted:
    """Our open side at a fixed point, the peer scripted."""
    wire = Scripted(is_open=True, **options).open()
    wire.say()
    wire.say()
    assert wire.phase is Phase.IDLE
    wire.heard()
    return wire


# --- ticks ----------------------------------------------------------------------------------------------------------


@mark.clause("050-TICK-02", "050-TAI-13")
def test_both_readinesses_and_the_tick_begin_at_the_start() -> None:
    ticks = TickState(START, TICK)
    assert ticks.local_ready == ticks.peer_ready == ticks.tick == START


@pytest.mark.parametrize(
    ("heard", "expected"),
    [
        pytest.param(["1640995190:000000000"], TAI_TEXT, id="early", marks=mark.clause("050-TICK-05", "050-TICK-09")),
        pytest.param(
            ["1640995220:000000000", "1640995210:000000000"], "1640995220:000000000",
            id="decreasing", marks=mark.clause("050-TICK-06", "050-TICK-09"),
        ),
        pytest.param(
            ["1640995220:000000000", "1640995220:000000000"], "1640995220:000000000",
            id="repeated", marks=mark.clause("050-TICK-06"),
        ),
        pytest.param(
            ["1640995215:000000000"], TAI_TEXT, id="misaligned", marks=mark.clause("050-TICK-07", "050-TICK-09")
        ),
        pytest.param(["1640995210:000000001"], TAI_TEXT, id="a-nanosecond-off", marks=mark.clause("050-TICK-07")),
        pytest.param([TAI_TEXT], TAI_TEXT, id="k-0", marks=mark.clause("050-TICK-07")),
    ],
)  # fmt: skip
def test_only_a_valid_tick_moves_the_peers_readiness(heard: list[str], expected: str) -> None:
    ticks = TickState(START, TICK)
    for text in heard:
        ticks.hear(text)
    assert ticks.peer_ready == expected


@mark.clause("050-TICK-07")
def test_alignment_counts_in_nanoseconds_with_carry() -> None:
    ticks = TickState(TAI("1640995200:600000000"), 700_000_000)
    ticks.hear("1640995201:300000000")
    assert ticks.peer_ready == "1640995201:300000000"


@mark.clause("050-TICK-08", "050-TICK-09")
@pytest.mark.parametrize("text", ["", "soon", "1640995210", "1640995210:00000000", "01640995210:000000000"])
def test_an_ill_formed_tick_aborts(text: str) -> None:
    with pytest.raises(ProtocolAbort):
        TickState(START, TICK).hear(text)
    wire = Scripted().open()
    wire.say(f"TickReady('{text}')")
    assert wire.reason is AbortReason.MALFORMED_FACT_BLOCK


@mark.clause("050-TICK-11", "050-TICK-12", "050-REQF-06", "050-TICK-16")
@examples(st.lists(st.tuples(st.booleans(), st.integers(0, 200)), max_size=30))
def test_the_shared_tick_is_the_smaller_readiness_and_never_decreases(steps: list[tuple[bool, int]]) -> None:
    ticks, previous = TickState(START, TICK), START
    for ours, seconds in steps:
        if ours:
            reached = ticks.reached(START_NS + seconds * SECOND)
            if reached is not None:
                assert reached.to_ns() <= START_NS + seconds * SECOND
                ticks.announce(reached)
        else:
            ticks.hear(START.plus_ns(seconds * SECOND))
        assert ticks.tick == min(ticks.local_ready, ticks.peer_ready) >= previous
        previous = ticks.tick


@mark.clause("050-TICK-01", "050-TICK-03", "050-REQF-04", "050-TICK-13", "050-RUN-06", "050-TICK-18", "050-RUN-13")
def test_an_open_pair_moves_its_shared_time_together() -> None:
    pair = resting()
    pair.advance(TICK)
    pair.run()
    expected = START.plus_ns(TICK)
    for side in pair.sides:
        assert side.named("TickReady") == [(expected,)]
        named = [values for predicate, values in side.runtime[-1] if predicate.name == "TickTAI"]
        assert named == [(expected,)]  # replaced, never two at once
        assert Ticked(expected) in side.events
        assert side.machine.phase is Phase.IDLE


@mark.clause("050-TICK-16")
def test_a_tick_that_our_clock_has_not_reached_is_not_announced() -> None:
    pair = resting()
    pair.advance(TICK - 1)
    assert all(side.named("TickReady") == [] for side in pair.sides)


@mark.clause("050-TICK-11")
def test_one_clock_alone_moves_nothing() -> None:
    wire = rested()
    wire.now_ns += TICK
    wire.give(given.TimerFired())
    assert wire.heard() == [f"TickReady('{START.plus_ns(TICK)}')", ""]
    assert wire.side.machine.epoch.ticks.tick == START


@mark.clause("050-TICK-10", "050-TICK-04", "050-REQ-08")
def test_a_tick_rides_in_adv_req_and_availability() -> None:
    wire = rested()
    wire.now_ns += TICK
    wire.side.put(X)
    wire.give(given.LocalChanged())
    tick = f"TickReady('{START.plus_ns(TICK)}')"
    assert wire.heard() == [f"Advertised('{hash_of(X)}','{wire.own_label}')", tick, ""]
    wire.say(wire.advertised(hash_of(Y)), tick)
    assert wire.side.machine.epoch.ticks.tick == START.plus_ns(TICK)
    wire.now_ns += TICK
    wire.say(f"TickReady('{START.plus_ns(2 * TICK)}')", f"MayRequest('{hash_of(X)}')")
    later = f"TickReady('{START.plus_ns(2 * TICK)}')"
    assert wire.heard()[-2:] == [later, ""]
    wire.give(given.BlockEnded())
    wire.say(f"TickReady('{START.plus_ns(3 * TICK)}')")
    assert wire.reason is None
    assert wire.side.machine.epoch.ticks.peer_ready == START.plus_ns(3 * TICK)


@mark.clause("050-TICK-10")
def test_an_empty_adv_carries_no_tick_for_it_would_be_a_tick_block() -> None:
    wire = rested()
    wire.now_ns += TICK
    wire.advertise(hash_of(X))  # the peer starts a loop; we have nothing to list
    assert wire.heard()[0] == ""


@mark.clause("050-TICK-18")
@pytest.mark.parametrize("is_open", [False, True])
def test_a_tick_block_starts_no_loop_and_the_adv_is_still_awaited(is_open: bool) -> None:
    wire = Scripted(is_open=is_open).open()
    wire.say(f"TickReady('{START.plus_ns(TICK)}')")
    assert wire.phase is Phase.LISTING
    wire.advertise(hash_of(X))
    assert wire.phase is Phase.REQUEST


@mark.clause("050-TICK-14")
def test_a_bounded_exchange_keeps_its_start_time() -> None:
    pair = make_pair()
    pair.sides[0].put(X)
    pair.start()
    pair.run(until=lambda: pair.sides[0].machine.phase is Phase.TRANSFER)
    pair.now_ns += 5 * TICK
    pair.run()
    for side in pair.sides:
        assert side.named("TickReady") == []
        assert {v for facts in side.runtime for p, v in facts if p.name == "TickTAI"} == {(START,)}


@mark.clause("050-TICK-15")
def test_a_bounded_exchange_can_wait_for_ticks() -> None:
    pair = make_pair(ticks_before_close=2)
    pair.start()
    pair.run()
    assert not pair.sides[0].is_over
    pair.advance(TICK)
    pair.run()
    assert not pair.sides[0].is_over
    pair.advance(TICK)
    pair.run()
    assert pair.sides[0].finished is not None
    assert pair.sides[0].finished.fixed_point


AFTER_A_WHILE = Module.author(
    "SelectHave(P) :- Have(P), TickTAI(T), LexCompare(T,'>=','1640995210:000000000').\n"
    "SelectAdvertised(P,S) :- Advertised(P,S)."
)


@mark.clause("050-OPEN-03", "050-RUN-14", "050-RUN-15", "050-TICK-13", "050-TICK-01")
def test_a_rule_about_time_takes_effect_at_the_shared_tick() -> None:
    pair = resting(AFTER_A_WHILE, AFTER_A_WHILE)
    pair.sides[0].put(X)
    pair.give(pair.sides[0], given.LocalChanged())
    pair.run()
    assert pair.sides[1].have == set()
    pair.advance(TICK)
    pair.run()
    assert pair.sides[1].have == {hash_of(X)}


# --- bounded --------------------------------------------------------------------------------------------------------


@mark.clause("050-BOUND-07", "050-BOUND-01", "050-DRV-03")
def test_a_quiet_first_loop_ends_a_bounded_exchange() -> None:
    pair = make_pair()
    for side in pair.sides:
        side.put(X)
    first, second = pair.exchange()
    assert first.loops == second.loops == 1
    assert any(isinstance(event, FixedPoint) for event in pair.sides[0].events)
    assert pair.sides[0].events[-1] == Closed("")


@mark.clause("050-BOUND-07")
def test_what_comes_after_the_end_is_ignored() -> None:
    wire = Scripted().open()
    wire.say()
    wire.say()
    assert wire.side.finished is not None
    assert wire.side.machine.receive(given.BlockEnded(), wire.now_ns) == []
    assert wire.side.machine.receive(given.StreamEnded(), wire.now_ns) == []


@mark.clause("050-BOUND-09", "050-BOUND-10")
def test_a_policy_that_reads_advertisements_ends_only_at_a_repeated_listing() -> None:
    pair = make_pair(NOT_THEIRS)
    for side in pair.sides:
        side.put(X)
    first, second = pair.exchange()
    assert first.fixed_point
    assert second.fixed_point
    assert first.loops == second.loops > 1
    assert first.loops <= 5


@mark.clause("050-BOUND-09", "050-BOUND-10", "050-NONMONO-01")
@pytest.mark.parametrize("stored", [((X,), ()), ((X, Y), (Y, Z)), ((), (X,)), ((X, Y, Z), (X, Y, Z))])
def test_alternating_listings_end_on_both_sides_in_the_same_loop(stored: tuple[tuple[bytes, ...], ...]) -> None:
    for modules in ((NOT_THEIRS, ALL), (ALL, NOT_THEIRS), (NOT_THEIRS, NOT_THEIRS)):
        pair = make_pair(*modules)
        for side, records in zip(pair.sides, stored, strict=True):
            side.put(*records)
        first, second = pair.exchange()
        assert first.fixed_point
        assert second.fixed_point
        assert first.loops == second.loops


@mark.clause("050-BOUND-10")
def test_rejected_bytes_count_as_crossed() -> None:
    wire = Scripted(module=NOT_THEIRS).open()
    flipped = X[:-1] + b"w"
    wire.advertise(hash_of(X))
    wire.say()
    wire.send_records(flipped, claimed=(hash_of(X),))
    wire.give(given.BlockEnded())
    wire.say()
    wire.advertise(hash_of(X))
    wire.say()
    assert wire.side.finished is None  # the same listings as in loop 1, but bytes crossed since
    wire.advertise(hash_of(X))
    wire.say()
    assert wire.side.finished is not None
    assert wire.side.finished.loops == 3


@mark.clause("050-SEND-05", "050-SEND-06", "050-BOUND-03", "050-BOUND-04", "050-SEND-04", "050-BOUND-06")
def test_a_record_stored_by_another_task_takes_part_in_a_later_loop() -> None:
    pair = make_pair()
    first, second = pair.sides
    first.put(X)
    pair.start()
    pair.run(until=lambda: second.machine.phase is Phase.TRANSFER)
    first.put(Y)
    pair.run()
    assert second.have == {hash_of(X), hash_of(Y)}


@mark.clause("050-SEND-07", "050-BOUND-05")
def test_a_bounded_exchange_does_not_wait_for_what_comes_after_its_last_evaluation() -> None:
    pair = make_pair()
    pair.sides[0].put(X)
    results = pair.exchange()
    pair.sides[0].put(Y)
    assert all(result.fixed_point for result in results)
    assert pair.sides[1].have == {hash_of(X)}


@mark.clause("050-LIM-07", "050-BOUND-01")
def test_the_loop_limit_closes_with_a_partial_result() -> None:
    pair = make_pair(max_service_records=1, limits=limits_with(max_loop_iterations=3))
    pair.sides[0].put(*(blob(bytes([n])) for n in range(8)))
    first, second = pair.exchange()
    for result in (first, second):
        assert not result.fixed_point
        assert result.limit_reached == "max_loop_iterations"
        assert result.loops == 3
    assert len(second.received_hashes) == 3
    assert len(pair.sides[1].have) == 3


@mark.clause(
    "050-LIM-01", "050-LIM-02", "050-LIM-03", "050-LIM-04", "050-LIM-05", "050-LIM-06", "050-LIM-07", "050-LIM-08"
)
def test_the_defaults_are_those_of_the_table() -> None:
    limits = ExchangeLimits()
    assert (limits.max_fact_block_size, limits.max_advertisement_records_listed) == (67_108_864, 100_000)
    assert (limits.max_partition_summaries, limits.max_narrowing_depth) == (16_384, 12)
    assert (limits.max_total_transferred_bytes, limits.max_loop_iterations) == (1_073_741_824, 16)
    assert limits.phase_timeout_ns == 30 * SECOND


@mark.clause("050-LIM-02", "050-ERR-13")
def test_an_oversized_block_aborts() -> None:
    wire = Scripted(limits=limits_with(max_fact_block_size=1_000)).open()
    wire.begin(*(wire.advertised(hash_of(blob(bytes([n])))) for n in range(20)))
    assert wire.reason is AbortReason.OVERSIZED_FACT_BLOCK


@mark.clause("050-LIM-08", "050-ERR-12")
@pytest.mark.parametrize("steps", range(5))
def test_a_silent_peer_runs_into_the_phase_timeout(steps: int) -> None:
    wire = Scripted()
    moves = [wire.setup, wire.hello, lambda: wire.advertise(hash_of(X)), wire.say]
    for step in moves[:steps]:
        wire.now_ns += 29 * SECOND
        step()
    due = wire.side.machine.next_timer
    assert due == wire.now_ns + 30 * SECOND
    wire.now_ns = due - 1
    wire.give(given.TimerFired())
    assert wire.reason is None
    wire.now_ns = due
    wire.give(given.TimerFired())
    assert wire.reason is AbortReason.PHASE_TIMEOUT


@mark.clause("050-LIM-08", "050-OPEN-01")
def test_there_is_no_timeout_at_a_fixed_point_but_one_inside_a_block() -> None:
    wire = rested(tick_interval_ns=10**15, max_tick_interval_ns=10**16)
    assert wire.side.machine.next_timer == START_NS + 10**15
    wire.now_ns += 10**14
    wire.begin(wire.advertised(hash_of(X)))
    assert wire.side.machine.next_timer == wire.now_ns + 30 * SECOND


# --- open -----------------------------------------------------------------------------------------------------------


@mark.clause("050-OPEN-01", "050-OPEN-03", "050-OPEN-04", "050-OPEN-02", "050-STATE-02")
def test_a_record_stored_after_the_fixed_point_travels() -> None:
    pair = resting()
    first, second = pair.sides
    first.put(X)
    pair.give(first, given.LocalChanged())
    pair.run()
    assert second.have == {hash_of(X)}
    assert first.machine.phase is second.machine.phase is Phase.IDLE
    assert first.machine.result().store_mark == first.store.high_water()
    second.put(Y)
    pair.give(second, given.LocalChanged())
    pair.run()
    assert first.have == second.have == {hash_of(X), hash_of(Y)}


@mark.clause("050-OPEN-03")
def test_a_change_that_changes_nothing_for_the_peer_starts_no_loop() -> None:
    pair = resting(group_module("u"), group_module("u"))
    first = pair.sides[0]
    loops = first.machine.result().loops
    first.put(plex("x", group="v"))
    pair.give(first, given.LocalChanged())
    pair.run()
    assert first.machine.result().loops == loops


@mark.clause("050-OPEN-03", "050-NONMONO-02")
def test_a_deleted_record_is_no_longer_advertised() -> None:
    pair = resting()
    first, second = pair.sides
    first.put(X)
    pair.give(first, given.LocalChanged())
    pair.run()
    first.store.delete(hash_of(X))
    second.store.delete(hash_of(X))
    pair.give(first, given.LocalChanged())
    pair.run()
    assert first.have == second.have or second.have == set()
    assert len(second.held) == 0


@mark.clause("050-OPEN-04")
def test_the_peers_adv_is_answered_with_our_own() -> None:
    wire = rested(stored=())
    wire.side.put(X)
    wire.advertise(hash_of(Y))
    assert wire.heard() == [f"Advertised('{hash_of(X)}','{wire.own_label}')", "", f"MayRequest('{hash_of(Y)}')", ""]


@mark.clause("050-OPEN-04", "050-DRV-04")
def test_two_advs_that_cross_are_one_loop() -> None:
    pair = resting()
    for side, data in zip(pair.sides, (X, Y), strict=True):
        side.put(data)
    for side in pair.sides:
        pair.give(side, given.LocalChanged())
    pair.run()
    assert pair.sides[0].have == pair.sides[1].have == {hash_of(X), hash_of(Y)}
    assert pair.sides[0].machine.result().loops == pair.sides[1].machine.result().loops


@mark.clause("050-OPEN-09", "050-OPEN-10", "050-ERR-19")
@pytest.mark.parametrize("closer", [0, 1])
def test_either_side_may_close_and_a_reconnect_begins_anew(closer: int) -> None:
    pair = resting()
    pair.give(pair.sides[closer], given.CloseRequested())
    pair.run()
    for side in pair.sides:
        assert side.finished is not None
        assert side.finished.fixed_point
    again = make_pair()
    again.exchange()
    assert again.sides[0].named("ExchangeOperand")
    assert again.sides[0].named("HelloExchangePlan")


def test_a_result_of_an_open_exchange_names_the_newest_records_only() -> None:
    pair = resting(max_result_hashes=2)
    first, second = pair.sides
    for number in range(4):
        first.put(blob(bytes([number])))
        pair.give(first, given.LocalChanged())
        pair.run()
    assert len(second.machine.result().received_hashes) == 2
    assert second.machine.result().received_hashes[-1] == hash_of(blob(bytes([3])))
    assert second.machine.result().bytes_received == 4 * len(blob(bytes([0])))


def test_a_close_in_the_middle_of_a_loop_waits_for_the_phase_boundary() -> None:
    pair = make_pair()
    pair.sides[0].put(X)
    pair.start()
    pair.run(until=lambda: pair.sides[1].machine.phase is Phase.TRANSFER)
    pair.give(pair.sides[1], given.CloseRequested())
    pair.run()
    assert pair.sides[1].have == {hash_of(X)}
    assert pair.sides[1].finished is not None
    assert pair.sides[0].finished is not None
    assert pair.sides[0].finished.closed_by_peer


# --- epochs ---------------------------------------------------------------------------------------------------------


@mark.clause("050-OPEN-05", "050-OPEN-06", "050-OPEN-07", "050-OPEN-08", "050-SETUP-04", "050-OPEN-13")
@pytest.mark.parametrize("changer", [0, 1])
def test_another_operand_begins_an_epoch_and_stored_records_stay(changer: int) -> None:
    pair = resting()
    first, second = pair.sides
    first.put(plex("a"), plex("b", group="v"))
    pair.give(first, given.LocalChanged())
    pair.run()
    before = first.machine.agreement.plan.id
    side = pair.sides[changer]
    pair.give(side, changed(group_module("v")))
    pair.run()
    assert first.machine.agreement.plan.id == second.machine.agreement.plan.id != before
    assert len(second.have) == 2
    assert first.machine.result().epochs == 2
    assert [event.epoch for event in first.events if isinstance(event, EpochBegan)] == [1, 2]
    assert len(first.held) == 1  # under the new plan only group v is advertised
    assert first.machine.phase is Phase.IDLE


@mark.clause("050-OPEN-11")
def test_a_setup_that_crosses_an_adv_wins() -> None:
    pair = resting()
    first, second = pair.sides
    second.put(X)
    pair.give(second, given.LocalChanged())
    pair.give(first, changed(group_module("v")))
    pair.step(second)  # its evaluation: it sends an adv before it sees the setup
    assert second.machine.phase is Phase.LISTING
    pair.run()
    assert first.machine.agreement.plan.id == second.machine.agreement.plan.id
    assert first.machine.phase is second.machine.phase is Phase.IDLE
    assert first.aborted is None
    assert second.aborted is None
    assert first.machine.result().epochs == second.machine.result().epochs == 2


@mark.clause("050-OPEN-11")
def test_two_setups_that_cross_answer_each_other() -> None:
    pair = resting()
    pair.give(pair.sides[0], changed(group_module("v")))
    pair.give(pair.sides[1], changed(group_module("w")))
    pair.run()
    assert [side.machine.result().epochs for side in pair.sides] == [2, 2]
    assert pair.sides[0].machine.agreement.plan.id == pair.sides[1].machine.agreement.plan.id


@mark.clause("050-OPEN-11")
def test_a_tick_that_crosses_a_setup_is_dropped_and_a_second_adv_aborts() -> None:
    wire = rested()
    wire.give(changed(group_module("v")))
    wire.say(f"TickReady('{START.plus_ns(TICK)}')")
    wire.advertise(hash_of(X))
    assert wire.reason is None
    assert wire.phase is Phase.SETUP
    wire.advertise(hash_of(X))
    assert wire.reason is AbortReason.MALFORMED_FACT_BLOCK


@mark.clause("050-OPEN-12", "050-TICK-12")
def test_an_epoch_takes_everything_from_the_new_hello() -> None:
    pair = resting()
    pair.advance(TICK)
    pair.run()
    pair.now_ns += 3 * SECOND
    pair.give(pair.sides[0], changed(group_module("v")))
    pair.run()
    expected = TAI.from_ns(START_NS + TICK + 3 * SECOND)
    for side in pair.sides:
        assert side.machine.agreement.negotiated.start == expected
        assert side.machine.epoch.ticks.tick == expected


@mark.clause("050-OPEN-12")
def test_an_epoch_takes_start_skew_interval_formats_schema_and_limits_from_the_new_hello() -> None:
    wire = rested(schema=FieldSchema(frozenset({"App", "Group"})), record_formats=frozenset({"H3", "H4"}))
    before = wire.side.machine.agreement.negotiated
    start = TAI.from_ns(START_NS + 7 * SECOND)
    wire.say(wire.operand_line())
    wire.hello(
        HelloTAI=f"HelloTAI('{start}')",
        HelloTickInterval="HelloTickInterval('60000000000')",
        HelloRecordFormat=["HelloRecordFormat('H3')", "HelloRecordFormat('H4')"],
        HelloAdvertisedField=["HelloAdvertisedField('App')"],
        HelloLimit=["HelloLimit('max_loop_iterations','3')", "HelloLimit('max_partition_summaries','9')"],
    )
    now = wire.side.machine.agreement.negotiated
    assert (before.start, before.skew_seconds, before.tick_interval_ns) == (TAI.parse(TAI_TEXT), 0, 10 * SECOND)
    assert (now.start, now.skew_seconds, now.tick_interval_ns) == (start, 7, 60 * SECOND)
    assert (before.record_formats, now.record_formats) == (frozenset({"H3"}), frozenset({"H3", "H4"}))
    assert (before.schema.names, now.schema.names) == (frozenset(), frozenset({"App"}))
    assert (before.limits.max_loop_iterations, now.limits.max_loop_iterations) == (16, 3)
    assert (before.partitions, now.partitions) == (False, True)
    assert wire.side.machine.epoch.ticks.tick == start
    assert wire.side.machine.epoch.ticks.interval_ns == 60 * SECOND
    prepared = [effect for effect in wire.side.asked if isinstance(effect, PreparePolicy)]
    assert [effect.schema for effect in prepared] == [before.schema, now.schema]
    assert prepared[1].record_formats == {"H3", "H4"}


@mark.clause("050-LIM-07")
def test_listings_of_as_many_loops_are_remembered_as_a_round_may_have() -> None:
    """P13: what settles within a round is found; more is not held, however long a link lives."""
    for most in (1, 5):
        limits = limits_with(max_loop_iterations=most)
        wire = Scripted(module=_OF_LISTINGS, peer_module=_OF_LISTINGS, limits=limits, is_open=True).open()
        epoch = wire.side.machine.epoch
        epoch.forget_listings()
        seen = []
        for number in range(3 * most):
            epoch.own_listing = bytes([number])
            seen.append(epoch.note_listings())
        assert not any(seen)
        assert len(epoch.seen_listings) == most
        epoch.own_listing = bytes([3 * most - most])  # the oldest that is held
        assert epoch.note_listings()


_OF_LISTINGS = Module.author("SelectHave(P) :- Have(P), Advertised(_,_).\nSelectAdvertised(P,S) :- Advertised(P,S).")


@mark.clause("050-OPEN-13")
def test_under_the_same_plan_the_peers_state_is_kept() -> None:
    wire = Scripted(is_open=True, stored=(X,)).open()
    wire.advertise(hash_of(X))
    wire.say()
    wire.heard()
    wire.say(wire.operand_line())
    wire.hello()
    assert wire.side.held_hashes == [hash_of(X)]
    prepared = [effect for effect in wire.side.wire if isinstance(effect, PreparePolicy)]
    assert prepared == []  # not on the wire
    other = Scripted(is_open=True, stored=(X,), known_modules=(group_module("v"),)).open()
    other.advertise(hash_of(X))
    other.say()
    other.peer_module = group_module("v")
    other.say(other.operand_line())
    other.hello()
    assert other.side.held_hashes == []


def test_an_operand_that_changes_in_the_middle_of_a_loop_waits_for_its_end() -> None:
    pair = make_pair(is_open=True)
    pair.sides[0].put(X)
    pair.start()
    pair.run(until=lambda: pair.sides[0].machine.phase is Phase.TRANSFER)
    pair.give(pair.sides[0], changed(group_module("v")))
    pair.run()
    assert pair.sides[1].have == {hash_of(X)}
    assert [side.machine.result().epochs for side in pair.sides] == [2, 2]


# --- the end of a stream --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "clean", "aborts"),
    [("setup", True, True), ("hello", True, True), ("listing", True, False), ("block", True, True),
     ("listing", False, True), ("transfer", True, True), ("idle", True, False)],
)  # fmt: skip
def test_a_disconnect_is_clean_at_a_phase_boundary_only(where: str, clean: bool, aborts: bool) -> None:
    wire = Scripted(is_open=True)
    if where != "setup":
        wire.setup()
    if where not in ("setup", "hello"):
        wire.hello()
    if where == "block":
        wire.begin(wire.advertised(hash_of(X)))
    if where in ("transfer", "idle"):
        wire.advertise(*([hash_of(X)] if where == "transfer" else []))
        wire.say()
    wire.give(given.StreamEnded(clean))
    assert (wire.reason is AbortReason.STREAM_BROKEN) is aborts
    assert (wire.side.finished is not None) is not aborts
    result = wire.side.machine.result()
    assert result.fixed_point is (where == "idle")


@mark.clause("050-ERR-20", "050-ERR-01", "050-ERR-06")
def test_an_abort_sends_nothing_more() -> None:
    wire = Scripted(stored=(X,)).open()
    wire.heard()
    wire.say("TickReady('soon')")
    assert wire.heard() == []
    assert wire.side.aborted is not None
    assert isinstance(wire.side.events[-1], Closed)
    assert wire.side.events[-1].reason.startswith("malformed fact block: TickReady: ")


# --- the machine as a thing -----------------------------------------------------------------------------------------


def test_every_move_leads_somewhere_and_no_other_move_exists() -> None:
    for (phase, why), after in MOVES.items():
        assert move(phase, why) is after
    with pytest.raises(LocalProtocolError):
        move(Phase.NEW, Move.WANTED)
    reached = {Phase.NEW, *MOVES.values()}
    assert reached == set(Phase)


def test_input_that_is_not_wanted_is_our_own_mistake() -> None:
    machine = InterlaceMachine(make_pair().sides[0].config)
    with pytest.raises(LocalProtocolError):
        machine.receive(given.BlockEnded(), 0)
    with pytest.raises(LocalProtocolError):
        machine.receive(given.Evaluated(own=SetHandle(0, 0)), 0)


def test_a_resource_stands_only_between_blocks() -> None:
    wire = Scripted().open()
    wire.resource(group_module("u"))
    assert wire.reason is None
    wire.begin(wire.advertised(hash_of(X)))
    wire.resource(group_module("u"))
    assert wire.reason is AbortReason.MALFORMED_FACT_BLOCK


def test_a_local_failure_is_told_as_such() -> None:
    wire = Scripted().open()
    wire.give(given.LocalFailed("disk full"))
    assert wire.reason is AbortReason.LOCAL_FAILURE
    assert isinstance(wire.side.wire[-1], EndBlock | SendFacts)


GROWING = Module.author(
    "SelectHave(P) :- Have(P), Field(P,'App',_,'ding').\nSelectHave(P) :- Have(P), Theirs(_).\n"
    "Theirs(P) :- Advertised(P,_).\nSelectAdvertised(P,S) :- Advertised(P,S)."
)


@mark.clause("050-OPEN-03", "050-BOUND-09")
@pytest.mark.parametrize("moment", range(1, 9))
def test_a_record_that_comes_while_a_loop_settles_is_listed_in_another(moment: int) -> None:
    """Where SelectHave reads claims, a quiet loop settles though the send set moved; not if a record moved it."""
    pair = make_pair(GROWING, GROWING, is_open=True)
    side, peer = pair.sides
    evaluate, count = side.host.evaluate, 0

    def evaluate_and_put(wanted: Evaluate, call: Call) -> given.Evaluated:
        nonlocal count
        count += 1
        if count == moment:
            side.put(late)
        return evaluate(wanted, call)

    late = plex("late", app="ding")
    side.host.evaluate = evaluate_and_put  # type: ignore[method-assign]
    pair.start()
    pair.run()
    if moment > count:
        side.put(late)
    pair.give(side, given.LocalChanged())
    pair.run()
    assert hash_of(late) in peer.held_hashes
    assert hash_of(late) in peer.have
    assert all(end.machine.phase is Phase.IDLE for end in pair.sides)


# --- what waits, and what an end leaves behind -----------------------------------------------------------------------


def test_requests_wait_until_they_have_an_answer() -> None:
    pair = make_pair()
    near, far = pair.sides
    assert near.machine.unserved_requests == 0
    near.put(*[plex(f"near/{n}") for n in range(3)])
    far.put(*[plex(f"far/{n}") for n in range(5)])
    seen: list[set[int]] = [set(), set()]

    def look() -> bool:
        for side, found in zip(pair.sides, seen, strict=True):
            found.add(side.machine.unserved_requests)
        return False

    pair.start()
    look()
    pair.run(until=look)
    assert seen == [{0, 3}, {0, 5}]
    assert near.have == far.have


@pytest.mark.parametrize("at_rest", [False, True])
def test_only_a_fixed_point_keeps_what_the_peer_claims(at_rest: bool) -> None:
    """A peer that leaves in the middle may have claimed anything: the next exchange begins as if it had not been."""
    pair = make_pair(cursor_key="door", is_open=True)
    near, far = pair.sides
    far.put(X)
    pair.start()
    pair.run(until=lambda: not at_rest and near.machine.phase is Phase.TRANSFER)
    if not at_rest:
        pair.give(near, given.CloseRequested())
        pair.run()
    else:
        pair.give(near, given.StreamEnded(True))
    assert near.finished is not None or near.aborted is not None
    kept = [effect for effect in near.asked if isinstance(effect, KeepClaims)]
    assert bool(kept) is at_rest


@mark.clause("050-ERR-17")
def test_what_breaks_a_rule_while_records_are_stored_ends_the_exchange_when_they_are() -> None:
    pair = make_pair()
    near, far = pair.sides
    far.put(X)
    pair.start()
    pair.run(until=lambda: bool(near.inbox) and isinstance(near.inbox[0], given.RecordsReceived) and not near.results)
    pair.give(near, near.inbox.popleft())
    waiting = list(near.results)
    near.results.clear()
    stray = str(hash_of(plex("stray")))
    pair.give(near, given.RecordsReceived([(stray, 10)]))
    assert near.aborted is None  # nothing that was taken is lost
    assert not near.machine.wants_peer_input
    for answer in waiting:
        pair.give(near, answer)
    assert near.aborted is not None
    assert near.aborted.reason is AbortReason.RECORD_NOT_REQUESTED
    assert stray in near.aborted.detail
    assert not near.aborted.result.closed_by_peer
    assert not near.aborted.result.fixed_point
    assert near.have == {hash_of(X)}
