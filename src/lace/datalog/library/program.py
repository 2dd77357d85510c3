"""Rules that were compiled once and run over any number of databases: `lace.datalog.compile`.

Rule: what a program answers depends on its text and the facts alone; what it keeps for a database only makes the next
question cheaper, and goes with the database.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from lace.datalog.engine.answering import evaluate
from lace.datalog.engine.base import Base, predicates_given
from lace.datalog.engine.maintain import Materialized, materialize
from lace.datalog.engine.on_demand import BaseFacts, FactsOnDemand
from lace.datalog.engine.prepared_goals import PreparedGoal, constants_of, form_of
from lace.datalog.engine.result import Result
from lace.datalog.explain.absence import why_not
from lace.datalog.explain.explanation import Explanation
from lace.datalog.explain.known import Known
from lace.datalog.explain.proof import why
from lace.datalog.goals import column_names, head_of, outputs, require_known
from lace.datalog.language.annotations import Sidecar, read_annotated
from lace.datalog.language.limiting import stated_limits
from lace.datalog.language.parser import parse_atom
from lace.datalog.language.syntax import ANONYMOUS, Atom, Fact, Predicate
from lace.datalog.language.validate import RAW_PROFILE, CheckedProgram, check_program
from lace.datalog.library.database import Database
from lace.datalog.library.facttexts import fact_text
from lace.datalog.meter import CurrentInterrupt, Meter
from lace.datalog.source import Row
from lace.errors import InvalidInput, InvalidLacegram, NotFound, naming_extras
from lace.limits import EngineLimits, ExplainLimits
from lace.notation.stopping import Interrupt, never, until
from lace.thresholds import STOPPABLE_THRESHOLDS
from lace.values import dataclass

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

_FORMS_KEPT = 16  # of goals, for each database
_FEW_ROWS = 1 << 20  # that a first question touched: then the next one of its form is worth compiling for
Rows = Mapping[str, Iterable[Sequence[object]]]


def compile(text: str, *, name: str = "<rules>", limits: EngineLimits | None = None) -> CompiledProgram:  # noqa: A001  # as re.compile
    """Read and check rules; the first mistake is raised with its place.

    Limits that are not handed in are those that the rules state for themselves, or the usual.

    >>> program = compile("Path(X,Y) :- Edge(X,Y).\\nPath(X,Y) :- Path(X,Z), Edge(Z,Y).")
    >>> program.run(Database({"Edge": [("a", "b"), ("b", "c")]}), "Path('a',Y)").rows()
    [('a', 'b'), ('a', 'c')]
    """
    limits = limits or stated_limits(text, name=name)
    source = read_annotated(text, name=name, limits=limits)
    checked = check_program(source.program, RAW_PROFILE, limits)
    return CompiledProgram(checked, source.sidecar, limits)


@dataclass(slots=True)
class _GoalForm:
    """What is known of a form of goal over one database."""

    rows: int  # that its first question touched
    prepared: PreparedGoal | None = None


@dataclass(slots=True)
class _KeptForms:
    """What a program keeps for one database."""

    forms: OrderedDict[object, _GoalForm] = field(default_factory=OrderedDict)


class CompiledProgram:
    """Checked rules."""

    def __init__(self, checked: CheckedProgram, annotations: Sidecar, limits: EngineLimits) -> None:
        self._checked = checked
        self._annotations = annotations
        self._limits = limits
        self._kept: WeakKeyDictionary[Database, _KeptForms] = WeakKeyDictionary()

    # what it says

    @property
    def derived(self) -> tuple[Predicate, ...]:
        """What its rules derive, sorted."""
        return tuple(sorted(self._checked.derived))

    @property
    def reads(self) -> tuple[Predicate, ...]:
        """The facts that it asks a database for, sorted."""
        return tuple(sorted(self._checked.base))

    @property
    def outputs(self) -> tuple[Predicate, ...]:
        """What it derives and no other rule reads, sorted: what `run` gives without a goal."""
        return tuple(outputs(self._checked)) or self.derived

    @property
    def strata(self) -> tuple[tuple[Predicate, ...], ...]:
        """What is completed together, in order."""
        return tuple(stratum.predicates for stratum in self._checked.strata)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Likely mistakes that are visible without facts: names used with two numbers of values."""
        named: dict[str, set[Predicate]] = {}
        for predicate in (*self.derived, *self.reads):
            named.setdefault(predicate.name, set()).add(predicate)
        return tuple(
            f"{' and '.join(map(str, sorted(alike)))}: one name with several numbers of values"
            for alike in named.values()
            if len(alike) > 1
        )

    def warnings_over(self, db: Database) -> tuple[str, ...]:
        """Those, and what the rules read that the database lacks: a misspelt predicate holds for nothing."""
        from difflib import get_close_matches

        held = set(db.relations)
        found = list(self.warnings)
        for predicate in self.reads:
            if predicate not in held and predicate.name not in db.empty:
                close = get_close_matches(predicate.name, [p.name for p in (*held, *self.derived)], n=2)
                same = [str(p) for p in sorted(held) if p.name == predicate.name]
                near = same or sorted(set(close))
                advice = f"; did you mean {' or '.join(near)}?" if near else ""
                found.append(f"the database has no facts of {predicate}{advice}")
        return tuple(found)

    def __repr__(self) -> str:
        return f"<Program {', '.join(map(str, self.derived))}>"

    # asking

    def run(
        self,
        db: Database,
        goal: str | Sequence[str] | None = None,
        *,
        extra: Rows | None = None,
        deadline_s: float | None = None,
        interrupt: Interrupt | None = None,
    ) -> RunResults:
        """The facts that a goal asks for, or several goals; without one, all facts of `outputs`.

        `extra` are facts for this run alone. After `deadline_s` seconds, or once `interrupt` (asked every few
        milliseconds) returns True, the run ends in `EvaluationStopped`; nothing of it is kept.
        """
        stop = until(deadline_s, interrupt)
        goals = [self._goal(text) for text in ([goal] if isinstance(goal, str) else goal or ())]
        asked = goals or [_any_fact(head_of(self._checked, predicate)) for predicate in self.outputs]
        labels = goals or [head_of(self._checked, predicate) for predicate in self.outputs]
        given = _facts(extra)
        with db.entered(stop) as base:
            known = predicates_given(base.parts) | {fact.predicate for fact in given}
            for atom in asked:
                require_known(atom, self._checked, known)
            kept = self._of(db, base)
            if len(goals) == 1 and constants_of(goals[0]) and not given:
                rows = self._asked_again(kept, base, goals[0], stop)
                if rows is not None:
                    return RunResults([DerivedRelation(goals[0], rows=rows)])
            meter = Meter(self._limits, interrupt=stop)
            result = evaluate(
                self._checked,
                base,
                extra=given,
                goals=asked,
                limits=self._limits,
                meter=meter,
                thresholds=STOPPABLE_THRESHOLDS,
            )
            if len(goals) == 1 and not given:
                self._remember(kept, goals[0], meter.rows)
            names = {atom.predicate: atom for atom in reversed(labels)}
            return RunResults(
                [DerivedRelation(atom, result=result, db=db, rows_touched=meter.rows) for atom in names.values()]
            )

    def _goal(self, text: str) -> Atom:
        return parse_atom(text, limits=self._limits)

    def _of(self, db: Database, base: Base) -> _KeptForms:
        kept = self._kept.get(db)
        if kept is None:
            held = predicates_given(base.parts)
            shadowed = sorted(self._checked.derived & held)
            if shadowed:
                raise InvalidLacegram(
                    f"{shadowed[0]} has facts in the database and cannot be derived",
                    rule="shadowing",
                    advice="choose another head name",
                )
            kept = self._kept[db] = _KeptForms()
        return kept

    def _asked_again(self, kept: _KeptForms, base: Base, goal: Atom, stop: Interrupt) -> list[Row] | None:
        """The answers by way of what was compiled for goals of this form; None where nothing was."""
        form = kept.forms.get(form_of(goal))
        if form is None or form.rows > _FEW_ROWS or goal.predicate not in self._checked.derived:
            return None
        values = constants_of(goal)
        if any(base.dictionary.find(value) < 0 for value in values):
            return None  # nothing that stays is given a code for a question
        if form.prepared is None:
            form.prepared = PreparedGoal(self._checked, base, goal, self._limits)
        try:
            rows = form.prepared.ask(values, stop)
        except BaseException:
            form.prepared.close()
            form.prepared = None  # what a question left half done must not be what the next one finds
            raise
        form.rows = form.prepared.rows_touched
        if form.rows > _FEW_ROWS:
            form.prepared.close()
            form.prepared = None
        return rows

    def _remember(self, kept: _KeptForms, goal: Atom, rows: int) -> None:
        form = form_of(goal)
        if form not in kept.forms:
            kept.forms[form] = _GoalForm(rows)
            while len(kept.forms) > _FORMS_KEPT:
                _, oldest = kept.forms.popitem(last=False)
                if oldest.prepared is not None:
                    oldest.prepared.close()
        kept.forms.move_to_end(form)

    def plan(self, db: Database, goal: str | None = None) -> str:
        """How the program was evaluated over a database: a chain of steps for each rule, with rows and milliseconds."""
        with db.entered(until(None)) as base:
            self._of(db, base)
            goals = [self._goal(goal)] if goal is not None else None
            result = evaluate(self._checked, base, goals=goals, limits=self._limits)
        return "\n".join(result.stats.lines())

    # explaining

    def explain(
        self,
        db: Database,
        goal: str,
        *,
        deadline_s: float | None = None,
        interrupt: Interrupt | None = None,
        limits: ExplainLimits | None = None,
    ) -> Explanation:
        """Why the first fact that matches a goal holds, or why none does."""
        stop, atom = until(deadline_s, interrupt), self._goal(goal)
        bounds = limits or ExplainLimits()
        with db.entered(stop) as base:
            self._of(db, base)
            require_known(atom, self._checked, predicates_given(base.parts))
            derived = FactsOnDemand(self._checked, base, self._limits, stop)
            known = Known(self._checked, BaseFacts(base), derived, interrupt=stop, max_indexed_rows=0)
            row = known.first(atom)
            found = why_not(known, atom, bounds) if row is None else why(known, Fact(atom.predicate, row), bounds)
        return Explanation(found, self._annotations)

    def why(self, db: Database, goal: str, *, deadline_s: float | None = None) -> Explanation:
        """The proof of the first fact that matches a goal; `NotFound` where none does."""
        found = self.explain(db, goal, deadline_s=deadline_s)
        if not found.holds:
            raise NotFound(f"{goal} does not hold: ask why_not")
        return found

    def why_not(self, db: Database, goal: str, *, deadline_s: float | None = None) -> Explanation:
        """Where each rule that could derive a goal fails; `NotFound` where a fact matches it."""
        found = self.explain(db, goal, deadline_s=deadline_s)
        if found.holds:
            raise NotFound(f"{goal} holds: ask why")
        return found

    # following

    def follow(
        self, db: Database, *, deadline_s: float | None = None, interrupt: Interrupt | None = None
    ) -> FollowedProgram:
        """The derived facts over a database whose facts come and go from now on; the database itself stays."""
        stop = until(deadline_s, interrupt)
        watch = CurrentInterrupt(stop)
        with db.entered(stop) as base:
            self._of(db, base)
            facts = materialize(
                self._checked,
                base,
                self._limits,
                meter=Meter(self._limits, interrupt=watch),
                thresholds=STOPPABLE_THRESHOLDS,
            )
        watch.interrupt = until(None)
        return FollowedProgram(self._checked, db, facts, watch)


