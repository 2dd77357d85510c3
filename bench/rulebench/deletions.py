"""One fact less: what following it costs, beside evaluating anew. Run in a process of its own; prints JSON.

Rule: facts go and come back one by one, picked by a seed and not by what they do. Indexes that following needs are made
by a first change that is not measured, as in a view that lives; evaluating anew gets its facts encoded already.

    cd bench && python -m rulebench.deletions PROGRAM SIZE
"""

from __future__ import annotations

import gc
import json
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from time import process_time

from lace.datalog.engine import Base, evaluate, materialize
from lace.datalog.language.parser import parse_program
from lace.datalog.language.syntax import Fact, Predicate
from lace.datalog.language.validate import RAW_PROFILE, CheckedProgram, check_program
from rulebench.asked import REPLICATED_LIST, typing
from rulebench.packages import dependencies
from rulebench.programs import LACE_CLOSURE, POINTS_TO, Row

_LOCALS = 12  # variables of one function
_TIMES = 9  # evaluations from the start; the median counts
_PASSES = 3  # by views of their own, where evaluating takes less than the seconds below; the median of each counts
_SHORT_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Deletion:
    """A program, its facts by size, and the facts that go together."""

    name: str
    rules: str
    facts: Callable[[int], Iterator[tuple[str, Row]]]
    picked: Callable[[list[Fact]], list[list[Fact]]]
    usual: float  # what a change should usually cost, of evaluating anew
    size: int
    quick: int
    growth: tuple[int, ...]


def sparse_graph(nodes: int) -> Iterator[tuple[str, Row]]:
    """Two edges a node but one: most nodes reach most others, mostly by one shortest way."""
    draw = Random(1)
    pairs = dict.fromkeys((f"n{draw.randrange(nodes)}", f"n{draw.randrange(nodes)}") for _ in range(2 * nodes - 1))
    return (("Edge", pair) for pair in pairs)


def one_chain(length: int) -> Iterator[tuple[str, Row]]:
    """Edges from each node to the next."""
    return (("Edge", (f"n{n}", f"n{n + 1}")) for n in range(length))


def assignments(variables: int) -> Iterator[tuple[str, Row]]:
    """A program as an analysis sees it: functions that assign among their own variables, and some calls."""
    draw = Random(1)
    for first in range(0, variables, _LOCALS):
        for name, count in (("Assign", _LOCALS + 1), ("Load", _LOCALS // 4)):
            for _ in range(count):
                yield name, (f"v{first + draw.randrange(_LOCALS)}", f"v{first + draw.randrange(_LOCALS)}")
        if first and draw.random() < 0.6:
            yield "Assign", (f"v{first + draw.randrange(_LOCALS)}", f"v{draw.randrange(first)}")


def packages(count: int) -> Iterator[tuple[str, Row]]:
    """A distribution's dependencies."""
    return (("Edge", pair) for pair in dependencies(count, count * 264 // 63))


def some(facts: list[Fact]) -> list[list[Fact]]:
    """Facts picked by a seed."""
    return [[fact] for fact in Random(5).sample(facts, 25)]


def middle(facts: list[Fact]) -> list[list[Fact]]:
    """The one in the middle."""
    return [[facts[len(facts) // 2]]]


def some_records(facts: list[Fact]) -> list[list[Fact]]:
    """All that some packages need: what goes when a record goes."""
    needing = Random(5).sample(sorted({fact.values[0] for fact in facts}), 25)
    return [[fact for fact in facts if fact.values[0] == name] for name in needing]


DELETIONS = (
    Deletion("closure, 2 edges a node", LACE_CLOSURE, sparse_graph, some, 1, 800, 150, (200, 400, 800, 1600)),
    Deletion("closure of one chain, its middle", LACE_CLOSURE, one_chain, middle, 2, 800, 150, (200, 400, 800, 1600)),
    Deletion("points-to", POINTS_TO, assignments, some, 0.1, 2_400, 240, (600, 1_200, 2_400, 4_800)),
    Deletion("replicated list", REPLICATED_LIST, typing, some, 0.05, 50_000, 2_000, (10_000, 20_000, 50_000, 100_000)),
    Deletion("closure of packages", LACE_CLOSURE, packages, some, 0.05, 63_436, 2_000, (8_000, 16_000, 32_000, 63_436)),
    Deletion("closure of packages, one record", LACE_CLOSURE, packages, some_records, 0.05, 63_436, 2_000, ()),
)
BY_NAME = {deletion.name: deletion for deletion in DELETIONS}


def measure(deletion: Deletion, size: int) -> dict[str, float]:
    """Seconds of the processor and rows touched, for each change and for evaluating anew."""
    given = dict.fromkeys(deletion.facts(size))
    facts = [Fact(Predicate(name, len(row)), row) for name, row in given]
    program = check_program(parse_program(deletion.rules), RAW_PROFILE)
    base = Base(facts)
    evaluate(program, base)
    gc.collect()
    gc.freeze()
    full: list[float] = []
    for _ in range(_TIMES):
        started = process_time()
        result = evaluate(program, base)
        full.append(process_time() - started)
    anew = statistics.median(full)
    derived, work = sum(result.count(p) for p in program.derived), result.stats.rows_touched
    del result
    passes = [taken_out(deletion, program, base, facts) for _ in range(_PASSES if anew < _SHORT_SECONDS else 1)]
    less = [statistics.median(times) / anew for times in zip(*(seconds for seconds, _ in passes), strict=True)]
    rows = [touched / work for touched in passes[0][1]]
    return {
        "facts": float(len(facts) + derived),
        "full": anew,
        "median": statistics.median(less),
        "worst": max(less),
        "median rows": statistics.median(rows),
        "worst rows": max(rows),
    }


def taken_out(
    deletion: Deletion, program: CheckedProgram, base: Base, facts: list[Fact]
) -> tuple[list[float], list[int]]:
    """Seconds and rows of each change in a view that was just made: a fact that comes back has other ranks."""
    view = materialize(program, base)
    view.apply(removed=[facts[0]])
    view.apply(added=[facts[0]])
    seconds: list[float] = []
    rows: list[int] = []
    for going in deletion.picked(facts):
        started = process_time()
        view.apply(removed=going)
        seconds.append(process_time() - started)
        rows.append(view.meter.rows)
        view.apply(added=going)
    return seconds, rows


if __name__ == "__main__":
    print(json.dumps(measure(BY_NAME[sys.argv[1]], int(sys.argv[2]))))
