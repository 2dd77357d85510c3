"""What a goal, an explanation and a large answer cost, beside the same work without them and beside DuckDB.

python bench/goals.py [--quick] [--only SECTION]      SECTION: goals, explain, shapes, output, command

A run of one section only is shown, not kept. Ratios inside one process are of processor time, since other work on the
machine then hardly matters; whole commands are timed by the clock, each beside what it is compared with.
"""

from __future__ import annotations

import argparse
import gc
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from report import Report
from rulebench.asked import POINTS_TO, REPLICATED_LIST, pointers, typing
from rulebench.packages import collections, dependencies

from lace.datalog.engine import Base, evaluate
from lace.datalog.language.parser import parse_atom, parse_program
from lace.datalog.language.syntax import Fact, Predicate
from lace.datalog.language.validate import RAW_PROFILE, CheckedProgram, check_program
from lace.porcelain.explain import Explainer
from lace.porcelain.query import query

ROOT = Path(__file__).resolve().parent.parent
LACE = [sys.executable, "-c", "from lace.cli import main; main()"]
RIGHT = "Needs(A,B) :- Depends(A,B).\nNeeds(A,C) :- Depends(A,B), Needs(B,C).\n"
LEFT = "Needs(A,B) :- Depends(A,B).\nNeeds(A,C) :- Needs(A,B), Depends(B,C).\n"
CHAIN = "Path(X,Y) :- Edge(X,Y).\nPath(X,Z) :- Edge(X,Y), Path(Y,Z).\n"
COUNT = "Top(P) :- C(P,_), Cardinality(B(P,Q),'<','100')."
SHAPES = {
    "as 030 writes it": "B(P,Q) :- C(P,T), C(Q,T), LexCompare(Q,'>',P).\n"
    "B(P,Q) :- C(P,S), C(Q,T), LexCompare(T,'>',S).\n" + COUNT,
    "with P != Q": "B(P,Q) :- C(P,S), C(Q,T), LexCompare(T,'>',S), P != Q.\n" + COUNT,
    "by not Older": "Older(P) :- C(P,S), C(Q,T), LexCompare(T,'>',S).\nTop(P) :- C(P,_), not Older(P).",
    "of each name": "Older(P) :- N(P,M,S), N(Q,M,T), LexCompare(T,'>',S).\nTop(P) :- N(P,_,_), not Older(P).",
    "three of each name": "B(P,Q) :- N(P,M,S), N(Q,M,T), LexCompare(T,'>',S), P != Q.\n"
    "Top(P) :- N(P,_,_), Cardinality(B(P,Q),'<','3').",
}


def as_facts(rows: Iterable[tuple[str, tuple[str, ...]]]) -> list[Fact]:
    return [Fact(Predicate(name, len(values)), values) for name, values in rows]


def side_by_side(works: dict[str, Callable[[], object]], rounds: int = 5) -> dict[str, float]:
    """Processor seconds of the best round of each, taken in turns: what else the machine does then meets all alike."""
    best = dict.fromkeys(works, float("inf"))
    for _ in range(rounds):
        for name, work in works.items():
            best[name] = min(best[name], cpu_seconds(work, rounds=1))
    return best


def cpu_seconds(work: Callable[[], object], rounds: int = 5) -> float:
    """Processor seconds of the best round."""
    best = float("inf")
    for _ in range(rounds):
        gc.collect()
        started = time.process_time()
        work()
        best = min(best, time.process_time() - started)
    return best


