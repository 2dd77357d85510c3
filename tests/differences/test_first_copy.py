"""First copies and nothing new: what 070 leaves out (070-CAP-05, 070-EQUAL-03)."""

from __future__ import annotations

import pytest

from differences.test_exchange import MODULES, Make, RealSide, control, pair
from interlace.pair import Pair, Side, config_of, plex
from lace.interlace import inputs as given
from lace.interlace.effects import EndBlock
from lace.limits import ExchangeLimits
from lace.policy.exposure import Exposure, expose, expose_all, shows_everything
from lace.policy.select import select_all


def filled(many: int, *, index: int = 1, make: Make = RealSide, says: bool = True, **options: object) -> Pair:
    """Two sides, of which one has records and the other none."""
    options = {"min_compared": 0, "partition_threshold_bytes": 0, **options}
    sides = [
        make(config_of(n, salt=n + 5, holds_nothing=says and n != index, **options))
        for n in (0, 1)
    ]  # fmt: skip
    sides[index].put(*[plex(f"n/{n}") for n in range(many)])
    return Pair(*sides)


@pytest.mark.clause("070-CAP-05")
@pytest.mark.parametrize("make", [Side, RealSide])
@pytest.mark.parametrize("index", [0, 1])
def test_who_holds_nothing_is_listed_everything_at_once(make: Make, index: int) -> None:
    both = filled(60, index=index, make=make)
    both.exchange()
    full, empty = both.sides[index], both.sides[1 - index]
    assert empty.have == full.have
    assert len(full.have) == 60
    said = control(full)
    assert said.index("Advertised") == said.index("HelloLimit") + said.count("HelloLimit")
    assert said.count("Advertised") == 60
    assert "AdvertisementPartition" not in said
    assert [claim.hash for claim in empty.held] == sorted(full.have)
    assert [claim.hash for claim in full.held] == sorted(full.have)


@pytest.mark.clause("070-CAP-05")
def test_who_says_nothing_of_it_is_summarised_to() -> None:
    both = filled(60, says=False)
    both.exchange()
    assert both.sides[0].have == both.sides[1].have
    told = [name for name in control(both.sides[1]) if name == "Advertised" or name.startswith("Difference")]
    assert told[0] != "Advertised"


@pytest.mark.clause("070-CAP-05")
def test_a_wrong_word_costs_bytes_and_nothing_else() -> None:
    """It holds half of the records and says that it holds none."""
    both = filled(60)
    both.sides[0].put(*[plex(f"n/{n}") for n in range(30)], plex("own"))
    both.exchange()
    assert both.sides[0].have == both.sides[1].have
    assert len(both.sides[0].have) == 61
    assert control(both.sides[1]).count("Advertised") == 60


@pytest.mark.clause("070-CAP-05", "050-LIST-10")
def test_a_listing_over_a_limit_is_still_summarised() -> None:
    both = filled(60, limits=ExchangeLimits(max_advertisement_records_listed=20))
    both.exchange()
    assert both.sides[0].have == both.sides[1].have
    assert "AdvertisementPartition" in control(both.sides[1])


@pytest.mark.clause("070-CAP-05", "070-BASE-01")
def test_later_loops_tell_changes() -> None:
    both = filled(40, is_open=True)
    both.start()
    both.run()
    far = both.sides[1]
    before = len(control(far))
    far.put(plex("late"))
    both.give(far, given.LocalChanged())
    both.run()
    assert both.sides[0].have == far.have
    assert control(far)[before:].count("Advertised") == 1


@pytest.mark.clause("070-CAP-05")
def test_it_is_no_word_without_the_capability() -> None:
    both = pair(salts=(None, None))
    both.sides[1].put(*[plex(f"n/{n}") for n in range(5)])
    both.exchange()
    assert all("x_differences_nothing" not in str(fact) for side in both.sides for fact in side.facts_sent())


@pytest.mark.clause("070-CAP-06")
def test_who_may_hide_records_never_says_that_there_are_none() -> None:
    other = Exposure.author("AllowQueryRecord(Viewer,P) :- Have(P), Field(P,'Group','0','open').")
    assert shows_everything([expose_all()])
    assert shows_everything(expose("all", selector=select_all()))
    assert not shows_everything([])
    assert not shows_everything([other])
    assert not shows_everything([expose_all(), other])


def blocks(side: Side) -> int:
    return sum(isinstance(effect, EndBlock) for effect in side.wire)


@pytest.mark.clause("070-EQUAL-03")
@pytest.mark.parametrize("is_open", [False, True])
def test_a_loop_over_equal_sets_ends_with_its_second_adv(is_open: bool) -> None:
    """Setup, hello, adv, whether or not the exchange stays open; a later record begins a loop as ever."""
    both = pair(is_open=is_open)
    for side in both.sides:
        side.put(*[plex(f"n/{n}") for n in range(40)])
    both.start()
    both.run()
    assert [blocks(side) for side in both.sides] == [3, 3]
    if is_open:
        both.sides[0].put(plex("late"))
        both.give(both.sides[0], given.LocalChanged())
        both.run()
        assert both.sides[1].have == both.sides[0].have
        # adv, req, two ends of resp; then an adv that shows equal sets
        assert [blocks(side) for side in both.sides] == [3 + 5, 3 + 5]


@pytest.mark.clause("070-EQUAL-03")
def test_where_a_listing_may_follow_from_a_listing_requests_follow_equal_sets() -> None:
    both = pair(MODULES["listings on listings"])
    for side in both.sides:
        side.put(*[plex(f"n/{n}") for n in range(40)])
    both.exchange()
    assert min(map(blocks, both.sides)) > 3
    assert both.sides[0].have == both.sides[1].have


@pytest.mark.clause("070-EQUAL-03")
@pytest.mark.parametrize("hidden", [0, 1])
def test_records_that_one_side_hides_are_no_difference(hidden: int) -> None:
    """The sets are equal, the stores are not; nothing is asked for, and no block says so."""
    both = pair(MODULES["by field"])
    for side in both.sides:
        side.put(*[plex(f"n/{n}", group="u") for n in range(40)])
    both.sides[hidden].put(plex("kept", group="v"))
    both.exchange()
    assert [blocks(side) for side in both.sides] == [3, 3]
    assert [len(side.have) for side in both.sides] == [40 + (hidden == 0), 40 + (hidden == 1)]


@pytest.mark.clause("070-EQUAL-03")
@pytest.mark.parametrize("make", [Side, RealSide])
@pytest.mark.parametrize(("many", "expected"), [(0, 3), (1, 3), (9, 3)])
def test_equal_listings_need_no_requests_either(make: Make, many: int, expected: int) -> None:
    both = pair(make=make, min_compared=32)
    for side in both.sides:
        side.put(*[plex(f"n/{n}") for n in range(many)])
    both.exchange()
    assert [blocks(side) for side in both.sides] == [expected, expected]


@pytest.mark.clause("070-EQUAL-03")
@pytest.mark.parametrize("make", [Side, RealSide])
def test_listings_of_as_many_other_records_are_asked_for(make: Make) -> None:
    both = pair(make=make, min_compared=32)
    for index, side in enumerate(both.sides):
        side.put(plex("common"), plex(f"own/{index}"))
    both.exchange()
    assert both.sides[0].have == both.sides[1].have
    assert len(both.sides[0].have) == 3
