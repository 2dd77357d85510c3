"""Find records by the words of their coordinates, headers and text (110): `lace find`, `lace index`.

Rule: a lace has an index only if somebody asked for one; then every put and delete updates it in the same transaction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from lace.errors import StoreError
from lace.notation.identifiers import RecordHash
from lace.store.base import StoreRecordId
from lace.store.search import SearchedStore


class HasAnyStore(Protocol):
    """The part of a lace that a search needs."""

    @property
    def store(self) -> object: ...


def is_searched(lace: HasAnyStore) -> bool:
    """Whether records of a lace can be found by words."""
    return isinstance(lace.store, SearchedStore) and lace.store.is_searched


def index(lace: HasAnyStore, told: Callable[[int], None] | None = None) -> int:
    """Build or rebuild the index of a lace, which then follows every change; return how many records it covers."""
    return _searched(lace).index_words(told or _unheard)


def forget(lace: HasAnyStore) -> bool:
    """Remove the index of a lace; return whether it had one."""
    return _searched(lace).forget_words()


def find(
    lace: HasAnyStore, question: str, *, before: int | None = None, limit: int = 50
) -> list[tuple[StoreRecordId, RecordHash]]:
    """Records that contain every word, the most recently stored first; `before` is the id at which a page ended.

    A word that ends in `*` matches words that begin so, "several words" are a phrase, and `name:`, `headers:` or
    `content:` before a word says where it must occur.
    """
    return _searched(lace).find_words(question, before=before, limit=limit)


def _searched(lace: HasAnyStore) -> SearchedStore:
    if not isinstance(lace.store, SearchedStore):
        raise StoreError("only a lace in a file can be searched")
    return lace.store


def _unheard(_: int) -> None:
    """Ignore progress."""
