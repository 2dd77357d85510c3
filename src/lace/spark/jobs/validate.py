"""Validate: structure, hashes, embedded records and signatures, in parallel over all cores (010).

Rule: nothing is lost. Every row that goes in comes out once, as a record or with the rule it broke and its bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from lace.errors import InvalidInput
from lace.records.model import ValidRecord
from lace.records.validate import validate
from lace.spark.rows import arrow_schema, column_values
from lace.spark.schemas import JUDGED, QUARANTINE, RAW, RECORDS, WIDE, require_columns

_PASSED_ON = ("content", "bundle", "offset", "stored")


def judged(raw: DataFrame) -> DataFrame:
    """Every row with its record's fields, or with `rule` and `reason` where it is no record."""
    require_columns(raw, RAW, "judged")
    return raw.mapInArrow(_judge, JUDGED)


def records(judgement: DataFrame) -> DataFrame:
    """The good ones as a wide table, without bytes."""
    require_columns(judgement, JUDGED, "records")
    return judgement.where("rule is null").select(*RECORDS.names)


def quarantine(judgement: DataFrame) -> DataFrame:
    """The others, with their bytes and the rule they broke."""
    require_columns(judgement, JUDGED, "quarantine")
    return judgement.where("rule is not null").select(*QUARANTINE.names)


def _judge(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    schema = arrow_schema(JUDGED.names, _other_fields(JUDGED))
    for batch in batches:
        found = [
            _verdict(*row)
            for row in zip(*(batch[name].to_pylist() for name in ("stored", "rule", "reason")), strict=True)
        ]
        valid = [record for record, _, _ in found]
        columns: dict[str, object] = {name: batch[name] for name in _PASSED_ON}
        columns |= {name: column_values(valid, name) for name in WIDE.names}
        # A refused record keeps the hash that it claimed: that is what its owner will look for.
        columns["hash"] = [
            c if v is None else str(v.hash) for v, c in zip(valid, batch["hash"].to_pylist(), strict=True)
        ]
        columns |= {"rule": [rule for _, rule, _ in found], "reason": [reason for _, _, reason in found]}
        yield pa.record_batch([_array(columns[field.name], field.type) for field in schema], schema=schema)


def _verdict(stored: bytes, rule: str | None, reason: str | None) -> tuple[ValidRecord | None, str | None, str | None]:
    """What was refused while reading stays refused; everything else is judged here."""
    if rule is not None:
        return None, rule, reason
    try:
        return validate(stored), None, None
    except InvalidInput as error:
        return None, error.rule, str(error)


def _array(values: object, kind: pa.DataType) -> pa.Array:
    return values.cast(kind) if isinstance(values, pa.Array) else pa.array(values, kind)


def _other_fields(schema: StructType) -> list[pa.Field]:
    kinds = {"string": pa.string(), "bigint": pa.int64(), "binary": pa.binary()}
    return [
        pa.field(field.name, kinds[field.dataType.simpleString()])
        for field in schema.fields
        if field.name not in WIDE.names
    ]
