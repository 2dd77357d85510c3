"""The part of a store that arriving records pass through, over an archive (docs/serving.md, quotas).

Rule: quotas and the horizon hold for an archive as for a lace. Accounts are files beside the archive; a removal gives
nothing back to them, because an archive does not know who brought a record.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lace.notation import b64a
from lace.notation.digest import digest
from lace.spark.archive.archive import Archive
from lace.spark.peer.landing import Landing
from lace.store.base import StoreRecordId, StoreStat
from lace.store.ledger import BROUGHT

if TYPE_CHECKING:
    from lace.spark.archive.log import State
    from lace.store.columns.segments.encode import EncodedBatch

_FOLDER = "peers"


class Arrivals:
    """Where records land, and what is kept of peers."""

    def __init__(self, archive: Archive, max_landing_bytes: int) -> None:
        self.archive = archive
        self.landing = Landing(archive, max_landing_bytes)
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
        try:
            return self.archive.files.read(_name(namespace, key)).partition(b"\n")[2]
        except FileNotFoundError:
            return None

    def settings(self, namespace: str) -> dict[str, bytes]:
        """Everything kept in one namespace."""
        listed = self.archive.files.listing(f"{_FOLDER}/{namespace}")
        found = (self.archive.files.read(item.name).partition(b"\n") for item in listed)
        return {key.decode(): value for key, _, value in found}

    def put_setting(self, namespace: str, key: str, value: bytes | None) -> None:
        """Keep a value; None removes it."""
        if value is None:
            self.archive.files.remove(_name(namespace, key))
        elif namespace != BROUGHT:  # by whom each record came is for giving back
            self.archive.files.replace(_name(namespace, key), f"{key}\n".encode() + value)

    def last_setting(self, namespace: str, up_to: str) -> tuple[str, bytes] | None:
        """Nothing: only runs of records are looked for like this."""
        return None


def _name(namespace: str, key: str) -> str:
    return f"{_FOLDER}/{namespace}/{b64a.encode(digest(key.encode()))}"
