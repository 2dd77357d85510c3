"""Memory that a server let go is the system's again; buffers that whoever moves records freed are used again."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import lace
from lace.workers.allocator import give_back, keep_freed_memory

# Every thread takes large pieces twice, with something small and lasting behind them, and lets go of all that is large.
HEAPS = """
import sys, threading
from lace.workers.allocator import give_back
if sys.argv[1] == "yes":
    assert give_back()
kept = []

def compute():
    for _ in range(2):
        pieces = [bytearray(2 << 20) for _ in range(8)]
        kept.append(bytearray(600))
        del pieces
        kept.append(bytearray(600))

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

before = resident()
barrier = threading.Barrier(12)
threads = [threading.Thread(target=lambda: (barrier.wait(), compute(), barrier.wait())) for _ in range(12)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print((resident() - before) >> 20)
"""

is_glibc = platform.libc_ver()[0] == "glibc"


def left_behind(*, is_given_back: bool) -> int:
    """MiB, of 192 that were taken at a time."""
    command = [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(Path(lace.__path__[0]).parent)!r})\n"]
    command[-1] += HEAPS
    done = subprocess.run([*command, "yes" if is_given_back else "no"], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(not is_glibc, reason="of glibc")
def test_what_many_threads_let_go_stays_with_nobody() -> None:
    assert left_behind(is_given_back=True) <= 16
    assert left_behind(is_given_back=False) >= 64  # else this test would say nothing


def test_where_there_is_nothing_to_set_nothing_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not give_back()
    assert not keep_freed_memory()
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setitem(sys.modules, "ctypes", SimpleNamespace(CDLL=lambda _: object()))  # type: ignore[arg-type]
    assert not give_back()
    assert not keep_freed_memory()


BUFFERS = """
import resource, sys
from lace.workers.allocator import MAPPED_FROM_BYTES, keep_freed_memory
kept = sys.argv[1] == "kept" and keep_freed_memory()
def faults(size):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(50):
        first = bytearray(size)
        second = bytes(first)
        del first, second
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
faults(1 << 20)
print(int(kept), faults(1 << 20), faults(MAPPED_FROM_BYTES + 1))
"""


def found(how: str) -> tuple[bool, int, int]:
    done = subprocess.run([sys.executable, "-c", BUFFERS, how], capture_output=True, text=True, check=True)
    kept, short, long = map(int, done.stdout.split())
    return bool(kept), short, long


@pytest.fixture
def kept() -> tuple[int, int]:
    is_kept, short, long = found("kept")
    if not is_kept:
        pytest.skip("this C library has no such settings")
    return short, long


def test_freed_buffers_are_used_again(kept: tuple[int, int]) -> None:
    short, long = kept
    pages = 50 * 2 * (1 << 20) // 4096  # if every buffer were made of fresh ones
    assert short < pages / 20
    assert long > pages  # long ones are still given back as soon as they are freed


def test_nothing_is_set_by_loading_the_module(kept: tuple[int, int]) -> None:
    is_kept, short, _ = found("as it was")
    assert not is_kept
    assert short > 10 * kept[0]
