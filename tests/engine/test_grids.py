"""Rows on their way from rule to rule: the same as tuples and as a grid."""

from __future__ import annotations

import pytest

from lace.datalog.engine import grids as grids_module
from lace.datalog.engine.grids import Doubtful, Grid, grid_of, merged, rank_of, tuples, unranked, without
from lace.datalog.language.syntax import Predicate

EDGE, SOME = Predicate("Edge", 2), Predicate("Some", 0)
RANKED = [(1, 2, 7), (5, 6, 2), (3, 4, 7)]


def test_rows_on_their_way_are_the_same_as_tuples_and_as_a_grid() -> None:
    grid = grid_of(RANKED, 3)
    assert (len(grid), grid.rows()) == (3, RANKED)
    assert (rank_of(RANKED), rank_of(grid)) == (7, 7)
    bare = unranked(grid)
    assert isinstance(bare, Grid)
    assert (unranked(RANKED), bare.rows()) == ([(1, 2), (5, 6), (3, 4)], [(1, 2), (5, 6), (3, 4)])
    assert unranked(grid_of([(7,), (8,)], 1)) == [(), ()]
    one = unranked(grid_of([(4, 7)], 2))
    assert isinstance(one, Grid)
    assert one.rows() == [(4,)]
    assert merged([grid, grid_of([(5, 6, 2), (0, 0, 0)], 3)]).rows() == [(0, 0, 0), (1, 2, 7), (3, 4, 7), (5, 6, 2)]


@pytest.mark.parametrize("as_grid", [(False, False), (False, True), (True, False), (True, True)])
def test_what_was_found_is_left_out_whatever_its_rank(as_grid: tuple[bool, bool]) -> None:
    found = [(3, 4, 1), (1, 9, 7)]
    rows = grid_of(RANKED, 3) if as_grid[0] else RANKED
    left = without(rows, grid_of(found, 3) if as_grid[1] else found, 2, 10)
    assert isinstance(left, Grid) is as_grid[0]
    assert (left.rows() if isinstance(left, Grid) else left) == [(1, 2, 7), (5, 6, 2)]
    (alone,) = tuples(without(rows, grid_of(RANKED[1:], 3) if as_grid[1] else RANKED[1:], 2, 10))
    assert alone == RANKED[0]
    everything = without(rows, grid_of(RANKED, 3) if as_grid[1] else RANKED, 2, 10)
    assert len(everything) == 0
    ranks = [(7,), (8,)]
    held = grid_of(ranks, 1) if as_grid[0] else ranks
    assert len(without(held, grid_of([(9,)], 1) if as_grid[1] else [(9,)], 0, 10)) == 0


def test_two_grids_are_compared_without_making_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grids_module, "tuples", lambda rows: pytest.fail("rows were made"))
    assert len(without(grid_of(RANKED, 3), grid_of(RANKED[:1], 3), 2, 10)) == 2


@pytest.mark.parametrize("as_grid", [False, True])
def test_doubtful_facts_come_by_rank_and_each_once(as_grid: bool) -> None:
    doubtful = Doubtful()
    assert (bool(doubtful), doubtful.waiting) == (False, 0)
    doubtful.add(EDGE, grid_of(RANKED, 3) if as_grid else RANKED)
    doubtful.add(EDGE, [(8, 8, 7), (1, 2, 7)])
    doubtful.add(SOME, [(2,)])
    doubtful.add(EDGE, grid_of([], 3))
    assert (bool(doubtful), doubtful.waiting) == (True, 6)
    lowest = {
        predicate: sorted(rows.rows() if isinstance(rows, Grid) else rows) for predicate, rows in doubtful.lowest()
    }
    assert lowest == {EDGE: [(5, 6, 2)], SOME: [(2,)]}
    assert doubtful.waiting == 4
    ((predicate, rows),) = doubtful.lowest()
    assert predicate == EDGE
    assert isinstance(rows, Grid) is as_grid
    assert sorted(rows.rows() if isinstance(rows, Grid) else rows) == [(1, 2, 7), (3, 4, 7), (8, 8, 7)]
    assert (bool(doubtful), doubtful.waiting) == (False, 0)
