"""Sets of made-up ids for tests, and SipHash as its paper tells it."""

from __future__ import annotations

import numpy as np

from lace.differences.ids import Ids, ids_of_digests
from lace.differences.keyed import derive_key

KEY = derive_key(b"HelloTAI('1')\n", b"HelloTAI('2')\n")
_LETTERS = np.frombuffer(b"BPS", np.uint8)
_MASK = (1 << 64) - 1


def random_ids(count: int, seed: int) -> Ids:
    """So many ids, the same for the same seed."""
    rng = np.random.default_rng(seed)
    return ids_of_digests(rng.integers(0, 256, (count, 32), dtype=np.uint8), _LETTERS[rng.integers(0, 3, count)])


def siphash(message: bytes, key: bytes, compress: int, finish: int) -> bytes:
    """SipHash with 128 bits of output, word by word."""
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
        v[0] = (v[0] + v[1]) & _MASK
        v[1] = _left(v[1], 13) ^ v[0]
        v[0] = _left(v[0], 32)
        v[2] = (v[2] + v[3]) & _MASK
        v[3] = _left(v[3], 16) ^ v[2]
        v[0] = (v[0] + v[3]) & _MASK
        v[3] = _left(v[3], 21) ^ v[0]
        v[2] = (v[2] + v[1]) & _MASK
        v[1] = _left(v[1], 17) ^ v[2]
        v[2] = _left(v[2], 32)


def _left(word: int, bits: int) -> int:
    return ((word << bits) | (word >> (64 - bits))) & _MASK
