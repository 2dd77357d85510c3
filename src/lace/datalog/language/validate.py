"""Which parsed programs may be evaluated: names, safety, shadowing, strata (030).

Rule: one door, `check_program`, makes a CheckedProgram of what people wrote, and executors take nothing else. A program
is refused whole. What our own passes make of a checked program comes by `rewritten`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import field, replace

from lace.datalog.language.diagnosis import lacegram_error
from lace.datalog.language.lineparser import BUILTIN_ARITIES, KEYWORDS, PREDICATE_NAME, REMOVED_BUILTIN
from lace.datalog.language.syntax import (
    NOWHERE,
    Anonymous,
    Atom,
    Cardinality,
    Compare,
    Constant,
    Literal,
    Place,
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
from lace.datalog.language.terms import literal_terms
from lace.datalog.limit_errors import limit_reached
from lace.datalog.planning.stratify import Stratum, forbidden_cycles, read_atom, strata
from lace.errors import InvalidLacegram
from lace.limits import EngineLimits
from lace.values import dataclass

# 030 lists the record fact predicates of 020 as reserved base predicates.
RECORD_BASE = frozenset(
    Predicate(name, arity)
    for name, arity in (("Have", 1), ("Field", 4), ("RecordLink", 5), ("BlobHash", 2), ("PlexHash", 2))
)
_DEFAULT_LIMITS = EngineLimits()
_TOKEN = re.compile(r"'(?:[^'\\]|\\.)*+'|[A-Za-z0-9_~-]++")


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What the place that evaluates a program says about predicate names."""

    name: str
    base: frozenset[Predicate] = frozenset()  # supplied as facts; never a head (030-SHADOW-01)
    runtime: frozenset[Predicate] = frozenset()  # those of `base` that count as runtime facts (030-LIM-03)
    forbidden_heads: frozenset[Predicate] = frozenset()
    forbidden_bodies: frozenset[Predicate] = frozenset()
    reserved_prefixes: tuple[str, ...] = ()  # refused in heads and in bodies
    may_use_underscore: bool = False  # 030-SYN-11

    def with_base(self, predicates: Iterable[Predicate]) -> Profile:
        """The same profile with more base predicates, for example those of a fact source."""
        return replace(self, base=self.base | frozenset(predicates))


LOCAL_PROFILE = Profile(name="local", base=RECORD_BASE, may_use_underscore=True)
RAW_PROFILE = Profile(name="raw", may_use_underscore=True)  # whatever is not a head is base


@dataclass(frozen=True, slots=True)
class CheckedProgram:
    """A program that every rule of 030 accepts; made by `check_program`, or of one that it made by `rewritten`."""

    program: Program
    profile: Profile
    strata: tuple[Stratum, ...]  # components in topological order
    derived: frozenset[Predicate]
    base: frozenset[Predicate] = field(default=frozenset())  # what bodies read and no rule derives


def check_program(
    program: Program, profile: Profile = LOCAL_PROFILE, limits: EngineLimits = _DEFAULT_LIMITS
) -> CheckedProgram:
    """The checked program, or its first error."""
    errors = check_all(program, profile, limits)
    if errors:
        raise errors[0]
    return rewritten(program, profile)


def rewritten(program: Program, profile: Profile) -> CheckedProgram:
    """What a rewriting made of a checked program, or a part of that.

    Nothing is checked again. It is safe because each rule binds its head and tests by the same atoms as its original,
    and it has names that no author may choose and bodies longer than an author may write.
    """
    derived = frozenset(rule.head.predicate for rule in program.rules)
    read = {found[0].predicate for rule in program.rules for found in map(read_atom, rule.body) if found}
    return CheckedProgram(program, profile, strata(program), derived, frozenset(read - derived))


