"""Shared time (050, ticking): what each side's clock has reached, and the smaller of the two.

Rule: `TickTAI` is a function of what both sides announced, so both have the same at the same phase boundary.
"""

from __future__ import annotations

from lace.errors import InvalidText
from lace.interlace.reasons import AbortReason, ProtocolAbort
from lace.notation.tai import TAI


class TickState:
    """Readiness of both sides since the last hello (050-TICK-02)."""

    def __init__(self, start: TAI, interval_ns: int) -> None:
        self.start = start
        self.interval_ns = interval_ns
        self.local_ready: TAI = start
        self.peer_ready: TAI = start

    @property
    def tick(self) -> TAI:
        """TickTAI (050-TICK-11); it never decreases because neither readiness does (050-TICK-12)."""
        return min(self.local_ready, self.peer_ready)

    def next_due_ns(self) -> int:
        """When our clock reaches the next aligned tick."""
        return self.local_ready.to_ns() + self.interval_ns

    def reached(self, now_ns: int) -> TAI | None:
        """The newest aligned tick our clock has reached, if it was not announced yet (050-TICK-16)."""
        elapsed = now_ns - self.start.to_ns()
        if elapsed < self.interval_ns:
            return None
        aligned = self.start.plus_ns(elapsed // self.interval_ns * self.interval_ns)
        return aligned if aligned > self.local_ready else None

    def announce(self, tai: TAI) -> None:
        """We sent TickReady(tai)."""
        self.local_ready = max(self.local_ready, tai)

    def hear(self, text: str) -> None:
        """The peer sent TickReady: ill-formed text aborts, a value that is not valid is ignored (050-TICK-09, P19)."""
        try:
            tai = TAI.parse(text)
        except InvalidText as error:
            raise ProtocolAbort(AbortReason.MALFORMED_FACT_BLOCK, f"TickReady: {error}", "050-TICK-08") from None
        if (tai.to_ns() - self.start.to_ns()) % self.interval_ns == 0:  # 050-TICK-07
            self.peer_ready = max(self.peer_ready, tai)  # 050-TICK-05, 050-TICK-06
