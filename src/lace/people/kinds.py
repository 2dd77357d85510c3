"""The kinds of policy records, and what the text of each kind means.

Rule: a text of a kind is read by `read_policy` and by nothing else; it is refused with every reason at once, and a text
that is refused is never in force.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Any, NoReturn

from lace.datalog.language.annotations import read_annotated, read_annotated_all
from lace.datalog.language.syntax import Predicate, Program
from lace.datalog.language.validate import LOCAL_PROFILE, CheckedProgram, Profile, check_program
from lace.errors import InvalidInput, InvalidLacegram, InvalidText, excerpt
from lace.facts.predicates import ALLOW_QUERY_RECORD, SELECT_ADVERTISED, SELECT_HAVE
from lace.limits import KIB
from lace.people.root import Root
from lace.people.wording import people_rules
from lace.policy.exposure import EXPOSURE_PROFILE, Exposure
from lace.policy.lint import doubts, nearest
from lace.policy.operand import SELECTOR_PROFILE, Module
from lace.policy.rewrite import heads
from lace.values import dataclass

MAX_POLICY_BYTES = 256 * KIB
RECEIVE, KEEP_RECORD = Predicate("Receive", 1), Predicate("Keep", 1)


class PolicyKind(StrEnum):
    """The records of a policy; the value is the Name of the record."""

    SELECT = "select"
    EXPOSE = "expose"
    RECEIVE = "receive"
    TIP = "tip"
    KEEP = "keep"
    QUOTA = "quota"


RULE_KINDS: Mapping[PolicyKind, tuple[Profile, tuple[Predicate, ...]]] = {
    PolicyKind.SELECT: (SELECTOR_PROFILE, (SELECT_HAVE, SELECT_ADVERTISED)),
    PolicyKind.EXPOSE: (EXPOSURE_PROFILE, (ALLOW_QUERY_RECORD,)),
    PolicyKind.RECEIVE: (LOCAL_PROFILE, (RECEIVE,)),
    PolicyKind.KEEP: (LOCAL_PROFILE, (KEEP_RECORD,)),
}


class Writers(StrEnum):
    """Whose versions may be the tip of a coordinate."""

    ANYBODY = "anybody"
    MEMBERS = "members"
    ADMINS = "admins"


class Retracting(StrEnum):
    """Whose retractions count."""

    MEMBERS = "members"
    ADMINS = "admins"
    AUTHOR = "author"  # of what is withdrawn, and nobody else


@dataclass(frozen=True, slots=True)
class TipRules:
    """Who may move a tip in a group: in general, and in some apps; and who may withdraw versions."""

    writers: Writers = Writers.ANYBODY
    apps: tuple[tuple[str, Writers], ...] = ()
    retract: Retracting | None = None  # None: whoever may move the tip


@dataclass(frozen=True, slots=True)
class QuotaTexts:
    """The quotas of a policy, as `lace serve --quota` spells them."""

    amounts: tuple[tuple[str, str], ...] = ()


PolicyPart = Module | Exposure | CheckedProgram | TipRules | QuotaTexts
QUOTA_NAMES = ("peer", "strangers", "known_peer", "signer", "group", "total")
_AMOUNT = re.compile(r"none|[0-9]{1,15} *(B|[KMGT]iB|records)( *, *[0-9]{1,15} *(B|[KMGT]iB|records))?")


@lru_cache(maxsize=32)
def read_policy(kind: PolicyKind, text: str, name: str = "") -> PolicyPart:
    """What a text of a kind means."""
    name = name or f"policy {kind}"
    if len(text.encode()) > MAX_POLICY_BYTES:
        raise InvalidText(f"a policy has {MAX_POLICY_BYTES:,} bytes at most", rule="policy-size", place=name)
    match kind:
        case PolicyKind.SELECT:
            return Module.author(text, name=name)
        case PolicyKind.EXPOSE:
            return Exposure.author(text, name=name)
        case PolicyKind.RECEIVE | PolicyKind.KEEP:
            (wanted,) = RULE_KINDS[kind][1]
            program = read_annotated(text, name=name).program
            if wanted not in heads(program.rules):
                raise InvalidText(f"a {kind} policy has to define {wanted}", rule="missing-export", place=name)
            return check_program(program, LOCAL_PROFILE)
        case PolicyKind.TIP:
            return _tip_rules(_toml(text, name), name)
        case PolicyKind.QUOTA:
            return _quota_texts(_toml(text, name), name)


def likely_mistakes(kind: PolicyKind, text: str, root: Root, name: str = "") -> list[InvalidLacegram]:
    """What a text of a kind allows and its author can hardly mean; unneeded rules of people are not a mistake."""
    if kind not in RULE_KINDS:
        return []
    program = read_annotated(text, name=name or f"policy {kind}").program
    given = {head.name for head in heads(read_annotated(people_rules(root, kind)).program.rules)}
    found = doubts(program, RULE_KINDS[kind][0])
    return [one for one in found if one.rule != "unread" or not any(f"{head}/" in one.message for head in given)]


def carries_people(text: str, group: str) -> bool:
    """Whether rules read the policy records of a group: else nobody would get the policy that they belong to."""
    return re.search(r"'policy'", text) is not None and f"'{group}'" in text


def kind_of(text: str, name: str) -> PolicyKind:
    """The kind of a text, by what it defines."""
    if name.endswith(".toml"):
        keys = set(_toml(text, name))
        return PolicyKind.TIP if keys & {"writers", "retract", "apps"} or not keys else PolicyKind.QUOTA
    source, _ = read_annotated_all(text, name=name)
    return _kind_of_rules(source.program, name)


def _kind_of_rules(program: Program, name: str) -> PolicyKind:
    defined = heads(program.rules)
    for kind, (_, exports) in RULE_KINDS.items():
        if defined & set(exports):
            return kind
    wanted = ", ".join(str(export) for _, exports in RULE_KINDS.values() for export in exports)
    raise InvalidText(f"a rule file of a policy defines one of {wanted}", rule="policy-kind", place=name)


def parts_of(texts: Iterable[tuple[PolicyKind, str]]) -> dict[PolicyKind, PolicyPart]:
    """What some texts mean, by kind."""
    return {kind: read_policy(kind, text) for kind, text in texts}


def is_readable(kind: PolicyKind, text: str) -> bool:
    """Whether a text of a kind means something."""
    try:
        read_policy(kind, text)
    except InvalidInput:
        return False
    return True


def _toml(text: str, name: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidText(f"not a TOML text: {error}", rule="policy-toml", place=name) from error


def _refuse(name: str, message: str, found: object) -> NoReturn:
    raise InvalidText(message, rule="policy-value", place=name, found=excerpt(repr(found)))


def _tip_rules(table: dict[str, Any], name: str) -> TipRules:
    apps = table.pop("apps", {})
    if not isinstance(apps, dict):
        _refuse(name, "[apps] is a table: the app, and who may move its tips", apps)
    writers = _writers(table.pop("writers", Writers.ANYBODY), name)
    retract = _retracting(table.pop("retract", None), name)
    for word in table:
        near = nearest(word, ("writers", "retract", "apps"))
        _refuse(name, f"a tip policy has `writers`, `retract` and [apps]; {near}", word)
    return TipRules(writers, tuple(sorted((str(app), _writers(word, name)) for app, word in apps.items())), retract)


def _retracting(word: object, name: str) -> Retracting | None:
    if word is not None and word not in set(Retracting):
        near = nearest(str(word), Retracting)
        _refuse(name, f"who may withdraw is one of {', '.join(Retracting)}{'; ' + near if near else ''}", word)
    return None if word is None else Retracting(str(word))


def _writers(word: object, name: str) -> Writers:
    if word not in set(Writers):
        near = nearest(str(word), Writers)
        _refuse(name, f"who may move a tip is one of {', '.join(Writers)}{'; ' + near if near else ''}", word)
    return Writers(str(word))


def _quota_texts(table: dict[str, Any], name: str) -> QuotaTexts:
    for word, amount in table.items():
        if word not in QUOTA_NAMES:
            near = nearest(word, QUOTA_NAMES)
            _refuse(name, f"a quota is one of {', '.join(QUOTA_NAMES)}{'; ' + near if near else ''}", word)
        if not isinstance(amount, str) or not _AMOUNT.fullmatch(amount.strip()):
            _refuse(name, "an amount is a text such as '64MiB', '5000 records' or both with a comma", amount)
    return QuotaTexts(tuple(sorted(table.items())))
