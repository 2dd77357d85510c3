"""A peer's claims where our set is too large to be spelled out (050, 070).

Rule: claims are held as they differ from our set, whichever way they came, if that is less than they are themselves.
Where they would have to be named one by one they are named up to a bound, or forgotten if that is enough: the peer then
says again what it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lace.differences.keyed import U64, DifferenceKey
from lace.errors import LimitExceeded
from lace.interlace.claims.advertisement import Advertisement, Claims, bare_claims
from lace.interlace.claims.partitions import Partition, top_prefix
from lace.interlace.claims.peerclaims import PeerClaims
from lace.interlace.claims.relative import OwnSet, RelativeClaims, as_theirs
from lace.interlace.effects import Reconcile, TakeChange, TakeClaims
from lace.interlace.host import Call
from lace.interlace.inputs import ClaimsTaken, DifferenceTaken, Reconciled
from lace.spark.peer.listing import ArchiveListing

Summaries = dict[str, Partition]


class ArchiveClaims(PeerClaims):
    """What one peer claims under one label to an archive."""

    def __init__(self, source: str, max_line_bytes: int, max_claims: int, max_relative: int) -> None:
        super().__init__(source, max_line_bytes)
        self._max_claims = max_claims
        self._max_relative = max_relative
        self._settled: Summaries = {}  # that the peer's claims were last told by, if all of them are known
        self._offered: Summaries = {}  # those that are being reconciled
        self._same: dict[str, int] = {}  # of these the partitions that are ours or as they were, with their counts
        self._were: RelativeClaims | None = None  # how those that are as they were differ from ours
        self._pending: set[Partition] = set()  # and those that cannot be named yet

    def __len__(self) -> int:
        return super().__len__() + sum(self._same.values())

    def follow(self, own: OwnSet, *, keeps_fields: bool) -> None:
        """Our set is another one now; what cannot be followed the peer says again."""
        if self._relative is None:
            return
        moved = self._relative.moved(own)
        if moved is None or (moved.left and keeps_fields):
            self.forget()
        else:
            self._relative.follow(own, moved, bare_claims(moved.left))

    def forget(self) -> None:
        """Know of no claim: the peer says again what it has."""
        self._begin({})
        super().forget()

    def _begin(self, offered: Summaries) -> None:
        self._settled, self._offered = {}, offered
        self._same, self._were, self._pending = {}, None, set()

    def take(self, wanted: TakeClaims, own: OwnSet | None = None) -> ClaimsTaken:
        """A listing, which replaces whatever was held, or changes to it."""
        if wanted.is_whole and self._relative is not None:
            self.forget()
        self._begin({})
        return super().take(wanted, own)

    def take_difference(
        self, own: OwnSet, absent: Sequence[str], claims: Claims, told: U64, ours: U64, key: DifferenceKey
    ) -> DifferenceTaken:
        """Ours without what the peer lacks, with what it lists, if that adds up."""
        taken = super().take_difference(own, absent, claims, told, ours, key)
        if taken.agrees:
            self._begin({})
        return taken

    def take_change(self, wanted: TakeChange, own: OwnSet, key: DifferenceKey) -> DifferenceTaken:
        """What changed since the claims were last taken over, if that adds up."""
        taken = super().take_change(wanted, own, key)
        if taken.agrees and taken.changed:
            self._begin({})
        return taken

    # --- summaries ---------------------------------------------------------------------------------------------

    def reconcile_with(
        self, wanted: Reconcile, listing: ArchiveListing, call: Call, *, may_be_relative: bool
    ) -> Reconciled:
        """Take over every partition that can be named; those that are ours are not even read."""
        changed = False
        if wanted.parents is None:
            offered = {partition.prefix: partition for partition in wanted.offered}
            if offered and offered == self._settled:  # what the peer said before, and our own changes were followed
                return Reconciled(unknown={}, count=len(self), changed=False)
            changed = self._take_same(offered, listing)
            wanted = replace(wanted, offered=[one for one in wanted.offered if one.prefix not in self._same])
        listing.read_for(wanted)
        done = super().reconcile(wanted, listing, call)
        narrowed = set(wanted.parents or ())
        self._pending -= {one for one in self._pending if one.prefix in narrowed or one in wanted.listed}
        self._pending.update(done.unknown)
        if not self._pending:
            self._settle(listing, may_be_relative)
        return replace(done, count=len(self), changed=changed or done.changed)

    def _take_same(self, offered: Summaries, listing: ArchiveListing) -> bool:
        """Whatever is ours, or as the peer said before; whether that is anything."""
        before, were = self._settled, self._relative
        if were is not None:
            self.forget()
        self._begin(offered)
        self._same = {one.prefix: one.count for one in listing.same(list(offered.values()))}
        if were is not None:
            kept = {one.prefix: one.count for one in offered.values() if before.get(one.prefix) == one}
            kept = {prefix: count for prefix, count in kept.items() if prefix not in self._same}
            self._same |= kept
            absent = [record for record in were.absent if top_prefix(record) in kept]
            self._were = RelativeClaims(
                listing.own, absent, [claim for claim in were.foreign.values() if top_prefix(claim.hash) in kept]
            )
        return bool(self._same) or were is not None

    def _settle(self, listing: ArchiveListing, may_be_relative: bool) -> None:
        """All is known: hold what differs, or all of it where that is less or has to be looked at one by one."""
        if not self._same:
            self._settled = self._offered
            return
        elsewhere = {prefix: count for prefix, count in listing.counts().items() if prefix not in self._same}
        if may_be_relative and sum(elsewhere.values()) + len(self._held) <= self._max_relative:
            claimed = {claim.hash: claim for claim in self._held.listing()}
            ours = set(listing.hashes_under(list(elsewhere)))
            beyond = [claim for record, claim in claimed.items() if record not in ours]
            absent = ours - claimed.keys()
            if self._were is not None:
                absent |= self._were.absent
                beyond += self._were.foreign.values()
            self._held.replace_all(())
            self._relative = RelativeClaims(listing.own, absent, beyond)
        else:
            self._require_few()
            self._held.put_all(self._spelled(listing))
        self._same, self._were = {}, None
        self._settled = self._offered

    def _spelled(self, listing: ArchiveListing) -> list[Advertisement]:
        ours = as_theirs(listing.under_all(list(self._same)), self.source, self._max_line_bytes)
        if self._were is None:
            return ours
        absent, foreign = self._were.absent, self._were.foreign
        return [*(claim for claim in ours if claim.hash not in absent), *foreign.values()]

    def _spell_out(self) -> None:
        if self._relative is not None:
            self._require_few()
        super()._spell_out()

    def _require_few(self) -> None:
        if len(self) > self._max_claims:
            raise LimitExceeded("max_claims", self._max_claims, "claims of a peer that are looked at one by one")
