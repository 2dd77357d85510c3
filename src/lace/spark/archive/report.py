"""The report of an archive: its tables in numbers, its log as times.

Rule: what the log knows is not asked of Spark.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame

from lace.spark.archive import fewreport
from lace.spark.archive.archive import Archive
from lace.spark.archive.log import FOLDER, Commit, State
from lace.spark.archive.publish import held_by, lacking
from lace.spark.jobs.page import page
from lace.spark.jobs.reconcile import missing_by_partition, missing_records
from lace.spark.jobs.report import (
    ArchiveReport,
    Counts,
    InputRow,
    PeerRow,
    ReportCounts,
    StepRow,
    TableRow,
    count,
    missing_counts,
    shown,
)
from lace.spark.source.source import raw_records

_LISTED = "advertise:"
_ADDITIONS_SHOWN = 30
_COMMITS_LOOKED_AT = 200
Hashes: TypeAlias = "DataFrame | pa.Table"  # a column `hash`: with the cluster, or here where they are few


def report(archive: Archive, others: Mapping[str, Hashes] | None = None) -> ArchiveReport:
    """What there is to say about an archive as it is now; `others` are hashes of records that stand elsewhere."""
    state = archive.log.state()
    commits = archive.log.commits(range(max(1, state.version - _COMMITS_LOOKED_AT), state.version + 1))
    counted, missing = _looked_at(archive, state, others or {})
    return shown(
        counted,
        missing,
        peers=_peers(state, missing),
        inputs=_inputs(commits),
        steps=_steps(state, commits),
        tables=_tables(state),
        facts={"archive": archive.files.uri, "version": str(state.version), "as of": commits[-1].time},
    )


def _looked_at(archive: Archive, state: State, others: Mapping[str, Hashes]) -> tuple[ReportCounts, dict[str, Counts]]:
    """What the tables hold and who lacks what: by this process where all of it is few, else by jobs."""
    few = {name: hashes for name, hashes in others.items() if isinstance(hashes, pa.Table)}
    if len(few) == len(others) and fewreport.can_count(archive, state, sum(map(len, few.values()))):
        return fewreport.count(archive, state), fewreport.missing(archive, state, few)
    records, listed = archive.table("records"), archive.table("advertisements").select("peer", "hash")
    missing = missing_counts(lacking(archive, state)) if state.table("advertisements") else {}
    if others:
        frames = {name: archive.spark.createDataFrame(hashes) for name, hashes in few.items()}
        apart = missing_records({"here": records.select("hash"), **others, **frames})
        missing |= missing_counts(missing_by_partition(apart))
    counted = count(
        records,
        archive.table("quarantine") if state.table("quarantine") else None,
        listed if state.table("advertisements") else None,
    )
    return counted, missing


def write_report(archive: Archive, others: Mapping[str, Hashes] | None = None) -> ArchiveReport:
    """`report.html` and `report.json` at the root of the archive."""
    found = report(archive, others)
    body = json.dumps(found.as_json(), indent=2, ensure_ascii=False) + "\n"
    archive.files.replace("report.json", body.encode("utf-8", "backslashreplace"))
    archive.files.replace("report.html", page(found).encode("utf-8", "backslashreplace"))
    return found


def hashes_at(archive: Archive, path: Path) -> Hashes:
    """The hashes of what stands at a place: another archive, or bundles and stores."""
    few = fewreport.hashes_elsewhere(archive, path)
    if few is not None:
        return few
    if (path / FOLDER).is_dir():
        return Archive(str(path), lambda: archive.spark).table("records").select("hash")
    # Only what is asked for leaves the tasks: a function of Python is given no hint that nobody reads the bytes.
    raw = raw_records(archive.spark, [path], columns=("hash", "rule"))
    return raw.where("rule is null and hash is not null").select("hash")


def _peers(state: State, missing: Mapping[str, Counts]) -> list[PeerRow]:
    """Every peer that was listed for."""
    names = [key.removeprefix(_LISTED) for key in state.results if key.startswith(_LISTED)]
    return [
        PeerRow(
            name=name,
            may_have=state.results[_LISTED + name].counts.get(f"listed {name}", 0),
            given=sum(file.rows for file in held_by(state, name)),
            lacks=sum(count for _, count in missing.get(name, ())),
            partitions=state.results[_LISTED + name].counts.get(f"partitions {name}", 0),
        )
        for name in sorted(names)
    ]


def _inputs(commits: list[Commit]) -> list[InputRow]:
    additions = [(commit, commit.batch) for commit in commits if commit.batch is not None]
    return [
        InputRow(
            when=commit.time[:19].replace("T", " "),
            files=len(batch.inputs),
            bytes=sum(item.size for item in batch.inputs.values()),
            counts=batch.counts,
        )
        for commit, batch in reversed(additions[-_ADDITIONS_SHOWN:])
    ]


def _steps(state: State, commits: list[Commit]) -> list[StepRow]:
    return [
        StepRow(
            step=key,
            seconds=[commit.results[key].seconds for commit in commits if key in commit.results] or [result.seconds],
            result=result.counts,
        )
        for key, result in state.results.items()
    ]


def _tables(state: State) -> list[TableRow]:
    return [
        TableRow(
            name=name,
            rows=state.rows(name),
            files=len(state.table(name)),
            bytes=sum(file.bytes for file in state.table(name)),
            link=f"data/{name}/",
        )
        for name in sorted({file.table for file in state.files})
    ]
