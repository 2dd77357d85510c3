"""How summaries, symbols and short ids stand in fact lines (070).

Rule: one text for one value. Whatever a peer sends instead is refused here, before it is used for anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NoReturn

import numpy as np

from lace.differences.keyed import U64
from lace.differences.sketch import SYMBOL_BYTES, Symbols
from lace.differences.sums import COUNTERS
from lace.differences.tree import ROOT_BYTES
from lace.errors import InvalidText, excerpt
from lace.notation import b64a
from lace.notation.decimal import natural

SUM_BYTES = 16
SHORT_BYTES = 8
SYMBOLS_PER_LINE = 56  # a line of 1024 bytes holds them with everything around
SHORT_IDS_PER_LINE = 90
_MAX_COUNT_DIGITS = 18
SYMBOL_ROW: np.dtype[np.void] = np.dtype([("sum", ">u8"), ("check", ">u4"), ("count", "u1")])


def encode_summary(measured: U64) -> tuple[str, str, str]:
    """Count, sums and counters of a measured set as texts (070-SUM-02, 070-EST-03)."""
    sums = measured[1:3].astype(">u8").tobytes()
    counters = (measured[3:] & np.uint64(0xFFFF)).astype(">u2").tobytes()
    return str(int(measured[0])), b64a.encode(sums), b64a.encode(counters)


def decode_summary(count: str, sums: str, counters: str) -> U64:
    """What `encode_summary` gave; counters are known modulo 2^16."""
    measured = np.empty(3 + COUNTERS, np.uint64)
    measured[0] = _count(count)
    measured[1:3] = np.frombuffer(_exact(sums, SUM_BYTES), ">u8")
    measured[3:] = np.frombuffer(_exact(counters, 2 * COUNTERS), ">u2")
    return measured


def encode_root(count: int, root: bytes) -> tuple[str, str]:
    """Count and root of a set as texts (070-ROOT-02)."""
    return str(count), b64a.encode(root)


def decode_root(count: str, root: str) -> tuple[int, bytes]:
    """What `encode_root` gave."""
    return _count(count), _exact(root, ROOT_BYTES)


def encode_symbols(symbols: Symbols) -> Iterator[str]:
    """Symbols as texts of SYMBOLS_PER_LINE each, the last of what is left (070-SKETCH-05)."""
    rows = np.empty(len(symbols), SYMBOL_ROW)
    rows["sum"], rows["check"], rows["count"] = symbols.sums, symbols.checks, symbols.counts
    for start in range(0, len(rows), SYMBOLS_PER_LINE):
        yield b64a.encode(rows[start : start + SYMBOLS_PER_LINE].tobytes())


def decode_symbols(lines: Iterable[tuple[str, ...]], start: int) -> Symbols:
    """Symbols from number `start` on, of lines that each say which is their first. A line may be shorter than ours."""
    pieces: list[bytes] = []
    for first, text in lines:
        if first != str(start):
            _refuse(f"symbols where those from {start} on are due,", excerpt(first))
        pieces.append(_rows_of(text, SYMBOL_BYTES, SYMBOLS_PER_LINE, "symbols"))
        start += len(pieces[-1]) // SYMBOL_BYTES
    return symbols_of_rows(b"".join(pieces))


def symbols_of_rows(data: bytes) -> Symbols:
    """Whole symbols, 13 bytes each."""
    rows = np.frombuffer(data, SYMBOL_ROW)
    return Symbols(rows["count"].copy(), rows["sum"].astype(np.uint64), rows["check"].astype(np.uint32))


def encode_short_ids(short: U64) -> Iterator[str]:
    """Short ids, ascending, as texts of SHORT_IDS_PER_LINE each."""
    for start in range(0, len(short), SHORT_IDS_PER_LINE):
        yield b64a.encode(short[start : start + SHORT_IDS_PER_LINE].astype(">u8").tobytes())


def decode_short_ids(texts: list[str]) -> U64:
    """Strictly ascending short ids."""
    pieces = [_rows_of(text, SHORT_BYTES, SHORT_IDS_PER_LINE, "short ids") for text in texts]
    short = np.frombuffer(b"".join(pieces), ">u8").astype(np.uint64)
    if not bool((short[1:] > short[:-1]).all()):
        _refuse("short ids", "not ascending")
    return short


def _rows_of(text: str, size: int, most: int, what: str) -> bytes:
    """What one line holds: some whole values, and no part of one that another line ends."""
    data = b64a.decode(text)
    if not data or len(data) % size or len(data) > most * size:
        _refuse(what, f"{len(data)} bytes in a line")
    return data


def _count(text: str) -> int:
    count = natural(text, _MAX_COUNT_DIGITS)
    return _refuse("count", excerpt(text)) if count is None else count


def _exact(text: str, size: int) -> bytes:
    if not b64a.is_canonical(text, size):
        _refuse(f"text of {size} bytes", excerpt(text))
    return b64a.decode(text)


def _refuse(what: str, found: str) -> NoReturn:
    raise InvalidText(f"malformed {what} of a difference", rule="difference-text", found=found)
