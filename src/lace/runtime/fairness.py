"""Threads that links share, and doors that few may pass at a time, with a turn for whoever used least.

Rule: see `transports.fairqueue`. Work cannot be taken away from a thread, so one thread is kept for those whose last
work was short.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from time import thread_time
from typing import Any, ParamSpec, TypeVar

from lace.transports.fairqueue import MAX_REMEMBERED, FairQueue

P = ParamSpec("P")
T = TypeVar("T")
LONG_S = 0.05  # of processor time: what those who do not wait for it notice
_LOOK_S = 0.02  # how often whoever waits at a door looks whether that is still wanted
_Work = tuple["Future[Any]", Callable[[], Any]]


class FairThreads:
    """A fixed number of threads, started when they are needed."""

    def __init__(self, count: int, name: str) -> None:
        self._count = count
        self._name = name
        self._waiting: FairQueue[_Work] = FairQueue()
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._is_over = False
        self._costly: OrderedDict[Hashable, None] = OrderedDict()  # accounts whose last work was long
        self._at_long = 0  # threads that work for one of them

    @property
    def threads(self) -> list[threading.Thread]:
        """Those that were started."""
        return list(self._threads)

    def of(self, account: Hashable) -> LinkThreads:
        """The executor of one account."""
        return LinkThreads(self, account)

    def submit(self, account: Hashable, work: Callable[[], T]) -> Future[T]:
        """Have something done for an account."""
        future: Future[T] = Future()
        with self._changed:
            if self._is_over:
                raise RuntimeError("the threads have ended")
            self._waiting.put(account, (future, work))
            if self._idle:
                self._changed.notify()
            elif len(self._threads) < self._count:
                self._start()
        return future

    def _start(self) -> None:
        thread = threading.Thread(target=self._run, name=f"{self._name}_{len(self._threads)}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _run(self) -> None:
        while (taken := self._take()) is not None:
            account, is_long, (future, work) = taken
            started = thread_time()
            if future.set_running_or_notify_cancel():
                try:
                    result = work()
                except BaseException as error:  # noqa: BLE001 - it belongs to whoever waits for the future
                    future.set_exception(error)
                else:
                    future.set_result(result)
                    del result
            self._give_back(account, is_long, thread_time() - started)
            del taken, future, work

    def _take(self) -> tuple[Hashable, bool, _Work] | None:
        with self._changed:
            while True:
                is_last = 0 < self._count - 1 <= self._at_long
                if (taken := self._waiting.take(self._is_short if is_last else None)) is not None:
                    account, work = taken
                    is_long = not self._is_short(account)
                    self._at_long += is_long
                    return account, is_long, work
                if self._is_over:
                    return None
                self._idle += 1
                self._changed.wait()
                self._idle -= 1

    def _is_short(self, account: Hashable) -> bool:
        return account not in self._costly

    def _give_back(self, account: Hashable, is_long: bool, cpu_s: float) -> None:
        with self._changed:
            self._at_long -= is_long
            self._waiting.charge(account, cpu_s)
            self._costly.pop(account, None)
            if cpu_s > LONG_S:
                self._costly[account] = None
                if len(self._costly) > MAX_REMEMBERED:
                    self._costly.popitem(last=False)
            if is_long and self._waiting:
                self._changed.notify()  # who was passed over may have the place now

    def shutdown(self) -> None:
        """Give up what waits; threads end when they are done with what they are at."""
        with self._changed:
            self._is_over = True
            for future, _ in self._waiting.drain():
                future.cancel()
            self._changed.notify_all()


class LinkThreads(Executor):
    """Shared threads as one account sees them."""

    def __init__(self, threads: FairThreads, account: Hashable) -> None:
        self._threads = threads
        self._account = account

    def submit(self, work: Callable[P, T], /, *arguments: P.args, **named: P.kwargs) -> Future[T]:
        """Have something done."""
        return self._threads.submit(self._account, lambda: work(*arguments, **named))


class FairDoor:
    """A few may be inside at a time, each in its own thread; whoever used least inside is next."""

    def __init__(self, places: int) -> None:
        self._places = places
        self._changed = threading.Condition()
        self._waiting: FairQueue[object] = FairQueue()

    @contextmanager
    def inside(self, account: Hashable, check: Callable[[], None]) -> Iterator[None]:
        """A turn; `check` is asked now and then while it is waited for, and raises if nobody wants it any more."""
        self._enter(account, check)
        started = thread_time()
        try:
            yield
        finally:
            with self._changed:
                self._places += 1
                self._waiting.charge(account, thread_time() - started)
                self._changed.notify_all()

    def _enter(self, account: Hashable, check: Callable[[], None]) -> None:
        me = object()
        with self._changed:
            self._waiting.put(account, me)
            try:
                while not (self._places and self._waiting.first() is me):
                    check()
                    self._changed.wait(_LOOK_S)
            except BaseException:
                self._waiting.withdraw(account, me)
                self._changed.notify_all()
                raise
            self._waiting.take()
            self._places -= 1
            self._changed.notify_all()  # there may be a place for the next one too
