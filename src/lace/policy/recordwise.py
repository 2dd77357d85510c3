"""Rules that look at one record at a time, and at the manifests that it is a part of (040, lowered programs).

Rule: this is read off the rules' texts, and when in doubt the answer is no. Where it is yes, whether a record is
sendable or requestable follows from the facts and claims about that very record, from those about the manifests above
it, and from what is the same for all; so a change of the store is followed by looking at what came and went and at the
content these belong to, and nothing has to be remembered for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lace.datalog.language.syntax import Atom, Literal, Positive, Predicate, Rule, Variable
from lace.datalog.planning.stratify import reachable
from lace.facts.predicates import ADVERTISEMENT_PREDICATES, RECORD_PREDICATES
from lace.policy.parts import LINK_SOURCE, LINK_TARGET, UNFINISHED, is_link_to_part
from lace.policy.rewrite import atom_of, heads

_BASE: dict[Predicate, int] = dict.fromkeys((*RECORD_PREDICATES, *ADVERTISEMENT_PREDICATES), 0)
_Links = dict[Predicate, tuple[int, int]]
"""Predicates of links to parts: where each names the manifest, and where the part."""


def looks_at_one_record(rules: Iterable[Rule], goals: Sequence[Predicate]) -> bool:
    """Whether every fact of the goals is derived from facts about the one record that it names first.

    Every predicate that depends on records has one place for the record it speaks of; a rule is of that kind if all
    its atoms speak of the same record, and its head does too. Whatever depends on no record is the same for all. A rule
    may also speak of manifests that link to its record as to a part: then the facts of all manifests above a record
    count as its own.
    """
    wanted = reachable(rules := tuple(rules), goals)
    # Unfinished looks down from a manifest. It is asked only for parts that are missing, of manifests above them: these
    # are unfinished because of that very part, whatever else they lack, so what stands beside the part does not matter.
    needed = [rule for rule in rules if rule.head.predicate in wanted and rule.head.predicate != UNFINISHED]
    dependent, links = _dependent(needed), _part_links(needed)
    places: dict[Predicate, int] = dict(_BASE) | {UNFINISHED: 0}
    # A place is found for one predicate after the other; recursion through one that has none yet waits for its turn.
    waiting = {predicate for predicate in heads(needed) if predicate in dependent}
    while waiting:
        found = {
            predicate: place for predicate in waiting if (place := _place(predicate, needed, places, links)) is not None
        }
        if not found:
            return False
        places |= found
        waiting -= found.keys()
    agree = all(_agrees(rule, places, dependent, links) for rule in needed)
    return agree and all(places.get(goal, 0) == 0 for goal in goals)


def _dependent(rules: Sequence[Rule]) -> set[Predicate]:
    """The predicates that depend on records."""
    dependent: set[Predicate] = {*_BASE, UNFINISHED}
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


def _part_links(rules: Sequence[Rule]) -> _Links:
    """The predicates that are views of links to parts, and where they name the manifest and the part (020, views)."""
    found: _Links = {}
    for predicate in heads(rules):
        defined = [rule for rule in rules if rule.head.predicate == predicate]
        if len(defined) != 1:
            continue
        head = defined[0].head.terms
        for literal in defined[0].body:
            if isinstance(literal, Positive) and is_link_to_part(literal.atom):
                whole, piece = literal.atom.terms[LINK_SOURCE], literal.atom.terms[LINK_TARGET]
                if isinstance(whole, Variable) and isinstance(piece, Variable) and {whole, piece} <= {*head}:
                    found[predicate] = head.index(whole), head.index(piece)
    return found


def _place(predicate: Predicate, rules: Sequence[Rule], places: dict[Predicate, int], links: _Links) -> int | None:
    """Where facts of a predicate name their record, by the first rule that tells; one that goes from a manifest to its
    parts tells where the part is named, unless it is a view of such links."""
    told: int | None = None
    for rule in rules:
        if rule.head.predicate != predicate:
            continue
        for literal in rule.body:
            if isinstance(literal, Positive) and literal.atom.predicate in places:
                record = literal.atom.terms[places[literal.atom.predicate]]
                if isinstance(record, Variable) and record in rule.head.terms:
                    return rule.head.terms.index(record)
                ends = _ends(literal.atom, links)
                if told is None and ends is not None and literal.atom.terms[ends[1]] in rule.head.terms:
                    told = rule.head.terms.index(literal.atom.terms[ends[1]])
    return told


def _agrees(rule: Rule, places: dict[Predicate, int], dependent: set[Predicate], links: _Links) -> bool:
    """Whether a rule speaks of one record, which its head names where its predicate does, and of manifests above it."""
    if rule.head.predicate not in dependent:
        return True
    read = [
        (literal, atom)
        for literal in rule.body
        if (atom := atom_of(literal)) is not None and atom.predicate in dependent
    ]
    if not read:
        return True  # the same for all
    record = rule.head.terms[places[rule.head.predicate]]
    if not isinstance(record, Variable):
        return False
    above = {whole for literal, atom in read if (whole := _manifest_above(literal, atom, record, links)) is not None}
    is_bound = bool(above)
    for literal, atom in read:
        named = atom.terms[places[atom.predicate]]
        if named != record and not (named in above and isinstance(literal, Positive)):
            return False
        is_bound = is_bound or (isinstance(literal, Positive) and named == record)
    return is_bound


def _manifest_above(literal: Literal, atom: Atom, record: Variable, links: _Links) -> Variable | None:
    """The variable of a manifest of which a literal says that it links to the record as to a part."""
    ends = _ends(atom, links)
    if ends is None or not isinstance(literal, Positive) or atom.terms[ends[1]] != record:
        return None
    whole = atom.terms[ends[0]]
    return whole if isinstance(whole, Variable) and whole != record else None


def _ends(atom: Atom, links: _Links) -> tuple[int, int] | None:
    """Where an atom names a manifest and a part of it, if it is about links to parts."""
    return (LINK_SOURCE, LINK_TARGET) if is_link_to_part(atom) else links.get(atom.predicate)
