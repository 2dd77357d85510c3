"""The report of an archive: its tables in numbers, its log as times.

Rule: what the log knows is not asked of Spark.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from lace.spark.archive.archive import Archive
from lace.spark.archive.executors import Need, Steps
from lace.spark.archive.publish import held_by
from lace.spark.archive.tables import COUNTED
from lace.spark.archive.versions import Commit, State, step_name
from lace.spark.jobs.page import page
from lace.spark.jobs.report import ArchiveReport, Counts, InputRow, PeerRow, StepRow, TableRow, shown

_LISTED = "advertise:"
_ADDITIONS_SHOWN = 30
_COMMITS_LOOKED_AT = 200


def report(archive: Archive, others: Mapping[str, Path] | None = None) -> ArchiveReport:
    """What there is to say about an archive as it is now; `others` are places to reconcile with."""
    state = archive.log.state()
    commits = archive.log.commits(range(max(state.oldest, state.version - _COMMITS_LOOKED_AT), state.version + 1))
    step = Steps(archive, state).step("report")
    # What is at other places is counted once it is looked at.
    need = Need(held_rows=sum(state.rows(name) for name in COUNTED))
    counted, missing = step.do(need, lambda executor: executor.count(others or {}))
    step.tell(f"{state.rows('records'):,} records")
    return shown(
        counted,
        missing,
        peers=_peers(state, missing),
        inputs=_inputs(commits),
        steps=_steps(state, commits),
        tables=_tables(state),
        facts={"archive": archive.files.uri, "version": str(state.version), "as of": commits[-1].time},
    )


def write_report(archive: Archive, others: Mapping[str, Path] | None = None) -> ArchiveReport:
    """`report.html` and `report.json` at the root of the archive."""
    found = report(archive, others)
    body = json.dumps(found.as_json(), indent=2, ensure_ascii=False) + "\n"
    archive.files.replace("report.json", body.encode("utf-8", "backslashreplace"))
    archive.files.replace("report.html", page(found).encode("utf-8", "backslashreplace"))
    return found


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
            step=step_name(key, result),
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
