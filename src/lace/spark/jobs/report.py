"""Report: what there is to say about an archive, in numbers; `lace.spark.jobs.page` shows them.

Rule: every number on the page stands in the JSON too. Texts of records are data: nothing here formats them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user reads

from lace.spark.jobs.reconcile import partition_prefix

LARGEST_GROUPS = 40
_NEWEST_MONTHS = 1200
_MONTH = 7  # characters of an ISO date
_TAI_OF_UNIX = 37  # seconds; close enough to put a record into its month
_SHOWN_BYTES = 48  # of a refused record's beginning
QUARANTINE_ROWS = 50

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


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerRow:
    """One peer: what it may have, what it was given, and what of the first it was not given."""

    name: str
    may_have: int
    given: int
    lacks: int
    partitions: int  # that hold something for it


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
    facts: dict[str, str] = field(default_factory=dict)  # versions, plans, whatever names this report

    def as_json(self) -> dict[str, object]:
        return asdict(self)


def summary(
    records: DataFrame,
    quarantine: DataFrame,
    selected: DataFrame | None,
    missing: DataFrame | dict[str, Counts] | None = None,
    *,
    peers: Sequence[PeerRow] = (),
    inputs: Sequence[InputRow] = (),
    steps: Sequence[StepRow] = (),
    tables: Sequence[TableRow] = (),
    facts: Mapping[str, str] | None = None,
) -> ArchiveReport:
    """Everything the report shows, in a handful of small aggregations; `selected` has columns peer and hash."""
    total = records.agg(F.count(F.lit(1)).alias("n"), F.coalesce(F.sum("data_length"), F.lit(0)).alias("bytes")).first()
    assert total is not None
    chosen = None if selected is None else selected.join(records.select("hash", "group", "app"), on="hash")
    return ArchiveReport(
        records=total["n"],
        data_bytes=total["bytes"],
        quarantined=quarantine.count(),
        by_type=_counts(records, F.col("type")),
        by_coordinate=_counts(records.where("group is not null"), _coordinate()),
        by_signer=_counts(records.where("signed_by is not null"), F.col("signed_by")),
        by_partition=_partition_counts(records.select(partition_prefix()).groupBy("prefix").count()),
        rejected_by_rule=_counts(quarantine, F.col("rule")),
        quarantine_rows=_quarantine_rows(quarantine),
        growth_by_month=_counts_by_month(records),
        selected_by_peer=[] if selected is None else _counts(selected, F.col("peer")),
        selected_by_coordinate=[] if chosen is None else _counts(chosen.where("group is not null"), _coordinate()),
        missing_by_archive=missing_counts(missing) if isinstance(missing, DataFrame) else missing or {},
        peers=list(peers),
        inputs=list(inputs),
        steps=list(steps),
        tables=list(tables),
        facts=dict(facts or {}),
    )


def _coordinate() -> Column:
    return F.concat(F.lit("//"), "group", F.lit("//"), "app", F.lit("//"))


def _month() -> Column:
    seconds = F.substring("tai", 1, 10).cast("long") - _TAI_OF_UNIX
    return F.substring(F.timestamp_seconds(seconds).cast("string"), 1, _MONTH)


def _counts(frame: DataFrame, key: Column) -> Counts:
    rows = frame.groupBy(key.alias("key")).count().orderBy(F.desc("count"), "key").limit(LARGEST_GROUPS).collect()
    return [(str(row["key"]), int(row["count"])) for row in rows]


def _partition_counts(counted: DataFrame) -> Counts:
    """(prefix, count): at most as many as there are partitions of two characters (050-PART-03)."""
    return sorted((str(row["prefix"]), int(row["count"])) for row in counted.collect())


def missing_counts(by_partition: DataFrame) -> dict[str, Counts]:
    """What each archive lacks, by partition: (archive, prefix, records)."""
    found: dict[str, Counts] = {}
    for row in by_partition.orderBy("archive", "prefix").collect():
        found.setdefault(str(row["archive"]), []).append((str(row["prefix"]), int(row["records"])))
    return found


def _quarantine_rows(quarantine: DataFrame) -> list[QuarantineRow]:
    """The first refused records of each file, in their order."""
    beginning = F.hex(F.substring("stored", 1, _SHOWN_BYTES)).alias("begins")
    chosen = quarantine.select(
        "rule", "reason", "bundle", "offset", "hash", F.octet_length("stored").alias("length"), beginning
    )
    rows = chosen.orderBy("bundle", "offset").limit(QUARANTINE_ROWS).collect()
    return [
        QuarantineRow(
            rule=row["rule"] or "",
            reason=row["reason"] or "",
            file=row["bundle"],
            offset=row["offset"],
            hash=row["hash"] or "",
            length=row["length"],
            begins=bytes.fromhex(row["begins"] or "").decode("utf-8", "replace"),
        )
        for row in rows
    ]


def _counts_by_month(records: DataFrame) -> Counts:
    """The newest months, oldest first: in time none is left out because it is small."""
    months = records.where("tai is not null").groupBy(_month().alias("key")).count()
    rows = months.orderBy(F.desc("key")).limit(_NEWEST_MONTHS).collect()
    return [(str(row["key"]), int(row["count"])) for row in reversed(rows)]
