"""What follows from which side one is, and from where the other one stands: keys of an epoch, sides in one process."""

from __future__ import annotations

import pytest
from blake3 import blake3

from interlace.pair import Pair, Side, config_of, make_pair, plex
from lace.interlace.effects import SendChanges
from lace.interlace.loop.ticks import TickState
from lace.limits import SECOND_NS
from lace.notation.factline import format_fact
from lace.notation.tai import TAI


@pytest.mark.clause("070-KEY-01")
def test_the_key_is_made_of_the_hello_of_operand_0_and_then_of_that_of_operand_1() -> None:
    pair = Pair(*(Side(config_of(index, salt=77 + index)) for index in (0, 1)))
    pair.exchange()
    hellos = [
        sorted(f"{format_fact(fact)}\n" for fact in side.facts_sent() if fact.predicate.name.startswith("Hello"))
        for side in pair.sides
    ]
    assert hellos[0] != hellos[1]
    material = "".join([*hellos[0], "\n", *hellos[1]]).encode()
    expected = blake3(material, derive_key_context="lace-differences/v1 key").digest()
    for side in pair.sides:
        key = side.machine.agreement.difference_key
        assert key is not None
        assert key.to_bytes() == expected


@pytest.mark.clause("050-ENG-07")
@pytest.mark.parametrize("is_direct", [False, True])
def test_sides_in_one_process_are_told_of_changes_and_of_nothing_else(is_direct: bool) -> None:
    pair = make_pair(is_direct=is_direct)
    first, second = pair.sides
    first.put(plex("a"), plex("b"))
    second.put(plex("b"), plex("c"))
    pair.exchange()
    assert first.have == second.have
    for side in pair.sides:
        assert any(isinstance(effect, SendChanges) for effect in side.wire) is is_direct
        assert any(isinstance(effect, list) for effect in side.wire) is not is_direct


@pytest.mark.clause("050-TICK-07")
def test_ticks_of_a_peer_count_from_the_start_of_the_link_and_not_from_the_first_second() -> None:
    start = TAI("1640995203:000000000")
    ticks = TickState(start, 10 * SECOND_NS)
    ticks.hear("1640995210:000000000")
    assert ticks.peer_ready == start
    ticks.hear("1640995213:000000000")
    assert ticks.peer_ready == TAI("1640995213:000000000")
