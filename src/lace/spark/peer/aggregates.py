"""What a comparison needs of a set, as aggregates over its partitions (070, P16).

Rule: a task hands back one row whose size does not hang on how many ids it saw, and the driver adds these up one after
the other: sums and sketches are linear (070-LIN-01), so it does not matter who had which ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user reads

from lace.differences.ids import EMPTY, Ids, ids_of_texts, unsorted_ids
from lace.differences.keyed import U64, DifferenceKey, keyed_ids
from lace.differences.setview import measured
from lace.differences.sketch import Symbols, no_symbols, sketch
from lace.differences.sums import nothing
from lace.interlace.claims.advertisement import bare_claims, record_digests
from lace.interlace.claims.partitions import Partition
from lace.notation.digest import digest
from lace.spark.jobs.advertise import roots
from lace.spark.jobs.reconcile import partition_prefix

_PARTIAL = "part binary"
_PARTIAL_ARROW = pa.schema([("part", pa.binary())])
_HASH = "hash string"
_HASH_ARROW = pa.schema([("hash", pa.string())])
_DIGESTS = "prefix string, digest binary"
_DIGESTS_ARROW = pa.schema([("prefix", pa.string()), ("digest", pa.binary())])
_PARTS = "prefix string, digest binary"
_PARTS_ARROW = pa.schema([("prefix", pa.string()), ("digest", pa.binary())])
_SHORT_SKETCH = 4096  # symbols
_FEW_NAMED = 1000  # records whose hashes are part of a plan
_AT_ONCE = 1 << 19  # ids whose short ids a task holds before it adds them to its sketch

Batches = Iterable[pa.RecordBatch]


def ids_of_column(texts: pa.Array) -> Ids:
    """The ids of a column, in its order; every one is a whole H3 id, because only validated records are in a set."""
    if not len(texts):
        return EMPTY
    plain = texts.cast(pa.string())
    _, offsets, data = plain.buffers()
    ends = np.frombuffer(offsets, np.int32)
    first, last = int(ends[plain.offset]), int(ends[plain.offset + len(plain)])
    return unsorted_ids(data.slice(first, last - first).to_pybytes())


def measure_of(hashes: DataFrame, key: DifferenceKey) -> U64:
    """Count, sums and counters of a set under a key."""
    total = nothing()
    for row in hashes.select("hash").mapInArrow(partial(measure_task, key), _PARTIAL).collect():
        total = total + np.frombuffer(bytes(row["part"]), np.uint64)
    return total


def measure_task(key: DifferenceKey, batches: Batches) -> Iterator[pa.RecordBatch]:
    """One task's part of a measure."""
    total = nothing()
    for batch in batches:
        total = total + measured(ids_of_column(batch["hash"]), key)
    yield _partial(total.tobytes())


def symbols_of(hashes: DataFrame, key: DifferenceKey, start: int, end: int) -> Symbols:
    """Symbols of a set's sketch."""
    total = no_symbols(end - start)
    parts = hashes.select("hash").mapInArrow(partial(sketch_task, key, start, end), _PARTIAL)
    # All at once runs all tasks side by side; long sketches come one by one, so that few of them are here.
    for row in parts.collect() if end - start <= _SHORT_SKETCH else parts.toLocalIterator(prefetchPartitions=True):
        total = plus(total, symbols_of_bytes(bytes(row["part"]), end - start))
    return total


def sketch_task(key: DifferenceKey, start: int, end: int, batches: Batches) -> Iterator[pa.RecordBatch]:
    """One task's part of some symbols."""
    total = no_symbols(end - start)
    for short in _short_ids(key, batches):
        total = plus(total, sketch(short, key, start, end))
    yield _partial(total.sums.tobytes() + total.checks.tobytes() + total.counts.tobytes())


def _short_ids(key: DifferenceKey, batches: Batches) -> Iterator[U64]:
    held: list[U64] = []
    for batch in batches:
        held.append(keyed_ids(ids_of_column(batch["hash"]), key).short)
        if sum(map(len, held)) >= _AT_ONCE:
            yield np.concatenate(held)
            held = []
    if held:
        yield np.concatenate(held)


def plus(one: Symbols, other: Symbols) -> Symbols:
    """The symbols of two sets that share nothing (070-LIN-01)."""
    return Symbols(one.counts + other.counts, one.sums + other.sums, one.checks + other.checks)


def symbols_of_bytes(data: bytes, count: int) -> Symbols:
    """What a task handed back."""
    sums, checks = 8 * count, 12 * count
    return Symbols(
        np.frombuffer(data[checks:], np.uint8),
        np.frombuffer(data[:sums], np.uint64),
        np.frombuffer(data[sums:checks], np.uint32),
    )


