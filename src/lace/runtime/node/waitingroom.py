"""Where connections wait for a place among the links of a node, for a moment.

Rule: the peer with the fewest links goes first, and among equals the one that came first; few of each network may wait,
and few in all. Without it a place that becomes free would go to the peer that dials most often: an attacker.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import field

from lace.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingLimits:
    """How many may wait, and for how long."""

    max_waiting: int = 128
    max_waiting_per_peer: int = 96  # by proven verifier, else by network prefix
    patience_s: float = 3.0
    look_s: float = 0.05


@dataclass(eq=False, slots=True)
class _Waiting:
    peer: str
    takes_place: Callable[[], bool]
    links: Callable[[], int]
    is_left: Callable[[], bool]
    found: asyncio.Future[bool] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class WaitingRoom:
    """Connections that wait."""

    def __init__(self, limits: WaitingLimits | None = None) -> None:
        self._limits = limits or WaitingLimits()
        self._waiting: list[_Waiting] = []
        self._of_peer: Counter[str] = Counter()  # of them: a newcomer is not to be compared with each of a crowd
        self._looking: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    async def wait(
        self,
        peer: str,
        takes_place: Callable[[], bool],
        links: Callable[[], int],
        is_left: Callable[[], bool] = lambda: False,
    ) -> bool:
        """Whether a place was found in time; `takes_place` tries to take one, `links` says how many the peer has,
        `is_left` whether it is gone: then nothing is begun for it."""
        limits = self._limits
        of_peer = self._of_peer[peer]
        if of_peer >= limits.max_waiting_per_peer:
            return False
        if len(self._waiting) >= limits.max_waiting and not self._send_away(of_peer + 1):
            return False
        own = _Waiting(peer, takes_place, links, is_left)
        self._waiting.append(own)
        self._of_peer[peer] += 1
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())
        try:
            async with asyncio.timeout(limits.patience_s):
                return await own.found
        except TimeoutError:
            return False
        finally:
            if own in self._waiting:
                self._leave(own)

    def has_room_for(self, peer: str) -> bool:
        """Whether one more of this peer may wait."""
        limits, own = self._limits, self._of_peer[peer]
        if own >= limits.max_waiting_per_peer:
            return False
        return len(self._waiting) < limits.max_waiting or max(self._of_peer.values()) > own + 1

    def is_passed_by(self, proven: str | None) -> bool:
        """Whether a newcomer may try at once: nobody waits, or it proved itself and has places kept for it."""
        return proven is not None or not self._waiting

    def _leave(self, waiting: _Waiting) -> None:
        self._waiting.remove(waiting)
        self._of_peer[waiting.peer] -= 1
        if not self._of_peer[waiting.peer]:
            del self._of_peer[waiting.peer]

    def _send_away(self, more_than: int) -> bool:
        """Have the last that waits of the largest crowd leave, if it is larger than this; whether one did."""
        crowd, peer = max((count, peer) for peer, count in self._of_peer.items())
        if crowd <= more_than:
            return False
        last = next(other for other in reversed(self._waiting) if other.peer == peer)
        self._leave(last)
        last.found.set_result(False)
        return True

    def _next(self) -> _Waiting:
        firsts: dict[str, _Waiting] = {}  # of each peer, in the order in which they came
        for waiting in self._waiting:
            firsts.setdefault(waiting.peer, waiting)
        return min(firsts.values(), key=lambda first: first.links())

    async def _look(self) -> None:
        """While anybody waits: one place after the other, each to the peer that is next."""
        while self._waiting:
            first = self._next()
            if first.found.done():  # it was cancelled a moment ago
                self._leave(first)
            elif (is_left := first.is_left()) or first.takes_place():
                self._leave(first)
                first.found.set_result(not is_left)
                await asyncio.sleep(0)  # one begins, or is told that it is late, in every round of the loop
            else:
                await asyncio.sleep(self._limits.look_s)
        self._looking = None