def goals(report: Report) -> None:
    """Every goal beside the program without one, over facts that are loaded already."""
    small = 4 if report.quick else 1
    packages = as_facts(("Depends", pair) for pair in dependencies(63_436 // small, 264_000 // small))
    one = collections(63_436 // small)[0]
    chain = as_facts(("Edge", (f"{n:05}", f"{n + 1:05}")) for n in range(800))
    programs = (
        ("replicated list", REPLICATED_LIST, as_facts(typing(150_000 // small)), ("Shown(A,B,V)", "Shown('100',B,V)")),
        ("pointers", POINTS_TO, as_facts(pointers(2_500 // small)), ("Points(V,O)", "Points('v77',O)")),
        ("chain of 800", CHAIN, chain, ("Path(X,Y)", "Path('00000',Y)", "Path(X,'00800')")),
        ("packages", RIGHT, packages, ("Needs(A,B)", f"Needs('{one}',B)", "Needs(A,'package-00005')")),
        ("packages, left-linear", LEFT, packages, (f"Needs('{one}',B)", "Needs(A,'package-00005')")),
    )
    for name, rules, facts, asked in programs:
        checked = check_program(parse_program(rules), RAW_PROFILE)

        def answered(
            goal: str | None, facts: list[Fact] = facts, checked: CheckedProgram = checked
        ) -> Callable[[], int]:
            base = Base(facts)
            for predicate in checked.base:
                base.runs(predicate)
            wanted = None if goal is None else [parse_atom(goal)]
            return lambda: len(evaluate(checked, base, goals=wanted).derived)

        took = side_by_side({"": answered(None), **{goal: answered(goal) for goal in asked}})
        without = took.pop("")
        report.row(f"{name}: no goal", len(facts), without, 1.0)
        for goal, seconds in took.items():
            report.row(f"{name}: {goal}", len(facts), seconds, seconds / without)
            allowed = 1.3 if "'" in goal else 1.1
            report.at_most(f"{name}: {goal} beside no goal", wanted=allowed, got=seconds / without, unit="×")


def _count(facts: list[Fact], rules: str, goal: str | None = None) -> int:
    return len(query(facts, rules) if goal is None else query(facts, rules, goal))


def _explained(facts: list[Fact], rules: str, goal: str) -> str:
    return str(Explainer(facts, rules).explain(goal))


def explain(report: Report) -> None:
    """An explanation beside the query of the same goal, facts loaded anew for each."""
    small = 4 if report.quick else 1
    facts = as_facts(("Depends", pair) for pair in dependencies(63_436 // small, 264_000 // small))
    one = collections(63_436 // small)[0]
    for name, rules in (("right-linear", RIGHT), ("left-linear", LEFT)):
        for goal in (f"Needs('{one}',B)", f"Needs('{one}','package-00003')", f"Needs('{one}','nothing')"):
            took = side_by_side(
                {
                    "query": partial(_count, facts, rules, goal),
                    "explain": partial(_explained, facts, rules, goal),
                }
            )
            asking, why = took["query"], took["explain"]
            report.row(f"{name}: explain {goal}", len(facts), why, why / asking)
            report.at_most(f"{name}: explain {goal} beside its query", wanted=2, got=why / asking, unit="×")


def shapes(report: Report) -> None:
    """Newest, as people write it, beside the form of the specification."""
    size = 5_000 if report.quick else 63_000
    rows = [(f"P{n:06}", f"{n * 7919 % size:06}") for n in range(size)]
    facts = as_facts(("C", row) for row in rows)
    facts += as_facts(("N", (p, f"n{n % 9_000}", t)) for n, (p, t) in enumerate(rows))
    plain = 0.0
    for name, rules in SHAPES.items():
        seconds = cpu_seconds(partial(_count, facts, rules))
        plain = plain or seconds
        report.row(f"newest {name}", size, seconds, seconds / plain)
        report.at_most(f"newest {name} beside the form of 030", wanted=3, got=seconds / plain, unit="×")


def output(report: Report) -> None:
    """A large answer in every form."""
    small = 4 if report.quick else 1
    pairs = dependencies(63_436 // small, 264_000 // small)
    answer = query(as_facts(("Depends", pair) for pair in pairs), LEFT)
    with tempfile.TemporaryDirectory(prefix="lace-bench-") as folder:
        from pyarrow import parquet

        forms: dict[str, Callable[[], object]] = {
            "JSON lines, to a file": lambda: (Path(folder) / "a.json").open("w").writelines(answer.json_lines()),
            "Arrow": answer.to_arrow,
            "Parquet, to a file": lambda: parquet.write_table(answer.to_arrow(), f"{folder}/a.parquet"),
            "rows of texts": answer.rows,
        }
        for name, work in forms.items():
            answer.result.forget_texts()
            seconds = cpu_seconds(work, rounds=1)
            report.row(f"answer as {name}", len(answer), seconds, len(answer) / seconds)
            report.at_least(f"{name}: rows a second", wanted=1_000_000, got=len(answer) / seconds)


def command(report: Report) -> None:
    """The closure of one package as a whole command, beside DuckDB as a whole process."""
    small = 8 if report.quick else 1
    pairs = dependencies(63_436 // small, 264_000 // small)
    one = collections(63_436 // small)[0]
    with tempfile.TemporaryDirectory(prefix="lace-bench-") as folder:
        path = str(Path(folder) / "packages.lace")
        build_packages(path, pairs)
        rules = Path(folder) / "needs.rules"
        rules.write_text(RECORD_RULES, "utf-8")
        goal = f"Needs('{one}',B)"
        query_seconds, answers = timed([*LACE, "query", path, str(rules), "--goal", goal, "--json"])
        why_seconds, _ = timed([*LACE, "explain", path, str(rules), goal])
        report.row("lace query of one package, whole command", len(pairs), query_seconds, 1.0)
        report.row("lace explain of one package, whole command", len(pairs), why_seconds, why_seconds / query_seconds)
        report.at_most(
            "lace explain beside lace query, whole commands", wanted=2, got=why_seconds / query_seconds, unit="×"
        )
        try:
            import duckdb
        except ImportError:
            report.note("DuckDB is not installed here: pip install duckdb to see the same closure beside it.")
            return
        database = f"{folder}/packages.duckdb"
        with duckdb.connect(database) as connection:
            connection.execute("CREATE TABLE d(a VARCHAR, b VARCHAR)")
            connection.executemany("INSERT INTO d VALUES (?, ?)", pairs[:1])
            (Path(folder) / "d.csv").write_text("".join(f"{a},{b}\n" for a, b in pairs[1:]), "utf-8")
            connection.execute(f"COPY d FROM '{folder}/d.csv'")
        found, rows = timed([sys.executable, "-c", DUCKDB.format(database=database, one=one)])
        if rows != answers:
            raise SystemExit(f"DuckDB finds {rows} packages, lace {answers}")
        report.row("DuckDB, recursive CTE, whole process", len(pairs), found, found / query_seconds)
        report.at_most("lace query of one package beside DuckDB", wanted=3, got=query_seconds / found, unit="×")


RECORD_RULES = """\
Depends(A,B) :- Field(P,'Name',_,A), Field(P,'Depends',_,B).
Needs(A,B) :- Depends(A,B).
Needs(A,C) :- Depends(A,B), Needs(B,C).
"""
DUCKDB = """
import duckdb
c = duckdb.connect({database!r}, read_only=True); c.execute("SET threads=1")
print(*(r[0] for r in c.execute("WITH RECURSIVE n(b) AS (SELECT b FROM d WHERE a='{one}' UNION "
    "SELECT d.b FROM n JOIN d ON n.b=d.a) SELECT b FROM n").fetchall()), sep="\\n")
"""


def build_packages(path: str, pairs: list[tuple[str, str]]) -> None:
    """A lace with one record for each package that needs others."""
    import lace

    needs: dict[str, list[str]] = {}
    for needing, other in pairs:
        needs.setdefault(needing, []).append(other)
    with lace.open(path, create=True) as packages, packages.batch() as batch:
        for name, needed in needs.items():
            batch.put(b"", group="packages", app="index", name=name, headers=[("Depends", other) for other in needed])


def timed(words: list[str], rounds: int = 5) -> tuple[float, int]:
    """Seconds of the best round of a whole process, and the lines that it wrote."""
    best, lines = float("inf"), 0
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    for _ in range(rounds):
        started = time.perf_counter()
        done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True, env=environment)
        best = min(best, time.perf_counter() - started)
        lines = done.stdout.count("\n")
    return best, lines


SECTIONS = {"goals": goals, "explain": explain, "shapes": shapes, "output": output, "command": command}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes; the figures go to bench/results/quick")
    parser.add_argument("--only", choices=SECTIONS, help="one section; its figures are shown, not kept")
    only = parser.parse_args().only
    columns = ["what", "facts or rows", "seconds", "ratio or rows/s"]
    report = Report.start("goals", "Goals, explanations and large answers", columns=columns)
    for name, section in SECTIONS.items():
        if only in (None, name):
            section(report)
    report.note(
        "The packages are made of a seed in the shape of a distribution's index: see bench/rulebench/packages.py."
    )
    report.note(
        "hmmer's pointers and the traces of a replicated list, as published, are not in the project: programs and "
        "facts here have their shape and are made of a seed (bench/rulebench/asked.py); seconds do not compare."
    )
    report.end(is_whole=only is None)


if __name__ == "__main__":
    main()
