"""The steps of an archive carried out by this process alone: no session, no JVM.

Rule: the tables say what jobs would have said. Records are judged, listed and summed by the very functions that tasks
run, and rules by the embedded engine, which every executor is held to; what differs is who calls them. Rows pass
through as columns, a group at a time: as values of Python they would take ten times the room.
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from heapq import nsmallest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as parquet_files
from pyspark.sql.types import StructType

from lace.datalog.engine import RowSource
from lace.datalog.language.syntax import Predicate
from lace.datalog.source import Row
from lace.facts.predicates import BLOB_HASH, FIELD, HAVE, PLEX_HASH, RECORD_LINK
from lace.limits import EngineLimits, JudgingLimits
from lace.notation.tai import TAI
from lace.records.manifest import CHUNK_LINK
from lace.runtime.rules.guestprograms import ProgramQuestion
from lace.spark.archive import contents, rewrite, tables
from lace.spark.archive.executors import (
    Addition,
    ChangedListing,
    Cut,
    Need,
    NewRecords,
    RunSettings,
    TooMuchHere,
    Unseen,
    files_bytes,
    files_rows,
    is_for_process,
)
from lace.spark.archive.filesystem import Files
from lace.spark.archive.forget import DESCRIBED, DescribedRecord, described_record
from lace.spark.archive.log import FOLDER, Log
from lace.spark.archive.versions import BatchRange, DataFile, State
from lace.spark.jobs.advertise import listed, listed_columns, summaries
from lace.spark.jobs.evaluate import PeerPolicy
from lace.spark.jobs.reconcile import PARTITIONS, PREFIX_LENGTH
from lace.spark.jobs.report import (
    LARGEST_GROUPS,
    QUARANTINE_ROWS,
    SHOWN_BYTES,
    TAI_OF_UNIX,
    Counts,
    QuarantineRow,
    ReportCounts,
    Tally,
    quarantine_row,
)
from lace.spark.jobs.validate import judge_batch
from lace.spark.source.files import RawRecord, input_files, pieces, read_piece
from lace.spark.source.judging import batches as in_groups
from lace.spark.source.places import Place, placed
from lace.spark.source.rows import raw_batch
from lace.spark.source.schemas import JUDGED, RAW, SINGLETON_COLUMNS, STORED, WIDE, arrow_schema
from lace.spark.source.writer import LaceWriter
from lace.workers.collector import seldom_collecting

if TYPE_CHECKING:
    from lace.spark.archive.archive import Archive

_ROWS_AT_ONCE = 1 << 14  # what a group of rows is worth an evaluation for
_SPLIT_BYTES = 1 << 40  # one piece a file
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_RAW, _JUDGED = arrow_schema(RAW), arrow_schema(JUDGED)
_TIMESTAMP = arrow_schema(tables.SCHEMAS["records"]).field("ts").type
_HEADERS = arrow_schema(tables.SCHEMAS["records"]).field("headers").type
FACT_COLUMNS = ("hash", *SINGLETON_COLUMNS.values(), "headers", "links", "blob_hash", "plex_hash")


class InProcess:
    """The steps, over one version of an archive on this machine."""

    def __init__(self, archive: Archive, state: State, settings: RunSettings) -> None:
        self._archive = archive
        self._files = archive.files
        self._state = state
        self._settings = settings
        self._most = archive.thresholds

    def add(self, found: NewRecords, batch: str) -> Addition:
        raw = deque(raw_batch(group, _RAW) for group in in_groups(found.rows(), self._archive.judging))
        read = sum(len(rows) for rows in raw)
        forgotten = self._archive.forgotten(self._state)
        left_out = sum(text in forgotten for rows in raw for text in rows["hash"].to_pylist()) if forgotten else 0
        first = deque(_are_first(raw, _known(self._files, self._state, raw), forgotten))
        kept: dict[str, list[pa.RecordBatch]] = {"records": [], "quarantine": []}
        for judged in _judged(raw, first, batch, self._archive.judging):
            is_good = pc.is_null(judged["rule"])
            for table, chosen in (("records", is_good), ("quarantine", pc.invert(is_good))):
                kept[table].append(judged.filter(chosen).select(tables.SCHEMAS[table].names))
        bad, good = (_whole(table, kept.pop(table)) for table in ("quarantine", "records"))
        digests = pa.chunked_array([*bad["content"].chunks, *good["content"].chunks], pa.string())
        made, dropped = contents.write(self._files, self._state, digests, batch)
        made += write(self._files, "quarantine", bad)
        del bad
        made += write(self._files, "records", good)
        narrow = good.select(tables.SCHEMAS["coordinates"].names)
        del good  # the bytes are written
        made += write(self._files, "coordinates", _in_coordinate_order(narrow))
        return Addition(read, made, dropped, left_out)

    # Removing

    def described(self, hashes: Sequence[str]) -> list[DescribedRecord]:
        files = tables.holding(self._state.table("records"), "hash", hashes)
        found = select(self._files, self._few(files), DESCRIBED, pc.field("hash").isin(list(hashes)))
        return [described_record(row) for row in found.to_pylist()]

    def links_to(self, hashes: Sequence[str]) -> list[tuple[str, str]]:
        wanted = pa.array(hashes, pa.string())
        found: list[tuple[str, str]] = []
        for file in self._few(self._state.table("records")) if hashes else ():
            for rows in scan(self._files, file, ["hash", "links"], self._archive.judging):
                targets = pc.struct_field(pc.list_flatten(rows["links"]), "target")
                meets = pc.is_in(targets, wanted)
                linking = rows["hash"].take(pc.list_parent_indices(rows["links"])).filter(meets)
                found += zip(linking.to_pylist(), targets.filter(meets).to_pylist(), strict=True)
        return found

    def without(self, hashes: Sequence[str], *, for_good: bool) -> Cut:
        names = (*rewrite.WITH_RECORDS, *(rewrite.FOR_GOOD if for_good else ()))
        held = {name: tables.holding(self._state.table(name), "hash", hashes) for name in names}
        self._few([file for files in held.values() for file in files])
        gone = pc.field("hash").isin(list(hashes))
        touched = {
            name: [file for file in files if ds.dataset(self._path(file), format="parquet").count_rows(filter=gone)]
            for name, files in held.items()
        }
        if files_bytes(file for files in touched.values() for file in files) > self._most.in_process_bytes:
            raise TooMuchHere
        taken = select(self._files, touched["records"], tables.SCHEMAS["records"].names, gone)
        made = self._kept_as_removed(taken) if len(taken) and not for_good else []
        made += self._gone_contents(taken)
        for name, files in touched.items():
            for file in files:
                made += write(self._files, name, select(self._files, [file], tables.SCHEMAS[name].names, ~gone))
        dropped = [file.path for files in touched.values() for file in files]
        if for_good and dropped:
            dropped += [file.path for name in rewrite.DERIVED for file in self._state.table(name)]
        return Cut(made, dropped, len(taken))

    def _kept_as_removed(self, taken: pa.Table) -> list[DataFile]:
        number = rewrite.removal_name(self._state.removals + 1)
        return write(self._files, "removed", taken.append_column("removal", pa.repeat(pa.scalar(number), len(taken))))

    def _gone_contents(self, taken: pa.Table) -> list[DataFile]:
        """That these may be added again."""
        ranges = contents.covered(self._state)
        pairs = zip(taken["content"].to_pylist(), taken["batch"].to_pylist(), strict=True) if len(taken) else ()
        return contents.write_gone(self._files, [text for text, batch in pairs if any(batch in r for r in ranges)])

    def _few(self, files: Sequence[DataFile]) -> Sequence[DataFile]:
        """Some files, if they have no more rows than this process looks through."""
        if files_rows(files) > self._most.scanned_rows:
            raise TooMuchHere
        return files

    def _path(self, file: DataFile) -> str:
        return f"{self._files.folder}/{file.path}"

    def are_about_parts(self, files: Sequence[DataFile]) -> bool:
        for file in files:
            for rows in scan(self._files, file, ["type", "links"], self._archive.judging):
                if pc.any(pc.equal(rows["type"], "B")).as_py():
                    return True
                names = pc.struct_field(pc.list_flatten(rows["links"]), "name")
                if pc.any(pc.equal(names, CHUNK_LINK)).as_py():
                    return True
        return False

    def select(self, peer: PeerPolicy, mark: str, batches: BatchRange, *, apart: bool) -> list[DataFile]:
        if peer.has_claims:
            raise TooMuchHere  # what a peer advertises is read as frames
        parts = self._rows(batches, FACT_COLUMNS[1:])
        goal = peer.policy.sendable
        chosen: set[str] = set()
        for rows in ([part] for part in parts) if apart else [parts]:
            question = ProgramQuestion(
                peer.policy.program, facts_of_rows(rows), (goal,), extra=peer.runtime, is_goal=True
            )
            chosen.update(
                self._settings.executor.engine.ask(question, self._settings.limits or EngineLimits()).columns[goal][0]
            )
        return write_selected(self._files, mark, sorted(chosen), batches.last)

    def advertise(self, peer: PeerPolicy, chosen: Sequence[DataFile], batches: BatchRange) -> list[DataFile]:
        hashes = set(select(self._files, chosen, ["hash"])["hash"].to_pylist())
        plan = peer.policy.plan
        fields = None if plan.requirements.all_fields else frozenset(plan.requirements.names)
        source = plan.operands[peer.policy.local_index].origin
        found = [listed(_wide(rows), source, fields) for rows in self._rows(batches, listed_columns(fields), hashes)]
        if sum(map(len, found)) < len(hashes):
            raise TooMuchHere  # a new record may let an older one go to a peer, which is not among these batches
        if not found:
            return []
        return write(self._files, "advertisements", _named(pa.Table.from_batches(found).sort_by("hash"), peer.name))

    def summarise(self, listing: ChangedListing) -> list[DataFile]:
        if listing.went is not None:
            raise TooMuchHere
        touched = sorted(select(self._files, listing.new, ["prefix"])["prefix"].unique().to_pylist())
        near = tables.holding(listing.held, "prefix", touched)
        if files_rows(near) > self._most.scanned_rows:
            raise TooMuchHere
        # Digests fall into all partitions alike: of so many partitions at a time they can be held.
        each = max(1, self._most.held_rows * PARTITIONS // max(1, files_rows(near)))
        parts = [touched[at : at + each] for at in range(0, len(touched), each)]
        renewed = pa.concat_tables(self._summed(near, part) for part in parts)
        others = ~pc.field("prefix").isin(touched)
        kept = select(self._files, listing.old, renewed.schema.names, others) if listing.old else renewed.slice(0, 0)
        whole = pa.concat_tables([renewed, kept.cast(renewed.schema)])
        return write(self._files, "partitions", _named(whole, listing.peer))

    def _summed(self, held: Sequence[DataFile], prefixes: Sequence[str]) -> pa.Table:
        near = tables.holding(held, "prefix", prefixes)
        among = pc.field("prefix").isin(list(prefixes))
        return summaries(select(self._files, near, ["prefix", "digest"], among))

    def publish(
        self, peer: PeerPolicy, unseen: Unseen, given: Sequence[DataFile], place: str
    ) -> tuple[int, list[DataFile]]:
        chosen = select(self._files, unseen.files, ["hash"], _is_of(pc.field("batch"), unseen.batches))["hash"]
        there = select(self._files, given, ["hash"], pc.field("hash").isin(chosen.combine_chunks()))
        fresh = sorted(set(chosen.to_pylist()) - set(there["hash"].to_pylist()))
        missing = set(fresh)
        for rows in self._rows(unseen.batches, []):
            missing.difference_update(rows["hash"].to_pylist())
        if missing:
            raise TooMuchHere  # the bytes of an older record, which a new one lets go, are not among these batches
        if not fresh:
            return 0, []
        writer = LaceWriter(place, StructType([STORED]), overwrite=True)
        writer.commit([writer.write(self._rows(unseen.batches, [STORED.name], set(fresh)))])
        hashes = pa.array(fresh, pa.string())
        columns = {"prefix": _prefixes(hashes), "hash": hashes}
        return len(fresh), write(self._files, "published", _named(pa.table(columns), peer.name))

    def facts(self, batches: BatchRange) -> list[DataFile]:
        made: list[DataFile] = []
        for predicate, said in _facts_by_predicate(self._rows(batches, FACT_COLUMNS[1:])).items():
            table = tables.facts_table(predicate)
            schema = arrow_schema(tables.SCHEMAS[table])
            arrays = [pa.array(column, pa.string()) for column in zip(*said, strict=True)]
            made += write(self._files, table, pa.table(arrays, schema=schema)) if said else []
        return made

    def missing(self, others: Mapping[str, Path]) -> list[DataFile]:
        held = {name: set(hashes.to_pylist()) for name, hashes in self._everywhere(others).items()}
        rows = [
            {
                "archive": name,
                "prefix": _prefix(text),
                "hash": text,
                "held_by": [at for at in sorted(held) if text in held[at]],
            }
            for text in sorted(set().union(*held.values()))
            for name in sorted(held)
            if text not in held[name]
        ]
        counted: dict[tuple[str, str], int] = {}
        for row in rows:
            counted[row["archive"], row["prefix"]] = counted.get((row["archive"], row["prefix"]), 0) + 1
        by_partition = [{"archive": name, "prefix": at, "records": count} for (name, at), count in counted.items()]
        made: list[DataFile] = []
        for table, found in (("missing", rows), ("missing_by_partition", by_partition)):
            made += write(self._files, table, pa.Table.from_pylist(found, arrow_schema(tables.SCHEMAS[table])))
        return made

    def _everywhere(self, others: Mapping[str, Path]) -> dict[str, pa.ChunkedArray]:
        """The hashes of the records here and at some places."""
        held = {"here": self._read("records", ["hash"])["hash"]}
        for name, path in others.items():
            held[name] = _hashes_at(self._archive, path)
        if sum(map(len, held.values())) > self._most.held_rows:
            raise TooMuchHere
        return held

    # The report

    def count(self, others: Mapping[str, Path]) -> tuple[ReportCounts, dict[str, Counts]]:
        held = self._everywhere(others)
        of_tables = sum(self._state.rows(name) for name in tables.COUNTED)
        if of_tables + sum(len(hashes) for name, hashes in held.items() if name != "here") > self._most.held_rows:
            raise TooMuchHere
        return self._counts(), self._lacking(held if others else {})

    def _counts(self) -> ReportCounts:
        records = self._read("records", ["hash", "type", "group", "app", "tai", "signed_by", "data_length"])
        coordinates = _coordinates(records)
        chosen = self._read("advertisements", ["peer", "hash"])
        where = pc.index_in(chosen["hash"], records["hash"].combine_chunks())
        refused = self._read("quarantine", ["rule"])
        keys = {"type": records["type"], "partition": _prefixes(records["hash"]), "month": _months(records["tai"])}
        return ReportCounts(
            every={kind: sorted(_tallies(key, records["data_length"])) for kind, key in keys.items()},
            largest={"coordinate": _largest(coordinates), "signer": _largest(records["signed_by"])},
            chosen={"peer": _largest(chosen["peer"]), "coordinate": _largest(coordinates.take(where))},
            refused={"rule": _largest(refused["rule"])},
            quarantined=len(refused),
            quarantine_rows=self._quarantine_rows(),
        )

    def _quarantine_rows(self) -> list[QuarantineRow]:
        """The first refused records of each file, in their order."""
        first: list[dict[str, object]] = []
        columns = ["rule", "reason", "bundle", "offset", "hash", "stored"]
        for file in self._state.table("quarantine"):
            for rows in scan(self._files, file, columns, self._archive.judging):
                cut = rows.append_column("length", pc.binary_length(rows["stored"]))
                cut = cut.append_column("begins", pc.binary_slice(rows["stored"], 0, SHOWN_BYTES))
                found = [*first, *cut.drop_columns(["stored"]).to_pylist()]
                first = nsmallest(QUARANTINE_ROWS, found, key=lambda row: (row["bundle"], row["offset"]))
        return [quarantine_row(row) for row in first]

    def _lacking(self, places: Mapping[str, pa.ChunkedArray]) -> dict[str, Counts]:
        """What each peer was not given of what it may have, and what is here or elsewhere only, by partition."""
        may_have = self._read("advertisements", ["peer", "hash"])
        given = self._read("published", ["peer", "hash"])
        found: dict[str, Counts] = {}
        for peer in sorted(set(may_have["peer"].unique().to_pylist())):
            may, has = (rows.filter(pc.equal(rows["peer"], peer))["hash"] for rows in (may_have, given))
            found |= _lacks(peer, may, has)
        everywhere = pa.chunked_array([chunk for each in places.values() for chunk in each.chunks], pa.string())
        for name in sorted(places):
            found |= _lacks(name, everywhere.unique(), places[name])
        return found

    # Reading

    def _read(self, table: str, columns: Sequence[str]) -> pa.Table:
        held = self._state.table(table)
        return select(self._files, held, columns) if held else _schema_of(table, columns).empty_table()

    def _rows(
        self, batches: BatchRange, columns: Sequence[str], among: Collection[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Some columns of the records that some batches brought, `hash` first; of some of them if these are named."""
        for file in self._state.table("records"):
            if not batches.meets(file):
                continue
            for found in scan(self._files, file, ["hash", *columns, "batch"], self._archive.judging):
                rows = found if batches.holds(file) else found.filter(_is_of(pc.field("batch"), batches))
                if among is not None:
                    rows = rows.filter(pa.array([text in among for text in rows["hash"].to_pylist()], pa.bool_()))
                if len(rows):
                    yield rows.select(["hash", *columns])