def check_all(
    program: Program, profile: Profile = LOCAL_PROFILE, limits: EngineLimits = _DEFAULT_LIMITS
) -> list[InvalidLacegram]:
    """Every error of the program, in the order of its text; limits raise at once."""
    _check_limits(program, limits)
    lines = program.source.text.split("\n") if program.source.text else []
    findings = [finding for rule in program.rules for finding in _rule_findings(rule, profile)]
    findings += _cycle_findings(program)
    findings.sort(key=lambda finding: (finding.rule.place.line, finding.rule.place.column))
    return [_error(program, lines, finding) for finding in findings]


@dataclass(frozen=True, slots=True)
class _Finding:
    rule: Rule
    place: Place  # of the atom
    code: str
    message: str
    advice: str = ""
    token: str = ""  # what the caret points at, inside the atom


def _error(program: Program, lines: list[str], finding: _Finding) -> InvalidLacegram:
    place = finding.place if finding.place != NOWHERE else finding.rule.place
    line = lines[place.line - 1] if 0 < place.line <= len(lines) else ""
    if finding.token and line:
        tokens = _TOKEN.finditer(line, place.column - 1)
        place = next((Place(place.line, t.start() + 1) for t in tokens if t[0] == finding.token), place)
    return lacegram_error(program.source, place, line, finding.code, finding.message, finding.advice)


# limits


def _check_limits(program: Program, limits: EngineLimits) -> None:
    if len(program.rules) > limits.max_rules:  # 030-LIM-05
        raise limit_reached("max_rules", limits.max_rules, f"{len(program.rules)} rules")
    for rule in program.rules:
        if len(rule.body) > limits.max_rule_literals:
            detail = f"{len(rule.body)} in a rule for {rule.head.predicate}"
            raise limit_reached("max_rule_literals", limits.max_rule_literals, detail)
        for atom in (rule.head, *(found[0] for found in map(read_atom, rule.body) if found)):
            if atom.predicate.arity > limits.max_tuple_arity:
                raise limit_reached("max_tuple_arity", limits.max_tuple_arity, str(atom.predicate))
        for value in _constants(rule):
            if len(value.encode()) > limits.max_value_bytes:
                raise limit_reached("max_value_bytes", limits.max_value_bytes, f"a constant for {rule.head.predicate}")


def _constants(rule: Rule) -> Iterator[str]:
    for term in (*rule.head.terms, *(term for literal in rule.body for term in literal_terms(literal))):
        if isinstance(term, Constant):
            yield term.value


# one rule


def _rule_findings(rule: Rule, profile: Profile) -> Iterator[_Finding]:
    yield from _head_name_findings(rule, profile)
    for literal in rule.body:
        read = read_atom(literal)
        if read is not None:
            yield from _body_name_findings(rule, read[0], profile)
    yield from _safety_findings(rule)


def _head_name_findings(rule: Rule, profile: Profile) -> Iterator[_Finding]:
    atom, predicate = rule.head, rule.head.predicate
    yield from _name_findings(rule, atom, profile)
    if predicate in profile.base:
        message = f"{predicate} is a base predicate and cannot be derived"
        yield _Finding(rule, atom.place, "shadowing", message, "choose another head name")
    if predicate in profile.forbidden_heads:
        message = f"{predicate} is reserved under the {profile.name} profile and cannot be defined"
        yield _Finding(rule, atom.place, "reserved-head", message, "choose another head name")


def _body_name_findings(rule: Rule, atom: Atom, profile: Profile) -> Iterator[_Finding]:
    yield from _name_findings(rule, atom, profile)
    if atom.predicate in profile.forbidden_bodies:
        message = f"{atom.predicate} cannot be read under the {profile.name} profile"
        yield _Finding(rule, atom.place, "reserved-body", message)


