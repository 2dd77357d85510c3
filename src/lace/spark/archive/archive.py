"""Change an archive: add, remove, compact. Each change writes new files and then one commit.

Rule: a change is worked out against one version and committed after it, or not at all. If another writer was first, it
is worked out again against what that writer left.
"""

from __future__ import annotations

import sys
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, NoReturn

from lace.errors import InvalidInput
from lace.limits import JudgingLimits
from lace.spark.archive.delta import describe
from lace.spark.archive.filesystem import Files, open_files
from lace.spark.archive.log import Log
from lace.spark.archive.versions import ArchiveBatch, BatchRange, Commit, DataFile, Input, LostRace, State, StepWay
from lace.spark.source.files import content_mark, input_stats
from lace.spark.source.places import Place
from lace.thresholds import ArchiveThresholds
from lace.values import dataclass

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lace.spark.archive.executors import Addition, Need, NewRecords
    from lace.spark.archive.forget import ForgottenHere
    from lace.spark.engine.joins import JoinChoice
    from lace.spark.source.files import RawRecord

RETRIES = 5
REBASES = 64
SMALL_FILE_BYTES = 32 << 20
Progress = Callable[[str, str], None]
Session = Callable[[], "SparkSession"]


def silent(step: str, what: str) -> None:
    """Say nothing."""


@dataclass(frozen=True, slots=True)
class ArchiveLookup:
    """What a lookup asks for; every part that is given must hold."""

    hashes: tuple[str, ...] = ()
    group: str | None = None
    app: str | None = None
    name: str | None = None
    since: str | None = None  # times in ISO 8601, UTC unless they say their zone; both belong to what is asked for
    until: str | None = None


def _batch_id(state: State) -> str:
    return f"{state.version + 1:08d}-{uuid.uuid4().hex[:8]}"


def _view(prefix: str, table: str) -> str:
    return f"{prefix}{table.replace('/', '_')}"


def addition_need(state: State, inputs: Iterable[Input]) -> Need:
    """What adding some inputs has to go through."""
    from lace.spark.archive.contents import uncovered_files
    from lace.spark.archive.executors import Need, files_rows

    return Need(bytes=sum(given.size for given in inputs), scanned_rows=files_rows(uncovered_files(state)))


class _InputFiles:
    """The records of bundles and stores."""

    def __init__(self, archive: Archive, addresses: Sequence[str], split_bytes: int) -> None:
        self._archive = archive
        self._addresses = addresses
        self._split_bytes = split_bytes

    def rows(self) -> Iterator[RawRecord]:
        from lace.spark.archive.in_process import read_inputs

        return read_inputs(self._addresses)

    def frame(self, columns: Sequence[str] | None = None) -> DataFrame:
        from lace.spark.source.schemas import RAW
        from lace.spark.source.source import raw_records

        paths = list(self._addresses)
        chosen = tuple(RAW.names) if columns is None else columns
        return raw_records(self._archive.spark, paths, self._split_bytes, chosen, self._archive.judging)


