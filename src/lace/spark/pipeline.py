"""The pipeline: the steps of `lace pipeline` over one output directory, which is an archive.

Rule: this module puts steps in order and says in a user's words what they came to; what a step computes, who carries it
out and what is kept of it is the archive's. A step that was done for the same input is passed over; a crash leaves the
last commit.

    DIR/log, DIR/data           the archive: records, quarantine, facts/…, selected, requestable, advertisements,
                                partitions, missing, missing_by_partition
    DIR/manifest.json           inputs, steps, plans and versions in one file, written from the log after each run
    DIR/report.html, report.json
    DIR/published/PEER/bundles, store.lace
"""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, field, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from lace.errors import InvalidInput, StoreError
from lace.intake.bundles import import_bundles
from lace.limits import EngineLimits, JudgingLimits
from lace.spark.archive import tables
from lace.spark.archive.archive import Archive, Progress, Session, silent
from lace.spark.archive.executors import Need, RunSettings, Steps, files_bytes
from lace.spark.archive.publish import publish, require_names
from lace.spark.archive.report import write_report
from lace.spark.archive.run import listing_mark, rules_mark, run
from lace.spark.archive.versions import Commit, DataFile, State, StepResult, StepWay
from lace.spark.engine.executor import SparkSettings, limits_on
from lace.spark.jobs.evaluate import PeerPolicy, requestable_records
from lace.spark.source.files import fingerprint, place_mark
from lace.spark.source.places import Place
from lace.spark.source.writer import BUNDLE_SUFFIX
from lace.store import open_store
from lace.thresholds import ArchiveThresholds
from lace.values import dataclass

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STEPS = ("ingest", "validate", "facts", "evaluate", "advertise", "reconcile", "publish", "report")
MANIFEST = "manifest.json"
FORMAT = 2
_WRITTEN_BY = {
    "records": "ingest",
    "quarantine": "ingest",
    "selected": "evaluate",
    "requestable": "evaluate",
    "advertisements": "advertise",
    "partitions": "advertise",
    "missing": "reconcile",
    "missing_by_partition": "reconcile",
    **dict.fromkeys(tables.FACTS_TABLES, "facts"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineSettings:
    """What a run is asked to do."""

    output: Path
    inputs: Sequence[Place] = ()
    peers: Sequence[PeerPolicy] = ()
    archives: Mapping[str, Path] = field(default_factory=dict)  # others to reconcile with: an archive, bundles, a table
    listings: Mapping[str, Path] = field(default_factory=dict)  # peer -> what it advertises, see `jobs.peer_listing`
    limits: EngineLimits | None = None  # those of one machine, and on a cluster its own
    executor: SparkSettings = field(default_factory=SparkSettings)
    judging: JudgingLimits = field(default_factory=JudgingLimits)
    thresholds: ArchiveThresholds = field(default_factory=ArchiveThresholds)
    split_bytes: int = 64 << 20

    def absolute(self) -> PipelineSettings:
        """The same with paths that mean the same in every process: workers and servers run in folders of their own."""
        return replace(
            self,
            output=self.output.absolute(),
            inputs=[path.absolute() if isinstance(path, Path) else path for path in self.inputs],
            archives={name: path.absolute() for name, path in self.archives.items()},
            listings={name: path.absolute() for name, path in self.listings.items()},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """A finished step: what it counted, how long it took and who carried it out."""

    counts: dict[str, int]
    seconds: float
    way: StepWay | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What the log says about one output directory, in the words of the pipeline."""

    inputs: dict[str, dict[str, object]]  # by content
    batches: list[str]
    steps: dict[str, StepRecord]
    plans: dict[str, str]
    versions: dict[str, str]


class Pipeline:
    """One output directory. A session that is handed in means Spark; else each step is placed by its size."""

    def __init__(
        self,
        spark: SparkSession | Session | None,
        settings: PipelineSettings,
        progress: Progress = silent,
        *,
        wants_spark: bool = False,
    ) -> None:
        settings = settings.absolute()
        self.settings: PipelineSettings = settings
        strangers = sorted(set(settings.listings) - {peer.name for peer in settings.peers})
        if strangers:
            raise InvalidInput(f"a listing of no peer: {', '.join(strangers)}", rule="pipeline-listing")
        require_names(settings.peers)
        if (settings.output / "tables").is_dir() and not (settings.output / "log").is_dir():
            raise StoreError(f"{settings.output}: written by an older version of the pipeline; use a new directory")
        self.peers: list[PeerPolicy] = [
            replace(peer, listing=settings.listings.get(peer.name)) for peer in settings.peers
        ]
        self.archive: Archive = Archive(
            str(settings.output),
            spark,
            progress=progress,
            thresholds=settings.thresholds,
            judging=settings.judging,
            wants_spark=wants_spark,
        )
        if not self.archive.log.versions():
            self.archive.init()

    @property
    def _run_settings(self) -> RunSettings:
        return RunSettings(limits=self.settings.limits, executor=self.settings.executor)

    def run(self, steps: Sequence[str] = STEPS) -> Manifest:
        """Run steps in their order; those already done for the same input are passed over."""
        unknown = set(steps) - set(STEPS)
        if unknown:
            raise InvalidInput(f"no such step: {', '.join(sorted(unknown))}", rule="pipeline-step")
        by_name: dict[str, Callable[[], None]] = {
            "ingest": self._ingest,
            "validate": partial(self._require, "records"),  # a record is judged as it is read
            "facts": self._facts,
            "evaluate": self._evaluate,
            "advertise": self._advertise,
            "reconcile": self._reconcile,
            "publish": self._publish,
            "report": self._report,
        }
        for step in (step for step in STEPS if step in steps):
            by_name[step]()
        return self._write_manifest()

    # Tables

    def table(self, name: str) -> DataFrame:
        """A table of this directory; the steps that write it must have run. `selected` has columns peer and hash."""
        self._require(name)
        frame = self.archive.table(name)
        if name != "selected":
            return frame
        from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user reads

        marks = [(peer.name, rules_mark(peer)) for peer in self.peers]
        named = self.archive.spark.createDataFrame(marks, "peer string, rules string")
        return frame.join(F.broadcast(named), on="rules").select("peer", "hash")

    def _require(self, name: str) -> None:
        """Raise InvalidInput if no step has written a table yet."""
        state = self.archive.log.state()
        step = _WRITTEN_BY.get(name, "ingest")
        if step == "ingest":
            is_there = bool(state.batches)
        else:
            is_there = any(key.partition(":")[0] in _RESULTS[step] for key in state.results)
        if not is_there:
            raise InvalidInput(f"table {name} is not there yet: run the step {step} first", rule="pipeline-order")

    # Steps

    def _ingest(self) -> None:
        self.archive.add(self.settings.inputs, self.settings.split_bytes)

    def _facts(self) -> None:
        self._require("records")

        def work(state: State) -> Commit | None:
            before = state.results.get("facts")
            pending = state.since(before)
            if before is not None and not pending:
                self.archive.progress("facts", "nothing new")
                return None
            read = [file for file in state.table("records") if pending.meets(file)]
            step = Steps(self.archive, state, self._run_settings).step("facts")
            made = step.do(Need(bytes=files_bytes(read)), lambda by: by.facts(pending))
            names = {name.rpartition("/")[2]: name for name in tables.FACTS_TABLES}
            counts = {name: state.rows(table) + _rows(made, table) for name, table in names.items()}
            step.tell(_told(counts))
            result = StepResult(
                mark="facts",
                seen=state.last_batch,
                removals=state.removals,
                counts=counts,
                seconds=step.way.seconds,
                way=step.way,
            )
            return Commit(operation="facts", counts=counts, added=tuple(made), results={"facts": result})

        self.archive.commit(work)

    def _evaluate(self) -> None:
        if not self.peers:
            return
        self._require("records")
        run(self.archive, self.peers, self._run_settings, listings=False)
        for peer in self.peers:
            if peer.listing is not None:
                self._whole_step(
                    f"requestable:{peer.name}",
                    listing_mark(peer),
                    {"requestable": ("peer", peer.name)},
                    partial(self._requestable, peer),
                    partial(_requestable_counts, peer.name),
                )

    def _requestable(self, peer: PeerPolicy, state: State, steps: Steps) -> tuple[list[DataFile], StepWay]:
        step = steps.step(f"requestable from {peer.name}")

        def by_jobs() -> list[DataFile]:
            records = tables.as_wide(self.archive.records_of(state, state.every_batch))
            limits = self.settings.limits or limits_on(self.archive.spark)
            found = requestable_records(records, [peer], limits, self.settings.executor)
            return tables.write(self.archive.spark, self.archive.files, "requestable", found)

        made = step.by_jobs(by_jobs)
        step.tell(f"{_rows(made, 'requestable'):,} records")
        return made, step.way

    def _advertise(self) -> None:
        if self.peers:
            self._require("selected")
            run(self.archive, self.peers, self._run_settings)

    def _reconcile(self) -> None:
        if not self.settings.archives:
            return
        self._require("records")
        others = self.settings.archives

        def work(state: State, steps: Steps) -> tuple[list[DataFile], StepWay]:
            step = steps.step("reconcile")
            made = step.do(Need(held_rows=state.rows("records")), lambda by: by.missing(others))
            step.tell(f"{_rows(made, 'missing'):,} records lack somewhere")
            return made, step.way

        def counts(made: list[DataFile]) -> dict[str, int]:
            found = dict.fromkeys(sorted([*others, "here"]), 0)
            for row in self._rows_of(made, "missing_by_partition"):
                found[str(row["archive"])] += int(str(row["records"]))
            return found

        mark = fingerprint({name: place_mark(path) for name, path in others.items()})
        written = {"missing": None, "missing_by_partition": None}
        self._whole_step("reconcile", mark, written, work, counts)

    def _rows_of(self, made: list[DataFile], table: str) -> list[dict[str, object]]:
        files = [file for file in made if file.table == table]
        if self.archive.files.folder is not None:
            from lace.spark.archive.in_process import select

            found: list[dict[str, object]] = select(self.archive.files, files, tables.SCHEMAS[table].names).to_pylist()
            return found
        frame = tables.read(self.archive.spark, self.archive.files, table, files)
        return [row.asDict() for row in frame.collect()]

    def _report(self) -> None:
        self._require("records")
        others = self.settings.archives
        state = self.archive.log.state()
        known = {key: result.mark for key, result in state.results.items() if key not in ("report", "facts")}
        places = {name: place_mark(path) for name, path in others.items()}

        def work(state: State, steps: Steps) -> tuple[list[DataFile], StepWay]:
            write_report(self.archive, others)
            return [], self.archive.way_of("report")

        def counts(_: list[DataFile]) -> dict[str, int]:
            return {"records": state.rows("records"), "quarantined": state.rows("quarantine")}

        self._whole_step("report", fingerprint({"results": known, "others": places}), {}, work, counts)

    def _publish(self) -> None:
        if not self.peers:
            return
        self._require("selected")
        publish(self.archive, self.peers, self.settings.output / "published", whole=_make_store)

    def _whole_step(
        self,
        key: str,
        mark: str,
        written: Mapping[str, tuple[str, str] | None],
        work: Callable[[State, Steps], tuple[list[DataFile], StepWay]],
        counts: Callable[[list[DataFile]], dict[str, int]],
    ) -> None:
        """A step whose tables take the place of the ones before; of a table that several peers share, one peer's."""

        def change(state: State) -> Commit | None:
            before = state.results.get(key)
            if before is not None and (before.mark, before.seen, before.removals) == (
                mark,
                state.last_batch,
                state.removals,
            ):
                self.archive.progress(key, "nothing new")
                return None
            made, way = work(state, Steps(self.archive, state, self._run_settings))
            dropped = [
                file.path
                for table, owner in written.items()
                for file in state.table(table)
                if owner is None or file.low.get(owner[0]) == owner[1]
            ]
            found = counts(made)
            result = StepResult(
                mark=mark,
                seen=state.last_batch,
                removals=state.removals,
                counts=found,
                seconds=way.seconds,
                way=way,
            )
            return Commit(
                operation=key.partition(":")[0],
                counts=found,
                added=tuple(made),
                dropped=tuple(dropped),
                results={key: result},
            )

        self.archive.commit(change)

    # The manifest

    @property
    def manifest(self) -> Manifest:
        """Everything that the log knows, as steps of the pipeline."""
        state = self.archive.log.state()
        inputs = {
            content: {"path": item.address, "bytes": item.size, "blake3": content, "batch": batch.id}
            for batch in state.batches
            for content, item in batch.inputs.items()
        }
        steps: dict[str, StepRecord] = {}
        for batch in state.batches:
            kept = batch.counts["valid"] + batch.counts["quarantined"]
            read = {name: batch.counts[name] for name in ("files", "read", "repeats")} | {"kept": kept}
            judged = {name: batch.counts[name] for name in ("valid", "quarantined")}
            seconds = 0.0 if batch.way is None else batch.way.seconds
            steps[f"ingest:{batch.id}"] = StepRecord(counts=read, seconds=seconds, way=batch.way)
            steps[f"validate:{batch.id}"] = StepRecord(counts=judged, seconds=0.0, way=batch.way)
        for name in ("facts", "evaluate", "advertise", "reconcile", "publish", "report"):
            steps |= self._step_records(name, state)
        plans = {peer.name: str(peer.policy.plan.id) for peer in self.peers}
        return Manifest(inputs=inputs, batches=list(state.batch_ids), steps=steps, plans=plans, versions=_versions())

    def _step_records(self, step: str, state: State) -> dict[str, StepRecord]:
        if step == "evaluate":
            return self._evaluated(state)
        return {
            key: StepRecord(counts=_plain_counts(key, result.counts), seconds=result.seconds, way=result.way)
            for key, result in state.results.items()
            if key.partition(":")[0] == step
        }

    def _evaluated(self, state: State) -> dict[str, StepRecord]:
        """What each peer may have and may be asked for, which the archive keeps by rules, as one step."""
        counts: dict[str, int] = {}
        seconds, ways = 0.0, []
        for peer in self.peers:
            found = state.results.get(f"selected:{rules_mark(peer)}")
            if found is not None:
                counts[peer.name] = found.counts.get(f"selected {peer.name}", max(found.counts.values(), default=0))
                seconds += found.seconds
                ways.append(found.way)
            asked = state.results.get(f"requestable:{peer.name}")
            if asked is not None:
                counts |= asked.counts
                seconds += asked.seconds
                ways.append(asked.way)
        way = StepWay.together([way for way in ways if way is not None])
        return {"evaluate": StepRecord(counts=counts, seconds=seconds, way=way)} if ways else {}

    def _write_manifest(self) -> Manifest:
        found = self.manifest
        body = (json.dumps({"format": FORMAT, **asdict(found)}, indent=2) + "\n").encode()
        path = self.settings.output / MANIFEST
        if not path.exists() or path.read_bytes() != body:
            self.archive.files.replace(MANIFEST, body)
        return found


_RESULTS = {
    "facts": ("facts",),
    "evaluate": ("selected", "requestable"),
    "advertise": ("advertise",),
    "reconcile": ("reconcile",),
}


def _rows(made: Sequence[DataFile], table: str) -> int:
    return sum(file.rows for file in made if file.table == table)


def _requestable_counts(peer: str, made: Sequence[DataFile]) -> dict[str, int]:
    return {f"{peer} requestable": _rows(made, "requestable")}


def _told(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{key} {value:,}" for key, value in counts.items())


def _plain_counts(key: str, counts: Mapping[str, int]) -> dict[str, int]:
    """Counts without the name of the peer that the step names already."""
    peer = key.partition(":")[2]
    words = {f"listed {peer}": "records", f"published {peer}": "records", f"partitions {peer}": "partitions"}
    return {words.get(name, name): count for name, count in counts.items()}


def _make_store(folder: Path, bundles: Path) -> None:
    """A store ready to serve, with exactly what a peer's bundles hold; each record is validated once more."""
    with open_store(folder / "store.lace", create=True) as store:
        import_bundles(store, sorted(bundles.glob(f"*{BUNDLE_SUFFIX}")))


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in ("lace-protocol", "pyspark", "pyarrow"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "source tree"
    return found
