"""The host over an archive (050): evaluation, sums, sketches and lookups as jobs, sets as files, claims as they differ.

Rule: every way that an exchange has to the archive goes through here. Nothing of the set is held between two calls but
its files and the answers that were given about it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING, cast

from lace.intake.received import JudgedBatch, judge_received
from lace.interlace import effects as asked
from lace.interlace import inputs as given
from lace.interlace.claims.advertisement import Advertisement
from lace.interlace.claims.partitions import fingerprint_of
from lace.interlace.host import Arrived, Call, Loaded
from lace.interlace.loop.refusals import NOTHING_HELD_BACK
from lace.interlace.loop.requests import choose_requests
from lace.interlace.setup.hello import NO_FIELDS
from lace.interlace.setup.terms import Terms
from lace.runtime.host.cursors import CursorBook
from lace.runtime.host.linkhost import Agreed, LinkHost
from lace.runtime.host.quotas import GateRules, QuotaGate
from lace.runtime.rules.feeding import Feeding
from lace.spark.archive import tables
from lace.spark.peer import aggregates
from lace.spark.peer.claims import ArchiveClaims
from lace.spark.peer.listing import ArchiveListing
from lace.spark.peer.peer import ArchivePeer, Moment
from lace.spark.peer.selecting import ArchivePolicy, ArchiveSends, is_own, prepared, requestable
from lace.spark.peer.sets import ArchiveComparer, ArchiveSet

if TYPE_CHECKING:
    from lace.store.base import RecordStore


class _ArchiveAgreed(Agreed[ArchiveSet, ArchiveClaims]):
    def __init__(self, wanted: asked.PreparePolicy, policy: ArchivePolicy, claims: ArchiveClaims) -> None:
        key = wanted.difference_key
        super().__init__(wanted, claims, ArchiveComparer(key) if key is not None else None)
        self.policy = policy
        self.sends: ArchiveSends | None = None


class ArchiveHost(LinkHost[ArchiveSet, ArchiveClaims, _ArchiveAgreed]):
    """One link's side of an archive."""

    def __init__(self, peer: ArchivePeer, terms: Terms, gate: QuotaGate | None = None) -> None:
        self._peer = peer
        store = cast("RecordStore", peer)  # as much of one as records that arrive and settings need
        super().__init__(terms, gate or QuotaGate(store, GateRules()), CursorBook(store))
        self._bounds = peer.bounds

    @property
    def cursor(self) -> Moment:
        """This moment of the archive."""
        return self._peer.cursor()

    # --- policy ------------------------------------------------------------------------------------------------

    def prepare(self, wanted: asked.PreparePolicy, call: Call) -> given.PolicyPrepared:
        """The local executable of a plan."""
        call.check()
        call.account = self._gate.peer
        is_ours = is_own(wanted, self._terms)
        with self._peer.house.here(is_ours, call.account, call):  # looking through rules takes the longer the more
            policy = prepared(wanted, self._terms)
        claims = self._claims_for(wanted)
        self._let_go()
        self._agreed = _ArchiveAgreed(wanted, policy, claims)
        return given.PolicyPrepared(len(claims))

    def _no_claims(self, source: str) -> ArchiveClaims:
        bounds = self._bounds
        return ArchiveClaims(source, self._terms.max_line_bytes, bounds.max_claims, bounds.max_followed)

    def evaluate(self, wanted: asked.Evaluate, call: Call) -> given.Evaluated:
        """Over the newest version and everything that the peer claims."""
        agreed = self._prepared()
        call.check()
        call.account = self._gate.peer
        if agreed.sends is None:
            agreed.sends = self._peer.selections.take(agreed.policy, wanted.runtime)
        own = agreed.own = agreed.sends.current(wanted.runtime, agreed.claims, call)
        under, claims = agreed.wanted, agreed.claims
        claims.follow(own, keeps_fields=under.schema != NO_FIELDS)
        requests: Sequence[str] = ()
        held_back = NOTHING_HELD_BACK
        if wanted.max_requests:
            found = requestable(self._peer, agreed.policy, own, claims, wanted.runtime, call)
            has_fields = under.schema != NO_FIELDS
            found = self._gate.requestable(found, claims.about, has_fields=has_fields, refused=wanted.refused)
            found = self._gate.affordable(found, claims.about)
            requests = choose_requests(found, claims.among, under.record_formats, wanted)
            held_back = self._gate.held_back
        reads_listings = under.plan.have_reads_advertisements
        return given.Evaluated(
            own=asked.SetHandle(own.number, len(own)),
            partitions=own.partition_count(call),
            listing_bytes=own.listing_bytes(under.own_source, wanted.measured_bytes, call),
            requests=requests,
            fingerprint=fingerprint_of(own.roots(under.own_source, call)) if reads_listings else b"",
            claims_fingerprint=claims.fingerprint() if reads_listings else b"",
            store_mark=own.state.version,
            held_back=held_back,
        )

    def rest(self, call: Call) -> None:
        """The root of the set is worked out aside: the next peer with an equal set learns so without a pass.

        It is for peers to come, so it is begun even where this link has ended meanwhile.
        """
        agreed = self._agreed
        if agreed is not None and agreed.own is not None and agreed.comparer is not None:
            agreed.own.foresee_root()

    # --- our set -----------------------------------------------------------------------------------------------

    def summarise(self, wanted: asked.Summarise, call: Call) -> given.Summarised:
        """Counts and roots, worked out on the cluster."""
        own = self._set(wanted.own)
        call.charge(rows=len(own))
        if wanted.parents is None:
            return given.Summarised(own.roots(wanted.source, call))
        return given.Summarised(own.children(wanted.parents, wanted.source, call))

    def list(self, wanted: asked.SendListing, call: Call) -> Iterator[Sequence[Advertisement]]:
        """The set, some partitions or some records of it, sorted by P (P14)."""
        own = self._set(wanted.own)
        call.check()
        claims = iter(own.some(wanted.records)) if wanted.records is not None else own.claims(call, wanted.prefixes)
        while batch := list(islice(claims, self._bounds.list_records)):
            call.charge(rows=len(batch))
            yield batch

    def differences(self, wanted: asked.SendChanges, call: Call) -> given.ChangesReceived:
        """All of the set, or what has changed since it was last told."""
        agreed, own = self._prepared(), self._set(wanted.own)
        told, agreed.told = agreed.told, own
        known = wanted.since is not None and told is not None and wanted.since.number == told.number
        changed = own.since(told) if known and told is not None else None
        if changed is None:
            call.charge(rows=len(own))
            return given.ChangesReceived(list(own.claims(call)), (), is_whole=True)
        call.charge(rows=len(changed[0]) + len(changed[1]))
        return given.ChangesReceived(own.some(changed[0].texts()), changed[1].texts())

    # --- the peer's claims -------------------------------------------------------------------------------------

    def take_claims(self, wanted: asked.TakeClaims, call: Call) -> given.ClaimsTaken:
        """A listing, or changes to what is held."""
        call.charge(rows=len(wanted.added) + len(wanted.removed))
        agreed = self._prepared()
        return agreed.claims.take(wanted, agreed.own if agreed.comparer is not None else None)

    def reconcile(self, wanted: asked.Reconcile, call: Call) -> given.Reconciled:
        """Summaries of the peer, against what is held and what we would list ourselves."""
        call.charge(rows=len(wanted.offered) + len(wanted.claims))
        agreed = self._prepared()
        listing = ArchiveListing(self._set(wanted.own), agreed.claims.source, call)
        may_be_relative = agreed.policy.feeding is Feeding.SEPARATE
        return agreed.claims.reconcile_with(wanted, listing, call, may_be_relative=may_be_relative)

    def keep_claims(self, wanted: asked.KeepClaims, call: Call) -> None:
        """Keep them beside the archive."""
        with contextlib.suppress(OSError):
            super().keep_claims(wanted, call)

    # --- records -----------------------------------------------------------------------------------------------

    def load(self, wanted: asked.SendRecords, call: Call) -> Iterator[Loaded]:
        """Stored bytes of what is in the set; what is not comes first, as None."""
        own = self._set(wanted.own)
        sendable = dict.fromkeys(own.find(wanted.hashes, call))
        if len(sendable) != len(wanted.hashes):
            yield [(record, None) for record in wanted.hashes if record not in sendable]
        batch: Loaded = []
        size = 0
        for record, data in self._stored(own, list(sendable), call):
            del sendable[record]
            batch.append((record, data))
            size += len(data)
            if len(batch) >= self._bounds.load_records or size >= self._bounds.load_bytes:
                call.charge(rows=len(batch), size=size)
                yield batch
                batch, size = [], 0
        batch += [(record, None) for record in sendable]  # removed meanwhile
        if batch:
            call.charge(rows=len(batch), size=size)
            yield batch

    def _stored(self, own: ArchiveSet, records: Sequence[str], call: Call) -> Iterator[tuple[str, bytes]]:
        """Bytes from the files that may hold them, one part of the answer on the driver at a time."""
        if not records:
            return
        call.check()
        began = monotonic()
        files = tables.holding(own.state.table("records"), "hash", records)
        rows = aggregates.with_hash(self._peer.rows("records", files).select("hash", "stored"), records)
        for row in self._peer.jobs.stepping(rows.toLocalIterator()):
            yield row["hash"], bytes(row["stored"])
        self._peer.jobs.note("read records", files, began)

    def judge(self, records: Sequence[Arrived], call: Call) -> JudgedBatch:
        """As every record that comes into a lace is judged."""
        call.charge(rows=len(records), size=sum([len(data) for _, data in records]))
        return judge_received(records, self._terms.record_limits)

    def _let_go(self) -> None:
        if self._agreed is not None and self._agreed.sends is not None:
            self._agreed.sends.close()
        self._agreed = None

    def close(self) -> None:
        """Let go of the set and the claims."""
        self._let_go()
