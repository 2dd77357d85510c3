"""Relations and the sets of rows behind them: which is chosen, what each round finds, and what is merged when."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from engine.test_index import columns_of
from lace.datalog.engine import relation as relation_module
from lace.datalog.engine.relation import Packing, Relation, SortedSeen, distinct_rows, in_sorted, make_seen
from lace.datalog.engine.runs import NO_SELECTION, ColumnRun, Run
from lace.datalog.language.syntax import Predicate
from lace.datalog.planning.plan import Version

EDGE, SOME = Predicate("Edge", 2), Predicate("Some", 0)


def rows_of(run: Run, width: int) -> list[tuple[int, ...]]:
    return list(zip(*(run.column(n).tolist() for n in range(width)), strict=True))


def run_with(rows: Sequence[tuple[int, ...]]) -> ColumnRun:
    return ColumnRun(columns_of(list(rows), 2), len(rows), 100)


@pytest.mark.parametrize(
    ("arity", "domain", "kind"),
    [
        (1, 1 << 27, "BitmapSeen"),
        (1, (1 << 27) + 1, "SortedSeen"),
        (3, 1 << 9, "BitmapSeen"),
        (4, 1 << 7, "SortedSeen"),
        (2, 1 << 32, "SortedSeen"),
        (8, 1 << 8, "SortedSeen"),
        (5, 1 << 13, "HashedSeen"),
        (8, (1 << 8) + 1, "HashedSeen"),
    ],
)
def test_rows_are_marked_then_sorted_then_hashed_as_they_get_wider(arity: int, domain: int, kind: str) -> None:
    assert type(make_seen(arity, domain)).__name__ == kind


@pytest.mark.parametrize(
    ("arity", "domain", "word"), [(2, 65_536, np.uint32), (3, 2_048, np.uint64), (8, 256, np.uint64), (1, 1, np.uint32)]
)
def test_each_place_of_a_row_comes_back_from_its_key(arity: int, domain: int, word: type) -> None:
    rows = [tuple((3 * n + step) % domain for n in range(arity)) for step in range(5)]
    rows.append((domain - 1,) * arity)
    packing = Packing(arity, domain)
    keys = packing.pack(columns_of(rows, arity))
    assert keys.dtype == word
    assert (keys[-1], keys.tolist() == sorted(keys.tolist())) == (domain**arity - 1, rows == sorted(rows))
    assert [column.tolist() for column in packing.unpack(keys)] == [list(column) for column in zip(*rows, strict=True)]


def test_wide_rows_are_told_apart_by_every_place() -> None:
    rows = [(1, 1, 1), (0, 1, 1), (1, 0, 1), (1, 1, 0), (0, 1, 1), (1, 1, 1)]
    found = [column.tolist() for column in distinct_rows(columns_of(rows, 3))]
    assert list(zip(*found, strict=True)) == [(0, 1, 1), (1, 0, 1), (1, 1, 0), (1, 1, 1)]
    assert [column.tolist() for column in distinct_rows(columns_of([(3, 4, 5)], 3))] == [[3], [4], [5]]
    assert [column.tolist() for column in distinct_rows(columns_of([], 3))] == [[], [], []]


def test_a_key_beyond_all_others_is_not_among_them() -> None:
    level = np.array([3, 5, 9], np.uint32)
    assert in_sorted(level, np.array([0, 3, 4, 5, 9, 10], np.uint32)).tolist() == [
        False,
        True,
        False,
        True,
        True,
        False,
    ]


def test_rows_that_a_set_was_given_are_in_it_whatever_their_number() -> None:
    for few_codes in (2, 64):  # many rows of few, few of many: a set may find repeats in either way
        for arity in (1, 2):
            seen = make_seen(arity, few_codes)
            rows = [(n % few_codes,) * arity for n in (5, 3, 5, 9)]
            given = [column.tolist() for column in seen.fresh(columns_of(rows, arity))]
            assert list(zip(*given, strict=True)) == sorted(set(rows))
            assert [len(column) for column in seen.fresh(columns_of(rows, arity))] == [0] * arity
    ordered = SortedSeen(Packing(1, 1 << 28))
    assert [c.tolist() for c in ordered.fresh([np.array([4, 4, 2], np.uint32)])] == [[2, 4]]
    assert [c.tolist() for c in ordered.fresh([np.array([4, 2], np.uint32)])] == [[]]
    assert [len(level) for level in ordered.levels] == [2]


def versions(relation: Relation) -> tuple[list[tuple[int, ...]], ...]:
    found = []
    for version in (Version.OLD, Version.DELTA, Version.ALL):
        runs = relation.runs(version)
        assert [rows_of(run, 2) for run in relation.views(version, NO_SELECTION)] == [rows_of(run, 2) for run in runs]
        found.append(sorted(row for run in runs for row in rows_of(run, 2)))
    return tuple(found)


def offer(relation: Relation, *rows: tuple[int, int]) -> None:
    relation.offer(columns_of(list(rows), 2), len(rows))


def test_what_a_round_finds_is_its_delta_once_it_is_over() -> None:
    relation = Relation(EDGE, 100, [run_with([(1, 2)]), run_with([])])
    assert (relation.rows, relation.found, versions(relation)) == (1, 1, ([(1, 2)], [], [(1, 2)]))
    offer(relation, (3, 4), (1, 2), (3, 4))
    offer(relation, (5, 6))
    offer(relation, (5, 6))
    assert (relation.rows, relation.found, versions(relation)) == (1, 3, ([(1, 2)], [], [(1, 2)]))
    assert relation.advance() == 2
    assert (relation.rows, relation.found) == (3, 3)
    assert versions(relation) == ([(1, 2)], [(3, 4), (5, 6)], [(1, 2), (3, 4), (5, 6)])
    offer(relation, (3, 4), (7, 8))
    assert relation.advance() == 1
    assert versions(relation) == ([(1, 2), (3, 4), (5, 6)], [(7, 8)], [(1, 2), (3, 4), (5, 6), (7, 8)])
    assert relation.advance() == 0
    assert versions(relation)[1] == []
    offer(relation, (9, 9))
    assert relation.advance() == 1
    relation.finish()
    assert versions(relation)[1] == []
    assert relation.rows == 5
    assert sorted(rows_of(relation.whole(), 2)) == [(1, 2), (3, 4), (5, 6), (7, 8), (9, 9)]


def test_a_relation_asked_late_knows_what_stood_and_what_the_last_round_found() -> None:
    relation = Relation(EDGE, 100, [run_with([(1, 2)])])
    offer(relation, (3, 4))
    relation.advance()
    relation.finish()  # as after a stratum
    offer(relation, (3, 4), (1, 2), (5, 5))
    assert relation.advance() == 1


def test_each_row_of_the_whole_has_the_round_in_which_it_was_found() -> None:
    relation = Relation(EDGE, 100)
    for found in ([(1, 1)], [(2, 1), (2, 2)], [], [(3, 1)]):
        offer(relation, *found)
        relation.advance()
    ranks = relation.ranks()
    assert (ranks.tolist(), ranks.dtype) == ([0, 1, 1, 3], np.uint32)
    assert rows_of(relation.whole(), 2) == [(1, 1), (2, 1), (2, 2), (3, 1)]
    assert relation.whole() is relation.whole()
    assert versions(relation)[1] == []


def test_the_whole_of_nothing_and_of_facts_without_values() -> None:
    empty = Relation(EDGE, 100).whole()
    assert (empty.rows, empty.column(1).tolist(), empty.domain) == (0, [], 100)
    some = Relation(SOME, 100)
    some.offer([], 0)
    assert (some.found, some.advance(), some.whole().rows) == (0, 0, 0)
    some = Relation(SOME, 100)
    some.offer([], 3)
    some.offer([], 1)
    assert (some.rows, some.found) == (0, 1)
    assert (some.advance(), some.rows, some.ranks().tolist()) == (1, 1, [0])
    some.offer([], 2)
    assert (some.found, some.advance(), some.whole().rows) == (1, 0, 1)


COMPACTED = [
    # rows of each run before and after, and how often runs were merged
    ([8, 4, 2, 1], [8, 4, 2, 1], 0),
    ([4, 2], [4, 2], 0),
    ([3, 2], [5], 1),
    ([1, 1], [2], 1),
    ([7], [7], 0),
    ([16, 4, 2, 2], [16, 8], 1),
    ([15, 4, 2, 2], [23], 1),
    ([7, 2, 2], [11], 1),
    ([8, 2, 2], [8, 4], 1),
    ([11, 2, 2], [11, 4], 1),
    ([17, 5, 3], [17, 8], 1),
    ([64, 2, 2], [64, 4], 1),
    ([3, 2, 2], [7], 1),
    ([64, 5, 1, 1], [64, 5, 2], 1),
    ([9, 6, 1, 2], [9, 6, 3], 1),
]


@pytest.mark.parametrize(("before", "after", "merges"), COMPACTED)
def test_runs_of_like_size_are_merged_at_once(
    before: list[int], after: list[int], merges: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    merged = []

    def counted(runs: Sequence[Run], arity: int, domain: int) -> Run:
        merged.append(len(runs))
        return merge(runs, arity, domain)

    merge = relation_module.merge_runs
    monkeypatch.setattr(relation_module, "merge_runs", counted)
    numbers = iter(range(1_000))
    runs = [run_with([(next(numbers), 1) for _ in range(rows)]) for rows in before]
    relation = Relation(EDGE, 1_000, runs)
    assert [run.rows for run in relation.runs(Version.OLD)] == after
    assert len(merged) == merges
    assert [row for run in relation.runs(Version.OLD) for row in rows_of(run, 2)] == [
        (n, 1) for n in range(sum(before))
    ]


def test_a_relation_counts_the_bytes_of_its_runs_and_of_what_it_has_seen() -> None:
    relation = Relation(EDGE, 100, [run_with([(1, 2)])])
    assert relation.nbytes() == 8
    offer(relation, (3, 4), (5, 6))
    relation.advance()
    assert relation.nbytes() == 8 + 16 + (1 << 14)  # two places of seven bits, a byte for each pair
    relation.finish()
    assert relation.nbytes() == 8 + 16
