"""An archive that tests fill and empty like a store, and hosts over it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from lace.interlace.setup.terms import Terms
from lace.records.model import ValidRecord
from lace.runtime.rules.guesthouse import GuestLimits
from lace.spark.archive.archive import Archive
from lace.spark.peer.host import ArchiveHost
from lace.spark.peer.peer import ArchivePeer, PeerBounds
from spark.archives import write_bundle

SMALL = PeerBounds(load_records=3, list_records=4)


class FilledArchive:
    """What the contract of hosts asks of a store, by batches and removals of an archive."""

    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        *,
        is_new: bool = True,
        bounds: PeerBounds = SMALL,
        guest_limits: GuestLimits | None = None,
    ) -> None:
        self._folder = folder
        self.archive = Archive(str(folder / "archive"), lambda: spark)
        if is_new:
            self.archive.init()
        self.peer = ArchivePeer(self.archive, bounds, guest_limits=guest_limits)
        self._bundles = 0

    def put(self, records: Sequence[ValidRecord]) -> None:
        if records:
            self._bundles += 1
            self.archive.add([write_bundle(self._folder / f"{self._bundles}.bundle", list(records))])

    def delete(self, *hashes: str) -> None:
        if hashes:
            self.archive.remove(list(hashes))

    def hashes(self) -> list[str]:
        self.peer.landing.take_in()
        return sorted(row["hash"] for row in self.archive.table("records").select("hash").collect())

    def records_since(self) -> Iterator[tuple[int, str]]:
        return iter(enumerate(self.hashes()))

    def close(self) -> None:
        self.peer.close()


class TestedHost(ArchiveHost):
    """A host that knows its store, as the contract's tests want it."""

    __test__ = False

    def __init__(self, store: FilledArchive, terms: Terms) -> None:
        super().__init__(store.peer, terms)
        self.store = store
