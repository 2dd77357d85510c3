"""Tests of rule files: given records and facts, the rows that must come out, and a proof of every difference.

Rule: a case states everything it depends on, and all rows that it expects of a predicate. A missing row and an
unexpected one both fail it; the first is shown with the reason why it does not hold, the second with its proof.

    [[case]]
    name = "a member's note is selected"
    given = "Peer('V.alice')"
    expect = "SelectHave('P1')"
    absent = "SelectHave('P2')"

    [[case.record]]
    id = "P1"
    Group = "u"
    App = "ding"
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from lace.datalog.explain.explanation import Explanation
from lace.datalog.language.annotations import read_annotated
from lace.datalog.language.formatting import format_fact, format_program
from lace.datalog.language.parser import parse_facts
from lace.datalog.language.syntax import Fact, Predicate, Program
from lace.errors import InvalidText
from lace.facts.predicates import ADVERTISED, ADVERTISED_FIELD, FIELD, HAVE
from lace.limits import EngineLimits
from lace.policy.exposure import for_viewer
from lace.policy.origin import Viewer
from lace.porcelain.explain import Explainer
from lace.values import dataclass

_KEYS = {"name", "given", "record", "advertised", "expect", "absent", "none", "viewer"}
_DEFAULT_LIMITS = EngineLimits()
MAX_SHOWN = 5  # explanations of one case


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleCase:
    """One case of a case file."""

    name: str
    given: tuple[Fact, ...]
    expected: tuple[Fact, ...]
    absent: tuple[Fact, ...]
    empty: tuple[Predicate, ...]  # predicates that must have no row
    viewer: str = ""  # who looks, in the rules of an exposure


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """The result of a case: facts that should hold and do not, and the other way round, each with its explanation.

    A fact whose predicate no rule and no given fact mentions has none.
    """

    name: str
    missing: tuple[tuple[Fact, Explanation | None], ...] = ()
    unwanted: tuple[tuple[Fact, Explanation | None], ...] = ()
    untold: int = 0  # further differences, without explanations

    @property
    def passed(self) -> bool:
        return not (self.missing or self.unwanted)


def read_cases(text: str, *, name: str = "<cases>", limits: EngineLimits = _DEFAULT_LIMITS) -> list[RuleCase]:
    """The cases of a file, or an error that says which case and key is wrong."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidText(f"a case file is TOML: {error}", rule="case-file", place=name) from None
    cases = data.pop("case", [])
    if data or not isinstance(cases, list) or not cases:
        found = ", ".join(sorted(data)) or "no case"
        raise InvalidText(
            "a case file must contain [[case]] tables and nothing else", rule="case-file", place=name, found=found
        )
    return [_case(item, f"{name}: case {number}", limits) for number, item in enumerate(cases, start=1)]


def _case(item: Any, place: str, limits: EngineLimits) -> RuleCase:
    if not isinstance(item, dict) or not isinstance(item.get("name"), str):
        raise InvalidText("a case needs a name", rule="case-file", place=place)
    place = f"{place} ({item['name']})"
    unknown = sorted(set(item) - _KEYS)
    if unknown:
        message = f"the keys of a case are {', '.join(sorted(_KEYS))}"
        raise InvalidText(message, rule="case-file", place=place, found=", ".join(unknown))
    facts = [*_facts(item, "given", place, limits)]
    for record in _tables(item, "record", place):
        facts += _record_facts(record, place)
    for claim in _tables(item, "advertised", place):
        facts += _claim_facts(claim, place)
    return RuleCase(
        name=item["name"],
        given=tuple(facts),
        expected=tuple(_facts(item, "expect", place, limits)),
        absent=tuple(_facts(item, "absent", place, limits)),
        empty=tuple(_predicates(item, place)),
        viewer=str(item.get("viewer", "")),
    )