def _any_fact(head: Atom) -> Atom:
    return Atom(head.predicate, (ANONYMOUS,) * head.predicate.arity)


def _facts(rows: Rows | None) -> list[Fact]:
    """Rows by name as facts."""
    found: list[Fact] = []
    for name, given in (rows or {}).items():
        for row in given:
            if isinstance(row, str | bytes) or not isinstance(row, Sequence):
                raise InvalidInput(f"a row of {name} is {row!r}: give tuples", rule="relation")
            found.append(Fact(Predicate(name, len(row)), tuple(map(fact_text, row))))
    return found


class DerivedRelation:
    """The facts of one predicate that a run found."""

    def __init__(
        self,
        goal: Atom,
        *,
        result: Result | None = None,
        db: Database | None = None,
        rows: list[Row] | None = None,
        rows_touched: int = 0,
    ) -> None:
        self.predicate = goal.predicate
        self.names = column_names(goal)
        self.rows_touched = rows_touched
        self._db = db
        self._result = result
        self._rows = rows

    def rows(self) -> list[Row]:
        """The facts as tuples of texts, sorted."""
        if self._rows is None:
            assert self._result is not None
            assert self._db is not None
            with self._db.entered(never):
                self._rows = self._result.rows(self.predicate)
        return list(self._rows)

    def __len__(self) -> int:
        if self._rows is None:
            assert self._result is not None
            return self._result.count(self.predicate)
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows())

    def to_arrow(self) -> pa.Table:
        """The facts as an Arrow table of strings, sorted; constants of the goal are columns too."""
        if self._result is not None and self._db is not None and self.names:
            with self._db.entered(never):
                return self._result.to_arrow(self.predicate, self.names)
        with naming_extras():
            import pyarrow

        rows = self.rows()
        columns = list(zip(*rows, strict=True)) or [()] * len(self.names)
        return pyarrow.table([pyarrow.array(column, pyarrow.string()) for column in columns], names=list(self.names))

    def to_polars(self) -> pl.DataFrame:
        """The facts as a polars frame of strings, sorted."""
        with naming_extras():
            import polars

        frame = polars.from_arrow(self.to_arrow())
        assert isinstance(frame, polars.DataFrame)
        return frame

    def to_pandas(self) -> pd.DataFrame:
        """The facts as a pandas frame, sorted."""
        frame: pd.DataFrame = self.to_arrow().to_pandas()
        return frame

    def __repr__(self) -> str:
        return f"<DerivedRelation {self.predicate.name}({', '.join(self.names)}): {len(self):,}>"


