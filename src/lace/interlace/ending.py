"""How an exchange ends, and what it has to report (050, result object and failure table).

Rule: an exchange ends once. A peer's fault waits until records under way are stored or rejected, so that the result
names them; our own store's failure does not, for nothing more will be stored.
"""

from __future__ import annotations

from lace.interlace.core import Core
from lace.interlace.effects import Abort, Finish
from lace.interlace.events import Closed
from lace.interlace.loop.epoch import Epoch
from lace.interlace.phases import Move
from lace.interlace.reasons import AbortReason, ProtocolAbort
from lace.interlace.result import InterlaceResult


class Ending:
    """What decides and describes the end of one exchange."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self.failure: ProtocolAbort | None = None  # that waits for records under way
        self.fixed_point = False
        self._closed_by_peer = False
        self._cursor_updated = False

    def finish(self, epoch: Epoch | None, *, by_peer: bool = False) -> None:
        """Close in peace."""
        self._closed_by_peer = by_peer
        if epoch is not None and self.fixed_point:
            self._cursor_updated |= epoch.save_claims()
        self._core.enter(Move.CLOSE)
        self._core.report(Closed(""))
        self._core.emit(Finish(self.result(epoch)))

    def fail(self, failure: ProtocolAbort, epoch: Epoch | None) -> None:
        """Abort, now or when records under way have been answered."""
        if self._core.storing and failure.reason is not AbortReason.LOCAL_FAILURE:
            self.failure = self.failure or failure.with_traceback(None)  # its frames would hold the machine
            return
        self._core.enter(Move.CLOSE)
        self._core.ledger.limit_reached = self._core.ledger.limit_reached or failure.limit
        self._core.report(Closed(str(failure)))
        self._core.emit(Abort(failure.reason, failure.detail, self.result(epoch)))

    def _both_hold_nothing(self, epoch: Epoch | None) -> bool:
        """Two laces that hold nothing are equal, which is another end than that nothing was shown (070-CAP-05)."""
        moved = self._core.ledger.received or self._core.ledger.sent
        return epoch is not None and self._core.config.is_empty and epoch.agreement.peer_holds_nothing and not moved

    def result(self, epoch: Epoch | None) -> InterlaceResult:
        """What this side has to report now."""
        ledger = self._core.ledger
        agreement = epoch.agreement if epoch is not None else None
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
            unconfirmed_hashes=tuple(ledger.unconfirmed),
            refused_hashes=dict(ledger.refused),
            held_back=dict(self._core.refusals.held_back.counts),
            held_back_by_peer=self._core.refusals.held_back_by_peer,
            fixed_point=self.fixed_point,
            loops=ledger.loops,
            advertised_to_peer=epoch.own.count if epoch else 0,
            advertised_by_peer=epoch.claims if epoch else 0,
            both_hold_nothing=self._both_hold_nothing(epoch),
            epochs=epoch.number if epoch else 0,
            limit_reached=ledger.limit_reached,
            closed_by_peer=self._closed_by_peer,
            store_mark=epoch.found.store_mark if epoch else 0,
        )
