"""BLAKE3 in plain Python gives what the compiled library gives."""

from __future__ import annotations

import pytest
from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st

from lace.notation.plainblake3 import IV, PARENT, PlainBlake3, chunk, compress, subtree
from tries import tries

# The lengths around which trees change their shape, after the test vectors that are published with BLAKE3: input byte
# i is i modulo 251.
LENGTHS = [0, 1, 63, 64, 65, 127, 128, 1023, 1024, 1025, 2048, 2049, 3072, 3073, 4096, 4097, 5121, 6145, 8193, 31745]


@pytest.mark.parametrize("length", LENGTHS)
def test_every_shape_of_tree_hashes_as_the_library_does(length: int) -> None:
    data = bytes(index % 251 for index in range(length))
    assert PlainBlake3(data).digest() == blake3(data).digest()
    assert PlainBlake3(data).digest(131) == blake3(data).digest(131)
    derived = PlainBlake3(data, derive_key_context="lace 2026 tests")
    assert derived.digest(40) == blake3(data, derive_key_context="lace 2026 tests").digest(40)


# Chunks that are compressed together: 4, 128 and what is between, before and after, one byte more and one less.
KIB, MIB = 1 << 10, 1 << 20
LONG = [3 * KIB + 1, 4 * KIB, 4 * KIB + 1, 8 * KIB + 1, 100 * KIB + 7, 128 * KIB + 1, 129 * KIB, MIB + 1]


@pytest.mark.parametrize("length", LONG)
def test_many_chunks_at_once_hash_as_one_by_one(length: int) -> None:
    data = bytes(length - 300) + bytes(index % 251 for index in range(300))
    assert PlainBlake3(data).digest() == blake3(data).digest()
    parts = PlainBlake3(data[:1500], derive_key_context="lace 2026 tests")  # so that later subtrees begin elsewhere
    parts.update(data[1500:5000]).update(data[5000:])
    assert parts.digest(40) == blake3(data, derive_key_context="lace 2026 tests").digest(40)


def test_chunks_are_counted_beyond_32_bits() -> None:
    """Four tebibytes were fed before, as far as a chunk can tell; its lane knows both halves of its number."""
    data = bytes(range(256)) * 16
    wide = subtree(IV, data, (1 << 32) - 2, 0)
    nodes = [chunk(IV, data[at : at + 1024], (1 << 32) - 2 + at // 1024, 0).chain() for at in range(0, 4096, 1024)]
    pairs = [compress(IV, (*nodes[at], *nodes[at + 1]), 0, 64, PARENT)[:8] for at in (0, 2)]
    assert wide == compress(IV, (*pairs[0], *pairs[1]), 0, 64, PARENT)[:8]


def test_the_empty_hash_is_the_published_one() -> None:
    published = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"
    assert PlainBlake3().digest().hex() == published


@tries(40)
@given(st.lists(st.binary(max_size=1500), max_size=6))
def test_pieces_hash_as_the_whole_and_a_reset_forgets(pieces: list[bytes]) -> None:
    fed = PlainBlake3(b"forgotten")
    fed.reset()
    for piece in pieces:
        fed.update(piece)
        fed.digest()  # looking does not change what follows
    assert fed.digest() == blake3(b"".join(pieces)).digest()
