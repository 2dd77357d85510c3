"""The facts of 020 as tables: wide (one row a record) is the records table itself, narrow is one row a fact.

Rule: `narrow` of a wide table holds exactly the facts that `lace.facts.derive` gives for the same records.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user reads

from lace.datalog.language.syntax import Predicate
from lace.facts.predicates import BLOB_HASH, FIELD, HAVE, PLEX_HASH, RECORD_LINK
from lace.spark.engine.pivot import every_field
from lace.spark.source.schemas import WIDE, require_columns


def have_facts(records: DataFrame) -> DataFrame:
    """Have(P)."""
    return records.select("hash")


def field_facts(records: DataFrame) -> DataFrame:
    """Field(P,Name,Index,Value)."""
    exploded = records.select("hash", F.explode(every_field()).alias("field"))
    return exploded.select("hash", "field.name", F.col("field.index").cast("string").alias("index"), "field.value")


def link_facts(records: DataFrame) -> DataFrame:
    """RecordLink(P,Name,Index,Data,Target)."""
    exploded = records.select("hash", F.explode("links").alias("link"))
    index = F.col("link.index").cast("string").alias("index")
    return exploded.select("hash", "link.name", index, "link.data", "link.target")


def blob_hash_facts(records: DataFrame) -> DataFrame:
    """BlobHash(P,H)."""
    return records.where("blob_hash is not null").select("hash", "blob_hash")


def plex_hash_facts(records: DataFrame) -> DataFrame:
    """PlexHash(P,H)."""
    return records.where("plex_hash is not null").select("hash", "plex_hash")


def narrow_facts(records: DataFrame) -> dict[Predicate, DataFrame]:
    """Every record fact, a table for each predicate."""
    require_columns(records, WIDE, "narrow_facts")
    return {
        HAVE: have_facts(records),
        FIELD: field_facts(records),
        RECORD_LINK: link_facts(records),
        BLOB_HASH: blob_hash_facts(records),
        PLEX_HASH: plex_hash_facts(records),
    }
