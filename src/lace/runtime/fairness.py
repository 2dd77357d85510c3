"""Threads that links share, with a turn for whoever used least (start-time fair queueing).

Rule: a link waits for what the others are at, never for what they have queued up. Work is counted in processor seconds
of the thread that did it; a link that comes or was idle begins level with the least of those at work, so that nobody
saves up turns and nobody starts behind.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from time import thread_time
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
MAX_REMEMBERED = 4096  # links, those that wait aside
_Work = tuple["Future[Any]", Callable[[], Any]]


class FairThreads:
    """A fixed number of threads, started when they are needed."""

    def __init__(self, count: int, name: str) -> None:
        self._count = count
        self._name = name
        self._waiting: dict[int, deque[_Work]] = {}  # by link, in the order in which links began to wait
        self._used: dict[int, float] = {}  # processor seconds by link, of those that are ahead of the level
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._is_over = False
        self._level = 0.0  # the least that a link at work had used when it was last looked

    @property
    def threads(self) -> list[threading.Thread]:
        """Those that were started."""
        return list(self._threads)

    def of(self, link: int) -> LinkThreads:
        """The executor of one link."""
        return LinkThreads(self, link)

    def submit(self, link: int, work: Callable[[], T]) -> Future[T]:
        """Have something done for a link."""
        future: Future[T] = Future()
        with self._changed:
            if self._is_over:
                raise RuntimeError("the threads have ended")
            self._used[link] = max(self._used.get(link, 0.0), self._level)
            self._waiting.setdefault(link, deque()).append((future, work))
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
            link, (future, work) = taken
            started = thread_time()
            if future.set_running_or_notify_cancel():
                try:
                    result = work()
                except BaseException as error:  # noqa: BLE001 - it belongs to whoever waits for the future
                    future.set_exception(error)
                else:
                    future.set_result(result)
                    del result
            self._give_back(link, thread_time() - started)
            del taken, future, work

    def _take(self) -> tuple[int, _Work] | None:
        with self._changed:
            while True:
                if self._waiting:
                    link = min(self._waiting, key=self._used.__getitem__)  # the first that came among equals
                    self._level = self._used[link]
                    queue = self._waiting.pop(link)
                    work = queue.popleft()
                    if queue:
                        self._waiting[link] = queue  # behind those that wait with as little
                    return link, work
                if self._is_over:
                    return None
                self._idle += 1
                self._changed.wait()
                self._idle -= 1

    def _give_back(self, link: int, cpu_s: float) -> None:
        with self._changed:
            self._used[link] = max(self._used.get(link, 0.0), self._level) + cpu_s
            if len(self._used) > MAX_REMEMBERED:
                self._used = {
                    one: used for one, used in self._used.items() if used > self._level or one in self._waiting
                }

    def shutdown(self) -> None:
        """Give up what waits; threads end when they are done with what they are at."""
        with self._changed:
            self._is_over = True
            for queue in self._waiting.values():
                for future, _ in queue:
                    future.cancel()
            self._waiting.clear()
            self._changed.notify_all()


class LinkThreads(Executor):
    """Shared threads as one link sees them."""

    def __init__(self, threads: FairThreads, link: int) -> None:
        self._threads = threads
        self._link = link

    def submit(self, work: Callable[P, T], /, *arguments: P.args, **named: P.kwargs) -> Future[T]:
        """Have something done."""
        return self._threads.submit(self._link, lambda: work(*arguments, **named))
