"""Runs: immutable batches of distinct rows as columns of codes (030, evaluation).

Rule: a run never changes, so whatever was worked out for it once (a selection, an index, a count) stays true.

A relation is a few runs; a scan with constants is a view of a run; a store's relation is a run that reads its columns
when they are first needed, and only the slice that a constant names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from lace.datalog.engine.index import NO_ROWS, Codes, Compared, Index, Mask, Rows, build_index, is_dense, matching
from lace.datalog.engine.meeting import AnyLevel, build_level
from lace.datalog.engine.sorting import numbered, sorted_unique
from lace.datalog.language.syntax import Predicate
from lace.datalog.source import ColumnSource
from lace.thresholds import ENGINE_THRESHOLDS

CodeRow = tuple[int, ...]
Selection = tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]  # constants, equal positions
NO_SELECTION: Selection = ((), ())
_COMPARED_KEYS = 16  # keys that all rows are compared with before an index is made: it costs some dozens of them


class Run:
    """What every run can do; subclasses say where columns come from."""

    def __init__(self, rows: int, domain: int) -> None:
        self.rows = rows
        self.domain = domain
        self._indexes: dict[tuple[int, ...], Index] = {}
        self._keys_compared: dict[tuple[int, ...], int] = {}
        self._views: dict[Selection, Run] = {}
        self._distinct: dict[int, int] = {}
        self._flags: dict[int, Mask] = {}
        self._cells: list[memoryview] | None = None
        self._narrowest = -1
        self._evenness: dict[int, float] = {}
        self._levels: dict[tuple[int, ...], AnyLevel] = {}

    has_dead_rows = False  # that its indexes and levels still have

    def column(self, position: int) -> Codes:
        """The codes at a position."""
        raise NotImplementedError

    def at(self, position: int, rows: Rows) -> Codes:
        """The codes at a position of rows that an index of this run found."""
        return self.column(position)[rows]

    def compact(self) -> Run:
        """The same rows as a run whose columns and indexes count rows alike."""
        return self

    def index(self, positions: tuple[int, ...]) -> Index:
        """Rows by the codes at some positions."""
        found = self._indexes.get(positions)
        if found is None:
            found = build_index([self.column(position) for position in positions], self.domain)
            self._indexes[positions] = found
        return found

    def level(self, positions: tuple[int, ...]) -> AnyLevel:
        """The codes at the last of some positions, below those at the others."""
        found = self._levels.get(positions)
        if found is None:
            columns = [self.column(position) for position in positions]
            above = [self.level(positions[:depth]) for depth in range(1, len(positions))]
            found = self._levels[positions] = build_level(columns, self.domain, above)
        return found

    def sought(self, positions: tuple[int, ...], keys: Sequence[Codes]) -> Index:
        """What answers for some keys: an index, or nothing but a look at all rows while few keys were asked for."""
        return self._compared(positions, keys) or self.index(positions)

    def _compared(self, positions: tuple[int, ...], keys: Sequence[Codes]) -> Index | None:
        asked = self._keys_compared.get(positions, 0) + len(keys[0])
        if positions in self._indexes or self.rows < ENGINE_THRESHOLDS.compared_run_rows or asked > _COMPARED_KEYS:
            return None
        self._keys_compared[positions] = asked
        return Compared([self.column(position) for position in positions], keys)

    def is_indexed(self, positions: tuple[int, ...]) -> bool:
        """Whether asking for an index is free."""
        return positions in self._indexes

    def is_flagged(self, position: int) -> bool:
        """Whether a bitmap says which codes a position has."""
        return position in self._flags

    def contains(self, positions: tuple[int, ...], keys: Sequence[Codes]) -> Mask:
        """Which keys have a row; for a single dense column a bitmap is enough."""
        # A bitmap that is there is cheapest; without one, a few keys are not worth making anything for.
        if positions[0] in self._flags or (compared := self._compared(positions, keys)) is None:
            if len(positions) == 1 and positions not in self._indexes and is_dense(self.domain, self.rows):
                flags = self._flags_of(positions[0])
                return flags[np.minimum(keys[0], np.uint32(self.domain))]
            compared = self.index(positions)
        return compared.counts(keys) > 0

    def _flags_of(self, position: int) -> Mask:
        flags = self._flags.get(position)
        if flags is None:
            flags = np.zeros(self.domain + 1, np.bool_)
            flags[self.column(position)] = True
            self._flags[position] = flags
        return flags

    def distinct(self, position: int) -> int:
        """How many different codes a position has."""
        if position not in self._distinct:
            column = self.column(position)
            if bool((column[1:] > column[:-1]).all()):  # the records of a store mostly are
                self._distinct[position] = self.rows
            elif is_dense(self.domain, self.rows):
                self._distinct[position] = int(np.count_nonzero(self._flags_of(position)))
            else:
                self._distinct[position] = len(sorted_unique(column))
        return self._distinct[position]

    def most(self, position: int) -> int:
        """How many rows share the most common code at a position."""
        return int(self._counts(position).max(initial=0))

    def _counts(self, position: int) -> npt.NDArray[np.int64]:
        """How many rows each code has, those that have none perhaps among them."""
        column = self.column(position)
        return np.bincount(column if is_dense(self.domain, self.rows) else numbered(column)[1])

    def evenness(self, position: int) -> float:
        """How many different codes there would be if all were as common as the code of a row picked at random."""
        if position not in self._evenness:
            counts = self._counts(position).astype(np.float64)
            # The inverse Simpson index. A join meets codes as often as rows have them, so the plain number of
            # different codes would promise too little where one of them is in half of all rows.
            self._evenness[position] = self.rows**2 / max(1.0, float(counts @ counts))
        return self._evenness[position]

    def narrowest(self, arity: int) -> int:
        """The position whose most common code is the least common: the best one to look rows up by."""
        if self._narrowest < 0:
            self._narrowest = min(range(arity), key=self.most)
        return self._narrowest

    def select(self, selection: Selection) -> Run:
        """The rows that match constants and equal positions."""
        if selection == NO_SELECTION:
            return self
        view = self._views.get(selection)
        if view is None:
            view = self._views[selection] = self._select(selection)
        return view

    def _select(self, selection: Selection) -> Run:
        return RunView(self, self._matching(*selection))

    def _matching(self, constants: Sequence[tuple[int, int]], equal: Sequence[tuple[int, int]]) -> Rows:
        codes = [code for _, code in constants]
        if min(codes, default=0) < 0:  # a constant that no fact holds has no code
            return NO_ROWS
        found = matching([self.column(position) for position, _ in constants], codes) if codes else None
        for first, second in equal:
            left, right = self.column(first), self.column(second)
            found = np.flatnonzero(left == right) if found is None else found[left[found] == right[found]]
        assert found is not None
        return found

    def cells(self, arity: int) -> list[memoryview]:
        """The columns as plain integers, for one row at a time."""
        if self._cells is None or len(self._cells) < arity:
            self._cells = [np.ascontiguousarray(self.column(position)).data for position in range(arity)]
        return self._cells

    def part_for(self, row: Sequence[int]) -> Run:
        """A run that has a row if this one has it, the smaller the better; -1 stands for any code."""
        return self

    def own_bytes(self) -> int:
        """Bytes of the columns held by this run itself."""
        return 0

    def nbytes(self) -> int:
        """Bytes held by this run, its indexes and its views."""
        held = sum(index.nbytes for index in self._indexes.values()) + sum(f.nbytes for f in self._flags.values())
        held += sum(level.nbytes for level in self._levels.values())
        return self.own_bytes() + held + sum(view.nbytes() for view in self._views.values())


class ColumnRun(Run):
    """A run over arrays in memory."""

    def __init__(self, columns: Sequence[Codes], rows: int, domain: int) -> None:
        super().__init__(rows, domain)
        self._columns = columns

    def column(self, position: int) -> Codes:
        return self._columns[position]

    def _select(self, selection: Selection) -> Run:
        # Of a twin over the same columns: a view of this very run, which remembers it, would make a circle.
        return RunView(ColumnRun(self._columns, self.rows, self.domain), self._matching(*selection))

    def own_bytes(self) -> int:
        return sum(column.nbytes for column in self._columns)


class RunView(Run):
    """Some rows of another run; columns are gathered when first read."""

    def __init__(self, parent: Run, numbers: Rows) -> None:
        super().__init__(len(numbers), parent.domain)
        self._parent = parent
        self._numbers: npt.NDArray[np.int32] = numbers.astype(np.int32)  # rows have 31 bits; this halves what is held
        self._gathered: dict[int, Codes] = {}

    def column(self, position: int) -> Codes:
        found = self._gathered.get(position)
        if found is None:
            found = self._gathered[position] = self._parent.column(position)[self._numbers]
        return found

    def own_bytes(self) -> int:
        return self._numbers.nbytes + sum(column.nbytes for column in self._gathered.values())


class Buffers:
    """The buffers of a column source as columns, each read when it is first needed."""

    def __init__(self, buffers: Callable[[], Sequence[memoryview]]) -> None:
        self._buffers = buffers
        self._columns: dict[int, Codes] = {}

    def column(self, position: int) -> Codes:
        if position not in self._columns:
            self._columns[position] = np.frombuffer(self._buffers()[position], np.uint32)
        return self._columns[position]

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for column in self._columns.values())


class BufferRun(Run):
    """A run over buffers."""

    def __init__(self, buffers: Buffers, rows: int, domain: int) -> None:
        super().__init__(rows, domain)
        self._buffers = buffers

    def column(self, position: int) -> Codes:
        return self._buffers.column(position)

    def _select(self, selection: Selection) -> Run:
        # Of a twin, as in a ColumnRun.
        return RunView(BufferRun(self._buffers, self.rows, self.domain), self._matching(*selection))

    def own_bytes(self) -> int:
        return self._buffers.nbytes


class SourceRun(BufferRun):
    """A predicate of a column source."""

    def __init__(self, source: ColumnSource, predicate: Predicate, domain: int) -> None:
        super().__init__(Buffers(partial(source.columns, predicate)), source.count(predicate), domain)
        self._source = source
        self._predicate = predicate

    def part_for(self, row: Sequence[int]) -> Run:
        parts = (self._part(position, code) for position, code in enumerate(row) if code >= 0)
        return next((part for part in parts if part is not None), self)

    def _select(self, selection: Selection) -> Run:
        constants, equal = selection
        for position, code in constants:
            part = self._part(position, code)
            if part is not None:
                rest = tuple(pair for pair in constants if pair[0] != position)
                return part.select((rest, equal))
        return super()._select(selection)

    def _part(self, position: int, code: int) -> Run | None:
        """The rows that have a code at a position, if the source keeps them apart."""
        key: Selection = (((position, code),), ())
        part = self._views.get(key)
        if part is None:
            slices = self._source.slices(self._predicate, position)
            if slices is None:
                return None
            columns = slices.get(code) or [memoryview(b"")] * self._predicate.arity
            rows = len(columns[0])
            part = self._views[key] = BufferRun(Buffers(lambda: columns), rows, self.domain)
        return part


_NONE: Codes = np.empty(0, np.uint32)


def merge_runs(runs: Sequence[Run], arity: int, domain: int) -> Run:
    """Several runs as one."""
    if len(runs) == 1:
        return runs[0]
    columns = [np.concatenate([_NONE, *(run.column(position) for run in runs)]) for position in range(arity)]
    return ColumnRun(columns, sum(run.rows for run in runs), domain)