def _partial(data: bytes) -> pa.RecordBatch:
    return pa.record_batch([pa.array([data], pa.binary())], schema=_PARTIAL_ARROW)


def named_by(hashes: DataFrame, key: DifferenceKey, short: U64) -> list[str] | None:
    """The ids that some short ids name, sorted; None unless each names exactly one."""
    if not len(short):
        return []
    found = hashes.select("hash").mapInArrow(partial(name_task, key, np.sort(short)), _HASH)
    rows = found.limit(len(short) + 1).collect()
    return sorted(row["hash"] for row in rows) if len(rows) == len(short) else None


def name_task(key: DifferenceKey, short: U64, batches: Batches) -> Iterator[pa.RecordBatch]:
    """The ids of one task that some sorted short ids name."""
    for batch in batches:
        known = keyed_ids(ids_of_column(batch["hash"]), key).short
        at = np.searchsorted(short, known)
        at[at == len(short)] = 0
        hits = np.flatnonzero(short[at] == known)
        if len(hits):
            yield pa.record_batch([batch["hash"].cast(pa.string()).take(pa.array(hits))], schema=_HASH_ARROW)


def counts_by_prefix(hashes: DataFrame, length: int) -> dict[str, int]:
    """How many ids stand under each prefix of a length."""
    rows = hashes.groupBy(partition_prefix(length)).agg(F.count(F.lit(1)).alias("records")).collect()
    return {row["prefix"]: row["records"] for row in rows}


def bare_digests(hashes: DataFrame, source: str, length: int, max_line_bytes: int) -> DataFrame:
    """(prefix, digest) of the advertisement of each record, where no field is advertised."""
    return hashes.select("hash").mapInArrow(partial(digest_task, source, length, max_line_bytes), _DIGESTS)


def digest_task(source: str, length: int, max_line_bytes: int, batches: Batches) -> Iterator[pa.RecordBatch]:
    """The digests of one task."""
    for batch in batches:
        records = batch["hash"].to_pylist()
        digests = record_digests(bare_claims(records), source, max_line_bytes)
        prefixes = [record[2 : 2 + length] for record in records]
        yield pa.record_batch([pa.array(prefixes, pa.string()), pa.array(digests, pa.binary())], schema=_DIGESTS_ARROW)


def roots_of(digests: DataFrame) -> list[Partition]:
    """Count and root of every partition of (prefix, digest), sorted."""
    rows = roots(digests).collect()
    return sorted(Partition(row["prefix"], row["records"], row["root"]) for row in rows)


def part_digests(hashes: DataFrame) -> dict[str, bytes]:
    """The digest of every part of a set's tree that is not empty (070-ROOT-01), by what its ids begin with."""
    parts = hashes.select(partition_prefix(), "hash").groupBy("prefix").applyInArrow(part_task, _PARTS)
    return {row["prefix"]: bytes(row["digest"]) for row in parts.collect()}


def part_task(table: pa.Table) -> pa.Table:
    """The digest of one part."""
    ids = ids_of_texts(table["hash"].to_pylist())
    return pa.table(
        {"prefix": table["prefix"].slice(0, 1), "digest": pa.array([digest(ids.to_bytes())], pa.binary())}
    ).cast(_PARTS_ARROW)


def under(rows: DataFrame, prefixes: Sequence[str]) -> DataFrame:
    """The rows whose hash begins with one of some prefixes."""
    spark, by_length = rows.sparkSession, _by_length(prefixes)
    found: DataFrame | None = None
    for length, chosen in by_length.items():
        wanted = F.broadcast(spark.createDataFrame(pa.table({"prefix": list(chosen)})))
        part = rows.join(wanted, F.substring(rows["hash"], 3, length) == wanted["prefix"], "left_semi")
        found = part if found is None else found.unionByName(part)
    return rows.limit(0) if found is None else found


def _by_length(prefixes: Sequence[str]) -> Mapping[int, Sequence[str]]:
    found: dict[int, list[str]] = {}
    for prefix in sorted(set(prefixes)):
        found.setdefault(len(prefix), []).append(prefix)
    return found


def with_hash(rows: DataFrame, records: Sequence[str]) -> DataFrame:
    """The rows of some records; a few are named to the files themselves, which then skip the pages without them."""
    if len(records) <= _FEW_NAMED:
        return rows.where(F.col("hash").isin(list(records)))
    wanted = F.broadcast(rows.sparkSession.createDataFrame(pa.table({"hash": list(records)})))
    return rows.join(wanted, on="hash", how="left_semi")
