"""Plans over whole columns (030, evaluation).

Rule: a node takes and gives batches of rows; no batch grows past a fixed size, and no join starts before the rows that
it would give were counted against the limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from time import perf_counter
from typing import Protocol, assert_never

import numpy as np

from lace.datalog.engine.dictionary import Dictionary
from lace.datalog.engine.index import Codes, Mask, Rows, spread
from lace.datalog.engine.meeting import Meeting, Partner
from lace.datalog.engine.rank_counts import Counts, ranked_counts
from lace.datalog.engine.runs import Run, Selection
from lace.datalog.engine.sorting import numbered, sorted_unique
from lace.datalog.engine.stats import Stats
from lace.datalog.engine.verdicts import Verdicts, ordered
from lace.datalog.language.comparisons import integer_key
from lace.datalog.language.diagnosis import wide_join_advice
from lace.datalog.language.syntax import Constant, Predicate, Term, Variable
from lace.datalog.meter import STEP_ROWS, Meter, plain_predicate
from lace.datalog.planning.plan import CountTest, Filter, Join, Meet, Node, Project, Rank, Scan, Unit, Version, Without
from lace.thresholds import ENGINE_THRESHOLDS
from lace.values import dataclass

_FAR = 1 << 62  # beyond every count
_MEETING_ROWS = 1 << 14  # values that are looked at together: what a cache holds, and little beside the facts
_PAIR_WORDS = 4  # a pair of row numbers, as long as the columns are gathered


@dataclass(slots=True)
class Bindings:
    """Some rows: one column per variable."""

    rows: int
    columns: dict[str, Codes]

    def where(self, mask: Mask) -> Bindings:
        """The rows that a mask keeps."""
        kept = np.flatnonzero(mask)
        if len(kept) == self.rows:
            return self
        return Bindings(len(kept), {name: column[kept] for name, column in self.columns.items()})

    def part(self, low: int, high: int) -> Bindings:
        """Some rows that stand together."""
        if not low and high >= self.rows:
            return self
        columns = {name: column[low:high] for name, column in self.columns.items()}
        return Bindings(min(high, self.rows) - low, columns)


class Readable(Protocol):
    """What a scan reads."""

    def views(self, version: Version, selection: Selection) -> list[Run]:
        """The runs of a version, without the rows that do not match a selection."""


class VectorExecutor:
    """Runs plans over relations."""

    def __init__(
        self,
        relation: Callable[[Predicate], Readable],
        dictionary: Dictionary,
        verdicts: Verdicts,
        meter: Meter,
        stats: Stats,
        batch_rows: int = ENGINE_THRESHOLDS.batch_rows,
    ) -> None:
        self._relation = relation
        self._dictionary = dictionary
        self._verdicts = verdicts
        self._meter = meter
        self._stats = stats
        self._batch_rows = batch_rows
        self._ranked: dict[Rank, Counts | None] = {}
        self._count_of: Callable[[Rank, int], int] | None = None

    def head_rows(self, root: Project) -> Iterator[tuple[Sequence[Codes], int]]:
        """The rows of a rule's head, repeats kept."""
        for batch in self._run(root.input):
            yield [self._head_column(term, batch) for term in root.terms], batch.rows

    def _head_column(self, term: Term, batch: Bindings) -> Codes:
        if isinstance(term, Variable):
            return batch.columns[term.name]
        assert isinstance(term, Constant)
        return np.full(batch.rows, self._dictionary.code(term.value), np.uint32)

    def views(self, scan: Scan) -> list[Run]:
        """The runs of a scan that have rows."""
        selection = self.selection(scan)
        found = self._relation(scan.predicate).views(scan.version, selection)
        return [view for view in found if view.rows]

    def _compact_views(self, scan: Scan) -> list[Run]:
        """The same for reading whole columns."""
        return [view.compact() for view in self.views(scan)]

    def selection(self, scan: Scan) -> Selection:
        """Constants as codes."""
        return tuple((place, self._dictionary.code(text)) for place, text in scan.constants), scan.equal

    def _run(self, node: Node) -> Iterator[Bindings]:
        """The batches of a node, counted and timed."""
        self._meter.touch(STEP_ROWS)
        batches = self._batches(node)
        while True:
            started = perf_counter()
            batch = next(batches, None)
            self._stats.add(node, batch.rows if batch else 0, perf_counter() - started)
            if batch is None:
                return
            if batch.rows:
                if not isinstance(node, Join | Meet):  # which count before they pair
                    self._meter.touch(batch.rows)
                yield batch

    def _in_parts(self, node: Node) -> Iterator[Bindings]:
        """The batches of a node as parts of bounded size: looking up all rows of a relation is no step that cannot be
        stopped."""
        for batch in self._run(node):
            for low in range(0, batch.rows, self._batch_rows):
                part = batch if batch.rows <= self._batch_rows else batch.part(low, low + self._batch_rows)
                self._meter.touch(0)
                yield part

    def _batches(self, node: Node) -> Iterator[Bindings]:
        match node:
            case Unit():
                yield Bindings(1, {})
            case Scan():
                for view in self._compact_views(node):
                    yield Bindings(view.rows, {name: view.column(place) for place, name in node.variables})
            case Join():
                yield from self._join(node)
            case Meet():
                yield from self._meet(node)
            case Without():
                for batch in self._in_parts(node.input):
                    yield batch.where(~self._matched(node.scan, node.on, batch))
            case CountTest():
                for batch in self._run(node.input):
                    yield batch.where(self._count_mask(node, batch))
            case Filter():
                for batch in self._run(node.input):
                    yield batch.where(self._verdicts.mask(node.test, batch.columns, batch.rows))
            case _:
                assert_never(node)

    # joins

    def _join(self, node: Join) -> Iterator[Bindings]:
        produced = 0
        bound = {name: place for place, name in node.binds}
        views: list[Run] | None = None
        for batch in self._in_parts(node.input):
            if views is None:  # not before there is a batch: what is never asked for need not be read
                views = self.views(node.scan) if node.on else self._compact_views(node.scan)
            if not bound:  # the relation only filters, so that a row with many matches stays one row
                kept = batch.where(self._matched(node.scan, node.on, batch))
                self._meter.touch(kept.rows)
                yield Bindings(kept.rows, {name: kept.columns[name] for name in node.keep})
                continue
            for view in views:
                for places, rows in self._pairs(node, batch, view):
                    produced += len(places)
                    self._require_room(produced, node)
                    self._meter.touch(len(places))
                    self._meter.require_room(4 * len(places) * (len(node.keep) + _PAIR_WORDS))
                    yield _paired(node.keep, bound, batch, places, view, rows)

    def _pairs(self, node: Join, batch: Bindings, view: Run) -> Iterator[tuple[Rows, Rows]]:
        """Matching (batch row, view row) pairs in parts of bounded size."""
        if not node.on:
            counts: Rows = np.full(batch.rows, view.rows, np.int64)
            self._require_room(batch.rows * view.rows, node)
            for low, high in batches_of(counts, self._batch_rows):
                yield _shift(spread(np.zeros(high - low, np.int64), counts[low:high]), low)
            return
        positions = _positions(node.scan, node.on)
        keys = [batch.columns[name] for name in node.on]
        index = view.sought(positions, keys)
        # Even if every key had as many rows as the most common one, the pairs fit: no need to count them first.
        if batch.rows * index.most <= self._batch_rows:
            yield index.expand(keys)
            return
        counts = index.counts(keys)
        self._require_room(int(counts.sum()), node)
        for low, high in batches_of(counts, self._batch_rows):
            yield _shift(index.expand([key[low:high] for key in keys]), low)

    def _require_room(self, rows: int, node: Join | Meet) -> None:
        allowed = self._meter.limits.max_working_rows
        if rows > allowed:
            if isinstance(node, Meet):
                what, shared = f"{' and '.join(node.names)} have", node.known
            else:
                what, shared = f"a join with {plain_predicate(node.scan.predicate)} makes", node.on
            advice = wide_join_advice(self._meter.rule, shared)
            raise self._meter.exceeded("max_working_rows", allowed, f"{what} {rows:,} rows or more", advice)

    # circles

    def _meet(self, node: Meet) -> Iterator[Bindings]:
        views: list[list[Run]] | None = None
        looked_at = 0

        def room(values: int) -> None:
            nonlocal looked_at
            looked_at += values
            self._require_room(looked_at, node)
            self._meter.touch(values)

        for batch in self._run(node.input):
            if views is None:
                views = [self.views(scan) for scan in node.scans]
            if not all(views):
                return
            atoms = list(zip(node.scans, views, strict=True))
            for low in range(0, batch.rows, _MEETING_ROWS):
                few = batch.part(low, low + _MEETING_ROWS)
                for found in self._met(atoms, node, few, node.names, room):
                    yield Bindings(found.rows, {name: found.columns[name] for name in node.keep})

    def _met(
        self, atoms: Sequence[Read], node: Meet, batch: Bindings, names: Sequence[str], room: Callable[[int], None]
    ) -> Iterator[Bindings]:
        """Bind some variables, for each row in the order that has the fewest values to look at: at a node that very
        many others know, it is theirs that are followed first."""
        if not batch.rows:
            return
        near = [name for name in names if _is_near(atoms, batch, name)] or names
        meetings = {name: _meeting(atoms, batch, name) for name in near}
        fewest = np.stack([meeting.fewest for meeting in meetings.values()])
        chosen = np.argmin(fewest, axis=0)
        room(int(fewest[chosen, np.arange(batch.rows)].sum()))
        for number, (name, meeting) in enumerate(meetings.items()):
            rest = [other for other in names if other != name]
            mine = np.flatnonzero(chosen == number)
            for rows, values in meeting.found(mine, min(self._batch_rows, _MEETING_ROWS), batches_of):
                self._meter.require_room(4 * len(rows) * (len(node.keep) + _PAIR_WORDS))
                if not rest and name not in node.keep:
                    rows = sorted_unique(rows)  # a row with many values stays one row
                    yield Bindings(len(rows), {name: batch.columns[name][rows] for name in node.keep})
                    continue
                found = Bindings(len(rows), {other: column[rows] for other, column in batch.columns.items()})
                found.columns[name] = values
                if rest:
                    yield from self._met(atoms, node, found, rest, room)
                else:
                    yield found

    def _matched(self, scan: Scan, on: Sequence[str], batch: Bindings) -> Mask:
        """Which rows have at least one matching fact."""
        views = self.views(scan)
        if not on:
            return np.full(batch.rows, bool(views), np.bool_)
        positions, keys = _positions(scan, on), [batch.columns[name] for name in on]
        mask = np.zeros(batch.rows, np.bool_)
        for view in views:
            mask |= view.contains(positions, keys)
        return mask

    # cardinality

    def _count_mask(self, node: CountTest, batch: Bindings) -> Mask:
        counts = self._counts(node, batch)
        if isinstance(node.bound, Constant):
            bound = bound_number(node.bound.value)
            if bound is None:
                return np.zeros(batch.rows, np.bool_)
            return ordered(counts, node.operator, np.full(batch.rows, bound, np.int64))
        assert isinstance(node.bound, Variable)
        # Each distinct bound is read as a number once, however many rows have it.
        codes, inverse = numbered(batch.columns[node.bound.name])
        numbers = [bound_number(text) for text in self._dictionary.texts(codes)]
        valid = np.array([number is not None for number in numbers], np.bool_)[inverse]
        bounds = np.array([number or 0 for number in numbers], np.int64)[inverse]
        return ordered(counts, node.operator, bounds) & valid

    def _counts(self, node: CountTest, batch: Bindings) -> Counts:
        """How many facts match each row; none is a count too (030-CARD-08)."""
        if node.rank is not None and self._count_of is not None:
            identities = batch.columns[node.identity].tolist()
            return np.array([self._count_of(node.rank, identity) for identity in identities], np.int64)
        ranked = self._ranked_counts(node.rank) if node.rank is not None else None
        if ranked is not None:
            return ranked[batch.columns[node.identity]]
        views = self.views(node.scan)
        if not node.on:
            return np.full(batch.rows, sum(view.rows for view in views), np.int64)
        positions, keys = _positions(node.scan, node.on), [batch.columns[name] for name in node.on]
        counts = np.zeros(batch.rows, np.int64)
        for view in views:
            counts += view.sought(positions, keys).counts(keys)
        return counts

    def count_ranks_by(self, count_of: Callable[[Rank, int], int]) -> None:
        """Ask somebody who keeps an order for counts, instead of sorting all candidates."""
        self._count_of = count_of

    def forget_ranks(self) -> None:
        """Candidates changed."""
        self._ranked = {}

    def _ranked_counts(self, rank: Rank) -> Counts | None:
        if rank not in self._ranked:
            views = self.views(rank.candidates)
            self._meter.touch(sum(view.rows for view in views))
            self._ranked[rank] = ranked_counts(rank, views, self._verdicts, self._dictionary.size)
        return self._ranked[rank]


