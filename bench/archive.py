"""Archives on Spark: what a batch costs beside the first run, nothing new, many peers, and files that a lookup opens.

python bench/archive.py [--quick]
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from report import Report

SOURCE = Path(__file__).resolve().parent.parent / "src"
sys.path.insert(0, str(SOURCE))

from lace.policy.compile import agree
from lace.policy.exposure import expose_all
from lace.policy.lower import lower
from lace.policy.operand import Module
from lace.policy.origin import Viewer
from lace.policy.select import select_all, select_coordinate
from lace.records.validate import reread
from lace.records.write import encode_record
from lace.spark.archive.archive import Archive, Question
from lace.spark.archive.run import run
from lace.spark.jobs.evaluate import PeerPolicy
from lace.spark.session import spark_session
from spark import HEAP, small_plex, write_bundles, write_piece

PEER_RULES = "SelectHave(P) :- Have(P), Field(P,'App',_,'ding').\nSelectAdvertised(P,S) :- Advertised(P,S).\n"


def authored(name: str, rules: str) -> PeerPolicy:
    return lowered(name, Module.author(rules))


def lowered(name: str, module: Module) -> PeerPolicy:
    plan = agree(select_all(), module)
    viewer = Viewer(plan.operands[1].origin)
    return PeerPolicy(name=name, policy=lower(plan, local_index=0, viewer=viewer, exposures=[expose_all()]))


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def bench_batches(report: Report, archive: Archive, folder: Path, size: int) -> None:
    """The first run, one percent more, five records more."""
    ann = [lowered("ann", select_coordinate("//u//ding//"))]
    bundles = write_bundles(folder / "in", size, sealed=False)
    archive.init()
    first_add = timed(lambda: archive.add([bundles]))
    first_run = timed(lambda: run(archive, ann))
    first = first_add + first_run
    report.row("first add", f"{size:,} records", f"{first_add:.1f} s", f"{first_add / size * 1e6:.1f} µs a record")
    report.row("first run", f"{size:,} records", f"{first_run:.1f} s", f"{first_run / size * 1e6:.1f} µs a record")
    for label, start, count in (("1 % new", size, size // 100), ("5 new", size * 2, 5)):
        write_piece((str(folder / "in" / f"{start}.bundle"), start, count, False))
        add = timed(lambda: archive.add([bundles]))
        steps = timed(lambda: run(archive, ann))
        report.row(f"{label}: add", f"{count:,} of {size:,}", f"{add:.1f} s", f"{add / first_add:.3f} of the first")
        report.row(f"{label}: run", f"{count:,} of {size:,}", f"{steps:.1f} s", f"{steps / first_run:.3f} of the first")
        if count > 5:
            report.at_most("1 % new records cost a tenth of the first run", wanted=0.1, got=(add + steps) / first)
        else:
            report.at_most("5 new records, without the JVM's start", wanted=15.0, got=add + steps, unit=" s")


def bench_nothing_new(report: Report, archive: Archive, folder: Path) -> None:
    """`lace archive add` and `run` as commands of their own; neither may start Spark."""
    (folder / "ann.rules").write_text(PEER_RULES)
    run_command = ["run", archive.uri, "--peer", f"ann={folder / 'ann.rules'}", "--expose", "all"]
    for arguments in (["status", archive.uri], ["add", archive.uri, str(folder / "in")], run_command, run_command):
        command = [sys.executable, "-m", "lace.cli", "archive", *arguments]
        began = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, cwd=SOURCE, check=True)
        took = time.perf_counter() - began
        if "starting" not in done.stderr:  # the first run with these rules has work to do
            report.row(f"nothing new: {arguments[0]}", "a command of its own", f"{took:.2f} s", "no Spark")
            report.at_most(f"{arguments[0]} with nothing new", wanted=2.0, got=took, unit=" s")


def bench_peers(report: Report, archive: Archive) -> None:
    """Fifty peers with five rule sets beside five with five others of the same kind; listings left out."""

    def peers(count: int, first: int) -> list[PeerPolicy]:
        rules = [PEER_RULES.replace("'ding')", f"'ding'), Field(P,'Name',_,N), N != '{first + n}'") for n in range(5)]
        return [authored(f"peer{first + n}", rules[n % 5]) for n in range(count)]

    run(archive, peers(5, 1000), listings=False)  # whoever comes first pays for what the JVM compiles
    alone = timed(lambda: run(archive, peers(5, 2000), listings=False))
    many = timed(lambda: run(archive, peers(50, 3000), listings=False))
    report.row("50 peers with 5 rule sets", "evaluation", f"{many:.1f} s", f"{many / alone:.2f} of 5 with as many")
    report.at_most("50 peers with 5 rule sets beside 5", wanted=1.5, got=many / alone)


def bench_lookups(report: Report, archive: Archive, size: int) -> None:
    """After compaction into files of a twentieth."""
    state = archive.compact(small_bytes=1 << 40, file_rows=max(100, size // 20))
    one = reread(encode_record(small_plex(size // 3)))
    questions = {
        "hash": Question(hashes=(str(one.hash),)),
        "coordinate": Question(group="u", app="ding", name=f"links/{size // 3 // 3 * 3}"),
        "one day": Question(since="2022-01-03 00:00:00", until="2022-01-04 00:00:00"),
    }
    for name, question in questions.items():
        frame, files = archive.lookup(question, state)
        table = "records" if question.hashes else "coordinates"
        took = timed(frame.count)
        report.row(f"lookup by {name}", f"{len(state.table(table))} files", f"{took:.2f} s", f"{len(files)} opened")
    report.note("a coordinate is looked for in every month: its time is not asked for")


def main() -> None:
    report = Report.start("archive", "Archives on Spark (local[2])", columns=["what", "of", "result", "beside it"])
    size = 8_000 if report.quick else 1_000_000
    spark = spark_session("local[2]", config={"spark.sql.shuffle.partitions": "4", "spark.driver.memory": HEAP})
    with tempfile.TemporaryDirectory(prefix="lace-bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        archive = Archive(str(folder / "root"), lambda: spark)
        bench_batches(report, archive, folder, size)
        bench_nothing_new(report, archive, folder)
        bench_peers(report, archive)
        bench_lookups(report, archive, size)
        spark.stop()
    report.finish()


if __name__ == "__main__":
    main()
