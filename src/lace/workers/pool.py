"""The near side of worker processes: one, some, or some that start in the background.

Rule: an answer is the job's own; a worker that died is a WorkerDied and never a wrong answer. Pipes instead of a
process pool of the standard library, so that a program without an `if __name__ == "__main__"` may use workers too.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar, cast

import lace
from lace.errors import LaceError
from lace.workers.process import PIPE_BYTES, Job, receive, send

PROGRAM = "import sys; sys.path[:] = sys.argv[1:]; from lace.workers.process import main; main()"

T = TypeVar("T")


class WorkerDied(LaceError):
    """A worker process ended before it answered."""


def search_path() -> list[str]:
    """Where a worker looks for modules: as this process does, but never in the current folder.

    Nobody who runs a command in a folder of downloads means to run a `blake3.py` that lies there.
    """
    root = str(Path(lace.__path__[0]).parent)
    with contextlib.suppress(FileNotFoundError):  # of a working folder that was removed
        left_out = (os.getcwd(), root)
        return [root, *(path for entry in sys.path if entry and (path := os.path.abspath(entry)) not in left_out)]
    return [root, *(entry for entry in sys.path if os.path.isabs(entry))]


class Worker:
    """The near end of one worker process."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - a list of our own words, no shell
            [sys.executable, "-I", "-c", PROGRAM, *search_path()],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            bufsize=PIPE_BYTES, pipesize=PIPE_BYTES,
        )  # fmt: skip

    def ask(self, job: Job[T], more: Sequence[bytes] = ()) -> T:
        """The worker's answer."""
        near_in, near_out = self._process.stdin, self._process.stdout
        assert near_in is not None
        assert near_out is not None
        try:
            send(near_in, job)
            near_in.writelines(more)
            near_in.flush()
            answer = receive(near_out)
        except (BrokenPipeError, EOFError):
            raise WorkerDied("a worker process ended") from None
        if isinstance(answer, LaceError):
            raise answer
        return cast("T", answer)

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def wait(self) -> None:
        """Wait until the process has ended, for whatever reason; it is not reaped."""
        with contextlib.suppress(ChildProcessError):  # reaped already
            os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)

    def reap(self) -> None:
        """Take note of a process that has ended; the system forgets it."""
        self._process.poll()

    def ended_by(self) -> int:
        """Wait until the process has ended and is reaped; the signal that ended it, 0 if it ended by itself.

        `poll` would not do: while another thread polls too, it does not know of an end that has happened.
        """
        return max(0, -self._process.wait())

    def kill(self) -> None:
        """End the process from another thread than the one that asks it, which is told WorkerDied."""
        self._process.kill()

    def close(self) -> None:
        """End the process, which holds nothing worth waiting for."""
        self._process.kill()
        with contextlib.suppress(OSError):
            self._process.communicate()


class WorkerPool:
    """Some worker processes, each behind a thread of ours."""

    def __init__(self, count: int) -> None:
        self._workers = [Worker() for _ in range(count)]
        self._idle: SimpleQueue[Worker] = SimpleQueue()
        for worker in self._workers:
            self._idle.put(worker)
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="lace-worker")

    def ask(self, job: Job[T], more: Sequence[bytes] = ()) -> Future[T]:
        """Have a job done; `more` goes along as it is, without being pickled."""
        return self._threads.submit(self._ask, job, more)

    def _ask(self, job: Job[T], more: Sequence[bytes]) -> T:
        worker = self._idle.get()
        try:
            return worker.ask(job, more)
        finally:
            self._idle.put(worker)

    def pids(self) -> list[int]:
        """The numbers of the processes."""
        return [worker.pid for worker in self._workers]

    def close(self) -> None:
        """End the processes; jobs that have not begun are not done, callers that wait for others get WorkerDied.

        They are killed before anybody waits for them: on a busy machine one that has just been started may take longer
        to load its modules than the ending process has to wait.
        """
        self._threads.shutdown(wait=False, cancel_futures=True)
        for worker in self._workers:
            worker.kill()
        self._threads.shutdown()
        for worker in self._workers:
            worker.close()


class BackgroundPool:
    """Worker processes that are started in the background when they are first wanted.

    While there is none, the caller does the work itself.
    """

    def __init__(self, count: int | None = None, *, first: Sequence[Job[object]] = ()) -> None:
        self.count: int = (os.cpu_count() or 1) if count is None else count
        self._first = first  # each done once by each worker, so that modules are loaded before they are needed
        self._pool: WorkerPool | None = None
        self._lock = threading.Lock()
        self._starting: threading.Thread | None = None
        self._closed = False

    def want(self) -> None:
        """Have them started; until they are there, `ask` gives None."""
        with self._lock:
            if self._starting is None and not self._closed and self.count > 0:
                self._starting = threading.Thread(target=self._start, name="lace-workers", daemon=True)
                self._starting.start()

    def _start(self) -> None:
        self._pool = pool = WorkerPool(self.count)
        for job in self._first:
            for _ in range(self.count):
                pool.ask(job)

    @property
    def is_wanted(self) -> bool:
        """Whether they were started, or are being started."""
        return self._starting is not None

    @property
    def is_ready(self) -> bool:
        """Whether they were started."""
        return self._pool is not None and not self._closed

    def ask(self, job: Job[T], more: Sequence[bytes] = ()) -> Future[T] | None:
        """Have a job done by a worker; None if there is none."""
        pool = self._pool
        return None if pool is None or self._closed else pool.ask(job, more)

    def pids(self) -> list[int]:
        """The numbers of the processes."""
        return self._pool.pids() if self._pool is not None else []

    def close(self) -> None:
        """End the processes."""
        with self._lock:
            self._closed = True
        if self._starting is not None:
            self._starting.join()
        if self._pool is not None:
            self._pool.close()
