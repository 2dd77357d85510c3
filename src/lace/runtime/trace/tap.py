"""Listeners that are shown everything a link reads and writes."""

from __future__ import annotations

from typing import Protocol


class Tap(Protocol):
    """Sees the bytes of a link as they pass."""

    def received(self, data: bytes) -> None: ...

    def sent(self, data: bytes) -> None: ...
