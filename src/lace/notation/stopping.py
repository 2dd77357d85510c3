"""When a call gives up: a time that is left, and the caller's word.

Rule: every call that may take long takes `deadline_s` and `interrupt`. Work asks between its steps; the answer never
changes what a step does, only whether there is another one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from lace.errors import CallStopped, InvalidInput

Interrupt = Callable[[], bool]
Item = TypeVar("Item")


def never() -> bool:
    """The interrupt of work that nobody stops."""
    return False


def until(deadline_s: float | None, interrupt: Interrupt | None = None) -> Interrupt:
    """An interrupt that says yes once so many seconds have passed from now, or once the other one does."""
    if deadline_s is None:
        return interrupt or never
    if deadline_s < 0:
        raise InvalidInput(f"deadline_s is {deadline_s}: give seconds from now, 0 or more", rule="deadline")
    ends, asked = time.monotonic() + deadline_s, interrupt or never
    return lambda: time.monotonic() >= ends or asked()


def go_on(stop: Interrupt, doing: str) -> None:
    """CallStopped once an interrupt says yes; `doing` completes "stopped from outside while"."""
    if stop():
        raise CallStopped(f"stopped from outside while {doing}")


def asking(items: Iterable[Item], stop: Interrupt, doing: str) -> Iterator[Item]:
    """The same items, with the question whether to go on before each."""
    for item in items:
        go_on(stop, doing)
        yield item


def between_steps(stop: Interrupt, doing: str, progress: Callable[..., object] | None = None) -> Callable[..., None]:
    """A progress callback that tells the caller's own one, and then asks whether to go on."""

    def step(*done: Any) -> None:
        if progress is not None:
            progress(*done)
        go_on(stop, doing)

    return step
