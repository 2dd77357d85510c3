"""The dictionary: dense codes, kept for ever, whatever keys collide."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterable
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lace.store.columns import schema
from lace.store.columns.bulkkeys import bulk_keys, packed_in_order
from lace.store.columns.segments import as_codes
from lace.store.columns.symbols import BULK, KEY_BITS, SymbolTable, _is_prime, keyed_hash, new_secret, plain_keys

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


@given(st.lists(st.tuples(st.text(max_size=70), st.sampled_from([1, 2, 300])), max_size=8), st.integers(0, 9))
def test_keys_of_many_texts_are_those_of_each(shapes: list[tuple[str, int]], seed: int) -> None:
    """Several lengths, rare and frequent, in any order; texts with a separator too."""
    texts = [text[: len(text) - number % 2] + str(number) for text, count in shapes for number in range(count)]
    random.Random(seed).shuffle(texts)
    encodable = [text.encode("utf-8", "replace").decode() for text in texts]
    prime = int.from_bytes(new_secret(), "big")
    assert list(bulk_keys(encodable, prime)) == plain_keys(encodable, prime)
    assert packed_in_order(bulk_keys(encodable, prime), 16) == sorted(
        key << 16 | at for at, key in enumerate(plain_keys(encodable, prime))
    )


def test_keys_of_long_texts_do_not_overflow() -> None:
    prime = (1 << KEY_BITS) - 17
    texts = ["\x7f" * length + chr(97 + number % 26) for length in (1023, 4096, 9000) for number in range(300)]
    assert list(bulk_keys(texts, prime)) == plain_keys(texts, prime)


def test_a_batch_long_enough_for_numpy_gets_the_codes_of_a_short_one() -> None:
    table = table_with(None)
    texts = [f"x{'long' * (number % 7)}{number}" for number in range(2 * BULK)]
    assert table.assign(texts, 1) == list(range(1, len(texts) + 1))
    assert table.assign([*texts[:BULK], *(f"new {number}" for number in range(BULK))], len(texts) + 1) == [
        *range(1, BULK + 1), *range(len(texts) + 1, len(texts) + 1 + BULK)
    ]  # fmt: skip
    table.forget()
    assert table.look_up(texts[-3:]) == list(range(len(texts) - 2, len(texts) + 1))
    assert table.look_up(texts) == list(range(1, len(texts) + 1))