class RunResults(Mapping[str, DerivedRelation]):
    """What one run found, by predicate name; a run of one goal may be read as that one answer."""

    def __init__(self, found: Sequence[DerivedRelation]) -> None:
        names = [answer.predicate.name for answer in found]
        self._found = {
            (answer.predicate.name if names.count(answer.predicate.name) == 1 else str(answer.predicate)): answer
            for answer in found
        }

    def __getitem__(self, name: str) -> DerivedRelation:
        if name not in self._found:
            raise KeyError(f"{name}: this run has {', '.join(self._found) or 'no answers'}")
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    @property
    def only(self) -> DerivedRelation:
        """The one answer of a run with one goal or one output."""
        if len(self._found) != 1:
            raise InvalidInput(
                f"this run has {len(self._found)} answers: choose one of {', '.join(self._found)}", rule="goal"
            )
        return next(iter(self._found.values()))

    def rows(self) -> list[Row]:
        """The rows of the only answer."""
        return self.only.rows()

    def to_arrow(self) -> pa.Table:
        """The only answer as an Arrow table."""
        return self.only.to_arrow()

    def to_polars(self) -> pl.DataFrame:
        """The only answer as a polars frame."""
        return self.only.to_polars()

    def to_pandas(self) -> pd.DataFrame:
        """The only answer as a pandas frame."""
        return self.only.to_pandas()

    def __repr__(self) -> str:
        return f"<RunResults {', '.join(f'{name}: {len(answer):,}' for name, answer in self._found.items())}>"


