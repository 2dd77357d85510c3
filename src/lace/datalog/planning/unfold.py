"""Put the body of a predicate where it is read, if it has one rule and no recursion (030).

Rule: the program means the same for every predicate that is kept; only intermediate relations disappear. What one
record decides in several named steps becomes one rule, and so one pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from lace.datalog.language.syntax import (
    Atom,
    Constant,
    Literal,
    Positive,
    Predicate,
    Program,
    Rule,
    Term,
    TrueLiteral,
    Variable,
)
from lace.datalog.language.terms import literal_variables, map_terms
from lace.datalog.planning.names import VariableNames
from lace.datalog.planning.stratify import reachable, read_atom, strata


def unfold(program: Program, keep: Iterable[Predicate], worth_it: Callable[[Rule], bool], max_body: int) -> Program:
    """Unfold every predicate that has one rule which is `worth_it` or read once; bodies stay within `max_body`."""
    kept = set(keep)
    single = _single_rules(program)
    uses = Counter(found[0].predicate for rule in program.rules for x in rule.body if (found := read_atom(x)))
    done: dict[Predicate, Rule] = {}
    rules: list[Rule] = []
    for stratum in strata(program):
        for rule in stratum.rules:
            flat = _unfolded(rule, done, max_body)
            rules.append(flat)
            predicate = flat.head.predicate
            if single.get(predicate) is rule and (worth_it(flat) or uses[predicate] == 1):
                done[predicate] = flat
    return _without_unread(Program(tuple(rules)), kept)


def _single_rules(program: Program) -> dict[Predicate, Rule]:
    """Predicates with one rule, not recursive, whose head is distinct variables: those a use can be replaced by."""
    found: dict[Predicate, Rule] = {}
    for stratum in strata(program):
        if stratum.recursive or len(stratum.rules) != 1:
            continue
        rule = stratum.rules[0]
        variables = [term for term in rule.head.terms if isinstance(term, Variable)]
        if len(variables) == len(rule.head.terms) == len(set(variables)):
            found[rule.head.predicate] = rule
    return found


def _unfolded(rule: Rule, done: Mapping[Predicate, Rule], max_body: int) -> Rule:
    body: list[Literal] = []
    names = VariableNames.beside(rule)
    for place, literal in enumerate(rule.body):
        definition = done.get(literal.atom.predicate) if isinstance(literal, Positive) else None
        if definition is None or not isinstance(literal, Positive) or len(rule.body) + len(definition.body) > max_body:
            body.append(literal)
        else:
            body += _instance(definition, literal.atom, place, names)
    return replace(rule, body=tuple(dict.fromkeys(body)) or (TrueLiteral(),))


def _instance(definition: Rule, use: Atom, place: int, names: VariableNames) -> list[Literal]:
    """The definition's body for one use: head variables as the use says, all others renamed apart."""
    given: dict[Variable, Term] = {}
    for variable, term in zip(definition.head.terms, use.terms, strict=True):
        assert isinstance(variable, Variable)
        # `_` at a use still needs a name inside, where the variable may stand more than once.
        given[variable] = term if isinstance(term, Variable | Constant) else names.fresh(f"{variable.name}_{place}")
    for literal in definition.body:
        for variable in literal_variables(literal):
            if variable not in given:
                given[variable] = names.fresh(f"{variable.name}_{place}")

    def put(term: Term) -> Term:
        return given.get(term, term) if isinstance(term, Variable) else term

    return [map_terms(literal, put) for literal in definition.body if not isinstance(literal, TrueLiteral)]


def _without_unread(program: Program, kept: set[Predicate]) -> Program:
    """The rules that the kept predicates still depend on."""
    reached = reachable(program.rules, kept)
    return Program(tuple(rule for rule in program.rules if rule.head.predicate in reached))