def _facts(item: Mapping[str, Any], key: str, place: str, limits: EngineLimits) -> Iterator[Fact]:
    text = item.get(key, "")
    if not isinstance(text, str):
        raise InvalidText(f"{key} must be a text of fact lines", rule="case-file", place=place, found=repr(text)[:60])
    return parse_facts(text.strip(), name=f"{place}, {key}", limits=limits)


def _tables(item: Mapping[str, Any], key: str, place: str) -> list[dict[str, Any]]:
    tables = item.get(key, [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) and "id" in table for table in tables):
        raise InvalidText(f"[[case.{key}]] must be a table with an id", rule="case-file", place=place)
    return tables


def _record_facts(record: dict[str, Any], place: str) -> Iterator[Fact]:
    """Have and a Field for each key; a list gives several values."""
    identifier = str(record["id"])
    yield Fact(HAVE, (identifier,))
    for name, index, value in _fields(record, place):
        yield Fact(FIELD, (identifier, name, index, value))


def _claim_facts(claim: dict[str, Any], place: str) -> Iterator[Fact]:
    """Advertised and its fields; `source` is who advertises."""
    identifier, source = str(claim["id"]), str(claim.pop("source", "peer"))
    yield Fact(ADVERTISED, (identifier, source))
    for name, index, value in _fields(claim, place):
        yield Fact(ADVERTISED_FIELD, (identifier, source, name, index, value))


def _fields(table: Mapping[str, Any], place: str) -> Iterator[tuple[str, str, str]]:
    for name, given in table.items():
        if name == "id":
            continue
        for index, value in enumerate(given if isinstance(given, list) else [given]):
            if not isinstance(value, str):
                message = f"{name} of {table['id']} must be a text or a list of texts"
                raise InvalidText(message, rule="case-file", place=place, found=repr(value)[:60])
            yield name, str(index), value


def _predicates(item: Mapping[str, Any], place: str) -> Iterator[Predicate]:
    names = item.get("none", [])
    for text in [names] if isinstance(names, str) else names:
        predicate = Predicate.parse(str(text))
        if predicate is None:
            message = "none must list predicates such as Selected/1"
            raise InvalidText(message, rule="case-file", place=place, found=repr(text)[:60])
        yield predicate


def _seen_by(viewer: str, rules: str, name: str, limits: EngineLimits) -> str:
    """The rules of an exposure as one viewer sees them (P9); rules without a viewer unchanged."""
    if not viewer:
        return rules
    program = read_annotated(rules, name=name, limits=limits).program
    return format_program(Program(tuple(for_viewer(rule, Viewer(viewer)) for rule in program.rules)))


def run_case(
    case: RuleCase, rules: str, *, name: str = "<rules>", limits: EngineLimits = _DEFAULT_LIMITS
) -> CaseOutcome:
    """Evaluate rules over the facts of a case, and compare the result."""
    explainer = Explainer(case.given, _seen_by(case.viewer, rules, name, limits), name=name, limits=limits)
    result = explainer.result
    wanted: dict[Predicate, set[tuple[str, ...]]] = {predicate: set() for predicate in case.empty}
    for fact in case.expected:
        wanted.setdefault(fact.predicate, set()).add(fact.values)
    found = {predicate: set(result.rows(predicate)) for predicate in wanted}
    missing = [Fact(p, row) for p, rows in wanted.items() for row in sorted(rows - found[p])]
    unwanted = [Fact(p, row) for p, rows in wanted.items() for row in sorted(found[p] - rows)]
    unwanted += [fact for fact in case.absent if fact.values in set(result.rows(fact.predicate))]
    spoken_of = {*explainer.checked.derived, *(fact.predicate for fact in case.given)}
    told = [
        explainer.explain(format_fact(fact)) if fact.predicate in spoken_of else None
        for fact in (missing + unwanted)[:MAX_SHOWN]
    ]
    pairs = list(zip(missing + unwanted, told, strict=False))
    return CaseOutcome(
        case.name,
        tuple(pairs[: len(missing)]),
        tuple(pairs[len(missing) :]),
        max(0, len(missing) + len(unwanted) - len(pairs)),
    )