def _name_findings(rule: Rule, atom: Atom, profile: Profile) -> Iterator[_Finding]:
    name = atom.predicate.name
    if name in BUILTIN_ARITIES or name in KEYWORDS or name == REMOVED_BUILTIN:
        yield _Finding(rule, atom.place, "builtin-name", f"{name} is reserved by the language", "choose another name")
    elif PREDICATE_NAME.fullmatch(name) is None:
        yield _Finding(rule, atom.place, "predicate-name", f"{name!r} is not a predicate name")
    if name.startswith("_") and not profile.may_use_underscore:  # 030-SYN-13
        message = f"{name} begins with _ and is local only; the {profile.name} profile does not permit it"
        yield _Finding(rule, atom.place, "underscore-predicate", message, "choose a public name")
    for prefix in profile.reserved_prefixes:
        if name.startswith(prefix):
            message = f"names beginning {prefix} are reserved under the {profile.name} profile"
            yield _Finding(rule, atom.place, "reserved-prefix", message, "choose another name")


def variables(terms: Iterable[Term]) -> dict[str, None]:
    """The names of the variables among terms, in order, each once."""
    return {term.name: None for term in terms if isinstance(term, Variable)}


def _safety_findings(rule: Rule) -> Iterator[_Finding]:
    """030-SAFETY-01..14: body order does not matter."""
    positive = [literal.atom for literal in rule.body if isinstance(literal, Positive)]
    bound = {name for atom in positive for name in variables(atom.terms)}
    if any(isinstance(term, Anonymous) for term in rule.head.terms):
        message, advice = "_ cannot stand in a rule head", "name the value and bind it in the body"
        yield _Finding(rule, rule.head.place, "anonymous-head", message, advice, "_")
    for name in variables(rule.head.terms):
        if name not in bound:
            yield _unbound(rule, rule.head.place, name, "is in the head")
    shared = _literals_per_name(rule)
    for literal in rule.body:
        yield from _literal_safety(rule, literal, bound, shared)


def _literals_per_name(rule: Rule) -> Counter[str]:
    """How many literals (the head is one; each counted atom too) a variable stands in."""
    seen: Counter[str] = Counter(variables(rule.head.terms).keys())
    for literal in rule.body:
        seen.update(variables(literal_terms(literal)).keys())
    return seen


def _literal_safety(rule: Rule, literal: Literal, bound: set[str], seen: Counter[str]) -> Iterator[_Finding]:
    match literal:
        case Positive() | TrueLiteral():
            return
        case Cardinality(atom, _, limit, place):
            if isinstance(limit, Anonymous):
                yield _Finding(rule, place, "anonymous-builtin", "_ cannot be the bound of Cardinality")
            for name in variables((limit,)):
                if name not in bound:
                    yield _unbound(rule, place, name, "is the bound of Cardinality")
            # 030-SAFETY-10, 030-SAFETY-11: what stands only in this counted atom is local to it.
            for name in variables(atom.terms):
                if name not in bound and seen[name] > 1:
                    yield _unbound(rule, atom.place, name, "is shared with a Cardinality atom")
        case Unequal() | Compare() | TextShape():
            terms = literal_terms(literal)
            if any(isinstance(term, Anonymous) for term in terms):  # 030-SAFETY-08
                message, advice = "_ cannot stand in a builtin", "name the value and bind it in a positive atom"
                yield _Finding(rule, literal.place, "anonymous-builtin", message, advice, "_")
            for name in variables(terms):
                if name not in bound:
                    yield _unbound(rule, literal.place, name, "is in a builtin")
        case _:
            for name in variables(literal.atom.terms):
                if name not in bound:
                    yield _unbound(rule, literal.atom.place, name, "is in a negated atom")


def _unbound(rule: Rule, place: Place, name: str, where: str) -> _Finding:
    message = f"variable {name} {where} but in no positive body atom"
    return _Finding(rule, place, "unsafe", message, f"bind {name} by a positive atom such as Have({name})", name)


# the whole program


def _cycle_findings(program: Program) -> Iterator[_Finding]:
    for cycle in forbidden_cycles(program):
        edge = cycle.edge
        by = "not" if edge.sign == "negative" else "Cardinality"
        path = " → ".join(map(str, cycle.path))
        message = f"{edge.head} depends on itself through {by} {edge.body}: {path}"
        advice = "break the cycle: a negated or counted predicate must be complete before it is read"
        yield _Finding(edge.rule, edge.atom.place, "unstratified", message, advice)
