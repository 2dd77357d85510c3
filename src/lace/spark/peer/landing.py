"""Records that peers sent, on their way into an archive.

Rule: what is acknowledged is durable. A batch is one file under `landing/` before the peer hears of it; files there
become one batch of the archive, through the same intake and commit as any other, before anything is evaluated again.
A crash leaves the files, and whoever serves the archive next takes them in; two that do so at once bring them once.

    ROOT/landing/<name>.bundle
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Sequence
from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING

from lace.limits import RecordLimits
from lace.notation import b64a
from lace.notation.digest import digest
from lace.records.frame import claimed_hash
from lace.spark.archive.archive import Archive
from lace.spark.archive.filesystem import ListedFile
from lace.spark.archive.log import Commit, Input, State
from lace.spark.source.files import RawRecord
from lace.store.bundle import Frame, read_frames

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FOLDER = "landing"


class Landing:
    """The files that wait, of all links of this process and of those before it."""

    def __init__(self, archive: Archive, max_bytes: int) -> None:
        self._archive = archive
        self._max_bytes = max_bytes  # of files that are taken in at once: they pass through the driver
        self._busy = threading.Lock()
        self._waiting: int | None = None  # bytes; None: not looked yet
        self.landed = 0  # batches of this process

    def put(self, records: Sequence[bytes]) -> None:
        """Keep records, durable on return."""
        data = b"".join(records)
        with self._busy:
            self._archive.files.publish(f"{FOLDER}/{uuid.uuid4().hex}.bundle", data)
            self._waiting = (self._waiting or 0) + len(data)
            self.landed += 1
            if self._waiting > self._max_bytes:
                self._take_in()

    def take_in(self) -> None:
        """Make what waits part of the archive; without any, nothing happens."""
        if self._waiting == 0:
            return
        with self._busy:
            self._take_in()

    def _take_in(self) -> None:
        listed = [item for item in self._archive.files.listing(FOLDER) if item.name.endswith(".bundle")]
        while listed:
            chosen = _first(listed, self._max_bytes)
            self._add(chosen)
            listed = listed[len(chosen) :]
        self._waiting = 0

    def _add(self, chosen: Sequence[ListedFile]) -> None:
        from lace.spark.archive.few import can_add  # with Spark's types, which take their time to load

        archive = self._archive
        data = {item.name: archive.files.read(item.name) for item in chosen}
        by_content = {b64a.encode(digest(body)): name for name, body in data.items()}

        def work(state: State) -> Commit | None:
            known = state.contents
            new = {content: name for content, name in by_content.items() if content not in known}
            if not new:
                return None
            rows = [row for name in new.values() for row in _rows(f"{archive.files.uri}/{name}", data[name])]
            inputs = {
                content: Input(address=f"{archive.files.uri}/{name}", size=len(data[name]))
                for content, name in new.items()
            }
            if can_add(archive.few, archive.files, state, inputs.values()):
                return archive.small_addition(state, rows, inputs)
            return archive.addition(state, partial(_frame, archive, rows), inputs)

        archive.commit(work)
        for item in chosen:
            archive.files.remove(item.name)


def _first(listed: Sequence[ListedFile], max_bytes: int) -> list[ListedFile]:
    chosen: list[ListedFile] = []
    for item in listed:
        if chosen and sum(one.size for one in chosen) + item.size > max_bytes:
            break
        chosen.append(item)
    return chosen


def _rows(address: str, data: bytes) -> list[RawRecord]:
    found = []
    for item in read_frames(BytesIO(data), 0, len(data), RecordLimits()):
        if isinstance(item, Frame):
            found.append(RawRecord(claimed_hash(item.data) or None, address, item.offset, item.data))
        else:
            found.append(RawRecord(None, address, item.offset, item.data, item.rule, item.reason))
    return found


def _frame(archive: Archive, rows: Sequence[RawRecord], columns: Sequence[str] | None = None) -> DataFrame:
    from lace.spark.source.schemas import RAW

    chosen = RAW.names if columns is None else list(columns)
    values = [tuple(getattr(row, name) for name in RAW.names) for row in rows]
    return archive.spark.createDataFrame(values, RAW).select(*chosen)
