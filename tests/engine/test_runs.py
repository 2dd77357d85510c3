"""Runs of rows one by one: what they find, what they remember, what they hold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from engine.columns import ArraySource
from engine.test_index import columns_of
from engine.test_relations import rows_of
from lace.datalog.engine.index import Codes
from lace.datalog.engine.overlap import among, difference
from lace.datalog.engine.runs import NO_SELECTION, ColumnRun, Run, Selection, SourceRun, merge_runs
from lace.datalog.engine.tombstones import LiveRows, Tombstones, WithRanks, place_of, places_of, rows_at, run_of
from lace.datalog.language.syntax import Fact, Predicate
from lace.thresholds import ENGINE_THRESHOLDS, EngineThresholds

ROWS = [(0, 0), (1, 1), (0, 2), (2, 2), (0, 1)]


def codes(*values: int) -> Codes:
    return np.array(values, np.uint32)


def run_with(rows: Sequence[tuple[int, ...]] = ROWS, domain: int = 4, width: int = 2) -> ColumnRun:
    return ColumnRun(columns_of(list(rows), width), len(rows), domain)


SELECTIONS: list[tuple[Selection, list[tuple[int, int]]]] = [
    (NO_SELECTION, ROWS),
    ((((0, 0),), ()), [(0, 0), (0, 2), (0, 1)]),
    ((((0, 0), (1, 2)), ()), [(0, 2)]),
    (((), ((0, 1),)), [(0, 0), (1, 1), (2, 2)]),
    ((((1, 2),), ((0, 1),)), [(2, 2)]),
    ((((0, -1),), ()), []),
    ((((0, 3),), ()), []),
]


@pytest.mark.parametrize(("selection", "rows"), SELECTIONS)
def test_a_selection_is_made_once_and_leaves_the_rows_that_match(selection: Selection, rows: list[object]) -> None:
    run = run_with()
    view = run.select(selection)
    assert (rows_of(view, 2), view.rows, view.domain) == (rows, len(rows), 4)
    assert run.select(selection) is view
    assert (view is run) is (selection == NO_SELECTION)


def test_a_view_reads_a_column_once() -> None:
    view = run_with().select((((0, 0),), ()))
    assert view.column(1) is view.column(1)
    assert view.column(1).tolist() == [0, 2, 1]


def test_bytes_are_those_of_columns_indexes_marks_and_views() -> None:
    run = run_with()
    assert run.nbytes() == 40
    assert run.index((0,)) is run.index((0,))
    assert run.nbytes() == 40 + 4 * 6 + 4 * 5  # offsets of four codes and the end, and the order
    run.contains((1,), [codes(1)])
    assert run.nbytes() == 84 + 5  # a mark for each code, and one for those given later
    view = run.select((((0, 0),), ()))
    assert run.nbytes() == 89 + 12
    view.column(0)
    view.column(1)
    assert run.nbytes() == 101 + 24
    assert Run(0, 0).own_bytes() == 0


@pytest.mark.parametrize(
    ("rows", "domain", "distinct", "most", "evenness"),
    [
        (ROWS, 4, (3, 3), (3, 2), (25 / 11, 25 / 9)),
        (ROWS, 10**6, (3, 3), (3, 2), (25 / 11, 25 / 9)),
        ([(1, 3), (2, 3)], 4, (2, 1), (1, 2), (2.0, 1.0)),
        ([(2, 3)], 4, (1, 1), (1, 1), (1.0, 1.0)),
        ([], 4, (0, 0), (0, 0), (0.0, 0.0)),
    ],
)
def test_how_often_codes_occur(
    rows: list[tuple[int, int]],
    domain: int,
    distinct: tuple[int, int],
    most: tuple[int, int],
    evenness: tuple[float, float],
) -> None:
    run = run_with(rows, domain)
    for _ in range(2):  # the second time from memory
        assert tuple(run.distinct(place) for place in (0, 1)) == distinct
        assert tuple(run.evenness(place) for place in (0, 1)) == pytest.approx(evenness)
    assert tuple(run.most(place) for place in (0, 1)) == most
    assert run.narrowest(2) == run.narrowest(2) == (1 if most[1] < most[0] else 0)


def test_what_was_counted_once_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    run, read = run_with(), []
    monkeypatch.setattr(ColumnRun, "column", lambda self, position: read.append(position) or self._columns[position])
    for count in (run.distinct, run.evenness):
        count(1)
        before = len(read)
        count(1)
        assert len(read) == before
    run.narrowest(2)
    before = len(read)
    run.narrowest(2)
    assert len(read) == before
    assert run.cells(2) is run.cells(2)
    assert run.cells(1) is run.cells(2)


def test_more_cells_are_made_when_more_are_asked_for() -> None:
    run = run_with()
    assert [cells.tolist() for cells in run.cells(1)] == [[0, 1, 0, 2, 0]]
    assert [cells.tolist() for cells in run.cells(2)] == [[0, 1, 0, 2, 0], [0, 1, 2, 2, 1]]


@pytest.mark.parametrize("domain", [4, 10**7])
@pytest.mark.parametrize("many", [False, True])
def test_keys_are_contained_where_a_row_has_them(domain: int, many: bool) -> None:
    rows = [*ROWS, *([(0, 1)] * ENGINE_THRESHOLDS.compared_run_rows)] if many else ROWS
    run = run_with(rows, domain=domain)
    for _ in range(12):  # by comparing all rows at first, where they are many
        assert run.contains((0,), [codes(0, 1, 2, 3)]).tolist() == [True, True, True, False]
        assert run.contains((1, 0), [codes(0, 1, 2, 3), codes(0, 0, 0, 0)]).tolist() == [True, True, True, False]
    assert run.contains((0,), [codes(domain + 5)]).tolist() == [False]
    assert run.is_indexed((0,)) is (domain > 4)  # marks are enough for one dense column
    run.index((1,))
    assert run.contains((1,), [codes(0, 3)]).tolist() == [True, False]
    assert not run.is_flagged(1)


@pytest.mark.parametrize(
    ("rows", "asked", "compared"),
    [(4_095, [1], [False]), (4_096, [1], [True]), (4_096, [16, 1], [True, False]), (4_096, [17], [False])],
)
def test_a_few_keys_are_compared_with_all_rows_of_a_large_run(
    rows: int, asked: list[int], compared: list[bool]
) -> None:
    run = ColumnRun([np.arange(rows, dtype=np.uint32)], rows, rows)
    for count, expected in zip(asked, compared, strict=True):
        keys = [np.arange(count, dtype=np.uint32)]
        found = run.sought((0,), keys)
        assert (type(found).__name__ == "Compared") is expected
        assert found.counts(keys).tolist() == [1] * count
        assert run.is_indexed((0,)) is not expected
    run.index((0,))
    assert type(run.sought((0,), [codes(1)])).__name__ == "Unique"


def test_a_source_gives_the_part_that_a_constant_names() -> None:
    field = Predicate("Field", 3)
    source = ArraySource([Fact(field, row) for row in [("a", "a", "x"), ("b", "b", "x"), ("c", "b", "y")]])
    run = SourceRun(source, field, source.code_count)
    a, x, b, c, y = source.codes(["a", "x", "b", "c", "y"])
    part = run.select((((1, b), (2, x)), ()))
    assert rows_of(part, 3) == [(b, b, x)]
    assert rows_of(run.select((((0, c), (1, b)), ())), 3) == [(c, b, y)]
    assert rows_of(run.select((((1, a),), ((0, 1),))), 3) == [(a, a, x)]
    assert rows_of(run.select((((2, x),), ())), 3) == [(a, a, x), (b, b, x)]
    assert run.part_for([-1, a, -1]) is run.part_for([-1, a, -1])
    assert run.part_for([c, 0, -1]).rows == 1  # a is code 0, and a code like others
    assert rows_of(run.part_for([-1, y, -1]), 3) == []
    assert [run.column(place).tolist() for place in (2, 0, 0, 1)] == [[x, x, y], [a, b, c], [a, b, c], [a, b, b]]
    assert len(source.read) == 3  # each column once
    assert run.own_bytes() == 36


def test_several_runs_are_merged_into_one_and_one_is_left_alone() -> None:
    run = run_with()
    assert merge_runs([run], 2, 4) is run
    both = merge_runs([run, run_with([(3, 3)])], 2, 4)
    assert (rows_of(both, 2), both.rows, both.column(0).dtype) == ([*ROWS, (3, 3)], 6, np.uint32)
    assert merge_runs([ColumnRun([], 1, 0), ColumnRun([], 1, 0)], 0, 0).rows == 2


# rows that left


@pytest.mark.parametrize("marks_from", [0, 1, 2, 3, 256])
def test_rows_that_left_are_known_whether_listed_or_marked(marks_from: int) -> None:
    dead = Tombstones(6, marks_from)
    assert (dead.count, dead.numbers().tolist()) == (0, [])
    assert dead.among(np.arange(6)).tolist() == [False] * 6
    dead.add(np.array([4, 1, 4]))
    before = dead.copy()
    dead.add(np.array([5, 1]))
    assert (dead.count, dead.numbers().tolist()) == (3, [1, 4, 5])
    assert dead.among(np.array([0, 1, 5, 5, 2])).tolist() == [False, True, True, True, False]
    assert (before.count, before.numbers().tolist()) == (2, [1, 4])
    assert dead.is_marked is (3 * marks_from > 6)
    assert before.is_marked is (2 * marks_from > 6)


def living(*dead: tuple[int, int]) -> tuple[LiveRows, Run]:
    inner = run_with()
    run = LiveRows(inner, 2)
    run.kill(list(dead))
    return run, inner


def test_a_run_that_lost_nothing_is_the_run() -> None:
    run, inner = living()
    assert (run.rows, run.compact() is inner, run.index((0,)) is inner.index((0,))) == (5, True, True)
    assert run.contains((1,), [codes(0, 3)]).tolist() == [True, False]
    assert inner.is_flagged(1)
    run.kill([(3, 3)])
    assert run.compact() is inner
    LiveRows(run_with([]), 2).kill([(1, 1)])


@pytest.mark.parametrize(("width", "rows"), [(2, 5), (0, 1)])
def test_where_no_row_is_named_none_dies(width: int, rows: int) -> None:
    """A row without columns has no key to be found by: it dies with the first that is named, and not before."""
    run = LiveRows(run_with() if width else ColumnRun([], 1, 4), width)
    run.kill([])
    assert run.rows == rows
    run.kill([(0, 0)[:width]])
    assert run.rows == rows - 1


def test_a_run_without_some_rows_finds_the_others() -> None:
    run, inner = living((0, 2), (9, 9), (1, 1))
    assert (run.rows, rows_of(run, 2)) == (3, [(0, 0), (2, 2), (0, 1)])
    assert run.compact() is run.compact()
    assert run.dead_rows() is run.dead_rows()
    assert rows_of(run.dead_rows(), 2) == [(1, 1), (0, 2)]
    index = run.index((0,))
    assert (index.most, index.nbytes) == (3, 0)
    assert index.counts([codes(0, 1, 2)]).tolist() == [2, 0, 1]
    assert [part.tolist() for part in index.expand([codes(0, 1, 2)])] == [[0, 0, 2], [0, 4, 3]]
    assert run.at(1, np.array([0, 4])).tolist() == [0, 1]
    assert (index.find((0,)), index.find((1,))) == ([0, 4], [])
    assert run.contains((0,), [codes(0, 1, 2, 3)]).tolist() == [True, False, True, False]
    assert run.contains((0, 1), [codes(0, 0, 1), codes(0, 2, 1)]).tolist() == [True, False, False]
    assert rows_of(run.select((((0, 0),), ())), 2) == [(0, 0), (0, 1)]
    assert (run.distinct(0), run.evenness(0), run.domain) == (3, inner.evenness(0), 4)
    copy = LiveRows(inner, 2, run.dead)
    copy.kill([(0, 0)])
    assert (copy.rows, run.rows) == (2, 3)
    run.kill([(2, 2)])
    assert rows_of(run, 2) == [(0, 0), (0, 1)]
    assert rows_of(run.dead_rows(), 2) == [(1, 1), (0, 2), (2, 2)]


def test_a_unique_key_whose_row_left_is_looked_for_among_the_dead_only() -> None:
    inner = run_with([(0, 5), (1, 5), (2, 5)], 6)
    run = LiveRows(inner, 2)
    run.kill([(1, 5)])
    assert run.contains((0,), [codes(1, 2, 0)]).tolist() == [False, True, True]
    assert not run.dead_rows().is_indexed((0,))


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("compared", [0, 1, 2, 64])
def test_a_row_is_found_where_it_stands(indexed: bool, compared: int) -> None:
    thresholds = EngineThresholds(compared_rows=compared)
    run = run_with()
    if indexed:
        run.index((0, 1))
    for number, row in enumerate(ROWS):
        assert list(place_of(run, row, 2, thresholds)) == [number]
    for row in [(2, 0), (1, 0), (3, 3), (1, 2)]:
        assert list(place_of(run, row, 2, thresholds)) == []
    asked = [(0, 1), (1, 0), (0, 0), (3, 3)]
    assert sorted(places_of(run, asked, 2, thresholds).tolist()) == [0, 4]
    assert place_of(run_with([]), (1, 1), 2) == ()
    assert places_of(ColumnRun([], 2, 0), [()], 0).tolist() == [0, 1]


@pytest.mark.parametrize(("rows", "indexed", "built"), [(63, False, False), (64, False, True), (5, True, True)])
def test_an_index_of_whole_rows_is_made_for_many_rows_only(rows: int, indexed: bool, built: bool) -> None:
    run = run_with([(n, n % 7) for n in range(100)], 100)
    if indexed:
        run.index((0, 1))
    asked = [(n, n % 7) for n in range(rows)]
    assert places_of(run, asked, 2).tolist() == list(range(rows))
    assert run.is_indexed((0, 1)) is built


def test_rows_as_columns_and_back() -> None:
    run = run_of([(1, 2, 3), (4, 5, 6)], 3, 9)
    assert (rows_of(run, 3), run.rows, run.domain) == ([(1, 2, 3), (4, 5, 6)], 2, 9)
    assert rows_at(run, np.array([1]), 2) == [(4, 5)]
    assert rows_at(run, np.array([1, 0]), 0) == [(), ()]
    nothing = run_of([()], 0, 9)
    assert (nothing.rows, nothing.domain) == (1, 0)


def test_ranks_are_one_more_column() -> None:
    inner = run_with()
    run = WithRanks(inner, 2, codes(5, 6, 7, 8, 9))
    assert (run.column(2).tolist(), run.column(1).tolist()) == ([5, 6, 7, 8, 9], [0, 1, 2, 2, 1])
    assert (run.nbytes(), run.rows) == (40 + 20, 5)
    assert run.index((0,)) is inner.index((0,))
    assert (run.is_indexed((0,)), run.is_indexed((1,)), run.narrowest(2)) == (True, False, 1)
    assert (run.distinct(0), run.evenness(1)) == (3, inner.evenness(1))
    assert run.contains((0,), [codes(3, 2)]).tolist() == [False, True]
    assert run.sought((0,), [codes(1)]).find((1,)) == [1]


# two runs


@pytest.mark.parametrize("domain", [4, 1 << 14, 1 << 20, 1 << 32])
def test_the_difference_of_two_runs_of_any_width(domain: int) -> None:
    """Marked, sorted or hashed, as many bits as two, three or five codes take."""
    for width in (1, 2, 3, 5):
        before = [tuple((n * k) % 4 for k in range(1, width + 1)) for n in range(3)]
        after = [*before[1:], (3,) * width, (1,) * width] if width > 1 else [(3,), (1,)]
        old, new = run_with(before, domain, width), run_with(after, domain, width)
        for left, right, rows in ((old, new, (before, after)), (new, old, (after, before)), (old, old, (before,) * 2)):
            came, went = difference(left, right, width)
            assert rows_of(came, width) == [row for row in rows[1] if row not in rows[0]]
            assert rows_of(went, width) == [row for row in rows[0] if row not in rows[1]]
            assert (came.rows, came.domain) == (len(rows_of(came, width)), domain)
        found = among(columns_of(before, width), columns_of(after, width), domain)
        assert found.tolist() == [row in after for row in before]
        assert among(columns_of(before, width), columns_of([], width), domain).tolist() == [False] * 3
        assert rows_of(difference(run_with([], domain, width), new, width)[0], width) == after


@pytest.mark.parametrize(("domain", "code"), [(1 << 13, 1 << 12), (1 << 32, 1), (1 << 12, 1 << 11)])
def test_rows_too_wide_for_a_word_are_told_apart_by_their_first_code(domain: int, code: int) -> None:
    before, after = [(0, 1, 1, 1, 1)], [(code, 1, 1, 1, 1)]
    came, went = difference(run_with(before, domain, 5), run_with(after, domain, 5), 5)
    assert (rows_of(came, 5), rows_of(went, 5)) == (after, before)
    assert among(columns_of(before, 5), columns_of(after, 5), domain).tolist() == [False]


@pytest.mark.parametrize(("before", "after", "came", "went"), [(0, 1, 1, 0), (1, 0, 0, 1), (1, 1, 0, 0), (0, 0, 0, 0)])
def test_the_difference_of_facts_without_values(before: int, after: int, came: int, went: int) -> None:
    more, less = difference(ColumnRun([], before, 0), ColumnRun([], after, 0), 0)
    assert (more.rows, less.rows, more.domain, less.domain) == (came, went, 0, 0)
