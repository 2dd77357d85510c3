"""Secrets under a passphrase: they come back whole or not at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lace.errors import InvalidText, KeyUnavailable
from lace.runtime.identity.passphrase import Sealed, SealingCost

CHEAP = SealingCost(log_n=4, r=1, p=1)
SECRET = bytes(range(32))


@given(st.binary(min_size=32, max_size=32), st.text(min_size=1).filter(lambda text: text.isprintable()))
def test_a_secret_comes_back_with_its_passphrase_and_through_its_text(secret: bytes, passphrase: str) -> None:
    sealed = Sealed.make(secret, passphrase, CHEAP)
    assert Sealed.parse(str(sealed)) == sealed
    assert sealed.open(passphrase) == secret
    assert sealed.open(passphrase + "x") is None


@given(st.integers(0, 63), st.integers(0, 7))
def test_a_changed_bit_opens_nothing(at: int, bit: int) -> None:
    sealed = Sealed.make(SECRET, "a", CHEAP)
    body = bytearray(sealed.body)
    body[at] ^= 1 << bit
    assert Sealed(CHEAP, sealed.salt, bytes(body)).open("a") is None
    assert Sealed(SealingCost(log_n=5, r=1), sealed.salt, sealed.body).open("a") is None
    assert Sealed(CHEAP, bytes(16), sealed.body).open("a") is None


def test_equal_secrets_under_equal_passphrases_look_different() -> None:
    assert Sealed.make(SECRET, "a", CHEAP).body != Sealed.make(SECRET, "a", CHEAP).body


@pytest.mark.parametrize(
    "text",
    [
        "",
        "scrypt",
        "argon 4 1 1 x y",
        "scrypt 63 8 1 {0}",
        "scrypt 4 99 1 {0}",
        "scrypt 4 8 99 {0}",
        "scrypt -4 8 1 {0}",
    ],
)
def test_numbers_that_would_cost_too_much_are_not_tried(text: str) -> None:
    rest = " ".join(str(Sealed.make(SECRET, "a", CHEAP)).split(" ")[4:])
    with pytest.raises(InvalidText):
        Sealed.parse(text.format(rest))


def test_an_empty_passphrase_locks_nothing() -> None:
    with pytest.raises(KeyUnavailable):
        Sealed.make(SECRET, "")
