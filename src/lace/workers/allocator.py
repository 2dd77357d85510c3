"""What becomes of memory that was freed: the one place that tells the C library's allocator.

Rule: only for a process of our own (a command, a worker), never in a program that uses Lace as a library; and only what
becomes of freed memory changes, not how much is held at a time.

By default the GNU C library gives each thread that asks for memory a heap of its own, maps every buffer of more than
128 KiB by itself, and changes its mind about that length when such a buffer is freed. Neither kind of process is served
well by it, so there are two settings:

- A process that moves many records (an import, an exchange, a worker) passes each through five buffers of fresh pages,
  and a page takes longer to be handed out than its bytes to be copied. Freed buffers are kept for the next ones.
  (decision 250)
- A process that serves strangers computes in as many threads as there are links: what their rules once took stayed in
  one heap after the other, 208 MB of a process that needed 40. Large pieces go back to the system. (decision 266)
"""

from __future__ import annotations

import sys

from lace.limits import MIB

HEAPS = 2  # of all threads together: those that compute wait for each other anyway
MAPPED_FROM_BYTES = 8 * MIB  # for moving records: longer buffers are mapped, and go back when they are freed
KEPT_BYTES = 32 * MIB  # at the end of a heap, for the next buffer
LARGE = MIB  # for serving: mapped from here
SPARE_BYTES = 4 * MIB  # for serving, kept at the end of a heap: a batch of records to send comes and goes in it

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # malloc.h of the GNU C library


def keep_freed_memory() -> bool:
    """Have freed buffers used again; whether the C library has such settings: others do as they do."""
    return _set(MAPPED_FROM_BYTES, KEPT_BYTES)


def give_back() -> bool:
    """Have what is freed go back to the system; whether the C library has such settings."""
    return _set(LARGE, SPARE_BYTES)


def _set(mapped_from: int, kept: int) -> bool:
    if sys.platform != "linux":
        return False
    try:
        import ctypes  # 3 ms, and most commands need none of this

        mallopt = ctypes.CDLL(None).mallopt
    except (ImportError, OSError, AttributeError):
        return False
    settings = ((_ARENA_MAX, HEAPS), (_MMAP_THRESHOLD, mapped_from), (_TRIM_THRESHOLD, kept))
    taken = [mallopt(name, value) == 1 for name, value in settings]
    return all(taken)
