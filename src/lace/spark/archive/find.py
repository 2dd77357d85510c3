"""Look records up by hash, coordinate and time, opening only files that may hold them.

Rule: files are chosen on the driver from what their commit says of them; whoever reads those tests each row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user reads

from lace.spark.archive.archive import ArchiveLookup
from lace.spark.archive.executors import Need, Step, files_rows, is_for_process
from lace.spark.archive.moments import micros, parse_moment, second
from lace.spark.archive.tables import between, holding
from lace.spark.archive.versions import DataFile, State

if TYPE_CHECKING:
    from lace.spark.archive.archive import Archive
    from lace.spark.archive.filesystem import Files

COLUMNS = ("hash", "type", "group", "app", "name", "ts", "signed_by", "data_length")
_COORDINATE = ("group", "app", "name")
MOST_COUNTED = 1_000_000  # refused records whose rules this process counts
_SHOWN_RULES = 3
Frame = Callable[[State, str, Iterable[DataFile]], DataFrame]


class _Sought(NamedTuple):
    """A question as the files that may hold its answer, and as what holds for a row."""

    table: str
    files: list[DataFile]
    equal: dict[str, str]
    since: datetime | None
    until: datetime | None


def _sought(state: State, question: ArchiveLookup) -> _Sought:
    if question.hashes:
        return _Sought("records", holding(state.table("records"), "hash", question.hashes), {}, None, None)
    files = list(state.table("coordinates"))
    equal = {column: value for column in _COORDINATE if (value := getattr(question, column)) is not None}
    for column, value in equal.items():
        files = holding(files, column, [value])
    since, until = (
        None if text is None else parse_moment(text, "lookup-time") for text in (question.since, question.until)
    )
    if since is not None or until is not None:
        files = between(files, "ts", *(None if end is None else second(end) for end in (since, until)))
    return _Sought("coordinates", files, equal, since, until)


def lookup(frame: Frame, state: State, question: ArchiveLookup) -> tuple[DataFrame, list[DataFile]]:
    """The narrow rows that a question asks for: by hash from `records`, else from `coordinates`."""
    sought = _sought(state, question)
    rows = frame(state, sought.table, sought.files)
    tests: list[Column] = [F.col(column) == value for column, value in sought.equal.items()]
    if question.hashes:
        tests.append(F.col("hash").isin(list(question.hashes)))
    if sought.since is not None:
        tests.append(F.col("ts") >= F.timestamp_micros(F.lit(micros(sought.since))))
    if sought.until is not None:
        tests.append(F.col("ts") <= F.timestamp_micros(F.lit(micros(sought.until))))
    return (rows.where(reduce(and_, tests)) if tests else rows), sought.files


def rows(archive: Archive, state: State, question: ArchiveLookup, limit: int, step: Step) -> list[dict[str, Any]]:
    """The answer as values, the newest first and at most so many; by this process if it can look through the files."""
    sought = _sought(state, question)
    if is_for_process(archive, Need(scanned_rows=files_rows(sought.files))):
        found = _rows_here(archive, sought, question)
        if found.num_rows <= archive.thresholds.held_rows:
            newest = [("ts", "descending"), ("hash", "ascending")]
            return [_with_zone(row) for row in found.sort_by(newest).slice(0, limit).to_pylist()]

    def by_jobs() -> list[dict[str, Any]]:
        frame, _ = archive.lookup(question, state)
        newest_first = frame.select(*COLUMNS).orderBy(F.desc("ts"), "hash").limit(limit)
        return [_with_zone(row.asDict()) for row in newest_first.collect()]

    return step.by_jobs(by_jobs)


def rules_broken(files: Files, quarantine: Sequence[DataFile]) -> str:
    """Which rules refused bytes break, the most frequent first, as the end of a sentence; none of files elsewhere."""
    from lace.spark.archive.in_process import select

    if files.folder is None or files_rows(quarantine) > MOST_COUNTED:
        return ""
    counted = Counter(select(files, quarantine, ["rule"])["rule"].to_pylist()).most_common(_SHOWN_RULES)
    return "".join(f"{', ' if place else ': '}{rule} {count:,}" for place, (rule, count) in enumerate(counted))


def _rows_here(archive: Archive, sought: _Sought, question: ArchiveLookup) -> pa.Table:
    tests: list[pc.Expression] = [pc.field(column) == value for column, value in sought.equal.items()]
    if question.hashes:
        tests.append(pc.field("hash").isin(list(question.hashes)))
    if sought.since is not None:
        tests.append(pc.field("ts") >= _moment(sought.since))
    if sought.until is not None:
        tests.append(pc.field("ts") <= _moment(sought.until))
    from lace.spark.archive.in_process import select

    if not sought.files:
        return pa.table({name: pa.array([], pa.string()) for name in COLUMNS})
    return select(archive.files, sought.files, COLUMNS, reduce(and_, tests) if tests else None)


def _moment(when: datetime) -> pa.Scalar:
    return pa.scalar(micros(when), pa.timestamp("us", "UTC"))


def _with_zone(row: dict[str, Any]) -> dict[str, Any]:
    """A row whose time says that it is UTC, whoever read it."""
    ts = row["ts"]
    if isinstance(ts, datetime):
        row["ts"] = (ts if ts.tzinfo is not None else ts.astimezone()).astimezone(UTC).isoformat()
    return row
