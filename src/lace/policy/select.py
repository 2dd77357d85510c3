"""Selectors that people get right: each helper writes SelectHave and SelectAdvertised together (040, 110).

Rule: the two say the same of a stored record and of an advertised one, so both sides of an exchange mean one set. What
selects content selects its parts: whatever a selected manifest links to as a chunk.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count

from lace.datalog.language.syntax import (
    ANONYMOUS,
    Atom,
    Constant,
    Literal,
    Positive,
    Predicate,
    Rule,
    Term,
    TextShape,
    TrueLiteral,
    Variable,
)
from lace.errors import InvalidExchangePlan
from lace.facts.predicates import (
    ADVERTISED,
    ADVERTISED_FIELD,
    APP,
    FIELD,
    GROUP,
    HAVE,
    NAME,
    SELECT_ADVERTISED,
    SELECT_HAVE,
    SIGNED_BY,
    TAI,
    TYPE,
)
from lace.limits import EngineLimits
from lace.notation.identifiers import RecordHash, is_record_hash
from lace.policy.compose import union
from lace.policy.operand import Module
from lace.policy.parts import with_parts
from lace.policy.rewrite import body_atoms
from lace.policy.words import refuse_unknown_word
from lace.records.coordinate import HASH_ADDRESS, Prefix, is_place, parse_prefix

_RECORD, _SOURCE, _NAME = Variable("P"), Variable("S"), Variable("N")
_WANTED = Predicate("Wanted", 1)
SELECT_EVERYTHING = "all"
_DEFAULT_LIMITS = EngineLimits()


def select_all() -> Module:
    """Everything, and so all parts."""
    return Module.of_rules(_both_rules(_RECORD, [], []))


def select_coordinate(address: str | Prefix) -> Module:
    """Records under a coordinate or prefix: `//u//`, `//u//ding//`, `//u//ding/`, `//u//ding//links/1`.

    A coordinate selects all its versions; which of them is the tip is decided among those that arrived.
    """
    prefix = parse_prefix(address) if isinstance(address, str) else address
    wanted = _field_values(prefix)
    below: list[Literal] = []
    if prefix.under:
        last = prefix.name or prefix.app or prefix.group
        below.append(TextShape(_NAME, Constant(f"{last}/"), "", Constant("")))
    record = _RECORD if prefix.version is None or prefix.version.hash is None else Constant(prefix.version.hash)
    return Module.of_rules(with_parts(_both_rules(record, wanted, below)))


def select_hash(*hashes: str, limits: EngineLimits = _DEFAULT_LIMITS) -> Module:
    """These records, with their parts, and no others; a hash may be named by anybody who knows it, without seeing the
    record."""
    wanted = sorted({RecordHash.parse(text) for text in hashes})
    if not wanted:
        raise InvalidExchangePlan("there is no hash to select", rule="select-empty")
    rules = [Rule(Atom(_WANTED, (Constant(text),)), (TrueLiteral(),)) for text in wanted]
    named = Positive(Atom(_WANTED, (_RECORD,)))
    rules.append(Rule(Atom(SELECT_HAVE, (_RECORD,)), (named,)))
    advertised = Positive(Atom(ADVERTISED, (_RECORD, _SOURCE)))
    rules.append(Rule(Atom(SELECT_ADVERTISED, (_RECORD, _SOURCE)), (named, advertised)))
    return Module.of_rules(with_parts(rules), limits=limits)


def select_word(word: str) -> Module | None:
    """A selector by one word: `all`, a coordinate or its beginning, a hash; None of what must be rules."""
    if is_place(word):
        return select_coordinate(word)
    name = word.removeprefix(HASH_ADDRESS)
    if name != word or is_record_hash(word):
        return select_hash(name)
    return select_all() if word == SELECT_EVERYTHING else None


def select_text(text: str) -> Module:
    """A selector by one word or by rules; a word that means nothing is refused as such."""
    found = select_word(text)
    if found is None:
        refuse_unknown_word(text, [SELECT_EVERYTHING], "a coordinate such as //u//ding//", "a hash", rule="select-word")
        found = Module.author(text)
    return found


def select(
    *,
    coordinates: Sequence[str] = (),
    hashes: Sequence[str] = (),
    modules: Sequence[Module] = (),
    limits: EngineLimits = _DEFAULT_LIMITS,
) -> Module:
    """What any of these asks for: prefixes, hashes, rules; everything when none is given."""
    parts = [*modules]
    parts += [select_coordinate(address) for address in coordinates]
    parts += [select_hash(*hashes, limits=limits)] if hashes else []
    return union(parts, limits=limits) if parts else select_all()


def _field_values(prefix: Prefix) -> list[tuple[str, Term]]:
    """The fields that a prefix asks for, each with its value."""
    asked = [(GROUP, prefix.group), (APP, prefix.app), (NAME, prefix.name)]
    asked = [(field, value) for field, value in asked if value is not None]
    below = [asked.pop()[0]] if prefix.under else []
    if prefix.version is not None:
        asked += [(TYPE, "S" if prefix.version.sealed else "P")]
        asked += [(SIGNED_BY, prefix.version.verifier), (TAI, prefix.version.tai)]
    wanted: list[tuple[str, Term]] = [(name, Constant(str(value))) for name, value in asked if value is not None]
    return wanted + [(field, _NAME) for field in below]


def telling(module: Module, fields: Iterable[str]) -> Module:
    """The same selection under a plan whose listings carry these fields too (040-ADVREQ-03: every rule counts)."""
    taken = {atom.predicate.name for rule in module.rules for atom in (rule.head, *body_atoms([rule]))}
    told = Predicate(next(name for name in _fresh_names() if name not in taken), 1)
    value = Variable("V")
    rules = [
        Rule(
            Atom(told, (value,)),
            (Positive(Atom(ADVERTISED_FIELD, (ANONYMOUS, ANONYMOUS, Constant(name), ANONYMOUS, value))),),
        )
        for name in fields
    ]
    return Module.of_rules([*module.rules, *rules])


def _fresh_names() -> Iterator[str]:
    return (f"Told{number or ''}" for number in count())


def _both_rules(record: Term, fields: Iterable[tuple[str, Term]], tests: Iterable[Literal]) -> list[Rule]:
    wanted, also = list(fields), list(tests)
    stored: list[Literal] = [Positive(Atom(HAVE, (record,)))]
    stored += [Positive(Atom(FIELD, (record, Constant(name), ANONYMOUS, value))) for name, value in wanted]
    claimed: list[Literal] = [Positive(Atom(ADVERTISED, (record, _SOURCE)))]
    claimed += [
        Positive(Atom(ADVERTISED_FIELD, (record, _SOURCE, Constant(name), ANONYMOUS, value))) for name, value in wanted
    ]
    return [
        Rule(Atom(SELECT_HAVE, (record,)), (*stored, *also)),
        Rule(Atom(SELECT_ADVERTISED, (record, _SOURCE)), (*claimed, *also)),
    ]
