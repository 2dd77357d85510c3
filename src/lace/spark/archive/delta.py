"""Delta Lake metadata beside the tables of an archive, for engines that are not Spark.

Rule: the archive's own log is the truth; this says the same again, table by table. It is brought up to date after a
commit and repairs itself after a crash: it compares what Delta names with what the archive names. A writer that has
described a version looks whether it still is the newest: of several writers the last one to write here leaves the
newest behind.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from lace.errors import StoreError
from lace.spark.archive.filesystem import Files
from lace.spark.archive.log import Log
from lace.spark.archive.versions import DataFile, State

_TRIES = 20  # each writer that is in the way takes some milliseconds
DESCRIBED = ("records", "coordinates", "selected", "advertisements", "partitions")


def is_available() -> bool:
    """Whether the library is installed (extra `lace-protocol[delta]`)."""
    from importlib.util import find_spec

    return find_spec("deltalake") is not None


def is_addressable(folder: Path) -> bool:
    """Whether the library finds a folder: it takes `%41` in a path for an `A`, and would meet another folder there."""
    path = str(folder.resolve())
    return unquote(path) == path


def describe(files: Files, log: Log, state: State) -> None:
    """Bring the Delta logs of an archive on this machine up to its newest version, which was `state` a moment ago."""
    if files.folder is None or not is_available():
        return
    if not is_addressable(files.folder):
        for table in DESCRIBED:  # what a lace wrote that did not know better was true of its first version
            shutil.rmtree(files.folder / "data" / table / "_delta_log", ignore_errors=True)
        return
    from deltalake.exceptions import DeltaError

    trouble: DeltaError | None = None
    for _ in range(_TRIES):
        try:
            for table in DESCRIBED:
                _describe(files.folder / "data" / table, table, state.table(table))
            trouble = None
        except DeltaError as error:  # another writer was first: what it wrote has to be looked at again
            trouble = error
        described, state = state.version, log.state()
        if trouble is None and state.version == described:
            return
    if trouble is not None:
        raise StoreError(
            f"{files.uri}: version {state.version} stands, but its Delta Lake metadata could not be written: {trouble}"
        ) from trouble


def begin_again(files: Files, log: Log, state: State) -> None:
    """Describe the newest version as if there had been none before: nothing is said of what was forgotten."""
    if files.folder is not None:
        for table in DESCRIBED:
            shutil.rmtree(files.folder / "data" / table / "_delta_log", ignore_errors=True)
        describe(files, log, state)


def _describe(folder: Path, table: str, held: Sequence[DataFile]) -> None:
    from deltalake import DeltaTable
    from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions

    wanted = {file.path.removeprefix(f"data/{table}/"): file for file in held}
    there = DeltaTable(str(folder)) if DeltaTable.is_deltatable(str(folder)) else None
    if there is None and not wanted:
        return
    # An address may spell the folder in another way than we do (`%20`); what we wrote stands behind it.
    named = set() if there is None else {uri.rpartition(f"/{table}/")[2] for uri in there.file_uris()}
    adds: list[Any] = [
        AddAction(
            path=path,
            size=file.bytes,
            partition_values={},
            modification_time=0,
            data_change=True,
            stats=json.dumps(_statistics(file)),
        )
        for path, file in wanted.items()
        if path not in named
    ]
    if there is None:
        create_table_with_add_actions(str(folder), _schema(table), adds, name=f"lace {table}")
        return
    now = round(time.time() * 1000)
    removes = [RemoveAction(path=p, deletion_timestamp=now, data_change=True) for p in sorted(named - set(wanted))]
    if adds or removes:
        there.create_write_transaction([*adds, *removes], mode="append", schema=_schema(table))


def _statistics(file: DataFile) -> dict[str, object]:
    """What engines skip a file by. Times in commits are cut off to the second, so the greatest is one later."""
    least = {name: f"{value.replace(' ', 'T')}.000Z" if name == "ts" else value for name, value in file.low.items()}
    most = {name: _second_after(value) if name == "ts" else value for name, value in file.high.items()}
    return {"numRecords": file.rows, "minValues": least, "maxValues": most}


def _second_after(text: str) -> str:
    found = datetime.fromisoformat(text).replace(tzinfo=UTC) + timedelta(seconds=1)
    return f"{found:%Y-%m-%dT%H:%M:%S}.000Z"


def _schema(table: str) -> Any:
    from deltalake import Schema

    from lace.spark.archive.tables import SCHEMAS
    from lace.spark.source.schemas import arrow_schema

    return Schema.from_arrow(arrow_schema(SCHEMAS[table]))
