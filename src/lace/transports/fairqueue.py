"""Who is next: the account that used least (start-time fair queueing).

Rule: a peer waits for what the others are at, never for what they have queued up. Work is counted in processor seconds
by account, which outlives a link: a peer that hangs up and comes back has still used what it used. An account
that is new or was idle begins level with the least of those at work, so that nobody saves up turns and nobody starts
behind.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import partial
from heapq import nlargest
from operator import itemgetter
from typing import Generic, TypeVar

T = TypeVar("T")
LOOKS = 2  # of the event loop, before the next round of those who take turns
MAX_REMEMBERED = 4096  # accounts, those that wait aside


class FairQueue(Generic[T]):
    """What waits, by account; callers that share it between threads lock it."""

    def __init__(self, max_remembered: int = MAX_REMEMBERED) -> None:
        self._max_remembered = max_remembered
        self._waiting: dict[Hashable, deque[T]] = {}  # in the order in which accounts began to wait
        self._used: dict[Hashable, float] = {}  # processor seconds, of those that are ahead of the level
        self._level = 0.0  # the least that an account at work had used when it was last looked

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def __iter__(self) -> Iterator[tuple[Hashable, T]]:
        """All that waits, with whom it waits for."""
        return ((account, item) for account, queue in self._waiting.items() for item in queue)

    @property
    def remembered(self) -> int:
        """Of how many accounts it is known what they used."""
        return len(self._used)

    def put(self, account: Hashable, item: T) -> None:
        """Something waits for its turn."""
        self._used[account] = max(self._used.get(account, 0.0), self._level)
        self._waiting.setdefault(account, deque()).append(item)

    def pass_by(self, account: Hashable) -> None:
        """It is served without having waited, for nobody waits: later arrivals begin level with it. What it used
        while nobody else wanted anything is not held against it."""
        self._level = self._used[account] = max(self._used.get(account, 0.0), self._level)

    def first(self) -> T:
        """What is next, and stays where it is."""
        return self._waiting[self._next(self._waiting)][0]

    def take(self, may: Callable[[Hashable], bool] | None = None) -> tuple[Hashable, T] | None:
        """What is next of those that may; None if nobody that may be served waits."""
        waiting = self._waiting if may is None else [account for account in self._waiting if may(account)]
        if not waiting:
            return None
        account = self._next(waiting)
        self._level = self._used[account]
        queue = self._waiting.pop(account)
        item = queue.popleft()
        if queue:
            self._waiting[account] = queue  # behind those that wait with as little
        return account, item

    def _next(self, waiting: Iterable[Hashable]) -> Hashable:
        return min(waiting, key=self._used.__getitem__)  # the first that came among equals

    def withdraw(self, account: Hashable, item: T) -> None:
        """It does not wait any more; it may have been taken."""
        queue = self._waiting.get(account)
        if queue is not None and item in queue:
            queue.remove(item)
            if not queue:
                del self._waiting[account]

    def make_room(self, account: Hashable) -> T | None:
        """Take out the newest item of the account with most waiting. None if that is as few as this account
        would have with one more."""
        crowd = max(self._waiting, key=lambda one: len(self._waiting[one]), default=None)
        if crowd is None or len(self._waiting[crowd]) <= len(self._waiting.get(account, ())) + 1:
            return None
        item = self._waiting[crowd][-1]
        self.withdraw(crowd, item)
        return item

    def charge(self, account: Hashable, cpu_s: float) -> None:
        """Work was done for an account."""
        self._used[account] = max(self._used.get(account, 0.0), self._level) + cpu_s
        if len(self._used) - len(self._waiting) > self._max_remembered:
            self._forget()

    def _forget(self) -> None:
        """The account that used least is forgotten: it gains little by starting level."""
        idle = ((one, used) for one, used in self._used.items() if one not in self._waiting)
        kept = dict(nlargest(self._max_remembered // 2, idle, key=itemgetter(1)))
        self._used = {one: self._used[one] for one in self._waiting} | kept

    def drain(self) -> list[T]:
        """All that waits, which waits no longer."""
        found = [item for queue in self._waiting.values() for item in queue]
        self._waiting.clear()
        return found


def after_others(begin: Callable[[], None], looks: int = LOOKS) -> None:
    """Begin the next round of turns once the loop has done all that is ready, so many times.

    A round comes last. Waking a peer that was served, reading from it and accepting it each take one look of the loop;
    a round between them would make each step of an exchange wait for one more.
    """
    then = partial(after_others, begin, looks - 1) if looks else begin
    asyncio.get_running_loop().call_soon(then)
