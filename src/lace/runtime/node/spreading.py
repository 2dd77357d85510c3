"""News of the store, told to all links (050-OPEN-03): what several of them share is brought up to date first, once.

Rule: a link waits for its own rules and for nobody else's. What is done for several links all of them pay. News that
come while a set is being followed wait together: however fast records come, there is one more turn for all of them.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection, Coroutine
from concurrent.futures import Executor

from lace.errors import LaceError
from lace.interlace.host import Call, Shared
from lace.interlace.inputs import LocalChanged
from lace.runtime.link.drive import Driver


class Spreading:
    """Tells links that the store has changed."""

    def __init__(self, threads: Executor, spawn: Callable[[Coroutine[None, None, None]], object]) -> None:
        self._threads = threads  # that wait for their turn to evaluate
        self._spawn = spawn
        self._waiting: dict[int, Collection[Driver]] = {}  # for another turn, by what is being followed now

    def tell(self, drivers: Collection[Driver]) -> None:
        """Immediately if a link shares nothing or its shared set is current; else once the set is."""
        groups: dict[int, tuple[Shared, list[Driver]]] = {}
        for driver in drivers:
            shared = driver.host.shared if driver.host.answers_now else None
            if shared is None or shared.is_current:
                driver.tell(LocalChanged())
            else:
                groups.setdefault(id(shared), (shared, []))[1].append(driver)
        for shared, sharing in groups.values():
            if id(shared) in self._waiting:
                self._waiting[id(shared)] = sharing
            else:
                self._waiting[id(shared)] = ()
                self._spawn(self._tell_all(shared, sharing))

    async def _tell_all(self, shared: Shared, drivers: Collection[Driver]) -> None:
        try:
            while drivers:
                await asyncio.get_running_loop().run_in_executor(self._threads, _refresh, shared, _ForLinks(drivers))
                for driver in drivers:
                    driver.tell(LocalChanged())
                drivers, self._waiting[id(shared)] = self._waiting[id(shared)], ()
        finally:
            del self._waiting[id(shared)]


class _ForLinks(Call):
    """A call on behalf of some links: given up when all of them have ended."""

    __slots__ = ("_drivers",)

    def __init__(self, drivers: Collection[Driver]) -> None:
        super().__init__()
        self._drivers = drivers

    @property
    def is_cancelled(self) -> bool:
        return all(driver.over.is_set() for driver in self._drivers)


def _refresh(shared: Shared, call: Call) -> None:
    """What goes wrong each link finds out for itself."""
    with contextlib.suppress(LaceError):
        shared.refresh(call)
