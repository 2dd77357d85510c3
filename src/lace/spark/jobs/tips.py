"""The tip of each coordinate as a table (110).

Rule: it holds what `Lace.tip` says of the same records under the same policy: `lace.records.tip` in columns.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user reads

from lace.limits import HORIZON_S
from lace.records.tip import LOOKED_AT, TipPolicy
from lace.runtime.clock import SystemClock
from lace.spark.source.schemas import WIDE, require_columns

_PLACE = ("group", "app", "name")


def tips(records: DataFrame, policy: TipPolicy | None = None) -> DataFrame:
    """(group, app, name, hash, tai, signed_by, records, concurrent): a row for each coordinate that has a tip.

    `records` counts all versions, `concurrent` holds the newest version of each other writer, newest first. Without a
    policy the default one of this moment holds.
    """
    require_columns(records, WIDE, "tips")
    policy = policy or TipPolicy.at(SystemClock().tai(), HORIZON_S)
    coordinate = Window.partitionBy(*_PLACE)
    rank = F.row_number().over(coordinate.orderBy(F.desc("tai"), F.desc("hash")))
    versions = records.where("name is not null").select(
        *_PLACE, "hash", "tai", "signed_by", F.count("*").over(coordinate).alias("records")
    )
    looked_at = versions.where(_admits(policy)).withColumn("rank", rank).where(F.col("rank") <= LOOKED_AT)
    version = F.struct("tai", "hash", "signed_by")  # in the order that decides: time, then hash
    by_writer = looked_at.groupBy(*_PLACE, "records", "signed_by").agg(F.max(version).alias("newest"))
    newest = F.sort_array(F.collect_list("newest"), asc=False)
    found = by_writer.groupBy(*_PLACE, "records").agg(newest.alias("newest"))
    tip = [F.col("newest")[0][name].alias(name) for name in ("hash", "tai", "signed_by")]
    others = F.slice("newest", F.lit(2), F.size("newest")).alias("concurrent")
    return found.select(*_PLACE, *tip, "records", others)


def _admits(policy: TipPolicy) -> Column:
    """`TipPolicy.admits` as a column."""
    return F.lit(True) if policy.until is None else F.col("tai") <= F.lit(policy.until)
