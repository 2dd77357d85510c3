"""Cursors of peers expire: by age, by number, by size, the oldest first."""

from __future__ import annotations

from pathlib import Path

import pytest

from lace.notation.tai import TAI
from lace.runtime.host.cursors import CURSORS, STAMPS, CursorBook, CursorLimits
from lace.store import MemoryStore, RecordStore, open_store


class Time:
    """A clock that is set."""

    def __init__(self) -> None:
        self.seconds = 1_800_000_000

    def __call__(self) -> TAI:
        return TAI(f"{self.seconds:010d}:000000000")


@pytest.fixture(params=["file", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> RecordStore:
    return MemoryStore() if request.param == "memory" else open_store(tmp_path / "a.lace", create=True)


def test_a_cursor_that_is_too_old_is_not_used_and_then_let_go(store: RecordStore) -> None:
    time = Time()
    book = CursorBook(store, time, CursorLimits(max_cursor_age_s=100))
    book.keep("a", b"claims")
    time.seconds += 100
    assert book.get("a") == b"claims"
    time.seconds += 1
    assert book.get("a") is None
    book.keep("b", b"others")
    assert store.settings(CURSORS) == {"b": b"others"}
    assert set(store.settings(STAMPS)) == {"b"}


def test_the_oldest_go_when_there_are_too_many(store: RecordStore) -> None:
    time = Time()
    book = CursorBook(store, time, CursorLimits(max_cursors=2))
    for key in "abca":
        time.seconds += 1
        book.keep(key, key.encode())
    assert store.settings(CURSORS) == {"a": b"a", "c": b"c"}


def test_the_oldest_go_when_they_are_too_large_and_one_that_never_fits_is_not_kept(store: RecordStore) -> None:
    time = Time()
    book = CursorBook(store, time, CursorLimits(max_kept_cursor_bytes=10))
    for key, size in (("a", 6), ("b", 4), ("c", 5)):
        time.seconds += 1
        book.keep(key, bytes(size))
    assert set(store.settings(CURSORS)) == {"b", "c"}
    book.keep("c", bytes(11))
    assert set(store.settings(CURSORS)) == {"b"}


def test_a_cursor_of_an_earlier_version_is_used_and_has_an_age_from_then_on(store: RecordStore) -> None:
    store.put_setting(CURSORS, "a", b"old")
    book = CursorBook(store, Time())
    assert book.get("a") == b"old"
    assert book.get("") is None
    book.keep("b", b"new")
    assert book.get("a") == b"old"


def test_failing_to_keep_a_cursor_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / "a.lace"
    open_store(path, create=True).close()
    with open_store(path, read_only=True) as store:
        CursorBook(store, Time()).keep("a", b"x")
        assert store.settings(CURSORS) == {}
