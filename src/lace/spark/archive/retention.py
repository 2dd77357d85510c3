"""Retention by rules: what `Keep(P)` derives stays, the rest may go.

Rule: nothing is removed that a rule keeps, and a rule file that keeps nothing is refused: it is more often a mistake
than a wish.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user reads

from lace.datalog.annotations import read_annotated
from lace.datalog.limiting import stated_limits
from lace.datalog.syntax import Predicate
from lace.datalog.validate import LOCAL_PROFILE, check_program
from lace.errors import InvalidInput
from lace.spark.archive import tables
from lace.spark.archive.archive import Archive
from lace.spark.executor import evaluate

KEEP = Predicate("Keep", 1)
_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Decision:
    """What would go and stay, and why."""

    kept: int
    removed: DataFrame  # hash, group, app, name, ts
    removed_rows: int
    by_coordinate: list[tuple[str, int]]
    first: list[tuple[str, str, str]]  # hash, coordinate, time


def decide(archive: Archive, rules: str, name: str = "<rules>") -> Decision:
    """What some rules keep of an archive as it is."""
    bounds = stated_limits(rules, name=name)
    checked = check_program(read_annotated(rules, name=name, limits=bounds).program, LOCAL_PROFILE, bounds)
    if KEEP not in {rule.head.predicate for rule in checked.program.rules}:
        raise InvalidInput("retention rules derive Keep(P)", rule="retention-goal", place=name)
    records = archive.table("records")
    found = evaluate(checked, {}, spark=archive.spark, records=tables.as_wide(records), goals=[KEEP], limits=bounds)
    kept = found.frame(KEEP).toDF("hash")
    rows = records.select("hash", "group", "app", "name", "ts")
    staying = rows.join(kept, on="hash", how="left_semi").count()
    if not staying:
        raise InvalidInput("these rules keep no record at all", rule="retention-empty", place=name)
    removed = rows.join(kept, on="hash", how="left_anti").persist()
    place = F.concat_ws("//", F.lit(""), F.coalesce("group", F.lit("")), F.coalesce("app", F.lit("")), F.lit(""))
    groups = removed.groupBy(place.alias("place")).count().orderBy(F.desc("count"), "place").limit(_SHOWN).collect()
    first = removed.orderBy("ts", "hash").limit(_SHOWN).select("hash", place.alias("place"), "name", "ts").collect()
    return Decision(
        kept=staying,
        removed=removed,
        removed_rows=removed.count(),
        by_coordinate=[(row["place"], row["count"]) for row in groups],
        first=[(row["hash"], f"{row['place']}{row['name'] or ''}", str(row["ts"] or "")) for row in first],
    )
