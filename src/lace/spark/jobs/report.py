"""Report: what there is to say about an archive, in numbers; `lace.spark.jobs.page` shows them.

Rule: every number on the page stands in the JSON too. Texts of records are data: nothing here formats them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, field
from operator import itemgetter
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user reads

from lace.spark.jobs.reconcile import partition_prefix
from lace.values import dataclass

LARGEST_GROUPS = 40
_NEWEST_MONTHS = 1200
_MONTH = 7  # characters of an ISO date
TAI_OF_UNIX = 37  # seconds; close enough to put a record into its month
SHOWN_BYTES = 48  # of a refused record's beginning
QUARANTINE_ROWS = 50
_NAMED_IN_VERDICT = 3  # peers

Counts = list[tuple[str, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantineRow:
    """A refused record: which rule, how, and where it stands."""

    rule: str
    reason: str
    file: str
    offset: int
    hash: str
    length: int
    begins: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InputRow:
    """One addition."""

    when: str
    files: int
    bytes: int
    counts: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow:
    """One step, and how long its last runs took, oldest first."""

    step: str
    seconds: list[float]
    result: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """One table, and where it lies from the page."""

    name: str
    rows: int
    files: int
    bytes: int
    link: str
    small_files: int = 0  # that compacting would write together


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerRow:
    """One peer: what it may have, what it was given, and what of the first it was not given."""

    name: str
    may_have: int
    given: int
    lacks: int
    partitions: int  # that hold something for it
    behind: int = 0  # records that it may have and has not got, as far as the archive knows


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRow:
    """One number, then and now."""

    name: str
    before: int
    now: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveReport:
    """What there is to say about an archive."""

    records: int
    data_bytes: int
    quarantined: int
    by_type: Counts
    by_coordinate: Counts
    rejected_by_rule: Counts
    growth_by_month: Counts
    selected_by_peer: Counts
    selected_by_coordinate: Counts
    by_signer: Counts = field(default_factory=list)
    by_partition: Counts = field(default_factory=list)
    quarantine_rows: list[QuarantineRow] = field(default_factory=list)
    missing_by_archive: dict[str, Counts] = field(default_factory=dict)  # archive -> partition, records
    peers: list[PeerRow] = field(default_factory=list)
    inputs: list[InputRow] = field(default_factory=list)
    steps: list[StepRow] = field(default_factory=list)
    tables: list[TableRow] = field(default_factory=list)
    since: str = ""  # the earlier version that `changes` compares with; empty if there is none
    changes: list[ChangeRow] = field(default_factory=list)
    steps_behind: list[str] = field(default_factory=list)  # that have not seen the newest batch or removal
    facts: dict[str, str] = field(default_factory=dict)  # versions, plans, whatever names this report

    @property
    def verdict(self) -> str:
        """The report in one sentence."""
        parts = [
            _number_of(self.records, "record"),
            f"{self.quarantined:,} refused" if self.quarantined else "none refused",
        ]
        behind = sorted((row for row in self.peers if row.behind), key=lambda row: (-row.behind, row.name))
        parts += [f"{row.name} is {row.behind:,} behind" for row in behind[:_NAMED_IN_VERDICT]]
        if len(behind) > _NAMED_IN_VERDICT:
            parts.append(f"{_number_of(len(behind) - _NAMED_IN_VERDICT, 'more peer')} behind")
        if self.peers and not behind:
            parts.append("every peer has what it may have")
        if self.steps_behind:
            parts.append(f"{_number_of(len(self.steps_behind), 'step')} to run again for what came since")
        return ", ".join(parts)

    def as_json(self) -> dict[str, object]:
        return {"verdict": self.verdict, **asdict(self)}


def _number_of(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


class Tally(NamedTuple):
    """One key, how many rows have it, and their bytes."""

    key: str
    rows: int
    bytes: int


Tallies = dict[str, list[Tally]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportCounts:
    """What has to be counted for a report, whichever executor counts."""

    every: Tallies  # type, partition, month
    largest: Tallies  # coordinate, signer
    chosen: Tallies = field(default_factory=dict)  # peer, coordinate: of what peers may have
    refused: Tallies = field(default_factory=dict)  # rule
    quarantined: int = 0
    quarantine_rows: list[QuarantineRow] = field(default_factory=list)


def count(records: DataFrame, quarantine: DataFrame | None, selected: DataFrame | None) -> ReportCounts:
    """What tables hold, in few queries; `selected` has columns peer and hash, None means that none are."""
    return ReportCounts(
        every=_every(records, {"type": F.col("type"), "partition": partition_prefix(), "month": _month()}),
        largest=_largest(records, {"coordinate": _coordinate(), "signer": F.col("signed_by")}),
        chosen={} if selected is None else _chosen(records, selected),
        refused={} if quarantine is None else _largest(quarantine, {"rule": F.col("rule")}),
        quarantined=0 if quarantine is None else quarantine.count(),
        quarantine_rows=[] if quarantine is None else _quarantine_rows(quarantine),
    )


def shown(
    counted: ReportCounts,
    missing: dict[str, Counts],
    *,
    peers: Sequence[PeerRow] = (),
    inputs: Sequence[InputRow] = (),
    steps: Sequence[StepRow] = (),
    tables: Sequence[TableRow] = (),
    since: str = "",
    changes: Sequence[ChangeRow] = (),
    steps_behind: Sequence[str] = (),
    facts: Mapping[str, str] | None = None,
) -> ArchiveReport:
    """What was counted, as the report says it."""
    every, largest, chosen = counted.every, counted.largest, counted.chosen
    return ArchiveReport(
        records=sum(tally.rows for tally in every["type"]),
        data_bytes=sum(tally.bytes for tally in every["type"]),
        quarantined=counted.quarantined,
        by_type=_shown(sorted(every["type"], key=lambda tally: -tally.rows)),
        by_coordinate=_shown(largest["coordinate"]),
        by_signer=_shown(largest["signer"]),
        by_partition=_shown(every["partition"]),
        rejected_by_rule=_shown(counted.refused.get("rule", ())),
        quarantine_rows=counted.quarantine_rows,
        growth_by_month=_shown(every["month"][-_NEWEST_MONTHS:]),
        selected_by_peer=_shown(chosen.get("peer", ())),
        selected_by_coordinate=_shown(chosen.get("coordinate", ())),
        missing_by_archive=missing,
        peers=list(peers),
        inputs=list(inputs),
        steps=list(steps),
        tables=list(tables),
        since=since,
        changes=list(changes),
        steps_behind=list(steps_behind),
        facts=dict(facts or {}),
    )


def _coordinate() -> Column:
    return F.concat(F.lit("//"), "group", F.lit("//"), "app", F.lit("//"))


def _month() -> Column:
    seconds = F.substring("tai", 1, 10).cast("long") - TAI_OF_UNIX
    return F.substring(F.timestamp_seconds(seconds).cast("string"), 1, _MONTH)


def _counted(frame: DataFrame, keys: Mapping[str, Column]) -> DataFrame:
    """(kind, key, rows, bytes): rows by each of some keys, in one pass and one query for all of them."""
    entries = [F.struct(F.lit(kind).alias("kind"), key.alias("key")) for kind, key in keys.items()]
    size = F.col("data_length") if "data_length" in frame.columns else F.lit(0)
    at = frame.select(F.explode(F.array(*entries)).alias("at"), size.alias("size")).where("at.key is not null")
    rows, total = F.count(F.lit(1)).alias("rows"), F.coalesce(F.sum("size"), F.lit(0)).alias("bytes")
    return at.groupBy(F.col("at.kind").alias("kind"), F.col("at.key").alias("key")).agg(rows, total)


def _every(frame: DataFrame, keys: Mapping[str, Column]) -> Tallies:
    """Every key, in its order: for keys that cannot be many."""
    return _tallies(_counted(frame, keys), keys, "key")


def _largest(frame: DataFrame, keys: Mapping[str, Column]) -> Tallies:
    """The keys that most rows have; each task sorts out most of the others before any are brought together."""
    first = Window.partitionBy("kind").orderBy(F.desc("rows"), "key")
    ranked = _counted(frame, keys).withColumn("place", F.row_number().over(first))
    return _tallies(ranked.where(F.col("place") <= LARGEST_GROUPS), keys, "place")


def _tallies(counted: DataFrame, kinds: Iterable[str], order: str) -> Tallies:
    found: Tallies = {kind: [] for kind in kinds}
    for row in sorted(counted.collect(), key=itemgetter(order)):
        found[row["kind"]].append(Tally(row["key"], row["rows"], row["bytes"]))
    return found


def _chosen(records: DataFrame, selected: DataFrame) -> Tallies:
    """What peers may have; a record that is not here any more has no coordinate."""
    joined = selected.join(records.select("hash", "group", "app"), on="hash", how="left")
    return _largest(joined, {"peer": F.col("peer"), "coordinate": _coordinate()})


def _shown(tallies: Iterable[Tally]) -> Counts:
    return [(tally.key, tally.rows) for tally in tallies]


def missing_counts(by_partition: DataFrame) -> dict[str, Counts]:
    """What each archive lacks, by partition: (archive, prefix, records)."""
    found: dict[str, Counts] = {}
    for row in by_partition.orderBy("archive", "prefix").collect():
        found.setdefault(str(row["archive"]), []).append((str(row["prefix"]), int(row["records"])))
    return found


def _quarantine_rows(quarantine: DataFrame) -> list[QuarantineRow]:
    """The first refused records of each file, in their order."""
    beginning = F.hex(F.substring("stored", 1, SHOWN_BYTES)).alias("begins")
    chosen = quarantine.select(
        "rule", "reason", "bundle", "offset", "hash", F.octet_length("stored").alias("length"), beginning
    )
    rows = chosen.orderBy("bundle", "offset").limit(QUARANTINE_ROWS).collect()
    return [quarantine_row({**row.asDict(), "begins": bytes.fromhex(row["begins"] or "")}) for row in rows]


def quarantine_row(row: Mapping[str, Any]) -> QuarantineRow:
    """A row of the quarantine with the length and the beginning of its bytes, as the report says it."""
    return QuarantineRow(
        rule=row["rule"] or "",
        reason=row["reason"] or "",
        file=row["bundle"],
        offset=row["offset"],
        hash=row["hash"] or "",
        length=row["length"],
        begins=row["begins"].decode("utf-8", "replace"),
    )
