"""Views of rules that follow changes to their facts: `lace.follow_rules`.

Rule: after every `apply` a view holds exactly what re-evaluating its rules would give; a change that fails (a limit, an
interrupt, a bad fact) leaves the view as it was.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from typing import Protocol, runtime_checkable

from lace.datalog.engine import LateRows, Materialized, Meter, RowSource, materialize
from lace.datalog.language.annotations import read_annotated
from lace.datalog.language.limiting import stated_limits
from lace.datalog.language.syntax import Fact, Predicate
from lace.datalog.language.validate import LOCAL_PROFILE, RAW_PROFILE, CheckedProgram, check_program
from lace.datalog.source import FactSource, MemorySource, all_facts
from lace.errors import CursorExpired, InvalidInput, NotFound
from lace.limits import EngineLimits
from lace.notation.decimal import natural
from lace.store.base import RecordStore, StoreCursor
from lace.values import dataclass

Row = tuple[str, ...]
RowsByPredicate = Mapping[Predicate, tuple[Row, ...]]


@runtime_checkable
class HasRecordStore(Protocol):
    """The part of a lace that a view needs."""

    @property
    def store(self) -> RecordStore:
        """Where its records are."""


@dataclass(frozen=True, slots=True)
class RuleChanges:
    """Derived facts that were added and removed, by predicate, sorted; their texts are made on first use."""

    added: RowsByPredicate = field(default_factory=dict)
    removed: RowsByPredicate = field(default_factory=dict)
    cursor: str = ""  # where to continue

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)


class RuleSnapshot:
    """What a view held at one moment; later changes do not show. Over a lace, readable while the lace is open."""

    def __init__(self, derived: Mapping[str, Predicate], rows: Mapping[Predicate, Callable[[], list[Row]]]) -> None:
        self._derived = derived
        self._rows = rows

    def rows(self, predicate: str | Predicate) -> list[Row]:
        """The facts of a predicate, sorted."""
        return sorted(self._rows[_named(self._derived, predicate)]())


class RuleView:
    """The derived facts of a program over facts that change."""

    def __init__(
        self, program: CheckedProgram, origin: _Origin, meter: Meter, max_kept_changes: int, max_kept_facts: int
    ) -> None:
        self._program = program
        self._origin = origin
        self._meter = meter
        self._derived = {_label(predicate, program): predicate for predicate in sorted(program.derived)}
        self._kept: deque[RuleChanges] = deque()
        self._kept_facts = 0
        self._max_kept = max_kept_changes, max_kept_facts
        self._number = 0
        self._started: Materialized | None = origin.start(program, meter)

    @property
    def _facts(self) -> Materialized:
        if self._started is None:
            raise InvalidInput("this view is closed", rule="follow-closed")
        return self._started

    # reading

    @property
    def predicates(self) -> tuple[Predicate, ...]:
        """What the rules derive."""
        return tuple(self._derived.values())

    @property
    def counted_only(self) -> frozenset[Predicate]:
        """The predicates that are only counted, by rank: they can be read, but their changes are not reported."""
        return self._facts.ranked

    def rows(self, predicate: str | Predicate) -> list[Row]:
        """The facts of a predicate, sorted; a name is enough if only one predicate has it."""
        return self._facts.rows(_named(self._derived, predicate))

    def count(self, predicate: str | Predicate) -> int:
        """How many facts a predicate has."""
        return self._facts.count(_named(self._derived, predicate))

    def __contains__(self, fact: Fact) -> bool:
        return fact.predicate in self._program.derived and self._facts.contains(fact)

    def __iter__(self) -> Iterator[Fact]:
        return (Fact(predicate, row) for predicate in self.predicates for row in self._facts.rows(predicate))

    def snapshot(self) -> RuleSnapshot:
        """What the view holds now; only what changes later is copied."""
        return RuleSnapshot(self._derived, {p: self._facts.frozen(p) for p in self.predicates})

    @property
    def rows_touched(self) -> int:
        """The work of the last change, or of the evaluation before the first (P36)."""
        return self._meter.rows

    def close(self) -> None:
        """Release everything; snapshots and changes that were handed out stay readable."""
        if self._started is not None:
            self._started.close()
            self._started = None

    # following

    @property
    def cursor(self) -> str:
        """The current position, to pass to `since`."""
        return str(self._number)

    def apply(self, added: Iterable[Fact] = (), removed: Iterable[Fact] = ()) -> RuleChanges:
        """Add and remove facts, update what is derived, and return the net changes.

        Over a lace this also takes in everything added and removed there since the last call, so `apply()` alone brings
        the view up to date. Facts passed in stand beside those of the lace, and only such facts can be removed.
        """
        came, went = list(added), list(removed)
        step = self._origin.step(came, went)
        if step is None:
            changes = self._start_over(came, went)
        else:
            found = self._facts.apply(step.added, step.removed)
            self._origin.done(step)
            changes = self._keep(found.added, found.removed)
        return changes

    def since(self, cursor: str) -> RuleChanges:
        """The net changes after a cursor of this view; `CursorExpired` if it no longer knows them."""
        number = natural(cursor)
        back = -1 if number is None else self._number - number
        if not 0 <= back <= len(self._kept):
            raise CursorExpired(f"this view is at {self._number} and knows the last {len(self._kept)} changes")
        added: dict[Predicate, dict[Row, None]] = {}
        removed: dict[Predicate, dict[Row, None]] = {}
        for changes in list(self._kept)[len(self._kept) - back :]:
            _fold(changes.removed, removed, added)
            _fold(changes.added, added, removed)
        return RuleChanges(_sorted(added), _sorted(removed), self.cursor)

    def _start_over(self, came: list[Fact], went: list[Fact]) -> RuleChanges:
        """Evaluate from scratch and compare: the lace changed too much, or no longer knows how it changed."""
        before = {p: set(self._facts.rows(p, ordered=False)) for p in self._followed()}
        old, self._started = self._facts, self._origin.start_with(self._program, self._meter, came, went)
        after = {p: set(self._facts.rows(p, ordered=False)) for p in self._followed()}
        old.close()
        added = {p: tuple(sorted(after[p] - before[p])) for p in after if after[p] - before[p]}
        removed = {p: tuple(sorted(before[p] - after[p])) for p in after if before[p] - after[p]}
        return self._keep(added, removed)

    def _followed(self) -> list[Predicate]:
        return [predicate for predicate in self.predicates if predicate not in self.counted_only]

    def _keep(self, added: RowsByPredicate, removed: RowsByPredicate) -> RuleChanges:
        self._number += 1
        changes = RuleChanges(added, removed, self.cursor)
        self._kept.append(changes)
        self._kept_facts += _size(changes)
        most_changes, most_facts = self._max_kept
        while len(self._kept) > most_changes or (self._kept and self._kept_facts > most_facts):
            self._kept_facts -= _size(self._kept.popleft())
        return changes


@dataclass(frozen=True, slots=True)
class _Step:
    """Facts that a view has to follow, and the position it reaches by that."""

    added: list[Fact]
    removed: list[Fact]
    cursor: StoreCursor
    beside: dict[Fact, None]


class _Origin:
    """Facts in memory: there are no others than those passed in."""

    def __init__(self, source: FactSource) -> None:
        self._source = source

    def start(self, program: CheckedProgram, meter: Meter) -> Materialized:
        """Evaluate over the current facts."""
        return materialize(program, self._source, meter.limits, meter=meter)

    def step(self, came: list[Fact], went: list[Fact]) -> _Step | None:
        """What there is to follow; None if it is better to start over."""
        return _Step(came, went, StoreCursor(), {})

    def done(self, step: _Step) -> None:
        """A step was followed."""

    def start_with(self, program: CheckedProgram, meter: Meter, came: list[Fact], went: list[Fact]) -> Materialized:
        """Re-evaluate over the current facts and those passed in."""
        raise AssertionError("facts in memory are always followed")


class _LaceOrigin(_Origin):
    """The records of a lace, and facts beside them."""

    def __init__(self, store: RecordStore, max_followed_facts: int) -> None:
        self._store = store
        self._cursor = StoreCursor()
        self._beside: dict[Fact, None] = {}
        self._max_followed = max_followed_facts

    def start(self, program: CheckedProgram, meter: Meter) -> Materialized:
        snapshot = self._store.snapshot()
        made = materialize(program, snapshot, meter.limits, extra=RowSource(self._beside), meter=meter)
        self._cursor = snapshot.cursor
        return made

    def _moved(self, came: list[Fact], went: list[Fact]) -> dict[Fact, None]:
        unknown = next((fact for fact in went if fact not in self._beside), None)
        if unknown is not None:
            raise InvalidInput(
                "only facts that were passed in can be removed; remove records with `delete`",
                rule="follow-removed",
                found=str(unknown),
            )
        beside = dict.fromkeys(fact for fact in self._beside if fact not in set(went))
        return beside | dict.fromkeys(came)

    def step(self, came: list[Fact], went: list[Fact]) -> _Step | None:
        beside = self._moved(came, went)
        cursor = self._store.cursor()
        added, removed = came, [fact for fact in went if not self._is_stored(fact)]
        if cursor != self._cursor:
            if cursor.record - self._cursor.record > self._max_followed:
                return None
            changes = self._store.changes(self._cursor)
            if changes is None or _count(changes.added) + _count(changes.removed) > self._max_followed:
                return None
            added = added + list(all_facts(changes.added))
            removed = removed + [fact for fact in all_facts(changes.removed) if fact not in beside]
            cursor = changes.cursor
        return _Step(added, removed, cursor, beside)

    def _is_stored(self, fact: Fact) -> bool:
        return next(self._store.snapshot().query(fact.predicate, *fact.values), None) is not None

    def done(self, step: _Step) -> None:
        self._cursor, self._beside = step.cursor, step.beside

    def start_with(self, program: CheckedProgram, meter: Meter, came: list[Fact], went: list[Fact]) -> Materialized:
        before, self._beside = self._beside, self._moved(came, went)
        try:
            return self.start(program, meter)
        except BaseException:
            self._beside = before
            raise


def follow_rules(
    rules: str,
    source: HasRecordStore | FactSource | Iterable[Fact] = (),
    *,
    limits: EngineLimits | None = None,
    interrupt: Callable[[], bool] | None = None,
    name: str = "<rules>",
    max_kept_changes: int = 1024,
    max_kept_facts: int = 1_000_000,
    max_followed_facts: int = 100_000,
) -> RuleView:
    """Evaluate rules over a lace, a fact source or facts, and follow what changes there.

    >>> edges = [Fact(Predicate("Edge", 2), pair) for pair in (("a", "b"), ("b", "c"))]
    >>> view = follow_rules("Path(X,Y) :- Edge(X,Y).\\nPath(X,Y) :- Path(X,Z), Edge(Z,Y).", edges)
    >>> view.rows("Path")
    [('a', 'b'), ('a', 'c'), ('b', 'c')]
    >>> changes = view.apply(removed=[edges[0]])
    >>> changes.removed[Predicate("Path", 2)]
    (('a', 'b'), ('a', 'c'))

    Without `limits`, those stated by the rules (`#:json {"limits": {…}}`) hold, else the defaults. A change costs what
    it touches, and never more than about twice an evaluation from scratch. `interrupt` is called every few
    milliseconds; once it returns True, the work ends in `EvaluationStopped`. For `since`, a view keeps the last
    `max_kept_changes` changes, with at most `max_kept_facts` facts. If a lace changed by more than `max_followed_facts`
    facts since the last time, the view is re-evaluated.
    """
    if isinstance(source, str | os.PathLike):
        raise InvalidInput(
            "a view follows an open lace: pass `lace.open(path)` instead of a path",
            rule="follow-source",
            found=repr(source),
        )
    limits = limits or stated_limits(rules, name=name)
    program = read_annotated(rules, name=name, limits=limits).program
    meter = Meter(limits) if interrupt is None else Meter(limits, interrupt=interrupt)
    if isinstance(source, HasRecordStore):
        checked = check_program(program, LOCAL_PROFILE, limits)
        origin: _Origin = _LaceOrigin(source.store, max_followed_facts)
    else:
        facts = MemorySource(source) if isinstance(source, Iterable) else source
        checked = check_program(program, RAW_PROFILE.with_base(set(facts.predicates())), limits)
        origin = _Origin(facts)
    return RuleView(checked, origin, meter, max_kept_changes, max_kept_facts)


def _label(predicate: Predicate, program: CheckedProgram) -> str:
    alike = [other for other in program.derived if other.name == predicate.name]
    return predicate.name if len(alike) == 1 else str(predicate)


def _named(derived: Mapping[str, Predicate], predicate: str | Predicate) -> Predicate:
    if isinstance(predicate, Predicate) and predicate in derived.values():
        return predicate
    found = derived.get(predicate) if isinstance(predicate, str) else None
    if found is None:
        raise NotFound(f"the rules derive no {predicate}; they derive {', '.join(derived) or 'nothing'}")
    return found


def _fold(
    changed: RowsByPredicate, into: dict[Predicate, dict[Row, None]], against: dict[Predicate, dict[Row, None]]
) -> None:
    """Fold changes into a net change: a fact that was removed and added again did not change."""
    for predicate, rows in changed.items():
        other = against.get(predicate, {})
        for row in rows:
            if row in other:
                del other[row]
            else:
                into.setdefault(predicate, {})[row] = None


def _sorted(found: dict[Predicate, dict[Row, None]]) -> RowsByPredicate:
    return {predicate: tuple(sorted(rows)) for predicate, rows in sorted(found.items()) if rows}


def _size(changes: RuleChanges) -> int:
    sides = (changes.added, changes.removed)
    return sum(side.count(p) if isinstance(side, LateRows) else len(side[p]) for side in sides for p in side)


def _count(source: FactSource) -> int:
    return sum(source.count(predicate) for predicate in source.predicates())
