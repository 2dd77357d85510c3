"""Validate: structure, hashes, embedded records and signatures, in parallel over all cores (010).

Rule: nothing is lost. Every row that goes in comes out once, as a record or with the rule it broke and its bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame

from lace.limits import JudgingLimits
from lace.spark.source.judging import judge
from lace.spark.source.rows import record_arrays
from lace.spark.source.schemas import JUDGED, QUARANTINE, RAW, RECORDS, WIDE, arrow_schema, require_columns
from lace.workers.collector import seldom_collecting

_PASSED_ON = ("content", "bundle", "offset")


def judged(raw: DataFrame, *, keep_bytes: bool = False, limits: JudgingLimits | None = None) -> DataFrame:
    """Every row with its record's fields, or with `rule`, `reason` and its bytes where it is no record.

    The bytes of a good record stay in the table that they came from unless `keep_bytes` asks for them.
    """
    require_columns(raw, RAW, "judged")
    return raw.mapInArrow(partial(_judge, keep_bytes, limits or JudgingLimits()), JUDGED)


def records(judgement: DataFrame) -> DataFrame:
    """The good ones as a wide table, without bytes."""
    require_columns(judgement, JUDGED, "records")
    return judgement.where("rule is null").select(*RECORDS.names)


def quarantine(judgement: DataFrame) -> DataFrame:
    """The others, with their bytes and the rule they broke."""
    require_columns(judgement, JUDGED, "quarantine")
    return judgement.where("rule is not null").select(*QUARANTINE.names)


def _judge(keep_bytes: bool, limits: JudgingLimits, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    schema = arrow_schema(JUDGED)
    for batch in batches:
        with seldom_collecting():
            judgement = judge_batch(batch, schema, limits, keep_bytes=keep_bytes)
        yield judgement


def judge_batch(batch: pa.RecordBatch, schema: pa.Schema, limits: JudgingLimits, *, keep_bytes: bool) -> pa.RecordBatch:
    """The rows of `raw` as rows of `judged`."""
    stored, rules, reasons, claimed = (batch[name].to_pylist() for name in ("stored", "rule", "reason", "hash"))
    found = judge(zip(stored, rules, reasons, strict=True), limits)
    valid = [verdict.record for verdict in found]
    columns = {name: batch[name] for name in _PASSED_ON} | record_arrays(valid, WIDE.names)
    # A refused record keeps the hash that it claimed: that is what its owner will look for.
    hashes = [claim if one is None else one.hash for one, claim in zip(valid, claimed, strict=True)]
    kept = [body if keep_bytes or one is None else None for one, body in zip(valid, stored, strict=True)]
    columns |= {"hash": pa.array(hashes, pa.string()), "stored": pa.array(kept, pa.binary())}
    columns["rule"] = pa.array([verdict.rule for verdict in found], pa.string())
    columns["reason"] = pa.array([verdict.reason for verdict in found], pa.string())
    return pa.record_batch([columns[field.name].cast(field.type) for field in schema], schema=schema)
