"""The records that a peer may have, as rows with all that the archive says of them.

Rule: no row moves to learn whether it is wanted, where its peer's rules can be asked of the row itself. What they then
choose is what was stored as selected: they are asked of the batches that the selection has seen, and of no others.

What the rules ask of one record becomes a test of its row in the wide table (030); that is pure syntax. A record that
fails the test is not in the goal, whatever else there is; where the test is exact a record that passes it is. What a
row cannot say is left out of the test, and the stored result is asked. With an exact test nothing is joined with what
was selected, however much that is (decision 295).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property, reduce
from operator import and_, or_
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user reads

from lace.datalog import engine
from lace.datalog.language.syntax import (
    Anonymous,
    Atom,
    Constant,
    Fact,
    Negated,
    Positive,
    Predicate,
    Program,
    Rule,
    Term,
    TrueLiteral,
    Variable,
)
from lace.datalog.language.validate import RAW_PROFILE, rewritten
from lace.datalog.planning.unfold import unfold
from lace.datalog.source import MemorySource, Row
from lace.errors import LimitExceeded
from lace.limits import EngineLimits
from lace.spark.archive import tables
from lace.spark.archive.additive import hanging_on
from lace.spark.archive.versions import BatchRange, DataFile, State
from lace.spark.engine.executor import MAX_UNFOLDED_BODY, is_star
from lace.spark.engine.pivot import Among, star_test
from lace.spark.engine.stars import Constellation, Star, split
from lace.spark.jobs.evaluate import PeerPolicy
from lace.values import dataclass

if TYPE_CHECKING:
    from lace.spark.archive.archive import Archive


class Ends(NamedTuple):
    """The least and the greatest of some hashes, and how many there are."""

    low: str | None
    high: str | None
    rows: int


def ends_of(files: Sequence[DataFile]) -> Ends:
    """Those of all hashes in some files, as their commits say."""
    low = min((file.low["hash"] for file in files), default=None)
    return Ends(low, max((file.high["hash"] for file in files), default=None), sum(file.rows for file in files))


@dataclass(frozen=True, slots=True)
class WantedRecords:
    """Records that were selected for a peer."""

    hashes: DataFrame
    ends: Ends
    batches: BatchRange  # that brought them, if its rules look at one record at a time
    is_all: bool = True  # of what its rules select of these batches


def records_for(archive: Archive, state: State, peer: PeerPolicy, wanted: WantedRecords) -> DataFrame:
    """Some of the records that a peer may have, headers as rules read them."""
    test = _test(archive, peer)
    if test is not None and test.is_exact:
        rows = tables.readable(archive.records_of(state, wanted.batches)).where(test.holds)
        if wanted.is_all:
            return rows
    else:
        files = tables.between(state.table("records"), "hash", wanted.ends.low, wanted.ends.high)
        rows = tables.readable(tables.read(archive.spark, archive.files, "records", files))
        rows = rows if test is None else rows.where(test.holds)
    return archive.joins.chosen(rows, wanted.hashes, wanted.ends.rows)


def _test(archive: Archive, peer: PeerPolicy) -> RecordTest | None:
    """What a peer's rules ask of one record; None where they cannot be asked."""
    most = archive.thresholds.row_tests
    if peer.has_claims or not most:
        return None
    try:
        return record_test(peer.policy.program.program, peer.policy.sendable, peer.runtime, EngineLimits(), most)
    except LimitExceeded:  # the one who selected may have been allowed more
        return None


# What rules ask of a row


class RecordTest(NamedTuple):
    """What holds for the row of every record that is in a goal, true or false; exact if it holds for no others."""

    holds: Column
    is_exact: bool


def record_test(
    program: Program, goal: Predicate, given: Iterable[Fact], limits: EngineLimits, most_tests: int
) -> RecordTest | None:
    """The test of a goal of one place; None where rows tell nothing, or the test would be too long to ask it.

    `given` are all facts that the rules may read beside those of records.
    """
    parts = split(unfold(program, {goal}, is_star, MAX_UNFOLDED_BODY))
    return _Tests(parts, given, limits, most_tests).of(goal, frozenset())


