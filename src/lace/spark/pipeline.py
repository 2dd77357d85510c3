"""The pipeline: steps over one output directory, each run once for the same input (idempotent, resumable).

Rule: this module orders, times and records; what a step computes stands in `lace.spark.jobs`.

    DIR/manifest.json
    DIR/tables/raw/batch=…          every stored record that was read, once, with its bytes
    DIR/tables/records/batch=…      the valid ones, wide
    DIR/tables/quarantine/batch=…   the others, with bytes and reason
    DIR/tables/facts/…              020 facts, narrow
    DIR/tables/selected             (peer, hash): what may go to each peer
    DIR/tables/requestable          (peer, hash): what may be asked of each peer that gave a listing
    DIR/tables/advertisements, partitions   by peer
    DIR/tables/missing, missing_by_partition
    DIR/report.html, report.json
    DIR/published/PEER/bundles, store.lace
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user reads

from lace.errors import InvalidInput
from lace.limits import EngineLimits, JudgingLimits
from lace.spark.engine.executor import SparkSettings
from lace.spark.jobs import advertise, evaluate, facts, ingest, reconcile, report, validate
from lace.spark.jobs.listing import read_listing
from lace.spark.jobs.page import page
from lace.spark.jobs.publish import publish_peer
from lace.spark.manifest import InputFile, Manifest, StepRecord, file_digest, fingerprint, read_manifest
from lace.spark.session.failure import told_plainly
from lace.spark.source.files import input_files
from lace.spark.source.source import raw_records
from lace.values import dataclass

STEPS = ("ingest", "validate", "facts", "evaluate", "advertise", "reconcile", "report", "publish")
Counts = dict[str, int]
Progress = Callable[[str, str], None]  # step, what is happening


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineSettings:
    """What a run is asked to do."""

    output: Path
    inputs: Sequence[Path] = ()
    peers: Sequence[evaluate.PeerPolicy] = ()
    archives: Mapping[str, Path] = field(default_factory=dict)  # others to reconcile with: name -> output dir or input
    listings: Mapping[str, Path] = field(default_factory=dict)  # peer -> what it advertises, see `jobs.listing`
    limits: EngineLimits = field(default_factory=EngineLimits)
    executor: SparkSettings = field(default_factory=SparkSettings)
    judging: JudgingLimits = field(default_factory=JudgingLimits)
    split_bytes: int = 64 << 20

    def absolute(self) -> PipelineSettings:
        """The same with paths that mean the same in every process: workers and servers run in folders of their own."""
        return replace(
            self,
            output=self.output.absolute(),
            inputs=[path.absolute() for path in self.inputs],
            archives={name: path.absolute() for name, path in self.archives.items()},
            listings={name: path.absolute() for name, path in self.listings.items()},
        )


class Pipeline:
    """One output directory."""

    def __init__(self, spark: SparkSession, settings: PipelineSettings, progress: Progress) -> None:
        self.spark = spark
        self.settings = settings = settings.absolute()
        self.progress = progress
        strangers = sorted(set(settings.listings) - {peer.name for peer in settings.peers})
        if strangers:
            raise InvalidInput(f"a listing of no peer: {', '.join(strangers)}", rule="pipeline-listing")
        settings.output.mkdir(parents=True, exist_ok=True)
        self.manifest: Manifest = read_manifest(settings.output)

    def run(self, steps: Sequence[str] = STEPS) -> Manifest:
        """Run steps in their order; those already done for the same input are passed over."""
        unknown = set(steps) - set(STEPS)
        if unknown:
            raise InvalidInput(f"no such step: {', '.join(sorted(unknown))}", rule="pipeline-step")
        by_name = {
            "ingest": self._ingest,
            "validate": self._validate,
            "facts": self._facts,
            "evaluate": self._evaluate,
            "advertise": self._advertise,
            "reconcile": self._reconcile,
            "report": self._report,
            "publish": self._publish,
        }
        for step in (step for step in STEPS if step in steps):
            by_name[step]()
        return self.manifest

    # tables

    def path(self, name: str) -> Path:
        return self.settings.output / "tables" / name

    def table(self, name: str) -> DataFrame:
        """A table of this directory; the steps that write it must have run."""
        if not self.path(name).exists():
            step = next((step for step, tables in _WRITES.items() if name.split("/")[0] in tables), "?")
            raise InvalidInput(f"table {name} is not there yet: run the step {step} first", rule="pipeline-order")
        return self.spark.read.parquet(str(self.path(name)))

    def _write(self, frame: DataFrame, name: str) -> None:
        frame.write.mode("overwrite").parquet(str(self.path(name)))

    def _step(self, name: str, depends_on: Mapping[str, object], work: Callable[[], Counts]) -> None:
        mark = fingerprint(depends_on)
        if self.manifest.is_done(name, mark):
            self.progress(name, "nothing new")
            return
        self.progress(name, "running")
        began = time.monotonic()
        with told_plainly(name):
            counts = work()
        self.manifest.steps[name] = StepRecord(fingerprint=mark, counts=counts, seconds=time.monotonic() - began)
        self.manifest.write(self.settings.output)
        self.progress(name, ", ".join(f"{key} {value:,}" for key, value in counts.items()))

    # steps

    def _ingest(self) -> None:
        """Read the files that were not read before, as one new batch."""
        new: dict[str, InputFile] = {}
        for path in input_files(self.settings.inputs):
            content = file_digest(path)
            if content not in self.manifest.inputs and content not in new:
                new[content] = InputFile(path=str(path), bytes=path.stat().st_size, blake3=content, batch="")
        if not new:
            self.progress("ingest", "nothing new")
            return
        batch = fingerprint({"contents": sorted(new)})
        known = self.table("raw") if self.manifest.batches else None

        def work() -> Counts:
            read, kept = self._ingest_files([Path(item.path) for item in new.values()], f"raw/batch={batch}", known)
            self.manifest.inputs |= {
                key: InputFile(path=item.path, bytes=item.bytes, blake3=key, batch=batch) for key, item in new.items()
            }
            return {"files": len(new), "read": read, "kept": kept, "repeats": read - kept}

        self._step(f"ingest:{batch}", {"contents": sorted(new)}, work)

    def _ingest_files(self, files: list[Path], table: str, known: DataFrame | None) -> tuple[int, int]:
        """Two passes over the files: one for places and digests alone, one for the bytes of what is new."""
        raw = partial(raw_records, self.spark, files, self.settings.split_bytes)
        places = raw(ingest.PLACES).persist()
        read = places.count()
        repeated = ingest.repeats(places, known).persist()
        few = repeated.count() <= self.settings.executor.joins.broadcast_rows
        self._write(ingest.first_copies(raw(), None, F.broadcast(repeated) if few else repeated), table)
        kept = self.spark.read.parquet(str(self.path(table))).count()
        repeated.unpersist()
        places.unpersist()
        return read, kept

    def _validate(self) -> None:
        for batch in self.manifest.batches:
            self._step(f"validate:{batch}", {"batch": batch}, partial(self._validate_batch, batch))

    def _validate_batch(self, batch: str) -> Counts:
        raw = self.spark.read.parquet(str(self.path(f"raw/batch={batch}")))
        judged = validate.judged(raw, limits=self.settings.judging).persist()
        counts: Counts = {}
        for kind, table, frame in (
            ("valid", "records", validate.records(judged)),
            ("quarantined", "quarantine", validate.quarantine(judged)),
        ):
            self._write(frame, f"{table}/batch={batch}")
            counts[kind] = self.spark.read.parquet(str(self.path(f"{table}/batch={batch}"))).count()
        judged.unpersist()
        return counts

    def _facts(self) -> None:
        def work() -> Counts:
            counts: Counts = {}
            for predicate, frame in facts.narrow_facts(self._records()).items():
                self._write(frame, f"facts/{predicate.name}")
                counts[predicate.name] = self.table(f"facts/{predicate.name}").count()
            return counts

        self._step("facts", {"batches": sorted(self.manifest.batches)}, work)

    def _records(self) -> DataFrame:
        return self.table("records").drop("batch")

    def _peers(self) -> dict[str, str]:
        """Everything about the peers that a result depends on, by name."""
        return {
            peer.name: fingerprint({
                "plan": str(peer.policy.plan.id),
                "rules": [str(rule) for rule in peer.policy.program.program.rules],
                "runtime": [list(fact.values) for fact in peer.runtime],
                "listing": _archive_mark(self.settings.listings[peer.name]) if self._lists(peer) else "",
            })
            for peer in self.settings.peers
        }  # fmt: skip

    def _lists(self, peer: evaluate.PeerPolicy) -> bool:
        return peer.name in self.settings.listings

    def _evaluate(self) -> None:
        if not self.settings.peers:
            return

        def work() -> Counts:
            for peer in self.settings.peers:
                self.manifest.plans[peer.name] = str(peer.policy.plan.id)
            peers = [self._with_listing(peer) for peer in self.settings.peers]
            bounds = self.settings.limits, self.settings.executor
            self._write(evaluate.sendable_records(self._records(), peers, *bounds), "selected")
            counts = {peer.name: 0 for peer in peers} | self._by_peer("selected")
            listed = [peer for peer in peers if self._lists(peer)]
            if listed:
                self._write(evaluate.requestable_records(self._records(), listed, *bounds), "requestable")
                asked = {peer.name: 0 for peer in listed} | self._by_peer("requestable")
                counts |= {f"{name} requestable": rows for name, rows in asked.items()}
            return counts

        self._step("evaluate", {"batches": sorted(self.manifest.batches), "peers": self._peers()}, work)

    def _with_listing(self, peer: evaluate.PeerPolicy) -> evaluate.PeerPolicy:
        """The peer with the facts that its listing states."""
        if not self._lists(peer):
            return peer
        return replace(peer, advertised=read_listing(self.spark, self.settings.listings[peer.name], peer.source))

    def _by_peer(self, table: str) -> Counts:
        return {row["peer"]: row["count"] for row in self.table(table).groupBy("peer").count().collect()}

    def _advertise(self) -> None:
        for peer in self.settings.peers:
            depends = {"batches": sorted(self.manifest.batches), "peer": self._peers()[peer.name]}
            self._step(f"advertise:{peer.name}", depends, partial(self._advertise_to, peer))

    def _advertise_to(self, peer: evaluate.PeerPolicy) -> Counts:
        chosen = self._selected_for(peer.name)
        plan = peer.policy.plan
        fields = None if plan.requirements.all_fields else frozenset(plan.requirements.names)
        source = plan.operands[peer.policy.local_index].origin
        self._write(advertise.advertisements(chosen, source, fields), f"advertisements/peer={peer.name}")
        listing = self.spark.read.parquet(str(self.path(f"advertisements/peer={peer.name}")))
        self._write(advertise.partitions(listing), f"partitions/peer={peer.name}")
        parts = self.spark.read.parquet(str(self.path(f"partitions/peer={peer.name}")))
        return {"records": listing.count(), "partitions": parts.count()}

    def _selected_for(self, peer: str) -> DataFrame:
        wanted = self.table("selected").where(F.col("peer") == peer).select("hash")
        return self._records().join(wanted, on="hash", how="left_semi")

    def _reconcile(self) -> None:
        if not self.settings.archives:
            return
        others = {name: _archive_mark(path) for name, path in self.settings.archives.items()}

        def work() -> Counts:
            archives = {name: self._archive(path) for name, path in self.settings.archives.items()}
            archives["here"] = self._records().select("hash")
            self._write(reconcile.missing_records(archives), "missing")
            self._write(reconcile.missing_by_partition(self.table("missing")), "missing_by_partition")
            rows = self.table("missing").groupBy("archive").count().collect()
            return dict.fromkeys(sorted(archives), 0) | {row["archive"]: row["count"] for row in rows}

        self._step("reconcile", {"batches": sorted(self.manifest.batches), "others": others}, work)

    def _archive(self, path: Path) -> DataFrame:
        """Another archive's hashes: a pipeline's output, a listing as Parquet, or bundles and stores."""
        if (path / "tables" / "records").exists():
            return self.spark.read.parquet(str(path / "tables" / "records")).select("hash")
        if path.is_dir() and any(path.glob("*.parquet")):
            return self.spark.read.parquet(str(path)).select("hash")
        return (
            raw_records(self.spark, [path], self.settings.split_bytes, ("hash", "rule"))
            .where("rule is null")
            .select("hash")
            .distinct()
        )

    def _report(self) -> None:
        def work() -> Counts:
            has_selection = self.path("selected").exists() and bool(self.settings.peers)
            has_missing = self.path("missing_by_partition").exists() and bool(self.settings.archives)
            selected = self.table("selected") if has_selection else None
            found = report.shown(
                report.count(self._records(), self.table("quarantine"), selected),
                report.missing_counts(self.table("missing_by_partition")) if has_missing else {},
                inputs=_input_rows(self.manifest),
                steps=[
                    report.StepRow(step=step, seconds=[done.seconds], result=done.counts)
                    for step, done in self.manifest.steps.items()
                ],
                facts={
                    "archive": str(self.settings.output),
                    **self.manifest.versions,
                    **{f"plan for {peer}": plan for peer, plan in self.manifest.plans.items()},
                },
            )
            body = json.dumps(found.as_json(), indent=2, ensure_ascii=False)
            (self.settings.output / "report.json").write_text(body + "\n", encoding="utf-8")
            (self.settings.output / "report.html").write_text(page(found), encoding="utf-8")
            return {"records": found.records, "quarantined": found.quarantined}

        depends = {"batches": sorted(self.manifest.batches), "peers": self._peers()}
        if self.settings.archives:
            depends["others"] = {name: _archive_mark(path) for name, path in self.settings.archives.items()}
        self._step("report", depends, work)

    def _publish(self) -> None:
        for peer in self.settings.peers:
            depends = {"batches": sorted(self.manifest.batches), "peer": self._peers()[peer.name]}
            self._step(f"publish:{peer.name}", depends, partial(self._publish_to, peer.name))

    def _publish_to(self, peer: str) -> Counts:
        target = self.settings.output / "published" / peer
        if target.exists():
            shutil.rmtree(target)
        wanted = self.table("selected").where(F.col("peer") == peer).select("hash")
        valid = self._records().select("hash", "content").join(wanted, on="hash", how="left_semi")
        stored = self.table("raw").join(valid.select("content"), on="content", how="left_semi").select("hash", "stored")
        return publish_peer(stored, target)


_WRITES = {
    "ingest": {"raw"},
    "validate": {"records", "quarantine"},
    "facts": {"facts"},
    "evaluate": {"selected", "requestable"},
    "advertise": {"advertisements", "partitions"},
    "reconcile": {"missing", "missing_by_partition"},
}


def _input_rows(manifest: Manifest) -> list[report.InputRow]:
    """Every batch with what was read and what became of it."""
    rows = []
    for batch in manifest.batches:
        files = [item for item in manifest.inputs.values() if item.batch == batch]
        done = [manifest.steps.get(f"{step}:{batch}") for step in ("ingest", "validate")]
        counts = {name: count for step in done if step is not None for name, count in step.counts.items()}
        size = sum(item.bytes for item in files)
        rows.append(report.InputRow(when=f"batch {batch[:8]}", files=len(files), bytes=size, counts=counts))
    return rows


def _archive_mark(path: Path) -> str:
    """What another archive's content hangs on, cheaply: its manifest, or its files' sizes and times."""
    if (path / "manifest.json").exists():
        return file_digest(path / "manifest.json")
    files = sorted(p for p in ([path] if path.is_file() else path.rglob("*")) if p.is_file())
    return fingerprint({str(p): [p.stat().st_size, p.stat().st_mtime_ns] for p in files})
