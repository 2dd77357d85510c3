"""Report: a readable summary of an archive, as numbers and as one HTML page with plots.

Rule: the page is one file that needs nothing from elsewhere; every number on it stands in the JSON too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user reads

_LARGEST_GROUPS = 40
_NEWEST_MONTHS = 1200
_MONTHS_SHOWN = 36
_MONTH = 7  # characters of an ISO date
_TYPES = {"B": "Blob", "P": "Plex", "S": "Seal"}
_LABEL_LENGTH = 32
_TAI_OF_UNIX = 37  # seconds; close enough to put a record into its month
_BAR_WIDTH, _BAR_HEIGHT, _LABEL_WIDTH = 420, 18, 220

Counts = list[tuple[str, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
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

    def as_json(self) -> dict[str, object]:
        return asdict(self)


def summary(records: DataFrame, quarantine: DataFrame, selected: DataFrame | None) -> Report:
    """Everything the report shows, in a handful of small aggregations."""
    total = records.agg(F.count(F.lit(1)).alias("n"), F.coalesce(F.sum("data_length"), F.lit(0)).alias("bytes")).first()
    assert total is not None
    chosen = None if selected is None else selected.join(records.select("hash", "group", "app"), on="hash")
    return Report(
        records=total["n"],
        data_bytes=total["bytes"],
        quarantined=quarantine.count(),
        by_type=_counts(records, F.col("type")),
        by_coordinate=_counts(records.where("group is not null"), _coordinate()),
        rejected_by_rule=_counts(quarantine, F.col("rule")),
        growth_by_month=_counts_by_month(records),
        selected_by_peer=[] if selected is None else _counts(selected, F.col("peer")),
        selected_by_coordinate=[] if chosen is None else _counts(chosen.where("group is not null"), _coordinate()),
    )


def _coordinate() -> Column:
    return F.concat(F.lit("//"), "group", F.lit("//"), "app", F.lit("//"))


def _month() -> Column:
    seconds = F.substring("tai", 1, 10).cast("long") - _TAI_OF_UNIX
    return F.substring(F.timestamp_seconds(seconds).cast("string"), 1, _MONTH)


def _counts(frame: DataFrame, key: Column) -> Counts:
    rows = frame.groupBy(key.alias("key")).count().orderBy(F.desc("count"), "key").limit(_LARGEST_GROUPS).collect()
    return [(str(row["key"]), int(row["count"])) for row in rows]


def _counts_by_month(records: DataFrame) -> Counts:
    """The newest months, oldest first: in time none is left out because it is small."""
    months = records.where("tai is not null").groupBy(_month().alias("key")).count()
    rows = months.orderBy(F.desc("key")).limit(_NEWEST_MONTHS).collect()
    return [(str(row["key"]), int(row["count"])) for row in reversed(rows)]


def page(report: Report, manifest: Mapping[str, object]) -> str:
    """The HTML page."""
    sections = [
        _chart("Records by type", [(_TYPES.get(kind, kind), count) for kind, count in report.by_type]),
        _chart("Records by group and app", report.by_coordinate),
        _chart("Refused, by rule", report.rejected_by_rule),
        _growth_chart(report.growth_by_month),
        _chart("Selected, by peer", report.selected_by_peer),
        _chart("Selected, by group and app", report.selected_by_coordinate),
    ]
    facts = [
        ("records", f"{report.records:,}"),
        ("data", f"{report.data_bytes:,} bytes"),
        ("in quarantine", f"{report.quarantined:,}"),
        *((name, str(value)) for name, value in manifest.items()),
    ]
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in facts)
    return _PAGE.format(rows=rows, sections="".join(sections))


def _growth_chart(by_month: Counts) -> str:
    """Months while a reader can take them in, else years."""
    if len(by_month) <= _MONTHS_SHOWN:
        return _chart("Growth by month (of the records' own time)", by_month)
    years: dict[str, int] = {}
    for month, count in by_month:
        years[month[:4]] = years.get(month[:4], 0) + count
    return _chart("Growth by year (of the records' own time)", list(years.items()))


def _short(label: str) -> str:
    """A label that fits beside its bar: its end is what tells coordinates apart."""
    return label if len(label) <= _LABEL_LENGTH else "…" + label[1 - _LABEL_LENGTH :]


def _chart(title: str, counts: Sequence[tuple[str, int]]) -> str:
    """Horizontal bars as inline SVG."""
    if not counts:
        return ""
    if len(counts) == _LARGEST_GROUPS:
        title += f", the {_LARGEST_GROUPS} largest"
    most = max(count for _, count in counts)
    bars = []
    for place, (label, count) in enumerate(counts):
        y = place * (_BAR_HEIGHT + 4)
        width = max(1, round(_BAR_WIDTH * count / most))
        bars.append(
            f'<text x="{_LABEL_WIDTH - 8}" y="{y + 13}" text-anchor="end">{escape(_short(label))}'
            f"<title>{escape(label)}</title></text>"
            f'<rect x="{_LABEL_WIDTH}" y="{y}" width="{width}" height="{_BAR_HEIGHT}" rx="2"/>'
            f'<text x="{_LABEL_WIDTH + width + 6}" y="{y + 13}">{count:,}</text>'
        )
    height = len(counts) * (_BAR_HEIGHT + 4)
    view = f"0 0 {_LABEL_WIDTH + _BAR_WIDTH + 90} {height}"
    return f'<h2>{escape(title)}</h2><svg viewBox="{view}" style="height:{height}px">{"".join(bars)}</svg>'


_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Archive report</title>
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; margin: 2.5em auto; max-width: 52em; padding: 0 1em; color: #222 }}
h1 {{ font-size: 1.6em }} h2 {{ font-size: 1.1em; margin-top: 2em }}
table {{ border-collapse: collapse }} th {{ text-align: left; font-weight: 500; color: #666; padding-right: 2em }}
svg {{ width: 100%; max-width: 730px }} svg text {{ font-size: 12px; fill: #444 }} svg rect {{ fill: #3b6ea5 }}
</style>
<h1>Archive report</h1><table>{rows}</table>{sections}</html>
"""
