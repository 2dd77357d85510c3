"""Evaluate only what a goal asks for (030-EVAL-04): magic sets, where they pay.

Rule: for the facts that match a goal, the rewritten program derives exactly what the whole program derives.

A goal with bound places becomes a demand; each rule gets a copy that runs only where its head is demanded, and each
derived atom of its body is demanded for the values that reach it. Values are passed on only where few reach an atom,
judged by the sizes of base facts: asking for nearly everything costs more than deriving it. What is negated or counted
is demanded too, as long as the result can still be stratified; otherwise, and where a count is a rank, it is evaluated
in full. A predicate that is read in full anywhere, or by a recursion in
several ways, is read in full everywhere; rules that no goal needs are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace

from lace.datalog.language.syntax import (
    ANONYMOUS,
    Atom,
    Cardinality,
    Compare,
    Constant,
    Fact,
    Literal,
    Negated,
    Place,
    Positive,
    Predicate,
    Program,
    Rule,
    Term,
    TextShape,
    TrueLiteral,
    Unequal,
)
from lace.datalog.language.terms import names_among, variable_names
from lace.datalog.language.validate import CheckedProgram, rewritten
from lace.datalog.planning.adornment import CopyNames, Places, bound_places, constants, is_free, passing_order, ready
from lace.datalog.planning.factoring import as_walk
from lace.datalog.planning.ranking import ranked_predicates
from lace.datalog.planning.stratify import forbidden_cycles, reachable, read_atom
from lace.values import dataclass

RowsOf = Callable[[Atom], int]  # how many base facts match the constants of an atom
_PAYS_BELOW = 4  # demand pays if this many times as many rows would be read without it
_FEW_GOALS = 8  # that differ in constants only; more of them are joined instead of being written as rules


@dataclass(frozen=True, slots=True)
class Copy:
    """What a rewritten program derives of a predicate: the facts that have asked values at `places`."""

    predicate: Predicate  # under which the facts stand
    places: Places
    asked: Predicate | None  # the asked values; None where all facts are derived


@dataclass(frozen=True, slots=True)
class Demanded:
    """A program that answers goals: what to give it, where the answers stand, and what else it knows."""

    checked: CheckedProgram
    answers: Mapping[Predicate, Predicate]
    seeds: tuple[Fact, ...] = ()  # base facts that say what the goals ask for
    copies: Mapping[Predicate, tuple[Copy, ...]] = field(default_factory=dict)
    spreads: bool = False  # whether deriving leads to more that is asked for; else it derives a part of the whole


def demand(
    checked: CheckedProgram,
    goals: Iterable[Atom],
    rows_of: RowsOf | None = None,
    *,
    only_answers: bool = True,
    given: Iterable[Predicate] = (),
) -> Demanded:
    """Rewrite a program for goals; without sizes every value that can be passed on is.

    For `only_answers` a recursion may be walked without deriving the facts that the answers stand on. The program made
    will be evaluated over facts of the predicates `given`: it gives none of their names to anything else.
    """
    asked, facts = list(dict.fromkeys(goals)), frozenset(given)
    walk = as_walk(checked, asked[0], facts) if only_answers and len(asked) == 1 else None
    if walk is None:
        return _demand(checked, asked, rows_of, frozenset(), facts)
    facts |= {walk.start.predicate}
    found = _demand(walk.checked, [_any_fact(walk.answer)], rows_of, frozenset({walk.reached}), facts)
    answers = {asked[0].predicate: found.answers[walk.answer]}
    return replace(found, answers=answers, seeds=(*found.seeds, walk.start))


def _any_fact(predicate: Predicate) -> Atom:
    return Atom(predicate, (ANONYMOUS,) * predicate.arity)


def _demand(
    checked: CheckedProgram,
    asked: list[Atom],
    rows_of: RowsOf | None,
    few: frozenset[Predicate],
    given: frozenset[Predicate],
) -> Demanded:
    sizes = _Weights(checked.program, rows_of) if rows_of is not None else None
    ranked = _ranked(checked.program).difference(goal.predicate for goal in asked)  # whose facts are wanted, not counts
    for in_full in (ranked, _negated_or_counted(checked.program)):
        rewriting = _rewritten(checked, _with_all_they_read(checked.program, in_full), asked, sizes, few, given)
        if not any(forbidden_cycles(rewriting.program)):
            break
    return rewriting.demanded()


def only_what_goals_read(checked: CheckedProgram, goals: Iterable[Atom], given: Iterable[Predicate] = ()) -> Demanded:
    """The rules that goals need, each as it is: nothing is derived in part."""
    asked = list(dict.fromkeys(goals))
    return _rewritten(checked, checked.derived, asked, None, frozenset(), frozenset(given)).demanded()


def _rewritten(
    checked: CheckedProgram,
    in_full: frozenset[Predicate],
    goals: list[Atom],
    sizes: _Weights | None,
    few: frozenset[Predicate],
    given: frozenset[Predicate],
) -> _Rewriting:
    """Again and again until no predicate is derived in more ways than pays."""
    whole: set[Predicate] = set()
    while True:
        names = CopyNames(checked.program, goals, given)
        rewriting = _Rewriting(checked, names, in_full, frozenset(whole), sizes, few)
        rewriting.ask(goals)
        also_in_full = rewriting.better_whole()
        if not also_in_full:
            return rewriting
        whole |= also_in_full


def _ranked(program: Program) -> set[Predicate]:
    return {predicate for predicate, _ in ranked_predicates(program)}


def _negated_or_counted(program: Program) -> set[Predicate]:
    literals = [literal for rule in program.rules for literal in rule.body]
    return {literal.atom.predicate for literal in literals if isinstance(literal, Negated | Cardinality)}


def _with_all_they_read(program: Program, predicates: Iterable[Predicate]) -> frozenset[Predicate]:
    """A part that is evaluated in full is the original program, so it can neither lose its strata nor its ranks."""
    heads = {rule.head.predicate for rule in program.rules}
    return reachable(program.rules, predicates) & heads.union(predicates)


class _Weights:
    """How many base rows stand under an atom or a predicate."""

    def __init__(self, program: Program, rows_of: RowsOf) -> None:
        self._program = program
        self._rows_of = rows_of
        self._under: dict[Predicate, int] = {}

    def rows(self, atom: Atom) -> int:
        """The base facts that an atom reads."""
        return self._rows_of(atom)

    def under(self, predicate: Predicate) -> int:
        """The largest number of base rows that a rule reads at once to derive all of a predicate."""
        found = self._under.get(predicate)
        if found is None:
            heads = _with_all_they_read(self._program, [predicate])
            rules = [rule for rule in self._program.rules if rule.head.predicate in heads]
            read = [found[0] for rule in rules for found in map(read_atom, rule.body) if found]
            base = [atom for atom in dict.fromkeys(read) if atom.predicate not in heads]
            found = max(map(self._rows_of, base), default=0)
            self._under[predicate] = found
        return found


@dataclass(slots=True)
class _Rewriting:
    """Rules collected on demand."""

    checked: CheckedProgram
    names: CopyNames
    in_full: frozenset[Predicate]  # with everything below them
    whole: frozenset[Predicate]  # read without demand, though what they read may be demanded
    sizes: _Weights | None
    few: frozenset[Predicate]  # whose facts are known to be few
    rules: dict[Rule, None] = field(default_factory=dict)
    seeds: list[Fact] = field(default_factory=list)
    answers: dict[Predicate, Predicate] = field(default_factory=dict)
    spreads: bool = False
    _done: set[tuple[Predicate, Places]] = field(default_factory=set)
    _waiting: list[tuple[Predicate, Places]] = field(default_factory=list)

    @property
    def program(self) -> Program:
        """The rules so far."""
        return Program(tuple(self.rules), self.checked.program.source)

    def demanded(self) -> Demanded:
        """The program that answers the goals."""
        done = rewritten(self.program, self.checked.profile)
        done = replace(
            done, base=done.base.union(self.answers.values()) - done.derived
        )  # a goal may ask for base facts
        return Demanded(done, self.answers, tuple(self.seeds), self._copies(), self.spreads)

    def _copies(self) -> dict[Predicate, tuple[Copy, ...]]:
        copies: dict[Predicate, tuple[Copy, ...]] = {}
        for predicate, places in sorted(self._done):
            asked = self.names.asked(predicate, places) if places else None
            copy = Copy(self.names.copy(predicate, places), places, asked)
            copies[predicate] = (*copies.get(predicate, ()), copy)
        return copies

    def better_whole(self) -> set[Predicate]:
        """Predicates asked for in full and in part, and recursive ones asked for in several ways: each way is derived
        by itself, and in a recursion each leads to the others."""
        ways: dict[Predicate, set[Places]] = {}
        for predicate, places in self._done:
            ways.setdefault(predicate, set()).add(places)
        recursive = {predicate for part in self.checked.strata if part.recursive for predicate in part.predicates}
        several = {predicate for predicate, found in ways.items() if len(found) > 1}
        return {predicate for predicate in several if () in ways[predicate] or predicate in recursive}

    def ask(self, goals: list[Atom]) -> None:
        """Rules for every goal; each predicate's answers are collected under one name."""
        alone = {goal.predicate for goal in goals if is_free(goal)}
        alike: dict[tuple[Predicate, Places, tuple[Term, ...]], list[Atom]] = {}
        for goal in goals:
            if goal.predicate in alone:  # all of its facts: no need to copy them
                self.answers[goal.predicate] = self._demanded(goal, ()).predicate
                continue
            self.answers[goal.predicate] = self.names.answers(goal.predicate)
            bound = tuple(n for n, term in enumerate(goal.terms) if isinstance(term, Constant))
            alike.setdefault((goal.predicate, bound, tuple(self.names.free_terms(goal.terms))), []).append(goal)
        for (_, bound, terms), group in alike.items():
            self._ask_alike(group, bound, terms)
        while self._waiting:
            self._rewrite(*self._waiting.pop())

    def _ask_alike(self, goals: list[Atom], bound: Places, terms: tuple[Term, ...]) -> None:
        """Goals that differ in their constants only: what they ask for is given as facts."""
        predicate = goals[0].predicate
        read = self._demanded(Atom(predicate, terms), bound)
        names = tuple(terms[n] for n in bound)
        given = self.names.given(predicate, bound)
        restricted = read.predicate != predicate
        if restricted:
            asked = Atom(self.names.asked(predicate, bound), names)
            self.rules[Rule(asked, (Positive(Atom(given, names)),))] = None
        if restricted or len(goals) > _FEW_GOALS:
            self.seeds += [Fact(given, constants(goal)) for goal in goals]
        if len(goals) > _FEW_GOALS:
            body = (Positive(read), Positive(Atom(given, names)))
            self.rules[Rule(Atom(self.answers[predicate], terms), body)] = None
            return
        for goal in goals:
            shown = tuple(self.names.named(goal.terms))
            self.rules[Rule(Atom(self.answers[predicate], shown), (Positive(Atom(read.predicate, shown)),))] = None

    def _demanded(self, atom: Atom, bound: Places) -> Atom:
        """The atom to read instead of a derived one."""
        predicate = atom.predicate
        if predicate not in self.checked.derived:
            return atom
        if predicate in self.in_full or predicate in self.whole:
            bound = ()
        if (predicate, bound) not in self._done:
            self._done.add((predicate, bound))
            self._waiting.append((predicate, bound))
        return Atom(self.names.copy(predicate, bound), atom.terms)

    def _rewrite(self, predicate: Predicate, bound: Places) -> None:
        for rule in self.checked.program.rules:
            if rule.head.predicate != predicate:
                continue
            if predicate in self.in_full:
                for literal in rule.body:
                    read = read_atom(literal)
                    if read is not None:
                        self._demanded(read[0], ())
                self.rules[rule] = None
            else:
                self._rewrite_rule(rule, bound)

    def _rewrite_rule(self, rule: Rule, bound: Places) -> None:
        head = Atom(self.names.copy(rule.head.predicate, bound), rule.head.terms)
        body: list[Literal] = [Positive(self.names.asked_atom(rule.head, bound))] if bound else []
        known = set(names_among(rule.head.terms[n] for n in bound))
        reach = dict.fromkeys(known, 1)  # how many values of a variable get as far as here; 1 stands for few
        tests: list[Literal] = [lit for lit in rule.body if isinstance(lit, Unequal | Compare | TextShape)]
        for positive in passing_order(rule, known, self.checked.derived):
            body += ready(tests, known, body)
            read = self._pass(positive.atom, reach, body, rule.place)
            self._spread(positive.atom, reach)
            body.append(Positive(read))
            known.update(variable_names(positive))
        body += ready(tests, known, body)
        closing: list[Literal] = []
        for literal in rule.body:
            if isinstance(literal, Negated):
                closing.append(Negated(self._pass(literal.atom, reach, body, rule.place)))
            elif isinstance(literal, Cardinality):
                read = self._pass(literal.atom, reach, body, rule.place)
                closing.append(Cardinality(read, literal.operator, literal.bound))
        self.rules[Rule(head, tuple(body + closing) or (TrueLiteral(),), rule.place)] = None

    def _pass(self, atom: Atom, reach: Mapping[str, int], body: list[Literal], place: Place) -> Atom:
        """Demand a body atom for the values that reach it, if they are few."""
        bound = bound_places(atom, reach.keys())
        read = self._demanded(atom, bound if self._pays(atom, reach) else ())
        if read.predicate != atom.predicate:
            magic = self.names.asked_atom(atom, bound)
            if Positive(magic) not in body:
                self.spreads = True
                self.rules.setdefault(Rule(magic, tuple(body) or (TrueLiteral(),), place), None)
        return read

    def _pays(self, atom: Atom, reach: Mapping[str, int]) -> bool:
        reaching = max((reach.get(name, 1) for name in names_among(atom.terms)), default=1)
        if self.sizes is None or reaching <= 1 or atom.predicate not in self.checked.derived:
            return True
        return reaching * _PAYS_BELOW <= self.sizes.under(atom.predicate)

    def _spread(self, atom: Atom, reach: dict[str, int]) -> None:
        """Values go on from one variable of an atom to all of them; what starts here is as much as the atom has."""
        names = names_among(atom.terms)
        derived = atom.predicate in self.checked.derived
        from_few = any(reach.get(name, 2) <= 1 for name in names)
        is_few = atom.predicate in self.few or (derived and bool(constants(atom)))
        if from_few or is_few or self.sizes is None:
            own = 1
        elif derived:
            own = max(2, self.sizes.under(atom.predicate))
        else:
            own = max(2, self.sizes.rows(atom))
        for name in names:
            reach[name] = min(reach.get(name, own), own)
