"""The dictionary of a store: value text ↔ dense code.

Rule: a code, once committed, means its text for ever. The index is on a keyed hash of the text, not on the text:
small entries, and nobody who writes records can choose which keys meet.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from typing import Any, Generic, TypeVar

from lace.datalog.source import Codes
from lace.store.encode import SEPARATOR
from lace.store.segments import as_codes

BLOCK_BITS = 8
BLOCK = 1 << BLOCK_BITS
KEY_BYTES = 6
KEYS_PER_QUERY = 500
CACHED_TEXTS = 1 << 15
CACHED_BLOCKS = 512
KeyFunction = Callable[[str], int]
K = TypeVar("K")
V = TypeVar("V")


def keyed_hash(secret: bytes) -> KeyFunction:
    """The index key of a text under a store's own secret."""
    base = blake2b(digest_size=KEY_BYTES, key=secret)

    def key_of(text: str) -> int:
        state = base.copy()
        state.update(text.encode())
        return int.from_bytes(state.digest(), "little")

    return key_of


class RecentlyUsed(Generic[K, V]):
    """A bounded cache in two generations: what is used stays, the rest is forgotten a generation at a time."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._young: dict[K, V] = {}
        self._old: dict[K, V] = {}

    def get(self, key: K) -> V | None:
        value = self._young.get(key)
        if value is None and (value := self._old.get(key)) is not None:
            self.put(key, value)
        return value

    def put(self, key: K, value: V) -> None:
        if len(self._young) >= self._limit:
            self._old, self._young = self._young, {}
        self._young[key] = value

    def clear(self) -> None:
        self._young.clear()
        self._old.clear()


class SymbolTable:
    """The dictionary in a store file; its caller holds the connection's lock and transaction."""

    def __init__(self, connection: sqlite3.Connection, key_of: KeyFunction) -> None:
        self._connection = connection
        self._key_of = key_of
        self._codes: RecentlyUsed[str, int] = RecentlyUsed(CACHED_TEXTS)
        self._blocks: RecentlyUsed[int, list[str]] = RecentlyUsed(CACHED_BLOCKS)

    def forget(self) -> None:
        """Drop what is cached: a transaction that gave out codes was rolled back."""
        self._codes.clear()
        self._blocks.clear()

    def texts(self, codes: Codes) -> list[str]:
        """The text of each code; every code must have one."""
        numbers = {code >> BLOCK_BITS for code in codes}
        blocks = self._load(numbers, max(codes, default=0))
        return [blocks[code >> BLOCK_BITS][code & (BLOCK - 1)] for code in codes]

    def _load(self, numbers: set[int], highest: int) -> dict[int, list[str]]:
        """Blocks by number; a cached block may be older than its latest texts, so the last one is read again."""
        blocks = {}
        for number in numbers if len(numbers) <= CACHED_BLOCKS else ():
            cached = self._blocks.get(number)
            if cached is not None and (len(cached) == BLOCK or len(cached) > highest - (number << BLOCK_BITS)):
                blocks[number] = cached
        missing = sorted(numbers - blocks.keys())
        for number, data in self._select("SELECT block, texts FROM symbol_blocks WHERE block IN", missing):
            blocks[number] = data.decode().split(SEPARATOR)
            if len(missing) <= CACHED_BLOCKS:
                self._blocks.put(number, blocks[number])
        return blocks

    def codes(self, texts: Sequence[str]) -> list[int]:
        """The code of each text, -1 where it has none."""
        return self._known_and_free(texts)[0]

    def _known_and_free(self, texts: Sequence[str]) -> tuple[list[int], dict[str, int]]:
        """The code of each text or -1, and for those without one the first key that the index has free."""
        known = [self._codes.get(text) for text in texts]
        found, free = self._find([text for text, code in zip(texts, known, strict=True) if code is None])
        return [found.get(text, -1) if code is None else code for text, code in zip(texts, known, strict=True)], free

    def _find(self, texts: Sequence[str]) -> tuple[dict[str, int], dict[str, int]]:
        """Codes of texts by the index; a key taken by another text is followed to the next key."""
        found: dict[str, int] = {}
        free: dict[str, int] = {}
        waiting = [(self._key_of(text), text) for text in texts]
        while waiting:
            taken = self._taken(key for key, _ in waiting)
            free.update((text, key) for key, text in waiting if key not in taken)
            candidates = [(key, text, taken[key]) for key, text in waiting if key in taken]
            stored = self.texts(as_codes(code for _, _, code in candidates))
            waiting = []
            for (key, text, code), stored_text in zip(candidates, stored, strict=True):
                if stored_text == text:
                    found[text] = code
                    self._codes.put(text, code)
                else:
                    waiting.append((key + 1, text))
        return found, free

    def _taken(self, keys: Iterable[int]) -> dict[int, int]:
        return dict(self._select("SELECT key, code FROM symbol_index WHERE key IN", sorted(keys)))

    def _select(self, query: str, values: Sequence[int]) -> Iterable[tuple[int, Any]]:
        for start in range(0, len(values), KEYS_PER_QUERY):
            part = values[start : start + KEYS_PER_QUERY]
            yield from self._connection.execute(f"{query} ({','.join(map(str, part))})")

    def assign(self, texts: Sequence[str], next_code: int) -> list[int]:
        """The code of each of some distinct texts; new ones get codes from `next_code` on, in their order."""
        codes, free = self._known_and_free(texts)
        if not free:
            return codes
        numbered = dict(zip(free, range(next_code, next_code + len(free)), strict=True))
        self._append(list(numbered), next_code)
        self._insert_keys([(free[text], code) for text, code in numbered.items()])
        for text, code in numbered.items():
            self._codes.put(text, code)
        return [numbered[text] if code < 0 else code for text, code in zip(texts, codes, strict=True)]

    def _append(self, texts: list[str], next_code: int) -> None:
        number, filled = next_code >> BLOCK_BITS, next_code & (BLOCK - 1)
        if filled:
            row = self._connection.execute("SELECT texts FROM symbol_blocks WHERE block = ?", (number,)).fetchone()
            texts = row[0].decode().split(SEPARATOR) + texts
        rows = [
            (number + at // BLOCK, SEPARATOR.join(texts[at : at + BLOCK]).encode())
            for at in range(0, len(texts), BLOCK)
        ]
        self._connection.executemany("INSERT OR REPLACE INTO symbol_blocks VALUES (?, ?)", rows)

    def _insert_keys(self, waiting: list[tuple[int, int]]) -> None:
        """Index new codes, each under the first free key from its own on; all the given keys are free now."""
        placed: dict[int, int] = {}
        while waiting:
            displaced = {key + 1: code for key, code in waiting if placed.setdefault(key, code) != code}
            waiting = []
            while displaced:
                taken = self._taken(displaced)
                waiting += [(key, code) for key, code in displaced.items() if key not in taken]
                displaced = {key + 1: code for key, code in displaced.items() if key in taken}
        self._connection.executemany("INSERT INTO symbol_index VALUES (?, ?)", sorted(placed.items()))
