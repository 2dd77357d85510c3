"""The pulse of an event loop: how long it was ever kept from what it should have done.

Rule: it measures and changes nothing. Three readings: the time on the wall, which a busy machine stretches; the same
less the time that the loop's thread waited for a processor, which is what we did to ourselves; and the processor time
of the thread, which only work on the loop can use up.

An idle loop beats seldom, so code that gives it work says so: otherwise all that was done in many turns until the next
beat would look like one stall.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import field

from lace.runtime.loopevents import set_within
from lace.values import dataclass

INTERVAL_S = 0.025  # of an idle loop, which more beats would cost more
QUICK_S = 0.005  # of a loop at work: what it did in several turns between two beats is not to count as one stall
_AT_WORK = 0.2  # of the time
_SCHEDULED = "/proc/thread-self/schedstat"  # Linux: nanoseconds on a processor, and waiting for one
_SCHEDULED_BYTES = 128  # three numbers


@dataclass(slots=True)
class Pulse:
    """The longest stalls since `reset`, in seconds."""

    interval_s: float = INTERVAL_S
    stall_s: float = 0.0  # later than due, by the wall
    own_s: float = 0.0  # of that, what no other program of the machine made
    busy_s: float = 0.0  # processor time between two beats
    _woken: asyncio.Event = field(default_factory=asyncio.Event)

    def wake(self) -> None:
        """Work begins: beat now, and quickly from here on."""
        self._woken.set()

    def reset(self) -> None:
        """Forget what was."""
        self.stall_s = self.own_s = self.busy_s = 0.0

    async def beat(self, monotonic_ns: Callable[[], int]) -> None:
        """Measure until cancelled."""
        interval_s = self.interval_s
        due = monotonic_ns() + int(interval_s * 1e9)
        with contextlib.closing(_Scheduled()) as scheduled:
            busy, waited = time.thread_time(), scheduled.waited_ns()
            while True:
                if interval_s > QUICK_S:
                    await set_within(self._woken, interval_s)
                else:
                    await asyncio.sleep(interval_s)
                now, used, since = monotonic_ns(), time.thread_time(), scheduled.waited_ns()
                self.stall_s = max(self.stall_s, (now - due) / 1e9)
                self.own_s = max(self.own_s, (now - due - (since - waited)) / 1e9)
                self.busy_s = max(self.busy_s, used - busy)
                is_at_work = self._woken.is_set() or used - busy > _AT_WORK * interval_s
                self._woken.clear()
                interval_s = min(self.interval_s, QUICK_S) if is_at_work else self.interval_s
                due, busy, waited = now + int(interval_s * 1e9), used, since


class _Scheduled:
    """The system's figures on the calling thread; opened once, because a busy loop asks 200 times a second."""

    def __init__(self) -> None:
        try:
            self._file = os.open(_SCHEDULED, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._file = -1

    def waited_ns(self) -> int:
        """For how long the thread could have run and had no processor; 0 where nobody tells."""
        try:
            return int(os.pread(self._file, _SCHEDULED_BYTES, 0).split()[1])
        except (OSError, ValueError, IndexError):
            return 0

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