class _Tests:
    """The tests of one program's predicates."""

    def __init__(self, parts: Constellation, given: Iterable[Fact], limits: EngineLimits, most_tests: int) -> None:
        self._limits = limits
        self._stars: dict[Predicate, Star] = {star.predicate: star for star in parts.stars}
        self._rules = parts.program.rules
        self._on_records = hanging_on(self._rules, self._stars)
        self._given = MemorySource(given)
        self._most = self._left = most_tests

    def of(self, predicate: Predicate, within: frozenset[Predicate]) -> RecordTest | None:
        """What a predicate asks of the record that it names; `within` are those for whose sake this is asked."""
        rules = [rule for rule in self._rules if rule.head.predicate == predicate]
        self._left -= len(rules)
        if not rules or predicate.arity != 1 or predicate in within or self._left < 0:
            return None
        found: list[RecordTest] = []
        for rule in rules:
            test = self._rule(rule, within | {predicate})
            if test is None:  # whatever the other rules ask, this one may choose any record
                return None
            found.append(test)
        return RecordTest(reduce(or_, (test.holds for test in found)), all(test.is_exact for test in found))

    def _rule(self, rule: Rule, within: frozenset[Predicate]) -> RecordTest | None:
        """What a rule asks of the record in its head; all that it asks if every literal is of that record."""
        (record,) = rule.head.terms
        atoms = [literal.atom for literal in rule.body if isinstance(literal, Positive)]
        stars = [self._stars[atom.predicate] for atom in atoms if atom.predicate in self._stars]
        own = [star for star in stars if star.record == record]
        bound = {variable for star in own for variable in star.outputs}
        tests: list[Among] = []
        parts: list[RecordTest] = []
        is_exact = isinstance(record, Variable) and own == stars and len(own) <= 1
        for literal in rule.body:
            if self._is_star(literal) or isinstance(literal, TrueLiteral):
                continue
            said = self._said(literal, record, bound, within) if isinstance(literal, Positive | Negated) else None
            if isinstance(said, Among):
                tests.append(said)
            elif said is not None:
                parts.append(said)
            else:
                is_exact = False
        asked = [star_test(star, [test for test in tests if test.variable in star.outputs]) for star in own]
        asked += [part.holds for part in parts]
        is_exact = is_exact and all(part.is_exact for part in parts)
        return RecordTest(reduce(and_, asked), is_exact) if asked else None

    def _is_star(self, literal: object) -> bool:
        return isinstance(literal, Positive) and literal.atom.predicate in self._stars

    def _said(
        self, literal: Positive | Negated, record: Term, bound: set[Variable], within: frozenset[Predicate]
    ) -> RecordTest | Among | None:
        """What a literal beside the stars asks of the row, or of a value that a star has found; None if neither."""
        atom, negated = literal.atom, isinstance(literal, Negated)
        if atom.predicate in self._on_records:
            test = self.of(atom.predicate, within) if atom.terms == (record,) else None
            if test is None or not negated:
                return test
            return RecordTest(~test.holds, True) if test.is_exact else None
        rows = [row for row in self._fixed(atom.predicate) if _fits(row, atom)]
        places = [place for place, term in enumerate(atom.terms) if isinstance(term, Variable)]
        if not places:
            return RecordTest(F.lit(bool(rows) is not negated), True)
        variable = atom.terms[places[0]]
        values = frozenset(row[places[0]] for row in rows)
        if len(places) > 1 or variable not in bound or len(values) > self._most:
            return None
        assert isinstance(variable, Variable)
        return Among(variable, values, negated)

    def _fixed(self, predicate: Predicate) -> Iterable[Row]:
        """The facts of a predicate that hangs on no record."""
        is_derived = any(rule.head.predicate == predicate for rule in self._rules)
        return self._derived.rows(predicate) if is_derived else self._given.iterate(predicate)

    @cached_property
    def _derived(self) -> engine.Result:
        rules = tuple(rule for rule in self._rules if rule.head.predicate not in self._on_records)
        checked = rewritten(Program(rules), RAW_PROFILE)
        return engine.evaluate(checked, self._given, limits=self._limits)


def _fits(row: Row, atom: Atom) -> bool:
    """Whether a fact has the constants of an atom."""
    pairs = zip(row, atom.terms, strict=True)
    return all(isinstance(term, Variable | Anonymous) or term == Constant(value) for value, term in pairs)
