"""Parts of content belong to it: what selects or shows a manifest selects and shows its parts (010, 040).

Rule: a part is reached from a manifest that is held and selected, never from a claim. So a manifest comes in one loop
and its parts in the next, and below a nested manifest in the one after that (050, evidence).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from lace.datalog.language.syntax import (
    ANONYMOUS,
    Atom,
    Constant,
    Literal,
    Negated,
    Positive,
    Predicate,
    Rule,
    Term,
    Variable,
)
from lace.datalog.planning.stratify import reachable
from lace.facts.predicates import (
    ADVERTISED,
    ADVERTISED_FIELD,
    ALLOW_QUERY_RECORD,
    DATA_LENGTH,
    FIELD,
    HAVE,
    RECORD_LINK,
    SELECT_ADVERTISED,
    SELECT_HAVE,
    TYPE,
)
from lace.policy.rewrite import body_atoms, substitute
from lace.records.manifest import CHUNK_LINK

LINK_SOURCE, LINK_NAME, LINK_TARGET = 0, 1, 4  # the places of RecordLink
PART = Predicate("Part", 1)
UNFINISHED = Predicate("u_Unfinished", 1)  # only in lowered programs, whose other names are scoped
_WHOLE, _PIECE, _SOURCE = Variable("M"), Variable("C"), Variable("S")


def link_to_part(whole: Term, piece: Term) -> Positive:
    """That a manifest names a part."""
    return Positive(Atom(RECORD_LINK, (whole, Constant(CHUNK_LINK), ANONYMOUS, ANONYMOUS, piece)))


def is_link_to_part(atom: Atom) -> bool:
    """Whether an atom asks which parts a manifest names."""
    return atom.predicate == RECORD_LINK and atom.terms[LINK_NAME] == Constant(CHUNK_LINK)


def with_parts(rules: Sequence[Rule]) -> list[Rule]:
    """The rules of a selector that has no helper named Part, and what they select of manifests with all parts.

    Only Part is recursive, and it holds for parts alone: what selects a million records stays a plain rule.
    """
    more = [
        Rule(Atom(SELECT_HAVE, (_PIECE,)), (_holds(HAVE, _PIECE), _holds(PART, _PIECE))),
        Rule(Atom(SELECT_ADVERTISED, (_PIECE, _SOURCE)), (_holds(ADVERTISED, _PIECE, _SOURCE), _holds(PART, _PIECE))),
        Rule(Atom(PART, (_PIECE,)), (_holds(PART, _WHOLE), link_to_part(_WHOLE, _PIECE))),
    ]
    for rule in rules:
        if rule.head.predicate == SELECT_HAVE:
            (record,) = rule.head.terms
            chosen = substitute(rule, record, _WHOLE).body if isinstance(record, Variable) else rule.body
            whole = _WHOLE if isinstance(record, Variable) else record
            more.append(Rule(Atom(PART, (_PIECE,)), (*chosen, link_to_part(whole, _PIECE))))
    return [*rules, *more]


def without_parts(rules: Sequence[Rule]) -> list[Rule]:
    """The rules that do not go from manifests to their parts, by themselves or through a helper."""
    following: set[Predicate] = set()
    while True:
        kept = [rule for rule in rules if not _follows(rule, following)]
        more = {rule.head.predicate for rule in rules if _follows(rule, following)} - {SELECT_HAVE, SELECT_ADVERTISED}
        if more <= following:
            return kept
        following |= more


def _follows(rule: Rule, following: Collection[Predicate]) -> bool:
    return any(is_link_to_part(atom) or atom.predicate in following for atom in body_atoms((rule,)))


def unfinished(selected: Predicate) -> Iterator[Rule]:
    """Which of the manifests that a predicate selects lack parts, of their own or further down."""
    chosen = _holds(selected, _WHOLE), link_to_part(_WHOLE, _PIECE)
    head = Atom(UNFINISHED, (_WHOLE,))
    yield Rule(head, (*chosen, Negated(Atom(HAVE, (_PIECE,)))))
    yield Rule(head, (*chosen, _holds(UNFINISHED, _PIECE)))


def follows_parts(rules: Iterable[Rule], export: Predicate) -> bool:
    """Whether an exported predicate goes from manifests to their parts, or from records to whatever they link to."""
    wanted = reachable(rules := tuple(rules), (export,))
    read = body_atoms(rule for rule in rules if rule.head.predicate in wanted)
    return any(
        atom.predicate == RECORD_LINK and (not isinstance(atom.terms[LINK_NAME], Constant) or is_link_to_part(atom))
        for atom in read
    )


def takes_some_manifests(rules: Iterable[Rule], export: Predicate) -> Rule | None:
    """A rule that takes records by their fields, manifests among them; None if it takes all, or chooses otherwise."""
    rules = tuple(rules)
    own = [rule for rule in rules if rule.head.predicate == export]
    if any(_takes_every_record(rule) for rule in own):
        return None
    if reachable(rules, (export,)).isdisjoint((FIELD, ADVERTISED_FIELD)):
        return None
    return next((rule for rule in own if not _leaves_manifests_out(rule)), None)


def advised_rules(export: Predicate) -> list[Rule]:
    """What to add to rules of one's own for an export, so that parts come with their manifest."""
    if export == ALLOW_QUERY_RECORD:
        viewer = Variable("Viewer")
        shown = Positive(Atom(ALLOW_QUERY_RECORD, (viewer, _WHOLE)))
        head = Atom(ALLOW_QUERY_RECORD, (viewer, _PIECE))
        return [Rule(head, (shown, link_to_part(_WHOLE, _PIECE), _holds(HAVE, _PIECE)))]
    chosen = _holds(SELECT_HAVE, _WHOLE), link_to_part(_WHOLE, _PIECE)
    if export == SELECT_HAVE:
        return [Rule(Atom(SELECT_HAVE, (_PIECE,)), (*chosen, _holds(HAVE, _PIECE)))]
    return [Rule(Atom(SELECT_ADVERTISED, (_PIECE, _SOURCE)), (_holds(ADVERTISED, _PIECE, _SOURCE), *chosen))]


def _holds(predicate: Predicate, *terms: Term) -> Positive:
    return Positive(Atom(predicate, terms))


def _takes_every_record(rule: Rule) -> bool:
    """`Have(P)` or `Advertised(P,S)` and nothing else about P."""
    return (
        len(rule.body) == 1 and isinstance(rule.body[0], Positive) and rule.body[0].atom.predicate in (HAVE, ADVERTISED)
    )


def _leaves_manifests_out(rule: Rule) -> bool:
    """Whether a rule asks for what no manifest has: to be a Blob, data of its own, or to be one named Blob."""
    if any(isinstance(term, Constant) and term.value.startswith("B.") for term in rule.head.terms):
        return True
    return any(map(_is_of_no_manifest, rule.body))


def _is_of_no_manifest(literal: Literal) -> bool:
    if not isinstance(literal, Positive) or literal.atom.predicate not in (FIELD, ADVERTISED_FIELD):
        return False
    *_, name, _, value = literal.atom.terms
    return (name, value) == (Constant(TYPE), Constant("B")) or (
        name == Constant(DATA_LENGTH) and isinstance(value, Constant) and value.value != "0"
    )
