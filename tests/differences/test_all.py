"""All that was listed is asked for in one line (070, requests)."""

from __future__ import annotations

import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

from differences.test_exchange import MODULES, Liar, Make, RealSide, control, fill, once, pair
from interlace.pair import Pair, Side, config_of, group_module, plex
from lace.facts.predicates import MAY_REQUEST
from lace.interlace import compared
from lace.interlace import inputs as given
from lace.interlace.vocabulary import DIFFERENCE_ALL
from lace.notation.fact import Fact
from lace.policy.operand import Module
from tries import tries

ALL_OF_ONE = Fact(DIFFERENCE_ALL, ("1",))


@pytest.fixture(autouse=True)
def from_one_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compared, "MIN_ALL", 1)


@pytest.mark.clause("070-ALL-01", "070-ALL-02")
@pytest.mark.parametrize("make", [Side, RealSide])
@pytest.mark.parametrize(("first", "second"), [(1, 0), (0, 1), (3, 5), (40, 25)])
def test_whoever_wants_all_that_was_listed_says_so_in_one_line(make: Make, first: int, second: int) -> None:
    both = pair(make=make)
    fill(both, 60, first, second)
    both.exchange()
    near, far = both.sides
    assert near.have == far.have
    assert len(near.have) == 60 + first + second
    for side, wanted in ((near, second), (far, first)):
        assert control(side).count("DifferenceAll") == (wanted > 0)
        assert "MayRequest" not in control(side)


@pytest.mark.clause("070-ALL-01")
def test_a_change_that_was_told_is_asked_for_in_one_line_too() -> None:
    both = pair(is_open=True)
    fill(both, 60, 2, 2)
    both.start()
    both.run()
    near, far = both.sides
    before = [control(side).count("DifferenceAll") for side in both.sides]
    near.put(plex("late/1"), plex("late/2"))
    both.give(near, given.LocalChanged())
    both.run()
    assert near.have == far.have
    assert [control(side).count("DifferenceAll") for side in both.sides] == [before[0], before[1] + 1]


@pytest.mark.clause("070-ALL-01")
@pytest.mark.parametrize("most", [1, 4])
def test_whoever_wants_some_of_it_names_them(most: int) -> None:
    """One of them asks for no more than a few at a time."""
    sides = [RealSide(config_of(index, salt=index + 5, min_compared=0)) for index in (0, 1)]
    sides[0] = RealSide(config_of(0, salt=5, min_compared=0, max_requests=most))
    both = Pair(*sides)
    fill(both, 30, 6, 9)
    both.exchange()
    near, far = both.sides
    assert near.have == far.have
    assert control(near).count("MayRequest") >= 9 - most
    assert control(far).count("DifferenceAll") == 1


@pytest.mark.clause("070-ALL-02")
@pytest.mark.parametrize("lie", ["0", "4", "6", "05", "", "99999999999999999999"])
@pytest.mark.parametrize("index", [0, 1])
def test_a_number_that_was_not_listed_ends_the_exchange(index: int, lie: str) -> None:
    configs = [config_of(n, salt=n + 5, min_compared=0) for n in (0, 1)]
    liar, victim = Liar(configs[index]), RealSide(configs[1 - index])
    both = Pair(liar, victim) if index == 0 else Pair(victim, liar)
    fill(both, 30, 5, 5)
    liar.lie = once("DifferenceAll", lambda _: (lie,))  # type: ignore[method-assign]
    both.start()
    both.run()
    assert victim.aborted is not None
    assert victim.aborted.reason.value == "malformed fact block"


@pytest.mark.clause("070-ALL-02")
@pytest.mark.parametrize(
    ("salts", "common"), [((None, None), 30), ((11, 12), 0)], ids=["without the capability", "after whole listings"]
)
def test_where_nothing_that_differs_was_listed_all_of_it_cannot_be_asked_for(
    salts: tuple[int | None, int | None], common: int
) -> None:
    configs = [config_of(n, salt=salts[n], min_compared=1000) for n in (0, 1)]
    liar, victim = Liar(configs[0]), RealSide(configs[1])
    both = Pair(liar, victim)
    fill(both, common, 0, 1)
    liar.lie = lambda fact: ALL_OF_ONE if fact.predicate == MAY_REQUEST else fact  # type: ignore[method-assign]
    both.start()
    both.run()
    assert victim.aborted is not None
    assert victim.aborted.reason.value == "malformed fact block"


@pytest.mark.clause("070-FIX-01", "070-ALL-01")
@pytest.mark.parametrize("module", [*MODULES.values(), group_module("v")], ids=[*MODULES, "another field"])
@tries(8)
@examples(st.integers(0, 40), st.integers(0, 12), st.integers(0, 12))
@pytest.mark.long
def test_the_outcome_is_that_of_requests_one_by_one(module: Module, common: int, first: int, second: int) -> None:
    ends = []
    for least in (1, 1 << 30):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(compared, "MIN_ALL", least)
            both = pair(module)
            fill(both, common, first, second)
            both.exchange()
            ends.append([(side.have, list(side.held)) for side in both.sides])
    assert ends[0] == ends[1]
