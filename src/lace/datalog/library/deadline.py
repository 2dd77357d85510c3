"""When to give up: a time that is left, and somebody's word (P36).

Rule: the only clock of this package; it never changes an answer, only whether there is one.
"""

from __future__ import annotations

import time

from lace.datalog.meter import Interrupt, never
from lace.errors import InvalidInput


def until(deadline_s: float | None, interrupt: Interrupt | None = None) -> Interrupt:
    """An interrupt that says yes once so many seconds have passed from now, or once the other one does."""
    if deadline_s is None:
        return interrupt or never
    if deadline_s < 0:
        raise InvalidInput(f"deadline_s is {deadline_s}: give seconds from now, 0 or more", rule="deadline")
    ends, asked = time.monotonic() + deadline_s, interrupt or never
    return lambda: time.monotonic() >= ends or asked()
