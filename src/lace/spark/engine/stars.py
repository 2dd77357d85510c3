"""Split rules into stars: the atoms of one record, answered by one pass over the wide table (no shuffle).

Rule: pure syntax. The rewritten program means the same over the star relations as the original over record facts,
so the embedded engine and the Spark loop can run it alike.

A star is every record atom of a body that shares its first term P, together with the comparisons that only its
own variables need. It becomes one relation holding the variables that the rest of the rule reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lace.datalog.language.syntax import (
    Anonymous,
    Atom,
    Cardinality,
    Compare,
    Constant,
    Literal,
    Negated,
    Positive,
    Predicate,
    Program,
    Rule,
    Term,
    TextShape,
    TrueLiteral,
    Unequal,
    Variable,
)
from lace.datalog.language.terms import literal_variables
from lace.datalog.planning.names import PredicateNames, VariableNames
from lace.facts.predicates import RECORD_PREDICATES
from lace.values import dataclass

STAR_PREFIX = "_star"


@dataclass(frozen=True, slots=True)
class Star:
    """`predicate(outputs)` :- record literals of one record and their filters."""

    predicate: Predicate
    outputs: tuple[Variable, ...]
    record: Term
    body: tuple[Literal, ...]

    def __str__(self) -> str:
        return f"{self.predicate.name}({','.join(variable.name for variable in self.outputs)}) over one record"


@dataclass(frozen=True, slots=True)
class Constellation:
    """A program over star relations, and the stars that fill them."""

    program: Program
    stars: tuple[Star, ...]


def is_record_atom(atom: Atom) -> bool:
    return atom.predicate in RECORD_PREDICATES


def split(program: Program, given: Iterable[Predicate] = ()) -> Constellation:
    """Rewrite every rule that reads record facts; relations of the predicates `given` come with them."""
    splitter = _Splitter(PredicateNames(program, given))
    rules = tuple(splitter.rewrite(rule) for rule in program.rules)
    return Constellation(Program(rules), tuple(splitter.stars.values()))


class _Splitter:
    """Names stars, one name for equal ones."""

    def __init__(self, names: PredicateNames) -> None:
        self._names = names
        self.stars: dict[tuple[tuple[Variable, ...], Term, tuple[Literal, ...]], Star] = {}

    def rewrite(self, rule: Rule) -> Rule:
        heads: dict[Term, list[Literal]] = {}
        names = VariableNames.beside(rule)
        for literal in rule.body:
            if isinstance(literal, Positive) and is_record_atom(literal.atom):
                first = literal.atom.terms[0]  # each `_` is a record of its own
                heads.setdefault(names.fresh("_") if isinstance(first, Anonymous) else first, []).append(literal)
        rest = [x for x in rule.body if not (isinstance(x, Positive) and is_record_atom(x.atom))]
        rest = self._absorb(heads, rest)
        rest = [self._outside(literal) for literal in rest]
        body: list[Literal] = []
        for record, members in heads.items():
            needed = set(_needed(rule, rest, [m for other, ms in heads.items() if other != record for m in ms]))
            body.append(Positive(self._star(record, members, needed)))
        return Rule(rule.head, (*body, *rest), rule.place)

    def _absorb(self, heads: dict[Term, list[Literal]], rest: list[Literal]) -> list[Literal]:
        """Move what one star can decide by itself into it; give back what is left."""
        left: list[Literal] = []
        bound = {record: {v for m in members for v in literal_variables(m)} for record, members in heads.items()}
        outside = {v for literal in rest if isinstance(literal, Positive) for v in literal_variables(literal)}
        for literal in rest:
            home = next((r for r in heads if self._belongs(literal, r, bound, outside)), None)
            if home is None:
                left.append(literal)
            else:
                heads[home].append(literal)
        return left

    @staticmethod
    def _belongs(literal: Literal, record: Term, bound: dict[Term, set[Variable]], outside: set[Variable]) -> bool:
        match literal:
            case Unequal() | Compare() | TextShape():
                return set(literal_variables(literal)) <= bound[record]
            case Negated(atom):
                # Safe rules bind every variable of a negated atom outside it, so this is a test on the star's own row.
                return (
                    is_record_atom(atom)
                    and atom.terms[0] == record
                    and set(literal_variables(literal)) <= bound[record]
                )
            case Cardinality(atom=atom, bound=count):
                if not is_record_atom(atom) or atom.terms[0] != record or not isinstance(record, Variable):
                    return False
                elsewhere = outside.union(*(vs for other, vs in bound.items() if other != record))
                shared = {v for v in literal_variables(literal) if v in elsewhere}
                return shared <= bound[record] and (not isinstance(count, Variable) or count in bound[record])
            case Positive() | TrueLiteral():
                return False

    def _outside(self, literal: Literal) -> Literal:
        """A record atom that is negated or counted apart from every star reads a star relation of its own."""
        match literal:
            case Negated(atom) if is_record_atom(atom):
                return Negated(self._relation(atom))
            case Cardinality(atom=atom) if is_record_atom(atom):
                counted = self._relation(atom)
                return Cardinality(counted, literal.operator, literal.bound, literal.place)
            case _:
                return literal

    def _relation(self, atom: Atom) -> Atom:
        """The whole relation behind an atom, one output for each position that is not a constant."""
        fresh = tuple(Variable(f"C{position}") for position in range(len(atom.terms)))
        pattern = tuple(t if isinstance(t, Constant) else fresh[i] for i, t in enumerate(atom.terms))
        kept = [(fresh[i], t) for i, t in enumerate(atom.terms) if not isinstance(t, Constant)]
        star = self._star(pattern[0], [Positive(Atom(atom.predicate, pattern))], {variable for variable, _ in kept})
        given = dict(kept)
        return Atom(star.predicate, tuple(given[v] for v in star.terms if isinstance(v, Variable)), atom.place)

    def _star(self, record: Term, members: list[Literal], needed: set[Variable]) -> Atom:
        outputs = tuple(sorted({v for m in members for v in literal_variables(m)} & needed, key=lambda v: v.name))
        key = (outputs, record, tuple(members))
        if key not in self.stars:
            predicate = self._names.fresh(f"{STAR_PREFIX}{len(self.stars)}", len(outputs))
            self.stars[key] = Star(predicate, outputs, record, tuple(members))
        return Atom(self.stars[key].predicate, outputs)


def _needed(rule: Rule, rest: Iterable[Literal], others: Iterable[Literal]) -> Iterator[Variable]:
    """The variables that a star must hand out: of the head, of other literals, of other stars."""
    yield from (term for term in rule.head.terms if isinstance(term, Variable))
    for literal in (*rest, *others):
        yield from literal_variables(literal)
