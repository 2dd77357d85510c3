"""A yardstick: negentropy, protocol version 1, byte for byte (https://github.com/hoytech/negentropy), ids only.

It is written from the protocol's description to count bytes and turns, not to be fast: the client below drives, both
sides answer ranges by skipping, by 16 fingerprints, or by listing fewer than 32 ids.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate

VERSION = 0x61
ID_BYTES = 32
FINGERPRINT_BYTES = 16
BUCKETS = 16
SKIP, FINGERPRINT, ID_LIST = range(3)
INFINITY = (1 << 64) - 1

Bound = tuple[int, bytes]
Item = tuple[int, bytes]


def varint(number: int) -> bytes:
    out = [number & 0x7F]
    number >>= 7
    while number:
        out.append((number & 0x7F) | 0x80)
        number >>= 7
    return bytes(reversed(out))


class Reader:
    """Bytes of a message, read from the front."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, size: int) -> bytes:
        self.at += size
        return self.data[self.at - size : self.at]

    def varint(self) -> int:
        number = 0
        while True:
            byte = self.take(1)[0]
            number = (number << 7) | (byte & 0x7F)
            if byte < 0x80:
                return number


class Side:
    """Sorted items with prefix sums, and one side's answers."""

    def __init__(self, items: list[Item]) -> None:
        self.items = sorted(items)
        self.sums = [0, *accumulate(int.from_bytes(id_, "little") for _, id_ in self.items)]
        self.have: set[bytes] = set()
        self.need: set[bytes] = set()

    def fingerprint(self, lower: int, upper: int) -> bytes:
        total = (self.sums[upper] - self.sums[lower]) & ((1 << 256) - 1)
        return hashlib.sha256(total.to_bytes(32, "little") + varint(upper - lower)).digest()[:FINGERPRINT_BYTES]

    def initiate(self) -> bytes:
        return bytes([VERSION]) + self._encode(list(self._split(0, len(self.items), (INFINITY, b""))))

    def _split(self, lower: int, upper: int, end: Bound) -> Iterator[tuple[Bound, bytes]]:
        count = upper - lower
        if count < BUCKETS * 2:
            ids = b"".join(id_ for _, id_ in self.items[lower:upper])
            yield end, varint(ID_LIST) + varint(count) + ids
            return
        each, extra = divmod(count, BUCKETS)
        at = lower
        for bucket in range(BUCKETS):
            size = each + (bucket < extra)
            mark = self.fingerprint(at, at + size)
            at += size
            bound = end if at == upper else minimal_bound(self.items[at - 1], self.items[at])
            yield bound, varint(FINGERPRINT) + mark

    @staticmethod
    def _encode(ranges: list[tuple[Bound, bytes]]) -> bytes:
        out, last = [], 0
        for (time, prefix), payload in ranges:
            if time == INFINITY:
                out.append(varint(0))
            else:
                out.append(varint(time - last + 1))
                last = time
            out += [varint(len(prefix)), prefix, payload]
        return b"".join(out)

    def answer(self, message: bytes, *, initiator: bool) -> bytes:
        """The next message; for the initiator empty when nothing is left, while `have` and `need` fill."""
        reader = Reader(message)
        reader.take(1)
        out: list[tuple[Bound, bytes]] = []
        skipped = False
        lower, last, previous = 0, 0, (0, b"")

        def skip() -> None:
            nonlocal skipped
            if skipped:
                out.append((previous, varint(SKIP)))
                skipped = False

        while reader.at < len(message):
            delta = reader.varint()
            time = INFINITY if delta == 0 else last + delta - 1
            last = time if time != INFINITY else last
            end: Bound = (time, reader.take(reader.varint()))
            upper = len(self.items) if time == INFINITY else bisect_left(self.items, end, lo=lower)
            mode = reader.varint()
            if mode == SKIP:
                skipped = True
            elif mode == FINGERPRINT:
                if reader.take(FINGERPRINT_BYTES) == self.fingerprint(lower, upper):
                    skipped = True
                else:
                    skip()
                    out += self._split(lower, upper, end)
            else:
                theirs = {reader.take(ID_BYTES) for _ in range(reader.varint())}
                ours = {id_ for _, id_ in self.items[lower:upper]}
                if initiator:
                    self.have |= ours - theirs
                    self.need |= theirs - ours
                    skipped = True
                else:
                    skip()
                    out.append((end, varint(ID_LIST) + varint(len(ours)) + b"".join(sorted(ours))))
            lower, previous = upper, end
        if not out:
            return b"" if initiator else bytes([VERSION])
        return bytes([VERSION]) + self._encode(out)


def minimal_bound(before: Item, after: Item) -> Bound:
    """The shortest bound between two neighbours."""
    if before[0] != after[0]:
        return after[0], b""
    shared = next(n for n in range(ID_BYTES) if before[1][n] != after[1][n])
    return after[0], after[1][: shared + 1]


def reconcile(ours: Side, theirs: Side) -> tuple[int, int]:
    """Bytes and turns until `ours` knows how the two differ."""
    size, turns = 0, 0
    message = ours.initiate()
    while message:
        answer = theirs.answer(message, initiator=False)
        size += len(message) + len(answer)
        turns += 1
        message = ours.answer(answer, initiator=True)
    return size, turns
