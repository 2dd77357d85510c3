"""Find records by the words of their coordinates, headers and text (110): `lace find`, `lace index`.

Rule: a lace is searched only if somebody asked for it; then every put and every delete keeps its words right in the
same transaction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from lace.errors import StoreError
from lace.notation.identifiers import RecordHash
from lace.store.base import StoreRecordId
from lace.store.search import SearchedStore


class HasAnyStore(Protocol):
    """A lace, as far as a search needs it."""

    @property
    def store(self) -> object: ...


def is_searched(lace: HasAnyStore) -> bool:
    """Whether records of a lace can be found by words."""
    return isinstance(lace.store, SearchedStore) and lace.store.is_searched


def index(lace: HasAnyStore, told: Callable[[int], None] | None = None) -> int:
    """Make the words of a lace, anew if they are there; from then on they follow every change. How many records."""
    return _searched(lace).index_words(told or _unheard)


def forget(lace: HasAnyStore) -> bool:
    """Keep the words of a lace no longer; whether it had any."""
    return _searched(lace).forget_words()


def find(
    lace: HasAnyStore, question: str, *, before: int | None = None, limit: int = 50
) -> list[tuple[StoreRecordId, RecordHash]]:
    """Records that hold every word, the last that came first; `before` an id goes on where a page ended.

    A word may end in `*` for a beginning, "several words" are a phrase, and `name:`, `headers:` or `content:` before a
    word says where it has to stand.
    """
    return _searched(lace).find_words(question, before=before, limit=limit)


def _searched(lace: HasAnyStore) -> SearchedStore:
    if not isinstance(lace.store, SearchedStore):
        raise StoreError("only a lace in a file can be searched")
    return lace.store


def _unheard(_: int) -> None:
    """Progress that nobody looks at."""