def _is_of(batch: pc.Expression, batches: BatchRange) -> pc.Expression:
    """Whether the batch that a row names is one of some."""
    found: pc.Expression = (batch > batches.after) & (batch <= batches.last)
    return found


def read_inputs(addresses: Iterable[str]) -> Iterator[RawRecord]:
    """Every record of some files as it stands there, in the order of places that jobs know."""
    return (
        raw
        for path in map(placed, sorted(addresses))
        for piece in pieces(path, _SPLIT_BYTES)
        for raw in read_piece(piece)
    )


def _hashes_at(archive: Archive, path: Path) -> pa.ChunkedArray:
    """The hashes of the records at a place: another archive, a Parquet table, or bundles and stores."""
    if (path / FOLDER).is_dir():
        from lace.spark.archive.filesystem import open_files

        files = open_files(str(path))
        held = Log(files).state().table("records")
        if not is_for_process(archive, Need(held_rows=files_rows(held))):
            raise TooMuchHere
        return select(files, held, ["hash"])["hash"]
    parquet = sorted(path.glob("*.parquet")) if path.is_dir() else []
    sources: Sequence[Place] = parquet or input_files([path])
    if not is_for_process(archive, Need(bytes=sum(file.stat().st_size for file in sources))):
        raise TooMuchHere
    if parquet:
        return ds.dataset([str(file) for file in parquet], format="parquet").to_table(columns=["hash"])["hash"]
    raw = read_inputs(map(str, sources))
    return pa.chunked_array([[one.hash for one in raw if one.rule is None and one.hash is not None]], pa.string())


