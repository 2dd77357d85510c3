"""One epoch: what was agreed, the shared time, and how the two advertisement states stand (050).

Rule: an epoch is made when a hello is agreed and dropped when the next one is. The host holds what the peer claims; an
epoch knows only how much that is and whether it changed.
"""

from __future__ import annotations

from collections.abc import Sequence

from lace.interlace.core import Core
from lace.interlace.effects import Evaluate, KeepClaims, SetHandle
from lace.interlace.events import Ticked
from lace.interlace.inputs import ClaimsTaken, DifferenceTaken, Evaluated, Reconciled
from lace.interlace.loop.blocks import BlockReader
from lace.interlace.loop.listingsize import measured_bytes
from lace.interlace.loop.refusals import most_requests
from lace.interlace.loop.ticks import TickState
from lace.interlace.phases import Question
from lace.interlace.setup.agreement import Agreement
from lace.interlace.vocabulary import TICK_READY
from lace.notation.fact import Fact

TICK_ROOM = 64  # bytes of a block left for a TickReady line
_NOTHING = Evaluated(own=SetHandle(-1, 0))


class Epoch:
    """From one hello to the next."""

    def __init__(self, core: Core, agreement: Agreement, before: Epoch | None) -> None:
        self.core = core
        self.agreement = agreement
        self.number: int = before.number + 1 if before is not None else 1
        self.ticks: TickState = TickState(agreement.negotiated.start, agreement.negotiated.tick_interval_ns)
        self._shown_tick = self.ticks.tick
        # our side: the last evaluation, and of which set the peer was told last
        self.found: Evaluated = _NOTHING
        self.advertised: SetHandle | None = None
        self.told: SetHandle | None = None  # to a peer in this process, which is told changes
        self.compared: SetHandle | None = None  # our set of the last loop that was reconciled (070: a base)
        self.arrived: set[str] = set()  # records of the peer that came since then, stored or not
        self.sent: set[str] = set()  # records that the peer was sent since then
        self.moved_by_itself = False  # whether our set changed since it was advertised, and not by claims alone
        self.sees_other_claims = False  # the evaluation at hand, than the one before
        # the peer's side: its claims are kept only under the same plan (050-OPEN-13)
        keeps = before is not None and before.agreement.plan.id == agreement.plan.id
        self._keeps_claims = keeps
        self.claims: int = before.claims if before is not None and keeps else 0
        self.claims_changed = bool(self.claims)
        self._claims_unsaved: bool = before._claims_unsaved if before is not None and keeps else False
        self.seen_listings: dict[bytes, None] = {}
        self.own_listing = b""

    @property
    def own(self) -> SetHandle:
        """What we may send, as last evaluated."""
        return self.found.own

    @property
    def is_advertised(self) -> bool:
        """Whether the peer was told of exactly this."""
        return self.own == self.advertised

    # --- policy and evaluation ---------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Have the local policy made, and the peer's claims of the last time taken up (050-SEND-02)."""
        cursor_key = "" if self._keeps_claims else self._cursor_key
        wanted = self.agreement.preparing(self.core.config, keeps_claims=self._keeps_claims, cursor_key=cursor_key)
        self.core.ask(Question.POLICY, wanted)

    def begin_with(self, claims: int) -> None:
        """The policy is ready; so many claims of the peer are known."""
        self.claims = claims
        self.claims_changed = bool(claims)

    def evaluate(self, question: Question) -> None:
        """Ask for an evaluation over the newest snapshot and everything the peer advertises (050-SEND-03)."""
        core, negotiated = self.core, self.agreement.negotiated
        self.sees_other_claims, self.claims_changed = self.claims_changed, False
        lists = question in (Question.WHAT_TO_LIST, Question.ANY_NEWS)
        if lists:
            core.local_changed = False
        # Whether there is news to ask for, one request tells.
        most = {Question.WHAT_TO_REQUEST: core.terms.max_requests, Question.ANY_NEWS: 1}.get(question, 0)
        block = negotiated.limits.max_fact_block_size
        if negotiated.refusals:
            most = min(most, most_requests(block))
        core.ask(
            question,
            Evaluate(
                runtime=self.agreement.runtime(core.config.link, self.ticks.tick),
                measured_bytes=self._measured_bytes() if lists and not core.config.is_direct else 0,
                max_requests=most,
                max_request_bytes=block - TICK_ROOM - core.refusals.pending_bytes,
                refused=core.requests.refused if most else frozenset(),
            ),
        )

    def _measured_bytes(self) -> int:
        negotiated, threshold = self.agreement.negotiated, self.partition_threshold_bytes
        return measured_bytes(negotiated.limits, agreed=negotiated.partitions, threshold_bytes=threshold)

    @property
    def partition_threshold_bytes(self) -> int:
        """Listings above this are summarised; where the peer has nothing to compare them with, only if they must be."""
        if self.lists_at_once:
            return self.agreement.negotiated.limits.max_fact_block_size
        return self.core.terms.partition_threshold_bytes

    @property
    def lists_at_once(self) -> bool:
        """Whether the next `adv` of ours is to a peer that holds nothing (070-CAP-05)."""
        return self.agreement.peer_holds_nothing and self.compared is None

    @property
    def ends_when_equal(self) -> bool:
        """070-EQUAL-03: whether equal sets leave nothing to ask for; where rules read listings these come first."""
        return self.agreement.negotiated.differences and not self.agreement.have_reads_advertisements

    @property
    def takes(self) -> int:
        """How many records of a listing either side takes unnamed (070-TAKE-03): in a first loop, where no listing
        follows from another."""
        agreement = self.agreement
        is_first = self.compared is None and not self.core.config.is_direct
        return agreement.negotiated.takes if is_first and not agreement.have_reads_advertisements else 0

    @property
    def is_listed_at_once(self) -> bool:
        """Whether the peer's next `adv` is to us as a side that holds nothing: we said that we do."""
        return self.core.config.holds_nothing and self.agreement.negotiated.differences and self.compared is None

    def accept(self, found: Evaluated) -> None:
        """The effective send set changes only here (050-SEND-01)."""
        if found.own.number != self.own.number and not self.sees_other_claims:
            self.moved_by_itself = True
        self.found = found

    def note_advertised(self) -> None:
        """Our advertisement is complete."""
        self.advertised = self.own
        self.own_listing = self.found.fingerprint
        self.moved_by_itself = False

    # --- the peer's claims -------------------------------------------------------------------------------------

    def note_claims(self, answer: ClaimsTaken | Reconciled | DifferenceTaken) -> None:
        """The host took something over."""
        self.claims = answer.count
        if answer.changed:
            self.claims_changed = self._claims_unsaved = True
            self.core.requests.forgive()  # 050-XFER-11

    def note_sent(self, records: Sequence[str]) -> None:
        """Records went to the peer."""
        if self.compared is not None:
            self.sent.update(records)

    def note_arrived(self, records: Sequence[str]) -> None:
        """Records came of the peer."""
        if self.compared is not None:
            self.arrived.update(records)

    def note_reconciled(self) -> None:
        """Both advertisement states are current: the next loop may tell changes from here (070)."""
        if self.agreement.negotiated.differences:
            self.compared = self.own
            self.arrived.clear()
            self.sent.clear()

    @property
    def _cursor_key(self) -> str:
        """050-LINK-04: the Link-Id keys the cursor; a local key serves links without two signers."""
        return self.agreement.link_id or self.core.config.cursor_key

    def save_claims(self) -> bool:
        """Keep what the peer claims at a fixed point; whether there was anything new to keep."""
        if not self._cursor_key or not self._claims_unsaved:
            return False
        self._claims_unsaved = False
        self.core.emit(KeepClaims(self._cursor_key))
        return True

    # --- listings that depend on listings (P13) ----------------------------------------------------------------

    def note_listings(self) -> bool:
        """Whether a quiet loop ends here; remembers this loop's two listings."""
        if not self.agreement.have_reads_advertisements:
            return True
        pair = self.own_listing + self.found.claims_fingerprint
        seen = pair in self.seen_listings
        self.seen_listings[pair] = None
        # All loops of this round: listings that come back later than that end by the limit, not at a fixed point.
        if len(self.seen_listings) > self.agreement.negotiated.limits.max_loop_iterations:
            del self.seen_listings[next(iter(self.seen_listings))]
        return seen

    def forget_listings(self) -> None:
        """Record bytes crossed in either direction."""
        self.seen_listings.clear()

    def settle(self) -> None:
        """A fixed point: listings that only alternate are settled too (050-BOUND-09).

        If claims alone brought back a listing of ours that the peer has seen, there is no news in it. Anything else,
        a record that came or the time, the peer has to hear in another loop.
        """
        if not self.agreement.have_reads_advertisements or self.moved_by_itself:
            return
        if any(pair.startswith(self.found.fingerprint) for pair in self.seen_listings):
            self.advertised = self.own

    # --- shared time -------------------------------------------------------------------------------------------

    @property
    def announces_ticks(self) -> bool:
        """050-TICK-14: a bounded exchange keeps its start time unless asked to wait for ticks."""
        return self.core.terms.is_open or self.core.terms.ticks_before_close > 0

    def tick_facts(self) -> list[Fact]:
        """TickReady for the newest tick that our clock has reached and that was not told yet (050-TICK-04)."""
        tai = self.ticks.reached(self.core.now_ns) if self.announces_ticks else None
        if tai is None:
            return []
        self.ticks.announce(tai)
        self.show_tick()
        return [Fact(TICK_READY, (tai,))]

    def hear_ticks(self, block: BlockReader) -> None:
        """What the peer's clock has reached."""
        for text in block.ticks:
            self.ticks.hear(text)
        if block.ticks:
            self.show_tick()

    def show_tick(self) -> None:
        tick = self.ticks.tick
        if tick != self._shown_tick:
            self._shown_tick = tick
            self.core.local_changed = True  # 050-TICK-13: the policy is evaluated again
            self.core.report(Ticked(tick))

    @property
    def has_ticked_enough(self) -> bool:
        """050-TICK-15: a bounded exchange that was asked to wait for ticks has, and nothing is new."""
        terms = self.core.terms
        if terms.is_open or not terms.ticks_before_close:
            return False
        waited = (self.ticks.tick.to_ns() - self.ticks.start.to_ns()) // self.ticks.interval_ns
        return not self.core.local_changed and self.is_advertised and waited >= terms.ticks_before_close
