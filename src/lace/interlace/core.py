"""What every phase of the machine shares: its state, its clock argument, its outgoing effects (050).

Rule: nothing here decides what a phase means; see `loop`, `epoch` and `machine`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum, auto

from lace.errors import LocalProtocolError
from lace.interlace.advertisement import ListingReader
from lace.interlace.agreement import Agreement
from lace.interlace.blocks import BlockReader
from lace.interlace.config import MachineConfig
from lace.interlace.cursor import AdvertisementCursor
from lace.interlace.effects import Abort, Effect, Evaluate, Finish, Report, SaveCursor, Summarise
from lace.interlace.events import Closed, Event, Ticked
from lace.interlace.ledger import Ledger
from lace.interlace.partitions import AdvertisementSet, Changes, Partition, Parts, summarise
from lace.interlace.phases import Move, Phase, move
from lace.interlace.reasons import AbortReason, ProtocolAbort
from lace.interlace.result import InterlaceResult
from lace.interlace.ticks import TickState
from lace.interlace.transfer import RequestBook
from lace.interlace.vocabulary import TICK_READY, Block
from lace.notation.fact import Fact

Then = Callable[[Sequence[Partition]], None]


class Purpose(Enum):
    """What an evaluation is for, that is where the machine goes on when it is answered."""

    LISTING = auto()
    REQUEST = auto()
    SERVICE = auto()
    IDLE = auto()


class MachineCore:
    """State and small moves."""

    def __init__(self, config: MachineConfig) -> None:
        self.config = config
        self.phase = Phase.NEW
        self._now_ns = 0
        self._out: list[Effect] = []
        # the current phase: what of it is done, and what of the peer's block was read
        self._sent = False
        self._received = False
        self._block: BlockReader | None = None
        self._deadline_ns = 0
        # the epoch
        self._agreement: Agreement | None = None
        self._ticks: TickState | None = None
        self._shown_tick = ""
        self._epochs = 0
        # the two advertisement states and what we want
        self._own = AdvertisementSet(config.max_line_bytes)
        self._held = AdvertisementSet(config.max_line_bytes)
        self._pending = Changes([], [])
        self._book = RequestBook()
        self._advertised_version = -1
        self._evaluates_claims = False  # whether the evaluation at hand saw other claims than the one before
        self._saved_version = 0
        self._cursor_updated = False
        # work under way on our own side
        self._purpose: Purpose | None = None
        self._then: Then | None = None  # where the machine goes on when roots are known
        self._storing: set[str] = set()
        self._failure: ProtocolAbort | None = None
        self._local_changed = False
        self._close_requested = False
        self._fixed_point = False
        self._closed_by_peer = False
        self._store_mark = 0
        self._ledger = Ledger(max_hashes=config.max_result_hashes)

    # --- small moves -------------------------------------------------------------------------------------------

    def _enter(self, why: Move) -> None:
        self.phase = move(self.phase, why)
        self._sent = self._received = False
        self._block = None
        self._deadline_ns = self._now_ns + self.config.limits.phase_timeout_ns

    def _emit(self, effect: Effect) -> None:
        self._out.append(effect)

    def _report(self, event: Event) -> None:
        self._out.append(Report(event))

    @property
    def agreement(self) -> Agreement:
        """What this epoch rests on."""
        if self._agreement is None:
            raise LocalProtocolError("nothing is agreed yet")
        return self._agreement

    def _max_block_size(self) -> int:
        limits = self._agreement.negotiated.limits if self._agreement is not None else self.config.limits
        return limits.max_fact_block_size

    def _reader(self, kind: Block) -> BlockReader:
        """A reader for the next block of a kind; listings are read under the agreed schema and the peer's label."""
        if kind not in (Block.LISTING, Block.ANSWER):
            return BlockReader(kind, self._max_block_size())
        negotiated = self.agreement.negotiated
        listing = ListingReader(
            self.agreement.peer_source, negotiated.schema.names, negotiated.limits.max_advertisement_records_listed
        )
        return BlockReader(kind, self._max_block_size(), listing)

    # --- evaluation and time -----------------------------------------------------------------------------------

    def _evaluate(self, purpose: Purpose) -> None:
        """Ask for an evaluation over the newest snapshot and everything the peer advertises (050-SEND-03)."""
        self._purpose = purpose
        changes, self._pending = self._pending, Changes([], [])
        self._evaluates_claims = bool(changes.added or changes.removed)
        if purpose in (Purpose.LISTING, Purpose.IDLE):
            self._local_changed = False
        self._emit(
            Evaluate(
                runtime=self.agreement.runtime(self.config.link, self._tick_state().tick),
                source=self.agreement.peer_source,
                advertised_added=changes.added,
                advertised_removed=changes.removed,
            )
        )

    def _with_roots(self, source: str, parts: Parts, then: Then) -> None:
        """Have the roots of some partitions worked out, at once if they are over few claims; then go on."""
        longest = self.config.max_line_bytes
        if sum(map(len, parts.values())) <= self.config.max_claims_summarised_here:
            then(summarise(parts, source, longest))
            return
        self._then = then
        self._emit(Summarise(source=source, parts=parts, max_line_bytes=longest))

    def _with_roots_of(
        self, known: AdvertisementSet, source: str, prefixes: Iterable[str], then: Callable[[], None]
    ) -> None:
        """Go on when a set knows its roots under a label; it must not change meanwhile."""

        def remember(partitions: Sequence[Partition]) -> None:
            known.remember(source, partitions)
            then()

        self._with_roots(source, known.unsummarised(source, prefixes), remember)

    def _summarised(self, partitions: Sequence[Partition]) -> None:
        then, self._then = self._then, None
        if then is None:
            raise LocalProtocolError("roots that nobody asked for")
        self._deadline_ns = self._now_ns + self.config.limits.phase_timeout_ns
        then(partitions)

    def _tick_state(self) -> TickState:
        if self._ticks is None:
            raise LocalProtocolError("no shared time before hello")
        return self._ticks

    @property
    def _announces_ticks(self) -> bool:
        """050-TICK-14: a bounded exchange keeps its start time unless asked to wait for ticks."""
        return self.config.is_open or self.config.ticks_before_close > 0

    def _tick_facts(self) -> list[Fact]:
        """TickReady for the newest tick that our clock has reached and that was not told yet (050-TICK-04)."""
        if not self._announces_ticks:
            return []
        ticks = self._tick_state()
        tai = ticks.reached(self._now_ns)
        if tai is None:
            return []
        ticks.announce(tai)
        self._show_tick()
        return [Fact(TICK_READY, (tai,))]

    def _hear_ticks(self, block: BlockReader) -> None:
        for text in block.ticks:
            self._tick_state().hear(text)
        if block.ticks:
            self._show_tick()

    def _show_tick(self) -> None:
        tick = self._tick_state().tick
        if tick != self._shown_tick:
            self._shown_tick = tick
            self._local_changed = True  # 050-TICK-13: the policy is evaluated again
            self._report(Ticked(tick))

    # --- the end -----------------------------------------------------------------------------------------------

    def result(self) -> InterlaceResult:
        """What this side has to report now."""
        agreement, ledger = self._agreement, self._ledger
        return InterlaceResult(
            link_id=agreement.link_id if agreement else None,
            exchange_plan_id=agreement.plan.id if agreement else None,
            peer_verifier=agreement.peer if agreement else None,
            received_hashes=tuple(ledger.received),
            rejected_hashes=dict(ledger.rejected),
            not_available_hashes=tuple(ledger.not_available),
            bytes_received=ledger.bytes_received,
            bytes_sent=ledger.bytes_sent,
            cursor_updated=self._cursor_updated,
            sent_hashes=tuple(ledger.sent),
            fixed_point=self._fixed_point,
            loops=ledger.loops,
            advertised_to_peer=len(self._own),
            advertised_by_peer=len(self._held),
            epochs=self._epochs,
            limit_reached=ledger.limit_reached,
            closed_by_peer=self._closed_by_peer,
            store_mark=self._store_mark,
        )

    def _finish(self) -> None:
        self._save_cursor()
        self._enter(Move.CLOSE)
        self._report(Closed(""))
        self._emit(Finish(self.result()))

    def _save_cursor(self) -> None:
        key = self._cursor_key()
        if not key or not self._fixed_point or self._held.version == self._saved_version:
            return
        self._saved_version = self._held.version
        self._cursor_updated = True
        source = self.agreement.peer_source
        cursor = AdvertisementCursor(
            plan=self.agreement.plan.id,
            source=source,
            claims=tuple(self._held.listing()),
            partitions=tuple(self._held.known_summaries(source)),
        )
        self._emit(SaveCursor(key, cursor))

    def _cursor_key(self) -> str:
        """050-LINK-04: the Link-Id keys the cursor; a local key serves links without two signers."""
        if self._agreement is None:
            return ""
        return self._agreement.link_id or self.config.cursor_key

    def _fail(self, failure: ProtocolAbort) -> None:
        """Abort, after records under way have been answered so that the result names what was stored."""
        if self.phase is Phase.CLOSED:
            return
        if self._storing and failure.reason is not AbortReason.LOCAL_FAILURE:
            self._failure = self._failure or failure
            return
        self._enter(Move.CLOSE)
        self._report(Closed(str(failure)))
        self._emit(Abort(failure.reason, failure.detail, self.result()))
