"""How fast the embedded Datalog engine is, beside clingo and nemo in the same run, and how its time grows.

python bench/datalog.py [--quick]
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

from report import Report
from rulebench.programs import QUESTIONS, Question

ROOT = Path(__file__).resolve().parent.parent
PEERS = ("clingo", "nemo")
TIMEOUT_SECONDS = 120
MIB = 1024.0 * 1024.0
Figures = dict[str, float]


def measure(engine: str, question: Question, size: int, timeout: int = TIMEOUT_SECONDS) -> Figures | None:
    """One run in a process of its own; None if it did not end in time or died."""
    command = [sys.executable, "-m", "rulebench.engines", engine, question.name, str(size)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False, cwd=ROOT / "bench")
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        print(done.stderr[-2000:], file=sys.stderr)
        return None
    figures: Figures = json.loads(done.stdout)
    return figures


def table_row(report: Report, question: Question, size: int, engine: str, figures: Figures | None) -> None:
    if figures is None:
        report.row(question.name, size, engine, "", f"> {TIMEOUT_SECONDS}", "", "", "")
        return
    cells = (figures["load"], figures["seconds"], figures["total"], figures["peak"] / MIB)
    report.row(question.name, size, engine, int(figures["count"]), *cells)


def compare(report: Report, question: Question, size: int, limit: int) -> tuple[Figures, dict[str, Figures | None]]:
    """Lace and its peers on the same facts."""
    columns = question.kind == "records" and size >= 1_000_000
    own = measure("columns" if columns else "lace", question, size)
    if own is None:
        raise SystemExit(f"{question.name} at {size} did not end")
    table_row(report, question, size, "lace" + (" (columns)" if columns else ""), own)
    others: dict[str, Figures | None] = {}
    for peer in PEERS:
        others[peer] = found = measure(peer, question, size, limit)
        table_row(report, question, size, peer, found)
        if found is not None and found["count"] != own["count"]:
            raise SystemExit(f"{peer} answers {found['count']} to {question.name}, lace {own['count']}")
    return own, others


def claim_speed(report: Report, question: Question, size: int, own: Figures, others: dict[str, Figures | None]) -> None:
    """What was promised about one program at one size."""
    for peer, found in others.items():
        whole = (found["total"] if found else float(TIMEOUT_SECONDS)) / own["total"]
        report.at_least(f"{question.name}, {size:,}: load and evaluation against {peer}", wanted=1, got=whole, unit="×")
        least = 20 if question.kind == "records" else 3
        if question.kind == "graph" or size == 100_000:
            ratio = (found["seconds"] if found else float(TIMEOUT_SECONDS)) / own["seconds"]
            text = f"{question.name}, {size:,}: evaluation against {peer}"
            report.at_least(text, wanted=least, got=ratio, unit="×")


def incremental(report: Report, size: int) -> None:
    """One record more or less in a large store."""
    for question in QUESTIONS[:4]:
        found = measure("changes", question, size)
        if found is None:
            raise SystemExit(f"changes of {question.name} did not end")
        added, removed = found["added"] * 1e3, found["removed"] * 1e3
        report.at_most(f"{question.name}, {size:,}: one record more, median", wanted=1, got=added, unit=" ms")
        report.at_most(f"{question.name}, {size:,}: one record less, median", wanted=5, got=removed, unit=" ms")
        ratio = found["full"] / found["added"]
        report.note(f"{question.name}, {size:,}: following one record is {ratio:,.0f} times as fast as starting anew.")


def memory(report: Report, runs: dict[tuple[str, int], tuple[Figures, dict[str, Figures | None]]]) -> None:
    large = [own["peak"] for (_, size), (own, _) in runs.items() if size == 1_000_000]
    if large:
        report.at_most("peak memory at 1,000,000 records", wanted=1500, got=max(large) / 1e6, unit=" MB")
    pairs = [(own["peak"], o["clingo"]["peak"]) for (_, s), (own, o) in runs.items() if s == 100_000 and o["clingo"]]
    if pairs:
        worst = max(own / clingo for own, clingo in pairs)
        report.at_most("peak memory at 100,000 records, of clingo's", wanted=1, got=worst, unit="×")


def growth(report: Report) -> None:
    """Time at four sizes of each program, and the exponent of a power that fits it."""
    curves: dict[str, list[tuple[float, float]]] = {}
    for question in QUESTIONS:
        points: list[tuple[float, float]] = []
        for size in question.growth:
            own = measure("lace", question, size)
            if own is not None:
                facts = sum(1 for _ in question.facts(size))
                points.append((float(facts + own["count"]), own["total"]))
        curves[question.name] = points
        slope = exponent(points)
        report.note(f"{question.name}: time grows with the number of facts to the power {slope:.2f}.")
    draw(report, curves)


def exponent(points: list[tuple[float, float]]) -> float:
    """The slope of the line through the logarithms."""
    xs, ys = [math.log(x) for x, _ in points], [math.log(y) for _, y in points]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    spread = sum((x - mean_x) ** 2 for x in xs)
    return sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)) / spread


def draw(report: Report, curves: dict[str, list[tuple[float, float]]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 5))
    for name, points in curves.items():
        axes.loglog([x for x, _ in points], [y for _, y in points], marker="o", label=name)
    axes.set_xlabel("facts, given and derived")
    axes.set_ylabel("seconds, load and evaluation")
    axes.grid(True, which="both", alpha=0.3)
    axes.legend(fontsize=8)
    target = ROOT / "docs" / "benchmarks" / "datalog.svg"
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, bbox_inches="tight")
    report.plot(target.relative_to(ROOT))


def main() -> None:
    columns = ["program", "size", "engine", "answers", "load s", "evaluation s", "both s", "peak MiB"]
    report = Report.start("datalog", "Datalog: the embedded engine beside clingo and nemo", columns=columns)
    runs: dict[tuple[str, int], tuple[Figures, dict[str, Figures | None]]] = {}
    for question in QUESTIONS:
        for size in (question.quick,) if report.quick else question.sizes:
            runs[question.name, size] = compare(report, question, size, 60 if report.quick else TIMEOUT_SECONDS)
            if not report.quick:
                claim_speed(report, question, size, *runs[question.name, size])
    incremental(report, 5_000 if report.quick else 1_000_000)
    memory(report, runs)
    if not report.quick:
        growth(report)
    report.note("Sizes: records (8 facts each), side of the grid, nodes, length of 10 chains, depth of the tree.")
    report.note("Lace gets Python objects, at 1,000,000 records the columns of a store; clingo text; nemo CSV files.")
    report.note("clingo has no text builtins: it is told as facts, unmeasured, which names begin with links/.")
    report.finish()


if __name__ == "__main__":
    main()
