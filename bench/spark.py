"""The pipeline on Spark: validation against one process, programs against hand-written queries, flat rounds, growth.

python bench/spark.py [--quick] [--only SECTION …]

Sections: programs, rounds, validate, growth, damage. With `--only` the figures are shown and not kept.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from report import Report

SOURCE = Path(__file__).resolve().parent.parent / "src"
sys.path.insert(0, str(SOURCE))
os.environ["PYTHONPATH"] = str(SOURCE)  # for Spark's Python workers

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user reads

from lace.datalog.language.parser import parse_program
from lace.datalog.language.syntax import Predicate
from lace.datalog.language.validate import LOCAL_PROFILE, RAW_PROFILE, CheckedProgram, check_program
from lace.intake.check import check
from lace.limits import RecordLimits
from lace.notation.digest import digest
from lace.notation.tai import TAI
from lace.policy.compile import agree
from lace.policy.exposure import expose_all
from lace.policy.lower import lower
from lace.policy.origin import Viewer
from lace.policy.select import select_all, select_coordinate
from lace.records.frame import split_records
from lace.records.keys import SigningKey
from lace.records.model import Blob, Plex
from lace.records.write import encode_record
from lace.spark.engine.executor import SparkSettings, evaluate
from lace.spark.engine.relations import local_relation
from lace.spark.jobs import facts as fact_steps
from lace.spark.jobs import validate as validate_steps
from lace.spark.jobs.evaluate import PeerPolicy
from lace.spark.pipeline import Pipeline, PipelineSettings
from lace.spark.session.session import spark_session
from lace.spark.source.source import raw_records
from lace.store.bundle import BundleWriter
from store import signature_ceiling

SELECTOR = (
    "Selected(P) :- Have(P), Field(P,'Group',_,'u'), Field(P,'App',_,'ding'), "
    "Field(P,'Name',_,K), TextShape(K,'links/','','')."
)
MEMBERSHIP = (
    "Selected(P) :- Have(P), Field(P,'Group',_,'u'), Field(P,'App',_,'ding'), "
    "Field(P,'Signed-By',_,V), Member(V), not Blocked(V).\n"
    "Member(V) :- Have(P), Field(P,'Group',_,'u'), Field(P,'App',_,'member'), Field(P,'Name',_,V).\n"
    "Blocked(V) :- Have(P), Field(P,'Group',_,'keys'), Field(P,'App',_,'blocked'), Field(P,'Name',_,V)."
)
SELECTED = Predicate("Selected", 1)
CLUSTER_ONLY = SparkSettings(small_rows=0)
HEAP = "3g"
MIB = 1 << 20
CHUNK = 4096  # frames that lace import gives to a worker at once
DAMAGED_DATA = 64 << 10  # bytes of a record of the damaged bundle
EVERY = 100  # each so-manieth of its records is damaged


@dataclass
class Memory:
    """The most that each kind of process held, looked at four times a second."""

    peaks: dict[str, int] = field(default_factory=dict)

    @contextmanager
    def watched(self) -> Iterator[None]:
        over = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(over,), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()

    def _watch(self, over: threading.Event) -> None:
        while not over.wait(0.25):
            held = {"driver": psutil.Process().memory_info().rss, "JVM": 0, "workers": 0}
            for child in psutil.Process().children(recursive=True):
                try:
                    name = child.name()
                    if name == "java":
                        held["JVM"] = max(held["JVM"], child.memory_info().rss)  # it forks now and then
                    elif name.startswith("python"):
                        held["workers"] += child.memory_info().rss - child.memory_info().shared
                except psutil.Error:
                    continue  # it ended while we looked
            for kind, size in held.items():
                self.peaks[kind] = max(self.peaks.get(kind, 0), size)

    def text(self) -> str:
        driver, machine, workers = (self.peaks.get(kind, 0) / MIB for kind in ("driver", "JVM", "workers"))
        return f"driver {driver:.0f}, JVM {machine:.0f}, Python workers {workers:.0f} MiB"


def shuffle_bytes(spark: SparkSession, after: int = -1) -> tuple[int, int]:
    """Shuffle bytes that stages after one have written, as Spark itself counts them, and the newest stage."""
    context = spark.sparkContext
    context._jsc.sc().listenerBus().waitUntilEmpty()
    assert context._gateway is not None
    assert context._jvm is not None
    no_quantiles = context._gateway.new_array(context._jvm.double, 0)
    found = context._jsc.sc().statusStore().stageList(None, False, False, no_quantiles, None)
    stages = [found.apply(n) for n in range(found.size())]
    newest = max((stage.stageId() for stage in stages), default=-1)
    return sum(stage.shuffleWriteBytes() for stage in stages if stage.stageId() > after), newest


@dataclass
class Bench:
    """What every section needs."""

    report: Report
    spark: SparkSession
    directory: Path

    @contextmanager
    def step(self) -> Iterator[Callable[[], str]]:
        """Memory and shuffled bytes of what happens inside, as text, to be asked for afterwards."""
        memory = Memory()
        said = ""
        _, before = shuffle_bytes(self.spark)
        with memory.watched():
            yield lambda: said
        said = f"{shuffle_bytes(self.spark, before)[0] / 1e6:.1f} MB shuffled; {memory.text()}"


def seconds(work: Callable[[], object], times: int = 3) -> float:
    """The best of a few runs."""
    best = float("inf")
    for _ in range(times):
        began = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - began)
    return best


def best_times(rounds: int, **works: Callable[[], object]) -> dict[str, float]:
    """The best of several rounds taken in turn, so that a disturbance hits them alike."""
    best = dict.fromkeys(works, float("inf"))
    for _ in range(rounds):
        for name, work in works.items():
            best[name] = min(best[name], seconds(work, 1))
    return best


def small_plex(number: int) -> Plex:
    """A Plex of few bytes; every third is what the peer of the growth bench wants."""
    tai = TAI(f"{1_640_995_200 + 20 * number:010d}:000000000")
    app = ("ding", "notes", "photos")[number % 3]
    return Plex(group="u", app=app, name=f"links/{number}", tai=tai, blob=Blob(number.to_bytes(8, "big")))


def sealed_plex(number: int, key: SigningKey) -> bytes:
    """A sealed record of about 1 KB, as bench/store.py imports them."""
    tai = TAI(f"{1_640_995_200 + number:010d}:000000000")
    body = Blob(digest(number.to_bytes(4, "big")) * 32)
    headers = (("Content-Type", "text/plain"),)
    plex = Plex(group="u/people", app="ding", name=f"links/{number:07}", tai=tai, headers=headers, blob=body)
    return encode_record(key.seal(plex))


def write_piece(job: tuple[str, int, int, bool]) -> None:
    """One bundle of records."""
    path, start, count, sealed = job
    key = SigningKey(digest(b"bench"))
    with BundleWriter(Path(path)) as bundle:
        for number in range(start, start + count):
            bundle.write(sealed_plex(number, key) if sealed else encode_record(small_plex(number)))


def write_bundles(directory: Path, count: int, *, sealed: bool, pieces: int = 16) -> Path:
    """Bundles of `count` records in all, made by all cores."""
    directory.mkdir(parents=True)
    each = count // pieces
    jobs = [(str(directory / f"{n:03d}.bundle"), n * each, each, sealed) for n in range(pieces)]
    with multiprocessing.Pool() as pool:
        pool.map(write_piece, jobs, 1)
    return directory


def bench_validate(bench: Bench) -> None:
    """The validate step over a raw table as ingest leaves it, against what one worker of `lace import` does."""
    count, spark = (20_000 if bench.report.quick else 200_000), bench.spark
    bundles = write_bundles(bench.directory / "sealed", count, sealed=True)
    table = str(bench.directory / "raw")
    raw_records(spark, [bundles]).write.parquet(table)
    raw = spark.read.parquet(table)
    with bench.step() as used:  # untimed: looking at the memory takes time from what is measured
        assert validate_steps.judged(raw).where("rule is null").count() == count
    stored = list(split_records(min(bundles.glob("*.bundle")).read_bytes()))[: 4 * CHUNK]
    best = best_times(
        3,
        spark=lambda: validate_steps.judged(raw).write.format("noop").mode("overwrite").save(),
        one_process=lambda: import_checks(stored),
    )
    rate, one_process = count / best["spark"], len(stored) / best["one_process"]
    ceiling = max(signature_ceiling(20_000) for _ in range(3))
    bench.report.row("validate, local[2]", f"{count:,} sealed 1 KB records", f"{rate:,.0f} records/s", used())
    bench.report.row("lace import's checks, one process", "the same records", f"{one_process:,.0f} records/s", "")
    bench.report.row("libsecp256k1's own Schnorr verification, two threads", "", f"{ceiling:,.0f} /s", "")
    bench.report.at_least(
        "validate on local[2] against one process of lace import's checks", wanted=1.5, got=rate / one_process
    )
    bench.report.at_least("validate on local[2], of the two-core signature ceiling", wanted=0.6, got=rate / ceiling)


def import_checks(stored: list[bytes]) -> None:
    for start in range(0, len(stored), CHUNK):
        assert not check(stored[start : start + CHUNK], RecordLimits()).refused


def wide_table(spark: SparkSession, count: int, path: Path) -> DataFrame:
    """Records as a wide table, made by Spark itself: a third of them of one app, signed by a thousand keys."""
    number = F.col("id")
    text = number.cast("string")
    kind = number % 10

    def signer(count: int) -> Column:
        return F.concat(F.lit("V."), ((number / 10).cast("long") % count).cast("string"))

    frame = spark.range(0, count, 1, 8).select(
        F.concat(F.lit("S."), F.sha2(text, 256).substr(1, 43), F.lit(".H3")).alias("hash"),
        F.lit("S").alias("type"),
        F.when(kind == 9, "keys").when(kind == 8, "v").otherwise("u").alias("group"),
        F.when(kind == 9, "blocked").when(kind == 7, "member").otherwise("ding").alias("app"),
        F.when(kind == 7, signer(1000)).when(kind == 9, signer(100)).otherwise(
            F.concat(F.when(kind < 4, "links/").otherwise("notes/"), text)).alias("name"),
        F.concat((number + 1_600_000_000).cast("string"), F.lit(":000000000")).alias("tai"),
        signer(2000).alias("signed_by"),
        F.sha2(text, 512).substr(1, 86).alias("signature"),
        F.concat(F.lit("B."), F.sha2(F.concat(text, F.lit("b")), 256).substr(1, 43), F.lit(".H3")).alias("blob_hash"),
        F.concat(F.lit("P."), F.sha2(F.concat(text, F.lit("p")), 256).substr(1, 43), F.lit(".H3")).alias("plex_hash"),
        F.lit(1000).cast("long").alias("data_length"),
        F.expr("cast(array() as array<struct<name:string,index:int,value:string>>)").alias("headers"),
        F.expr("cast(array() as array<struct<name:string,index:int,data:string,target:string>>)").alias("links"),
    )  # fmt: skip
    frame.write.mode("overwrite").parquet(str(path))
    return spark.read.parquet(str(path))


def by_hand_selector(wide: DataFrame) -> DataFrame:
    mine = (F.col("group") == "u") & (F.col("app") == "ding") & F.col("name").startswith("links/")
    return wide.where(mine).select("hash")


def by_hand_membership(wide: DataFrame) -> DataFrame:
    members = wide.where("group = 'u' and app = 'member'").select(F.col("name").alias("signed_by")).distinct()
    blocked = wide.where("group = 'keys' and app = 'blocked'").select(F.col("name").alias("signed_by")).distinct()
    mine = wide.where("group = 'u' and app = 'ding'").select("hash", "signed_by")
    return (
        mine.join(F.broadcast(members), "signed_by").join(F.broadcast(blocked), "signed_by", "left_anti").select("hash")
    )


def narrow_tables(spark: SparkSession, wide: DataFrame, directory: Path) -> dict[Predicate, DataFrame]:
    """The same records as narrow Have and Field rows."""
    stored = {}
    for predicate, frame in fact_steps.narrow_facts(wide).items():
        if predicate.name in ("Have", "Field"):
            path = str(directory / predicate.name)
            frame.write.mode("overwrite").parquet(path)
            stored[predicate] = spark.read.parquet(path)
    return stored


MOST_NARROW = 1_000_000  # records whose facts are compared as rows: more would take a quarter of an hour


def bench_programs(bench: Bench, records: int | None = None) -> None:
    count, spark = records or (100_000 if bench.report.quick else 1_000_000), bench.spark
    wide = wide_table(spark, count, bench.directory / "wide")
    narrow = narrow_tables(spark, wide, bench.directory) if count <= MOST_NARROW else None
    for name, text, by_hand in (
        ("selector", SELECTOR, by_hand_selector),
        ("membership", MEMBERSHIP, by_hand_membership),
    ):
        checked = check_program(parse_program(text), LOCAL_PROFILE)

        def hand(by_hand: Callable[[DataFrame], DataFrame] = by_hand) -> int:
            spark.catalog.clearCache()
            return by_hand(wide).persist(StorageLevel.MEMORY_AND_DISK).count()  # held and counted, as ours is

        def ours(checked: CheckedProgram = checked) -> int:
            spark.catalog.clearCache()
            return evaluate(checked, {}, spark=spark, records=wide, goals=[SELECTED]).count(SELECTED)

        def facts(checked: CheckedProgram = checked) -> int:
            spark.catalog.clearCache()
            assert narrow is not None
            return evaluate(checked, narrow, spark=spark, goals=[SELECTED], settings=CLUSTER_ONLY).count(SELECTED)

        assert ours() == hand() > 0  # and both are warm
        assert narrow is None or facts() == hand()
        with bench.step() as used:
            best = best_times(5, hand=hand, ours=ours)
        slow = None if narrow is None else seconds(facts, 1)
        beside = "" if slow is None else f"; over Field rows {slow:.2f} s"
        what = f"{best['ours']:.2f} s; by hand {best['hand']:.2f} s{beside}"
        bench.report.row(name, f"{count:,} records", what, used())
        bench.report.at_most(f"{name} against the hand-written query", wanted=1.2, got=best["ours"] / best["hand"])
        if slow is not None:
            bench.report.at_least(f"{name} on the wide table against Field rows", wanted=10, got=slow / best["ours"])


def bench_rounds(bench: Bench) -> None:
    """A chain: every round adds one fact, so every round should cost the same."""
    rounds, spark = (45 if bench.report.quick else 150), bench.spark
    checked = check_program(parse_program("T(X) :- Start(X).\nT(Y) :- T(X), E(X,Y)."), RAW_PROFILE)
    edges = [(str(n), str(n + 1)) for n in range(rounds)]
    given = {
        Predicate("Start", 1): local_relation(spark, 1, [("0",)]).frame,
        Predicate("E", 2): local_relation(spark, 2, edges).frame.persist(),
    }
    with bench.step() as used:
        spans = evaluate(checked, given, spark=spark, settings=CLUSTER_ONLY).round_seconds
    first, last = sorted(spans[2:22])[10], sorted(spans[-20:])[10]
    what = f"{first:.2f} s a round of the first 20, {last:.2f} s of the last 20"
    bench.report.row("recursion", f"{len(spans)} rounds", what, used())
    bench.report.at_most("a round of the last 20 against one of the first 20 (medians)", wanted=1.3, got=last / first)


@dataclass
class StepWatch:
    """Listens to a pipeline's progress: shuffled bytes up to the end of each step."""

    spark: SparkSession
    shuffled: dict[str, int] = field(default_factory=dict)
    newest: int = -1

    def __call__(self, step: str, what: str) -> None:
        moved, self.newest = shuffle_bytes(self.spark, self.newest)
        label = _STEP_LABELS.get(step.partition(" ")[0], step)
        self.shuffled[label] = self.shuffled.get(label, 0) + moved