@dataclass(frozen=True, slots=True)
class FactChanges:
    """What a change added to derived facts and removed from them, by predicate name, sorted."""

    added: Mapping[str, tuple[Row, ...]]
    removed: Mapping[str, tuple[Row, ...]]

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)


class FollowedProgram:
    """Derived facts that follow: `apply` says what came and went, and tells what that changed.

    One thread at a time. A change that fails (a limit, a deadline, a bad value) changes nothing.
    """

    def __init__(self, checked: CheckedProgram, db: Database, facts: Materialized, watch: CurrentInterrupt) -> None:
        self._checked = checked
        self._db = db
        self._facts = facts
        self._watch = watch

    def apply(
        self,
        added: Rows | None = None,
        removed: Rows | None = None,
        *,
        deadline_s: float | None = None,
        interrupt: Interrupt | None = None,
    ) -> FactChanges:
        """Add and remove facts; a fact in both stays."""
        came, went = _facts(added), _facts(removed)
        self._watch.interrupt = stop = until(deadline_s, interrupt)
        try:
            with self._db.entered(stop):
                changes = self._facts.apply(came, went)
                return FactChanges(_by_name(changes.added), _by_name(changes.removed))
        finally:
            self._watch.interrupt = until(None)

    def rows(self, name: str) -> list[Row]:
        """The derived facts of a predicate, sorted."""
        with self._db.entered(until(None)):
            return self._facts.rows(self._named(name))

    def count(self, name: str) -> int:
        """How many derived facts a predicate has."""
        return self._facts.count(self._named(name))

    @property
    def rows_touched(self) -> int:
        """The work of the last change, or of the evaluation before the first."""
        return self._facts.meter.rows

    def close(self) -> None:
        """Let go of all facts."""
        self._facts.close()

    def __enter__(self) -> FollowedProgram:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _named(self, name: str) -> Predicate:
        found = [predicate for predicate in self._checked.derived if name in (predicate.name, str(predicate))]
        if len(found) != 1:
            known = ", ".join(map(str, sorted(self._checked.derived)))
            raise NotFound(f"{name}: the rules derive {known}")
        return found[0]


def _by_name(rows: Mapping[Predicate, Sequence[Row]]) -> dict[str, tuple[Row, ...]]:
    names = [predicate.name for predicate in rows]
    return {
        predicate.name if names.count(predicate.name) == 1 else str(predicate): tuple(sorted(found))
        for predicate, found in rows.items()
        if found
    }
