"""The tables of the pipeline and the check at every door (020 as columns).

Rule: a step states the schema it takes and the one it gives; a frame that differs is refused by column name.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from lace.errors import InvalidInput
from lace.facts import predicates

HEADER: StructType = StructType(
    [
        StructField("name", StringType(), False),
        StructField("index", IntegerType(), False),
        StructField("value", StringType(), False),
    ]
)
LINK: StructType = StructType(
    [
        StructField("name", StringType(), False),
        StructField("index", IntegerType(), False),
        StructField("data", StringType(), False),
        StructField("target", StringType(), False),
    ]
)

# One row per record: singleton fields as columns, repeated headers and links as arrays ("wide beats narrow").
WIDE: StructType = StructType(
    [
        StructField("hash", StringType()),
        StructField("type", StringType()),
        StructField("group", StringType()),
        StructField("app", StringType()),
        StructField("name", StringType()),
        StructField("tai", StringType()),
        StructField("signed_by", StringType()),
        StructField("signature", StringType()),
        StructField("blob_hash", StringType()),
        StructField("plex_hash", StringType()),
        StructField("data_length", LongType()),
        StructField("headers", ArrayType(HEADER, False)),
        StructField("links", ArrayType(LINK, False)),
    ]
)
DATA: StructField = StructField("data", BinaryType())  # the Blob's bytes, only where asked for
STORED: StructField = StructField("stored", BinaryType())  # the whole stored record
ORIGIN: tuple[StructField, ...] = (
    StructField("bundle", StringType()),
    StructField("offset", LongType()),
)  # where a record was read
CORRUPT: StructField = StructField("_corrupt_record", StringType())  # why a record is none, null for good ones
CONTENT: StructField = StructField("content", StringType())  # the digest of the whole stored bytes, right or wrong
REFUSAL: tuple[StructField, ...] = (StructField("rule", StringType()), StructField("reason", StringType()))
RAW: StructType = StructType([StructField("hash", StringType()), CONTENT, *ORIGIN, STORED, *REFUSAL])
JUDGED: StructType = StructType([*WIDE.fields, CONTENT, *ORIGIN, STORED, *REFUSAL])
RECORDS: StructType = StructType([*WIDE.fields, CONTENT, *ORIGIN])
QUARANTINE: StructType = StructType([StructField("hash", StringType()), *ORIGIN, *REFUSAL, STORED])

# What each column of a table of records is, for `DESCRIBE` and catalogs.
COMMENTS = {
    "hash": "the record's id: type letter, BLAKE3 of the record, H3",
    "type": "B for a Blob, P for a Plex, S for a Seal",
    "group": "first part of the coordinate",
    "app": "second part of the coordinate",
    "name": "third part of the coordinate",
    "tai": "the time that the record states, TAI seconds:nanoseconds",
    "signed_by": "the verifier that signed, of a Seal",
    "signature": "the signature, of a Seal",
    "blob_hash": "the Blob inside a Plex or Seal",
    "plex_hash": "the Plex inside a Seal",
    "data_length": "bytes of data in the Blob",
    "headers": "the other headers, each with its place among those of its name",
    "links": "well-formed +Link headers: relation, data, target",
    "data": "the Blob's bytes",
    "stored": "the whole stored record",
    "_corrupt_record": "why this is no valid record; null for a valid one",
}

# Field names of the record definition that every record holds at most once -> their column.
SINGLETON_COLUMNS = {
    predicates.TYPE: "type",
    predicates.DATA_LENGTH: "data_length",
    predicates.GROUP: "group",
    predicates.APP: "app",
    predicates.NAME: "name",
    predicates.TAI: "tai",
    predicates.SIGNED_BY: "signed_by",
    predicates.SIGNATURE: "signature",
}


_ARROW: dict[DataType, pa.DataType] = {
    StringType(): pa.string(),
    BinaryType(): pa.binary(),
    BooleanType(): pa.bool_(),
    IntegerType(): pa.int32(),
    LongType(): pa.int64(),
    TimestampType(): pa.timestamp("us", tz="UTC"),
}


def arrow_schema(schema: StructType) -> pa.Schema:
    """Columns as Arrow and Parquet know them; PySpark's own way there is not the same in every version."""
    return pa.schema([_arrow_field(field) for field in schema.fields])


def _arrow_field(field: StructField) -> pa.Field:
    return pa.field(field.name, _arrow_type(field.dataType), nullable=field.nullable)


def _arrow_type(kind: DataType) -> pa.DataType:
    match kind:
        case ArrayType(elementType=element, containsNull=nullable):
            return pa.list_(pa.field("element", _arrow_type(element), nullable=nullable))
        case MapType(keyType=key, valueType=value, valueContainsNull=nullable):
            values = pa.field("value", _arrow_type(value), nullable=nullable)
            return pa.map_(pa.field("key", _arrow_type(key), nullable=False), values)
        case StructType():
            return pa.struct([_arrow_field(field) for field in kind.fields])
        case _:
            return _ARROW[kind]


class WrongSchema(InvalidInput):
    """A frame lacks a column, or has it with another type."""


def require_columns(frame: DataFrame, schema: StructType, door: str) -> DataFrame:
    """The frame itself if it has every column of `schema` with its type; more columns are fine."""
    found = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    for field in schema.fields:
        wanted = field.dataType.simpleString()
        if found.get(field.name) != wanted:
            raise WrongSchema(
                f"column {field.name} must be {wanted}",
                rule="schema",
                place=door,
                found=found.get(field.name, "no such column"),
            )
    return frame
