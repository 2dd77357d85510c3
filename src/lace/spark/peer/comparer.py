"""An archive's set beside a peer's, for one policy of one link (070): measured, sketched, decoded, taken over.

Rule: every step is one pass over the ids of the set, and what a change costs is a pass over what changed.
"""

from __future__ import annotations

from dataclasses import replace

from lace.differences.compare import measured, nothing
from lace.differences.keyed import U64, DifferenceKey
from lace.differences.peel import Peeler
from lace.differences.tree import told_root
from lace.interlace.effects import Decode, Measure, Sketch, TakeChange, TakeDifference
from lace.interlace.host import Call
from lace.interlace.inputs import Decoded, DifferenceTaken, Measured, Sketched
from lace.spark.peer import aggregates
from lace.spark.peer.claims import ArchiveClaims
from lace.spark.peer.sets import ArchiveSet, ChangedRows


class ArchiveComparer:
    """The host's part of 070."""

    def __init__(self, key: DifferenceKey) -> None:
        self._key = key
        self._measured: tuple[ArchiveSet, U64] | None = None
        self._peeler = Peeler(key)

    def measure(self, wanted: Measure, own: ArchiveSet, call: Call) -> Measured:
        """The root, which is kept with the set; the sums, from the set that was summed last if there is one."""
        root = told_root(own.root(call), self._key) if wanted.root else b""
        summed = self._sum(wanted, own, call) if wanted.sums else Measured()
        return replace(summed, root=root, count=len(own))

    def _sum(self, wanted: Measure, own: ArchiveSet, call: Call) -> Measured:
        if self._measured is None:
            return Measured(measured=self._whole(own, call))
        before, total = self._measured
        changed = own.since(before)
        if changed is None:
            came, went = own.changes(before)
            total = total + self._of(came, own, call) - self._of(went, own, call)
            self._measured = own, total
            return Measured(measured=total)
        call.charge(rows=len(changed[0]) + len(changed[1]))
        total = total + measured(changed[0], self._key) - measured(changed[1], self._key)
        self._measured = own, total
        if wanted.since is None or wanted.since.number != before.number:
            return Measured(measured=total)
        return Measured(measured=total, added=sorted(changed[0].texts()), removed=sorted(changed[1].texts()))

    def _whole(self, own: ArchiveSet, call: Call) -> U64:
        call.charge(rows=len(own))
        with own.job("measure", call):
            total = aggregates.measure_of(own.hashes, self._key)
        self._measured = own, total
        return total

    def _of(self, change: ChangedRows, own: ArchiveSet, call: Call) -> U64:
        if change.hashes is None:
            return nothing()
        with own.job("measure what changed", call, change.files):
            return aggregates.measure_of(change.hashes, self._key)

    def sketch(self, wanted: Sketch, own: ArchiveSet, call: Call) -> Sketched:
        """Symbols of our set."""
        call.charge(rows=len(own))
        with own.job("sketch", call):
            return Sketched(aggregates.symbols_of(own.hashes, self._key, wanted.start, wanted.end))

    def decode(self, wanted: Decode, own: ArchiveSet, call: Call) -> Decoded:
        """What the peer's symbols say beside our own."""
        if wanted.start == 0:
            self._peeler = Peeler(self._key)
        count = len(wanted.symbols)
        ours = self.sketch(Sketch(own=wanted.own, start=wanted.start, end=wanted.start + count), own, call).symbols
        call.charge(rows=count)
        found = self._peeler.give(ours.minus(wanted.symbols))
        if found is None:
            return Decoded(is_hopeless=self._peeler.is_hopeless)
        absent = self._named(found.mine, own, call)
        if absent is None:
            return Decoded(is_hopeless=True)
        return Decoded(absent=absent, lacking=found.theirs)

    def _named(self, short: U64, own: ArchiveSet, call: Call) -> list[str] | None:
        if not len(short):
            return []
        call.charge(rows=len(own))
        with own.job("name short ids", call):
            return aggregates.named_by(own.hashes, self._key, short)

    def take(
        self, wanted: TakeDifference | TakeChange, own: ArchiveSet, claims: ArchiveClaims, call: Call
    ) -> DifferenceTaken:
        """Take over what the peer has, if it adds up."""
        if isinstance(wanted, TakeChange):
            call.charge(rows=len(wanted.added) + len(wanted.removed) + len(wanted.sent))
            return claims.take_change(wanted, own, self._key)
        call.charge(rows=len(wanted.absent) + len(wanted.claims))
        self._peeler = Peeler(self._key)
        absent = wanted.absent
        if wanted.named is not None:
            named = self._named(wanted.named, own, call)
            if named is None:  # a short id that names nothing of ours, or two records
                return DifferenceTaken(agrees=False)
            absent = named
        if wanted.is_equal:
            self._measured = own, wanted.told
        elif self._measured is None or self._measured[0] is not own:
            self._whole(own, call)
        assert self._measured is not None
        return claims.take_difference(own, absent, wanted.claims, wanted.told, self._measured[1], self._key)
