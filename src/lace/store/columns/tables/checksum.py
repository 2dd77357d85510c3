"""Checksums of what a store keeps in columns, dictionary and settings.

Rule: they find accidents, not attackers: anyone who can write the file can write its sums. Signatures and hashes of
records are what cannot be forged, and `lace verify` derives everything from those.
"""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

from lace.errors import StoreDamaged

Part = int | str | bytes | memoryview | None


def checksum(*parts: Part) -> int:
    """One number for some values; any bit of any of them changes it."""
    running = 0
    for part in parts:
        running = crc32(part if isinstance(part, bytes | memoryview) else f"{part}\n".encode(), running)
    return running


def plain_sum(parts: Sequence[int | str | None]) -> int:
    """`checksum` of values none of which is bytes, in one call: rows of indexes come by the thousand."""
    return crc32(("\n".join(map(str, parts)) + "\n").encode())


def require_sum(what: str, said: int, *parts: Part) -> None:
    """StoreDamaged unless the values are those that were summed."""
    if checksum(*parts) != said:
        raise damaged(what)


def damaged(what: str) -> StoreDamaged:
    """The error for something that is not as it was written."""
    return StoreDamaged(f"{what} is damaged: `lace verify` says what else is, `lace repair` saves all that can be read")