Read = tuple[Scan, list[Run]]


def _is_near(atoms: Sequence[Read], batch: Bindings, name: str) -> bool:
    """Whether some atom has a further variable beside a known one."""
    names = [{other for _, other in scan.variables} for scan, _ in atoms]
    return any(name in own and not own.isdisjoint(batch.columns) for own in names)


def _meeting(atoms: Sequence[Read], batch: Bindings, name: str) -> Meeting:
    """The values of a variable in all atoms that have it, by what the rows of a batch know."""
    partners: list[list[Partner]] = []
    whole: list[bool] = []
    for scan, views in atoms:
        places = {other: place for place, other in scan.variables}
        if name in places:
            known = [other for other in places if other in batch.columns]
            at = (*(places[other] for other in known), places[name])
            partners.append([Partner(view, at, tuple(batch.columns[other] for other in known)) for view in views])
            whole.append(len(at) + len(scan.constants) + len(scan.equal) == scan.predicate.arity)
    return Meeting(partners, batch.rows, whole)


def _positions(scan: Scan, on: Sequence[str]) -> tuple[int, ...]:
    places: Mapping[str, int] = {name: place for place, name in scan.variables}
    return tuple(places[name] for name in on)


def _paired(
    names: Sequence[str], bound: Mapping[str, int], batch: Bindings, places: Rows, view: Run, rows: Rows
) -> Bindings:
    """The named variables of pairs: those that a view binds from there, all others from the batch."""
    columns = {name: view.at(bound[name], rows) if name in bound else batch.columns[name][places] for name in names}
    return Bindings(len(places), columns)


def batches_of(counts: Rows, batch_rows: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows whose counts add up to about one batch; a single row may pass it."""
    ends = np.cumsum(counts)
    low = 0
    while low < len(counts):
        before = int(ends[low - 1]) if low else 0
        high = max(low + 1, int(np.searchsorted(ends, before + batch_rows, "right")))
        yield low, high
        low = high


def _shift(pairs: tuple[Rows, Rows], low: int) -> tuple[Rows, Rows]:
    return pairs[0] + low, pairs[1]


def bound_number(text: str) -> int | None:
    """A bound as a number that compares with every count as the text does (P4: of any length)."""
    key = integer_key(text)
    if key is None:
        return None
    # No count has more than 18 digits, so beyond that only the sign of a bound matters.
    return int(text) if abs(key[0]) <= 18 else (_FAR if key[0] > 0 else -_FAR)
