"""Ask a lace, or facts in memory, by rules (030): `lace.query`.

Rule: a query reads one snapshot and leaves nothing behind in the store. The answer is the facts of one predicate.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable
from warnings import warn
from weakref import WeakKeyDictionary

from lace.datalog.engine import Base, Meter, Result, evaluate
from lace.datalog.engine.base import predicates_given
from lace.datalog.goals import column_names, only_output, require_known
from lace.datalog.language.annotations import read_annotated
from lace.datalog.language.limiting import stated_limits
from lace.datalog.language.parser import parse_atom
from lace.datalog.language.syntax import (
    ANONYMOUS,
    Atom,
    Constant,
    Fact,
    Positive,
    Predicate,
    Program,
    Rule,
    Variable,
)
from lace.datalog.language.validate import LOCAL_PROFILE, RAW_PROFILE, Profile, check_program
from lace.datalog.planning.names import PredicateNames
from lace.datalog.planning.stratify import reachable
from lace.datalog.source import FactSource
from lace.errors import InvalidLacegram
from lace.facts.predicates import FIELD, HAVE
from lace.limits import EngineLimits
from lace.notation.stopping import Interrupt, never, until
from lace.porcelain.misuse import RulesWarning, facts_of
from lace.store.base import Snapshot, StoreCursor
from lace.thresholds import ENGINE_THRESHOLDS, STOPPABLE_THRESHOLDS
from lace.values import dataclass

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_DEFAULT_LIMITS = EngineLimits()
_SHOWN_ROWS = 20  # in a notebook


class _Snapshots(Protocol):
    def snapshot(self) -> Snapshot: ...


@runtime_checkable
class HasStore(Protocol):
    """The part of a lace that a query needs."""

    @property
    def store(self) -> _Snapshots: ...


Asked = str | os.PathLike[str] | HasStore | FactSource | Iterable[Fact]


@dataclass(frozen=True, slots=True)
class Answer:
    """The facts that a query asked for."""

    predicate: Predicate
    names: tuple[str, ...]  # of the columns
    result: Result
    base: Base
    limits: EngineLimits
    doubts: tuple[InvalidLacegram, ...] = ()  # what in the rules no record has, if there is no answer

    def __len__(self) -> int:
        return self.result.count(self.predicate)

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        return iter(self.rows())

    def rows(self) -> list[tuple[str, ...]]:
        """The facts as texts, sorted."""
        return self.result.rows(self.predicate)

    def pages(self, page_rows: int = ENGINE_THRESHOLDS.page_rows) -> Iterator[list[tuple[str, ...]]]:
        """The same in parts: a million facts are never a million tuples at once."""
        for start in range(0, len(self), page_rows):
            yield self.result.rows_between(self.predicate, start, start + page_rows)

    def json_lines(self, shown: Callable[[str], str] = str) -> Iterator[str]:
        """The facts as JSON objects, one per line, sorted, in pages of some thousand; `shown` may respell values."""
        return self.result.json_lines(self.predicate, self.names, shown)

    def to_arrow(self) -> pa.Table:
        """The facts as an Arrow table of strings, sorted."""
        return self.result.to_arrow(self.predicate, self.names)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The facts as an Arrow stream: `polars.DataFrame(answer)` and DuckDB's `FROM answer` accept it."""
        stream: object = self.to_arrow().__arrow_c_stream__(requested_schema)
        return stream

    def to_pandas(self) -> pd.DataFrame:
        """The facts as a pandas frame, sorted."""
        return self.result.to_pandas(self.predicate, self.names)

    def __repr__(self) -> str:
        count = f"{len(self):,} fact{'' if len(self) == 1 else 's'}"
        return f"<Answer {self.predicate.name}({', '.join(self.names)}): {count}>"

    def _repr_html_(self) -> str:
        """The first facts as a table, for notebooks."""
        from html import escape

        from lace.notation.visible import named, spell_out

        rows = self.result.rows_between(self.predicate, 0, _SHOWN_ROWS)
        head = "".join(f"<th>{escape(name)}</th>" for name in self.names)
        body = "".join(
            f"<tr>{''.join(f'<td>{escape(spell_out(text, named))}</td>' for text in row)}</tr>" for row in rows
        )
        more = f"<p>the first {len(rows)} of {len(self):,} facts</p>" if len(self) > len(rows) else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"

    def fields(self, records: Iterable[str], names: Sequence[str]) -> Mapping[tuple[str, str], tuple[str, ...]]:
        """The values of some fields of some records, by (record, field name)."""
        record, value = Variable("P"), Variable("V")
        made = PredicateNames(Program(()), (FIELD, *predicates_given(self.base.parts)))
        shown, wanted = made.fresh("Shown", 3), made.fresh("Wanted", 1)
        rules = [
            Rule(
                Atom(shown, (record, Constant(name), value)),
                (Positive(Atom(wanted, (record,))), Positive(Atom(FIELD, (record, Constant(name), ANONYMOUS, value)))),
            )
            for name in dict.fromkeys(names)
        ]
        facts = [Fact(wanted, (text,)) for text in dict.fromkeys(records)]
        result = evaluate(check_program(Program(tuple(rules)), RAW_PROFILE), self.base, extra=facts, limits=self.limits)
        found: dict[tuple[str, str], list[str]] = {}
        for row, name, text in result.rows(shown) if rules else ():
            found.setdefault((row, name), []).append(text)
        return {key: tuple(values) for key, values in found.items()}


