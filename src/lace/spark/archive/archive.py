"""Change an archive: add, remove, compact. Each change writes new files and then one commit.

Rule: a change is worked out against one version and committed after it, or not at all. If another writer was first, it
is worked out again against what that writer left.
"""

from __future__ import annotations

import sys
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from lace.errors import InvalidInput
from lace.limits import JudgingLimits
from lace.spark.archive.delta import describe
from lace.spark.archive.filesystem import Files, open_files
from lace.spark.archive.log import ArchiveBatch, Commit, DataFile, Input, Log, LostRace, State
from lace.spark.manifest import file_digest
from lace.spark.source.files import input_files
from lace.values import dataclass

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lace.spark.source.files import RawRecord

RETRIES = 5
REBASES = 64
_SMALL_FILE_BYTES = 32 << 20
Progress = Callable[[str, str], None]
Session = Callable[[], "SparkSession"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FewLimits:
    """How much this process does without Spark (`bytes` 0 leaves everything to it), and how much tasks are given."""

    bytes: int = 64 << 20  # of new inputs, and of the files that a step goes through
    held: int = 8 << 20  # of the records that rules look at all at once
    looked_through: int = 4_000_000  # rows of one narrow column that something is looked for in
    sent_to_tasks: int = 1_000_000  # digests, places or hashes that every task of a job is given


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


class Archive:
    """An archive under one address. A session is only asked for when there is work for one."""

    def __init__(
        self,
        uri: str,
        session: Session | None = None,
        *,
        progress: Progress = silent,
        few: FewLimits | None = None,
        judging: JudgingLimits | None = None,
    ) -> None:
        self._session = session
        self.uri = uri
        self._told = progress
        self._said = threading.local()  # what each thread said last: changes are worked out side by side
        self.few = few or FewLimits()  # what is done by this process alone
        self.judging = judging or JudgingLimits()

    def progress(self, step: str, what: str) -> None:
        """Say what is done."""
        self._said.step = step
        self._told(step, what)

    @cached_property
    def spark(self) -> SparkSession:
        if self._session is not None:
            return self._session()
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
        if self.log.versions():
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
        self._said.step = "archive"
        try:
            return work(state)
        except Exception as error:
            if "pyspark" not in sys.modules:  # no job has run, and none can have failed
                raise
            from lace.spark.session.failure import plainly

            plain = plainly(self._said.step, error)
            if plain is None:
                raise
            raise plain from error

    # Adding

    def new_inputs(self, paths: Sequence[Path], state: State) -> dict[str, Input]:
        """The files that were not read yet, by content; a file of known name, length and time is not opened."""
        seen = {(i.address, i.size, i.modified_ns) for batch in state.batches for i in batch.inputs.values()}
        known = state.contents
        new: dict[str, Input] = {}
        for path in input_files(paths):
            stat = path.stat()
            if (str(path), stat.st_size, stat.st_mtime_ns) in seen or not stat.st_size:
                continue
            content = file_digest(path)
            if content not in known:
                new.setdefault(content, Input(address=str(path), size=stat.st_size, modified_ns=stat.st_mtime_ns))
        return new

    def add(self, paths: Sequence[Path], split_bytes: int = 64 << 20) -> State:
        """Read what is new in some files and folders as one batch."""

        def work(state: State) -> Commit | None:
            new = self.new_inputs(paths, state)
            if not new:
                self.progress("add", "nothing new")
                return None
            from lace.spark.archive import few

            self.progress("add", f"reading {len(new):,} files")
            if few.can_add(self.few, self.files, state, new.values()):
                return self.small_addition(state, few.read_inputs(new.values()), new)
            from lace.spark.source.source import raw_records

            addresses = [Path(item.address) for item in new.values()]
            raw = partial(raw_records, self.spark, addresses, split_bytes, limits=self.judging)
            return self.addition(state, raw, new)

        return self.commit(work)

    def addition(self, state: State, raw: Callable[..., DataFrame], inputs: Mapping[str, Input]) -> Commit:
        """The records of some frames that are not here yet, judged once; two passes: places first, then the bytes."""
        from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user reads

        from lace.spark.archive import tables
        from lace.spark.jobs import ingest, validate

        places = raw(ingest.PLACES).persist()
        known = self._known_contents(state)
        few = known is not None and places.count() <= self.few.sent_to_tasks
        repeated = ingest.repeats(places, known, few=few).persist()
        copies = repeated.count()
        few = copies <= self.few.sent_to_tasks
        fresh = ingest.first_copies(raw(), None, F.broadcast(repeated) if few else repeated)
        judged = validate.judged(fresh, keep_bytes=True, limits=self.judging)
        batch = _batch_id(state)
        added = self._write_judged(judged, batch)
        repeated.unpersist()
        places.unpersist()
        records = [file for file in added if file.table == "records"]
        narrow = tables.read(self.spark, self.files, "records", records)
        valid = sum(file.rows for file in records)
        order = tables.ORDERS["coordinates"]
        added += tables.write(self.spark, self.files, "coordinates", narrow, by=order, rows=valid)
        judged_rows = valid + sum(file.rows for file in added if file.table == "quarantine")
        return self._addition(batch, inputs, judged_rows + copies, added)

    def _known_contents(self, state: State) -> DataFrame | None:
        """The digests of everything that was ever read; None if that is nothing."""
        from lace.spark.engine.relations import union

        held = [name for name in ("records", "quarantine") if state.table(name)]
        return union(self._frame(state, name).select("content") for name in held) if held else None

    def small_addition(self, state: State, found: Iterable[RawRecord], inputs: Mapping[str, Input]) -> Commit:
        """The same for records that this process reads, without Spark."""
        from lace.spark.archive import few

        batch = _batch_id(state)
        return self._addition(batch, inputs, *few.added(self.files, state, found, batch, self.judging))

    def _addition(self, batch: str, inputs: Mapping[str, Input], read: int, added: Sequence[DataFile]) -> Commit:
        valid, bad = (sum(file.rows for file in added if file.table == name) for name in ("records", "quarantine"))
        counts = {"files": len(inputs), "read": read, "repeats": read - valid - bad, "valid": valid, "quarantined": bad}
        self.progress("add", ", ".join(f"{key} {value:,}" for key, value in counts.items()))
        made = ArchiveBatch(id=batch, inputs=dict(inputs), counts=counts)
        return Commit(operation="add", counts=counts, added=tuple(added), batch=made)

    def _write_judged(self, judged: DataFrame, batch: str) -> list[DataFile]:
        """Records and quarantine in one pass: bytes are read, judged and written once."""
        from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user reads

        from lace.spark.archive import tables

        folder = f"data/records/{uuid.uuid4().hex}"
        frame = judged.select("*", tables.timestamp(F.col("tai")).alias("ts"), F.lit(batch).alias("batch")).withColumn(
            "headers", tables.header_map(F.col("headers"))
        )
        kind = F.when(F.col("rule").isNull(), "records").otherwise("quarantine").alias("kind")
        names = dict.fromkeys([*tables.SCHEMAS["records"].names, "rule", "reason"])
        writer = frame.select(*names, kind).write.partitionBy("kind").options(**tables.BLOOM)
        writer.parquet(f"{self.files.uri}/{folder}")
        made: list[DataFile] = []
        for table in ("records", "quarantine"):
            listed = self.files.listing(f"{folder}/kind={table}")
            made += tables.described(self.spark, self.files, table, listed)
        return made

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
            self._frame(state, name).createOrReplaceTempView(f"{prefix}{name}")
        return [f"{prefix}{name}" for name in tables.SCHEMAS]

    def records_of(self, state: State, batches: Sequence[str]) -> DataFrame:
        """The records that some batches brought."""
        if set(batches) == set(state.batch_ids):
            return self._frame(state, "records")
        wanted = set(batches)
        files = [file for file in state.table("records") if wanted & set(file.batches)]
        rows = self._frame(state, "records", files)
        return rows if all(wanted >= set(file.batches) for file in files) else rows.where(rows["batch"].isin(*wanted))

    def lookup(self, question: ArchiveLookup, state: State | None = None) -> tuple[DataFrame, list[DataFile]]:
        """The records that a question asks for, and the files that are read for it."""
        from lace.spark.archive import find

        return find.lookup(self._frame, self.log.state() if state is None else state, question)

    # Removing and compacting

    def remove(self, hashes: DataFrame | Sequence[str], operation: str = "remove") -> State:
        """Take records away: the files that hold them are written anew without them."""
        from lace.spark.archive import rewrite

        def work(state: State) -> Commit | None:
            added, dropped, rows = rewrite.without(self, state, hashes)
            if not dropped:
                self.progress(operation, "nothing to remove")
                return None
            counts = {"removed": rows, "files": len(dropped)}
            self.progress(operation, ", ".join(f"{key} {value:,}" for key, value in counts.items()))
            return Commit(operation=operation, counts=counts, added=tuple(added), dropped=tuple(dropped), removal=True)

        return self.commit(work)

    def compact(self, small_bytes: int = _SMALL_FILE_BYTES, file_rows: int = 1_000_000) -> State:
        """Write small files together, in the order that lookups prune by."""
        from lace.spark.archive import rewrite

        def work(state: State) -> Commit | None:
            added, dropped = rewrite.compacted(self, state, small_bytes, file_rows)
            if not dropped:
                self.progress("compact", "nothing to do")
                return None
            counts = {"files before": len(dropped), "files after": len(added)}
            self.progress("compact", ", ".join(f"{key} {value:,}" for key, value in counts.items()))
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
        self.progress("gc", f"{len(gone):,} files of older versions removed")
        return state
