"""Rules that look at one record at a time (040, lowered programs).

Rule: this is read off the rules' texts, and when in doubt the answer is no. Where it is yes, whether a record is
sendable or requestable follows from the facts and claims about that very record and from what is the same for all of
them; so a change of the store is followed by looking at what came and went, and nothing has to be remembered for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lace.datalog.stratify import reachable
from lace.datalog.syntax import Positive, Predicate, Rule, Variable
from lace.facts.predicates import ADVERTISEMENT_PREDICATES, RECORD_PREDICATES
from lace.policy.rewrite import atom_of, heads

_BASE: dict[Predicate, int] = dict.fromkeys((*RECORD_PREDICATES, *ADVERTISEMENT_PREDICATES), 0)


def looks_at_one_record(rules: Iterable[Rule], goals: Sequence[Predicate]) -> bool:
    """Whether every fact of the goals is derived from facts about the one record that it names first.

    Every predicate that depends on records has one place for the record it speaks of; a rule is of that kind if all
    its atoms speak of the same record, and its head does too. Whatever depends on no record is the same for all.
    """
    wanted = reachable(rules := tuple(rules), goals)
    needed = [rule for rule in rules if rule.head.predicate in wanted]
    dependent = _dependent(needed)
    places: dict[Predicate, int] = dict(_BASE)
    # A place is found for one predicate after the other; recursion through one that has none yet waits for its turn.
    waiting = {predicate for predicate in heads(needed) if predicate in dependent}
    while waiting:
        found = {predicate: place for predicate in waiting if (place := _place(predicate, needed, places)) is not None}
        if not found:
            return False
        places |= found
        waiting -= found.keys()
    return all(_agrees(rule, places, dependent) for rule in needed) and all(places.get(goal, 0) == 0 for goal in goals)


def _dependent(rules: Sequence[Rule]) -> set[Predicate]:
    """The predicates that depend on records."""
    dependent: set[Predicate] = set(_BASE)
    while True:
        more = {
            rule.head.predicate
            for rule in rules
            if rule.head.predicate not in dependent
            and any((atom := atom_of(literal)) is not None and atom.predicate in dependent for literal in rule.body)
        }
        if not more:
            return dependent
        dependent |= more


def _place(predicate: Predicate, rules: Sequence[Rule], places: dict[Predicate, int]) -> int | None:
    """Where facts of a predicate name their record, by the first rule that tells."""
    for rule in rules:
        if rule.head.predicate != predicate:
            continue
        for literal in rule.body:
            if isinstance(literal, Positive) and literal.atom.predicate in places:
                record = literal.atom.terms[places[literal.atom.predicate]]
                if isinstance(record, Variable) and record in rule.head.terms:
                    return rule.head.terms.index(record)
    return None


def _agrees(rule: Rule, places: dict[Predicate, int], dependent: set[Predicate]) -> bool:
    """Whether a rule speaks of one record, which its head names where its predicate does."""
    if rule.head.predicate not in dependent:
        return True
    record = rule.head.terms[places[rule.head.predicate]]
    if not isinstance(record, Variable):
        return False
    is_bound = False
    for literal in rule.body:
        atom = atom_of(literal)
        if atom is None or atom.predicate not in dependent:
            continue
        if atom.terms[places[atom.predicate]] != record:
            return False
        is_bound = is_bound or isinstance(literal, Positive)
    return is_bound
