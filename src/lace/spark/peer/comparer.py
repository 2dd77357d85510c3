"""An archive's set beside a peer's, for one policy of one link (070): measured, sketched, decoded, taken over.

Rule: every step is one pass over the ids of the set, and what a change costs is a pass over what changed.
"""

from __future__ import annotations

from lace.differences.keyed import U64
from lace.differences.sketch import Symbols
from lace.differences.sums import nothing
from lace.interlace.host import Call
from lace.runtime.host.setcomparer import SetComparer
from lace.spark.peer import aggregates
from lace.spark.peer.sets import ArchiveSet, ChangedRows


class ArchiveComparer(SetComparer[ArchiveSet]):
    """Over a set whose ids are in files."""

    def _root(self, own: ArchiveSet, call: Call) -> bytes:
        return own.root(call)

    def _whole(self, own: ArchiveSet, call: Call, *, will_sketch: bool) -> U64:
        call.charge(rows=len(own))
        with own.job("measure", call):
            return aggregates.measure_of(own.hashes, self._key)

    def _far(self, before: ArchiveSet, own: ArchiveSet, call: Call) -> U64:
        came, went = own.changes(before)
        return self._of(came, own, call) - self._of(went, own, call)

    def _of(self, change: ChangedRows, own: ArchiveSet, call: Call) -> U64:
        if change.hashes is None:
            return nothing()
        with own.job("measure what changed", call, change.files):
            return aggregates.measure_of(change.hashes, self._key)

    def _symbols(self, own: ArchiveSet, start: int, end: int, call: Call) -> Symbols:
        with own.job("sketch", call):
            return aggregates.symbols_of(own.hashes, self._key, start, end)

    def _named(self, own: ArchiveSet, short: U64, call: Call) -> list[str] | None:
        if not len(short):
            return []
        call.charge(rows=len(own))
        with own.job("name short ids", call):
            return aggregates.named_by(own.hashes, self._key, short)
