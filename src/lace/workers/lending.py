"""Threads that a process lends to whoever has work, and keeps for the next one.

Rule: lending never waits and never refuses; how many of its own pieces of work run at a time is bounded by whoever
borrows. A thread that nobody needs is kept for a while, few in all: ten nodes at rest have as many as one.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
MAX_IDLE = 8
IDLE_S = 30.0


class ThreadStock:
    """Threads that wait for the next work of anybody."""

    def __init__(self, max_idle: int = MAX_IDLE, idle_s: float = IDLE_S) -> None:
        self._max_idle = max_idle
        self._idle_s = idle_s
        self._begin()

    def _begin(self) -> None:
        self._changed = threading.Condition()
        self._work: deque[tuple[str, Callable[[], None]]] = deque()
        self._idle = 0  # threads that wait, or were woken and have not looked yet

    def forget(self) -> None:
        """Begin anew in a process that was forked: no thread came along."""
        self._begin()

    @property
    def idle(self) -> int:
        """Threads that nobody has borrowed."""
        return self._idle

    def lend(self, name: str, work: Callable[[], None]) -> None:
        """Have a thread do something, under a name; what it raises ends that thread, as it would any other."""
        with self._changed:
            self._work.append((name, work))
            if len(self._work) <= self._idle:
                self._changed.notify()
                return
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def _run(self) -> None:
        while (taken := self._take()) is not None:
            threading.current_thread().name, work = taken
            work()
            del taken, work  # an idle thread keeps nothing alive

    def _take(self) -> tuple[str, Callable[[], None]] | None:
        with self._changed:
            if not self._work:
                if self._idle >= self._max_idle:
                    return None
                threading.current_thread().name = "lace-idle"
                self._idle += 1
                self._changed.wait_for(lambda: self._work, self._idle_s)
                self._idle -= 1
            return self._work.popleft() if self._work else None


STOCK = ThreadStock()
"""Of this process; whoever borrows may be given another one."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=STOCK.forget)


class BorrowedThreads(Executor):
    """Up to so many pieces of work at a time, in the order they came, each in a thread that is borrowed for it."""

    def __init__(self, most: int, name: str, stock: ThreadStock = STOCK) -> None:
        self._most = most
        self._name = name
        self._stock = stock
        self._lock = threading.Lock()
        self._waiting: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self.at_work: int = 0
        self._is_over = False

    def submit(self, work: Callable[P, T], /, *arguments: P.args, **named: P.kwargs) -> Future[T]:
        """Have something done."""
        future: Future[T] = Future()
        with self._lock:
            if self._is_over:
                raise RuntimeError("the threads have ended")
            self._waiting.append((future, partial(work, *arguments, **named)))
            if self.at_work >= self._most:
                return future
            self.at_work += 1
        self._stock.lend(self._name, self._run)
        return future

    def _run(self) -> None:
        while (taken := self._next()) is not None:
            future, work = taken
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(work())
                except BaseException as error:  # noqa: BLE001 - it belongs to whoever waits for the future
                    future.set_exception(error)
            del taken, future, work

    def _next(self) -> tuple[Future[Any], Callable[[], Any]] | None:
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            self.at_work -= 1
            return None

    def shutdown(self, wait: bool = False, *, cancel_futures: bool = True) -> None:
        """Give up what waits; what is at work goes on to its end. Nobody is waited for: `at_work` tells."""
        with self._lock:
            self._is_over = True
            given_up = list(self._waiting) if cancel_futures else []
            if cancel_futures:
                self._waiting.clear()
        for future, _ in given_up:
            future.cancel()