def query(
    asked: Asked,
    rules: str,
    goal: str | None = None,
    *,
    extra: Iterable[Fact] = (),
    limits: EngineLimits | None = None,
    name: str = "<rules>",
    deadline_s: float | None = None,
    interrupt: Interrupt | None = None,
) -> Answer:
    """Evaluate rules over a lace (or its path, a fact source, or facts) and give the facts that a goal asks for.

    Limits that are not handed in are those that the rules say for themselves (`#:json {"limits": {…}}`), or the usual.

    Without a goal the answer is the one predicate that no other rule reads. A goal with constants, such as
    `Selected('P…')`, costs only what its own answer needs.

    After `deadline_s` seconds, or once `interrupt` (asked every few milliseconds, by the thread that evaluates) returns
    True, the call ends in `EvaluationStopped`, and nothing of it is kept.

    If a lace has no answer, what in the rules no record has is told in a `RulesWarning`, and is in the answer's
    `doubts`.

    >>> facts = [Fact(Predicate("Edge", 2), pair) for pair in (("a", "b"), ("b", "c"))]
    >>> query(facts, "Path(X,Y) :- Edge(X,Y).\\nPath(X,Y) :- Path(X,Z), Edge(Z,Y).", "Path('a',Y)").rows()
    [('a', 'b'), ('a', 'c')]
    """
    stop = until(deadline_s, interrupt)
    return warned(answer_to(asked, rules, goal, extra=extra, limits=limits, name=name, stop=stop))


def warned(answer: Answer) -> Answer:
    """The answer, after a warning for each of its doubts at the line that called our caller."""
    for doubt in answer.doubts:
        warn(str(doubt), RulesWarning, stacklevel=3)
    return answer


def answer_to(
    asked: Asked,
    rules: str,
    goal: str | None = None,
    *,
    extra: Iterable[Fact] = (),
    limits: EngineLimits | None = None,
    name: str = "<rules>",
    stop: Interrupt = never,
) -> Answer:
    """What `query` gives, without a warning."""
    limits = limits or stated_limits(rules, name=name)
    program = read_annotated(rules, name=name, limits=limits).program
    if isinstance(asked, str | os.PathLike):
        from lace.porcelain.lace import open_lace

        with open_lace(asked, read_only=True) as lace:
            answer = _over_base(base_of(lace, limits), program, goal, extra, limits, stop)
            answer.result.keep(answer.predicate)  # read while the store is open
            return answer
    if isinstance(asked, HasStore):
        base = base_of(asked, limits)
    else:
        if isinstance(asked, list | tuple) and not any(hasattr(one, "iterate") for one in asked):
            asked = list(facts_of(asked))
        base = Base(asked, limits)
    return _over_base(base, program, goal, extra, limits, stop)


_BASES: WeakKeyDictionary[object, tuple[StoreCursor, int, Base]] = WeakKeyDictionary()


def base_of(lace: HasStore, limits: EngineLimits = _DEFAULT_LIMITS) -> Base:
    """The encoded facts of a lace; kept while it does not change, so that a second question is fast."""
    snapshot = lace.store.snapshot()
    kept = _BASES.get(lace.store)
    if kept is None or kept[:2] != (snapshot.cursor, limits.max_value_bytes):
        kept = _BASES[lace.store] = (snapshot.cursor, limits.max_value_bytes, Base(snapshot, limits))
    return kept[2]


def _over_base(
    base: Base, program: Program, goal: str | None, extra: Iterable[Fact], limits: EngineLimits, stop: Interrupt
) -> Answer:
    extra = list(extra)
    checked = check_program(program, profile_of(base), limits)
    atom = parse_atom(goal, limits=limits) if goal is not None else only_output(checked)
    require_known(atom, checked, predicates_given(base.parts))
    goals, meter = [_any_fact(atom) if goal is None else atom], Meter(limits, interrupt=stop)
    ways = ENGINE_THRESHOLDS if stop is never else STOPPABLE_THRESHOLDS
    result = evaluate(checked, base, extra=extra, goals=goals, limits=limits, meter=meter, thresholds=ways)
    answer = Answer(atom.predicate, column_names(atom), result, base, limits)
    if checked.profile is not LOCAL_PROFILE or len(answer):
        return answer
    from lace.policy.lint import never_matching  # only here: an answer that is not empty needs none of it

    read = reachable(program.rules, [atom.predicate])
    asked = replace(program, rules=tuple(rule for rule in program.rules if rule.head.predicate in read))
    given = {*predicates_given(base.parts), *(fact.predicate for fact in extra)}
    return replace(answer, doubts=tuple(never_matching(asked, LOCAL_PROFILE, given)))


def profile_of(base: Base) -> Profile:
    """Over records, the record predicates are reserved; over other facts, every predicate that has facts."""
    predicates = {predicate for part in base.parts for predicate in part.predicates()}
    return LOCAL_PROFILE if HAVE in predicates else RAW_PROFILE.with_base(predicates)


def _any_fact(head: Atom) -> Atom:
    """A goal that matches every fact of a predicate."""
    return Atom(head.predicate, (ANONYMOUS,) * head.predicate.arity)