_STEP_LABELS = {"add": "ingest", "select": "evaluate", "list": "advertise", "publish": "publish"}


def one_peer() -> PeerPolicy:
    plan = agree(select_all(), select_coordinate("//u//ding//"))
    viewer = Viewer(plan.operands[1].origin)
    return PeerPolicy(name="ann", policy=lower(plan, local_index=0, viewer=viewer, exposures=[expose_all()]))


def bench_growth(bench: Bench) -> None:
    """The whole pipeline over small Plexes, a third of which one peer wants, and half of them as another archive."""
    times: dict[str, list[float]] = {}
    sizes = [4_000, 40_000] if bench.report.quick else [100_000, 2_000_000]
    for size in sizes:
        folder = bench.directory / f"grow{size}"
        bundles = write_bundles(folder / "in", size, sealed=False)
        half = folder / "half"
        half.mkdir()
        for path in sorted(bundles.glob("0*.bundle"))[::2]:
            (half / path.name).symlink_to(path)
        watch = StepWatch(bench.spark)
        settings = PipelineSettings(
            output=folder / "out", inputs=[bundles], peers=[one_peer()], archives={"half": half}, split_bytes=32 * MIB
        )
        with bench.step() as used:
            done = Pipeline(bench.spark, settings, watch).run()
        assert done.steps["publish:ann"].counts["records"] == -(-size // 3), done.steps["publish:ann"]
        assert done.steps["reconcile"].counts == {"here": 0, "half": size // 2}
        for name, step in done.steps.items():
            label = name.partition(":")[0]
            if label == "validate":  # records are judged as they are read
                continue
            times.setdefault(label, []).append(step.seconds / size * 1e6)
            moved = f"{watch.shuffled.get(label, 0) / 1e6:.1f} MB shuffled; {step.way}"
            bench.report.row(label, f"{size:,} records", f"{step.seconds:.1f} s", moved)
        bench.report.row(
            "all steps", f"{size:,} records", f"{sum(s.seconds for s in done.steps.values()):.1f} s", used()
        )
        shutil.rmtree(folder)
    for label, (small, large) in times.items():
        bench.report.row(
            f"{label}, a record", f"{sizes[0]:,} and {sizes[1]:,}", f"{small:.1f} and {large:.1f} µs",
            f"{large / small:.2f}×",
        )  # fmt: skip


def damaged_bundle(path: Path, size: int) -> tuple[int, int]:
    """A bundle without an index, of about so many bytes; how many records of it are good and how many damaged."""
    bad = count = 0
    with path.open("wb") as file:
        while file.tell() < size:
            stored = bytearray(encode_record(Blob(digest(count.to_bytes(4, "big")) * (DAMAGED_DATA // 32))))
            if count % EVERY == EVERY // 2:
                stored[-1 - count % DAMAGED_DATA] ^= 1
                bad += 1
            file.write(stored)
            count += 1
        file.write(b"neither a record nor a mark")
        file.write(stored[: len(stored) // 2])  # cut off
    return count - bad, bad + 1


def bench_damage(bench: Bench) -> None:
    path = bench.directory / "damaged.bundle"
    good, bad = damaged_bundle(path, (64 if bench.report.quick else 2048) * MIB)
    size = path.stat().st_size
    settings = PipelineSettings(output=bench.directory / "damaged", inputs=[path])
    watch = StepWatch(bench.spark)
    with bench.step() as used:
        taken = seconds(lambda: Pipeline(bench.spark, settings, watch).run(["ingest", "validate"]), 1)
    done = Pipeline(bench.spark, settings, watch).manifest
    (counts,) = [step.counts for name, step in done.steps.items() if name.startswith("validate")]
    what = f"one bundle of {size / 1e9:.2f} GB, {bad:,} damaged places"
    bench.report.row("ingest and validate", what, f"{taken:.1f} s, {size / taken / 1e6:.0f} MB/s", used())
    found = f"{counts['valid']:,} and {counts['quarantined']:,}"
    right = counts == {"valid": good, "quarantined": bad}
    bench.report.claim("records and damage found in it", wanted=f"{good:,} and {bad:,}", got=found, ok=right)


SECTIONS: dict[str, Callable[[Bench], None]] = {
    "programs": bench_programs,
    "rounds": bench_rounds,
    "validate": bench_validate,
    "growth": bench_growth,
    "damage": bench_damage,
}


def main() -> None:
    chosen = [name for name in SECTIONS if name in sys.argv[1:]] if "--only" in sys.argv else list(SECTIONS)
    report = Report.start("spark", "The pipeline on Spark (local[2])", columns=["what", "of", "result", "beside it"])
    config = {"spark.sql.shuffle.partitions": "4", "spark.driver.memory": HEAP}
    spark = spark_session("local[2]", config=config)
    with tempfile.TemporaryDirectory(prefix="lace-bench-", ignore_cleanup_errors=True) as folder:
        for name in chosen:
            began = time.perf_counter()
            SECTIONS[name](Bench(report, spark, Path(folder)))
            spark.catalog.clearCache()
            print(f"  ({name} took {time.perf_counter() - began:.0f} s)", file=sys.stderr, flush=True)
        spark.stop()
    report.note(
        f"on local[2] the JVM is driver and executor at once, with {HEAP} of heap; memory is resident, at its peak"
    )
    report.note(
        "by hand: the same question as a DataFrame query over the same table, its rows held and counted as ours are"
    )
    if chosen == list(SECTIONS):
        report.finish()
    else:
        print("\n".join(report.lines()))


if __name__ == "__main__":
    main()
