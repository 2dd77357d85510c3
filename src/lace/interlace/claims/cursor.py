"""What a side keeps of a peer between two exchanges (050, cursors).

Rule: a cursor is local state, never proof (050-RECON-05); one that cannot be read is the same as none.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from dataclasses import field

from lace.differences.ids import EMPTY, Ids, ids_of_bytes
from lace.errors import InvalidText
from lace.interlace.claims.advertisement import Advertisement, FieldClaim, is_record_id
from lace.interlace.claims.partitions import Partition
from lace.values import dataclass

_HEADING = "lace-advertisement-cursor/1"
_WITH_COLUMNS = "lace-advertisement-cursor/2"  # ids follow behind the lines, and how long these are stands in the head
_COLUMNS_HEAD = f'["{_WITH_COLUMNS}"'.encode()
_LONGEST_HEAD = 64
_LEVEL = 1  # hashes hardly compress, so bare claims are kept as they are; fields do
_PLAIN = b"["  # how an uncompressed cursor begins; zlib never does


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvertisementCursor:
    """The last accepted peer advertisement records and their summaries."""

    plan: str
    source: str
    claims: tuple[Advertisement, ...]
    partitions: tuple[Partition, ...] = ()
    bare: Ids = field(default=EMPTY, compare=False)  # more claims, without fields: as many as our own set has

    def encode(self) -> bytes:
        """The cursor as bytes for a store's settings."""
        lines = self._lines()
        if not len(self.bare):
            return lines
        head = json.dumps([_WITH_COLUMNS, len(lines)]).encode()
        return b"\n".join((head, lines + self.bare.to_bytes()))

    def _lines(self) -> bytes:
        head = json.dumps([_HEADING, self.plan, self.source, len(self.partitions), len(self.claims)])
        lines = [head, *(f"{p.prefix} {p.count} {p.root}" for p in self.partitions), *map(_claim_line, self.claims)]
        data = "\n".join(lines).encode()
        return zlib.compress(data, _LEVEL) if any(claim.fields for claim in self.claims) else data


def decode_cursor(data: bytes, plan: str, source: str, max_bytes: int) -> AdvertisementCursor | None:
    """The cursor of this plan and source that the bytes hold, or None."""
    try:
        data, bare = _apart(data, max_bytes)
        text = _unpacked(data, max_bytes)
        head, *lines = text.split("\n")
        heading, found_plan, found_source, partition_count, claim_count = json.loads(head)
        if (heading, found_plan, found_source) != (_HEADING, plan, source):
            return None
        if len(lines) != partition_count + claim_count:
            return None
        partitions = tuple(_read_partition(line) for line in lines[:partition_count])
        return AdvertisementCursor(
            plan=plan,
            source=source,
            partitions=partitions,
            claims=tuple(_read_claims(lines[partition_count:])),
            bare=bare,
        )
    except (zlib.error, InvalidText, ValueError, TypeError, KeyError):
        return None


def _apart(data: bytes, max_bytes: int) -> tuple[bytes, Ids]:
    """The lines of a cursor, and the ids that stand behind them."""
    if not data.startswith(_COLUMNS_HEAD):
        return data, EMPTY
    if len(data) > max_bytes:
        raise ValueError(f"more than {max_bytes} bytes")
    head, _, _ = data[:_LONGEST_HEAD].partition(b"\n")
    _, size = json.loads(head)
    lines_end = len(head) + 1 + size
    return data[len(head) + 1 : lines_end], ids_of_bytes(memoryview(data)[lines_end:])


def _unpacked(data: bytes, max_bytes: int) -> str:
    """The text of a cursor; ValueError if it is too long."""
    if data.startswith(_PLAIN):
        is_whole = len(data) <= max_bytes
    else:
        reader = zlib.decompressobj()
        data = reader.decompress(data, max_bytes)
        is_whole = not reader.unconsumed_tail
    if not is_whole:
        raise ValueError(f"more than {max_bytes} bytes")
    return data.decode()


def _claim_line(claim: Advertisement) -> str:
    return f"{claim.hash} {json.dumps(claim.fields)}" if claim.fields else claim.hash


def _read_partition(line: str) -> Partition:
    prefix, count, root = line.split(" ")
    return Partition(prefix, int(count), root)


def _read_claims(lines: Iterable[str]) -> Iterable[Advertisement]:
    for line in lines:
        record, _, fields = line.partition(" ")
        if not is_record_id(record):
            raise ValueError(record)
        yield Advertisement(record, tuple(FieldClaim(*field) for field in json.loads(fields)) if fields else ())
