"""What a change changes, said as rules, is the difference to an evaluation from scratch by the embedded engine."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest

from lace.datalog import engine
from lace.datalog.language.annotations import read_annotated
from lace.datalog.language.syntax import Atom, Fact, Predicate, Program, Rule
from lace.datalog.language.validate import LOCAL_PROFILE, RAW_PROFILE, check_program, rewritten
from lace.datalog.planning.stratify import Stratum, strata
from lace.datalog.planning.unfold import unfold
from lace.datalog.source import MemorySource, Row
from lace.facts.derive import derive_facts
from lace.limits import EngineLimits
from lace.records.model import ValidRecord
from lace.spark.archive.changes import Changed, came, doubted, ever, maintenance, was, went
from lace.spark.engine.executor import MAX_UNFOLDED_BODY, is_star
from lace.spark.engine.stars import Constellation, split
from spark.archives import make_records

GOAL = Predicate("Goal", 1)
LINKS = "Linked(P,T) :- RecordLink(P,_,_,_,T).\n"
PROGRAMS = {
    "join": "Goal(P) :- Have(P), Field(P,'Group',_,G), Field(Q,'Group',_,G), Field(Q,'App',_,'member'), "
    "Field(Q,'X-Tag',_,'b').",
    "join of derived relations": "Goal(P) :- Have(P), Tag(P,V), Tag(Q,V), Field(Q,'App',_,'blocked').\n"
    "Tag(P,V) :- Field(P,'X-Tag',_,V).\nTag(P,V) :- Field(P,'App',_,V), Field(P,'X-Tag','1',_).",
    "values that few records give": "Goal(P) :- Have(P), Field(P,'Name',_,N), Wanted(N).\n"
    "Wanted(N) :- Field(_,'Name',_,N), not Field(_,'X-Tag',_,N), Field(Q,'Name',_,N), Field(Q,'X-Tag',_,'a').",
    "negation": "Goal(P) :- Have(P), not Target(P).\nTarget(T) :- RecordLink(_,_,_,_,T).",
    "two negations that change at once": "Goal(P) :- Have(P), not Target(P), not Pointed(P).\n"
    "Target(T) :- RecordLink(_,_,_,_,T).\nPointed(T) :- RecordLink(Q,_,_,_,T), Field(Q,'Group',_,'u').",
    "negation of negation": "Goal(P) :- Have(P), not Kept(P).\nKept(P) :- Have(P), not Target(P).\n"
    "Target(T) :- RecordLink(_,_,_,_,T).\nTarget(P) :- Field(P,'App',_,'blocked').",
    "count": "Goal(P) :- Have(P), Field(P,'Name',_,N), Cardinality(Field(_,'Name',_,N),'<','3').",
    "count of a join": "Goal(P) :- Have(P), Cardinality(Near(P,_),'>','1').\n"
    "Near(P,Q) :- Field(P,'Name',_,N), Field(Q,'Name',_,N), P != Q.",
    "count without a key": "Goal(P) :- Field(P,'App',_,'ding'), Cardinality(Field(_,'App',_,'blocked'),'<=','4').",
    "closure": "Goal(P) :- Have(P), Reached(P).\nReached(P) :- Field(P,'App',_,'ding'), Field(P,'X-Tag',_,'a').\n"
    + "Reached(T) :- Reached(P), Linked(P,T).\n"
    + LINKS,
    "closure, doubled": "Goal(P) :- Have(P), Path(P,T), Field(T,'App',_,'member').\nPath(P,T) :- Linked(P,T).\n"
    + "Path(P,R) :- Path(P,Q), Path(Q,R).\n"
    + LINKS,
    "closure under negation": "Goal(P) :- Have(P), not Path(P,_).\n"
    + "Path(P,T) :- Linked(P,T), not Field(T,'X-Tag',_,'b').\n"
    + "Path(P,R) :- Path(P,Q), Linked(Q,R).\n"
    + LINKS,
    "two that lean on each other": "Goal(P) :- Have(P), Odd(P).\nOdd(T) :- Even(P), Linked(P,T).\n"
    + "Even(T) :- Odd(P), Linked(P,T).\nEven(P) :- Field(P,'App',_,'member').\n"
    + LINKS,
    "a fact that nothing gives": "Goal(P) :- Have(P), Field(P,'App',_,A), Shown(A).\nShown('ding') :- true.\n"
    "Shown(A) :- Field(Q,'App',_,A), Field(Q,'X-Tag',_,'c'), Field(R,'App',_,A), Field(R,'Group',_,'keys').",
    "whether there is any": "Goal(P) :- Have(P), Any().\n"
    "Any() :- Field(P,'X-Tag','1','b'), Field(Q,'App',_,'blocked'), RecordLink(Q,_,_,_,P).",
}


def sky_of(rules: str) -> Constellation:
    checked = check_program(read_annotated(rules, name="t").program, LOCAL_PROFILE, EngineLimits())
    return split(unfold(checked.program, {GOAL}, is_star, MAX_UNFOLDED_BODY))


def evaluated(rules: Iterable[Rule], facts: Iterable[Fact], wanted: Iterable[Predicate]) -> dict[Predicate, set[Row]]:
    program = rewritten(Program(tuple(rules)), RAW_PROFILE)
    result = engine.evaluate(program, MemorySource(list(facts)), limits=EngineLimits())
    return {predicate: set(result.rows(predicate)) for predicate in wanted}


@dataclass
class Kept:
    """A program's relations, kept up to date by what changes."""

    parts: Constellation
    stored: dict[Predicate, set[Row]] = field(default_factory=dict)
    ways: list[str] = field(default_factory=list)

    def stars(self, records: Iterable[ValidRecord]) -> dict[Predicate, set[Row]]:
        rules = [Rule(Atom(star.predicate, star.outputs), star.body) for star in self.parts.stars]
        facts = {fact for valid in records for fact in derive_facts(valid)}
        return evaluated(rules, facts, [star.predicate for star in self.parts.stars])

    def from_scratch(self, records: Iterable[ValidRecord]) -> dict[Predicate, set[Row]]:
        facts = [Fact(p, row) for p, rows in self.stars(records).items() for row in rows]
        derived = {rule.head.predicate for rule in self.parts.program.rules}
        return evaluated(self.parts.program.rules, facts, derived)

    def follow(self, held: list[ValidRecord], new: list[ValidRecord], gone: list[ValidRecord]) -> None:
        """`gone` may hold a record that came back: it is then in `held` too."""
        now, added, removed = self.stars(held), self.stars(new), self.stars(gone)
        for stratum in strata(self.parts.program):
            grown = frozenset(p for p, rows in added.items() if rows)
            shrunk = frozenset(p for p, rows in removed.items() if rows)
            doubts = frozenset({GOAL} & set(stratum.predicates) if gone else ())
            changed = Changed(grown, shrunk, doubts)
            if changed.touches(stratum):
                self._maintain(stratum, changed, now, added, removed, gone)
            for predicate in stratum.predicates:
                now[predicate] = self.stored[predicate]

    def _maintain(
        self,
        stratum: Stratum,
        changed: Changed,
        now: dict[Predicate, set[Row]],
        added: dict[Predicate, set[Row]],
        removed: dict[Predicate, set[Row]],
        gone: list[ValidRecord],
    ) -> None:
        given = {
            **now,
            **{came(p): rows for p, rows in added.items()},
            **{went(p): rows for p, rows in removed.items()},
        }
        given |= {ever(p): now[p] | removed.get(p, set()) for p in now}
        given |= {was(p): self.stored[p] for p in stratum.predicates}
        given[doubted(GOAL)] = {(str(valid.hash),) for valid in gone}
        plan = maintenance(stratum, changed)
        self.ways.append(plan.how)
        heads = {rule.head.predicate for rule in plan.program.rules}
        facts = [Fact(p, row) for p, rows in given.items() if p not in heads for row in rows]
        found = evaluated(plan.program.rules, facts, heads)
        for predicate in stratum.predicates:
            plus, minus = found[came(predicate)], found.get(went(predicate), set())
            assert not plus & self.stored[predicate]
            assert minus <= self.stored[predicate]
            added[predicate], removed[predicate] = plus, minus
            self.stored[predicate] = self.stored[predicate] - minus | plus


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_kept_equals_evaluation_from_scratch_over_random_batches_and_removals(name: str, seed: int) -> None:
    rng = random.Random(f"{name} {seed}")
    records = make_records(36, seed=31 + seed)
    kept = Kept(sky_of(PROGRAMS[name]))
    held: list[ValidRecord] = []
    kept.stored = kept.from_scratch(held)
    for _ in range(12):
        gone = rng.sample(held, rng.randrange(min(4, len(held) + 1))) if rng.random() < 0.4 else []
        outside = [valid for valid in records if valid not in held or valid in gone]
        new = rng.sample(outside, rng.randrange(min(7, len(outside)) + 1))
        held = [valid for valid in held if valid not in gone] + new
        # An archive takes removed hashes out of what it selected at once.
        kept.stored[GOAL] -= {(str(valid.hash),) for valid in gone}
        kept.follow(held, new, gone)
        assert kept.stored == kept.from_scratch(held)


@pytest.mark.parametrize(
    ("name", "way"),
    [("join", {"growth"}), ("closure", {"growth"}), ("negation", {"growth", "doubt"}), ("count", {"doubt"})],
)
def test_growth_is_followed_without_deriving_anything_anew(name: str, way: set[str]) -> None:
    records = make_records(36, seed=8)
    kept = Kept(sky_of(PROGRAMS[name]))
    kept.stored = kept.from_scratch(records[:12])
    for end in range(13, 37):
        kept.follow(records[:end], records[end - 1 : end], [])
    assert set(kept.ways) == way


def test_recursion_that_lost_rows_is_derived_anew_and_told_as_a_difference() -> None:
    records = make_records(36, seed=8)
    kept = Kept(sky_of(PROGRAMS["closure, doubled"]))
    kept.stored = kept.from_scratch(records)
    linked = next(valid for valid in records if any(name == "+Link" for name, _ in valid.parts.headers))
    held = [valid for valid in records if valid is not linked]
    kept.stored[GOAL].discard((str(linked.hash),))
    kept.follow(held, [], [linked])
    assert "anew" in kept.ways
    assert kept.stored == kept.from_scratch(held)
