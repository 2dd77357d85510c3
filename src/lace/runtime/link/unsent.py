"""What one side of a link has to say and nobody has taken yet (060).

Rule: it is written when it is taken, in pieces of a sensible size, and what waits is counted: records by their bytes,
blocks by their ends, facts by their number, so that it can be charged to the peer who does not read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from lace.iltp.packed import encode_packed
from lace.iltp.writer import encode_blank, encode_facts, encode_records
from lace.limits import StreamLimits
from lace.notation.fact import Fact

_WRITE_BYTES = 256 * 1024  # small pieces are joined up to this: a phase is one write, not one for each line
_FACTS_CHUNK = 5000
_BLANK = encode_blank()


class Unsent:
    """A queue of bytes, and of facts that become bytes."""

    def __init__(self, limits: StreamLimits) -> None:
        self._limits = limits
        self._waiting: deque[bytes | Iterator[bytes]] = deque()
        self.taken = 0  # bytes, in all
        self.bytes = 0  # of records and listings
        self.blocks = 0  # ended: a peer that reads lets few of them pile up
        self.facts = 0

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def put(self, data: bytes) -> None:
        """Something short that is not counted."""
        self._waiting.append(data)

    def put_facts(self, facts: Sequence[Fact], *, packs: bool) -> None:
        """A block of facts, or a part of one."""
        self.facts += len(facts)
        self._waiting.append(self._fact_pieces(facts, packs=packs))

    def put_lines(self, data: bytes, *, packs: bool) -> None:
        """Fact lines that are written already."""
        pieces = list(encode_packed(data)) if packs else [data]
        self._waiting.extend(pieces)
        self.bytes += sum(map(len, pieces))

    def put_records(self, stored: Sequence[bytes]) -> None:
        """Records, short ones joined to pieces of a sensible size."""
        pieces = encode_records(stored)
        sizes = list(map(len, pieces))
        size = sum(sizes)
        self.bytes += size
        if max(sizes, default=0) > _WRITE_BYTES:  # a long one is not copied to be joined to others
            self._waiting.extend(pieces)
            return
        count = max(1, len(pieces) * _WRITE_BYTES // max(1, size))  # of records to a write, if they are alike
        self._waiting.extend([b"".join(pieces[at : at + count]) for at in range(0, len(pieces), count)])

    def end_block(self) -> None:
        """The blank line behind a block."""
        self._waiting.append(_BLANK)
        self.blocks += 1

    def take(self) -> bytes:
        """The next bytes; empty if there are none now."""
        pieces: list[bytes] = []
        size = 0
        while self._waiting and size < _WRITE_BYTES:
            head = self._waiting[0]
            piece = head if isinstance(head, bytes) else next(head, b"")
            if isinstance(head, bytes) or not piece:
                self._waiting.popleft()
            if head == _BLANK:
                self.blocks -= 1
            pieces.append(piece)
            size += len(piece)
        self.taken += size
        self.bytes = max(0, self.bytes - size)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def clear(self) -> None:
        """Nothing of it is said any more."""
        self._waiting.clear()
        self.bytes = self.blocks = self.facts = 0

    def _fact_pieces(self, facts: Sequence[Fact], *, packs: bool) -> Iterator[bytes]:
        for start in range(0, len(facts), _FACTS_CHUNK):
            chunk = facts[start : start + _FACTS_CHUNK]
            self.facts -= len(chunk)
            lines = encode_facts(chunk, self._limits)
            if packs:
                yield from encode_packed(lines)
            else:
                yield lines
