"""What is kept of peers' claims until they come again (050, cursors), and for how long.

Rule: losing a cursor costs the next exchange a listing and nothing else, so every one of them expires: by age, by
number and by size, the oldest first. Failing to keep one is not an error.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from lace.errors import LaceError
from lace.limits import GIB
from lace.notation.tai import TAI
from lace.store.base import RecordStore
from lace.values import dataclass

CURSORS = "cursor"  # the settings namespaces: the claims by key
STAMPS = "cursor-at"  # and when they were kept, with their size
DAY_S = 24 * 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class CursorLimits:
    """How much is kept of peers' claims, for all peers of a lace together."""

    max_cursors: int = 1024
    max_kept_cursor_bytes: int = GIB
    max_cursor_age_s: float = 90 * DAY_S


class CursorBook:
    """The cursors of one lace; `now` is asked for the time, and without it they do not age."""

    def __init__(
        self, store: RecordStore, now: Callable[[], TAI] | None = None, limits: CursorLimits | None = None
    ) -> None:
        self._store = store
        self._now = now
        self._limits = limits or CursorLimits()

    def get(self, key: str) -> bytes | None:
        """What was kept under a key, unless it is too old."""
        if not key or self._is_too_old(self._stamps().get(key, (self._seconds(), 0))[0]):
            return None
        return self._store.get_setting(CURSORS, key)

    def keep(self, key: str, value: bytes) -> None:
        """Keep a cursor instead of the one under this key, and let go of what is too much."""
        with contextlib.suppress(LaceError), self._store.together():
            if len(value) > self._limits.max_kept_cursor_bytes:
                self._drop(key)
                return
            self._store.put_setting(CURSORS, key, value)
            self._store.put_setting(STAMPS, key, f"{self._seconds()} {len(value)}".encode())
            self._expire()

    def _expire(self) -> None:
        """Let go of what is too old or too much."""
        oldest_first = sorted(self._stamps().items(), key=lambda item: item[1])
        count, size = len(oldest_first), sum(size for _, (_, size) in oldest_first)
        for gone, (key, (stamp, own)) in enumerate(oldest_first):
            is_much = count - gone > self._limits.max_cursors or size > self._limits.max_kept_cursor_bytes
            if not is_much and not self._is_too_old(stamp):
                break
            self._drop(key)
            size -= own

    def _drop(self, key: str) -> None:
        self._store.put_setting(CURSORS, key, None)
        self._store.put_setting(STAMPS, key, None)

    def _stamps(self) -> dict[str, tuple[int, int]]:
        """When each was kept, and its size."""
        found = {}
        for key, value in self._store.settings(STAMPS).items():
            seconds, _, size = value.decode().partition(" ")
            found[key] = (int(seconds), int(size))
        return found

    def _seconds(self) -> int:
        return int(self._now()[:10]) if self._now is not None else 0

    def _is_too_old(self, stamp: int) -> bool:
        return self._now is not None and 0 < stamp < self._seconds() - self._limits.max_cursor_age_s
