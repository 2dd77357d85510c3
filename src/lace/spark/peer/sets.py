"""What may be sent to a peer at one moment, as files or rows on the cluster (050 `EffectiveSend`).

Rule: a set is never brought to the driver. What is asked of it is a job whose answer is as large as the question:
some of its records, how it differs from an earlier one, counts and roots of partitions.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from time import monotonic
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user reads

from lace.differences.ids import EMPTY, Ids, columnar, ids_of_texts
from lace.differences.keyed import U64, DifferenceKey
from lace.differences.sketch import Symbols
from lace.differences.sums import nothing
from lace.differences.tree import tree_root
from lace.errors import LimitExceeded
from lace.interlace.claims.advertisement import Advertisement, bare_claims, canonical_bytes
from lace.interlace.claims.partitions import START_LENGTH, Partition
from lace.interlace.host import Call
from lace.interlace.setup.hello import NO_FIELDS, FieldSchema
from lace.limits import StreamLimits
from lace.notation.digest import digest
from lace.runtime.host.setcomparer import SetComparer
from lace.spark.archive import tables
from lace.spark.archive.versions import DataFile, State
from lace.spark.jobs.advertise import advertisements, field_claims
from lace.spark.jobs.reconcile import partition_prefix
from lace.spark.peer import aggregates
from lace.spark.peer.peer import ArchivePeer
from lace.spark.source.schemas import SINGLETON_COLUMNS
from lace.values import dataclass

_MANY = 100_000
ROOTS = "root"  # the settings namespace of roots that are kept
_MOST_PARTITIONS: int = 64**START_LENGTH


@dataclass(frozen=True, slots=True)
class Rows:
    """Where the ids of a set stand: files of `selected`, or a frame that is kept on the cluster."""

    count: int
    files: tuple[DataFile, ...] = ()
    frame: DataFrame | None = None

    @property
    def paths(self) -> frozenset[str]:
        return frozenset(file.path for file in self.files)


class ArchiveSet:
    """A set of records that may be sent."""

    def __init__(
        self,
        peer: ArchivePeer,
        number: int,
        rows: Rows,
        state: State,
        schema: FieldSchema,
        max_line_bytes: int,
        before: ArchiveSet | None = None,
    ) -> None:
        self.number = number
        self.rows: Rows = rows
        self.state: State = state
        self.schema = schema
        self.max_line_bytes = max_line_bytes
        self._peer = peer
        self._counts: dict[str, int] | None = None
        self._lengths: dict[str, int] = {}  # of the listing, by label
        self._roots: dict[str, list[Partition]] = {}
        self._root: bytes | None = None
        self._parts: dict[str, bytes] | None = None  # digests of the tree, once the root was worked out here
        # The root follows from that of the set before; where that has none, nothing is gained by holding it.
        self._before = before if before is not None and before._parts is not None else None
        self._making = threading.Lock()
        self._is_foreseen = False
        self._since: tuple[int, tuple[Ids, Ids] | None] | None = None

    def __len__(self) -> int:
        return self.rows.count

    def moved(self, rows: Rows, state: State) -> None:
        """The same set, written again: by a compaction, or by an evaluation that came to the same."""
        self.rows, self.state = rows, state

    @property
    def hashes(self) -> DataFrame:
        """(hash)."""
        if self.rows.frame is not None:
            return self.rows.frame
        return self._peer.rows("selected", self.rows.files).select("hash")

    def job(self, what: str, call: Call, files: Sequence[DataFile] | None = None) -> Any:
        """A job over this set, or over some files of it."""
        return self._peer.jobs.job(what, self.rows.files if files is None else files, call)

    # Some of its records

    def among(self, records: Sequence[str]) -> list[str]:
        """Those of some records that are in the set, in their order."""
        return self.find(records, Call())

    def find(self, records: Sequence[str], call: Call) -> list[str]:
        """`among`, for a call that can be given up."""
        wanted = columnar(records)
        if not wanted or not len(self):
            return []
        files = tables.holding(self.rows.files, "hash", wanted) if self.rows.files else ()
        if self.rows.files and not files:
            return []
        hashes = self.hashes if self.rows.frame is not None else self._peer.rows("selected", files).select("hash")
        with self.job("look up ids", call, files):
            found = {row["hash"] for row in aggregates.with_hash(hashes, wanted).collect()}
        return [record for record in records if record in found]

    def some(self, records: Iterable[str]) -> list[Advertisement]:
        """The advertisements of some records of the set, sorted."""
        chosen = sorted(records)
        if not chosen or self.schema == NO_FIELDS:
            return bare_claims(chosen)
        files = tables.holding(self.state.table("records"), "hash", chosen)
        with self.job("read fields", Call(), files):
            rows = aggregates.with_hash(self._fields(self._peer.rows("records", files)), chosen).collect()
        return sorted(map(self._advertisement, rows))

    # Its listing

    def wide(self) -> DataFrame:
        """The columns that are advertised, of every record of the set."""
        if self.schema == NO_FIELDS:
            return self.hashes
        return self._fields(self._records())

    def _records(self) -> DataFrame:
        """All records of the set."""
        held = self._peer.rows("records", self.state.table("records"))
        return self._peer.archive.joins.chosen(held, self.hashes, len(self))

    def _fields(self, records: DataFrame) -> DataFrame:
        names, wide = self._names, tables.as_wide(records)
        columns = [column for name, column in SINGLETON_COLUMNS.items() if names is None or name in names]
        return wide.select("hash", *columns, "headers")

    @property
    def _names(self) -> frozenset[str] | None:
        return None if self.schema.names is None else frozenset(self.schema.names)

    def _advertisement(self, row: Any) -> Advertisement:
        if self.schema == NO_FIELDS:
            return Advertisement(row["hash"])
        found = row.asDict(recursive=True)
        return Advertisement(found["hash"], field_claims(found, self._names))

    @property
    def _read(self) -> Sequence[DataFile]:
        """The files that a pass over the advertisements reads."""
        return self.rows.files if self.schema == NO_FIELDS else (*self.rows.files, *self.state.table("records"))

    def claims(self, call: Call, prefixes: Sequence[str] | None = None) -> Iterator[Advertisement]:
        """All advertisements, or those of some partitions, sorted; a part of them is on the driver at a time."""
        call.check()
        began = monotonic()
        rows = self.wide() if prefixes is None else aggregates.under(self.wide(), prefixes)
        for row in self._peer.jobs.stepping(rows.orderBy("hash").toLocalIterator()):
            yield self._advertisement(row)
        self._peer.jobs.note("list", self._read, began)

    @property
    def spelled_out(self) -> None:
        """Nowhere are all advertisements of an archive at once."""
        return None

    @property
    def gone(self) -> tuple[str, ...]:
        """None: a set reads the version that it is of, whatever was removed since."""
        return ()

    def listing(self) -> list[Advertisement]:
        """Every advertisement, sorted: for a caller that has bounded how many there are."""
        return list(self.claims(Call()))

    def measure(self, key: DifferenceKey) -> U64:
        """The set under a key (070)."""
        with self.job("measure", Call()):
            return aggregates.measure_of(self.hashes, key)

    def listing_bytes(self, source: str, most: int, call: Call) -> int:
        """How long the listing is, exact up to a bound."""
        bare = len(self) * len(canonical_bytes(Advertisement("P." + "0" * 43 + ".H3"), source, self.max_line_bytes))
        if bare > most or self.schema == NO_FIELDS or not len(self):
            return bare
        if source not in self._lengths:
            with self.job("measure the listing", call, self._read):
                row = self._listed(source).agg(F.sum(F.octet_length("text")).alias("bytes")).first()
            self._lengths[source] = int(row["bytes"]) if row is not None and row["bytes"] is not None else 0
        return self._lengths[source]

    def _listed(self, source: str, prefixes: Sequence[str] | None = None) -> DataFrame:
        """(prefix, hash, digest, text)."""
        chosen = tables.as_wide(self._records())
        chosen = chosen if prefixes is None else aggregates.under(chosen, prefixes)
        return advertisements(chosen, source, self._names, StreamLimits(max_fact_line_bytes=self.max_line_bytes))

    # Its partitions

    def hashes_under(self, prefixes: Sequence[str], call: Call) -> list[str]:
        """The records of some partitions."""
        if not prefixes:
            return []
        with self.job("read ids of partitions", call):
            found: list[str] = aggregates.under(self.hashes, prefixes).toArrow()["hash"].to_pylist()
        return found

    def counts(self, call: Call) -> dict[str, int]:
        """How many records each starting partition has."""
        if self._counts is None:
            with self.job("count partitions", call):
                self._counts = aggregates.counts_by_prefix(self.hashes, START_LENGTH) if len(self) else {}
        return self._counts

    def partition_count(self, call: Call) -> int:
        """How many starting partitions are not empty; for a large set how many there may be."""
        if self._counts is None and len(self) > _MANY:
            return _MOST_PARTITIONS
        return len(self.counts(call))

    def roots(self, source: str, call: Call) -> list[Partition]:
        """Every non-empty starting partition, sorted."""
        if source not in self._roots:
            with self.job("work out roots", call, self._read):
                self._roots[source] = (
                    aggregates.roots_of(self._digests(source, START_LENGTH, None)) if len(self) else []
                )
            self._counts = {partition.prefix: partition.count for partition in self._roots[source]}
        return self._roots[source]

    def children(self, parents: Sequence[str], source: str, call: Call) -> list[Partition]:
        """The non-empty children of some partitions, sorted."""
        found: list[Partition] = []
        for length in sorted({len(parent) for parent in parents}):
            chosen = [parent for parent in parents if len(parent) == length]
            with self.job("work out roots of children", call, self._read):
                found += aggregates.roots_of(self._digests(source, length + 1, chosen))
        return sorted(found)

    def _digests(self, source: str, length: int, prefixes: Sequence[str] | None) -> DataFrame:
        if self.schema == NO_FIELDS:
            hashes = self.hashes if prefixes is None else aggregates.under(self.hashes, prefixes)
            return aggregates.bare_digests(hashes, source, length, self.max_line_bytes)
        return self._listed(source, prefixes).select(partition_prefix(length), "digest")

    def root(self, call: Call) -> bytes:
        """The root of the set's tree (070): kept with the archive, so that it is worked out once for a set.

        It is for every link to come, so it is finished even if the peer that asked first does not wait for it.
        """
        call.check()
        with self._making:
            if self._root is None:
                self._root = self._kept_root() or self._work_out_root()
            return self._root

    def foresee_root(self) -> None:
        """Work the root out aside, once, for links to come; of rows that one link holds there is nobody to come."""
        if self.rows.files and not self._is_foreseen:
            self._is_foreseen = True
            self._peer.later(lambda: self.root(Call()))

    def _followed(self, parts: dict[str, bytes], changed: tuple[Ids, Ids]) -> dict[str, bytes]:
        """The digests of the parts before a change, with those that it touched worked out again."""
        touched = {record[2 : 2 + START_LENGTH] for ids in changed for record in ids.texts()}
        renewed = aggregates.part_digests(aggregates.under(self.hashes, sorted(touched))) if touched else {}
        return {prefix: digested for prefix, digested in parts.items() if prefix not in touched} | renewed

    def _kept_root(self) -> bytes | None:
        kept = self._peer.get_setting(ROOTS, self._root_rules) if self.rows.files else None
        mark = self._root_mark
        return kept[len(mark) :] if kept is not None and kept.startswith(mark) else None

    @property
    def _root_rules(self) -> str:
        """By whose set it is kept."""
        return self.rows.files[0].low["rules"]

    @property
    def _root_mark(self) -> bytes:
        """Which set of these rules it is."""
        return digest(" ".join(sorted(self.rows.paths)).encode())

    def _work_out_root(self) -> bytes:
        before, self._before = self._before, None
        changed = self.since(before) if before is not None else None
        with self.job("work out the root", self._peer.ending):
            if before is None or before._parts is None or changed is None:
                self._parts = aggregates.part_digests(self.hashes) if len(self) else {}
            else:
                self._parts = self._followed(before._parts, changed)
        found = tree_root(self._parts)
        if self.rows.files:
            self._peer.put_setting(ROOTS, self._root_rules, self._root_mark + found)
        return found

    # How it came about

    def since(self, earlier: ArchiveSet) -> tuple[Ids, Ids] | None:
        """What came and what went from an earlier set to this one; None if that is more than is followed."""
        if earlier is self:
            return EMPTY, EMPTY
        if self._since is None or self._since[0] != earlier.number:
            self._since = earlier.number, self._compared(earlier)
        return self._since[1]

    def _compared(self, earlier: ArchiveSet) -> tuple[Ids, Ids] | None:
        came, went = self.changes(earlier)
        try:
            return self._collected(came), self._collected(went)
        except LimitExceeded:
            return None

    def changes(self, earlier: ArchiveSet) -> tuple[ChangedRows, ChangedRows]:
        """What came and went, as rows on the cluster."""
        new = [file for file in self.rows.files if file.path not in earlier.rows.paths]
        old = [file for file in earlier.rows.files if file.path not in self.rows.paths]
        is_files = self.rows.frame is None and earlier.rows.frame is None
        if is_files and not old:
            return ChangedRows(new, self._peer.rows("selected", new).select("hash") if new else None), ChangedRows(
                (), None
            )
        if is_files:  # files of both stay as they are: what is in the others may have moved from one to another
            now, then = (self._peer.rows("selected", files).select("hash") for files in (new, old))
            both = (*new, *old)
        else:
            now, then, both = self.hashes, earlier.hashes, (*self.rows.files, *earlier.rows.files)
        return (
            ChangedRows(both, now.join(then, on="hash", how="left_anti")),
            ChangedRows(both, then.join(now, on="hash", how="left_anti")),
        )

    def _collected(self, change: ChangedRows) -> Ids:
        if change.hashes is None:
            return EMPTY
        most = self._peer.bounds.max_followed
        with self._peer.jobs.job("read what changed", change.files, Call()):
            rows = change.hashes.limit(most + 1).toArrow()["hash"].to_pylist()
        if len(rows) > most:
            raise LimitExceeded("max_followed", most, "ids of one change")
        return ids_of_texts(rows)


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """Rows that came or went, and the files that say so; None where there are none."""

    files: Sequence[DataFile]
    hashes: DataFrame | None


# Beside a peer's set (070): every step is one pass over the ids, and a change costs a pass over what changed.


class ArchiveComparer(SetComparer[ArchiveSet]):
    """Over a set whose ids are in files."""

    def _root(self, own: ArchiveSet, call: Call) -> bytes:
        return own.root(call)

    def _whole(self, own: ArchiveSet, call: Call, *, will_sketch: bool) -> U64:
        call.charge(rows=len(own))
        with own.job("measure", call):
            return aggregates.measure_of(own.hashes, self._key)

    def _far(self, before: ArchiveSet, own: ArchiveSet, call: Call) -> U64:
        came, went = own.changes(before)
        return self._of(came, own, call) - self._of(went, own, call)

    def _of(self, change: ChangedRows, own: ArchiveSet, call: Call) -> U64:
        if change.hashes is None:
            return nothing()
        with own.job("measure what changed", call, change.files):
            return aggregates.measure_of(change.hashes, self._key)

    def _symbols(self, own: ArchiveSet, start: int, end: int, call: Call) -> Symbols:
        with own.job("sketch", call):
            return aggregates.symbols_of(own.hashes, self._key, start, end)

    def _named(self, own: ArchiveSet, short: U64, call: Call) -> list[str] | None:
        if not len(short):
            return []
        call.charge(rows=len(own))
        with own.job("name short ids", call):
            return aggregates.named_by(own.hashes, self._key, short)
