"""The steps of an archive carried out by jobs of Spark.

Rule: what is large stays on the cluster. The driver sees commits, counts and what is short; how frames are joined is
said by `JoinChoice`.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user reads

from lace.records.manifest import CHUNK_LINK
from lace.spark.archive import contents, in_process, rewrite, tables
from lace.spark.archive.executors import Addition, ChangedListing, Cut, NewRecords, RunSettings, Unseen, files_rows
from lace.spark.archive.filesystem import open_files
from lace.spark.archive.forget import DESCRIBED, DescribedRecord, described_record
from lace.spark.archive.log import FOLDER, Log
from lace.spark.archive.peer_records import Ends, WantedRecords, ends_of, records_for
from lace.spark.archive.versions import BatchRange, DataFile, State
from lace.spark.engine.executor import limits_on
from lace.spark.engine.relations import union
from lace.spark.jobs import advertise, facts, ingest, reconcile, report, validate
from lace.spark.jobs.evaluate import PeerPolicy, sendable
from lace.spark.jobs.report import Counts, ReportCounts
from lace.spark.source.schemas import RAW
from lace.spark.source.source import FORMAT, raw_records

if TYPE_CHECKING:
    from lace.spark.archive.archive import Archive


class OnSpark:
    """The steps, over one version of an archive wherever it lies."""

    def __init__(self, archive: Archive, state: State, settings: RunSettings) -> None:
        self._archive = archive
        self._spark = archive.spark
        self._files = archive.files
        self._state = state
        self._settings = settings

    def _read(self, table: str, files: Sequence[DataFile] | None = None) -> DataFrame:
        chosen = self._state.table(table) if files is None else files
        return tables.read(self._spark, self._files, table, list(chosen))

    def _write(
        self, table: str, frame: DataFrame, *, by: Sequence[str] = (), rows: int = 0, move: bool = True
    ) -> list[DataFile]:
        return tables.write(self._spark, self._files, table, frame, by=by, rows=rows, move=move)

    # Adding

    def add(self, found: NewRecords, batch: str) -> Addition:
        """Two passes: places and digests alone first, then the bytes of what is new."""
        claimed = ("hash",) if self._archive.forgotten(self._state) else ()
        read = found.frame((*ingest.PLACES, *claimed)).persist()
        places = self._but_forgotten(read).select(*ingest.PLACES).persist() if claimed else read
        left_out = read.count() - places.count() if claimed else 0
        has_any = any(self._state.table(name) for name in ("records", "quarantine"))
        sent = places.count() if has_any else None
        known = None if sent is None else self._known_contents(places, sent)
        repeated = ingest.repeats(places, known, few=self._archive.joins.is_short(sent)).persist()
        copies = repeated.count()
        frame = self._but_forgotten(found.frame()).select(*RAW.names)
        fresh = ingest.first_copies(frame, None, self._archive.joins.hinted(repeated, copies))
        judged = validate.judged(fresh, keep_bytes=True, limits=self._archive.judging)
        added = self._write_judged(judged, batch)
        repeated.unpersist()
        places.unpersist()
        read.unpersist()
        records = [file for file in added if file.table == "records"]
        order = tables.ORDERS["coordinates"]
        added += self._write("coordinates", self._read("records", records), by=order, rows=files_rows(records))
        made = [file for file in added if file.table in ("records", "quarantine")]
        digests, dropped = self._write_contents(made, batch)
        return Addition(files_rows(made) + copies + left_out, added + digests, dropped, left_out)

    def _but_forgotten(self, rows: DataFrame) -> DataFrame:
        """Without what claims a hash that was forgotten here."""
        gone = self._archive.forgotten(self._state)
        if not gone:
            return rows
        listed = self._spark.createDataFrame([(text,) for text in gone], "hash string")
        return rows.join(self._archive.joins.hinted(listed, len(gone)), on="hash", how="left_anti")

    # Removing

    def described(self, hashes: Sequence[str]) -> list[DescribedRecord]:
        files = tables.holding(self._state.table("records"), "hash", hashes)
        if not files:
            return []
        named = self._spark.createDataFrame([(text,) for text in hashes], "hash string")
        rows = self._archive.joins.chosen(self._read("records", files).select(*DESCRIBED), named, len(hashes))
        return [described_record(row.asDict(recursive=True)) for row in rows.collect()]

    def links_to(self, hashes: Sequence[str]) -> list[tuple[str, str]]:
        if not hashes:
            return []
        links = self._read("records").select("hash", F.explode("links").alias("link"))
        targets = links.select("hash", F.col("link")["target"].alias("target"))
        named = self._spark.createDataFrame([(text,) for text in hashes], "target string")
        found = targets.join(self._archive.joins.hinted(named, len(hashes)), on="target", how="left_semi")
        return [(row["hash"], row["target"]) for row in found.collect()]

    def without(self, hashes: Sequence[str], *, for_good: bool) -> Cut:
        return rewrite.without(self._archive, self._state, hashes, for_good=for_good)

    def _known_contents(self, places: DataFrame, rows: int) -> DataFrame | None:
        """The digests that were read before: those among the places, and all whose digests are in no file."""
        folder = self._files.folder
        if folder is None:  # workers read digests by offsets, which they cannot through Hadoop
            return self._contents_of([*self._state.table("records"), *self._state.table("quarantine")])
        parts = []
        if rows > self._archive.thresholds.looked_up_digests:
            parts.append(contents.known_by_job(self._files, self._state, places, rows))
        else:
            wanted = (row["content"] for row in places.select("content").distinct().collect())
            known = contents.Lookup(folder, self._state, wanted).known
            parts += [self._spark.createDataFrame([(content,) for content in known], "content string")] if known else []
        rest = self._contents_of(contents.uncovered_files(self._state))
        parts += [] if rest is None else [rest]
        return union(parts) if parts else None

    def _contents_of(self, held: Sequence[DataFile]) -> DataFrame | None:
        """What was read for some files; None for no files."""
        by_table = {name: [file for file in held if file.table == name] for name in ("records", "quarantine")}
        parts = [self._read(name, files).select("content") for name, files in by_table.items() if files]
        return union(parts) if parts else None

    def _write_contents(self, judged: Sequence[DataFile], batch: str) -> tuple[list[DataFile], list[str]]:
        """The digests of a new batch, by this process if it can hold them."""
        rows = files_rows(judged)
        if self._files.folder is None or not rows:
            return [], []
        if rows <= self._archive.thresholds.looked_up_digests:
            by_table = [[file for file in judged if file.table == name] for name in ("records", "quarantine")]
            found = [in_process.select(self._files, files, ["content"])["content"] for files in by_table]
            digests = pa.chunked_array([chunk for column in found for chunk in column.chunks], pa.string())
            return contents.write(self._files, self._state, digests, batch)
        frame = self._contents_of(judged)
        assert frame is not None
        return contents.write_by_job(self._files, contents.CONTENTS, frame, rows, (batch, batch)), []

    def _write_judged(self, judged: DataFrame, batch: str) -> list[DataFile]:
        """Records and quarantine in one pass: bytes are read, judged and written once."""
        folder = f"data/records/{uuid.uuid4().hex}"
        frame = judged.select("*", tables.timestamp(F.col("tai")).alias("ts"), F.lit(batch).alias("batch")).withColumn(
            "headers", tables.header_map(F.col("headers"))
        )
        kind = F.when(F.col("rule").isNull(), "records").otherwise("quarantine").alias("kind")
        names = dict.fromkeys([*tables.SCHEMAS["records"].names, "rule", "reason"])
        writer = frame.select(*names, kind).write.partitionBy("kind").options(**tables.spark_form("records"))
        writer.parquet(f"{self._files.uri}/{folder}")
        made: list[DataFile] = []
        for table in ("records", "quarantine"):
            listed = self._files.listing(f"{folder}/kind={table}")
            made += tables.described(self._spark, self._files, table, listed)
        return made

    # What peers may have

    def are_about_parts(self, files: Sequence[DataFile]) -> bool:
        named = F.exists("links", lambda link: link["name"] == CHUNK_LINK)
        by_table = {table: [file for file in files if file.table == table] for table in ("records", "removed")}
        return any(
            not self._read(table, held).where((F.col("type") == "B") | named).isEmpty()
            for table, held in by_table.items()
            if held
        )

    def select(self, peer: PeerPolicy, mark: str, batches: BatchRange, *, apart: bool) -> list[DataFile]:
        records = tables.as_wide(self._archive.records_of(self._state, batches))
        limits = self._settings.limits or limits_on(self._spark)
        found = sendable(records, peer, limits, self._settings.executor)
        hashes = found.frame(peer.policy.sendable).select(F.col("c0").alias("hash"))
        frame = hashes.select(F.lit(mark).alias("rules"), "hash", F.lit(batches.last).alias("batch"))
        made = self._write("selected", frame)
        found.release()
        return made

    def advertise(self, peer: PeerPolicy, chosen: Sequence[DataFile], batches: BatchRange) -> list[DataFile]:
        ends = ends_of(chosen)
        wanted = WantedRecords(self._read("selected", chosen).select("hash"), ends, batches)
        records = records_for(self._archive, self._state, peer, wanted)
        plan = peer.policy.plan
        fields = None if plan.requirements.all_fields else frozenset(plan.requirements.names)
        source = plan.operands[peer.policy.local_index].origin
        listing = advertise.advertisements(records, source, fields).withColumn("peer", F.lit(peer.name))
        return self._write("advertisements", listing, by=("hash",), rows=ends.rows, move=False)

    def summarise(self, listing: ChangedListing) -> list[DataFile]:
        if not listing.old:
            frame = advertise.partitions(self._read("advertisements", listing.held))
        else:
            old = self._read("partitions", listing.old)
            parts = [self._read("advertisements", listing.new).select("prefix")]
            parts += [] if listing.went is None else [listing.went.select(reconcile.partition_prefix())]
            # At most as many as there are partitions (050-PART-03): with their names files and row groups are pruned.
            touched = sorted(row["prefix"] for row in union(parts).distinct().collect())
            near = self._read("advertisements", tables.holding(listing.held, "prefix", touched))
            frame = advertise.partitions(near.where(F.col("prefix").isin(touched)))
            frame = frame.unionByName(old.where(~F.col("prefix").isin(touched)).select(*frame.columns))
        one_file = frame.withColumn("peer", F.lit(listing.peer)).repartition(1)  # as many tasks as before for the roots
        return self._write("partitions", one_file)

    def publish(
        self, peer: PeerPolicy, unseen: Unseen, given: Sequence[DataFile], place: str
    ) -> tuple[int, list[DataFile]]:
        rows = self._read("selected", unseen.files)
        is_new = (F.col("batch") > unseen.batches.after) & (F.col("batch") <= unseen.batches.last)
        selected = (rows if unseen.is_all else rows.where(is_new)).select("hash")
        if unseen.is_all and not given:
            fresh, ends, is_all = selected, ends_of(unseen.files), True  # whole files: their commit knows
        else:
            fresh = self._not_given(selected, unseen, given).persist()
            ends = Ends(*fresh.agg(F.min("hash"), F.max("hash"), F.count(F.lit(1))).collect()[0])
            is_all = not given or ends.rows == selected.count()
        made: list[DataFile] = []
        if ends.rows:
            wanted = WantedRecords(fresh, ends, unseen.batches, is_all)
            records = records_for(self._archive, self._state, peer, wanted)
            records.select("stored").write.format(FORMAT).mode("overwrite").save(place)
            named = fresh.select(F.lit(peer.name).alias("peer"), reconcile.partition_prefix(), "hash")
            made = self._write("published", named, by=("hash",), rows=ends.rows, move=False)
        fresh.unpersist()
        return ends.rows, made

    def _not_given(self, hashes: DataFrame, unseen: Unseen, held: Sequence[DataFile]) -> DataFrame:
        """Those of some hashes that are not among what a peer was given."""
        if not held:
            return hashes
        given = self._read("published", held).select("hash")
        if self._archive.joins.is_short(files_rows(unseen.files)):
            given = self._archive.joins.met(given, hashes, ["hash"])
        return hashes.join(given, on="hash", how="left_anti")

    # Tables of the pipeline

    def facts(self, batches: BatchRange) -> list[DataFile]:
        records = tables.as_wide(self._archive.records_of(self._state, batches))
        found = facts.narrow_facts(records).items()
        return [
            file
            for predicate, frame in found
            for table in [tables.facts_table(predicate)]
            for file in self._write(table, frame.toDF(*tables.SCHEMAS[table].names))
        ]

    def missing(self, others: Mapping[str, Path]) -> list[DataFile]:
        apart = reconcile.missing_records(self._everywhere(others))
        made = self._write("missing", apart)
        counted = reconcile.missing_by_partition(self._read("missing", made))
        return made + self._write("missing_by_partition", counted)

    def _everywhere(self, others: Mapping[str, Path]) -> dict[str, DataFrame]:
        here = {"here": self._read("records").select("hash")}
        return here | {name: self._hashes_at(path) for name, path in others.items()}

    def _hashes_at(self, path: Path) -> DataFrame:
        """The hashes of the records at a place: another archive, a Parquet table, or bundles and stores."""
        if (path / FOLDER).is_dir():
            files = open_files(str(path))
            held = Log(files).state().table("records")
            return tables.read(self._spark, files, "records", held).select("hash")
        if path.is_dir() and any(path.glob("*.parquet")):
            return self._spark.read.parquet(str(path)).select("hash")
        # Only what is asked for leaves the tasks: a function of Python is given no hint that nobody reads the bytes.
        raw = raw_records(self._spark, [path], columns=("hash", "rule"))
        return raw.where("rule is null and hash is not null").select("hash")

    # The report

    def count(self, others: Mapping[str, Path]) -> tuple[ReportCounts, dict[str, Counts]]:
        missing = report.missing_counts(self._lacking()) if self._state.table("advertisements") else {}
        if others:
            apart = reconcile.missing_records(self._everywhere(others))
            missing |= report.missing_counts(reconcile.missing_by_partition(apart))
        listed = self._read("advertisements").select("peer", "hash") if self._state.table("advertisements") else None
        refused = self._read("quarantine") if self._state.table("quarantine") else None
        return report.count(self._read("records"), refused, listed), missing

    def _lacking(self) -> DataFrame:
        """(archive, prefix, records): how many records each peer may have and was not given, by partition."""
        listed, given = (self._read(name).select("peer", "hash") for name in ("advertisements", "published"))
        missing = listed.join(given, on=["peer", "hash"], how="left_anti")
        counted = missing.groupBy("peer", reconcile.partition_prefix()).agg(F.count(F.lit(1)).alias("records"))
        return counted.select(F.col("peer").alias("archive"), "prefix", "records")
