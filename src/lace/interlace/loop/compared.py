"""The part of a loop that compares sets (070): the summary in the place of a listing, and what follows from it.

Rule: everything here ends in one of two places: requests, with the peer's advertisement state known; or the standard
advertisement of the same loop.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from lace.differences.keyed import U64
from lace.differences.sketch import Symbols
from lace.differences.sums import agrees
from lace.errors import LocalProtocolError, excerpt
from lace.facts.predicates import MAY_REQUEST
from lace.interlace.claims.advertisement import Claims
from lace.interlace.core import Core
from lace.interlace.effects import Measure, SendListing, TakeChange, TakeClaims, TakeDifference
from lace.interlace.inputs import Decoded, DifferenceTaken, Measured
from lace.interlace.loop.blocks import BlockReader
from lace.interlace.loop.comparing import (
    ASK,
    DROP,
    Comparison,
    ComparisonOutcome,
    Summary,
    malformed,
    only,
    read_summary,
    summary_facts,
)
from lace.interlace.loop.epoch import Epoch
from lace.interlace.phases import Move, Question
from lace.interlace.vocabulary import DIFFERENCE_ALL
from lace.notation.fact import Fact, FactColumn

MIN_ALL = 16  # records from which on one line asks for all of them: fewer do not matter, and stay to be read one by one


class ComparedLoop(ABC):
    """A loop as far as 070 tells it."""

    def __init__(self, core: Core, epoch: Epoch) -> None:
        self._core = core
        self._epoch = epoch
        self._peer_listing: TakeClaims | None = None
        self.offered = 0  # records that the peer's listing speaks of
        self._is_standard = not epoch.agreement.negotiated.differences or core.config.is_direct
        self._ours: Measured | None = None
        self._theirs: Summary | None = None
        self._summary: list[Fact] = []  # ours, behind a listing under way
        self._has_base = epoch.compared is not None
        self._comparison: Comparison | None = None
        self._is_quiet = False  # 070-EQUAL-03: the sets are one, so that nothing can be asked for
        self._doubt: Fact | None = None  # sent in the place of our requests
        self._listed_by_us: Sequence[str] = ()  # of what differs
        self._listed_by_peer: Sequence[str] = ()
        self._whole_listing: Claims = ()  # the peer's, where all of it differs
        self._lists_all = False  # what we listed is our whole set
        self.is_asked_for_all = False  # of that, in one line

    # --- what the whole loop knows -----------------------------------------------------------------------------

    @abstractmethod
    def _advertise_all(self) -> None:
        """Our standard `adv`."""

    @abstractmethod
    def _end_advertisement(self, facts: list[Fact]) -> None:
        """The last lines of our `adv`."""

    @abstractmethod
    def _compare_listings(self) -> None:
        """Go on if both `adv` are there."""

    @abstractmethod
    def _evaluate_requests(self) -> None:
        """In REQUEST: both advertisement states are current."""

    @abstractmethod
    def _end_without_requests(self) -> None:
        """In REQUEST: both know that neither asks for anything."""

    # --- summaries ---------------------------------------------------------------------------------------------

    @property
    def _may_compare(self) -> bool:
        """Whether our `adv` is a summary: with a base always, without one if there is enough to compare."""
        enough = self._epoch.own.count >= self._core.terms.min_compared
        return not self._is_standard and (self._has_base or enough)

    @property
    def _is_asker(self) -> bool:
        return self._core.config.index == 0

    def _measure(self) -> Measure:
        """What our `adv` has to say of our set: a teller sums only where it must (070-ADV-03)."""
        has_base = self._has_base
        return Measure(
            own=self._epoch.own, since=self._epoch.compared, root=not has_base, sums=has_base or self._is_asker
        )

    @property
    def _lists_to_nothing(self) -> bool:
        """Whether all that we list is what differs, for the peer says that it holds nothing (070-ALL-01)."""
        return not self._is_standard and self._epoch.lists_at_once

    def _note_listing(self, claims: Claims) -> None:
        """The other side of that. Which records they are is not asked here: putting many in order takes long."""
        if not self._is_standard and self._epoch.is_listed_at_once:
            self._whole_listing = claims

    def send_measure(self, found: Measured) -> None:
        """MEASURE is answered: our summary, and what changed since the loop before (070-BASE-01); or OWN_SUMS."""
        if self._comparison is not None:
            self._comparison.summed(found)
            self._go_on()
            return
        self._ours = found
        self._summary = summary_facts(found)
        listed = self._listed_by_us = self._changes(found.added or ()) if self._has_base else []
        if listed:
            source = self._epoch.agreement.own_source
            self._core.emit(SendListing(own=self._epoch.own, source=source, records=listed))
        else:
            self._end_advertisement([*self._summary, *self._epoch.tick_facts()])

    def _changes(self, added: Sequence[str]) -> list[str]:
        """Which of the records that came since the base the peer has to be told of: not those that it sent itself, if
        they all are in the set; and none at all if there are too many, then it will ask."""
        arrived = self._epoch.arrived
        listed = [record for record in added if record not in arrived] if arrived.issubset(added) else list(added)
        limits = self._epoch.agreement.negotiated.limits
        return listed if len(listed) <= limits.max_advertisement_records_listed else []

    def _receive_summary(self, block: BlockReader) -> bool:
        """Whether the peer's `adv` is a summary of 070; then it is taken down."""
        found = read_summary(block.facts)
        if found is None:
            return False
        if self._is_standard or (not self._has_base and (block.lists or found.withdrawn)):
            raise malformed("a summary where none may stand")
        if (found.root is None) != self._has_base or (found.sums is None) != (self._is_asker and not self._has_base):
            raise malformed("not the summary that this side may send now")
        self._theirs = found
        self._peer_listing = block.listing()
        self.offered = found.count
        self._core.received = True
        self._compare_listings()
        return True

    def _compare_summaries(self) -> bool:
        """Both sides' `adv` is there: whether one of them was a summary, and the loop goes on with that."""
        core, own = self._core, self._epoch.own
        ours, theirs = self._ours, self._theirs
        if ours is None or theirs is None:
            if ours is not None or theirs is not None:
                self._catch_up()
            return ours is not None or theirs is not None
        listing, self._peer_listing = self._peer_listing, None
        if self._are_equal(ours, theirs):
            told = self._asked_sums(ours, theirs)
            self._is_quiet, crossed = self._ends_when_equal, frozenset(core.refusals.crossed)
            core.ask(
                Question.THEIR_CHANGE, TakeDifference(own=own, claims=(), told=told, is_equal=True, crossed=crossed)
            )
        elif self._has_base and listing is not None and theirs.sums is not None:
            added, sent = listing.added, tuple(self._epoch.sent)
            self._listed_by_peer = [claim.hash for claim in added]
            change = TakeChange(own=own, added=added, removed=theirs.withdrawn, sent=sent, told=theirs.sums)
            core.ask(Question.THEIR_CHANGE, change)
        else:
            self._begin_comparison(Move.DIFFERING)
        return True

    def _are_equal(self, ours: Measured, theirs: Summary) -> bool:
        """070-EQUAL-01 by the root; with a base by the sums, which both sides have then (070-BASE-02)."""
        if not self._has_base:
            return (ours.count, ours.root) == (theirs.count, theirs.root)
        return ours.measured is not None and theirs.sums is not None and agrees(ours.measured, theirs.sums)

    @property
    def _ends_when_equal(self) -> bool:
        """070-EQUAL-03: whether equal sets leave nothing to ask for; where rules read listings these come first."""
        agreement = self._epoch.agreement
        return agreement.negotiated.differences and not agreement.have_reads_advertisements

    def _asked_sums(self, ours: Measured, theirs: Summary) -> U64:
        """The asker's sums, which are those of both."""
        sums = ours.measured if self._is_asker else theirs.sums
        if sums is None:
            raise LocalProtocolError("an asker without sums")
        return sums

    def _begin_comparison(self, why: Move) -> None:
        if self._ours is None or self._theirs is None:
            raise LocalProtocolError("a comparison without two summaries")
        self._comparison = Comparison(self._core, self._epoch, self._ours.measured, self._theirs)
        self._comparison.begin(why)
        self._go_on()

    def _catch_up(self) -> None:
        """070-ADV-02: one side sent a summary and the other did not; the one that did sends its standard `adv` now."""
        core, mine = self._core, self._ours is not None
        self._forget_summaries()
        core.enter(Move.DROPPED)
        core.received, core.sent = mine, not mine
        if mine:
            self._advertise_all()
        else:
            self._peer_listing = None  # what stood beside its summary

    def _forget_summaries(self) -> None:
        self._is_standard = True
        self._ours = self._theirs = self._comparison = self._doubt = None
        self._summary = []
        self._listed_by_us = self._listed_by_peer = self._whole_listing = ()
        self._lists_all = False

    def _drop(self) -> None:
        """070-DROP-02: both of us send the standard `adv`."""
        self._forget_summaries()
        self._peer_listing = None
        self._core.requests.outstanding.clear()
        self._core.enter(Move.DROPPED)
        self._advertise_all()

    def difference_taken(self, answer: DifferenceTaken) -> None:
        """THEIR_CHANGE, THEIR_REPLY or THEIR_RECORDS is answered."""
        if answer.agrees:
            self._epoch.note_claims(answer)
        if self._comparison is None:
            self._core.enter(Move.LISTED)
            if self._is_quiet and answer.agrees and answer.holds_crossed:  # 071-RIDE-03
                self._end_without_requests()
            else:
                self._after_differences(ASK if not answer.agrees else None)
        else:
            self._comparison.taken(answer)
            self._go_on()

    def send_symbols(self, symbols: Symbols) -> None:
        """SYMBOLS is answered."""
        self._comparing.send_symbols(symbols)

    def decoded(self, found: Decoded) -> None:
        """THEIR_SYMBOLS is answered."""
        self._comparing.decoded(found)
        self._go_on()

    def receive_difference(self, block: BlockReader) -> None:
        """A block of the comparison."""
        self._comparing.receive(block)
        self._go_on()

    @property
    def _comparing(self) -> Comparison:
        if self._comparison is None:
            raise LocalProtocolError("no comparison is under way")
        return self._comparison

    def _go_on(self) -> None:
        """Leave the comparison when it is over."""
        match self._comparing.outcome:
            case ComparisonOutcome.AGREED | ComparisonOutcome.DOUBTED:
                doubt = DROP if self._comparing.outcome is ComparisonOutcome.DOUBTED else None
                self._listed_by_us, self._listed_by_peer = self._comparing.listed, self._comparing.offered
                self._comparison = None
                self._core.enter(Move.LISTED)
                self._after_differences(doubt)
            case ComparisonOutcome.DROPPED:
                self._drop()
            case ComparisonOutcome.OPEN:
                return

    def _after_differences(self, doubt: Fact | None) -> None:
        """In REQUEST: our requests, or what we doubt in their place (070-BASE-04, 070-DROP-01)."""
        if doubt is None:
            self._evaluate_requests()
            return
        self._doubt = doubt  # the phase ends with the peer's block, whatever is in it
        self._core.send_block([doubt])

    def _request_facts(self, requested: list[str]) -> Sequence[Fact]:
        """What we ask for: one line for many records, if they are all that the peer listed (070-ALL-01)."""
        count = len(self._listed_by_peer) or len(self._whole_listing)
        if len(requested) >= MIN_ALL and len(requested) == count:
            listed = self._listed_by_peer or [claim.hash for claim in self._whole_listing]
            if requested == listed or set(requested) == set(listed):
                return [Fact(DIFFERENCE_ALL, (str(count),))]
        return FactColumn(MAY_REQUEST, requested)

    def _requested_of_us(self, block: BlockReader) -> list[str]:
        """What the peer asks for."""
        counts = [values[0] for predicate, values in block.facts if predicate == DIFFERENCE_ALL]
        if not counts:
            return list(block.requested)
        if len(counts) > 1 or block.requested or not self._listed_by_us:
            raise malformed("all that was listed, asked for twice, beside other requests, or where nothing was")
        if counts[0] != str(len(self._listed_by_us)):
            raise malformed(f"all of {excerpt(counts[0])} records asked for, and {len(self._listed_by_us)} were listed")
        self.is_asked_for_all = self._lists_all
        return list(self._listed_by_us)

    def _settle_doubts(self, block: BlockReader) -> bool:
        """Whether either side sent a doubt instead of its requests; then the loop goes on as that says."""
        doubts = {self._doubt, *(fact for fact in (ASK, DROP) if only(block.facts, fact, bool(block.requested)))}
        doubts.discard(None)
        if not doubts:
            return False
        if self._is_standard:
            raise malformed("a doubt of what was listed")
        self._doubt = None
        self._core.requests.outstanding.clear()
        if DROP in doubts:
            self._drop()
        else:
            self._begin_comparison(Move.ASKED)
        return True
