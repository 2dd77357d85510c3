"""Look records up by hash, coordinate and time, opening only files that may hold them.

Rule: files are chosen on the driver from what their commit says of them; Spark then reads those and tests each row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user reads

from lace.spark.archive.archive import ArchiveLookup
from lace.spark.archive.moments import micros, parse_moment, second
from lace.spark.archive.tables import between, holding
from lace.spark.archive.versions import DataFile, State

_COORDINATE = ("group", "app", "name")
Frame = Callable[[State, str, Iterable[DataFile]], DataFrame]


def lookup(frame: Frame, state: State, question: ArchiveLookup) -> tuple[DataFrame, list[DataFile]]:
    """The narrow rows that a question asks for: by hash from `records`, else from `coordinates`."""
    if question.hashes:
        files = holding(state.table("records"), "hash", question.hashes)
        return frame(state, "records", files).where(F.col("hash").isin(list(question.hashes))), files
    files = list(state.table("coordinates"))
    for column in _COORDINATE:
        value = getattr(question, column)
        if value is not None:
            files = holding(files, column, [value])
    since, until = (
        None if text is None else parse_moment(text, "lookup-time") for text in (question.since, question.until)
    )
    if since is not None or until is not None:
        files = between(files, "ts", *(None if end is None else second(end) for end in (since, until)))
    rows = frame(state, "coordinates", files)
    for column in _COORDINATE:
        value = getattr(question, column)
        if value is not None:
            rows = rows.where(F.col(column) == value)
    if since is not None:
        rows = rows.where(F.col("ts") >= F.timestamp_micros(F.lit(micros(since))))
    if until is not None:
        rows = rows.where(F.col("ts") <= F.timestamp_micros(F.lit(micros(until))))
    return rows, files