# Adding


def _whole(table: str, parts: Sequence[pa.RecordBatch]) -> pa.Table:
    return pa.Table.from_batches(parts) if parts else arrow_schema(tables.SCHEMAS[table]).empty_table()


def _judged(
    raw: deque[pa.RecordBatch], wanted: deque[pa.BooleanArray], batch: str, limits: JudgingLimits
) -> Iterator[pa.RecordBatch]:
    """The wanted rows with their verdicts and all else that tables say of them; what was judged is let go of."""
    while raw:
        rows = raw.popleft().filter(wanted.popleft())
        if len(rows):
            with seldom_collecting():
                judged = judge_batch(rows, _JUDGED, limits, keep_bytes=True)
                headers = _header_maps(judged["headers"].to_pylist())
                ts = pa.array(map(_timestamp, judged["tai"].to_pylist()), _TIMESTAMP)
            judged = judged.set_column(judged.schema.get_field_index("headers"), "headers", headers)
            judged = judged.append_column("ts", ts)
            yield judged.append_column("batch", pa.repeat(pa.scalar(batch), len(judged)))


def _are_first(raw: Iterable[pa.RecordBatch], known: set[str], forgotten: Collection[str]) -> Iterator[pa.BooleanArray]:
    """Of each row whether its content is neither known nor in a row before it, and its hash is not to be kept out."""
    seen = set(known)
    for rows in raw:
        fresh = []
        for content, claimed in zip(rows["content"].to_pylist(), rows["hash"].to_pylist(), strict=True):
            fresh.append(content not in seen and claimed not in forgotten)
            seen.add(content)
        yield pa.array(fresh, pa.bool_())


