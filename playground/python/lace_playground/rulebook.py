"""A block of rules over a small world, for pages that teach: what the rules derive, and why or why not.

Rule: the world is Ada's lace of the first scene while Ben offers her his records; a page may give fact lines instead.
What the rules derive is what `lace query` derives, why is what `lace explain` says; records are named by their
coordinates.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

from lace.datalog.language.annotations import read_annotated_all
from lace.datalog.language.parser import parse_facts
from lace.datalog.language.syntax import Predicate, Program, Variable
from lace.datalog.language.validate import LOCAL_PROFILE
from lace.errors import InvalidText
from lace.facts.derive import derive_facts
from lace.facts.predicates import ADVERTISED, ADVERTISED_FIELD, FIELD
from lace.notation.fact import Fact
from lace.notation.identifiers import RecordHash
from lace.policy.lint import never_matching
from lace.policy.rewrite import body_atoms
from lace.porcelain.explain import explain
from lace.porcelain.query import answer_to
from lace.testing.simulator.scene import Scene
from lace.testing.simulator.stage import SCENE_LIMITS, Stage
from lace_playground.presets import presets
from lace_playground.telling import Data, error_data

MAX_RULES = 20_000
MAX_ROWS = 50  # of one predicate
OFFERED_BY = "ben"  # the source of what Ben offers
_HASH = re.compile(r"[A-Z]\.[0-9A-Za-z_~.-]{43}\.H3")


class World:
    """The facts that rules are asked over, and what records are called."""

    def __init__(self, facts: Sequence[Fact], names: dict[str, str]) -> None:
        self.facts = facts
        self.names = names

    def named(self, text: str) -> str:
        """A text with records by their coordinates instead of their hashes."""
        return _HASH.sub(lambda found: self.names.get(found.group(), found.group()), text)

    def hashed(self, text: str) -> str:
        """A text with the hashes of records that it calls by their coordinates."""
        for record, name in self.names.items():
            text = text.replace(f"'{name}'", f"'{record}'")
        return text


@cache
def recipes() -> World:
    """Ada's lace of the first scene, and what Ben offers her."""
    scene: Scene = presets()[0].scene
    stage = Stage(scene)
    facts: list[Fact] = []
    names: dict[str, str] = {}
    for number, lace in enumerate(stage.laces):
        for row in lace.list():
            names[str(row.hash)] = f"//{row['Group']}//{row['App']}//{row['Name']}"
            derived = derive_facts(lace.record(row.hash))
            facts += derived if number == 0 else _offered(row.hash, list(derived))
    return World(facts, names)


def _offered(record: RecordHash, facts: Sequence[Fact]) -> Iterator[Fact]:
    yield Fact(ADVERTISED, (record, OFFERED_BY))
    for fact in facts:
        if fact.predicate == FIELD:
            yield Fact(ADVERTISED_FIELD, (record, OFFERED_BY, *fact.values[1:]))


def world_of(given: object) -> World:
    """The world of a question: its fact lines, or Ada's lace."""
    if given is None:
        return recipes()
    return World(list(parse_facts(_text(given, "facts"), name="facts", limits=SCENE_LIMITS)), {})


def run_rules(rules: object, facts: object) -> Data:
    """What a block of rules derives: a table for each head that no other rule reads."""
    text, world = _text(rules, "rules"), world_of(facts)
    source, errors = read_annotated_all(text, name="rules", limits=SCENE_LIMITS)
    if errors:
        raise errors[0]
    program = source.program
    given = {fact.predicate for fact in world.facts}
    doubts = [error_data(doubt) for doubt in never_matching(program, LOCAL_PROFILE, given)]
    return {"tables": [_table(world, text, goal) for goal in _goals(program)], "doubts": doubts}


def _goals(program: Program) -> list[tuple[str, list[str]]]:
    """Each head that nothing reads, with names for its columns."""
    read = {atom.predicate for atom in body_atoms(program.rules)}
    found: dict[Predicate, list[str]] = {}
    for predicate in dict.fromkeys(rule.head.predicate for rule in program.rules):
        terms = next(rule.head.terms for rule in program.rules if rule.head.predicate == predicate)
        names = [term.name if isinstance(term, Variable) else f"X{n}" for n, term in enumerate(terms, 1)]
        found[predicate] = names if len(set(names)) == len(names) else [f"X{n}" for n in range(1, len(names) + 1)]
    unread = {predicate: names for predicate, names in found.items() if predicate not in read} or found
    return [(predicate.name, names) for predicate, names in unread.items()]


def _table(world: World, text: str, goal: tuple[str, list[str]]) -> Data:
    name, columns = goal
    answer = answer_to(world.facts, text, f"{name}({','.join(columns)})" if columns else name, limits=SCENE_LIMITS)
    rows = next(answer.pages(MAX_ROWS), [])
    return {
        "predicate": name,
        "columns": columns,
        "rows": [[world.named(value) for value in row] for row in rows],
        "count": len(answer),
    }


def why_fact(rules: object, goal: object, facts: object) -> Data:
    """Why a fact holds in a world, or why it does not."""
    text, world = _text(rules, "rules"), world_of(facts)
    explained = explain(world.facts, text, world.hashed(_text(goal, "goal")), limits=SCENE_LIMITS)
    return {"holds": explained.holds, "text": world.named(str(explained))}


def _text(given: object, place: str) -> str:
    if not isinstance(given, str) or len(given) > MAX_RULES:
        found = repr(given)[:80]
        raise InvalidText(f"{place} should be a text of {MAX_RULES} characters at most", rule="question", found=found)
    return given
