"""A small checker of explanations, written against the definitions of 030 and not against the code that explains.

It knows the base facts and the complete derived relations, and believes nothing that it has not checked.
"""

from __future__ import annotations

from itertools import product

from executors.reference import Relations, bindings
from lace.datalog.explain import (
    Absence,
    Absent,
    Attempt,
    BlockedBy,
    Counted,
    Held,
    MissingFact,
    Proof,
    Supported,
    WrongCount,
)
from lace.datalog.explain import TestFailed as BuiltinFailed
from lace.datalog.language.comparisons import cardinality_holds, compare, text_shape
from lace.datalog.language.syntax import (
    Anonymous,
    Atom,
    Cardinality,
    Compare,
    Constant,
    Fact,
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


class Checker:
    """Checks proofs and absences for one program over one snapshot."""

    def __init__(self, program: Program, facts: list[Fact], derived: Relations) -> None:
        self.program = program
        self.base = set(facts)
        self.relations: Relations = dict(derived)
        for fact in facts:
            self.relations.setdefault(fact.predicate, set()).add(fact.values)

    # proofs

    def check_proof(self, root: Proof) -> None:
        seen: set[int] = set()
        waiting = [root]
        while waiting:
            proof = waiting.pop()
            if id(proof) in seen:
                continue
            seen.add(id(proof))
            self._check_node(proof)
            waiting += [step.proof for step in proof.body if isinstance(step, Supported)]

    def _check_node(self, proof: Proof) -> None:
        if proof.rule is None:
            assert proof.rank == 0
            assert proof.fact in self.base, "a base fact has to be in the snapshot"
            return
        assert proof.rule in self.program.rules
        assert len(proof.body) == len(proof.rule.body)
        binding: dict[str, str] = {}
        self._unify(proof.rule.head, proof.fact, binding)
        for literal, step in zip(proof.rule.body, proof.body, strict=True):
            if isinstance(literal, Positive):
                assert isinstance(step, Supported)
                assert step.proof.rank < proof.rank, "a proof stands on smaller ranks"
                self._unify(literal.atom, step.proof.fact, binding)
        for literal, step in zip(proof.rule.body, proof.body, strict=True):
            self._check_step(literal, step, binding)

    def _unify(self, atom: Atom, fact: Fact, binding: dict[str, str]) -> None:
        assert atom.predicate == fact.predicate
        for term, value in zip(atom.terms, fact.values, strict=True):
            if isinstance(term, Constant):
                assert term.value == value
            elif isinstance(term, Variable):
                assert binding.setdefault(term.name, value) == value

    def _check_step(self, literal: Literal, step: object, binding: dict[str, str]) -> None:
        match literal, step:
            case Positive(), Supported():
                pass
            case Negated(atom), Absent(shown):
                assert self._agrees(atom, shown, binding)
                assert self.count(shown) == 0
            case Cardinality(atom, operator, bound), Counted() as counted:
                assert self._agrees(atom, counted.atom, binding)
                assert counted.count == self.count(counted.atom)
                assert (counted.operator, counted.bound) == (operator, _value(bound, binding))
                assert cardinality_holds(counted.count, operator, counted.bound)
                for example in counted.examples:
                    assert example.values in self.relations.get(example.predicate, set())
            case ((Unequal() | Compare() | TextShape() | TrueLiteral()), Held(shown)):
                assert _ground(shown)
                assert _test(literal, binding)
                assert _test(shown, {})
            case _:
                raise AssertionError((literal, step))

    def _agrees(self, atom: Atom, shown: Atom, binding: dict[str, str]) -> bool:
        """The shown atom is the rule's with bound variables replaced and nothing else changed."""
        expected = [
            Constant(binding[term.name]) if isinstance(term, Variable) and term.name in binding else term
            for term in atom.terms
        ]
        return atom.predicate == shown.predicate and list(shown.terms) == expected

    def count(self, atom: Atom) -> int:
        return sum(1 for row in self.relations.get(atom.predicate, set()) if _matches(atom, row))

    # absences

    def check_absence(self, absence: Absence) -> None:
        assert self.count(absence.goal) == 0
        if absence.nearest is not None:
            assert absence.nearest in self.base
        derived = {rule.head.predicate for rule in self.program.rules}
        if absence.goal.predicate in derived and not absence.cut:
            distinct = list(dict.fromkeys(r for r in self.program.rules if r.head.predicate == absence.goal.predicate))
            assert len(absence.attempts) + absence.other_rules == len(distinct)
        for attempt in absence.attempts:
            self._check_attempt(absence.goal, attempt)

    def _check_attempt(self, goal: Atom, attempt: Attempt) -> None:
        rule = attempt.rule
        assert rule in self.program.rules
        fixed = _head_binding(rule, goal)
        assert fixed is not None, "only rules whose head unifies are tried"
        passed = [rule.body[place] for place, _ in attempt.passed]
        assert attempt.complete
        assert len(self._solutions(passed, fixed)) == attempt.reached
        assert not self._solutions([*passed, rule.body[attempt.place]], fixed)
        binding = dict(attempt.binding)
        assert binding.items() >= fixed.items()
        self._check_miss(rule.body[attempt.place], attempt, binding)

    def _solutions(self, literals: list[Literal], fixed: dict[str, str]) -> set[tuple[tuple[str, str], ...]]:
        """Distinct bindings of the literals' variables that extend `fixed`, by trying all of them."""
        pinned = Rule(Atom(Predicate("Any", 0), ()), tuple(_pinned(literal, fixed) for literal in literals))
        return {tuple(sorted({**fixed, **found}.items())) for found in bindings(pinned, self.relations)}

    def _check_miss(self, literal: Literal, attempt: Attempt, binding: dict[str, str]) -> None:
        match literal, attempt.miss:
            case Positive(atom), MissingFact() as missing:
                assert self._agrees(atom, missing.atom, binding)
                assert self.count(missing.atom) == 0
                if missing.nearest is not None:
                    assert missing.nearest.values in self.relations[missing.nearest.predicate]
                    for place, (term, value) in enumerate(zip(missing.atom.terms, missing.nearest.values, strict=True)):
                        assert (place in missing.differs) == (isinstance(term, Constant) and term.value != value)
                if missing.because is not None:
                    assert missing.because.goal == missing.atom
                    self.check_absence(missing.because)
            case Negated(atom), BlockedBy(shown, proof):
                assert self._agrees(atom, shown, binding)
                assert _matches(shown, proof.fact.values)
                self.check_proof(proof)
            case Cardinality(atom, operator, bound), WrongCount(counted):
                assert self._agrees(atom, counted.atom, binding)
                assert counted.count == self.count(counted.atom)
                assert not cardinality_holds(counted.count, operator, _value(bound, binding))
            case ((Unequal() | Compare() | TextShape()), BuiltinFailed(shown)):
                assert not _test(literal, binding)
                assert _ground(shown)
            case _:
                raise AssertionError((literal, attempt.miss))


def _value(term: Term, binding: dict[str, str]) -> str:
    return term.value if isinstance(term, Constant) else binding[term.name]  # type: ignore[union-attr]  # safe rules


def _ground(test: object) -> bool:
    parts = [getattr(test, name) for name in ("left", "right", "text", "start", "end") if hasattr(test, name)]
    return all(isinstance(part, Constant) for part in parts)


def _test(literal: object, binding: dict[str, str]) -> bool:
    match literal:
        case Unequal(left, right):
            return _value(left, binding) != _value(right, binding)
        case Compare(kind, left, operator, right):
            return compare(kind, _value(left, binding), operator, _value(right, binding))
        case TextShape(text, start, delimiters, end):
            return text_shape(_value(text, binding), _value(start, binding), delimiters, _value(end, binding))
        case _:
            return True


def _matches(atom: Atom, row: tuple[str, ...]) -> bool:
    binding: dict[str, str] = {}
    for term, value in zip(atom.terms, row, strict=True):
        if isinstance(term, Constant) and term.value != value:
            return False
        if isinstance(term, Variable) and binding.setdefault(term.name, value) != value:
            return False
    return True


def _head_binding(rule: Rule, goal: Atom) -> dict[str, str] | None:
    binding: dict[str, str] = {}
    for term, wanted in zip(rule.head.terms, goal.terms, strict=True):
        if isinstance(wanted, Constant):
            if isinstance(term, Constant) and term != wanted:
                return None
            if isinstance(term, Variable) and binding.setdefault(term.name, wanted.value) != wanted.value:
                return None
    return binding


def _pinned(literal: Literal, fixed: dict[str, str]) -> Literal:
    """The literal with the fixed variables replaced by their values."""

    def term(old: Term) -> Term:
        return Constant(fixed[old.name]) if isinstance(old, Variable) and old.name in fixed else old

    def atom(old: Atom) -> Atom:
        return Atom(old.predicate, tuple(map(term, old.terms)))

    match literal:
        case Positive(old) | Negated(old):
            return type(literal)(atom(old))
        case Cardinality(old, operator, bound):
            return Cardinality(atom(old), operator, term(bound))
        case Unequal(left, right):
            return Unequal(term(left), term(right))
        case Compare(kind, left, operator, right):
            return Compare(kind, term(left), operator, term(right))
        case TextShape(text, start, delimiters, end):
            return TextShape(term(text), term(start), delimiters, term(end))
        case _:
            return literal


def absent_facts(derived: Relations, values: list[str], most: int) -> list[Fact]:
    """Some facts of the derived predicates that do not hold."""
    found: list[Fact] = []
    for predicate in sorted(derived):
        missing = (row for row in product(values, repeat=predicate.arity) if row not in derived[predicate])
        found += [Fact(predicate, row) for row, _ in zip(missing, range(most), strict=False)]
    return found


__all__ = ["Anonymous", "Checker", "absent_facts"]
