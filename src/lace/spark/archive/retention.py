"""Retention by rules: what `Keep(P)` derives stays, the rest may go.

Rule: nothing is removed that a rule keeps, every decision can be explained by the rules that made it, and a rule file
that keeps nothing is refused: it is more often a mistake than a wish.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user reads

from lace.porcelain.keeping import NOWHERE, KeepingRule, keep_program, require_kept
from lace.spark.archive import tables
from lace.spark.archive.archive import Archive
from lace.spark.engine.executor import evaluate
from lace.spark.engine.relations import union
from lace.values import dataclass

_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of one record, and by which rules."""

    hash: str
    here: bool
    kept_by: tuple[KeepingRule, ...]


@dataclass(frozen=True, slots=True)
class Decision:
    """What would go and stay, and why."""

    kept: int
    rules: tuple[KeepingRule, ...]
    kept_by: DataFrame  # rule (its number in `rules`), hash
    removed: DataFrame  # hash, group, app, name, ts
    removed_rows: int
    by_coordinate: list[tuple[str, int]]
    first: list[tuple[str, str, str]]  # hash, coordinate, time

    def going(self) -> Iterator[tuple[str, str, str]]:
        """Every record that would go, the oldest first."""
        return map(_line, _oldest_first(self.removed).toLocalIterator())

    def fates(self, hashes: Sequence[str]) -> list[Fate]:
        """What becomes of some records."""
        if not hashes:
            return []
        wanted = F.col("hash").isin([str(text) for text in hashes])
        by_rule = {(row["hash"], row["rule"]) for row in self.kept_by.where(wanted).collect()}
        going = {row["hash"] for row in self.removed.where(wanted).select("hash").collect()}
        return [
            Fate(text, bool(rules) or text in going, rules)
            for text in hashes
            for rules in [tuple(rule for at, rule in enumerate(self.rules) if (text, at) in by_rule)]
        ]


def decide(archive: Archive, rules: str, name: str = "<rules>") -> Decision:
    """What some rules keep of an archive as it is."""
    program = keep_program(rules, name)
    records = archive.table("records")
    found = evaluate(
        program.checked,
        {},
        spark=archive.spark,
        records=tables.as_wide(records),
        goals=program.each,
        limits=program.limits,
    )
    rows = records.select("hash", "group", "app", "name", "ts")
    derived = union(
        found.frame(one).select(F.lit(number).alias("rule"), F.col("c0").alias("hash"))
        for number, one in enumerate(program.each)
    )
    kept_by = derived.join(rows.select("hash"), on="hash", how="left_semi").persist()
    kept = kept_by.select("hash").distinct()
    counts = {row["rule"]: row["count"] for row in kept_by.groupBy("rule").count().collect()}
    require_kept(len(counts), name)
    removed = rows.join(kept, on="hash", how="left_anti").persist()
    groups = removed.groupBy(_place().alias("place")).count().orderBy(F.desc("count"), "place").limit(_SHOWN).collect()
    return Decision(
        kept=kept.count(),
        rules=program.told(name, lambda at: counts.get(at, 0)),
        kept_by=kept_by,
        removed=removed,
        removed_rows=removed.count(),
        by_coordinate=[(row["place"], row["count"]) for row in groups],
        first=[_line(row) for row in _oldest_first(removed).limit(_SHOWN).collect()],
    )


def _place() -> Column:
    whole = F.concat_ws("//", F.lit(""), F.coalesce("group", F.lit("")), F.coalesce("app", F.lit("")), F.lit(""))
    return F.when(F.col("group").isNull() & F.col("app").isNull(), NOWHERE).otherwise(whole)


def _oldest_first(rows: DataFrame) -> DataFrame:
    return rows.orderBy("ts", "hash").select("hash", _place().alias("place"), "name", "ts")


def _line(row: Row) -> tuple[str, str, str]:
    return row["hash"], f"{row['place']}{row['name'] or ''}", str(row["ts"] or "")
