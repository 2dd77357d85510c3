"""The listed way (050, P14): each side lists its whole set.

Rule: both sides' listings are there before our own side looks at the peer's; what follows from the two is the same on
both sides.
"""

from __future__ import annotations

from lace.errors import LocalProtocolError
from lace.interlace.claims.advertisement import with_format
from lace.interlace.effects import SendChanges, SendListing
from lace.interlace.inputs import ClaimsTaken, Lacking
from lace.interlace.loop.way import PeerAdvertisement, Progress, Way, WayAnswer, unasked
from lace.interlace.phases import Move, Question


class ListedWay(Way):
    """Two whole listings; between two machines in one process, how they changed."""

    _names_records = False  # whether our side has to hear which records it listed

    def advertise(self) -> Progress:
        """List everything that we may send."""
        core, epoch = self._core, self._epoch
        if core.config.is_direct:
            core.emit(SendChanges(epoch.own, epoch.told))
            epoch.told = epoch.own
            return self._end_advertisement([])
        if not epoch.own.count:
            return self._end_advertisement([])  # P19: TickReady rides only in an adv that is not otherwise empty
        source = epoch.agreement.own_source
        core.emit(SendListing(own=epoch.own, source=source, is_named=self._names_records))
        return Progress.OPEN

    def listing_sent(self) -> Progress:
        """Our `adv` is complete but for its ticks."""
        return self._end_advertisement(self._epoch.tick_facts())

    def meet(self, theirs: PeerAdvertisement) -> Progress:
        """Have the peer's listing taken over."""
        if theirs.listing is None:
            raise LocalProtocolError("partitions on a way without any")
        return self._take_listing(theirs.listing)

    def answer(self, question: Question, item: WayAnswer) -> Progress:
        """THEIR_LISTING is answered."""
        if not isinstance(item, ClaimsTaken):
            raise unasked(question, item)
        self._epoch.note_claims(item)
        self._core.enter(Move.LISTED)
        if item.is_own and self._epoch.ends_when_equal:
            return Progress.EQUAL
        self.taken: Lacking | None = self._crossing(item.lacking)
        return Progress.KNOWN

    def _crossing(self, lacking: Lacking | None) -> Lacking | None:
        """What crosses without being named (070-TAKE-03): both sides find the same in the same two listings."""
        if lacking is None:
            return None
        agreement, records = self._epoch.agreement, [*lacking.ours, *lacking.peer]
        if agreement.names_parts and any(record.startswith("B.") for record in records):
            return None  # a part is asked for once its manifest is here: sent before, it would be sent twice
        formats = agreement.negotiated.record_formats
        return lacking if len(with_format(records, formats)) == len(records) else None


class ToNothingWay(ListedWay):
    """A listing for a peer that holds nothing (070-CAP-05): one line may ask for all of it (070-ALL-01)."""

    _names_records = True
