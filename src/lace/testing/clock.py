"""A clock that stands until a test moves it."""

from __future__ import annotations

from lace.limits import SECOND_NS
from lace.notation.tai import TAI


class MovableClock:
    """A `lace.Clock` for `lace.open(clock=…)` and nodes; it begins at 2026-01-01 unless told otherwise."""

    def __init__(self, unix_s: float = 1_767_225_600.0) -> None:
        self._unix_ns = int(unix_s * SECOND_NS)
        self._count_ns = 0

    def tai(self) -> TAI:
        """The instant that the test set."""
        return TAI.of_unix_ns(self._unix_ns)

    def monotonic_ns(self) -> int:
        """How far the clock was moved since it was made."""
        return self._count_ns

    def move(self, seconds: float) -> None:
        """Let time pass."""
        if seconds < 0:
            raise ValueError("time passes forward; make another clock for an earlier time")
        self._unix_ns += int(seconds * SECOND_NS)
        self._count_ns += int(seconds * SECOND_NS)
