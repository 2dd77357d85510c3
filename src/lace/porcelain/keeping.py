"""Retention by rules: what `Keep(P)` derives stays in a lace, the rest may go. Archives have rules of the same form.

Rule: nothing is removed that a rule keeps, or that belongs to it: the parts of kept content, and the retractions that
withdraw a kept version, which would stand again without them. Rules that keep nothing are refused: that is more often a
mistake than a wish.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from lace.datalog.engine import evaluate
from lace.datalog.language.annotations import read_annotated
from lace.datalog.language.formatting import format_rule
from lace.datalog.language.limiting import stated_limits
from lace.datalog.language.syntax import Atom, Positive, Predicate, Program, Rule, Variable
from lace.datalog.language.validate import LOCAL_PROFILE, CheckedProgram, check_program, rewritten
from lace.datalog.planning.names import MARK, PredicateNames
from lace.errors import InvalidInput
from lace.facts.predicates import RECORD_LINK
from lace.limits import EngineLimits
from lace.notation.identifiers import RecordHash
from lace.records.coordinate import Coordinate
from lace.records.manifest import CHUNK_LINK
from lace.values import dataclass

if TYPE_CHECKING:
    from lace.porcelain.lace import Lace

KEEP = Predicate("Keep", 1)
NOWHERE = "(no coordinate)"  # of a Blob
PART_OF = "it is a part of content that is kept"
WITHDRAWS = "it withdraws a version that is kept"
_SHOWN = 20


@dataclass(frozen=True, slots=True)
class KeepingRule:
    """One rule that derives Keep, where it stands, and how many records it keeps."""

    text: str
    place: str
    keeps: int


@dataclass(frozen=True, slots=True)
class RecordFate:
    """What becomes of one record, and by which rules."""

    hash: str
    here: bool
    kept_by: tuple[KeepingRule, ...]
    because: str = ""  # why it is kept where no rule does that


class KeepProgram(NamedTuple):
    """Rules with a predicate of its own for each that derives Keep, so that each can be asked for."""

    checked: CheckedProgram
    each: Sequence[Predicate]
    rules: Sequence[Rule]
    limits: EngineLimits

    def told(self, name: str, count: Callable[[int], int]) -> tuple[KeepingRule, ...]:
        """The rules that derive Keep, with how many records each keeps by its number."""
        return tuple(
            KeepingRule(format_rule(rule), f"{name}:{rule.place.line}", count(at)) for at, rule in enumerate(self.rules)
        )


def keep_program(text: str, name: str) -> KeepProgram:
    """Read retention rules; InvalidInput if none derives Keep."""
    limits = stated_limits(text, name=name)
    checked = check_program(read_annotated(text, name=name, limits=limits).program, LOCAL_PROFILE, limits)
    keeping = [rule for rule in checked.program.rules if rule.head.predicate == KEEP]
    if not keeping:
        raise InvalidInput("no rule here derives Keep(P), which says what stays", rule="retention-goal", place=name)
    names = PredicateNames(checked.program, LOCAL_PROFILE.base)
    each = [names.fresh(f"{KEEP.name}{MARK}{number}", KEEP.arity) for number in range(len(keeping))]
    return KeepProgram(rewritten(_apart(checked.program, each), LOCAL_PROFILE), each, keeping, limits)


def require_kept(count: int, name: str) -> None:
    """InvalidInput for rules that keep nothing."""
    if not count:
        raise InvalidInput("these rules keep no record at all", rule="retention-empty", place=name)


def _apart(program: Program, each: Sequence[Predicate]) -> Program:
    own = iter(each)
    rules: list[Rule] = []
    for rule in program.rules:
        if rule.head.predicate != KEEP:
            rules.append(rule)
            continue
        one = next(own)
        record = (Variable("P"),)
        rules.append(replace(rule, head=replace(rule.head, predicate=one)))
        rules.append(Rule(Atom(KEEP, record), (Positive(Atom(one, record)),), rule.place))
    return replace(program, rules=tuple(rules))


Line = tuple[str, str, str]  # hash, coordinate, time


@dataclass(frozen=True, slots=True)
class LaceDecision:
    """What would go from a lace and what stays, and why."""

    kept: int
    rules: tuple[KeepingRule, ...]
    by_rule: Sequence[frozenset[str]]
    belongs: dict[str, str]  # kept, though no rule says so: why
    lines: Sequence[Line]  # what would go, the oldest first

    @property
    def removed_rows(self) -> int:
        """How many records would go."""
        return len(self.lines)

    @property
    def first(self) -> Sequence[Line]:
        """The oldest that would go."""
        return self.lines[:_SHOWN]

    @property
    def by_coordinate(self) -> list[tuple[str, int]]:
        """Of which groups and apps how many would go."""
        found = Counter(_space(place) for _, place, _ in self.lines)
        return found.most_common(_SHOWN)

    def going(self) -> Iterator[Line]:
        """Every record that would go, the oldest first."""
        return iter(self.lines)

    def fates(self, hashes: Sequence[str]) -> list[RecordFate]:
        """What becomes of some records."""
        going = {record for record, _, _ in self.lines}
        found = []
        for record in map(str, hashes):
            rules = tuple(rule for rule, kept in zip(self.rules, self.by_rule, strict=True) if record in kept)
            because = self.belongs.get(record, "")
            found.append(RecordFate(record, bool(rules or because) or record in going, rules, because))
        return found


def decide(lace: Lace, rules: str, name: str = "<rules>") -> LaceDecision:
    """What some rules keep of a lace as it is."""
    program = keep_program(rules, name)
    goals = [Atom(one, (Variable("P"),)) for one in program.each]
    snapshot = lace.store.snapshot()
    result = evaluate(program.checked, [snapshot], goals=goals, limits=program.limits)
    here = {str(record): record for _, record in lace.store.records_since()}
    by_rule = [frozenset(result.text_columns(one)[0]) & here.keys() for one in program.each]
    kept = set[str]().union(*by_rule)
    require_kept(len(kept), name)
    belongs = _retractions_of(lace, kept)
    links: dict[str, list[str]] = {}
    for whole, _, _, _, target in snapshot.query(RECORD_LINK, None, CHUNK_LINK):
        links.setdefault(whole, []).append(target)
    belongs |= dict.fromkeys(parts_of([*kept, *belongs], links) - kept & here.keys(), PART_OF)
    going = here.keys() - kept - belongs.keys()
    lines = _lines(lace, going)
    return LaceDecision(
        len(here) - len(going), program.told(name, lambda at: len(by_rule[at])), by_rule, belongs, lines
    )


def kept_by(lace: Lace, rules: str, name: str = "<rules>") -> set[str]:
    """The records that some rules keep of a lace as it is, without what belongs to them."""
    return set[str]().union(*decide(lace, rules, name).by_rule)


def collect(lace: Lace, decision: LaceDecision) -> int:
    """Remove what a decision lets go; how many records went."""
    return lace.store.delete(*(RecordHash(record) for record, _, _ in decision.lines))


def _space(place: str) -> str:
    """The group and app of a coordinate."""
    return place if place == NOWHERE else "//".join(place.split("//")[:3]) + "//"


def _retractions_of(lace: Lace, kept: set[str]) -> dict[str, str]:
    """The retractions that withdraw what is kept, and those that withdraw kept retractions."""
    places = {(e.group, e.app, e.name) for e in lace.store.entries() if e.withdraws}
    found: dict[str, str] = {}
    for group, app, name in places:
        for version, _, by in lace.history(Coordinate(group=group, app=app, name=name)):
            if by is not None and version.hash in kept and by.hash not in kept:
                found[by.hash] = WITHDRAWS
    return found


def parts_of(wholes: Iterable[str], links: dict[str, list[str]]) -> set[str]:
    """The parts of content, of nested manifests too."""
    found: set[str] = set()
    waiting = list(wholes)
    while waiting:
        for part in links.get(waiting.pop(), ()):
            if part not in found:
                found.add(part)
                waiting.append(part)
    return found


def _lines(lace: Lace, going: Iterable[str]) -> list[Line]:
    wanted = set(going)
    entries = [entry for entry in lace.store.entries() if entry.hash in wanted]
    lines = [(str(e.hash), f"//{e.group}//{e.app}//{e.name}", e.tai) for e in entries]
    blobs = wanted - {record for record, _, _ in lines}
    return [*((record, NOWHERE, "") for record in sorted(blobs)), *sorted(lines, key=lambda line: (line[2], line[0]))]
