"""The pulse of an event loop: how long it was ever kept from what it should have done.

Rule: it measures and changes nothing. Two readings: the time on the wall, which a busy machine stretches, and the
processor time of the loop's own thread, which only work on the loop can use up.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

INTERVAL_S = 0.025  # a stall shows in full whenever it began; more beats would only cost an idle node more


@dataclass(slots=True)
class Pulse:
    """The longest stalls since `reset`, in seconds."""

    interval_s: float = INTERVAL_S
    stall_s: float = 0.0  # later than due, by the wall
    busy_s: float = 0.0  # processor time between two beats

    def reset(self) -> None:
        """Forget what was."""
        self.stall_s = self.busy_s = 0.0

    async def beat(self, monotonic_ns: Callable[[], int]) -> None:
        """Measure until cancelled."""
        due = monotonic_ns() + int(self.interval_s * 1e9)
        busy = time.thread_time()
        while True:
            await asyncio.sleep(self.interval_s)
            now, used = monotonic_ns(), time.thread_time()
            self.stall_s = max(self.stall_s, (now - due) / 1e9)
            self.busy_s = max(self.busy_s, used - busy)
            due, busy = now + int(self.interval_s * 1e9), used
