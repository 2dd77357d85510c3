"""The tip of each coordinate as a table (110).

Rule: it holds what `Lace.tip` says of the same records under the same policy: `lace.records.tip` in columns.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user reads

from lace.limits import HORIZON_S
from lace.records.link import LINK_SUFFIX
from lace.records.retraction import ALL, RETRACT, VERSION
from lace.records.tip import EVERYBODYS, LOOKED_AT, UNSIGNED, TipPolicy, TipWriters
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
        *_PLACE, "hash", "tai", "signed_by", _every(), _singles(), F.count("*").over(coordinate).alias("records")
    )
    admitted = versions.where(_admits(policy)).withColumn("rank", rank).withColumn("reach", _reach(policy))
    stands = _standing(admitted)
    is_tip = F.col("rank") == F.min("rank").over(coordinate)
    looked_at = stands.withColumn("is_tip", is_tip).where((F.col("rank") <= LOOKED_AT) | F.col("is_tip"))
    version = F.struct("tai", "hash", "signed_by")  # in the order that decides: time, then hash
    by_writer = looked_at.groupBy(*_PLACE, "records", "signed_by").agg(F.max(version).alias("newest"))
    newest = F.sort_array(F.collect_list("newest"), asc=False)
    found = by_writer.groupBy(*_PLACE, "records").agg(newest.alias("newest"))
    tip = [F.col("newest")[0][name].alias(name) for name in ("hash", "tai", "signed_by")]
    others = F.slice("newest", F.lit(2), F.size("newest")).alias("concurrent")
    return found.select(*_PLACE, *tip, "records", others)


def _admits(policy: TipPolicy) -> Column:
    """`TipPolicy.admits` as a column."""
    is_timely = F.lit(True) if policy.until is None else F.col("tai") <= F.lit(policy.until)
    may_write = F.lit(True)
    for rule in reversed(policy.writers):  # the first that covers a version decides
        may_write = F.when(_covers(rule), _admitted(rule)).otherwise(may_write)
    return is_timely & may_write


def _reach(policy: TipPolicy) -> Column:
    """`TipPolicy.reach` as a column."""
    found = F.lit(EVERYBODYS)
    for rule in reversed(policy.writers):
        own = F.coalesce(F.col("signed_by"), F.lit(UNSIGNED)) if rule.is_own_only else F.lit(EVERYBODYS)
        found = F.when(_covers(rule), own).otherwise(found)
    return found


def _covers(rule: TipWriters) -> Column:
    """`TipWriters.covers` as a column."""
    is_ours = F.col("group") == F.lit(rule.group)
    return is_ours if rule.apps is None else is_ours & F.col("app").isin(sorted(rule.apps))


def _admitted(rule: TipWriters) -> Column:
    """`TipWriters.admit` as a column."""
    if rule.retracting is not None:
        own = _admitted(replace(rule, retracting=None))
        return F.when(_withdraws(), _admitted(rule.retracting)).otherwise(own)
    if rule.since is None:
        return F.lit(True)
    since: dict[str, list[str]] = {}
    for key, tai in rule.since.items():
        since.setdefault(tai, []).append(key)
    found = F.concat_ws(" ", "hash", "signed_by").isin([" ".join(pair) for pair in sorted(rule.standing)])
    for tai, keys in sorted(since.items()):  # no key is null: an unsigned version has no writer who may
        found = found | (F.coalesce(F.col("signed_by"), F.lit("")).isin(sorted(keys)) & (F.col("tai") >= F.lit(tai)))
    return found


# `lace.records.retraction` in columns


def _every() -> Column:
    """Whether a version withdraws all earlier ones."""
    said = F.exists("headers", lambda one: (one["name"] == RETRACT) & (one["value"] == ALL))
    return ((F.col("data_length") == 0) & F.coalesce(said, F.lit(False))).alias("every")


def _singles() -> Column:
    """The single versions that a version withdraws."""
    named = F.filter("links", lambda one: (one["name"] == RETRACT + LINK_SUFFIX) & (one["data"] == VERSION))
    targets = F.filter(F.transform(named, lambda one: one["target"]), lambda one: one.rlike("^[PS]"))
    none = F.array().cast("array<string>")
    return F.when(F.col("data_length") == 0, F.coalesce(targets, none)).otherwise(none).alias("singles")


def _withdraws() -> Column:
    """Whether a version withdraws others."""
    return F.col("every") | (F.size("singles") > 0)


def _standing(admitted: DataFrame) -> DataFrame:
    """`lace.records.tip.standing` in columns: the versions that neither withdraw nor are withdrawn."""
    withdraws, together = _withdraws(), [*_PLACE, "reach"]
    retraction = F.struct("tai", "hash", "every", "singles")
    counting = (
        admitted.where(withdraws)
        .groupBy(*together)
        .agg(F.explode(_that_count(F.sort_array(F.collect_list(retraction), asc=False))).alias("one"))
    )
    at = F.max(F.struct("one.tai", "one.hash"))
    before = counting.where("one.every").groupBy(*together).agg(at.alias("before"))
    single = counting.select(*together, "one", F.explode("one.singles").alias("hash"))
    withdrawn = single.groupBy(*together, "hash").agg(at.alias("withdrawn"))
    joined = admitted.where(~withdraws).join(before, together, "left").join(withdrawn, [*together, "hash"], "left")
    is_older = [F.coalesce(F.struct("tai", "hash") < F.col(by), F.lit(False)) for by in ("before", "withdrawn")]
    return joined.where(~is_older[0] & ~is_older[1])


def _that_count(retractions: Column) -> Column:
    """Of the retractions of a coordinate, newest first, those that no newer one that counts withdraws."""
    nothing = F.lit(False).alias("over"), F.array().cast("array<string>").alias("undone")
    start = F.struct(*nothing, F.filter(retractions, lambda one: F.lit(False)).alias("found"))

    def meet(so_far: Column, one: Column) -> Column:
        counts = ~so_far["over"] & ~F.array_contains(so_far["undone"], one["hash"])
        taken = F.struct(
            one["every"].alias("over"),
            F.concat(so_far["undone"], one["singles"]).alias("undone"),
            F.concat(so_far["found"], F.array(one)).alias("found"),
        )
        return F.when(counts, taken).otherwise(so_far)

    return F.aggregate(retractions, start, meet, lambda so_far: so_far["found"])
