"""What a figure of a siege is set against: links that do nothing, as much work that is nobody's, and our own delays.

Rule: attackers, good peer and server share one machine, so part of what a good peer waits for is the machine's
fault. That is measured and told beside the figure; it never takes the place of it.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from siege.fortress import Fortress, army

RESTING = "silence: links at a fixed point"
EXCHANGES = 3  # beside each control
_BURN = """
import sys, time
duty = float(sys.argv[1])
while True:
    until = time.thread_time() + 0.01 * duty
    while time.thread_time() < until:
        pass
    time.sleep(0.01 * (1 - duty))
"""


def waited_s(pid: int, *, main_thread: bool = False) -> float:
    """Seconds that threads of a process could have run and had no processor; 0 where nobody tells (not on Linux)."""
    tasks = [Path(f"/proc/{pid}/task/{pid}")] if main_thread else list(Path(f"/proc/{pid}/task").glob("*"))
    total = 0
    for task in tasks:
        with suppress(OSError, IndexError, ValueError):  # a thread that has just ended
            total += int((task / "schedstat").read_bytes().split()[1])
    return total / 1e9


def used_s(pid: int) -> float:
    """Processor seconds of a process that may be gone."""
    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.Error:
        return 0.0
    return times.user + times.system


class OwnPulse(threading.Thread):
    """The longest that a thread of this very program was late: then a figure says little of the server."""

    def __init__(self, interval_s: float = 0.01) -> None:
        super().__init__(daemon=True)
        self._interval_s = interval_s
        self.stall_s = 0.0
        self.is_over = False

    def run(self) -> None:
        while not self.is_over:
            due = time.monotonic() + self._interval_s
            time.sleep(self._interval_s)
            self.stall_s = max(self.stall_s, time.monotonic() - due)


@dataclass(frozen=True, slots=True)
class Effort:
    """Processors that were busy, on average."""

    server: float
    army: float


@contextmanager
def burning(effort: Effort) -> Iterator[None]:
    """As much work as a siege made, by nobody in particular: the server's share as it was, the army's as nice as it."""
    shares = [(0, share) for share in _shares(effort.server)] + [(10, share) for share in _shares(effort.army)]
    commands = [["nice", "-n", str(nice), sys.executable, "-c", _BURN, f"{share:.2f}"] for nice, share in shares]
    processes = [subprocess.Popen(command) for command in commands]
    try:
        time.sleep(0.2)
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _shares(busy: float) -> list[float]:
    """Whole processors, and a part of one."""
    whole = int(busy)
    return [1.0] * whole + ([busy - whole] if busy - whole > 0.02 else [])


def beside_burning(fortress: Fortress, scheme: str, effort: Effort) -> float:
    """The slowest of a few good exchanges beside such work; as much of it as there was beside the siege."""
    with burning(effort):
        return max(fortress.good_exchange(scheme)[1] for _ in range(2 * EXCHANGES))


def beside_resting(fortress: Fortress, scheme: str, links: int = 32) -> float:
    """The slowest of a few good exchanges beside links that came, exchanged and rest."""
    with army(RESTING, scheme, fortress.ports[scheme], links, seed=1):
        time.sleep(1.0)
        return max(fortress.good_exchange(scheme)[1] for _ in range(EXCHANGES))
