"""What a rule file says that can never match, or that nothing reads (030, 020, 040): doubts, not errors.

Rule: a doubt never changes what a program means, and a program that does what its author wants gives none. Where a name
is close to one that exists, the doubt says which.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from lace.datalog.language.diagnosis import lacegram_error
from lace.datalog.language.formatting import format_rule
from lace.datalog.language.syntax import (
    Anonymous,
    Atom,
    Constant,
    Place,
    Positive,
    Predicate,
    Program,
    Rule,
    Term,
    Unequal,
)
from lace.datalog.language.validate import LOCAL_PROFILE, Profile
from lace.datalog.planning.stratify import reachable
from lace.errors import InvalidLacegram, InvalidText, excerpt
from lace.facts.predicates import (
    ADVERTISED,
    ADVERTISED_FIELD,
    ADVERTISEMENT_PREDICATES,
    ALLOW_QUERY_RECORD,
    APP,
    BLOB_HASH,
    DATA_LENGTH,
    FIELD,
    GROUP,
    HAVE,
    NAME,
    PLEX_HASH,
    RECORD_LINK,
    RUNTIME_PREDICATES,
    SELECT_ADVERTISED,
    SELECT_HAVE,
    SIGNATURE,
    SIGNED_BY,
    TAI,
    TYPE,
)
from lace.notation import tai
from lace.notation.decimal import is_decimal
from lace.notation.identifiers import RecordHash, Verifier
from lace.policy.exposure import EXPOSURE_PROFILE
from lace.policy.operand import SELECTOR_PROFILE
from lace.policy.parts import advised_rules, follows_parts, takes_some_manifests
from lace.policy.rewrite import body_atoms, heads

FIELDS = (TYPE, DATA_LENGTH, GROUP, APP, NAME, TAI, SIGNED_BY, SIGNATURE)
_SUBJECTS = {HAVE: 0, FIELD: 0, RECORD_LINK: 0, BLOB_HASH: 0, PLEX_HASH: 0, ADVERTISED: 0, ADVERTISED_FIELD: 0}
_FIELD_NAME = {FIELD: 1, ADVERTISED_FIELD: 2}  # where Name stands; Index and Value follow
_CLOSE = 0.75
_MOST_NEAR = 3
_EXPORTS = {SELECTOR_PROFILE.name: (SELECT_HAVE, SELECT_ADVERTISED), EXPOSURE_PROFILE.name: (ALLOW_QUERY_RECORD,)}


def profile_of(program: Program) -> Profile:
    """What a rule file is, by what it defines: a selector, an exposure, or rules over a lace."""
    defined = heads(program.rules)
    if defined & {SELECT_HAVE, SELECT_ADVERTISED}:
        return SELECTOR_PROFILE
    return EXPOSURE_PROFILE if ALLOW_QUERY_RECORD in defined else LOCAL_PROFILE


def doubts(program: Program, profile: Profile, given: Iterable[Predicate] = ()) -> list[InvalidLacegram]:
    """Every doubt about a program, in the order of its text; `given` are fact predicates that come from elsewhere."""
    found = [*_missing_exports(program, profile), *_unread(program, profile), *_left_behind(program, profile)]
    found += never_matching(program, profile, given)
    return sorted(found, key=lambda doubt: (doubt.line, doubt.column))


def never_matching(program: Program, profile: Profile, given: Iterable[Predicate] = ()) -> list[InvalidLacegram]:
    """The doubts about what bodies ask for: predicates, fields and values that no record has."""
    known = frozenset((*profile.base, *heads(program.rules), *given))
    found: list[InvalidLacegram] = []
    for rule in program.rules:
        for atom in body_atoms((rule,)):
            if profile.base and atom.predicate not in known:
                found.append(_unknown(program, atom, known))
            elif profile is EXPOSURE_PROFILE and atom.predicate in ADVERTISEMENT_PREDICATES:
                message = f"{atom.predicate} holds for nothing here: exposure rules see no advertisements (P9)"
                found.append(_doubt(program, atom.place, "never-supplied", message))
            found += _impossible_values(program, atom)
        found += _impossible_together(program, rule)
    return found


def _doubt(program: Program, place: Place, code: str, message: str, advice: str = "") -> InvalidLacegram:
    lines = program.source.text.split("\n")
    line = lines[place.line - 1] if 0 < place.line <= len(lines) else ""
    return lacegram_error(program.source, place, line, code, message, advice)


def _unknown(program: Program, atom: Atom, known: frozenset[Predicate]) -> InvalidLacegram:
    predicate = atom.predicate
    alike = sorted(other for other in known if other.name == predicate.name)
    if alike:
        arities = " or ".join(str(other.arity) for other in alike)
        message = f"{predicate.name} has {arities} values, not {predicate.arity}: this atom can never match"
        return _doubt(program, atom.place, "arity", message, f"the fact is {_shape(alike[0])}")
    if predicate in (*ADVERTISEMENT_PREDICATES, *RUNTIME_PREDICATES):
        message = f"{predicate} is known only in an exchange: over a lace alone this atom can never match"
        return _doubt(
            program, atom.place, "never-supplied", message, "a selector defines SelectHave/1 and SelectAdvertised/2"
        )
    message = f"nothing supplies {predicate}: no rule defines it and it is not a fact of records"
    return _doubt(
        program, atom.place, "unknown-predicate", message, nearest(predicate.name, {other.name for other in known})
    )


_SHAPES = {
    HAVE: "Have(P)",
    FIELD: "Field(P,Name,Index,Value)",
    RECORD_LINK: "RecordLink(P,Name,Index,Data,Target)",
    BLOB_HASH: "BlobHash(P,B)",
    PLEX_HASH: "PlexHash(P,Q)",
    ADVERTISED: "Advertised(P,S)",
    ADVERTISED_FIELD: "AdvertisedField(P,S,Name,Index,Value)",
}


def _shape(predicate: Predicate) -> str:
    return _SHAPES.get(predicate, str(predicate))


def nearest(word: str, words: Iterable[str]) -> str:
    """`did you mean …?` with the words spelled most like this one, or nothing; in short ones letters change places.

    >>> nearest("bbo", ["anna", "bob"])
    'did you mean bob?'
    """
    asked, spelled = word.lower(), {other.lower(): other for other in sorted(words)}
    close = get_close_matches(asked, list(spelled), n=_MOST_NEAR, cutoff=_CLOSE)
    close = close or [other for other in spelled if sorted(other) == sorted(asked)][:_MOST_NEAR]
    return f"did you mean {' or '.join(spelled[other] for other in close)}?" if close else ""


# values that no record has


def _impossible_values(program: Program, atom: Atom) -> Iterator[InvalidLacegram]:
    subject = _SUBJECTS.get(atom.predicate)
    if subject is not None:
        yield from _no_identifier(program, atom, atom.terms[subject])
    at = _FIELD_NAME.get(atom.predicate)
    if at is None:
        return
    name, index, value = atom.terms[at], atom.terms[at + 1], atom.terms[at + 2]
    if isinstance(index, Constant) and not is_decimal(index.value):
        message = f"an index is a number from '0' on, never {index.value!r}"
        yield _doubt(program, atom.place, "index", message, "write _ where any will do")
    if not isinstance(name, Constant):
        return
    if name.value not in FIELDS:
        advice = nearest(name.value, FIELDS)
        if advice:  # a header may have any name; one that nearly matches a field is likely a typo
            yield _doubt(
                program, atom.place, "field-name", f"records have no field {name.value!r} by the specification", advice
            )
    elif isinstance(value, Constant):
        reason = _why_never(name.value, value.value)
        if reason:
            yield _doubt(program, atom.place, "field-value", f"{name.value} is never {value.value!r}: {reason}")


def _no_identifier(program: Program, atom: Atom, term: Term) -> Iterator[InvalidLacegram]:
    if not isinstance(term, Constant):
        return
    try:
        RecordHash.parse(term.value)
    except InvalidText:
        message = f"a record is named by its hash, never {excerpt(term.value)}"
        yield _doubt(program, atom.place, "record-name", message, "a hash is B, P or S, a dot, 43 characters and .H3")


def _why_never(field: str, value: str) -> str:
    """Why a field of the specification never has a value; empty if it may."""
    if field == TYPE and value not in ("B", "P", "S"):
        return "a type is B, P or S"
    if field == DATA_LENGTH and not is_decimal(value):
        return "a length is a decimal number"
    try:
        if field == TAI:
            tai.TAI.parse(value)
        elif field == SIGNED_BY:
            Verifier.parse(value)
    except InvalidText as error:
        return error.message
    if field in (GROUP, APP, NAME) and (value.startswith("/") or value.endswith("/") or "//" in value or not value):
        return "a path has no empty segment"
    return ""


def _impossible_together(program: Program, rule: Rule) -> Iterator[InvalidLacegram]:
    """Two values for a field that has one, and a value that should differ from itself."""
    seen: dict[tuple[Predicate, Term, Term | None, str], Constant] = {}
    for literal in rule.body:
        if isinstance(literal, Unequal) and literal.left == literal.right:
            yield _doubt(
                program,
                literal.place,
                "never-unequal",
                "nothing differs from itself: this rule can never derive anything",
            )
        if not isinstance(literal, Positive) or literal.atom.predicate not in _FIELD_NAME:
            continue
        atom = literal.atom
        at = _FIELD_NAME[atom.predicate]
        name, value = atom.terms[at], atom.terms[at + 2]
        if not isinstance(name, Constant) or name.value not in FIELDS or not isinstance(value, Constant):
            continue
        if isinstance(atom.terms[0], Anonymous):
            continue
        source = atom.terms[1] if atom.predicate == ADVERTISED_FIELD else None
        first = seen.setdefault((atom.predicate, atom.terms[0], source, name.value), value)
        if first != value:
            message = f"a record has one {name.value}: it cannot be {first.value!r} and {value.value!r}"
            yield _doubt(program, atom.place, "two-values", message, "write two rules where either will do")


# what is missing, and what nothing reads


def _missing_exports(program: Program, profile: Profile) -> Iterator[InvalidLacegram]:
    if profile is not SELECTOR_PROFILE:
        return
    defined = heads(program.rules)
    consequences = {
        SELECT_HAVE: "nothing of ours is offered",
        SELECT_ADVERTISED: "nothing is asked for",
    }
    for export, consequence in consequences.items():
        if export not in defined:
            place = program.rules[0].head.place if program.rules else Place(0, 0)
            advice = f"a selector defines both {SELECT_HAVE} and {SELECT_ADVERTISED}"
            yield _doubt(program, place, "missing-export", f"without a rule for {export} {consequence}", advice)


def _left_behind(program: Program, profile: Profile) -> Iterator[InvalidLacegram]:
    """Rules that take large content by its manifest and leave its parts behind."""
    for export in _EXPORTS.get(profile.name, ()):
        taken = takes_some_manifests(program.rules, export)
        if taken is not None and not follows_parts(program.rules, export):
            (rule,) = advised_rules(export)
            message = f"{export} takes large content without its parts: these have no coordinate and no field to match"
            yield _doubt(program, taken.head.place, "parts", message, f"add {format_rule(rule)}")


def _unread(program: Program, profile: Profile) -> Iterator[InvalidLacegram]:
    """Helpers that no export needs; over a lace every head may be what is asked for."""
    wanted = _EXPORTS.get(profile.name)
    if wanted is None:
        return
    needed = reachable(program.rules, wanted)
    told: set[Predicate] = set()
    for rule in program.rules:
        predicate = rule.head.predicate
        if predicate not in needed and predicate not in told:
            told.add(predicate)
            advice = nearest(predicate.name, {other.name for other in (*needed, *wanted)} - {predicate.name})
            yield _doubt(program, rule.head.place, "unread", f"{predicate} is defined, and nothing needs it", advice)
