"""An archive among peers: what all its links share.

Rule: the archive's log says what there is. Links hold files of a version and numbers, never its records or their ids:
what the driver holds grows with what differs and with what is on its way, not with the archive.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

from lace.interlace.host import Call
from lace.interlace.setup.terms import Terms
from lace.limits import MIB
from lace.runtime.node.fairness import FairDoor
from lace.runtime.rules.guesthouse import GuestHouse, GuestLimits
from lace.spark.archive.archive import Archive
from lace.spark.archive.versions import DataFile, State
from lace.spark.peer.arrivals import Arrivals
from lace.spark.peer.jobs import Jobs, Read
from lace.store.news import StoreNews
from lace.values import dataclass

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lace.runtime.host.quotas import QuotaGate
    from lace.spark.peer.host import ArchiveHost
    from lace.spark.peer.selecting import Selections


_WORTH_TELLING_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerBounds:
    """What serving an archive may take of the driver and of the cluster."""

    max_job_seconds: float = 600.0
    max_landing_bytes: int = 64 * MIB  # of received records before they become a batch
    max_in_process_bytes: int = (
        8 * MIB
    )  # that are judged, or looked at by a peer's rules, where all other links wait for it
    max_followed: int = 200_000  # ids of one change that are brought to the driver; more is compared again from nothing
    max_claims: int = 1_000_000  # of a peer, where its claims have to be known one by one
    max_rule_sets: int = 16  # whose results are kept in the archive for peers
    guests_at_once: int = (
        2  # evaluations of peers' own rules on the cluster; each can be cancelled and has these bounds
    )
    guest_slice_s: float = 5.0  # that others wait for such an evaluation, which then begins again with twice as much
    max_guest_seconds: float = 120.0  # of all slices
    max_guest_rounds: int = 1_000
    base_guest_rows: int = 1 << 20  # derived, by all rules of a peer together
    record_guest_rows: int = 64  # and more for each record of the archive
    load_bytes: int = MIB
    load_records: int = 1024
    list_records: int = 1000


@dataclass(frozen=True, slots=True)
class Moment:
    """What an archive holds, as far as an exchange can see a difference."""

    batches: int = 0
    removals: int = 0
    landed: int = 0


class ArchivePeer(Arrivals):
    """An archive that is served."""

    def __init__(
        self,
        archive: Archive,
        bounds: PeerBounds | None = None,
        *,
        guest_limits: GuestLimits | None = None,
        told: Callable[[Read], None] = lambda _: None,
    ) -> None:
        self.bounds: PeerBounds = bounds or PeerBounds()
        most = min(archive.thresholds.in_process_bytes, self.bounds.max_in_process_bytes)
        archive.thresholds = replace(archive.thresholds, in_process_bytes=most)
        super().__init__(archive, self.bounds.max_landing_bytes)
        self.news: StoreNews = StoreNews()  # nothing tells it: a node that serves an archive looks at its cursor
        self.jobs: Jobs = Jobs(lambda: archive.spark, max_seconds=self.bounds.max_job_seconds, told=told)
        self.house: GuestHouse = GuestHouse(None, guest_limits, facts_come_along=True)
        self.cluster: FairDoor = FairDoor(self.bounds.guests_at_once, time.monotonic)  # to it: for peers' own rules
        self._seen: tuple[int, State] | None = None
        self._looking = threading.Lock()
        self._selections: Selections | None = None
        self.ending: Call = Call()  # given up when the archive is served no more: what is done for links to come
        self._aside = ThreadPoolExecutor(1, "lace-archive-aside")  # starts its thread with the first work

    @property
    def selections(self) -> Selections:
        """What may be sent under the rules of all links."""
        if self._selections is None:
            from lace.spark.peer.selecting import Selections  # with Spark, which takes its time to load

            self._selections = Selections(self)
        return self._selections

    def host(self, terms: Terms, gate: QuotaGate | None = None) -> ArchiveHost:
        """The host of one link."""
        from lace.spark.peer.host import ArchiveHost

        return ArchiveHost(self, terms, gate)

    def state(self) -> State:
        """The newest version; the log is read only if there is another one."""
        with self._looking:
            newest = max(self.archive.log.versions(), default=0)
            if self._seen is None or self._seen[0] != newest:
                self._seen = newest, self.archive.log.state()
            return self._seen[1]

    def cursor(self) -> Moment:
        """This moment: another one when records came or went, and the same after a compaction."""
        state = self.state()
        return Moment(len(state.batches), state.removals, self.landing.landed)

    def rows(self, table: str, chosen: Sequence[DataFile]) -> DataFrame:
        """Some files of a table."""
        from lace.spark.archive import tables

        return tables.read(self.jobs.spark, self.archive.files, table, chosen)

    def held(self, state: State, records: Sequence[str], call: Call) -> set[str]:
        """Those of some records that are in the archive."""
        from lace.spark.archive.tables import holding
        from lace.spark.peer.aggregates import with_hash

        files = holding(state.table("records"), "hash", records)
        if not files:
            return set()
        call.charge(rows=len(records))
        with self.jobs.job("look up hashes", files, call):
            found = with_hash(self.rows("records", files).select("hash"), records).collect()
        return {row["hash"] for row in found}

    def get_ready(self) -> None:
        """Have Spark here, and have it do one thing: the first peer does not wait for its start."""
        from lace.spark.peer import host, selecting  # noqa: F401 - with all that the first link needs

        began = time.monotonic()
        self.jobs.spark.range(1).count()
        took = time.monotonic() - began
        if took > _WORTH_TELLING_S:
            self.archive.progress("spark", f"ready after {took:.1f} s")

    def later(self, work: Callable[[], object]) -> None:
        """Prepare something aside, one thing at a time; what fails is raised where its result is asked for."""
        self._aside.submit(work)

    def settle(self) -> None:
        """Wait until all that was begun aside is done."""
        self._aside.submit(lambda: None).result()

    def close(self) -> None:
        """Take in what peers sent last."""
        self.ending.cancel()
        self.house.close()
        self._aside.shutdown(cancel_futures=True)
        self.landing.take_in()
