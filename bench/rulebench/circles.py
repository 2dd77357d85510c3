"""One question about a graph on one engine, in a process of its own; prints what it took, as JSON.

Rule: every engine is given the same pairs of texts and asked for all answers. Making the graph is not measured; reading
it is `load`, reading the rules and finding the answers is `seconds`, both of the processor. DuckDB only counts
answers, on one thread.

    cd bench && python -m rulebench.circles ENGINE QUESTION EDGES

ENGINE: lace, lace-binary, lace-edits, duckdb, clingo, nemo.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

import numpy as np

from rulebench.engines import grown_bytes, peak_bytes, start_growing

Pairs = list[tuple[str, str]]
Figures = dict[str, float]


def hub(edges: int) -> Pairs:
    """A node that nearly everybody knows and that knows nearly everybody, among some other edges."""
    spokes = edges * 20_000 // 42_855
    chosen = np.random.default_rng(30)
    rest = chosen.integers(0, spokes, (edges - 2 * spokes, 2)).tolist()
    pairs = [(f"n{a}", f"n{b}") for a, b in rest]
    return sorted({*pairs, *((f"n{n}", "hub") for n in range(spokes)), *(("hub", f"n{n}") for n in range(spokes))})


def followed(edges: int) -> Pairs:
    """Twenty accounts that very many follow and that follow some hundred; the others know each other at random."""
    nodes, famous = max(edges // 4, 100), 20
    chosen = np.random.default_rng(30)
    followers, follows = edges // 50, edges // 5_000
    parts = [chosen.integers(0, nodes, (edges - famous * (followers + follows), 2))]
    for account in range(nodes, nodes + famous):
        parts.append(np.stack([chosen.choice(nodes, followers, replace=False), np.full(followers, account)], 1))
        parts.append(np.stack([np.full(follows, account), chosen.choice(nodes, follows, replace=False)], 1))
    return [(f"n{a}", f"n{b}") for a, b in np.unique(np.concatenate(parts), axis=0).tolist()]


@dataclass(frozen=True, slots=True)
class Circle:
    """A body of edges, written once."""

    atoms: tuple[str, ...]  # two variables each
    graph: Callable[[int], Pairs]
    size: int
    quick: int

    @property
    def names(self) -> str:
        """The variables, all of which are asked for."""
        return "".join(sorted(set("".join(self.atoms))))

    def lace(self) -> str:
        body = ", ".join(f"E({atom[0]},{atom[1]})" for atom in self.atoms)
        return f"T({','.join(self.names)}) :- {body}."

    def clingo(self) -> str:
        return self.lace().replace("E(", "e(").replace("T(", "t(")

    def nemo(self) -> str:
        body = ", ".join(f"e(?{atom[0]},?{atom[1]})" for atom in self.atoms)
        return f"t({','.join(f'?{name}' for name in self.names)}) :- {body}."

    def sql(self) -> str:
        first: dict[str, str] = {}
        equal: list[str] = []
        for number, atom in enumerate(self.atoms):
            for column, name in zip("ab", atom, strict=True):
                place = f"e{number}.{column}"
                equal += [f"{first[name]} = {place}"] if name in first else []
                first.setdefault(name, place)
        tables = ", ".join(f"e e{number}" for number in range(len(self.atoms)))
        return f"select count(*) from {tables} where {' and '.join(equal)}"


QUESTIONS = {
    "triangle at a hub": Circle(("XY", "YZ", "XZ"), hub, 42_855, 4_000),
    "triangle": Circle(("XY", "YZ", "XZ"), followed, 1_000_000, 20_000),
    "circle of four": Circle(("XY", "YZ", "ZW", "WX"), followed, 1_000_000, 20_000),
    "clique of four": Circle(("XY", "XZ", "XW", "YZ", "YW", "ZW"), followed, 1_000_000, 20_000),
}


def by_lace(question: Circle, pairs: Pairs, growth: float | None = None) -> Figures:
    """Whole evaluation."""
    from lace.datalog.engine import Base, evaluate
    from lace.datalog.language.parser import parse_program
    from lace.datalog.language.syntax import Fact, Predicate
    from lace.datalog.language.validate import RAW_PROFILE, check_program
    from lace.thresholds import ENGINE_THRESHOLDS, EngineThresholds

    edge, answer = Predicate("E", 2), Predicate("T", len(question.names))
    facts = [Fact(edge, pair) for pair in pairs]
    ways = ENGINE_THRESHOLDS if growth is None else EngineThresholds(meeting_growth=growth)
    started = process_time()
    base = Base(facts)
    base.runs(edge)
    held = start_growing()
    loaded = process_time()
    program = check_program(parse_program(question.lace()), RAW_PROFILE)
    result = evaluate(program, base, thresholds=ways)
    done = process_time()
    figures = {"count": result.count(answer), "load": loaded - started, "seconds": done - loaded, "peak": peak_bytes()}
    figures["grown"] = grown_bytes(held)
    return figures


def edits(question: Circle, pairs: Pairs) -> Figures:
    """Edges more and less, one by one, each followed."""
    from lace.datalog.engine import materialize
    from lace.datalog.language.parser import parse_program
    from lace.datalog.language.syntax import Fact, Predicate
    from lace.datalog.language.validate import RAW_PROFILE, check_program

    edge, answer = Predicate("E", 2), Predicate("T", len(question.names))
    facts = [Fact(edge, pair) for pair in pairs]
    started = process_time()
    followed_facts = materialize(check_program(parse_program(question.lace()), RAW_PROFILE), facts)
    seconds = process_time() - started
    before = followed_facts.count(answer)
    steps: list[float] = []
    for fact in facts[:: max(1, len(facts) // 50)]:
        for change in ({"removed": [fact]}, {"added": [fact]}):
            began = process_time()
            followed_facts.apply(**change)
            steps.append(process_time() - began)
    if followed_facts.count(answer) != before:
        raise SystemExit("edges that came back left another answer")
    return {"seconds": seconds, "middle": sorted(steps)[len(steps) // 2], "most": max(steps), "edits": len(steps)}


def two_at_a_time(question: Circle, pairs: Pairs) -> Figures:
    """The same engine without meeting."""
    return by_lace(question, pairs, float("inf"))


def by_duckdb(question: Circle, pairs: Pairs) -> Figures:
    import duckdb

    with TemporaryDirectory() as folder:
        file = Path(folder) / "e.csv"
        file.write_text("".join(f"{a},{b}\n" for a, b in pairs), encoding="utf-8")
        connection = duckdb.connect()
        connection.execute("set threads = 1")
        started = process_time()
        columns = "{'a': 'varchar', 'b': 'varchar'}"
        connection.execute(f"create table texts as select * from read_csv('{file}', header=false, columns={columns})")
        both = "select a as t from texts union select b from texts"
        connection.execute(f"create table codes as select t, row_number() over () as n from ({both})")
        connection.execute(
            "create table e as select x.n::integer as a, y.n::integer as b from texts"
            " join codes x on texts.a = x.t join codes y on texts.b = y.t"
        )
        loaded = process_time()
        (count,) = connection.execute(question.sql()).fetchall()[0]
        return {"count": count, "load": loaded - started, "seconds": process_time() - loaded, "peak": peak_bytes()}


def by_clingo(question: Circle, pairs: Pairs) -> Figures:
    import clingo

    text = "\n".join(f'e("{a}","{b}").' for a, b in pairs)
    started = process_time()
    control = clingo.Control(["--warn=none"])
    control.add("facts", [], text)
    control.ground([("facts", [])])
    loaded = process_time()
    control.add("rules", [], question.clingo())
    control.ground([("rules", [])])
    done = process_time()
    count = sum(1 for _ in control.symbolic_atoms.by_signature("t", len(question.names)))
    return {"count": count, "load": loaded - started, "seconds": done - loaded, "peak": peak_bytes()}


def by_nemo(question: Circle, pairs: Pairs) -> Figures:
    """nemo reads facts while it reasons: reading alone is measured first."""
    import nmo_python

    def reason(text: str) -> tuple[float, Any]:
        started = process_time()
        engine = nmo_python.NemoEngine(nmo_python.load_string(text))
        engine.reason()
        return process_time() - started, engine

    with TemporaryDirectory() as folder:
        file = Path(folder) / "e.csv"
        file.write_text("".join(f"{a},{b}\n" for a, b in pairs), encoding="utf-8")
        read = f'@import e :- csv{{resource="{file}", format=(string,string)}}.'
        load, _ = reason(f'{read}\ngot("e") :- e(?A,?B).\n@export got :- csv{{}}.')
        both, engine = reason(f"{read}\n{question.nemo()}\n@export t :- csv{{}}.")
        count = len(list(engine.result("t")))
    return {"count": count, "load": load, "seconds": max(both - load, 1e-6), "peak": peak_bytes()}


ENGINES = {
    "lace": by_lace,
    "lace-binary": two_at_a_time,
    "lace-edits": edits,
    "duckdb": by_duckdb,
    "clingo": by_clingo,
    "nemo": by_nemo,
}

if __name__ == "__main__":
    asked = QUESTIONS[sys.argv[2]]
    print(json.dumps(ENGINES[sys.argv[1]](asked, asked.graph(int(sys.argv[3])))))
