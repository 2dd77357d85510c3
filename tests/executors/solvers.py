"""clingo and nemo as oracles: our programs in their languages.

Values become codes, and what builtins say is handed over as tables over the active domain (so these oracles check
joins, recursion, negation and counting; the meaning of builtins is checked by the case suite). nemo has no count that
can be zero, so it runs programs without Cardinality only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import product

import clingo
import nmo_python

from lace.datalog.binding import value_of
from lace.datalog.language.comparisons import compare, integer_key, text_shape
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
from lace.datalog.language.validate import literal_terms, variables
from lace.datalog.source import Row

Relations = dict[Predicate, set[Row]]
Test = Compare | TextShape
_FAR = 1_000_000_000  # clingo counts in 32 bits; no count here comes near


class Coder:
    """The values of a scenario by number."""

    def __init__(self, program: Program, facts: Iterable[Fact]) -> None:
        texts = {value for fact in facts for value in fact.values}
        for rule in program.rules:
            for term in (*rule.head.terms, *(t for literal in rule.body for t in literal_terms(literal))):
                if isinstance(term, Constant):
                    texts.add(term.value)
        self.texts = sorted(texts)
        self.codes = {text: f'"v{number}"' for number, text in enumerate(self.texts)}

    def row(self, values: Iterable[str]) -> Row:
        """Coded values back to texts."""
        return tuple(self.texts[int(value.strip('"')[1:])] for value in values)

    def table(self, test: Test) -> Iterator[Row]:
        """The values of the test's variables for which it holds."""
        names = list(variables(literal_terms(test)))
        for chosen in product(self.texts, repeat=len(names)):
            if _holds(test, dict(zip(names, chosen, strict=True))):
                yield chosen


def _holds(test: Test, binding: dict[str, str]) -> bool:
    if isinstance(test, Compare):
        return compare(test.kind, value_of(test.left, binding), test.operator, value_of(test.right, binding))
    parts = value_of(test.text, binding), value_of(test.start, binding), test.delimiters, value_of(test.end, binding)
    return text_shape(*parts)


def _call(name: str, arguments: Iterable[str]) -> str:
    return f"{name}({_joined(arguments)})"


def _joined(arguments: Iterable[str]) -> str:
    return ",".join(('"u"', *arguments))


def _name(predicate: Predicate) -> str:
    return f"p_{predicate.name.lower()}_{predicate.arity}"


class Translation:
    """A program and facts as the text of another solver; every predicate has one more, leading, constant column."""

    def __init__(self, program: Program, facts: Iterable[Fact], variable: str, negation: str) -> None:
        facts = list(facts)
        self.coder = Coder(program, facts)
        self._variable = variable
        self._negation = negation
        self._tables = 0
        self.lines = ['unit("u").']
        self.lines += [self._fact(_name(fact.predicate), fact.values) for fact in facts]
        for rule in program.rules:
            self.lines.append(self._rule(rule))

    def text(self) -> str:
        """The whole program."""
        return "\n".join(self.lines)

    def _fact(self, name: str, values: Iterable[str]) -> str:
        return _call(name, (self.coder.codes[value] for value in values)) + "."

    def _term(self, term: Term) -> str:
        match term:
            case Variable(name):
                return f"{self._variable}{name}"
            case Constant(value):
                return self.coder.codes[value]
            case Anonymous():
                return "_"

    def _atom(self, atom: Atom) -> str:
        return _call(_name(atom.predicate), map(self._term, atom.terms))

    def _rule(self, rule: Rule) -> str:
        body = ['unit("u")', *(self._literal(literal) for literal in rule.body)]
        return f"{self._atom(rule.head)} :- {', '.join(body)}."

    def _literal(self, literal: Literal) -> str:
        match literal:
            case Positive(atom):
                return self._atom(atom)
            case Negated(atom):
                return f"{self._negation}{self._atom(atom)}"
            case Unequal(left, right):
                return f"{self._term(left)} != {self._term(right)}"
            case Cardinality():
                return self._count(literal)
            case TrueLiteral():
                return 'unit("u")'
            case _:
                return self._table(literal)

    def _table(self, test: Test) -> str:
        self._tables += 1
        name = f"t_{self._tables}"
        self.lines += [self._fact(name, row) for row in self.coder.table(test)]
        names = variables(literal_terms(test))
        return _call(name, (self._variable + n for n in names))

    def _count(self, literal: Cardinality) -> str:
        raise NotImplementedError


class ClingoTranslation(Translation):
    """`#count` over the positions that are free."""

    def _count(self, literal: Cardinality) -> str:
        self._tables += 1
        number = f"n_{self._tables}"
        for text in self.coder.texts:
            if integer_key(text) is not None:
                self.lines.append(f"{number}({self.coder.codes[text]},{max(-_FAR, min(_FAR, int(text)))}).")
        shown = [f"C{n}" if isinstance(t, Anonymous) else self._term(t) for n, t in enumerate(literal.atom.terms)]
        atom = _call(_name(literal.atom.predicate), shown)
        bound = f"N{self._tables}"
        counted = f"#count{{ {_joined(shown)} : {atom} }} {literal.operator} {bound}"
        return f"{number}({self._term(literal.bound)},{bound}), {counted}"


def run_clingo(program: Program, facts: Iterable[Fact]) -> Relations:
    """What clingo derives."""
    translation = ClingoTranslation(program, facts, "", "not ")
    control = clingo.Control(["--warn=none"])
    control.add("base", [], translation.text())
    control.ground([("base", [])])
    found: Relations = {rule.head.predicate: set() for rule in program.rules}
    names = {_name(predicate): predicate for predicate in found}
    for atom in control.symbolic_atoms:
        predicate = names.get(atom.symbol.name)
        if predicate is not None and atom.is_fact:
            found[predicate].add(translation.coder.row(argument.string for argument in atom.symbol.arguments[1:]))
    return found


def run_nemo(program: Program, facts: Iterable[Fact]) -> Relations:
    """What nemo derives."""
    translation = Translation(program, facts, "?", "~")
    engine = nmo_python.NemoEngine(nmo_python.load_string(translation.text()))
    engine.reason()
    found: Relations = {}
    for rule in program.rules:
        predicate = rule.head.predicate
        rows = engine.result(_name(predicate))
        found[predicate] = {translation.coder.row(map(str, row[1:])) for row in rows}
    return found


def nemo_can_say(program: Program) -> bool:
    """Whether a program counts nothing."""
    return not any(isinstance(literal, Cardinality) for rule in program.rules for literal in rule.body)


Solver = Callable[[Program, Iterable[Fact]], Relations]
