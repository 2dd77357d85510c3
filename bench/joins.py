"""Rules that go round in a circle: triangles, circles and cliques over graphs with very popular nodes.

Rule: all engines answer the same question over the same edges in one run, each in a process of its own with the same
time of the processor, so that what else runs here takes none of it; one that does not end took at least that long.

    python bench/joins.py [--quick] [--edits]

With `--edits`: what one edge more or less takes where the same answers are followed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from random import Random
from time import process_time

import psutil
from report import Report
from rulebench.circles import QUESTIONS, Figures

from lace import datalog

BENCH = Path(__file__).resolve().parent
TIMEOUT_SECONDS = 20  # so that a whole run takes three minutes
ENGINES = ("lace", "lace-binary", "duckdb", "clingo", "nemo")
MIB = 1 << 20
CODE_BYTES = 4  # of a value of a row


def measure(engine: str, question: str, size: int) -> Figures:
    """What one engine took, or nothing if it did not end."""
    command = [sys.executable, "-m", "rulebench.circles", engine, question, str(size)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=BENCH) as running:
        said = complained = ""
        while running.returncode is None:
            try:
                said, complained = running.communicate(timeout=0.5)
            except subprocess.TimeoutExpired:
                used = psutil.Process(running.pid).cpu_times()
                if used.user + used.system > TIMEOUT_SECONDS:
                    running.kill()
                    running.communicate()
                    return {}
    if running.returncode:
        if engine == "lace-binary" and "max_working_rows" in complained:
            return {}
        raise SystemExit(f"{engine} failed on {question}:\n{complained[-2000:]}")
    figures: Figures = json.loads(said.splitlines()[-1])
    return figures


def compare(report: Report, name: str) -> None:
    question = QUESTIONS[name]
    size = question.quick if report.quick else question.size
    found = {engine: measure(engine, name, size) for engine in ENGINES}
    own = found["lace"]
    for engine, figures in found.items():
        if not figures:
            report.row(name, size, engine, "", "", f"> {TIMEOUT_SECONDS}" if engine != "lace-binary" else "limit", "")
            continue
        if figures["count"] != own["count"]:
            raise SystemExit(f"{engine} answers {figures['count']} to {name}, lace {own['count']}")
        report.row(
            name, size, engine, int(figures["count"]), figures["load"], figures["seconds"], figures["peak"] / MIB
        )
    if report.quick:
        return
    peers = ("duckdb", "clingo") if "hub" in name else ("duckdb", "clingo", "nemo")  # nemo's are milliseconds too
    for peer in peers:
        times = found[peer].get("seconds", TIMEOUT_SECONDS) / own["seconds"]
        wanted = 20 if peer == "duckdb" and name == "triangle at a hub" else 1
        report.at_least(f"{name}, {size:,} edges: against {peer}", wanted=wanted, got=times, unit="×")
    if name == "triangle at a hub":
        report.at_most(f"{name}, {size:,} edges: evaluation", wanted=50, got=own["seconds"] * 1e3, unit=" ms")
    binary = found["lace-binary"]
    if binary:
        times = own["seconds"] / binary["seconds"]
        report.at_most(f"{name}, {size:,} edges: time of joining two atoms at a time", wanted=2, got=times, unit="×")
    if "hub" not in name:  # there input and answers together are smaller than the modules that an evaluation imports
        held = CODE_BYTES * (2 * size + len(question.names) * own["count"])
        got = own["grown"] / held
        report.at_most(f"{name}, {size:,} edges: memory of input and answers", wanted=4, got=got, unit="×")


def points(report: Report) -> None:
    """Goals of one form over a prepared database, by `lace.datalog`: the first one, the second one, the others."""
    edges = 20_000 if report.quick else 1_000_000
    draw = Random(3)
    rows = [(f"n{draw.randrange(edges // 3)}", f"n{draw.randrange(edges // 3)}") for _ in range(edges)]
    began = process_time()
    db = datalog.Database({"Edge": rows})
    encoded = process_time() - began
    program = datalog.compile("Two(X,Z) :- Edge(X,Y), Edge(Y,Z).")
    taken: list[float] = []
    answers = 0
    for number in range(200):
        began = process_time()
        answers += len(program.run(db, f"Two('{rows[number][0]}',Z)").rows())
        taken.append(process_time() - began)
    for what, seconds in (("first", taken[0]), ("second", taken[1]), ("later", sorted(taken[2:])[len(taken) // 2])):
        report.row(f"point goals: {what}", edges, "lace", answers, encoded, seconds, "")
    if not report.quick:
        got = sorted(taken[2:])[len(taken) // 2] * 1e3
        report.at_most(f"a point goal over {edges:,} prepared facts, median", wanted=1, got=got, unit=" ms")


def edits() -> None:
    """One edge more or less, for every question."""
    columns = ["question", "edges", "evaluation s", "edits", "median ms", "most ms"]
    report = Report.start("edits", "One edge more or less in rules that go round in a circle", columns=columns)
    for name, question in QUESTIONS.items():
        size = question.quick if report.quick else question.size
        found = measure("lace-edits", name, size)
        middle = found["middle"] * 1e3
        report.row(name, size, found["seconds"], int(found["edits"]), middle, found["most"] * 1e3)
        report.at_most(f"{name}, {size:,} edges: one edge less or more, median", wanted=1, got=middle, unit=" ms")
    report.note("Of the processor. Edges are spread over the whole graph; each is taken away and put back.")
    report.end(is_whole=True)


def main() -> None:
    if "--edits" in sys.argv[1:]:
        edits()
        return
    columns = ["question", "edges", "engine", "answers", "load s", "evaluation s", "peak MiB"]
    report = Report.start("joins", "Rules that go round in a circle", columns=columns)
    for name in QUESTIONS:
        compare(report, name)
    points(report)
    report.note("lace-binary: the same engine, joining two atoms at a time (`meeting_growth` without end).")
    report.note("Memory: what the process grew by during an evaluation, answers included, against four bytes a value.")
    report.note("DuckDB counts answers over integers on one thread; clingo reads text, nemo CSV files.")
    report.end(is_whole=True)


if __name__ == "__main__":
    main()
