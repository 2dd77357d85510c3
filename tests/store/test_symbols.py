"""The dictionary: dense codes, kept for ever, whatever keys collide."""

from __future__ import annotations

import random
import sqlite3
import tracemalloc
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lace.errors import StoreDamaged
from lace.store import open_store
from lace.store.columns.dictionary.bulk import bulk_keys
from lace.store.columns.dictionary.keyindex import KEY_BITS
from lace.store.columns.dictionary.symbols import SymbolTable, is_prime, keyed_hash, new_secret, plain_keys
from lace.store.columns.segments.segment import as_codes
from lace.store.columns.tables import schema
from lace.thresholds import StoreThresholds

USUAL = StoreThresholds()
BULK = USUAL.bulk_texts

words = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=6), unique=True, max_size=40)


@cache
def _empty() -> bytes:
    """A new database; finding a prime for each example would take most of their time."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    schema.migrate(connection)
    return connection.serialize()


def connection_of(serialized: bytes) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.deserialize(serialized)
    return connection


def table_with(
    modulus: int | None, thresholds: StoreThresholds = USUAL, connection: sqlite3.Connection | None = None
) -> SymbolTable:
    connection = connection or connection_of(_empty())
    secret = connection.execute("SELECT index_key FROM state").fetchone()[0]
    if modulus is None:
        return SymbolTable(connection, keyed_hash(secret, thresholds), thresholds)

    def few_keys(texts: Iterable[str]) -> list[int]:
        return [sum(text.encode()) % modulus for text in texts]

    connection.execute("UPDATE symbol_index SET key = ?", (few_keys(["0"])[0],))
    return SymbolTable(connection, few_keys, thresholds)


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


def test_texts_of_many_blocks_are_read_a_few_blocks_at_a_time() -> None:
    table, count = table_with(None), 40_000
    texts = ["0", *(f"a text of some length, number {number}" for number in range(count))]
    table.assign(texts[1:], 1)
    table.forget()
    for codes in (range(0, count, 37), range(count, 0, -7), range(count + 1), [5, 5, 20_000, 39_999]):
        assert table.texts(as_codes(codes)) == [texts[code] for code in codes]
    peaks: list[int] = []
    for codes in (range(0, count, 37), range(count, 0, -37)):  # in order, and the other way round
        table.forget()
        tracemalloc.start()
        table.texts(as_codes(codes))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[0] * 2 < peaks[1]


@given(runs=st.lists(st.tuples(st.integers(0, 1000), st.integers(1, 600)), max_size=6))
def test_lines_are_the_texts_whether_blocks_are_asked_for_whole_or_in_parts(runs: list[tuple[int, int]]) -> None:
    table = table_with(None)
    table.assign([f"text {number} é" for number in range(1000)], 1)
    codes = as_codes(code for start, length in runs for code in range(start, min(start + length, 1001)))
    assert table.lines(codes).decode() == "".join(f"{text}\n" for text in table.texts(codes))


def test_a_code_without_a_text_gives_no_lines() -> None:
    table = table_with(None)
    table.assign([f"text {number}" for number in range(300)], 1)
    for code in (301, 2000):
        with pytest.raises(StoreDamaged):
            table.lines(as_codes([1, code]))


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
    assert {number for number in range(19, 2000, 2) if is_prime(number)} == primes
    assert not any(map(is_prime, (3215031751, 2152302898747, 3474749660383)))  # strong pseudoprimes to 4, 5, 6 bases


@given(st.lists(st.tuples(st.text(max_size=70), st.sampled_from([1, 2, 300])), max_size=8), st.integers(0, 9))
def test_keys_of_many_texts_are_those_of_each(shapes: list[tuple[str, int]], seed: int) -> None:
    """Several lengths, rare and frequent, in any order; texts with a separator too."""
    texts = [text[: len(text) - number % 2] + str(number) for text, count in shapes for number in range(count)]
    random.Random(seed).shuffle(texts)
    encodable = [text.encode("utf-8", "replace").decode() for text in texts]
    prime = int.from_bytes(new_secret(), "big")
    assert list(bulk_keys(encodable, prime, USUAL.matrix_texts)) == plain_keys(encodable, prime)


def test_keys_of_long_texts_do_not_overflow() -> None:
    prime = (1 << KEY_BITS) - 17
    texts = ["\x7f" * length + chr(97 + number % 26) for length in (1023, 4096, 9000) for number in range(300)]
    assert list(bulk_keys(texts, prime, USUAL.matrix_texts)) == plain_keys(texts, prime)


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


def short_runs(bulk: int, fanout: int = 2, looked_up_pages: int = 256, held: int = 1 << 23) -> StoreThresholds:
    """Batches of `bulk` texts are runs already, folded two by two."""
    return StoreThresholds(
        bulk_texts=bulk, run_fanout=fanout, run_page_keys=3, looked_up_pages=looked_up_pages, held_run_keys=held
    )


@pytest.mark.parametrize("few_pages", [0, 1_000_000])
@pytest.mark.parametrize("modulus", [None, 1, 3, 50])
@given(batches=st.lists(words, max_size=8), bulk=st.integers(1, 12))
def test_a_dictionary_with_runs_says_what_one_without_says(
    modulus: int | None, few_pages: int, batches: list[list[str]], bulk: int
) -> None:
    """Long batches and short ones in any order, keys that meet in runs and in the tree, searched either way."""
    table = table_with(modulus, short_runs(bulk, looked_up_pages=few_pages))
    plain = table_with(modulus, StoreThresholds(bulk_texts=1_000_000))
    expected = {"0": 0}
    for batch in batches:
        assert table.assign(batch, len(expected)) == plain.assign(batch, len(expected))
        for text in batch:
            expected.setdefault(text, len(expected))
        assert table.indexed == plain.indexed == len(expected)
        if few_pages:
            table.forget()  # so that pages are looked at
        assert table.look_up(list(expected)) == list(expected.values())
        assert table.look_up(["\x01 never stored"]) == [-1]


def test_runs_of_a_size_become_one_and_the_tree_moves_into_them() -> None:
    connection = connection_of(_empty())
    table = table_with(None, short_runs(10, fanout=8), connection)

    def runs() -> list[int]:
        return [keys for (keys,) in connection.execute("SELECT keys FROM symbol_runs ORDER BY run")]

    def in_tree() -> int:
        return int(connection.execute("SELECT count(*) FROM symbol_index").fetchone()[0])

    codes = 1
    for batch in range(7):
        table.assign([f"{batch}/{number}" for number in range(10)], codes)
        codes += 10
    assert (runs(), in_tree()) == ([11, *[10] * 6], 0)  # code 0 was in the tree
    table.assign(["a", "b"], codes)
    assert (len(runs()), in_tree()) == (7, 2)
    table.assign([f"7/{number}" for number in range(10)], codes + 2)
    assert (runs(), in_tree()) == ([83], 0)
    assert connection.execute("SELECT sum(length(entries)) FROM symbol_pages").fetchone() == (83 * 12,)
    assert table.look_up(["0", "3/3", "a", "7/9"]) == [0, 34, 71, 82]


def test_runs_of_a_transaction_that_was_rolled_back_are_forgotten() -> None:
    connection = connection_of(_empty())
    table = table_with(None, short_runs(4), connection)
    table.assign(list("abcd"), 1)
    connection.execute("BEGIN")
    table.assign(list("efgh"), 5)
    connection.execute("ROLLBACK")
    table.forget()
    assert table.assign(list("ijkl"), 5) == [5, 6, 7, 8]
    assert table.look_up(list("aei")) == [1, -1, 5]


def test_runs_that_another_connection_wrote_are_seen(tmp_path: Path) -> None:
    thresholds = StoreThresholds(bulk_texts=4, run_fanout=3)
    path = tmp_path / "a.lace"
    open_store(path, create=True).close()
    both = [sqlite3.connect(path, isolation_level=None) for _ in range(2)]
    secret = both[0].execute("SELECT index_key FROM state").fetchone()[0]
    tables = [SymbolTable(connection, keyed_hash(secret, thresholds), thresholds) for connection in both]
    texts = [f"text {number}" for number in range(60)]
    for turn in range(0, 60, 5):  # by turns, each batch with one text that the other wrote
        known = texts[turn - 1 : turn] if turn else []
        assert tables[turn % 2].assign([*texts[turn : turn + 5], *known], turn + 1) == [
            *range(turn + 1, turn + 6), *([turn] if turn else [])
        ]  # fmt: skip
    for table in tables:
        assert table.look_up(texts) == list(range(1, 61))
        assert table.indexed == 61
    for connection in both:
        connection.close()


def test_more_runs_than_are_held_are_read_as_they_are_searched() -> None:
    table = table_with(None, short_runs(10, fanout=100, held=15))
    texts = [f"text {number}" for number in range(50)]
    for start in range(0, 50, 10):
        table.assign(texts[start : start + 10], start + 1)
    assert table.look_up(texts) == list(range(1, 51))
    assert table.assign([*texts[40:], "new"], 51) == [*range(41, 51), 51]


@pytest.mark.parametrize("entries", [b"x", "text", b"x" * 13])
@pytest.mark.parametrize("few_pages", [0, 256])
def test_a_damaged_page_is_no_answer(few_pages: int, entries: bytes | str) -> None:
    connection = connection_of(_empty())
    table = table_with(None, short_runs(4, looked_up_pages=few_pages), connection)
    table.assign(list("abcd"), 1)
    table.forget()
    connection.execute("UPDATE symbol_pages SET entries = ?", (entries,))
    with pytest.raises(StoreDamaged, match="index of values"):
        table.look_up(["a", "b"])


@pytest.mark.parametrize("few_pages", [0, 256])
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE symbol_pages SET entries = CAST(x'01' || substr(entries, 2) AS BLOB)",
        "UPDATE symbol_pages SET id = id + 1", "UPDATE symbol_runs SET keys = keys + 1",
        "UPDATE symbol_runs SET run = run + 1",
    ],
)  # fmt: skip
def test_a_page_or_a_list_of_runs_that_changed_is_no_answer(few_pages: int, statement: str) -> None:
    connection = connection_of(_empty())
    table = table_with(None, short_runs(4, looked_up_pages=few_pages), connection)
    table.assign(list("abc"), 1)
    table.assign([f"text {number}" for number in range(40)], 4)
    table.forget()
    connection.execute(statement)
    with pytest.raises(StoreDamaged, match="index of values"):
        table.look_up([f"text {number}" for number in range(40)])


def test_a_run_that_lost_a_page_is_no_answer_to_many_questions() -> None:
    connection = connection_of(_empty())
    table = table_with(None, short_runs(4, looked_up_pages=0), connection)
    table.assign(list("abcdefgh"), 1)
    table.forget()
    connection.execute("DELETE FROM symbol_pages WHERE id = (SELECT max(id) FROM symbol_pages)")
    with pytest.raises(StoreDamaged, match="index of values"):
        table.look_up(["a"])
