"""The report of an archive: its tables in numbers, its log as times.

Rule: what the log knows is not asked of Spark.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from lace.spark.archive.archive import SMALL_FILE_BYTES, Archive
from lace.spark.archive.executors import Need, Steps
from lace.spark.archive.publish import held_by
from lace.spark.archive.rewrite import compactable
from lace.spark.archive.tables import COUNTED
from lace.spark.archive.versions import Commit, State
from lace.spark.jobs.page import page
from lace.spark.jobs.report import ArchiveReport, ChangeRow, Counts, InputRow, PeerRow, StepRow, TableRow, shown

_LISTED = "advertise:"
_LAST = "report.json"
_ADDITIONS_SHOWN = 30
_COMMITS_LOOKED_AT = 200


def report(archive: Archive, others: Mapping[str, Path] | None = None, since: int | str | None = None) -> ArchiveReport:
    """What there is to say about an archive as it is now; `others` are places to reconcile with.

    `since` is an earlier version, or a time, to compare with; without it, the version of the last report.
    """
    state = archive.log.state()
    before = _earlier(archive, state) if since is None else archive.log.state(since)
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
        since="" if before is None else f"version {before.version}, {_moment(before.time)}",
        changes=[] if before is None else _changes(before, state),
        steps_behind=[
            key
            for key, result in state.results.items()
            if state.count(state.since(result)) or state.removals > result.removals
        ],
        facts={"archive": archive.files.uri, "version": str(state.version), "as of": _moment(commits[-1].time)},
    )


def write_report(
    archive: Archive, others: Mapping[str, Path] | None = None, since: int | str | None = None
) -> ArchiveReport:
    """`report.html` and `report.json` at the root of the archive."""
    found = report(archive, others, since)
    body = json.dumps(found.as_json(), indent=2, ensure_ascii=False) + "\n"
    archive.files.replace(_LAST, body.encode("utf-8", "backslashreplace"))
    archive.files.replace("report.html", page(found).encode("utf-8", "backslashreplace"))
    return found


def _earlier(archive: Archive, state: State) -> State | None:
    """What the archive held when it was last reported on, if that can still be said and something changed since."""
    try:
        version = int(json.loads(archive.files.read(_LAST))["facts"]["version"])
        return archive.log.state(version) if state.oldest <= version < state.version else None
    except (FileNotFoundError, ValueError, KeyError, TypeError):  # none was made, or something else has its name
        return None


def _changes(before: State, now: State) -> list[ChangeRow]:
    """What the log knows of two versions, where it differs."""
    rows = [
        ChangeRow(name="records", before=before.rows("records"), now=now.rows("records")),
        ChangeRow(name="refused", before=before.rows("quarantine"), now=now.rows("quarantine")),
        ChangeRow(name="batches", before=len(before.batches), now=len(now.batches)),
        ChangeRow(name="removals", before=before.removals, now=now.removals),
    ]
    for name in sorted({*_listed(before), *_listed(now)}):
        rows.append(ChangeRow(name=f"{name} may have", before=_may_have(before, name), now=_may_have(now, name)))
        rows.append(ChangeRow(name=f"{name} was given", before=_given(before, name), now=_given(now, name)))
    return [row for row in rows if row.before != row.now]


def _listed(state: State) -> list[str]:
    return sorted(key.removeprefix(_LISTED) for key in state.results if key.startswith(_LISTED))


def _may_have(state: State, name: str) -> int:
    result = state.results.get(_LISTED + name)
    return 0 if result is None else result.counts.get(f"listed {name}", 0)


def _given(state: State, name: str) -> int:
    return sum(file.rows for file in held_by(state, name))


def _moment(time: str) -> str:
    return time[:19].replace("T", " ")


def _peers(state: State, missing: Mapping[str, Counts]) -> list[PeerRow]:
    """Every peer that was listed for."""
    found = []
    for name in _listed(state):
        may_have, given = _may_have(state, name), _given(state, name)
        lacks = sum(count for _, count in missing.get(name, ()))
        found.append(
            PeerRow(
                name=name,
                may_have=may_have,
                given=given,
                lacks=lacks,
                partitions=state.results[_LISTED + name].counts.get(f"partitions {name}", 0),
                # What a peer was seen to lack counts for more than what it was given.
                behind=lacks if name in missing else max(0, may_have - given),
            )
        )
    return found


def _inputs(commits: list[Commit]) -> list[InputRow]:
    additions = [(commit, commit.batch) for commit in commits if commit.batch is not None]
    return [
        InputRow(
            when=_moment(commit.time),
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
    small = compactable(state, SMALL_FILE_BYTES)
    return [
        TableRow(
            name=name,
            rows=state.rows(name),
            files=len(state.table(name)),
            bytes=sum(file.bytes for file in state.table(name)),
            link=f"data/{name}/",
            small_files=small[name],
        )
        for name in sorted({file.table for file in state.files})
    ]
