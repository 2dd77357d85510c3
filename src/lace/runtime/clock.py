"""The clock: the one place in Lace that asks what time it is.

Rule: everything else takes time as an argument, or a Clock handed in.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Protocol

from lace.notation.tai import TAI


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
