"""Rules of peers over facts that come along: tried here, finished where they can be killed, refused again (P36)."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from lace.datalog.engine import RowSource
from lace.datalog.language.parser import parse_program
from lace.datalog.language.syntax import Fact, Predicate
from lace.datalog.language.validate import LOCAL_PROFILE, check_program
from lace.errors import EvaluationStopped, LimitExceeded
from lace.interlace.host import Call, Cancelled
from lace.limits import MIB, EngineLimits
from lace.runtime.rules.guesthouse import GuestHouse, GuestLimits
from lace.runtime.rules.guestprograms import GuestEngine, OwnEngine, ProgramQuestion

NAME = ("rules", "viewer")
ITEM, PAIR, NEAR = Predicate("Item", 1), Predicate("Pair", 2), Predicate("Near", 2)
AT_ONCE = GuestLimits(first_rows=0)
REACHED = "Near(A,B) :- Pair(A,B).\nNear(A,C) :- Near(A,B), Pair(B,C).\n"
PRODUCT = "Wide(A,B,C,D) :- Item(A), Item(B), Item(C), Item(D).\nNear(A,B) :- Wide(A,B,_,_).\n"
LONG = "E(A,B) :- Item(A), Item(B).\nT(A) :- E(A,B), E(B,C), E(C,G), not E(A,G).\nNear(A,A) :- T(A).\n"  # 10^8 rows


@pytest.fixture
def house() -> Iterator[GuestHouse]:
    made = GuestHouse(None, AT_ONCE, facts_come_along=True)
    yield made
    made.close()


def question(rules: str, facts: list[Fact], *, is_goal: bool = False) -> ProgramQuestion:
    return ProgramQuestion(
        check_program(parse_program(rules), LOCAL_PROFILE), RowSource(facts), (NEAR,), is_goal=is_goal
    )


def chain(length: int) -> list[Fact]:
    return [Fact(PAIR, (f"n{number}", f"n{number + 1}")) for number in range(length)]


def items(count: int) -> list[Fact]:
    return [Fact(ITEM, (f"i{number:04d}",)) for number in range(count)]


def guest(house: GuestHouse, call: Call | None = None) -> GuestEngine:
    return GuestEngine(house, NAME, "network", call or Call())


@pytest.mark.parametrize("is_goal", [False, True])
@pytest.mark.parametrize("limits", [GuestLimits(), AT_ONCE], ids=["as shipped", "in a process"])
@pytest.mark.parametrize("length", [0, 1, 40])
def test_a_guest_gets_the_answer_that_we_would_get(limits: GuestLimits, length: int, is_goal: bool) -> None:
    house = GuestHouse(None, limits, facts_come_along=True)
    asked = question(REACHED, chain(length), is_goal=is_goal)
    expected = OwnEngine().ask(asked, EngineLimits())
    found = guest(house).ask(asked, EngineLimits())
    house.close()
    assert sorted(found.rows(NEAR)) == sorted(expected.rows(NEAR))
    assert len(found.rows(NEAR)) == length * (length + 1) // 2


@pytest.mark.parametrize(
    ("limits", "limit"),
    [
        (replace(AT_ONCE, base_held_bytes=MIB), "max_held_bytes"),
        (replace(AT_ONCE, max_rows=1 << 16), "max_peer_rows_touched"),
        (replace(AT_ONCE, max_answer_rows=100), "max_answer_rows"),
    ],
    ids=["memory", "rows", "facts that come back"],
)
def test_what_costs_more_than_a_guest_may_use_is_refused_by_rule_and_again_for_a_while(
    limits: GuestLimits, limit: str
) -> None:
    house = GuestHouse(None, limits, facts_come_along=True)
    with pytest.raises(LimitExceeded) as caught:
        guest(house).ask(question(PRODUCT, items(20)), EngineLimits())
    assert caught.value.limit == limit
    assert caught.value.rule.startswith(("Wide(", "Near("))
    with pytest.raises(LimitExceeded, match="a moment ago"):
        guest(house)  # another link with the same rules
    GuestEngine(house, ("others", "viewer"), "network", Call()).ask(question(REACHED, chain(3)), EngineLimits())
    house.close()


def test_two_hundred_small_bombs_are_one_bomb() -> None:
    """What the questions of one evaluation hold and bring back is added up."""
    house = GuestHouse(None, replace(GuestLimits(), max_answer_rows=1000), facts_come_along=True)
    engine, asked = guest(house), question(REACHED, chain(20))  # 210 facts each
    for _ in range(4):
        engine.ask(asked, EngineLimits())
    with pytest.raises(LimitExceeded) as caught:
        engine.ask(asked, EngineLimits())
    house.close()
    assert caught.value.limit == "max_answer_rows"


def test_an_evaluation_ends_when_nobody_waits_for_it_any_more_and_its_rules_are_not_blamed(house: GuestHouse) -> None:
    call, asked = Call(), question(LONG, items(100))
    house.limits = replace(AT_ONCE, max_rows=1 << 60, max_cpu_s=1e9, base_held_bytes=1 << 34)
    ended: list[BaseException] = []

    def run() -> None:
        try:
            guest(house, call).ask(asked, replace(EngineLimits(), max_peer_rows_touched=1 << 60))
        except BaseException as error:  # noqa: BLE001 - looked at below
            ended.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    while not any(room.is_busy for room in house.rooms):
        time.sleep(0.01)
    call.cancel()
    thread.join(30)
    assert not thread.is_alive()
    assert isinstance(ended[0], EvaluationStopped | Cancelled), ended
    house.refuse_again(NAME)


def test_one_that_runs_here_ends_with_its_call_too() -> None:
    house = GuestHouse(None, GuestLimits(first_rows=1 << 60, first_held_bytes=1 << 40), facts_come_along=True)
    call = Call()
    threading.Timer(0.3, call.cancel).start()
    with pytest.raises(Cancelled):
        guest(house, call).ask(question(LONG, items(100)), replace(EngineLimits(), max_peer_rows_touched=1 << 60))
    house.close()
