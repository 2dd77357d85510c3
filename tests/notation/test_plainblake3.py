"""BLAKE3 in plain Python gives what the compiled library gives."""

from __future__ import annotations

import pytest
from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st

from lace.notation.plainblake3 import PlainBlake3
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
