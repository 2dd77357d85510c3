"""All that was listed is asked for in one line (070, requests)."""

from __future__ import annotations

import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

from differences.test_exchange import MODULES, Liar, Make, RealSide, control, fill, once, pair
from interlace.pair import Pair, Side, config_of, group_module, plex
from lace.facts.predicates import MAY_REQUEST
from lace.interlace import inputs as given
from lace.interlace.effects import SendListing, SendRecords
from lace.interlace.vocabulary import DIFFERENCE_ALL
from lace.notation.fact import Fact
from lace.notation.identifiers import RecordHash
from lace.policy.operand import Module
from tries import tries

ALL_OF_ONE = Fact(DIFFERENCE_ALL, ("1",))


FROM_ONE = {"min_asked_in_one_line": 1}


@pytest.mark.clause("070-ALL-01", "070-ALL-02")
@pytest.mark.parametrize("make", [Side, RealSide])
@pytest.mark.parametrize(("first", "second"), [(1, 0), (0, 1), (3, 5), (40, 25)])
def test_whoever_wants_all_that_was_listed_says_so_in_one_line(make: Make, first: int, second: int) -> None:
    both = pair(make=make, **FROM_ONE)
    fill(both, 60, first, second)
    both.exchange()
    near, far = both.sides
    assert near.have == far.have
    assert len(near.have) == 60 + first + second
    for side, wanted in ((near, second), (far, first)):
        assert control(side).count("DifferenceAll") == (wanted > 0)
        assert "MayRequest" not in control(side)
        assert all(looked_again(side)), "what differs is no set"


@pytest.mark.clause("070-ALL-01")
def test_a_change_that_was_told_is_asked_for_in_one_line_too() -> None:
    both = pair(is_open=True, **FROM_ONE)
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
    sides = [RealSide(config_of(index, salt=index + 5, min_compared=0, **FROM_ONE)) for index in (0, 1)]
    sides[0] = RealSide(config_of(0, salt=5, min_compared=0, max_requests=most, **FROM_ONE))
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
    configs = [config_of(n, salt=n + 5, min_compared=0, **FROM_ONE) for n in (0, 1)]
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
    configs = [config_of(n, salt=salts[n], min_compared=1000, **FROM_ONE) for n in (0, 1)]
    liar, victim = Liar(configs[0]), RealSide(configs[1])
    both = Pair(liar, victim)
    fill(both, common, 0, 1)
    liar.lie = lambda fact: ALL_OF_ONE if fact.predicate == MAY_REQUEST else fact  # type: ignore[method-assign]
    both.start()
    both.run()
    assert victim.aborted is not None
    assert victim.aborted.reason.value == "malformed fact block"


# --- of a listing to a side that holds nothing ---


def first_copy(index: int, make: Make = RealSide, *, says_so: bool = True, **options: object) -> Pair:
    """The side with this operand holds nothing, and says so."""
    configs = (config_of(n, salt=n + 5, holds_nothing=says_so and n == index, **FROM_ONE, **options) for n in (0, 1))
    return Pair(*map(make, configs))


class Changing(RealSide):
    """Gets a record and loses another while its listing is under way."""

    going = ""

    def _perform(self, effect: object, peer: Side) -> None:  # type: ignore[override]
        super()._perform(effect, peer)  # type: ignore[arg-type]
        if isinstance(effect, SendListing) and self.going:
            self.put(plex("late"))
            self.store.delete(RecordHash(self.going))
            self.going = ""


def looked_again(side: Side) -> list[bool]:
    """Of each transfer, whether it was looked up in our set what of it may be sent."""
    return [not effect.are_in_set for effect in side.wire if isinstance(effect, SendRecords)]


@pytest.mark.clause("070-ALL-01", "070-CAP-05")
@pytest.mark.parametrize("index", [0, 1])
@pytest.mark.parametrize("count", [1, 40])
@pytest.mark.parametrize("make", [Side, RealSide])
def test_who_holds_nothing_asks_for_a_whole_listing_in_one_line(index: int, count: int, make: Make) -> None:
    both = first_copy(index, make)
    near, far = both.sides[index], both.sides[1 - index]
    far.put(*(plex(f"n/{n}") for n in range(count)))
    both.exchange()
    assert near.have == far.have
    assert len(near.have) == count
    assert near.named("DifferenceAll") == [(str(count),)]
    assert not near.named("MayRequest")
    assert looked_again(far) == [False]


@pytest.mark.clause("070-ALL-01")
@pytest.mark.parametrize("index", [0, 1])
def test_what_was_listed_is_what_is_asked_for_though_the_set_changes_meanwhile(index: int) -> None:
    makes = (Changing, RealSide) if index else (RealSide, Changing)
    both = Pair(*(make(config_of(n, salt=n + 5, holds_nothing=n == index, **FROM_ONE)) for n, make in enumerate(makes)))
    near, far = both.sides[index], both.sides[1 - index]
    assert isinstance(far, Changing)
    going = far.going = far.put(*(plex(f"n/{n}") for n in range(20)))[3]
    both.exchange()
    assert near.have == far.have
    assert len(near.have) == 20
    assert near.named("DifferenceAll")[0] == ("20",)
    assert far.named("NotAvailable") == [(going,)]
    assert all(looked_again(far))


@pytest.mark.clause("070-ALL-01")
def test_who_holds_nothing_and_wants_some_of_a_listing_names_them() -> None:
    both = first_copy(0, max_requests=7)
    near, far = both.sides
    far.put(*(plex(f"n/{n}") for n in range(20)))
    both.exchange()
    assert near.have == far.have
    assert len(near.named("MayRequest")) >= 7


@pytest.mark.clause("070-ALL-02", "070-CAP-05")
@pytest.mark.parametrize("common", [0, 30])
@pytest.mark.parametrize("index", [0, 1])
def test_who_says_wrongly_that_it_holds_nothing_asks_for_nothing_by_number(index: int, common: int) -> None:
    both = first_copy(index, min_compared=0)
    fill(both, common, 4, 5)
    both.exchange()
    near, far = both.sides
    assert near.have == far.have
    assert not both.sides[index].named("DifferenceAll")


@pytest.mark.clause("070-ALL-02")
@pytest.mark.parametrize("lie", ["0", "4", "6", "05", "", "99999999999999999999"])
def test_another_number_than_was_listed_to_it_ends_the_exchange(lie: str) -> None:
    liar, victim = (
        Liar(config_of(0, salt=5, holds_nothing=True, **FROM_ONE)),
        RealSide(config_of(1, salt=6, **FROM_ONE)),
    )
    both = Pair(liar, victim)
    victim.put(*(plex(f"n/{n}") for n in range(5)))
    liar.lie = once("DifferenceAll", lambda _: (lie,))  # type: ignore[method-assign]
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
        both = pair(module, min_asked_in_one_line=least)
        fill(both, common, first, second)
        both.exchange()
        ends.append([(side.have, list(side.held)) for side in both.sides])
    assert ends[0] == ends[1]
