"""Archives on Spark: what is new against what is there, nothing new, many peers, hand-written queries, rounds, growth.

python bench/archive.py [--quick] [--only SECTION …] [--records N] [--scale [SMALL LARGE]]

Sections: batches, nothing, five, peers, lookups, programs, rounds, closure, cold; `--scale` adds growth (2,000,000 and
10,000,000 records unless two numbers follow: a quarter of an hour and 30 GB of disk); `--only --scale` is growth alone.
With `--only` and `--records` nothing is kept.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from report import Report

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent / "src"
sys.path.insert(0, str(SOURCE))

from lace.policy.compile import agree
from lace.policy.exposure import expose_all
from lace.policy.lower import lower
from lace.policy.operand import Module
from lace.policy.origin import Viewer
from lace.policy.select import select_all, select_coordinate
from lace.records.validate import reread
from lace.records.write import encode_record
from lace.spark.archive.archive import Archive, ArchiveLookup, Progress
from lace.spark.archive.publish import publish
from lace.spark.archive.run import run
from lace.spark.archive.versions import State
from lace.spark.jobs.evaluate import PeerPolicy
from lace.spark.session.session import spark_session
from lace.thresholds import ArchiveThresholds
from spark import HEAP, MIB, Bench, Memory, bench_programs, shuffle_bytes, small_plex, write_bundles, write_piece

BEFORE = "d8149f3"  # the last commit before archives: `lace pipeline` and the executor's rounds are measured against it
BEFORE_SECONDS = 28.0  # of all its steps over 100,000 records, in its own table
CLAIMS = "SelectAdvertised(P,S) :- Advertised(P,S).\n"
PEER_RULES = "SelectHave(P) :- Have(P), Field(P,'App',_,'ding').\n" + CLAIMS
# A join and a negation: what nobody of the same name has superseded, among names that are wanted.
JOIN_RULES = (
    "SelectHave(P) :- Have(P), Field(P,'App',_,'ding'), Field(P,'Name',_,N), not Noted(N).\n"
    "Noted(N) :- Field(Q,'App',_,'notes'), Field(Q,'Name',_,N), Field(R,'Name',_,N), Field(R,'App',_,'photos').\n"
    + CLAIMS
)


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


def environment(source: Path = SOURCE) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join((str(source), str(HERE))), "MASTER": "local[2]"}


# What is new against what is there


def work_done(spark: Any) -> tuple[int, int, int]:
    """Jobs, stages and tasks so far: what a loaded machine cannot change."""
    context = spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    listed = context.statusStore().jobsList(None)
    jobs = [listed.apply(place) for place in range(listed.size())]
    stages = sum(job.stageIds().size() - job.numSkippedStages() for job in jobs)
    return len(jobs), stages, sum(job.numTasks() - job.numSkippedTasks() for job in jobs)


def step_seconds(archive: Archive, peers: list[PeerPolicy], bundles: Path, target: Path) -> dict[str, float]:
    """Every step over what is new, by name."""
    steps = {"add": timed(lambda: archive.add([bundles]))}
    state = run(archive, peers)
    names = {f"selected:{result.mark}": "select" for result in state.results.values()}
    for key, result in state.results.items():
        if key in (newest := archive.log.commits([state.version])[0].results):
            label = key.replace("advertise:", "list for ")
            if key in names:
                who = next(iter(result.counts)).removeprefix("selected ")
                label = f"select for {who}"
            steps[label] = newest[key].seconds
    steps["publish"] = timed(lambda: publish(archive, peers, target))
    return steps


def bench_batches(report: Report, archive: Archive, folder: Path, size: int) -> None:
    """The first run, one percent more, five records more; a peer whose rules add up, and one whose rules join."""
    peers = [lowered("ann", select_coordinate("//u//ding//")), authored("joe", JOIN_RULES)]
    bundles = write_bundles(folder / "in", size, sealed=False)
    archive.init()
    first = step_seconds(archive, peers, bundles, folder / "out")
    for step, took in first.items():
        report.row(f"first: {step}", f"{size:,} records", f"{took:.1f} s", f"{took / size * 1e6:.1f} µs a record")
    for label, start, count in (("1 % new", size, size // 100), ("5 new", size * 2, 5)):
        write_piece((str(bundles / f"{start}.bundle"), start, count, False))
        before = work_done(archive.spark)
        steps = step_seconds(archive, peers, bundles, folder / "out")
        jobs, stages, tasks = (now - then for now, then in zip(work_done(archive.spark), before, strict=True))
        report.row(f"{label}: Spark", f"{count:,} of {size:,}", f"{jobs} jobs", f"{stages} stages, {tasks} tasks")
        for step, took in steps.items():
            beside = f"{took / first[step]:.3f} of the first" if first.get(step) else ""
            report.row(f"{label}: {step}", f"{count:,} of {size:,}", f"{took:.1f} s", beside)
        if count > 5:
            ratio = sum(steps.values()) / sum(first.values())
            report.at_most("1 % new records, all steps, beside the first run", wanted=0.1, got=ratio)
        else:
            report.row("5 new: all steps, warm", f"5 of {size:,}", f"{sum(steps.values()):.1f} s", "")


def lace(*arguments: str) -> tuple[float, str]:
    """A command of its own; how long it took and what it said."""
    command = [sys.executable, "-m", "lace.cli", "archive", *arguments]
    began = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, env=environment())
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
    return time.perf_counter() - began, done.stderr


def bench_nothing_new(report: Report, archive: Archive, folder: Path) -> None:
    """`lace archive add`, `run` and `publish` as commands of their own; none may start Spark."""
    (folder / "ann.rules").write_text(PEER_RULES)
    peer = ["--peer", f"ann={folder / 'ann.rules'}", "--expose", "all"]
    to = ["--to", str(folder / "out2")]
    lace("publish", archive.uri, *peer, *to)  # the first run with these rules has work to do
    for arguments in (
        ["status", archive.uri],
        ["add", archive.uri, str(folder / "in")],
        ["run", archive.uri, *peer],
        ["publish", archive.uri, *peer, *to],
    ):
        took, said = lace(*arguments)
        started = "starting" in said
        report.row(f"nothing new: {arguments[0]}", "a command of its own", f"{took:.2f} s", f"Spark started: {started}")
        report.at_most(f"{arguments[0]} with nothing new", wanted=2.0, got=float("inf") if started else took, unit=" s")


def bench_five(report: Report, archive: Archive, folder: Path, size: int) -> None:
    """Five records from a cold start: one command adds them and brings a peer up to date; a stream does it too."""
    inbox = folder / "inbox"
    inbox.mkdir(exist_ok=True)
    peer = ["--peer", f"ann={folder / 'ann.rules'}", "--expose", "all"]
    if not (folder / "ann.rules").exists():
        (folder / "ann.rules").write_text(PEER_RULES)
        lace("run", archive.uri, *peer)
    ways = {"add --peer": [], "add --peer --few-mib 0": ["--few-mib", "0"]}  # as it comes, and by Spark
    for turn, (name, more) in enumerate(ways.items()):
        write_piece((str(inbox / f"five{turn}.bundle"), size * (3 + turn), 5, False))
        took, said = lace("add", archive.uri, str(inbox), *peer, *more)
        started = "with its JVM" if "starting" in said else "no Spark started"
        report.row(f"5 new: {name}", f"5 of {size:,}, {started}", f"{took:.1f} s", _moments(said))
        report.at_most(f"5 new records, a command of its own ({name})", wanted=15.0, got=took, unit=" s")
    write_piece((str(inbox / "more.bundle"), size * 6, 5, False))
    took, said = lace("follow", archive.uri, "--inbox", str(inbox), "--once", *peer)
    report.row("5 new: follow --once", f"5 of {size:,}, JVM and all", f"{took:.1f} s", _moments(said))


def _moments(said: str) -> str:
    """When each step was told, as the command itself says it."""
    lines = [line.strip() for line in said.splitlines() if line.startswith("[")]
    return "; ".join(" ".join(line.strip("[").replace("]", "").split()[:4]) for line in lines)[:160]


# Many peers, lookups


def bench_peers(report: Report, archive: Archive) -> None:
    """Fifty peers with five rule sets beside five with five others of the same kind; listings left out."""

    def peers(count: int, first: int) -> list[PeerPolicy]:
        rules = [PEER_RULES.replace("'ding')", f"'ding'), Field(P,'Name',_,N), N != '{first + n}'") for n in range(5)]
        return [authored(f"peer{first + n}", rules[n % 5]) for n in range(count)]

    def evaluated(count: int, first: int) -> object:
        return run(archive, peers(count, first), listings=False)

    evaluated(5, 1000)  # whoever comes first pays for what the JVM compiles
    alone, many = float("inf"), float("inf")
    for turn in range(2):
        alone = min(alone, timed(partial(evaluated, 5, 2000 + 100 * turn)))
        many = min(many, timed(partial(evaluated, 50, 3000 + 100 * turn)))
    report.row("50 peers with 5 rule sets", "evaluation", f"{many:.1f} s", f"{many / alone:.2f} of 5 with as many")
    report.at_most("50 peers with 5 rule sets beside 5", wanted=1.5, got=many / alone)


def bench_lookups(report: Report, archive: Archive, size: int) -> None:
    """After compaction into files of a twentieth."""
    state = archive.compact(small_bytes=1 << 40, file_rows=max(100, size // 20))
    one = reread(encode_record(small_plex(size // 3)))
    questions = {
        "hash": ArchiveLookup(hashes=(str(one.hash),)),
        "coordinate": ArchiveLookup(group="u", app="ding", name=f"links/{size // 3 // 3 * 3}"),
        "one day": ArchiveLookup(since="2022-01-03 00:00:00", until="2022-01-04 00:00:00"),
    }
    for name, question in questions.items():
        frame, files = archive.lookup(question, state)
        table = "records" if question.hashes else "coordinates"
        took = timed(frame.count)
        report.row(f"lookup by {name}", f"{len(state.table(table))} files", f"{took:.2f} s", f"{len(files)} opened")
    report.note("a coordinate is looked for in every month: its time is not asked for")


# Against the code before archives, in processes of their own

ROUNDS = """
import json, sys
from pyspark.sql import functions as F
from lace.datalog.language.parser import parse_program
from lace.datalog.language.syntax import Predicate
from lace.datalog.language.validate import RAW_PROFILE, check_program
from lace.spark.engine.executor import evaluate
from lace.spark.session.session import spark_session
rounds, others = int(sys.argv[1]), int(sys.argv[2])
spark = spark_session("local[2]", config={"spark.sql.shuffle.partitions": "4", "spark.driver.memory": "3g"})
chain = spark.range(rounds).select(F.col("id").cast("string").alias("a"), (F.col("id") + 1).cast("string").alias("b"))
pairs = spark.range(others).selectExpr("concat('x', id) as a", "concat('y', id) as b")
given = {Predicate("Start", 1): spark.sql("select '0' as a"), Predicate("E", 2): chain.union(pairs)}
checked = check_program(parse_program("T(X) :- Start(X).\\nT(Y) :- T(X), E(X,Y)."), RAW_PROFILE)
found = evaluate(checked, given, spark=spark)
assert found.count(Predicate("T", 1)) == rounds + 1
print(json.dumps(list(found.round_seconds)))
spark.stop()
"""
COLD = """
import json, sys, time
from pathlib import Path
from lace.policy.compile import agree
from lace.policy.exposure import expose_all
from lace.policy.lower import lower
from lace.policy.origin import Viewer
from lace.policy.select import select_all, select_coordinate
from lace.spark.jobs.evaluate import PeerPolicy
from lace.spark.session.session import spark_session
bundles, half, out = map(Path, sys.argv[1:])
plan = agree(select_all(), select_coordinate("//u//ding//"))
viewer = Viewer(plan.operands[1].origin)
peer = PeerPolicy(name="ann", policy=lower(plan, local_index=0, viewer=viewer, exposures=[expose_all()]))
spark = spark_session("local[2]", config={"spark.sql.shuffle.partitions": "4", "spark.driver.memory": "3g"})
steps, last = {}, [time.perf_counter()]
def done(name):
    steps[name], last[0] = time.perf_counter() - last[0], time.perf_counter()
