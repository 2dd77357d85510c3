"""Generated operands of a hostile peer, and pairs of stores that differ only in what is hidden from it.

Everything is drawn from a seed, so a failing seed replays.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from lace.datalog.language.syntax import Fact
from lace.facts.predicates import PEER
from lace.policy.operand import Module
from policy.world import advertised, record

VARIABLES = ("P", "Q", "R")
NAMES = tuple(f"r{n}" for n in range(6))
GROUPS, TAGS = ("X", "Y", "Z"), ("t", "u")
# Per position: what a constant there could be.
BASE: dict[str, tuple[tuple[str, ...], ...]] = {
    "Have": (NAMES,),
    "Field": (NAMES, ("Group", "Tag"), ("0",), (*GROUPS, *TAGS)),
    "RecordLink": (NAMES, ("+Link",), ("0",), ("evidence",), NAMES),
    "BlobHash": (NAMES, tuple(f"B.{name}" for name in NAMES)),
    "PlexHash": (NAMES, tuple(f"P.{name}" for name in NAMES)),
    "Advertised": (NAMES, ("S",)),
    "AdvertisedField": (NAMES, ("S",), ("Group",), ("0",), GROUPS),
}
HELPERS = {"H0": (NAMES,), "H1": (NAMES, NAMES), "H2": (NAMES,), "H3": (NAMES, NAMES)}
RECORDLIKE = ("Have", "Have", "Field", "Field", "Field", "RecordLink", "BlobHash", "PlexHash")
CONDITIONS = ("{0} != 'r0'", "LexCompare({0},'<=','r4')", "TextShape({0},'r','','')", "{0} != {0}")


@dataclass(frozen=True)
class Worlds:
    """Two fact sets with the same visible records, advertisements and runtime facts."""

    first: list[Fact]
    second: list[Fact]


def _atom(draw: Random, names: list[str], variables: tuple[str, ...], constants: float) -> tuple[str, list[str]]:
    """An atom's text and its variables; at most one variable is drawn into each position."""
    name = draw.choice(names)
    terms = []
    for values in {**BASE, **HELPERS}[name]:
        if values in (("0",), ("evidence",), ("+Link",)):
            terms.append("_")
        elif draw.random() < (0.7 if "Group" in values else constants):
            terms.append(f"'{draw.choice(values)}'")
        elif variables and draw.random() < 0.85:
            terms.append(draw.choice(variables))
        else:
            terms.append("_")
    return f"{name}({','.join(terms)})", [term for term in terms if term[0] not in "_'"]


def _rule(draw: Random, head: str, terms: tuple[str, ...], level: int) -> str:
    """A safe rule: positive atoms bind every head variable, then come tests, negated and counted atoms."""
    below = list(HELPERS)[:level]
    itself = [head] if head in HELPERS else []
    body: list[str] = []
    bound: dict[str, None] = {}
    for _ in range(draw.randint(1, 2)):
        pool = [*RECORDLIKE, "Advertised", "AdvertisedField", *below, *below, *itself]
        text, variables = _atom(draw, pool, VARIABLES, 0.1)
        body.append(text)
        bound |= dict.fromkeys(variables)
    for term in terms:
        if term not in bound:
            body.append(
                f"Advertised(_,{term})" if term == "S" else draw.choice(["Have({})", "Advertised({},_)"]).format(term)
            )
            bound[term] = None
    if draw.random() < 0.3:
        body.append(draw.choice(CONDITIONS[:3] if draw.random() < 0.9 else CONDITIONS).format(next(iter(bound))))
    for _ in range(draw.randint(0, 2)):
        text, _ = _atom(draw, [*RECORDLIKE, "Advertised", *below, *below], tuple(bound), 0.25)
        if draw.random() < 0.5:
            body.append(f"not {text}")
        else:
            body.append(f"Cardinality({text},'{draw.choice(['<', '<=', '>', '>='])}','{draw.randint(0, 3)}')")
    return f"{head}({','.join(terms)}) :- {', '.join(body)}."


def hostile_module(seed: int) -> Module:
    """Helpers in layers, each reading those below (and itself), then both exports over all of them."""
    draw = Random(seed)
    lines = [
        _rule(draw, name, VARIABLES[: len(terms)], level)
        for level, (name, terms) in enumerate(HELPERS.items())
        for _ in range(draw.randint(0, 2))
    ]
    for _ in range(draw.randint(1, 2)):
        lines.append(_rule(draw, "SelectHave", ("P",), len(HELPERS)))
        lines.append(_rule(draw, "SelectAdvertised", ("P", "S"), len(HELPERS)))
    return Module.author("\n".join(lines))


def worlds(seed: int) -> Worlds:
    """Group X is visible; everything else of the two stores is drawn apart."""
    draw = Random(seed)
    visible = draw.sample(NAMES, draw.randint(1, 4))
    shared = [fact for name in visible for fact in _record(draw, name, "X")] + [Fact(PEER, ("V.alice.H3",))]
    for name in draw.sample(NAMES, 3):
        shared += advertised(name, Group=draw.choice(GROUPS))
    rest = [name for name in NAMES if name not in visible]
    pair = [
        shared + [fact for name in draw.sample(rest, count) for fact in _record(draw, name, draw.choice("YZ"))]
        for count in (draw.randint(0, len(rest)), len(rest))
    ]
    return Worlds(*pair)


def _record(draw: Random, name: str, group: str) -> list[Fact]:
    return record(name, group, tag=draw.choice(("", *TAGS)), link=draw.choice(("", *NAMES)))
