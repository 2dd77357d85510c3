"""Advertise: the listing of what a peer may have, its digests, partition counts and Merkle roots (050, P16).

Rule: every byte and every root comes from the functions that the interlace machine uses, so both agree by construction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from lace.interlace.claims.advertisement import (
    Advertisement,
    FieldClaim,
    canonical_bytes,
    canonical_fields,
    record_digest,
)
from lace.interlace.claims.merkle import partition_roots
from lace.limits import StreamLimits
from lace.notation import b64a
from lace.spark.jobs.reconcile import partition_prefix
from lace.spark.source.schemas import SINGLETON_COLUMNS, WIDE, require_columns

ADVERTISEMENTS: StructType = StructType(
    [
        StructField("prefix", StringType()),
        StructField("hash", StringType()),
        StructField("digest", BinaryType()),
        StructField("text", StringType()),
    ]
)
PARTITIONS: StructType = StructType(
    [
        StructField("prefix", StringType()),
        StructField("records", LongType()),
        StructField("root", StringType()),
    ]
)
_ADVERTISEMENTS_ARROW = pa.schema(
    [("prefix", pa.string()), ("hash", pa.string()), ("digest", pa.binary()), ("text", pa.string())]
)
_PARTITIONS_ARROW = pa.schema([("prefix", pa.string()), ("records", pa.int64()), ("root", pa.string())])


def advertisements(
    records: DataFrame, source: str, fields: frozenset[str] | None, limits: StreamLimits | None = None
) -> DataFrame:
    """One canonical advertisement record for each record; `fields` is the agreed schema, None for all fields."""
    require_columns(records, WIDE, "advertisements")
    longest = (limits or StreamLimits()).max_fact_line_bytes
    chosen = records.select(partition_prefix(), "hash", *listed_columns(fields))

    def advertise(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return (listed(batch, source, fields, longest) for batch in batches)

    return chosen.mapInArrow(advertise, ADVERTISEMENTS)


def listed_columns(fields: frozenset[str] | None) -> list[str]:
    """The columns of wide rows that a listing reads beside the hash."""
    wanted = [column for name, column in SINGLETON_COLUMNS.items() if fields is None or name in fields]
    needs_headers = fields is None or not fields <= set(SINGLETON_COLUMNS)
    return [*wanted, "headers"] if needs_headers else wanted


def listed(
    batch: pa.RecordBatch, source: str, fields: frozenset[str] | None, longest: int = StreamLimits().max_fact_line_bytes
) -> pa.RecordBatch:
    """The advertisements of a batch of wide rows that know their prefix."""
    texts = [
        canonical_bytes(Advertisement(row["hash"], field_claims(row, fields)), source, longest)
        for row in batch.to_pylist()
    ]
    return pa.record_batch(
        [
            batch["prefix"].cast(pa.string()),
            batch["hash"].cast(pa.string()),
            pa.array([record_digest(text) for text in texts], pa.binary()),
            pa.array([text.decode() for text in texts], pa.string()),
        ],
        schema=_ADVERTISEMENTS_ARROW,
    )


def field_claims(row: Mapping[str, object], fields: frozenset[str] | None) -> tuple[FieldClaim, ...]:
    """The fields of a row of the wide table that are advertised, in canonical order."""
    found = [
        FieldClaim(name, "0", str(row[column]))
        for name, column in SINGLETON_COLUMNS.items()
        if (fields is None or name in fields) and row.get(column) is not None
    ]
    headers = row.get("headers") or []
    assert isinstance(headers, list)
    found += [
        FieldClaim(header["name"], str(header["index"]), header["value"])
        for header in headers
        if fields is None or header["name"] in fields
    ]
    return canonical_fields(found)


def partitions(listing: DataFrame) -> DataFrame:
    """Count and Merkle root of every non-empty starting partition."""
    require_columns(listing, ADVERTISEMENTS, "partitions")
    return roots(listing)


def roots(digests: DataFrame) -> DataFrame:
    """Count and root of every prefix in a frame of (prefix, digest)."""
    return digests.select("prefix", "digest").groupBy("prefix").applyInArrow(summaries, PARTITIONS)


def summaries(digests: pa.Table) -> pa.Table:
    """`roots` for rows that are at hand."""
    by_prefix: dict[str, list[bytes]] = {}
    for prefix, digest in zip(digests["prefix"].to_pylist(), digests["digest"].to_pylist(), strict=True):
        by_prefix.setdefault(prefix, []).append(digest)
    roots = [b64a.encode(root) for root in partition_roots(by_prefix.values())]
    columns = {"prefix": list(by_prefix), "records": [len(found) for found in by_prefix.values()], "root": roots}
    return pa.table(columns, schema=_PARTITIONS_ARROW)