"""
COLD_BEFORE = """
from lace.spark.pipeline import Pipeline, PipelineSettings
settings = PipelineSettings(output=out, inputs=[bundles], peers=[peer], archives={"half": half}, split_bytes=32 << 20)
found = Pipeline(spark, settings, lambda step, what: None).run()
print(json.dumps({name: step.seconds for name, step in found.steps.items()}))
"""
COLD_NOW = """
from lace.spark.archive.archive import Archive
from lace.thresholds import ArchiveThresholds
from lace.spark.archive.publish import publish
from lace.spark.archive.report import write_report
from lace.spark.archive.run import run
archive = Archive(str(out), lambda: spark, thresholds=LIMITS)
archive.init()
archive.add([bundles], 32 << 20); done("add")
run(archive, [peer]); done("run")
publish(archive, [peer]); done("publish")
write_report(archive, {"half": half}); done("report and reconcile")
print(json.dumps(steps))
"""
# As it comes, which for so few records is without a job, and all of it by jobs.
COLD_WAYS = {"now": "ArchiveThresholds()", "now, by jobs": "ArchiveThresholds(in_process_bytes=0)"}


def code_before(folder: Path) -> Path | None:
    """The sources of the commit before archives, if this clone has it."""
    target = folder / "before"
    if not target.exists():
        target.mkdir()
        repository = ["git", "-C", str(SOURCE.parent)]
        found = subprocess.run([*repository, "archive", BEFORE, "src"], capture_output=True)
        if found.returncode:
            return None
        subprocess.run(["tar", "-x", "-C", str(target)], input=found.stdout, check=True)
    return target / "src" if (target / "src").exists() else None


def script(text: str, source: Path, *arguments: str) -> Any:
    """What a script of its own prints as JSON."""
    command = [sys.executable, "-c", text, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(source))
    if done.returncode:
        raise RuntimeError(done.stderr[-3000:])
    return json.loads(done.stdout.splitlines()[-1])


def bench_rounds(report: Report, folder: Path) -> None:
    """A chain among many other edges: every round finds one fact, and the edges stay on the cluster."""
    rounds, others = (30, 120_000) if report.quick else (99, 1_000_000)
    before = code_before(folder)
    now = statistics.median(script(ROUNDS, SOURCE, str(rounds), str(others)))
    what = f"{rounds} rounds over {others:,} edges"
    if before is None:
        report.row("closure of a chain", what, f"{now:.3f} s a round", f"{BEFORE} is not in this clone")
        return
    then = statistics.median(script(ROUNDS, before, str(rounds), str(others)))
    report.row("closure of a chain", what, f"{now:.3f} s a round", f"{then:.3f} s before")
    report.at_most("a round of a chain's closure beside the code before", wanted=0.5, got=now / then)


CLOSURE = """
import json, resource, sys, time
from lace.datalog import Database, compile
from lace.spark import SparkSettings, evaluate, spark_session
from rulebench.packages import dependencies
rules = "Needs(X,Y) :- Depends(X,Y).\\nNeeds(X,Z) :- Needs(X,Y), Depends(Y,Z)."
pairs = dependencies(int(sys.argv[1]), int(sys.argv[2]))
spark = spark_session("local[2]", config={"spark.sql.shuffle.partitions": "4", "spark.driver.memory": "3g"})
depends = spark.createDataFrame(pairs, "a string, b string").persist()
depends.count()
def took(work):
    began = time.perf_counter()
    rows = work()
    return time.perf_counter() - began, rows
