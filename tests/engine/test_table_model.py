"""A table under any script of changes, against a plain dict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.columns import ArraySource
from lace.datalog.engine.changes import as_rows
from lace.datalog.engine.row_lookup import Visibility
from lace.datalog.engine.runs import NO_SELECTION, CodeRow, Run, Selection, SourceRun
from lace.datalog.engine.table import AddedRows, Table
from lace.datalog.engine.tombstones import LiveRows, run_of
from lace.datalog.language.syntax import Fact, Predicate
from lace.thresholds import ENGINE_THRESHOLDS, EngineThresholds
from tries import tries

FEW, MORE = 3, 5  # codes when the columns were made, and codes by now
CHOICES = {  # from which number on something is done in bulk
    "bulk_rows": (1, 64),
    "flush_rows": (1, 16_384),
    "flush_part": (1, 16),
    "compared_rows": (1, 64),
    "compared_rows_indexed": (1, 6),
    "marks_part": (0, 1, 256),
}
WAYS: dict[int, list[tuple[Selection, tuple[int, ...]]]] = {  # how rows of an arity are looked up
    0: [(NO_SELECTION, ())],
    1: [(NO_SELECTION, ()), (NO_SELECTION, (0,)), ((((0, 1),), ()), ())],
    2: [
        *((NO_SELECTION, positions) for positions in ((), (0,), (1,), (0, 1))),
        ((((0, 1),), ()), (1,)),
        ((((1, 4),), ()), ()),
        (((), ((0, 1),)), (0,)),
        ((((0, 2), (1, 2)), ((0, 1),)), (1, 0)),
        ((((0, -1),), ()), (1,)),
    ],
}


def matches(row: CodeRow, selection: Selection) -> bool:
    constants, equal = selection
    return all(row[n] == code for n, code in constants) and all(row[a] == row[b] for a, b in equal)


class Model:
    """What a table should say."""

    def __init__(self, random: Random, arity: int, ranked: bool) -> None:
        self.random, self.arity, self.ranked = random, arity, ranked
        self.now = {row: random.randrange(4) for row in self.all_rows(FEW) if random.random() < 0.5}
        self.before = dict(self.now)
        self.recomputed = False
        width = arity + ranked
        main = run_of(list(self.full(self.now)), width, max(FEW, 4) if ranked else FEW)
        drawn = {name: random.choice(choices) for name, choices in CHOICES.items()}
        self.thresholds = EngineThresholds(**drawn)
        self.table = Table(Predicate("P", arity), main, ranked=ranked, thresholds=self.thresholds)

    def all_rows(self, codes: int = MORE) -> Iterator[CodeRow]:
        return product(range(codes), repeat=self.arity)

    def full(self, facts: dict[CodeRow, int]) -> Iterator[CodeRow]:
        return ((*row, rank) if self.ranked else row for row, rank in facts.items())

    def some(self, rows: Iterable[CodeRow]) -> list[CodeRow]:
        rows = list(rows)
        return self.random.sample(rows, self.random.randint(0, min(len(rows), 6)))

    # what can be done

    def edit(self) -> None:
        table, random = self.table, self.random
        going = self.some(self.before)
        if random.random() < 0.3:
            table.take(going)
        else:
            for row in going:
                assert table.remove(row) is True
        for row in self.some(set(self.all_rows()) - set(self.before)):
            assert table.remove(row) is False
        for row in going:
            del self.now[row]
            assert table.remove(row) is False
        self.check()
        for _ in range(random.randint(0, 3)):
            more = {row: random.randrange(4) for row in self.some([*going, *self.all_rows()])}
            new = {row: rank for row, rank in more.items() if row not in self.now}
            if random.random() < 0.5:
                assert table.put(more) == list(self.full(new))
            else:
                assert [row for row, rank in more.items() if table.add(row, rank)] == list(new)
            self.now |= new
            self.check()

    def recompute(self) -> None:
        kept = self.random.choice((0.1, 0.7, 0.95, 1.0))
        ranks = {row: self.random.randrange(4) for row in self.all_rows()}
        self.now = {row: ranks[row] for row in self.before if self.random.random() < kept}
        self.now |= {row: ranks[row] for row in self.some(self.all_rows())}
        main = self.table.main
        if self.arity and self.random.random() < 0.7:
            main.index(tuple(range(self.arity)))
        self.table.become(run_of(list(self.full(self.now)), self.table.width, MORE))
        self.recomputed = True
        self.check()

    def end(self) -> None:
        if self.random.random() < 0.3:
            self.table.roll_back()
            self.now = self.before
        else:
            self.table.commit()
        self.before, self.recomputed = dict(self.now), False
        assert not self.table.is_changed
        assert self.table.changes() == ([], [])
        self.check()
        paths = [self.table.lookup(*way) for way in WAYS[self.arity]]
        assert all(rows for lookup in paths for rows in lookup.extra.values())  # none is kept for rows that left

    # what can be seen

    def check(self) -> None:
        table, came, went = self.table, self.now.keys() - self.before.keys(), self.before.keys() - self.now.keys()
        assert table.rows == len(self.now)
        assert {row for row in self.all_rows() if table.has(row)} == set(self.now)
        assert Counter(table.scan()) == Counter(self.now.keys())
        added, removed = (sorted(as_rows(rows, self.arity)) for rows in table.changes())
        assert (added, removed) == (sorted(came), sorted(went))
        if came or went:
            assert table.is_changed
        assert table.has_ghosts is (self.recomputed and bool(went))
        assert sorted(table.ghosts()) == (sorted(went) if self.recomputed else [])
        for selection, positions in WAYS[self.arity]:
            self.check_way(selection, positions)

    def check_way(self, selection: Selection, positions: tuple[int, ...]) -> None:
        lookup = self.table.lookup(selection, positions)
        if self.random.random() < 0.2:
            lookup.prepare()
        new = {row: rank for row, rank in self.now.items() if matches(row, selection)}
        either = {row for row in self.before.keys() | self.now.keys() if matches(row, selection)}
        assert Counter(self.seen(selection, Visibility.NEW)) == Counter(self.full(new))
        assert {row[: self.arity] for row in self.seen(selection, Visibility.EITHER)} == either
        for key in product(range(MORE), repeat=len(positions)):
            here = {row: rank for row, rank in new.items() if tuple(row[n] for n in positions) == key}
            assert sorted(lookup.find(key, Visibility.NEW)) == sorted(self.full(here)), (selection, positions, key)
            assert lookup.count(key) == len(here)
            found = lookup.find(key, Visibility.EITHER)
            assert {row[: self.arity] for row in found} == {r for r in either if tuple(r[n] for n in positions) == key}
            assert {len(row) for row in found} <= {self.table.width}

    def seen(self, selection: Selection, visibility: Visibility) -> list[CodeRow]:
        runs: list[Run] = [run.compact() for run in self.table.views(selection, visibility)]
        rows = [row for run in runs for row in as_rows(run, self.table.width)]
        assert all(code < run.domain for run in runs for row in as_rows(run, self.arity) for code in row)
        return rows


@pytest.mark.parametrize("ranked", [False, True], ids=["plain", "ranked"])
@pytest.mark.parametrize("arity", [0, 1, 2])
@given(st.integers(0, 2**32))
@tries(60)
def test_any_script_of_changes_leaves_what_a_dict_would_hold(arity: int, ranked: bool, seed: int) -> None:
    random = Random(seed)
    model = Model(random, arity, ranked)
    model.check()
    for _ in range(4):
        random.choice((model.edit, model.edit, model.recompute))()
        model.end()


def pairs(count: int, thresholds: EngineThresholds = ENGINE_THRESHOLDS, domain: int = 1_000) -> Table:
    return Table(Predicate("P", 2), run_of([(n, n) for n in range(count)], 2, domain), thresholds=thresholds)


@pytest.mark.parametrize(("arity", "domain"), [(2, 6), (1, 4), (0, 0)])
def test_rows_beside_columns_are_a_run_that_has_room_for_their_codes(arity: int, domain: int) -> None:
    kept, full = AddedRows(3, arity), (3, 5, 9)
    assert (kept.run().rows, kept.run().domain) == (0, 0)
    kept.add(full[:arity], full)
    assert (as_rows(kept.run(), 3), kept.run().domain) == ([full], domain)
    assert kept.run() is kept.run()
    kept.drop(full[:arity])
    assert (kept.run().rows, kept.run().domain) == (0, 1 if arity else 0)
    kept.add(full[:arity], full)
    kept.drop(full[:arity])
    assert kept.run().rows == 0


def test_what_did_not_change_is_not_copied() -> None:
    table = pairs(5)
    for visibility in Visibility:
        assert table.views(NO_SELECTION, visibility) == [table.main]
    assert table.current() is table.main
    assert table.lookup(NO_SELECTION, (0,)) is table.lookup(NO_SELECTION, (0,))
    table.remove((1, 1))
    assert table.views(NO_SELECTION, Visibility.EITHER) == [table.main]
    assert isinstance(table.views(NO_SELECTION, Visibility.NEW)[0], LiveRows)


def test_one_run_of_the_new_state_has_room_for_its_codes() -> None:
    table = pairs(5, domain=10)
    assert table.add((20, 3))
    assert [run.domain for run in table.views(NO_SELECTION, Visibility.NEW)] == [10, 21]
    assert table.current().domain == 21
    table.commit()
    assert [run.domain for run in table.views(NO_SELECTION, Visibility.NEW)] == [10, 21]
    assert (table.remove((20, 3)), table.add((4, 2))) == (True, True)
    assert table.current().domain == 10
    run = table.current()
    assert (run.rows, run.column(0).tolist(), run.column(1).tolist()) == (6, [0, 1, 2, 3, 4, 4], [0, 1, 2, 3, 4, 2])


@pytest.mark.parametrize(("new", "indexed"), [(63, False), (64, True)])
def test_many_rows_are_looked_up_at_once(new: int, indexed: bool) -> None:
    table = pairs(100)
    assert table.put({(n, n): 0 for n in range(200, 200 + new)}) == [(n, n) for n in range(200, 200 + new)]
    assert table.main.is_indexed((0, 1)) is indexed


@pytest.mark.parametrize(
    ("rows", "added", "removed", "flush_from", "flushed"),
    [
        (0, 3, 0, 3, False),
        (0, 4, 0, 3, True),
        (9, 2, 2, 3, True),
        (9, 1, 2, 3, False),
        (64, 4, 0, 0, False),
        (64, 5, 0, 0, True),
        (64, 0, 5, 0, True),
        (64, 5, 0, 5, False),
    ],
)
def test_what_stands_beside_the_columns_becomes_one_of_them_when_it_is_much(
    rows: int, added: int, removed: int, flush_from: int, flushed: bool
) -> None:
    table = pairs(rows, EngineThresholds(flush_rows=flush_from))
    before = table.main
    table.take([(n, n) for n in range(removed)])
    table.put({(500 + n, n): 0 for n in range(added)})
    table.commit()
    assert (table.main is not before) is flushed
    assert table.rows == rows + added - removed
    assert table.main.rows == (table.rows if flushed else rows)


def test_a_row_that_went_and_came_back_stands_where_it_stood() -> None:
    table = pairs(5)
    assert (table.remove((1, 1)), table.add((1, 1))) == (True, True)
    table.commit()
    assert table.views(NO_SELECTION, Visibility.NEW) == [table.main]
    assert (table.changes(), table.lookup(NO_SELECTION, ()).count(())) == (([], []), 5)


def test_a_path_is_ready_before_the_first_look_and_reads_no_column_for_a_key_without_rows() -> None:
    facts = [Fact(Predicate("Field", 3), (str(n), "name", str(n % 3))) for n in range(9)]
    source = ArraySource(facts)
    table = Table(facts[0].predicate, SourceRun(source, facts[0].predicate, source.code_count))
    lookup = table.lookup(NO_SELECTION, (0,))
    assert lookup.find((1,), Visibility.NEW) == []  # the code of a name, which is never first
    assert len(source.read) == 1
    assert lookup.find((0,), Visibility.NEW) == [(0, 1, 0)]
    assert len(source.read) == 3
    ready = table.lookup(NO_SELECTION, (2,))
    ready.prepare()
    assert table.main.is_indexed((2,))
    table.lookup(NO_SELECTION, ()).prepare()
    assert not table.main.is_indexed(())
