"""Threads that links share, and doors that few may pass at a time, where the account that used least is next.

Rule: see `transports.fairqueue`. Work cannot be taken away from a thread, so one thread is kept for those whose work is
known to be short, and what is known to be long has few threads at a time: it is Python, so that more of them are no
faster, and whoever else has something to do, the event loop first, waits for each of them in turn. Work that is long
by its nature goes by that name (`is_long`) and says nothing about the other work of its account.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from enum import IntEnum
from functools import partial
from time import thread_time
from typing import Any, NamedTuple, ParamSpec, TypeVar

from lace.transports.fairqueue import MAX_REMEMBERED, FairQueue
from lace.workers.lending import STOCK, ThreadStock

P = ParamSpec("P")
T = TypeVar("T")
LONG_S = 0.01  # of processor time: what those who do not wait for it notice
_SHORT_AGAIN = 16  # pieces of short work in a row after which an account is trusted again
_Work = tuple["Future[Any]", Callable[[], Any]]


class Pace(IntEnum):
    """What is known of the work of an account."""

    SHORT = 0
    UNKNOWN = 1
    LONG = 2


class LongWork(NamedTuple):
    """The work of an account that is known to be long before it is done."""

    account: Hashable


class FairThreads:
    """Up to a number of threads, borrowed while there is work; what `ours` have done counts as short."""

    def __init__(
        self,
        count: int,
        name: str,
        *,
        most_long: int | None = None,
        ours: Collection[Hashable] = (),
        stock: ThreadStock = STOCK,
    ) -> None:
        self._count = count
        self._name = name
        self._stock = stock
        self._most_long = count if most_long is None else most_long
        self._ours = frozenset(ours)
        self._waiting: FairQueue[_Work] = FairQueue()
        self._lock = threading.Lock()
        self.at_work: int = 0  # threads
        self._is_over = False
        self._owed: OrderedDict[Hashable, int] = OrderedDict()  # by account: short work until it counts as short
        self._at: Counter[Pace] = Counter()  # pieces of work under way

    def of(self, account: Hashable, *, is_long: bool = False) -> LinkThreads:
        """The executor of one account; `is_long` if all that it is given takes long, whatever the account does else."""
        return LinkThreads(self, LongWork(account) if is_long else account)

    def submit(self, account: Hashable, work: Callable[[], T]) -> Future[T]:
        """Have something done for an account."""
        future: Future[T] = Future()
        with self._lock:
            if self._is_over:
                raise RuntimeError("the threads have ended")
            self._waiting.put(account, (future, work))
            self._borrow()
        return future

    def _borrow(self) -> None:
        """One more thread, if there may be one."""
        if self.at_work < self._count:
            self.at_work += 1
            self._stock.lend(self._name, self._run)

    def _run(self) -> None:
        while (taken := self._take()) is not None:
            account, pace, (future, work) = taken
            started = thread_time()
            tell: Callable[[], None] | None = None
            if future.set_running_or_notify_cancel():
                try:
                    tell = partial(future.set_result, work())
                except BaseException as error:  # noqa: BLE001 - it belongs to the caller that waits for the future
                    tell = partial(future.set_exception, error)
            self._give_back(account, pace, thread_time() - started)
            if tell is not None:
                tell()  # only now that it is counted: the caller may ask for the next thing at once
            del taken, future, work, tell

    def _take(self) -> tuple[Hashable, Pace, _Work] | None:
        with self._lock:
            if (taken := self._waiting.take(self._may)) is None:
                self.at_work -= 1  # what may not be taken now is looked at again when other work ends
                return None
            account, work = taken
            pace = self.pace(account)
            self._at[pace] += 1
            return account, pace, work

    def pace(self, account: Hashable) -> Pace:
        if isinstance(account, LongWork):
            return Pace.LONG
        owed = 0 if account in self._ours else self._owed.get(account)
        return Pace.UNKNOWN if owed is None else Pace.LONG if owed else Pace.SHORT

    def _may(self, account: Hashable) -> bool:
        pace = self.pace(account)
        if pace is Pace.SHORT or self._count == 1:
            return True
        is_last = self._at[Pace.UNKNOWN] + self._at[Pace.LONG] >= self._count - 1
        return not is_last and (pace is Pace.UNKNOWN or self._at[Pace.LONG] < self._most_long)

    def _give_back(self, account: Hashable, pace: Pace, cpu_s: float) -> None:
        with self._lock:
            self._at[pace] -= 1
            self._waiting.charge(account, cpu_s)
            if not isinstance(account, LongWork):
                owed = self._owed.pop(account, 1)
                self._owed[account] = _SHORT_AGAIN if cpu_s > LONG_S else max(0, owed - 1)
                if len(self._owed) > MAX_REMEMBERED:
                    self._owed.popitem(last=False)
            if pace is not Pace.SHORT and len(self._waiting) > 1:
                self._borrow()  # this thread takes one of them; another may have a place now too

    def shutdown(self) -> None:
        """Give up what waits; what is at work goes on to its end."""
        with self._lock:
            self._is_over = True
            for future, _ in self._waiting.drain():
                future.cancel()


class LinkThreads(Executor):
    """Shared threads as one account sees them."""

    def __init__(self, threads: FairThreads, account: Hashable) -> None:
        self._threads = threads
        self._account = account

    def submit(self, work: Callable[P, T], /, *arguments: P.args, **named: P.kwargs) -> Future[T]:
        """Have something done."""
        return self._threads.submit(self._account, lambda: work(*arguments, **named))


class FairDoor:
    """A few may be inside at a time, each in its own thread; next is the account that used least inside.

    Only this one is woken: a hundred that wake, look and wait again cost more than the work most of them wait for.
    """

    def __init__(self, places: int, clock: Callable[[], float] = thread_time, *, look_s: float = 0.02) -> None:
        self._places = places
        self._look_s = look_s  # how often a thread that waits checks whether its call was cancelled
        self._clock = clock  # of the work inside: another one than the thread's where that only waits for it
        self._lock = threading.Lock()
        self._waiting: FairQueue[threading.Condition] = FairQueue()

    @property
    def waiting(self) -> int:
        """How many wait for a turn."""
        return len(self._waiting)

    @contextmanager
    def inside(self, account: Hashable, check: Callable[[], None]) -> Iterator[None]:
        """A turn; `check` is asked now and then while it is waited for, and raises if nobody wants it any more."""
        self._enter(account, check)
        started = self._clock()
        try:
            yield
        finally:
            with self._lock:
                self._places += 1
                self._waiting.charge(account, self._clock() - started)
                self._call_next()

    def _enter(self, account: Hashable, check: Callable[[], None]) -> None:
        me = threading.Condition(self._lock)
        with self._lock:
            self._waiting.put(account, me)
            try:
                while not (self._places and self._waiting.first() is me):
                    check()
                    me.wait(self._look_s)
                self._waiting.take()
                self._places -= 1
            except BaseException:
                self._waiting.withdraw(account, me)
                raise
            finally:
                self._call_next()  # there may be a place for another one too

    def _call_next(self) -> None:
        if self._places and self._waiting:
            self._waiting.first().notify()
