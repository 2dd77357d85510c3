"""Our set beside a peer's, for one policy of one link (070): measured, sketched, decoded, taken over.

Rule: what is held between two loops does not grow with the set; what a comparison needs of it is let go with its end.
`SetComparer` is the part that does not depend on where the ids are; a host says how its own sets are read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Generic, TypeVar

from lace.differences.keyed import U64, DifferenceKey
from lace.differences.peel import Peeler
from lace.differences.setview import SetView, measured
from lace.differences.sketch import Symbols
from lace.differences.tree import told_root
from lace.interlace.claims.peerclaims import PeerClaims
from lace.interlace.claims.relative import OwnSet, holds
from lace.interlace.effects import Decode, Measure, Sketch, TakeChange, TakeDifference
from lace.interlace.host import Call
from lace.interlace.inputs import Decoded, DifferenceTaken, Measured, Sketched
from lace.runtime.rules.generation import Generation

Own = TypeVar("Own", bound=OwnSet)
_FEW = 64  # ids between two sets of which one was measured


class SetComparer(ABC, Generic[Own]):
    """The host's part of 070, over sets of one kind."""

    def __init__(self, key: DifferenceKey) -> None:
        self._key = key
        self._measured: tuple[Own, U64] | None = None
        self._peeler = Peeler(key)

    def measure(self, wanted: Measure, own: Own, call: Call) -> Measured:
        """The root, which links share; the sums, from the set that was summed last if there is one."""
        root = told_root(self._root(own, call), self._key) if wanted.root else b""
        summed = self._sum(wanted, own, call) if wanted.sums else Measured()
        return replace(summed, root=root, count=len(own))

    def _sum(self, wanted: Measure, own: Own, call: Call) -> Measured:
        if self._measured is None:
            will_sketch = not wanted.root and wanted.since is None
            self._measured = own, self._whole(own, call, will_sketch=will_sketch)
            return Measured(measured=self._measured[1])
        before, total = self._measured
        changed = own.since(before)
        if changed is None:
            self._measured = own, total + self._far(before, own, call)
            return Measured(measured=self._measured[1])
        came, went = changed
        call.charge(rows=len(came) + len(went))
        total = total + measured(came, self._key) - measured(went, self._key)
        self._measured = own, total
        if wanted.since is None or wanted.since.number != before.number:
            return Measured(measured=total)
        return Measured(measured=total, added=sorted(came.texts()), removed=sorted(went.texts()))

    def sketch(self, wanted: Sketch, own: Own, call: Call) -> Sketched:
        """Symbols of our set."""
        call.charge(rows=len(own))
        return Sketched(self._symbols(own, wanted.start, wanted.end, call))

    def decode(self, wanted: Decode, own: Own, call: Call) -> Decoded:
        """What the peer's symbols say beside our own."""
        call.charge(rows=len(own) + len(wanted.symbols))
        if wanted.start == 0:
            self._peeler = Peeler(self._key)
        ours = self._symbols(own, wanted.start, wanted.start + len(wanted.symbols), call)
        found = self._peeler.give(ours.minus(wanted.symbols))
        if found is None:
            return Decoded(is_hopeless=self._peeler.is_hopeless)
        absent = self._named(own, found.mine, call)
        if absent is None:
            return Decoded(is_hopeless=True)
        return Decoded(absent=absent, lacking=found.theirs)

    def take(self, wanted: TakeDifference | TakeChange, own: Own, claims: PeerClaims, call: Call) -> DifferenceTaken:
        """Take over what the peer has, if it adds up."""
        if isinstance(wanted, TakeChange):
            call.charge(rows=len(wanted.added) + len(wanted.removed) + len(wanted.sent))
            return claims.take_change(wanted, own, self._key)
        call.charge(rows=len(wanted.absent) + len(wanted.claims))
        absent = wanted.absent if wanted.named is None else self._named(own, wanted.named, call)
        if absent is None:  # a short id that names nothing of ours, or two records
            self.forget()
            return DifferenceTaken(agrees=False)
        if wanted.is_equal:
            self._measured = own, wanted.told
        elif self._measured is None or self._measured[0] is not own:
            self._measured = own, self._whole(own, call, will_sketch=False)
        self.forget()
        taken = claims.take_difference(own, absent, wanted.claims, wanted.told, self._measured[1], self._key)
        return taken if holds(own, wanted.crossed) else replace(taken, holds_crossed=False)

    def forget(self) -> None:
        """A comparison is over, or was dropped."""
        self._peeler = Peeler(self._key)

    @abstractmethod
    def _root(self, own: Own, call: Call) -> bytes:
        """The root of a set's tree, without a key."""

    @abstractmethod
    def _whole(self, own: Own, call: Call, *, will_sketch: bool) -> U64:
        """The measure of a whole set; `will_sketch` if its symbols are wanted next."""

    def _far(self, before: Own, own: Own, call: Call) -> U64:
        """By how much a measure changed, where `since` says that it was by too much to name."""
        call.charge(rows=len(own) + len(before))
        return own.measure(self._key) - before.measure(self._key)

    @abstractmethod
    def _symbols(self, own: Own, start: int, end: int, call: Call) -> Symbols:
        """Symbols of a set's sketch."""

    @abstractmethod
    def _named(self, own: Own, short: U64, call: Call) -> list[str] | None:
        """The records of a set behind short ids, sorted; None if one names none of them, or two."""


class Comparer(SetComparer[Generation]):
    """Over a set whose ids are in memory."""

    def __init__(self, key: DifferenceKey) -> None:
        super().__init__(key)
        self._view: tuple[Generation, SetView] | None = None

    def is_near(self, wanted: Measure, own: Generation, few: int) -> bool:
        """Whether the set was measured, or the one before it."""
        return not wanted.root and self._measured is not None and own.ids.is_near(self._measured[0].ids, few)

    def _root(self, own: Generation, call: Call) -> bytes:
        return own.root

    def _whole(self, own: Generation, call: Call, *, will_sketch: bool) -> U64:
        call.charge(rows=len(own))
        view = SetView(own.ids, self._key, sums=True)  # a sketch needs the same keyed ids, if one is asked for
        self._view = own, view
        return view.measured

    def _symbols(self, own: Generation, start: int, end: int, call: Call) -> Symbols:
        return self._seen(own).symbols(start, end)

    def _named(self, own: Generation, short: U64, call: Call) -> list[str] | None:
        found = self._seen(own).named(short)
        return None if found is None else sorted(found.texts())

    def _seen(self, own: Generation) -> SetView:
        if self._view is None or self._view[0] is not own:
            self._view = own, SetView(own.ids, self._key)
        return self._view[1]

    def forget(self) -> None:
        """A comparison is over, or was dropped."""
        super().forget()
        self._view = None
