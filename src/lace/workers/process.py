"""The far side of a worker: one job, one answer, until the input ends.

Rule: this is all a worker process imports before its first job; what a job needs comes with the job.
"""

from __future__ import annotations

import os
import pickle
import signal
import struct
import sys
from typing import IO, Protocol, TypeVar, cast

from lace.errors import LaceError
from lace.workers.allocator import keep_freed_memory
from lace.workers.collector import own_process

PIPE_BYTES = 1 << 20
BEHIND = 8  # steps of niceness behind the process that asks: what that one stores and sends is what everybody waits for
_SIZE = struct.Struct("<Q")

T_co = TypeVar("T_co", covariant=True)


class Job(Protocol[T_co]):
    """Work for another process: a value that is pickled to it, and whose answer is pickled back."""

    def run(self, more: IO[bytes]) -> T_co:
        """Do it there; `more` holds the bytes that were sent along."""
        ...


def send(pipe: IO[bytes], value: object) -> None:
    """Write one value to a pipe."""
    data = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    pipe.write(_SIZE.pack(len(data)))
    pipe.write(data)


def receive(pipe: IO[bytes]) -> object:
    """Read one value from a pipe; EOFError if it ended."""
    head = pipe.read(_SIZE.size)
    if len(head) < _SIZE.size:
        raise EOFError
    size = _SIZE.unpack(head)[0]
    data = pipe.read(size)
    if len(data) < size:  # of a process that was killed in the middle of an answer
        raise EOFError
    return pickle.loads(data)  # noqa: S301 - from a process that we started


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer until the requests end."""
    while True:
        try:
            job = cast("Job[object]", receive(requests))
        except EOFError:
            return
        try:
            answer = job.run(requests)
        except LaceError as error:
            answer = error
        send(answers, answer)
        answers.flush()


def main() -> None:
    """Serve on the standard pipes."""
    own_process()
    keep_freed_memory()
    os.nice(BEHIND)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the asking process decides when to stop
    serve(sys.stdin.buffer, sys.stdout.buffer)
