"""How fast the embedded Datalog engine is, beside clingo and nemo in the same run, over a store, and how it grows.

python bench/datalog.py [--quick] [--only SECTION] [--long] [--store FILE]
                                                SECTION: peers, changes, deletions, packages, store, growth

A run of one section only is shown, not kept. A figure that is missed ends the run with an error, after all others were
taken. With --long peers get two minutes for a question and are asked over 1,000,000 records too, which none of them has
ever answered in that time. --store keeps the store of 1,000,000 records in a file, and finds it there the next time.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

from report import Report
from rulebench.deletions import DELETIONS, Deletion
from rulebench.growth import draw, exponent
from rulebench.programs import QUESTIONS, Question

ROOT = Path(__file__).resolve().parent.parent
PEERS = ("clingo", "nemo")
TIMEOUT_SECONDS = 30  # for a peer
LONG_SECONDS = 120  # with --long
MAKING_SECONDS = 300  # for the facts of a question, before time counts
MIB = 1024.0 * 1024.0
Figures = dict[str, float]
Runs = dict[tuple[str, int], tuple[Figures, dict[str, Figures]]]
STORE_QUESTIONS = ("one group, one prefix", "group/app/name selector", "evidence closure", "newest 100")
LARGE = 1_000_000
SELECTIVE, *CHANGED = STORE_QUESTIONS
BOUND = ("group/app/name selector", "evidence closure")


@cache
def measure(engine: str, question: Question, size: int, timeout: int = LONG_SECONDS) -> Figures:
    """One run in a process of its own. If it did not end in time there is no `total` among its figures."""
    command = [sys.executable, "-m", "rulebench.engines", engine, question.name, str(size)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT / "bench")
    assert process.stdout is not None
    figures: Figures = {}
    timer = threading.Timer(MAKING_SECONDS, process.kill)
    timer.start()
    for line in process.stdout:
        found = json.loads(line)
        figures.update(found)
        if "ready" in found:
            timer.cancel()
            timer = threading.Timer(timeout, process.kill)
            timer.start()
    in_time = timer.is_alive()
    timer.cancel()
    if process.wait() and in_time:
        raise SystemExit(f"{engine} failed on {question.name} at {size}")
    return figures


def table_row(report: Report, question: Question, size: int, engine: str, figures: Figures, timeout: int) -> None:
    if "total" not in figures:
        report.row(question.name, size, engine, "", figures.get("load", ""), "", f"> {timeout}", "")
        return
    cells = (figures["load"], figures["seconds"], figures["total"], figures["peak"] / MIB)
    report.row(question.name, size, engine, int(figures["count"]), *cells)


def compare(report: Report, question: Question, size: int, peers: list[str]) -> tuple[Figures, dict[str, Figures]]:
    """Lace and its peers on the same facts."""
    limit = peer_seconds()
    columns = question.kind == "records" and size >= LARGE
    own = measure("columns" if columns else "lace", question, size)
    if "total" not in own:
        raise SystemExit(f"{question.name} at {size} did not end")
    table_row(report, question, size, "lace" + (" (columns)" if columns else ""), own, limit)
    others: dict[str, Figures] = {}
    for peer in peers:
        others[peer] = found = measure(peer, question, size, limit)
        table_row(report, question, size, peer, found, limit)
        if "total" in found and found["count"] != own["count"]:
            raise SystemExit(f"{peer} answers {found['count']} to {question.name}, lace {own['count']}")
    return own, others


def claim_speed(report: Report, question: Question, size: int, own: Figures, others: dict[str, Figures]) -> None:
    """What was promised about one program at one size; a peer that did not end took at least the time it had."""
    least = 20 if question.kind == "records" else 3
    for peer, found in others.items():
        whole = found.get("total", float(peer_seconds())) / own["total"]
        report.at_least(f"{question.name}, {size:,}: load and evaluation against {peer}", wanted=1, got=whole, unit="×")
        if "load" in found and (question.kind == "graph" or size == 100_000):
            seconds = found.get("seconds", peer_seconds() - found["load"])
            text = f"{question.name}, {size:,}: evaluation against {peer}"
            report.at_least(text, wanted=least, got=seconds / own["seconds"], unit="×")


def beside_peers(report: Report) -> None:
    """Every program at two sizes. A peer that does not end at one size is not asked for a larger one."""
    runs: Runs = {}
    for question in QUESTIONS:
        peers = list(PEERS)
        for size in (question.quick,) if report.quick else question.sizes:
            if size >= LARGE and not is_long():
                peers = []
            runs[question.name, size] = own, others = compare(report, question, size, peers)
            peers = [peer for peer in peers if "total" in others[peer]]
            if not report.quick:
                claim_speed(report, question, size, own, others)
    memory(report, runs)
    report.note("Sizes: records (8 facts each), side of the grid, nodes, length of 10 chains, depth of the tree.")
    report.note(
        "Lace gets Python objects, at 1,000,000 records columns as a store has them; clingo text; nemo CSV files."
    )
    if not is_long():
        report.note(f"Peers get {TIMEOUT_SECONDS} s, and are not asked over {LARGE:,} records: see --long.")
    report.note("clingo has no text builtins: it is told as facts, unmeasured, which names begin with links/.")
    report.note(
        "Load is reading the facts; evaluation is reading the rules and deriving, with indexes and the choice of join "
        "orders. nemo reads facts while it reasons: its load is a run that only reads them, its evaluation the rest."
    )


def is_long() -> bool:
    return "--long" in sys.argv


def peer_seconds() -> int:
    return LONG_SECONDS if is_long() else TIMEOUT_SECONDS


def memory(report: Report, runs: Runs) -> None:
    large = [own["peak"] for (_, size), (own, _) in runs.items() if size == LARGE]
    if large:
        report.at_most("peak memory at 1,000,000 records", wanted=1500, got=max(large) / 1e6, unit=" MB")
    pairs = [
        (own["peak"], o["clingo"]["peak"])
        for (_, s), (own, o) in runs.items()
        if s == 100_000 and "peak" in o["clingo"]
    ]
    if pairs:
        worst = max(own / clingo for own, clingo in pairs)
        report.at_most("peak memory at 100,000 records, of clingo's", wanted=1, got=worst, unit="×")


def changes(report: Report) -> None:
    """One record more or less among many, as columns."""
    size = 5_000 if report.quick else LARGE
    for question in QUESTIONS[:4]:
        found = measure("columns", question, size)
        if "full" not in found:
            raise SystemExit(f"changes of {question.name} did not end")
        claim_changes(report, f"{question.name}, {size:,}", found)


def claim_changes(report: Report, what: str, found: Figures) -> None:
    report.at_most(f"{what}: one record more, median", wanted=1, got=found["added"] * 1e3, unit=" ms")
    report.at_most(f"{what}: one record less, median", wanted=5, got=found["removed"] * 1e3, unit=" ms")
    report.note(
        f"{what}: following one record is {found['full'] / found['added']:,.0f} times as fast as starting anew."
    )


def deletions(report: Report) -> None:
    """One fact less, where whatever rests on it may rest on something else too; and how that grows."""
    for deletion in DELETIONS:
        size = deletion.quick if report.quick else deletion.size
        found = module_step("rulebench.deletions", deletion.name, str(size))
        report.row(f"{deletion.name}: anew", size, "lace", int(found["facts"]), "", found["full"], "", "")
        if not report.quick:  # some milliseconds in all: setting up is what a quick run would measure
            claim_deletion(report, f"{deletion.name}, {size:,}: one less, of evaluating anew", deletion, found)
    report.note(
        "Points-to and the replicated list have the shape of published programs (hmmer, list CRDTs) whose data is not "
        "in the project: their facts are made of a seed, so seconds do not compare with published ones."
    )
    report.note("One less: 25 facts or records go and come back one by one, picked by a seed; answers are all facts.")
    curves: dict[str, list[tuple[float, float]]] = {}
    for deletion in DELETIONS:
        steps = [module_step("rulebench.deletions", deletion.name, str(size)) for size in growth_of(report, deletion)]
        if steps:
            curves[f"{deletion.name}: anew"] = [(found["facts"], found["full"]) for found in steps]
            less = [(found["facts"], found["full"] * found["median"]) for found in steps]
            curves[f"{deletion.name}: one less, median"] = less
    picture(report, "deletions", curves, "seconds of the processor")


def claim_deletion(report: Report, what: str, deletion: Deletion, found: Figures) -> None:
    report.at_most(f"{what}, median", wanted=deletion.usual, got=found["median"], unit="×")
    report.at_most(f"{what}, worst", wanted=2, got=found["worst"], unit="×")
    report.at_most(f"{what}, worst, in rows touched", wanted=2, got=found["worst rows"], unit="×")


def growth_of(report: Report, deletion: Deletion) -> tuple[int, ...]:
    return deletion.growth[:2] if report.quick else deletion.growth


def packages(report: Report) -> None:
    """The closure of a distribution's dependencies, by DuckDB's recursive query on one thread."""
    size = 4_000 if report.quick else 63_436
    runs = {way: module_step("rulebench.duck", way, str(size)) for way in ("lace", "duckdb")}
    for way, found in runs.items():
        name = "duckdb, 1 thread" if way == "duckdb" else way
        report.row(
            "closure of packages", size, name, int(found["count"]), "", "", found["seconds"], found["peak"] / MIB
        )
    cores = module_step("rulebench.duck", "cores", str(size))
    for name in ("one", "two"):
        report.row("closure of packages, derived", size, f"lace, {name} core(s)", "", "", cores[name], "", "")
    own, other = runs["lace"], runs["duckdb"]
    if own["count"] != other["count"]:
        raise SystemExit(f"duckdb answers {other['count']} to the closure of packages, lace {own['count']}")
    if report.quick:
        return
    what = f"closure of {size:,} packages"
    report.at_least(f"{what}, against duckdb", wanted=1.2, got=other["seconds"] / own["seconds"], unit="×")
    report.at_most(f"{what}, memory of duckdb's", wanted=1, got=own["peak"] / other["peak"], unit="×")
    report.at_most(f"{what}, two cores, of one", wanted=0.9, got=cores["two"] / cores["one"], unit="×")
    report.note("Cores: seconds by the clock; a machine whose second core is busy shows nothing.")
    report.note("Packages: seconds of the processor with reading, memory beyond what the pairs of names took.")


def over_a_store(report: Report, kept: str | None = None) -> None:
    """The same questions to a real store, by the command and by an open lace; `kept` is a file that keeps it."""
    size = 20_000 if report.quick else LARGE
    with tempfile.TemporaryDirectory(prefix="lace-bench-") as folder:
        path = kept if kept and not report.quick else str(Path(folder) / "records.lace")
        if not Path(path).exists():
            store_step("build", path, str(size))
        report.note(f"The store: {size:,} Plexes, {Path(path).stat().st_size / 1e6:,.0f} MB.")
        cold = store_step("cold", path, SELECTIVE)
        report.row(
            f"{SELECTIVE}: lace query",
            size,
            "store, cold",
            int(cold["count"]),
            "",
            "",
            cold["seconds"],
            cold["peak"] / MIB,
        )
        report.at_most(f"{SELECTIVE}, {size:,} in a store: lace query, cold", wanted=1, got=cold["seconds"], unit=" s")
        again = store_step("cold", path, SELECTIVE, "kept")
        report.row(
            f"{SELECTIVE}: lace query",
            size,
            "store, file cached",
            int(again["count"]),
            "",
            "",
            again["seconds"],
            again["peak"] / MIB,
        )
        report.note(pages_note(cold["read"]))
        peaks = [cold["peak"]]
        for name in BOUND:
            found = store_step("bound", path, name)
            shared = (int(found["count"]), "", found["processor"], found["seconds"], found["peak"] / MIB)
            report.row(f"{name}, one record: lace query", size, "store, new process", *shared)
            what = f"{name}, {size:,} in a store: lace query of one record"
            report.at_most(what, wanted=0.3, got=found["seconds"], unit=" s")
        report.note(
            "One record: goals such as Selected('P…'), whole commands, best of 7; evaluation is processor time."
        )
        for name in STORE_QUESTIONS:
            found = store_step("warm", path, name)
            known = (int(found["count"]), "", "")
            report.row(f"{name}: first", size, "store, open", *known, found["first"], found["peak"] / MIB)
            report.row(f"{name}: again", size, "store, open", *known, found["again"], "")
            report.at_most(f"{name}, {size:,} in a store: again", wanted=100, got=found["again"] * 1e3, unit=" ms")
            peaks.append(found["peak"])
        for name in CHANGED:
            found = store_step("changes", path, name)
            claim_changes(report, f"{name}, {size:,} in a store", found)
            peaks.append(found["peak"])
        report.at_most(f"peak memory over a store of {size:,}", wanted=1500, got=max(peaks) / 1e6, unit=" MB")


def store_step(*arguments: str) -> Figures:
    """One step of `rulebench.stores`."""
    return module_step("rulebench.stores", *arguments)


@cache
def module_step(module: str, *arguments: str) -> Figures:
    """What a module prints as JSON, run in a process of its own."""
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT / "bench", timeout=1200)
    figures: Figures = json.loads(done.stdout)
    return figures


def pages_note(read: float) -> str:
    if not read:
        return "Cold: a new process; the system's page cache of the store's file could not be dropped."
    return (
        f"Cold: a new process, the store's file dropped from the page cache ({read / 1e6:,.0f} MB read from the disk)."
    )


def growth(report: Report) -> None:
    """Time at four sizes of each program, and the exponent of a power that fits it."""
    curves: dict[str, list[tuple[float, float]]] = {}
    for question in QUESTIONS:
        points: list[tuple[float, float]] = []
        small = 20 if report.quick and question.kind == "records" else 1
        for size in question.growth:
            own = measure("lace", question, size // small)
            facts = sum(1 for _ in question.facts(size // small))
            points.append((facts + own["count"], own["total"]))
        curves[question.name] = points
        slope = exponent(points)
        report.note(f"{question.name}: time grows with the number of facts to the power {slope:.2f}.")
    picture(report, "datalog", curves, "seconds, load and evaluation")


def picture(report: Report, name: str, curves: dict[str, list[tuple[float, float]]], unit: str) -> None:
    target = ROOT / ("bench/results/quick" if report.quick else "docs/benchmarks") / f"{name}.svg"
    draw(target, curves, unit)
    report.plot(target.relative_to(ROOT))


SECTIONS: dict[str, Callable[[Report], None]] = {
    "peers": beside_peers,
    "changes": changes,
    "deletions": deletions,
    "packages": packages,
    "store": over_a_store,
    "growth": growth,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes; the figures go to bench/results/quick")
    parser.add_argument("--only", choices=SECTIONS, help="one section; its figures are shown, not kept")
    parser.add_argument("--long", action="store_true", help="more time for peers, and questions over 1,000,000 records")
    parser.add_argument("--store", metavar="FILE", help="where to keep the store of 1,000,000 records, or to find it")
    arguments = parser.parse_args()
    only = arguments.only
    columns = ["program", "size", "engine", "answers", "load s", "evaluation s", "both s", "peak MiB"]
    SECTIONS["store"] = partial(over_a_store, kept=arguments.store)
    report = Report.start("datalog", "Datalog: the embedded engine beside clingo and nemo", columns=columns)
    for name, section in SECTIONS.items():
        if only in (None, name):
            section(report)
    report.end(is_whole=only is None)


if __name__ == "__main__":
    main()
