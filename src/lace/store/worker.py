"""Processes that do work which would hold this one's interpreter, fed by `Worker` over their pipes.

Rule: one job, one answer, until the input ends. Pipes instead of a process pool, so that a program without an
`if __name__ == "__main__"` may import bundles too.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import signal
import struct
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Protocol, TypeVar, cast

import lace
from lace.errors import LaceError, StoreError
from lace.limits import RecordLimits
from lace.store.checking import Checked, check_frames

_SIZE = struct.Struct("<Q")
PIPE_BYTES = 1 << 20
COLLECT_EVERY = 200_000  # allocations that were not freed again
PROGRAM = "from lace.store.worker import main; main()"


T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Job(Protocol[T_co]):
    """Work for another process: a value that is pickled to it, and whose answer is pickled back."""

    def run(self, more: IO[bytes]) -> T_co:
        """Do it there; `more` holds the bytes that were sent along."""
        ...


@dataclass(frozen=True, slots=True)
class _Check:
    """Judge a chunk of frames, which are sent along."""

    limits: RecordLimits
    lengths: list[int]

    def run(self, more: IO[bytes]) -> Checked:
        return check_frames(_frames(more, self.lengths), self.limits)


class Worker:
    """The near end of one worker process."""

    def __init__(self) -> None:
        package_root = str(Path(lace.__path__[0]).parent)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([package_root, os.environ.get("PYTHONPATH", "")])}
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env=environment, bufsize=PIPE_BYTES, pipesize=PIPE_BYTES,
        )  # fmt: skip

    def ask(self, job: Job[T], more: Sequence[bytes] = ()) -> T:
        """The worker's answer."""
        near_in, near_out = self._process.stdin, self._process.stdout
        assert near_in is not None
        assert near_out is not None
        try:
            _send(near_in, job)
            near_in.writelines(more)
            near_in.flush()
            answer = _receive(near_out)
        except (BrokenPipeError, EOFError):
            raise StoreError("a worker process ended; what was reported as stored is safe") from None
        if isinstance(answer, LaceError):
            raise answer
        return cast("T", answer)

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

    def check(self, frames: Sequence[bytes], limits: RecordLimits) -> Future[Checked]:
        """Have a chunk of frames judged."""
        return self._threads.submit(self._ask, _Check(limits, [len(frame) for frame in frames]), frames)

    def ask(self, job: Job[T]) -> Future[T]:
        """Have a job done."""
        return self._threads.submit(self._ask, job, ())

    def _ask(self, job: Job[T], more: Sequence[bytes]) -> T:
        worker = self._idle.get()
        try:
            return worker.ask(job, more)
        finally:
            self._idle.put(worker)

    def close(self) -> None:
        """End the processes; what has not begun is not done."""
        self._threads.shutdown(cancel_futures=True)
        for worker in self._workers:
            worker.close()


def _send(pipe: IO[bytes], value: object) -> None:
    data = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    pipe.write(_SIZE.pack(len(data)))
    pipe.write(data)


def _receive(pipe: IO[bytes]) -> object:
    head = pipe.read(_SIZE.size)
    if len(head) < _SIZE.size:
        raise EOFError
    return pickle.loads(pipe.read(_SIZE.unpack(head)[0]))


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer until the requests end."""
    while True:
        try:
            job = cast("Job[object]", _receive(requests))
        except EOFError:
            return
        try:
            answer = job.run(requests)
        except LaceError as error:
            answer = error
        _send(answers, answer)
        answers.flush()


def _frames(requests: IO[bytes], lengths: list[int]) -> list[bytes]:
    """The frames of a chunk, taken from the pipe at once; long ones each by itself, so that none is here twice."""
    if max(lengths) > PIPE_BYTES:
        return [requests.read(length) for length in lengths]
    chunk = memoryview(requests.read(sum(lengths)))
    ends = accumulate(lengths)
    return [bytes(chunk[end - length : end]) for end, length in zip(ends, lengths, strict=True)]


def main() -> None:
    """Serve on the standard pipes."""
    gc.freeze()
    gc.set_threshold(COLLECT_EVERY)  # a chunk makes many values and no cycles
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the importing process decides when to stop
    serve(sys.stdin.buffer, sys.stdout.buffer)
