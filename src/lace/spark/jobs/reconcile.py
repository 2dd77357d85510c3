"""Reconcile: what each of several archives lacks, by partition, without moving a record (050, P16).

Rule: only hashes are compared. An archive is a frame with a `hash` column; a peer's listing is one too.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user reads

PREFIX_LENGTH = 2  # 050-PART-03
PARTITIONS = 64**PREFIX_LENGTH


def partition_prefix(length: int = PREFIX_LENGTH) -> Column:
    """The partition of a record: the first characters of its hash payload, whatever its type (050-PART-01)."""
    return F.substring("hash", 3, length).alias("prefix")


def holdings(archives: Mapping[str, DataFrame]) -> DataFrame:
    """(archive, hash), each pair once."""
    named = [frame.select(F.lit(name).alias("archive"), "hash") for name, frame in sorted(archives.items())]
    return reduce(DataFrame.unionByName, named).distinct()


def missing_records(archives: Mapping[str, DataFrame]) -> DataFrame:
    """(archive, prefix, hash, held_by): every record that some archive has and this one lacks."""
    names = F.array(*(F.lit(name) for name in sorted(archives)))
    holders = holdings(archives).groupBy("hash").agg(F.sort_array(F.collect_set("archive")).alias("held_by"))
    lacking = holders.select(F.explode(names).alias("archive"), "hash", "held_by")
    lacking = lacking.where(~F.array_contains("held_by", F.col("archive")))
    return lacking.select("archive", partition_prefix(), "hash", "held_by")


def missing_by_partition(missing: DataFrame) -> DataFrame:
    """(archive, prefix, records): how much each archive lacks, where."""
    return missing.groupBy("archive", "prefix").agg(F.count(F.lit(1)).alias("records"))
