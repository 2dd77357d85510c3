"""What peers send to an archive: where it lands, and what is kept of the peers themselves (docs/serving.md, quotas).

Rule: what is acknowledged is durable. A batch is one file under `landing/` before the peer hears of it; files there
become one batch of the archive, through the same intake and commit as any other, before anything is evaluated again.
A crash leaves the files, and the next process that serves the archive takes them in; two that do so at once bring them
once. Quotas and the horizon hold for an archive as for a lace. Accounts are files beside the archive; a removal gives
nothing back to them, because an archive does not know who brought a record.

    ROOT/landing/<name>.bundle
    ROOT/peers/<namespace>/<digest of the key>
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import TYPE_CHECKING

from lace.limits import RecordLimits
from lace.notation import b64a
from lace.notation.digest import digest
from lace.records.frame import claimed_hash
from lace.spark.archive.archive import Archive
from lace.spark.archive.filesystem import ListedFile
from lace.spark.archive.versions import Commit, Input, State
from lace.spark.source.files import RawRecord
from lace.store.base import StoreRecordId, StoreStat
from lace.store.bundle import Frame, read_frames
from lace.store.forgotten import NAMESPACE as FORGOTTEN
from lace.store.ledger import BROUGHT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lace.store.columns.segments.encode import EncodedBatch

_LANDING = "landing"
_KEPT = "peers"


class Landing:
    """The files that wait, of all links of this process and of those before it."""

    def __init__(self, archive: Archive, max_bytes: int) -> None:
        self._archive = archive
        self._max_bytes = max_bytes  # of files that are taken in at once: they pass through the driver
        self._busy = threading.Lock()
        self._waiting: int | None = None  # bytes; None: not looked yet
        self.landed: int = 0  # batches of this process

    def put(self, records: Sequence[bytes]) -> None:
        """Keep records, durable on return."""
        data = b"".join(records)
        with self._busy:
            self._archive.files.publish(f"{_LANDING}/{uuid.uuid4().hex}.bundle", data)
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
        listed = [item for item in self._archive.files.listing(_LANDING) if item.name.endswith(".bundle")]
        while listed:
            chosen = _first(listed, self._max_bytes)
            self._add(chosen)
            listed = listed[len(chosen) :]
        self._waiting = 0

    def _add(self, chosen: Sequence[ListedFile]) -> None:
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
            return archive.addition(state, _LandedRecords(archive, rows), inputs)

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


class _LandedRecords:
    """Records that this process has read."""

    def __init__(self, archive: Archive, rows: Sequence[RawRecord]) -> None:
        self._archive = archive
        self._rows = rows

    def rows(self) -> Iterator[RawRecord]:
        return iter(self._rows)

    def frame(self, columns: Sequence[str] | None = None) -> DataFrame:
        from lace.spark.source.schemas import RAW

        chosen = RAW.names if columns is None else list(columns)
        values = [tuple(getattr(row, name) for name in RAW.names) for row in self._rows]
        return self._archive.spark.createDataFrame(values, RAW).select(*chosen)


class Arrivals:
    """Where records land, and what is kept of peers."""

    def __init__(self, archive: Archive, max_landing_bytes: int) -> None:
        self.archive = archive
        self.landing: Landing = Landing(archive, max_landing_bytes)
        self._landed_records = 0
        self._storing = threading.RLock()

    def state(self) -> State:
        """The newest version."""
        return self.archive.log.state()

    def put_encoded(self, batch: EncodedBatch) -> int:
        """Keep judged records, durable on return."""
        with self._storing:
            self.landing.put(batch.bodies)
            self._landed_records += len(batch.bodies)
        return len(batch.bodies)

    @contextmanager
    def together(self) -> Iterator[None]:
        """What is counted and what is kept, before anybody else counts."""
        with self._storing:
            yield

    def room(self) -> int | None:
        """Nobody knows: an archive may be anywhere."""
        return None

    def present(self, records: Sequence[str]) -> set[str]:
        """None that we know of: what is requested was not there, and a lookup is a job."""
        return set()

    def high_water(self) -> StoreRecordId:
        """How many records have landed in this process."""
        return StoreRecordId(self._landed_records)

    def stat(self) -> StoreStat:
        """Sizes, by the newest version."""
        state = self.state()
        size = sum(file.bytes for file in state.table("records"))
        return StoreStat(state.rows("records"), size, sum(file.bytes for file in state.files), 0, self.high_water())

    # What is kept of peers between two exchanges

    def get_setting(self, namespace: str, key: str) -> bytes | None:
        """What was kept under a key."""
        if namespace == FORGOTTEN:
            return b"" if key in self._forgotten() else None
        try:
            return self.archive.files.read(_kept_name(namespace, key)).partition(b"\n")[2]
        except FileNotFoundError:
            return None

    def settings(self, namespace: str) -> dict[str, bytes]:
        """Everything kept in one namespace."""
        if namespace == FORGOTTEN:
            return dict.fromkeys(self._forgotten(), b"")
        listed = self.archive.files.listing(f"{_KEPT}/{namespace}")
        found = (self.archive.files.read(item.name).partition(b"\n") for item in listed)
        return {key.decode(): value for key, _, value in found}

    def put_setting(self, namespace: str, key: str, value: bytes | None) -> None:
        """Keep a value; None removes it."""
        if value is None:
            self.archive.files.remove(_kept_name(namespace, key))
        elif namespace != BROUGHT:  # by whom each record came is for giving back
            self.archive.files.replace(_kept_name(namespace, key), f"{key}\n".encode() + value)

    def last_setting(self, namespace: str, up_to: str) -> tuple[str, bytes] | None:
        """Of what was forgotten the last; for anything else nothing: only runs of records are looked for like this."""
        found = [key for key in self._forgotten() if key <= up_to] if namespace == FORGOTTEN else []
        return (max(found), b"") if found else None

    def _forgotten(self) -> frozenset[str]:
        """What was forgotten here: a table of the archive, which commits change, and no setting."""
        return self.archive.forgotten(self.state())


def _kept_name(namespace: str, key: str) -> str:
    return f"{_KEPT}/{namespace}/{b64a.encode(digest(key.encode()))}"
