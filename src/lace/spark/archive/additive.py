"""Which programs add up: the result over two batches is the results of each, put together (030).

Rule: pure syntax, and only sufficient. A program that is not found to add up is evaluated over everything, so a doubt
costs time and never an answer.

A rule adds up if everything it reads of records is said of one record: every literal that hangs on records names that
record where it is known to speak of it, negated and counted literals too; or there is a single such literal, and it is
neither negated nor counted. Every derivation then rests on one record, however many steps it takes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from lace.datalog.language.syntax import Atom, Positive, Predicate, Program, Rule, Term, Variable
from lace.datalog.planning.stratify import reachable, read_atom
from lace.datalog.planning.unfold import unfold
from lace.policy.parts import is_link_to_part
from lace.spark.engine.executor import MAX_UNFOLDED_BODY, is_star
from lace.spark.engine.stars import Star, split

Places = dict[Predicate, set[int]]


class Additivity(NamedTuple):
    """Whether batches may be evaluated one by one, and whether a record that goes takes exactly its own row along."""

    adds_up: bool
    keyed: bool


def additivity(program: Program, goal: Predicate) -> Additivity:
    """What a goal's rules allow."""
    parts = split(unfold(program, {goal}, is_star, MAX_UNFOLDED_BODY))
    wanted = reachable(parts.program.rules, {goal})
    rules = [rule for rule in parts.program.rules if rule.head.predicate in wanted]
    on_records = hanging_on(rules, {star.predicate for star in parts.stars})
    places = _record_places(rules, parts.stars, on_records)
    if not all(_rests_on_one(rule, on_records, places) for rule in rules):
        return Additivity(False, False)
    of_goal = [rule for rule in rules if rule.head.predicate == goal]
    return Additivity(True, 0 in places.get(goal, ()) and all(_reads(rule, on_records) for rule in of_goal))


def without_parts(program: Program) -> Program:
    """The rules that can derive something where no record names parts of content: it adds up more often than all do.

    Selectors select the parts of what they select, which joins records. Batches without parts and without records that
    name some change nothing about parts, so for these the other rules decide alone.
    """
    rules = program.rules
    defined = {rule.head.predicate for rule in rules}
    kept = [rule for rule in rules if not any(is_link_to_part(atom) for atom in _premises(rule))]
    while True:
        barren = defined - {rule.head.predicate for rule in kept}
        fertile = [rule for rule in kept if all(atom.predicate not in barren for atom in _premises(rule))]
        if len(fertile) == len(kept):
            return Program(tuple(kept))
        kept = fertile


def _premises(rule: Rule) -> list[Atom]:
    return [literal.atom for literal in rule.body if isinstance(literal, Positive)]


def _reads(rule: Rule, among: Collection[Predicate]) -> list[tuple[Atom, bool]]:
    """The atoms of a body that read some predicates, each with whether it is plainly positive."""
    return [
        (read[0], isinstance(literal, Positive))
        for literal in rule.body
        if (read := read_atom(literal)) is not None and read[0].predicate in among
    ]


def hanging_on(rules: Sequence[Rule], stars: Collection[Predicate]) -> set[Predicate]:
    """The stars and every predicate that is derived from them."""
    found, before = set(stars), -1
    while len(found) != before:
        before = len(found)
        found |= {rule.head.predicate for rule in rules if _reads(rule, found)}
    return found


def _record_places(rules: list[Rule], stars: Iterable[Star], on_records: set[Predicate]) -> Places:
    """Where each predicate names the one record that its facts rest on: all places, less those that a rule belies."""
    places: Places = {predicate: set(range(predicate.arity)) for predicate in on_records}
    for star in stars:
        places[star.predicate] = {place for place, given in enumerate(star.outputs) if given == star.record}
    changed = True
    while changed:
        changed = False
        for rule in rules:
            head = rule.head
            if head.predicate not in places or not _reads(rule, on_records):
                continue
            records = _records(rule, on_records, places)
            belied = {place for place in places[head.predicate] if head.terms[place] not in records}
            if belied:
                places[head.predicate] -= belied
                changed = True
    return places


def _records(rule: Rule, on_records: set[Predicate], places: Places) -> set[Term]:
    """The variables that name the record of every literal which hangs on records."""
    named = [
        {atom.terms[place] for place in places[atom.predicate] if isinstance(atom.terms[place], Variable)}
        for atom, _ in _reads(rule, on_records)
    ]
    return set.intersection(*named) if named else set()


def _rests_on_one(rule: Rule, on_records: set[Predicate], places: Places) -> bool:
    hanging = _reads(rule, on_records)
    return not hanging or bool(_records(rule, on_records, places)) or (len(hanging) == 1 and hanging[0][1])