def _known(files: Files, state: State, raw: Sequence[pa.RecordBatch]) -> set[str]:
    """The contents among those found that are here: a copy of them claims the same hash, so files are passed over."""
    if not raw or files.folder is None or not (state.table("records") or state.table("quarantine")):
        return set()
    digests = pa.concat_arrays([rows["content"] for rows in raw])
    known = contents.Lookup(files.folder, state, digests.to_pylist()).known
    others = contents.uncovered_files(state)
    if not others:
        return known
    claimed = sorted({text for rows in raw for text in rows["hash"].to_pylist() if text is not None})
    others = [file for file in others if file.table == "quarantine" or tables.holding([file], "hash", claimed)]
    return known | set(select(files, others, ["content"], pc.field("content").isin(digests))["content"].to_pylist())


def _timestamp(tai: str | None) -> datetime | None:
    return None if tai is None else _EPOCH + timedelta(microseconds=TAI(tai).to_unix_ns() // 1000)


def _header_maps(headers: Iterable[list[dict[str, Any]] | None]) -> pa.Array:
    """What `tables.header_map` makes: name to values, both in the order in which they stand."""
    return pa.array([None if found is None else list(_by_name(found).items()) for found in headers], _HEADERS)


def _by_name(headers: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for header in headers:
        found.setdefault(header["name"], []).append(header["value"])
    return found


def _in_coordinate_order(records: pa.Table) -> pa.Table:
    months = records.append_column("month", pc.floor_temporal(records["ts"], unit="month"))
    keys = [(name, "ascending", "at_start") for name in tables.ORDERS["coordinates"]]
    return months.take(pc.sort_indices(months, sort_keys=keys))


# Rows as facts (020): those that `lace.facts.derive` gives for the same records, made column by column, which takes a
# fraction of reading each record's bytes again.


def facts_of_rows(groups: Iterable[pa.RecordBatch]) -> RowSource:
    """The facts of some rows of `records`, each record once."""
    source = RowSource()
    for predicate, all_rows in _facts_by_predicate(groups).items():
        source.add(predicate, all_rows)
    return source


def _facts_by_predicate(groups: Iterable[pa.RecordBatch]) -> dict[Predicate, list[Row]]:
    found: dict[Predicate, list[Row]] = {predicate: [] for predicate in _READERS}
    for rows in groups:
        columns = {name: rows[name].to_pylist() for name in FACT_COLUMNS}
        for predicate, of_predicate in _READERS.items():
            found[predicate].extend(of_predicate(columns))
    return found


_Columns = dict[str, list[Any]]


def _have(columns: _Columns) -> Iterator[Row]:
    return zip(columns["hash"])


def _fields(columns: _Columns) -> Iterator[Row]:
    hashes = columns["hash"]
    for field, name in SINGLETON_COLUMNS.items():
        for record, value in zip(hashes, columns[name], strict=True):
            if value is not None:
                yield record, field, "0", str(value)
    for record, headers in zip(hashes, columns["headers"], strict=True):
        for field, values in headers or ():
            for place, value in enumerate(values):
                yield record, field, str(place), value


def _links(columns: _Columns) -> Iterator[Row]:
    for record, links in zip(columns["hash"], columns["links"], strict=True):
        for link in links or ():
            yield record, link["name"], str(link["index"]), link["data"], link["target"]


def _inner(name: str, columns: _Columns) -> Iterator[Row]:
    return (pair for pair in zip(columns["hash"], columns[name], strict=True) if pair[1] is not None)


_READERS: dict[Predicate, Callable[[_Columns], Iterator[Row]]] = {
    HAVE: _have,
    FIELD: _fields,
    RECORD_LINK: _links,
    BLOB_HASH: partial(_inner, "blob_hash"),
    PLEX_HASH: partial(_inner, "plex_hash"),
}


def _wide(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows with their prefix, and with headers as rules and listings know them."""
    columns = {name: rows[name] for name in rows.schema.names}
    if "headers" in columns:
        lists = [_with_places(found) for found in columns["headers"].to_pylist()]
        columns["headers"] = pa.array(lists, arrow_schema(WIDE).field("headers").type)
    return pa.record_batch({"prefix": _prefixes(columns["hash"]), **columns})


def _with_places(headers: Sequence[tuple[str, list[str]]] | None) -> list[dict[str, object]] | None:
    if headers is None:
        return None
    return [{"name": name, "index": n, "value": value} for name, values in headers for n, value in enumerate(values)]


# Counting


def _prefix(record: str) -> str:
    return record[2 : 2 + PREFIX_LENGTH]  # 050-PART-01


def _prefixes(hashes: pa.Array | pa.ChunkedArray) -> Any:
    return pc.utf8_slice_codeunits(hashes, 2, 2 + PREFIX_LENGTH)  # 050-PART-01


def _coordinates(records: pa.Table) -> pa.ChunkedArray:
    """`//group//app//`, null for a record that has none."""
    nothing, between = pa.scalar(""), pa.scalar("//")
    found: pa.ChunkedArray = pc.binary_join_element_wise(nothing, records["group"], records["app"], nothing, between)
    return found


def _months(tai: pa.ChunkedArray) -> pa.ChunkedArray:
    seconds = pc.subtract(pc.cast(pc.utf8_slice_codeunits(tai, 0, 10), pa.int64()), TAI_OF_UNIX)
    return pc.strftime(pc.cast(seconds, pa.timestamp("s")), format="%Y-%m")


def _tallies(keys: pa.ChunkedArray, sizes: pa.ChunkedArray | None = None) -> list[Tally]:
    """Every key that is there, with its rows and their bytes."""
    bytes_of = pa.repeat(pa.scalar(0, pa.int64()), len(keys)) if sizes is None else sizes
    counted = pa.table({"key": keys, "size": bytes_of}).group_by("key").aggregate([([], "count_all"), ("size", "sum")])
    columns = (counted[name].to_pylist() for name in ("key", "count_all", "size_sum"))
    return [Tally(key, rows, size or 0) for key, rows, size in zip(*columns, strict=True) if key is not None]


def _largest(keys: pa.ChunkedArray) -> list[Tally]:
    return sorted(_tallies(keys), key=lambda tally: (-tally.rows, tally.key))[:LARGEST_GROUPS]


def _lacks(name: str, wanted: pa.ChunkedArray | pa.Array, held: pa.ChunkedArray) -> dict[str, Counts]:
    """How much of what is wanted is not held, by partition; nothing if that is nothing."""
    apart = wanted.filter(pc.invert(pc.is_in(wanted, held.combine_chunks())))
    tallies = sorted(_tallies(_prefixes(apart)))
    return {name: [(tally.key, tally.rows) for tally in tallies]} if tallies else {}


# Files


def write(files: Files, table: str, rows: pa.Table) -> list[DataFile]:
    """Rows as one new file of a table; none for no rows."""
    if not len(rows) or files.folder is None:
        return []
    schema = arrow_schema(tables.SCHEMAS[table])
    sink = pa.BufferOutputStream()
    parquet_files.write_table(rows.select(schema.names).cast(schema), sink, **tables.pyarrow_form(table, len(rows)))
    name = f"data/{table}/{uuid.uuid4().hex}/part-00000.parquet"
    files.publish(name, memoryview(sink.getvalue()))
    return tables.by_footers(files.folder, table, files.listing(name.rpartition("/")[0]))


def write_selected(files: Files, mark: str, hashes: Sequence[str], batch: str) -> list[DataFile]:
    """What some rules select, as a file."""
    rules, named = (pa.repeat(pa.scalar(text), len(hashes)) for text in (mark, batch))
    columns = {"rules": rules, "hash": pa.array(hashes, pa.string()), "batch": named}
    return write(files, "selected", pa.table(columns))


def write_relation(files: Files, mark: str, predicate: str, rows: Sequence[Row]) -> list[DataFile]:
    """What some rules derive on the way, as a file."""
    columns = {
        "rules": pa.array([mark] * len(rows), pa.string()),
        "predicate": pa.array([predicate] * len(rows), pa.string()),
        "terms": pa.array([list(row) for row in rows], pa.list_(pa.string())),
    }
    return write(files, "relations", pa.table(columns))


def _named(rows: pa.Table, peer: str) -> pa.Table:
    return rows.append_column("peer", pa.repeat(pa.scalar(peer), len(rows)))


def select(
    files: Files, held: Iterable[DataFile], columns: Sequence[str], where: pc.Expression | None = None
) -> pa.Table:
    """Some columns of the rows of some files of one table for which something holds."""
    paths = [f"{files.folder}/{file.path}" for file in held]
    if not paths:
        return pa.table({name: pa.array([], pa.string()) for name in columns})
    return ds.dataset(paths, format="parquet").to_table(columns=list(columns), filter=where)


def scan(files: Files, held: DataFile, columns: Sequence[str], limits: JudgingLimits) -> Iterator[pa.RecordBatch]:
    """Some columns of a file, so many rows at a time that they can be held, though records may be large."""
    source = parquet_files.ParquetFile(f"{files.folder}/{held.path}")
    for at in range(source.num_row_groups):
        group = source.metadata.row_group(at)
        rows = limits.bytes_at_once * group.num_rows // max(1, group.total_byte_size)
        yield from source.iter_batches(max(1, min(_ROWS_AT_ONCE, rows)), [at], list(columns))


def _schema_of(table: str, columns: Sequence[str]) -> pa.Schema:
    whole = arrow_schema(tables.SCHEMAS[table])
    return pa.schema([whole.field(name) for name in columns])
