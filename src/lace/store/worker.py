"""A process that judges records for an import, fed by `Worker` over its pipes.

Rule: one request, one answer, until its input ends. Pipes instead of a process pool, so that a program without an
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
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import IO

import lace
from lace.errors import LaceError, StoreError
from lace.limits import RecordLimits
from lace.store.checking import Checked, check_frames

_SIZE = struct.Struct("<Q")
PIPE_BYTES = 1 << 20
COLLECT_EVERY = 200_000  # allocations that were not freed again
PROGRAM = "from lace.store.worker import main; main()"


@dataclass(frozen=True, slots=True)
class _Request:
    """What goes before the bytes of a chunk."""

    limits: RecordLimits
    lengths: list[int]


class Worker:
    """The near end of one worker process."""

    def __init__(self, limits: RecordLimits) -> None:
        package_root = str(Path(lace.__path__[0]).parent)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([package_root, os.environ.get("PYTHONPATH", "")])}
        self._limits = limits
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env=environment, bufsize=PIPE_BYTES, pipesize=PIPE_BYTES,
        )  # fmt: skip

    def check(self, frames: Sequence[bytes]) -> Checked:
        """The worker's verdict on a chunk."""
        near_in, near_out = self._process.stdin, self._process.stdout
        assert near_in is not None
        assert near_out is not None
        try:
            _send(near_in, _Request(self._limits, [len(frame) for frame in frames]))
            near_in.writelines(frames)
            near_in.flush()
            answer = _receive(near_out)
        except (BrokenPipeError, EOFError):
            raise StoreError("a worker process of the import ended; what was reported as stored is safe") from None
        if isinstance(answer, LaceError):
            raise answer
        assert isinstance(answer, Checked)
        return answer

    def close(self) -> None:
        """End the process, which holds nothing worth waiting for."""
        self._process.kill()
        with contextlib.suppress(OSError):
            self._process.communicate()


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
            request = _receive(requests)
        except EOFError:
            return
        assert isinstance(request, _Request)
        try:
            answer: object = check_frames(_frames(requests, request.lengths), request.limits)
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