settings = SparkSettings(small_rows=int(sys.argv[3]))
evaluate(rules, {"Depends": depends.limit(1000)}, settings=settings)["Needs"].count()  # what the JVM compiles
times = [took(lambda: evaluate(rules, {"Depends": depends}, settings=settings)["Needs"].count()) for _ in range(2)]
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
goal = f"Needs('{max(pairs)[0]}',X)"
one = took(lambda: evaluate(rules, {"Depends": depends}, goal, settings=settings)["Needs"].count())
program, facts = compile(rules), Database({"Depends": pairs})
own = min(took(lambda: len(program.run(Database({"Depends": pairs}), "Needs(X,Y)").rows())) for _ in range(2))
assert {rows for _, rows in times} == {own[1]}
print(json.dumps([min(times)[0], own[0], own[1], peak, one[0], one[1]]))
spark.stop()
"""


def bench_closure(report: Report) -> None:
    """The closure of a distribution's package index: in the driver's reach, and with everything on the cluster."""
    packages, edges = (4_000, 16_000) if report.quick else (63_436, 264_000)
    for name, small_rows in (("small_rows=1,000,000", 1_000_000), ("on the cluster", 0)):
        took, own, rows, peak, one, found = script(CLOSURE, SOURCE, str(packages), str(edges), str(small_rows))
        what = f"{edges:,} dependencies, {rows:,} pairs"
        report.row(f"closure of packages, {name}", what, f"{took:.1f} s", f"embedded {own:.1f} s; driver {peak} MiB")
        report.row(f"needs of one package, {name}", f"{found:,} pairs", f"{one:.1f} s", "")
        if not report.quick:  # of few packages the start of a job is all that is measured
            report.at_most(f"closure of packages, {name}, beside the embedded engine", wanted=10, got=took / own)


def bench_cold(report: Report, folder: Path) -> None:
    """All steps over 100,000 records in a fresh JVM, with half of them as another archive."""
    size = 4_000 if report.quick else 100_000
    bundles = write_bundles(folder / "cold", size, sealed=False)
    half = folder / "half"
    half.mkdir()
    for path in sorted(bundles.glob("0*.bundle"))[::2]:
        (half / path.name).symlink_to(path)
    before = code_before(folder)
    ways = [("before", COLD_BEFORE, before)]
    ways += [(name, COLD_NOW.replace("LIMITS", limits), SOURCE) for name, limits in COLD_WAYS.items()]
    times: dict[str, list[dict[str, float]]] = {name: [] for name, _, _ in ways}
    for turn in range(1 if report.quick else 2):  # in turns, so that a disturbance hits all
        for place, (name, text, source) in enumerate(ways):
            if source is not None:
                out = folder / f"cold-{turn}-{place}"
                times[name].append(script(COLD + text, source, str(bundles), str(half), str(out)))
                shutil.rmtree(out)
    best = {name: min(found, key=lambda steps: sum(steps.values())) for name, found in times.items() if found}
    for name, steps in best.items():
        said = ", ".join(f"{step} {took:.1f}" for step, took in steps.items())
        report.row(f"all steps cold, {name}", f"{size:,} records", f"{sum(steps.values()):.1f} s", said)
    now = sum(best["now"].values())
    if "before" in best:
        report.at_most("all steps cold beside the code before", wanted=0.6, got=now / sum(best["before"].values()))
    elif not report.quick:
        report.at_most(
            f"all steps cold beside the {BEFORE_SECONDS} s of its own table", wanted=0.6, got=now / BEFORE_SECONDS
        )
    report.note(
        "before: ingest, validate, facts, evaluate, advertise, reconcile, report, publish into a store; now: the "
        "same without a table of facts, which no step reads, and with bundles in the place of a store"
    )
    mib = sum(path.stat().st_size for path in bundles.glob("*.bundle")) / MIB
    report.note(
        f"all steps cold: {mib:.0f} MiB are below `--few-mib`, so this process does them alone and no job runs, though "
        "the session is there; what the same steps take by jobs stands beside it. No start of a JVM is counted anywhere"
    )


# Growth


def spilled(spark: Any) -> int:
    """Bytes that stages have written to disk for want of memory."""
    context = spark.sparkContext
    context._jsc.sc().listenerBus().waitUntilEmpty()
    none = context._gateway.new_array(context._jvm.double, 0)
    found = context._jsc.sc().statusStore().stageList(None, False, False, none, None)
    return sum(found.apply(n).diskBytesSpilled() for n in range(found.size()))


def bytes_read() -> int:
    """What this process and all that it started have read so far, by their own counters."""
    found, waiting = 0, [os.getpid()]
    while waiting:
        process = Path("/proc", str(waiting.pop()))
        try:
            waiting += map(int, " ".join(t.read_text() for t in process.glob("task/*/children")).split())
            found += int((process / "io").read_text().split()[1])  # rchar
        except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            continue
    return found


def bench_small_adds(report: Report, spark: Any, place: Path, size: int) -> dict[str, float]:
    """Additions to a large archive: the bytes that they read follow what they bring."""
    found = {}
    ways = {"1,000 in this process": (1_000, 64 << 20), "1,000 by jobs": (1_000, 0), "20,000 by jobs": (20_000, 0)}
    for turn in range(2):  # what the first of each reads are jars and classes
        for number, (name, (count, here)) in enumerate(ways.items()):
            new = place / "more" / f"{turn}{number}.bundle"
            new.parent.mkdir(exist_ok=True)
            write_piece((str(new), size * 2 + (turn * 3 + number) * 100_000, count, False))
            archive = Archive(str(place / "root"), lambda: spark, thresholds=ArchiveThresholds(in_process_bytes=here))
            archive.log.state()
            before = bytes_read()
            took = timed(partial(archive.add, [new]))
            found[name] = (bytes_read() - before) / MIB
            if turn:
                report.row(
                    f"growth: add {name}", f"to {size:,} records", f"{took:.1f} s", f"{found[name]:.1f} MiB read"
                )
    return found


def progress_of(size: int) -> Progress:
    """What an archive of so many records is at, and since when: such a run takes its time."""
    began = time.perf_counter()

    def say(step: str, what: str) -> None:
        print(f"    {size:,}: [{time.perf_counter() - began:6.1f} s] {step}: {what}", file=sys.stderr, flush=True)

    return say


def bench_scale(report: Report, spark: Any, folder: Path, sizes: tuple[int, int]) -> None:
    """Every step's time a record at two sizes, memory of the driver's own process, bytes spilled."""
    peers = [lowered("ann", select_coordinate("//u//ding//"))]
    found: dict[str, list[float]] = {}
    adds: list[dict[str, float]] = []
    memories: list[int] = []
    warming = sizes[0] // 10  # not told: whoever comes first pays for what the JVM compiles, and a small size dearly
    for size in (warming, *sizes):
        place = folder / f"scale{size}"
        say = progress_of(size)
        say("bundles", "writing")
        bundles = write_bundles(place / "in", size, sealed=False)
        # All by jobs, the warming too.
        archive = Archive(
            str(place / "root"), lambda: spark, thresholds=ArchiveThresholds(in_process_bytes=0), progress=say
        )
        archive.init()
        memory, before, (_, newest) = Memory(), spilled(spark), shuffle_bytes(spark)
        with memory.watched():
            steps = step_seconds(archive, peers, bundles, place / "out")
        if size == warming:
            continue
        for step, took in steps.items():
            found.setdefault(step, []).append(took / size * 1e6)
            report.row(f"growth: {step}", f"{size:,} records", f"{took:.1f} s", f"{took / size * 1e6:.2f} µs a record")
        adds.append(bench_small_adds(report, spark, place, size))
        memories.append(memory.peaks["driver"])
        spill, moved = (spilled(spark) - before) / MIB, shuffle_bytes(spark, newest)[0]
        report.row(
            "growth: all",
            f"{size:,} records",
            f"{sum(steps.values()):.1f} s",
            f"{memory.text()}; spilled {spill:,.0f} MiB, shuffled {moved / size:.0f} bytes a record",
        )
        shutil.rmtree(place)
    for step, (small, large) in found.items():
        report.at_most(f"{step}: a record of {sizes[1]:,} beside one of {sizes[0]:,}", wanted=1.1, got=large / small)
    for name, read in adds[0].items():
        ratio = adds[1][name] / read
        report.at_most(f"add {name}: bytes read at {sizes[1]:,} beside {sizes[0]:,}", wanted=1.2, got=ratio)
    report.at_most("memory of the driver's process, large beside small", wanted=1.1, got=memories[1] / memories[0])


def option(name: str, count: int) -> list[str] | None:
    """The values after an option; None if it is not there."""
    if name not in sys.argv:
        return None
    at = sys.argv.index(name)
    return [text for text in sys.argv[at + 1 : at + 1 + count] if not text.startswith("--")]


SECTIONS = ("batches", "nothing", "five", "peers", "lookups", "programs", "rounds", "closure", "cold")
_ON_ONE_ARCHIVE = {"batches", "nothing", "five", "peers", "lookups"}


def main() -> None:
    report = Report.start("archive", "Archives on Spark (local[2])", columns=["what", "of", "result", "beside it"])
    chosen = [name for name in SECTIONS if name in sys.argv[1:]] if "--only" in sys.argv else list(SECTIONS)
    records = option("--records", 1)
    size = int(records[0]) if records else 8_000 if report.quick else 1_000_000
    scale = option("--scale", 2)
    with tempfile.TemporaryDirectory(prefix="lace-bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        if {*_ON_ONE_ARCHIVE, "programs"} & set(chosen) or scale is not None:
            in_one_session(report, folder, chosen, size, scale)
        if "rounds" in chosen:
            bench_rounds(report, folder)
        if "closure" in chosen:
            bench_closure(report)
        if "cold" in chosen:
            bench_cold(report, folder)
    report.end(is_whole=chosen == list(SECTIONS) and not records)


def in_one_session(report: Report, folder: Path, chosen: list[str], size: int, scale: list[str] | None) -> None:
    """The sections that share a JVM."""
    spark = spark_session("local[2]", config={"spark.sql.shuffle.partitions": "4", "spark.driver.memory": HEAP})
    archive = Archive(str(folder / "root"), lambda: spark)
    if _ON_ONE_ARCHIVE & set(chosen):  # the others of these ask what `batches` left
        bench_batches(report, archive, folder, size)
    sections: dict[str, Callable[[], State | None]] = {
        "peers": lambda: bench_peers(report, archive),
        "nothing": lambda: bench_nothing_new(report, archive, folder),
        "five": lambda: bench_five(report, archive, folder, size),
        "lookups": lambda: bench_lookups(report, archive, size),
        "programs": lambda: bench_programs(Bench(report, spark, folder), size),
    }
    for section, work in sections.items():
        if section in chosen:
            work()
            spark.catalog.clearCache()
    if scale is not None:
        small, large = (int(scale[0]), int(scale[1])) if len(scale) == 2 else (2_000_000, 10_000_000)
        bench_scale(report, spark, folder, (small, large))
    spark.stop()


if __name__ == "__main__":
    main()
