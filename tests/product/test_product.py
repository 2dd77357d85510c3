"""The promise of the product: whoever is told "converged" can read everything that both sides' rules select.

Rule: real stores in files, every way between two laces, thresholds as shipped and drawn at random; what an outcome does
not name as missing is there, and a second exchange with nothing changed moves nothing.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from lace.cli.output.failure import ExitCode
from product.communities import make_community
from product.promises import broken_promises, exit_codes, meet, names_what_is_missing
from product.sharing import broken_sharing, share
from product.worlds import World, make_world

AT_ONCE = 10
BY_DAY, BY_NIGHT = 300, 10_000
WELL = (ExitCode.OK, ExitCode.NOTHING)  # converged; so are two laces that show each other nothing


def keep_promises(world: World, folder: Path) -> None:
    """Two exchanges of a world, each looked at by new handles."""
    with world.sides[0].open(world.clock) as one, world.sides[1].open(world.clock) as two:
        met = meet(world, one, two, folder)
    with world.sides[0].open(world.clock) as one, world.sides[1].open(world.clock) as two:
        for damage in (*one.verify(), *two.verify()):
            raise AssertionError(f"{world}\n{damage}")
        codes = exit_codes(world, met, one, two)
        if all(code in WELL for code in codes):
            broken = list(broken_promises(world, met, one, two))
            assert not broken, "\n".join([*broken, str(world), f"{codes}"])
        for code, outcome in zip(codes, met.outcomes, strict=True):
            is_named = names_what_is_missing(outcome) or code == ExitCode.INCOMPLETE
            assert code in WELL or is_named, f"{outcome}\n{world}\nneither converged nor said why not"
        again = meet(world, one, two, folder)
        assert again.moved == 0 or not met.is_final, f"{again.results}\n{world}\nthe second exchange moved records"
        if met.is_final:
            assert exit_codes(world, again, one, two) == codes, f"{world}\n{codes} became {again.outcomes}"


@pytest.mark.parametrize("start", range(0, BY_DAY, AT_ONCE))
def test_whoever_is_told_converged_can_read_everything_that_both_select(start: int, tmp_path: Path) -> None:
    for seed in range(start, start + AT_ONCE):
        keep_promises(make_world(seed, tmp_path), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(BY_DAY, BY_NIGHT, 100))
def test_by_night_ten_thousand_worlds_keep_the_promise(start: int, tmp_path: Path) -> None:
    for seed in range(start, start + 100):
        keep_promises(make_world(seed, tmp_path), tmp_path)


LARGE = 32 * 1024 * 1024


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_content_around_the_limit_of_one_record_keeps_the_promise(seed: int, tmp_path: Path) -> None:
    sizes = [(0, LARGE - 1, 1), (LARGE, 0), (1, LARGE + 1), (70 * 1024 * 1024, 1)][seed]
    keep_promises(make_world(1_000_000 + seed, tmp_path, sizes=sizes), tmp_path)


SOME_BY_DAY, SOME_BY_NIGHT = 12, 1_000


def keep_sharing(seed: int, folder: Path) -> None:
    """Two exchanges of a pair out of a community, each looked at by new handles."""
    made = make_community(seed, folder)
    met = share(made)
    if all(code in WELL for code in met.codes):
        broken = list(broken_sharing(made, met))
        assert not broken, "\n".join([*broken, str(made)])
    for code, outcome in zip(met.codes, met.outcomes, strict=False):
        is_named = names_what_is_missing(outcome) or code == ExitCode.INCOMPLETE
        assert code in WELL or is_named, f"{outcome}\n{made}\nneither converged nor said why not"
    again = share(made)
    assert again.moved == 0, f"{made}\nthe second exchange moved {again.moved} records"
    assert again.codes == met.codes, f"{made}\n{met.codes} became {again.codes}"


@pytest.mark.long
@pytest.mark.parametrize("seed", range(SOME_BY_DAY))
def test_people_under_a_policy_can_read_on_both_sides_what_both_policies_give_them(seed: int, tmp_path: Path) -> None:
    keep_sharing(seed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(SOME_BY_DAY, SOME_BY_NIGHT, 10))
def test_by_night_a_thousand_communities_keep_the_promise(start: int, tmp_path: Path) -> None:
    for seed in range(start, start + 10):
        keep_sharing(seed, tmp_path)
