"""The clock of records and exchanges.

Rule: whatever becomes a fact, a record or a decision of an exchange takes its time from a Clock handed in. Log lines,
commits of an archive and certificates are stamped where they are written; durations that are only waited for or shown
may count seconds by themselves.
"""

from __future__ import annotations

import time
from typing import Protocol

from lace.notation.tai import TAI
from lace.values import dataclass


class Clock(Protocol):
    """Two readings: the instant, for records, and a count that never goes back, for timers."""

    def tai(self) -> TAI:
        """The instant now."""

    def monotonic_ns(self) -> int:
        """Nanoseconds since some fixed moment."""


@dataclass(frozen=True, slots=True)
class SystemClock:
    """The machine's own clocks."""

    def tai(self) -> TAI:
        return TAI.of_unix_ns(time.time_ns())

    def monotonic_ns(self) -> int:
        return time.monotonic_ns()


class SteadyTai:
    """TAI nanoseconds that never go back: the instant of the start, and the monotonic clock since."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._start_tai_ns = clock.tai().to_ns()
        self._start_ns = clock.monotonic_ns()

    @property
    def now_ns(self) -> int:
        return self._start_tai_ns + self._clock.monotonic_ns() - self._start_ns
