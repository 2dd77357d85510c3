"""Our set beside a peer's, for one policy of one link (070): measured, sketched, decoded, taken over.

Rule: what is held between two loops does not grow with the set; what a comparison needs of it is let go with its end.
"""

from __future__ import annotations

from dataclasses import replace

from lace.differences.compare import SetView, measured, measured_set
from lace.differences.keyed import U64, DifferenceKey
from lace.differences.peel import Peeler
from lace.differences.tree import told_root
from lace.interlace.claims import PeerClaims
from lace.interlace.effects import Decode, Measure, Sketch, TakeChange, TakeDifference
from lace.interlace.host import Call
from lace.interlace.inputs import Decoded, DifferenceTaken, Measured, Sketched
from lace.runtime.generation import Generation


class Comparer:
    """The host's part of 070."""

    def __init__(self, key: DifferenceKey) -> None:
        self._key = key
        self._measured: tuple[Generation, U64] | None = None
        self._view: tuple[Generation, SetView] | None = None
        self._peeler = Peeler(key)

    def measure(self, wanted: Measure, own: Generation, call: Call) -> Measured:
        """The root, which links share; the sums, from the set that was summed last if there is one."""
        root = told_root(own.root, self._key) if wanted.root else b""
        summed = self._sum(wanted, own, call) if wanted.sums else Measured()
        return replace(summed, root=root, count=len(own))

    def _sum(self, wanted: Measure, own: Generation, call: Call) -> Measured:
        if self._measured is None:
            call.charge(rows=len(own))
            if wanted.root or wanted.since is not None:
                self._measured = own, measured_set(own.ids, self._key)
            else:  # of a side that is about to sketch, and needs the keyed ids for that too
                view = SetView(own.ids, self._key, sums=True)
                self._view, self._measured = (own, view), (own, view.measured)
            return Measured(measured=self._measured[1])
        before, total = self._measured
        came, went = own.ids.since(before.ids)
        call.charge(rows=len(came) + len(went))
        total = total + measured(came, self._key) - measured(went, self._key)
        self._measured = own, total
        if wanted.since is None or wanted.since.number != before.number:
            return Measured(measured=total)
        return Measured(measured=total, added=sorted(came.texts()), removed=sorted(went.texts()))

    def sketch(self, wanted: Sketch, own: Generation, call: Call) -> Sketched:
        """Symbols of our set."""
        call.charge(rows=len(own))
        return Sketched(self._seen(own).symbols(wanted.start, wanted.end))

    def decode(self, wanted: Decode, own: Generation, call: Call) -> Decoded:
        """What the peer's symbols say beside our own."""
        call.charge(rows=len(own) + len(wanted.symbols))
        view = self._seen(own)
        if wanted.start == 0:
            self._peeler = Peeler(self._key)
        ours = view.symbols(wanted.start, wanted.start + len(wanted.symbols))
        found = self._peeler.give(ours.minus(wanted.symbols))
        if found is None:
            return Decoded(is_hopeless=self._peeler.is_hopeless)
        absent = view.named(found.mine)
        if absent is None:
            return Decoded(is_hopeless=True)
        return Decoded(absent=sorted(absent.texts()), lacking=found.theirs)

    def take(
        self, wanted: TakeDifference | TakeChange, own: Generation, claims: PeerClaims, call: Call
    ) -> DifferenceTaken:
        """Take over what the peer has, if it adds up."""
        if isinstance(wanted, TakeChange):
            call.charge(rows=len(wanted.added) + len(wanted.removed) + len(wanted.sent))
            return claims.take_change(wanted, own, self._key)
        call.charge(rows=len(wanted.absent) + len(wanted.claims))
        absent = wanted.absent
        if wanted.named is not None:
            named = self._seen(own).named(wanted.named)
            if named is None:  # a short id that names nothing of ours, or two records
                self.forget()
                return DifferenceTaken(agrees=False)
            absent = sorted(named.texts())
        self.forget()
        if wanted.is_equal:
            self._measured = own, wanted.told
        elif self._measured is None or self._measured[0] is not own:
            self._measured = own, measured_set(own.ids, self._key)
        return claims.take_difference(own, absent, wanted.claims, wanted.told, self._measured[1], self._key)

    def _seen(self, own: Generation) -> SetView:
        if self._view is None or self._view[0] is not own:
            self._view = own, SetView(own.ids, self._key)
        return self._view[1]

    def forget(self) -> None:
        """A comparison is over, or was dropped."""
        self._view = None
        self._peeler = Peeler(self._key)
