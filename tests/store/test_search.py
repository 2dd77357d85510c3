"""Words of records: found from the moment they are stored until the moment they are gone."""

from __future__ import annotations

import re
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lace
from lace.errors import StoreError
from lace.porcelain.search import find, forget, index, is_searched
from lace.store import SQLiteStore
from lace.store.search import MAX_TEXT_BYTES, match_expression, words_of
from tries import tries

WORDS = ("power", "broker", "straße", "Ørsted", "reading", "a", "42", "state")


def tokens(text: str) -> set[str]:
    """What the index takes for words: letters and digits, without case and marks."""
    plain = "".join(c for c in unicodedata.normalize("NFD", text.lower()) if not unicodedata.combining(c))
    return set(re.findall(r"[^\W_]+", plain))


def naive(opened: lace.Lace, word: str) -> set[str]:
    """The records that hold a word, by reading all of them."""
    wanted = tokens(word)
    found = set()
    for _, record in opened.store.records_since():
        body = opened.store.get(record)
        assert body is not None
        if wanted <= tokens(" ".join(words_of(body))):
            found.add(str(record))
    return found


def hashes(opened: lace.Lace, question: str) -> list[str]:
    return [str(record) for _, record in find(opened, question, limit=1000)]


@tries(10)
@given(
    actions=st.lists(
        st.tuples(st.booleans(), st.lists(st.sampled_from(WORDS), min_size=1, max_size=4), st.integers(0, 30)),
        max_size=25,
    ),
    indexed_at=st.integers(0, 15),
)
def test_words_find_what_reading_everything_finds(
    tmp_path_factory: pytest.TempPathFactory, actions: list[tuple[bool, list[str], int]], indexed_at: int
) -> None:
    """Whenever the index was begun, and whatever came and went before and after."""
    with lace.open(tmp_path_factory.mktemp("s") / "s.lace", create=True) as opened:
        stored: list[str] = []
        for step, (is_put, words, number) in enumerate(actions):
            if step == indexed_at:
                index(opened)
            if is_put or not stored:
                text = " ".join(words)
                stored.append(opened.put(text.encode(), group="g", app="a", name=f"n{number}", headers={"Title": text}))
            else:
                opened.delete(stored.pop(number % len(stored)))
        if indexed_at >= len(actions):
            index(opened)
        for word in WORDS:
            assert set(hashes(opened, word)) == naive(opened, word), word
        assert opened.store.check_integrity() == []


def test_what_came_last_is_first_and_pages_go_on(tmp_path: Path) -> None:
    with lace.open(tmp_path / "s.lace", create=True) as opened:
        index(opened)
        put = [opened.put(b"common", group="g", app="a", name=f"n{number}") for number in range(7)]
        seen: list[str] = []
        before = None
        while page := find(opened, "common", before=before, limit=3):
            seen += [str(record) for _, record in page]
            before = page[-1][0]
        assert seen == put[::-1]


def test_questions_name_where_and_how(tmp_path: Path) -> None:
    with lace.open(tmp_path / "s.lace", create=True) as opened:
        index(opened)
        first = opened.put(b"the power broker", group="g", app="a", name="books/caro")
        second = opened.put(b"broker of power", group="g", app="a", name="power/grid", headers={"Title": "Energy"})
        assert set(hashes(opened, "power broker")) == {first, second}
        assert hashes(opened, '"power broker"') == [first]
        assert hashes(opened, "name:power") == [second]
        assert hashes(opened, "headers:energy") == [second]
        assert hashes(opened, "content:energy") == []
        assert hashes(opened, "car*") == [first]
        assert hashes(opened, "") == []


@pytest.mark.long
@given(question=st.text(max_size=80))
def test_no_question_is_an_error(question: str) -> None:
    import sqlite3

    expression = match_expression(question)
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE s USING fts5(name, headers, content)")
    if expression:
        connection.execute("SELECT rowid FROM s WHERE s MATCH ?", (expression,)).fetchall()
    connection.close()


def test_bytes_and_long_texts_are_taken_as_far_as_they_are_text(tmp_path: Path) -> None:
    with lace.open(tmp_path / "s.lace", create=True) as opened:
        index(opened)
        opened.put(b"\xff\xfe secret", group="g", app="a", name="raw")
        long = opened.put(
            b"x " * (MAX_TEXT_BYTES // 2 - 1) + "é".encode() * 10 + b" late", group="g", app="a", name="long"
        )
        assert hashes(opened, "secret") == []
        assert hashes(opened, "late") == []
        assert hashes(opened, "name:long") == [long]
        opened.delete(long)
        assert hashes(opened, "x") == []


def test_it_is_opt_in_and_can_be_given_up(tmp_path: Path) -> None:
    with lace.open(tmp_path / "s.lace", create=True) as opened:
        opened.put(b"word", group="g", app="a", name="n")
        assert not is_searched(opened)
        with pytest.raises(StoreError, match="lace index"):
            find(opened, "word")
        assert index(opened) == 1
        assert is_searched(opened)
        assert forget(opened)
        assert not forget(opened)
        assert not is_searched(opened)
    with lace.open(":memory:") as volatile, pytest.raises(StoreError, match="in a file"):
        index(volatile)


@pytest.mark.long
def test_another_process_keeps_the_words_right(tmp_path: Path) -> None:
    path = tmp_path / "s.lace"
    with lace.open(path, create=True) as opened:
        opened.put(b"before", group="g", app="a", name="n")  # this process has written before the index was there
        words = [sys.executable, "-m", "lace.cli"]
        assert subprocess.run([*words, "index", str(path)], capture_output=True, timeout=60).returncode == 0
        opened.put(b"after", group="g", app="a", name="m")
        assert len(hashes(opened, "after")) == 1
        done = subprocess.run(
            [*words, "find", str(path), "after", "--json"], capture_output=True, text=True, timeout=60
        )
        assert '"Name": "m"' in done.stdout
        assert subprocess.run([*words, "find", str(path), "never"], capture_output=True, timeout=60).returncode == 1


def test_a_batch_that_fails_leaves_no_words(tmp_path: Path) -> None:
    with lace.open(tmp_path / "s.lace", create=True) as opened:
        index(opened)
        store = opened.store
        assert isinstance(store, SQLiteStore)
        fail = "CREATE TEMP TRIGGER fail BEFORE INSERT ON segments BEGIN SELECT RAISE(ABORT, 'the disk is gone'); END"
        store.file.connection.execute(fail)  # words are written before segments are
        with pytest.raises(StoreError, match="the disk is gone"):
            opened.put(b"never", group="g", app="a", name="n")
        store.file.connection.execute("DROP TRIGGER fail")
        assert hashes(opened, "never") == []
        assert store.check_integrity() == []


def test_an_index_that_lost_records_is_noticed(tmp_path: Path) -> None:
    import sqlite3

    path = tmp_path / "s.lace"
    with lace.open(path, create=True) as opened:
        index(opened)
        opened.put(b"word", group="g", app="a", name="n")
    connection = sqlite3.connect(path)
    connection.execute("DELETE FROM search_docsize")
    connection.commit()
    connection.close()
    with lace.open(path) as opened:
        assert any("lace index" in problem for problem in opened.store.check_integrity())
        index(opened)
        assert opened.store.check_integrity() == []
