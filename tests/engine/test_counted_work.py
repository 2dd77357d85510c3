"""What work a change is counted as, and what it moves, for every line of counted_work.txt.

The count is a function of the program and of the facts alone (P36), so it is written out: somebody who changes how
changes are followed, planned or paid for sees there what becomes of each program. What is derived and moved must be as
written; rows of work and bytes may drift by a tenth before anybody has to look. `tools/counted_work.py --write` writes
the file, and its diff is then read by a person.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from engine.columns import ArraySource
from lace.datalog.binding import match
from lace.datalog.engine import Meter, evaluate, materialize
from lace.datalog.engine.base import Facts
from lace.datalog.language.parser import parse_atom, parse_program
from lace.datalog.language.syntax import Atom, Fact, Predicate
from lace.datalog.language.validate import RAW_PROFILE, CheckedProgram, check_program
from lace.datalog.source import Row
from lace.limits import EngineLimits
from lace.thresholds import ENGINE_THRESHOLDS, EngineThresholds

TEXT = Path(__file__).parent / "counted_work.txt"
EDGE, NODE, POST = Predicate("Edge", 2), Predicate("Node", 1), Predicate("Post", 3)
PROGRAMS = {
    "join": "Two(X,Z) :- Edge(X,Y), Edge(Y,Z), X != Z.\nLong(X) :- Two(X,_), Node(X), IntCompare(X,'>','5').",
    "left": "Path(X,Y) :- Edge(X,Y).\nPath(X,Z) :- Path(X,Y), Edge(Y,Z).",
    "twice": "Path(X,Y) :- Edge(X,Y).\nPath(X,Z) :- Path(X,Y), Path(Y,Z).",
    "not": "Path(X,Y) :- Edge(X,Y).\nPath(X,Z) :- Edge(X,Y), Path(Y,Z).\n"
    "Apart(X,Y) :- Node(X), Node(Y), not Path(X,Y).\n"
    "End(X) :- Node(X), not Edge(X,_).",
    "count": "Busy(X) :- Node(X), Cardinality(Edge(X,_),'>','2').\nIdle(X) :- Node(X), not Busy(X).\n"
    "Rare(X) :- Node(X), Post(_,X,N), Cardinality(Edge(_,X),'<',N).\nAll() :- Cardinality(Idle(_),'<=','3').",
    "mutual": "Even(X) :- Node(X), X != '3', TextShape(X,'1','','').\nEven(Y) :- Odd(X), Edge(X,Y).\n"
    "Odd(Y) :- Even(X), Edge(X,Y), not Edge(Y,X).\nBoth(X) :- Even(X), Odd(X).",
    "rank": "Newer(P,Q) :- Post(P,G,T), Post(Q,G,U), IntCompare(U,'>',T).\n"
    "Top(P,G) :- Post(P,G,_), Cardinality(Newer(P,_),'<','2').\n"
    "Old(P) :- Post(P,_,T), Post(Q,_,U), LexCompare(U,'>',T).\nLast(P) :- Post(P,_,_), not Old(P).",
    "wide": "Wide(X,Y,Z,W) :- Edge(X,Y), Edge(Y,Z), Edge(Z,W).\nRound(X) :- Wide(X,_,_,X).\nPair('k',X) :- Edge(X,X).\n"
    "On() :- Round(X), Node(X).",
}
EDGES = [(str(n), str((7 * n + k) % 30)) for n in range(30) for k in (1, 4) if (n + k) % 5]
NODES = [str(n) for n in range(0, 30, 2)]
POSTS = [(f"p{n}", str(n % 3), str((5 * n) % 11)) for n in range(24)]
FACTS = [
    *(Fact(EDGE, edge) for edge in EDGES),
    *(Fact(NODE, (node,)) for node in NODES),
    *(Fact(POST, post) for post in POSTS),
]
NEW_EDGES = [Fact(EDGE, (str(n), str((3 * n + 5) % 40))) for n in range(36)]
NEW_POSTS = [Fact(POST, (f"q{n}", "1", str(n))) for n in range(14)]
STEPS: dict[str, tuple[list[Fact], list[Fact]]] = {  # what comes, what goes
    "one edge less": ([], [Fact(EDGE, ("1", "8"))]),
    "one edge more": ([Fact(EDGE, ("29", "0"))], []),
    "one for another": ([Fact(EDGE, ("2", "2")), Fact(NODE, ("3",))], [Fact(EDGE, ("3", "22")), Fact(NODE, ("4",))]),
    "a post": ([Fact(POST, ("q", "0", "11"))], [Fact(POST, ("p7", "1", "2"))]),
    "nothing new": ([Fact(NODE, ("0",))], [Fact(NODE, ("99",))]),
    "some": ([*NEW_EDGES[:14], *NEW_POSTS], [Fact(EDGE, edge) for edge in EDGES[5:9]]),
    "many": (NEW_EDGES[14:], [Fact(EDGE, edge) for edge in EDGES[10:40]]),
    "back": ([Fact(EDGE, edge) for edge in EDGES], NEW_EDGES),
    "all": ([], [*FACTS, *NEW_POSTS]),
    "again": (FACTS, []),
}
GOALS = {
    "left": ["Path('3',Y)", "Path(X,'3')", "Path(X,X)"], "twice": ["Path('3','4')"], "not": ["Apart('4',Y)", "End(X)"],
    "count": ["Idle('4')"], "rank": ["Top('p3',G)", "Last(X)"], "wide": ["Wide(X,'8',Z,'3')", "On()"],
    "join": ["Long('8')"], "mutual": ["Both(X)", "Even('7')"],
}  # fmt: skip


def checked(name: str) -> CheckedProgram:
    return check_program(parse_program(PROGRAMS[name]), RAW_PROFILE)


def asked(
    program: CheckedProgram,
    goal: str,
    facts: Facts,
    extra: Sequence[Fact] = (),
    ways: EngineThresholds = ENGINE_THRESHOLDS,
) -> str:
    """What a goal costs, whether it answers rightly, and with how many facts."""
    meter, atom = Meter(EngineLimits()), parse_atom(goal)
    found = evaluate(program, facts, goals=[atom], meter=meter, extra=extra, thresholds=ways)
    everything = evaluate(program, FACTS).rows(atom.predicate)
    assert found.rows(atom.predicate) == [row for row in everything if is_asked(atom, row)]
    return f"{meter.rows} rows, {meter.held_bytes} bytes, {found.count(atom.predicate)} facts"


def is_asked(goal: Atom, row: Row) -> bool:
    return match(goal, row, {}) is not None


def lines(name: str) -> Iterator[str]:
    """Evaluate, ask, and follow changes one after the other; each is compared with evaluating anew."""
    program = checked(name)
    meter = Meter(EngineLimits())
    result = evaluate(program, FACTS, meter=meter)
    derived = sorted(program.derived)
    sizes = " ".join(
        f"{predicate.name}={result.count(predicate)}" for predicate in derived if predicate not in result.ranked
    )
    rounds = " ".join(f"{stratum}:{count}" for stratum, count in result.stats.rounds.items())
    yield f"{name} evaluated: {meter.rows} rows, {meter.held_bytes} bytes, {sizes}; {rounds}"
    for goal in GOALS[name]:
        yield f"{name} asked {goal}: {asked(program, goal, FACTS)}"
        for start, share in ((600, 0.25), (0, 0.01), (0, 4.0)):
            ways = EngineThresholds(head_start_rows=start, demand_share=share, open_demand_share=share / 2)
            yield f"{name} raced {goal} {start} {share}: {asked(program, goal, FACTS, ways=ways)}"
        half = len(FACTS) // 2
        yield f"{name} asked {goal} of two parts: {asked(program, goal, FACTS[:half], FACTS[half - 9 :])}"
        assert asked(program, goal, ArraySource(FACTS)) == asked(program, goal, FACTS)
    m = materialize(program, FACTS)
    yield f"{name} kept: {m.meter.rows} rows"
    facts = set(FACTS)
    for step, (came, went) in STEPS.items():
        supposed = m.suppose(came)
        more, less = (sum(map(len, rows.values())) for rows in (supposed.added, supposed.removed))
        thought = f"{m.meter.rows} supposed +{more}-{less}"
        changes = m.apply(came, went)
        facts = facts - set(went) | set(came)
        anew = evaluate(program, sorted(facts))
        for predicate in program.derived - m.ranked:
            assert m.rows(predicate) == anew.rows(predicate), (name, step, predicate)
        moved = " ".join(
            f"{predicate.name}+{len(changes.added.get(predicate, ()))}-{len(changes.removed.get(predicate, ()))}"
            for predicate in derived
            if predicate in changes.added or predicate in changes.removed
        )
        yield f"{name} {step}: {m.meter.rows} rows, {thought}; {moved or 'nothing'}"


WRITTEN = TEXT.read_text(encoding="utf-8").splitlines()
WORK = re.compile(r"\d+(?= rows| bytes| supposed)")
DRIFT = 0.1


def without_work(line: str) -> str:
    """What a line says beside the work: facts, rounds, what came and went."""
    return WORK.sub("#", line)


def work_of(line: str) -> list[int]:
    return [int(number) for number in WORK.findall(line)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_work_of_every_change_is_counted_as_written(name: str) -> None:
    found, written = list(lines(name)), [line for line in WRITTEN if line.startswith(f"{name} ")]
    assert list(map(without_work, found)) == list(map(without_work, written))
    for now, before in zip(found, written, strict=True):
        assert work_of(now) == pytest.approx(work_of(before), rel=DRIFT), f"{before}\nis now\n{now}"


def test_work_that_drifts_further_and_facts_that_differ_are_told_apart() -> None:
    line = "join one edge less: 1760 rows, 0 supposed +0-0; Two+0-3"
    assert without_work(line) == "join one edge less: # rows, # supposed +0-0; Two+0-3"
    assert work_of(line) == [1760, 0]


def test_every_line_belongs_to_a_program() -> None:
    assert {line.partition(" ")[0] for line in WRITTEN} == set(PROGRAMS)
