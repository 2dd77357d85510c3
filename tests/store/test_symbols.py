"""The dictionary: dense codes, kept for ever, whatever keys collide."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lace.store.columns import schema
from lace.store.columns.segments import as_codes
from lace.store.columns.symbols import KEY_BITS, SymbolTable, _is_prime, keyed_hash, new_secret

words = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=6), unique=True, max_size=40)


@cache
def _empty() -> bytes:
    """A new database; finding a prime for each example would take most of their time."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    schema.migrate(connection)
    return connection.serialize()


def table_with(modulus: int | None) -> SymbolTable:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.deserialize(_empty())
    secret = connection.execute("SELECT index_key FROM state").fetchone()[0]
    if modulus is None:
        return SymbolTable(connection, keyed_hash(secret))

    def few_keys(texts: Iterable[str]) -> list[int]:
        return [sum(text.encode()) % modulus for text in texts]

    connection.execute("UPDATE symbol_index SET key = ?", (few_keys(["0"])[0],))
    return SymbolTable(connection, few_keys)


@pytest.mark.parametrize("modulus", [None, 1, 3, 50])
@given(batches=st.lists(words, max_size=6))
def test_texts_get_dense_codes_once_even_when_keys_collide(modulus: int | None, batches: list[list[str]]) -> None:
    table = table_with(modulus)
    expected = {"0": 0}
    for batch in batches:
        codes = table.assign(batch, len(expected))
        for text in batch:
            expected.setdefault(text, len(expected))
        assert codes == [expected[text] for text in batch]
    assert table.codes(list(expected)) == list(expected.values())
    table.forget()
    assert table.codes(list(expected)) == list(expected.values())
    assert table.texts(as_codes(expected.values())) == list(expected)
    assert table.codes(["\x01 never stored"]) == [-1]


def test_a_thousand_texts_cross_blocks() -> None:
    table = table_with(None)
    texts = [f"text {number}" for number in range(1000)]
    assert table.assign(texts[:700], 1) == list(range(1, 701))
    assert table.assign([*texts[600:], "0"], 701) == [*range(601, 1001), 0]
    assert table.texts(as_codes(range(1001))) == ["0", *texts]
    assert table.texts(as_codes([512, 1, 512])) == [texts[511], texts[0], texts[511]]


def test_two_stores_do_not_share_index_keys() -> None:
    secrets = {new_secret() for _ in range(20)}
    assert len({keyed_hash(secret)(["the same text"])[0] for secret in secrets}) == 20


def test_the_secret_of_an_index_is_a_prime_of_its_length() -> None:
    for _ in range(20):
        secret = int.from_bytes(new_secret(), "big")
        assert secret.bit_length() == KEY_BITS
        assert all(secret % divisor for divisor in range(3, 1 << 14, 2))
        assert all(pow(base, secret - 1, secret) == 1 for base in (2, 19, 23))


def test_no_composite_passes_for_a_prime() -> None:
    primes = {
        number
        for number in range(19, 2000, 2)
        if all(number % divisor for divisor in range(3, 45, 2) if divisor < number)
    }
    assert {number for number in range(19, 2000, 2) if _is_prime(number)} == primes
    assert not any(map(_is_prime, (3215031751, 2152302898747, 3474749660383)))  # strong pseudoprimes to 4, 5, 6 bases