class Archive:
    """An archive under one address.

    A session that is handed in means Spark. A function that starts one is called when there is work for it: which steps
    those are is decided from sizes (`executors`), unless the user `wants_spark`.
    """

    def __init__(
        self,
        uri: str,
        session: SparkSession | Session | None = None,
        *,
        progress: Progress = silent,
        thresholds: ArchiveThresholds | None = None,
        judging: JudgingLimits | None = None,
        wants_spark: bool = False,
        max_quarantined: float | None = None,
        tell_every_s: float = 10.0,
    ) -> None:
        self._session = session
        self.uri = uri
        self._told = progress
        self._thread = threading.local()  # the step that each thread is at: changes are worked out side by side
        self.thresholds: ArchiveThresholds = thresholds or ArchiveThresholds()
        self.judging: JudgingLimits = judging or JudgingLimits()
        self.tell_every_s = tell_every_s  # how far the jobs of a step are
        self.max_quarantined: float | None = max_quarantined  # the share of what an addition brings; None for any
        self._forgotten: tuple[tuple[str, ...], frozenset[str]] = (), frozenset()  # and the files that say so
        self.wants_spark: bool = wants_spark or (session is not None and not callable(session))

    def progress(self, step: str, what: str) -> None:
        """Say what is done."""
        self._thread.step = step
        self._told(step, what)

    def say_step(self, step: str) -> None:
        """A step begins: if a job of it fails, that is told with its name."""
        self._thread.step = step

    def step_done(self, step: str, what: str, way: StepWay) -> None:
        """Say what came out of a step and who carried it out; the commit will say it too."""
        self._ways[step] = way
        self.progress(step, f"{what} ({way})")

    @property
    def _ways(self) -> dict[str, StepWay]:
        """Of the change that this thread works out."""
        found: dict[str, StepWay] = self._thread.__dict__.setdefault("ways", {})
        return found

    def way_of(self, step: str) -> StepWay:
        """Who carried out a step of the change that this thread works out."""
        return self._ways[step]

    @cached_property
    def joins(self) -> JoinChoice:
        """How jobs join with hashes: of one narrow column more rows fit into a task than of a relation."""
        from lace.spark.engine.joins import JoinChoice

        return JoinChoice(broadcast_rows=self.thresholds.broadcast_rows, task_rows=self.thresholds.task_rows)

    @cached_property
    def spark(self) -> SparkSession:
        if self._session is not None:
            return self._session() if callable(self._session) else self._session
        from lace.spark.session.session import spark_session

        return spark_session(app_name="lace archive")

    @cached_property
    def files(self) -> Files:
        local = "://" not in self.uri and not self.uri.startswith("viewfs:")
        return open_files(self.uri, None if local else self.spark)

    @cached_property
    def log(self) -> Log:
        return Log(self.files)

    def init(self) -> State:
        """Make an empty archive; one that is there stays as it is."""
        if self.log.newest():
            raise InvalidInput("there is an archive already", rule="archive-exists", place=self.files.uri)
        return self.log.commit(State(), Commit(operation="init"))

    def commit(
        self, work: Callable[[State], Commit | None], stands: Callable[[Commit, State, State], bool] | None = None
    ) -> State:
        """Work out a change and commit it; None from `work` means that there is nothing to change.

        Where another writer was first, `stands` may say that the change holds after that one too, as it is.
        """
        for _ in range(RETRIES):
            state = self.log.state()
            change = self._worked_out(work, state)
            if change is None:
                return state
            for _ in range(REBASES):
                try:
                    after = self.log.commit(state, change)
                except LostRace:
                    before, state = state, self.log.state()
                    if stands is None or not stands(change, before, state):
                        break
                else:
                    describe(self.files, self.log, after)
                    return after
            self.progress(change.operation, f"version {before.version + 1} went to another writer: again")
        raise LostRace(f"{self.files.uri}: other writers were first {RETRIES} times; run again when they have finished")

    def _worked_out(self, work: Callable[[State], Commit | None], state: State) -> Commit | None:
        """The change; a job that fails is told with the step that was said last."""
        self._thread.step = "archive"
        self._thread.ways = {}
        try:
            change = work(state)
            return None if change is None else replace(change, ways=self._ways)
        except Exception as error:
            if "pyspark" not in sys.modules:  # no job has run, and none can have failed
                raise
            from lace.spark.session.failure import plainly

            plain = plainly(self._thread.step, error)
            if plain is None:
                raise
            raise plain from error

    # Adding

    def new_inputs(self, paths: Sequence[Place | str], state: State) -> dict[str, Input]:
        """The files that were not read yet, by content; a file of known name, length and time is not opened."""
        seen = {(i.address, i.size, i.modified_ns) for batch in state.batches for i in batch.inputs.values()}
        known = state.contents
        files = [
            (path, stat)
            for path, stat in input_stats(paths)
            if stat.st_size and (str(path), stat.st_size, stat.st_mtime_ns) not in seen
        ]
        new: dict[str, Input] = {}
        with ThreadPoolExecutor(self.thresholds.digesting_threads) as pool:  # hashing and reading let each other run
            for (path, stat), content in zip(files, pool.map(lambda file: content_mark(*file), files), strict=True):
                if content not in known:
                    new.setdefault(content, Input(address=str(path), size=stat.st_size, modified_ns=stat.st_mtime_ns))
        return new

    def add(self, paths: Sequence[Place | str], split_bytes: int = 64 << 20) -> State:
        """Read what is new in some files and folders as one batch."""

        def work(state: State) -> Commit | None:
            new = self.new_inputs(paths, state)
            if not new:
                self.progress("add", "nothing new")
                return None
            self.progress("add", f"reading {len(new):,} file{'' if len(new) == 1 else 's'}")
            return self.addition(state, _InputFiles(self, [item.address for item in new.values()], split_bytes), new)

        return self.commit(work)

    def addition(self, state: State, found: NewRecords, inputs: Mapping[str, Input]) -> Commit:
        """The records that are not here yet, judged once, as a batch."""
        from lace.spark.archive.executors import Steps

        step = Steps(self, state).step("add")
        batch = _batch_id(state)
        added = step.do(addition_need(state, inputs.values()), lambda executor: executor.add(found, batch))
        valid, bad = (
            sum(file.rows for file in added.files if file.table == name) for name in ("records", "quarantine")
        )
        if self.max_quarantined is not None and bad > self.max_quarantined * (valid + bad):
            self._refuse(added, inputs, bad, valid + bad)
        counts = {"files": len(inputs), "read": added.read, "repeats": added.read - valid - bad - added.forgotten}
        counts |= {"valid": valid, "quarantined": bad}
        counts |= {"forgotten": added.forgotten} if added.forgotten else {}
        step.tell(", ".join(f"{key} {value:,}" for key, value in counts.items()))
        made = ArchiveBatch(id=batch, inputs=dict(inputs), counts=counts, way=self.way_of("add"))
        return Commit(
            operation="add", counts=counts, added=tuple(added.files), dropped=tuple(added.dropped), batch=made
        )

    def _refuse(self, added: Addition, inputs: Mapping[str, Input], bad: int, new: int) -> NoReturn:
        """An addition is worse than expected: nothing of it stays, and the error says what is wrong with it."""
        from lace.spark.archive.find import rules_broken

        broken = rules_broken(self.files, [file for file in added.files if file.table == "quarantine"])
        for file in added.files:
            self.files.remove(file.path)
        first, *others = sorted(item.address for item in inputs.values()) or ["records of peers"]
        most = f"at most {100 * (self.max_quarantined or 0):g} %"
        raise InvalidInput(
            f"{most} of the new records may go to quarantine, so nothing was added{broken}",
            rule="max-quarantined",
            place=f"{first} and {len(others)} more" if others else first,
            found=f"{bad:,} of {new:,}",
        )

    # Reading

    def _frame(self, state: State, table: str, chosen: Iterable[DataFile] | None = None) -> DataFrame:
        from lace.spark.archive import tables

        return tables.read(self.spark, self.files, table, list(state.table(table) if chosen is None else chosen))

    def table(self, name: str, as_of: int | str | None = None) -> DataFrame:
        """A table as it is now, or as it was."""
        return self._frame(self.log.state(as_of), name)

    def create_views(self, prefix: str = "", as_of: int | str | None = None) -> list[str]:
        """Every table as a temporary view, one version for all; their names."""
        from lace.spark.archive import tables

        state = self.log.state(as_of)
        for name in tables.SCHEMAS:
            self._frame(state, name).createOrReplaceTempView(_view(prefix, name))
        return [_view(prefix, name) for name in tables.SCHEMAS]

    def records_of(self, state: State, batches: BatchRange) -> DataFrame:
        """The records that some batches brought."""
        files = [file for file in state.table("records") if batches.meets(file)]
        rows = self._frame(state, "records", files)
        if all(map(batches.holds, files)):
            return rows
        return rows.where((rows["batch"] > batches.after) & (rows["batch"] <= batches.last))

    def lookup(self, question: ArchiveLookup, state: State | None = None) -> tuple[DataFrame, list[DataFile]]:
        """The records that a question asks for, and the files that are read for it."""
        from lace.spark.archive import find

        return find.lookup(self._frame, self.log.state() if state is None else state, question)

    # Forgetting

    def forget(self, *targets: str) -> ForgottenHere:
        """Take records out for good: hashes, or coordinates with all their versions. They never come in again.

        Every older version goes with them, and what is derived is worked out from nothing by the next run.
        """
        from lace.spark.archive import forget

        return forget.forget(self, targets)

    def take_again(self, *hashes: str) -> int:
        """Let forgotten records come in again; how many were forgotten."""
        from lace.spark.archive import forget

        return forget.take_again(self, hashes)

    def forgotten(self, state: State | None = None) -> frozenset[str]:
        """The hashes of all that was forgotten here."""
        state = self.log.state() if state is None else state
        paths = tuple(file.path for file in state.table("forgotten"))
        if self._forgotten[0] != paths:
            from lace.spark.archive.forget import read_list

            self._forgotten = paths, read_list(self.files, state)
        return self._forgotten[1]

    # Removing and compacting

    def remove(self, hashes: DataFrame | Sequence[str], operation: str = "remove") -> State:
        """Take records away: the files that hold them are written again without them."""
        from lace.spark.archive import rewrite
        from lace.spark.archive.executors import Need, Steps

        def work(state: State) -> Commit | None:
            step = Steps(self, state).step(operation)
            if isinstance(hashes, Sequence):
                added, dropped, rows = step.do(Need(), lambda by: by.without(hashes, for_good=False))
            else:
                added, dropped, rows = step.by_jobs(lambda: rewrite.without(self, state, hashes))
            if not dropped:
                self.progress(operation, "nothing to remove")
                return None
            counts = {"removed": rows, "files": len(dropped)}
            step.tell(", ".join(f"{key} {value:,}" for key, value in counts.items()))
            return Commit(operation=operation, counts=counts, added=tuple(added), dropped=tuple(dropped), removal=True)

        return self.commit(work)

    def compact(self, small_bytes: int = SMALL_FILE_BYTES, file_rows: int = 1_000_000) -> State:
        """Write small files together, in the order that lookups prune by."""
        from lace.spark.archive import rewrite
        from lace.spark.archive.executors import Steps

        def work(state: State) -> Commit | None:
            if not rewrite.is_worth_compacting(state, small_bytes, is_here=self.files.folder is not None):
                self.progress("compact", "nothing to do")
                return None
            step = Steps(self, state).step("compact")
            added, dropped = step.by_jobs(lambda: rewrite.compacted(self, state, small_bytes, file_rows))
            counts = {"files before": len(dropped), "files after": len(added)}
            step.tell(", ".join(f"{key} {value:,}" for key, value in counts.items()))
            return Commit(operation="compact", counts=counts, added=tuple(added), dropped=tuple(dropped))

        return self.commit(work)

    def vacuum(self, versions: int) -> State:
        """Delete the files that only versions older than the newest so many need, and what crashed writers left."""
        from lace.spark.archive import rewrite

        def work(state: State) -> Commit | None:
            _, oldest = rewrite.unreferenced(self, state, versions)
            return Commit(operation="vacuum", oldest=oldest) if oldest > state.oldest else None

        state = self.commit(work)  # first nobody may ask for them any more, then they go
        gone, _ = rewrite.unreferenced(self, state, state.version - state.oldest + 1)
        for name in gone:
            self.files.remove(name)
        commits = self.log.forget(state.oldest, rewrite.WRITING_SECONDS)
        self.progress("gc", f"{len(gone):,} files of older versions removed, {commits:,} commits of their log")
        return state
