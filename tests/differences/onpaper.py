"""070 as its document tells it, number by number: plain Python that shares nothing with what it is to prove.

Nothing of ours is imported here. Whoever implements the document somewhere else can read this beside it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from blake3 import blake3

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~"
WORD = (1 << 64) - 1
Symbol = tuple[int, int, int]  # count modulo 2^8, sum modulo 2^64, check modulo 2^32
NOTHING: Symbol = (0, 0, 0)


# --- 006 ---------------------------------------------------------------------------------------------------------


def b64a(data: bytes) -> str:
    bits = "".join(f"{byte:08b}" for byte in data)
    bits += "0" * (-len(bits) % 6)
    return "".join(ALPHABET[int(bits[at : at + 6], 2)] for at in range(0, len(bits), 6))


def bytes_of(text: str) -> bytes:
    bits = "".join(f"{ALPHABET.index(symbol):06b}" for symbol in text)
    whole = len(bits) // 8 * 8
    assert "1" not in bits[whole:], text
    return bytes(int(bits[at : at + 8], 2) for at in range(0, whole, 8))


# --- keys --------------------------------------------------------------------------------------------------------


def siphash(message: bytes, key: bytes, compress: int, finish: int) -> bytes:
    """SipHash with 128 bits of output, word by word, as its paper tells it."""
    k0, k1 = (int.from_bytes(key[at : at + 8], "little") for at in (0, 8))
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]
    v[1] ^= 0xEE
    padded = message + bytes(7 - len(message) % 8) + bytes([len(message) & 0xFF])
    for at in range(0, len(padded), 8):
        word = int.from_bytes(padded[at : at + 8], "little")
        v[3] ^= word
        _rounds(v, compress)
        v[0] ^= word
    v[2] ^= 0xEE
    _rounds(v, finish)
    first = v[0] ^ v[1] ^ v[2] ^ v[3]
    v[1] ^= 0xDD
    _rounds(v, finish)
    return first.to_bytes(8, "little") + (v[0] ^ v[1] ^ v[2] ^ v[3]).to_bytes(8, "little")


def _rounds(v: list[int], times: int) -> None:
    for _ in range(times):
        v[0] = (v[0] + v[1]) & WORD
        v[1] = _left(v[1], 13) ^ v[0]
        v[0] = _left(v[0], 32)
        v[2] = (v[2] + v[3]) & WORD
        v[3] = _left(v[3], 16) ^ v[2]
        v[0] = (v[0] + v[3]) & WORD
        v[3] = _left(v[3], 21) ^ v[0]
        v[2] = (v[2] + v[1]) & WORD
        v[1] = _left(v[1], 17) ^ v[2]
        v[2] = _left(v[2], 32)


def _left(word: int, bits: int) -> int:
    return ((word << bits) | (word >> (64 - bits))) & WORD


def mix(x: int, k: int) -> int:
    x ^= k
    x ^= x >> 33
    x = x * 0xFF51AFD7ED558CCD & WORD
    x ^= x >> 33
    x = x * 0xC4CEB9FE1A85EC53 & WORD
    return x ^ (x >> 33)


def id_bytes(record: str) -> bytes:
    """The 33 bytes of an id: what its text encodes, then its letter."""
    letter, text, suffix = record.split(".")
    assert suffix == "H3", record
    return bytes_of(text) + letter.encode()


@dataclass(frozen=True, slots=True)
class Summary:
    """Count, sums of short ids and of tails, and the counters modulo 2^16."""

    count: int
    short: int
    tail: int
    counters: tuple[int, ...]

    def texts(self) -> tuple[str, str, str]:
        sums = self.short.to_bytes(8, "big") + self.tail.to_bytes(8, "big")
        return str(self.count), b64a(sums), b64a(b"".join(one.to_bytes(2, "big") for one in self.counters))

    def agrees(self, other: Summary) -> bool:
        return (self.count, self.short, self.tail) == (other.count, other.short, other.tail)


def summary_of(count: str, sums: str, counters: str) -> Summary:
    words, numbers = bytes_of(sums), bytes_of(counters)
    assert (len(words), len(numbers)) == (16, 48)
    return Summary(
        int(count),
        int.from_bytes(words[:8], "big"),
        int.from_bytes(words[8:], "big"),
        tuple(int.from_bytes(numbers[at : at + 2], "big") for at in range(0, 48, 2)),
    )


def estimate(ours: Summary, theirs: Summary) -> float:
    """In how many records two sets differ, more or less."""
    squares = []
    for one, other in zip(ours.counters, theirs.counters, strict=True):
        difference = (one - other + 32768) % 65536 - 32768
        squares.append((2 * difference - (ours.count - theirs.count)) ** 2)
    return sum(squares) / len(squares)


class Key:
    """What both hellos make, and whatever is counted under it."""

    def __init__(self, hello_0: Iterable[str], hello_1: Iterable[str]) -> None:
        blocks = ["".join(f"{line}\n" for line in sorted(set(lines), key=str.encode)) for lines in (hello_0, hello_1)]
        material = "\n".join(blocks).encode()
        self.bytes = blake3(material, derive_key_context="lace-differences/v1 key").digest()
        self.check, self.walk = (int.from_bytes(self.bytes[at : at + 8], "little") for at in (16, 24))

    def keyed_id(self, record: str) -> tuple[int, int]:
        """Short id and tail."""
        out = siphash(id_bytes(record), self.bytes[:16], 1, 3)
        return int.from_bytes(out[:8], "little"), int.from_bytes(out[8:], "little")

    def root(self, records: Iterable[str]) -> str:
        return b64a(blake3(self.bytes + tree(records), derive_key_context="lace-differences/v1 root").digest()[:16])

    def summary(self, records: Collection[str]) -> Summary:
        keyed = [self.keyed_id(record) for record in records]
        return Summary(
            len(keyed),
            sum(short for short, _ in keyed) & WORD,
            sum(tail for _, tail in keyed) & WORD,
            tuple(sum(tail >> bit & 1 for _, tail in keyed) % 65536 for bit in range(24)),
        )

    def check_of(self, short: int) -> int:
        return mix(short, self.check) >> 32

    def places(self, short: int, end: int) -> list[int]:
        """The places before `end` that an id takes."""
        places, state, at = [0], mix(short, self.walk) | 1, 0.0
        while True:
            at += math.ceil((65536.0 / math.sqrt((state >> 32) + 1.0) - 1.0) * (at + 1.5))
            if at >= end:
                return places if end else []
            places.append(int(at))
            state = state * 0xDA942042E4DD58B5 & WORD

    def symbols(self, records: Iterable[str], end: int) -> list[Symbol]:
        """The first symbols of a set."""
        symbols = [NOTHING] * end
        for record in records:
            short = self.keyed_id(record)[0]
            for place in self.places(short, end):
                symbols[place] = plus(symbols[place], (1, short, self.check_of(short)))
        return symbols

    def decode(self, difference: Sequence[Symbol]) -> tuple[set[int], set[int]] | None:
        """The short ids that only the first set has, and those that only the second has; None if it takes more."""
        left = list(difference)
        ours, theirs = set[int](), set[int]()
        look = list(range(len(left)))
        while look:
            count, total, check = left[look.pop()]
            for sign, found in ((1, ours), (-1, theirs)):
                short = sign * total & WORD
                if count == sign % 256 and check == sign * self.check_of(short) % (1 << 32):
                    if short in found or len(ours) + len(theirs) >= len(left):
                        return None
                    found.add(short)
                    one = (-sign % 256, -sign * short & WORD, -sign * self.check_of(short) % (1 << 32))
                    for place in self.places(short, len(left)):
                        left[place] = plus(left[place], one)
                        look.append(place)
                    break
        return None if any(symbol != NOTHING for symbol in left) else (ours, theirs)


def tree(records: Iterable[str]) -> bytes:
    parts: dict[int, list[bytes]] = {}
    for record in records:
        whole = id_bytes(record)
        parts.setdefault(int.from_bytes(whole[:2], "big") >> 4, []).append(whole)
    return blake3(b"".join(blake3(b"".join(sorted(parts.get(part, [])))).digest() for part in range(4096))).digest()


# --- symbols and short ids as texts ------------------------------------------------------------------------------


def plus(one: Symbol, other: Symbol) -> Symbol:
    return (one[0] + other[0]) % 256, (one[1] + other[1]) & WORD, (one[2] + other[2]) % (1 << 32)


def minus(one: Symbol, other: Symbol) -> Symbol:
    return (one[0] - other[0]) % 256, (one[1] - other[1]) & WORD, (one[2] - other[2]) % (1 << 32)


def symbols_text(symbols: Sequence[Symbol]) -> str:
    return b64a(
        b"".join(
            total.to_bytes(8, "big") + check.to_bytes(4, "big") + bytes([count]) for count, total, check in symbols
        )
    )


def symbols_of(text: str) -> list[Symbol]:
    data = bytes_of(text)
    assert len(data) % 13 == 0, text
    rows = [data[at : at + 13] for at in range(0, len(data), 13)]
    return [(row[12], int.from_bytes(row[:8], "big"), int.from_bytes(row[8:12], "big")) for row in rows]


def short_ids_text(short: Iterable[int]) -> str:
    return b64a(b"".join(one.to_bytes(8, "big") for one in short))


def short_ids_of(text: str) -> list[int]:
    data = bytes_of(text)
    assert len(data) % 8 == 0, text
    return [int.from_bytes(data[at : at + 8], "big") for at in range(0, len(data), 8)]
