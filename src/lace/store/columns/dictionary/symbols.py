"""The dictionary of a store: value text ↔ dense code.

Rule: a code, once committed, always means its text. The index is on a keyed hash of the text, not on the text:
small entries, and nobody who writes records can choose which keys meet.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from itertools import count, pairwise
from typing import Any

from lace.datalog.source import Codes
from lace.store.columns.dictionary.keyindex import KEY_BITS, KeyIndex
from lace.store.columns.segments.segment import SEPARATOR, as_codes
from lace.store.columns.tables.checksum import checksum, damaged, require_sum
from lace.store.columns.tables.smallcache import small_cache
from lace.thresholds import StoreThresholds

BLOCK_BITS = 8
BLOCK = 1 << BLOCK_BITS
_SEPARATOR = SEPARATOR.encode()
CACHED_TEXTS = 1 << 15
CACHED_BLOCKS = 512
ALWAYS = {"0": 0}  # the code that every dictionary begins with
KeyFunction = Callable[[Sequence[str]], Sequence[int]]
_USUAL = StoreThresholds()
_BLOCKS_AT_ONCE = 32  # of ascending codes: a megabyte of texts


def new_secret() -> bytes:
    """A prime of KEY_BITS bits that only one store knows."""
    import secrets  # 6 ms, and only creating a store needs it

    while True:
        candidate = 1 << (KEY_BITS - 1) | secrets.randbits(KEY_BITS - 2) << 1 | 1
        if is_prime(candidate):
            return candidate.to_bytes(8, "big")


def is_prime(number: int) -> bool:
    """Miller-Rabin; these bases settle every odd number between 17 and 3.4e14."""
    odd = number - 1
    while odd % 2 == 0:
        odd //= 2
    for base in (2, 3, 5, 7, 11, 13, 17):
        power, exponent = pow(base, odd, number), odd
        while power != number - 1 and exponent < number - 1 and not (power == 1 and exponent == odd):
            power, exponent = power * power % number, exponent * 2
        if power != number - 1 and not (power == 1 and exponent == odd):
            return False
    return True


def keyed_hash(secret: bytes, thresholds: StoreThresholds = _USUAL) -> KeyFunction:
    """The index keys of texts under a store's own secret: their bytes as a number, modulo the secret prime.

    Two texts meet where the prime divides their difference. A header line is too short to hold more than some 200 of
    the 10^11 primes that it may be, so an author of records cannot construct texts that collide.
    """
    prime = int.from_bytes(secret, "big")

    def keys_of(texts: Sequence[str]) -> Sequence[int]:
        if len(texts) >= thresholds.bulk_texts:
            from lace.store.columns.dictionary.bulk import bulk_keys

            return bulk_keys(texts, prime, thresholds.matrix_texts)
        return plain_keys(texts, prime)

    return keys_of


def plain_keys(texts: Iterable[str], prime: int) -> list[int]:
    """The bytes of each text as a number, modulo the prime."""
    return [int.from_bytes(text.encode(), "big") % prime for text in texts]


class SymbolTable:
    """The dictionary in a store file; its caller holds the connection's lock and transaction."""

    def __init__(
        self, connection: sqlite3.Connection, keys_of: KeyFunction, thresholds: StoreThresholds = _USUAL
    ) -> None:
        self._connection = connection
        self._keys_of = keys_of
        self._thresholds = thresholds
        self._index = KeyIndex(connection, thresholds)
        self._codes = dict(ALWAYS)
        self._blocks: dict[int, list[str]] = {}
        self._expect_new = True  # whether the last batch brought only new texts
        self._is_guess = False  # whether the cached codes are simply those of the last batch

    def forget(self) -> None:
        """Drop what is cached: a transaction that gave out codes was rolled back."""
        self._codes = dict(ALWAYS)
        self._blocks.clear()
        self._index.forget()

    @property
    def indexed(self) -> int:
        """How many texts the index knows."""
        return len(self._index)

    def texts(self, codes: Codes) -> list[str]:
        """The text of each code; every code must have one."""
        windows = [codes[at : at + BLOCK].tolist() for at in range(0, len(codes), BLOCK)]
        texts: list[str] = []
        try:
            groups = list(_groups(windows))
            for group, numbers in groups:
                blocks = self._load(numbers, max(map(max, group)), keep=len(groups) == 1)
                for window in group:
                    texts += _window_texts(window, blocks)
        except IndexError:
            raise damaged("the dictionary of values") from None
        if len(texts) != len(codes):
            raise damaged("the dictionary of values")
        return texts

    def _load(self, numbers: set[int], highest: int, *, keep: bool = True) -> dict[int, list[str]]:
        """Blocks by number; a cached block may be older than its latest texts, so the last one is read again."""
        blocks = {}
        for number in numbers if len(numbers) <= CACHED_BLOCKS else ():
            cached = self._blocks.get(number)
            if cached is not None and (len(cached) == BLOCK or len(cached) > highest - (number << BLOCK_BITS)):
                blocks[number] = cached
        missing = sorted(numbers - blocks.keys())
        blocks.update((number, data.decode().split(SEPARATOR)) for number, data in self._read(missing).items())
        if keep and len(missing) <= CACHED_BLOCKS:
            if len(self._blocks) > CACHED_BLOCKS:
                self._blocks.clear()
            self._blocks.update((number, blocks[number]) for number in missing)
        return blocks

    def _read(self, numbers: list[int]) -> dict[int, bytes]:
        """Blocks as they are kept, by number."""
        blocks = {}
        for number, data, said in self._select("SELECT block, texts, sum FROM symbol_blocks WHERE block", numbers):
            require_sum(f"block {number} of the dictionary", said, number, data)
            blocks[number] = data
        if len(blocks) < len(numbers):
            raise damaged("the dictionary of values")
        return blocks

    def lines(self, codes: Codes) -> bytes:
        """The text of each code in UTF-8, ended by a separator; a block that is asked for whole is not even cut."""
        if not len(codes):
            return b""
        spans = list(_spans(codes))
        numbers = sorted({number for number, _, _ in spans})
        with small_cache(self._connection) if len(numbers) > _BLOCKS_AT_ONCE else nullcontext():
            blocks = self._read(numbers)
        cut: dict[int, list[bytes]] = {}
        pieces: list[bytes] = []
        for number, start, length in spans:
            if length == BLOCK and blocks[number].count(_SEPARATOR) == BLOCK - 1:
                pieces.append(blocks[number])
                continue
            if number not in cut:
                cut[number] = blocks[number].split(_SEPARATOR)
            found = cut[number][start : start + length]
            if len(found) < length:
                raise damaged("the dictionary of values")
            pieces += found
        pieces.append(b"")
        return _SEPARATOR.join(pieces)

    def block(self, number: int) -> list[str]:
        """The texts of a block as the file has them."""
        query = "SELECT texts, sum FROM symbol_blocks WHERE block = ?"
        row = self._connection.execute(query, (number,)).fetchone()
        if row is None:
            raise damaged("the dictionary of values")
        return _block_texts(number, *row)

    def look_up(self, texts: Sequence[str]) -> list[int]:
        """The codes that the index of the file gives, whatever is cached."""
        found = self._find(texts)
        return [found.get(text, -1) for text in texts]

    def codes(self, texts: Sequence[str]) -> list[int]:
        """The code of each text, -1 where it has none."""
        known = list(map(self._codes.get, texts))
        missing = [text for text, code in zip(texts, known, strict=True) if code is None]
        found = self._whole(missing) if self._is_fewer_than(missing) else self._find(missing)
        if not found and len(missing) == len(texts):
            return [-1] * len(texts)
        return [found.get(text, -1) if code is None else code for text, code in zip(texts, known, strict=True)]

    def beginning_with(self, text: str) -> dict[int, str]:
        """Codes and texts that begin with a text. The index cannot help: SQLite searches the blocks by itself."""
        found: dict[int, str] = {}
        query = "SELECT block, texts, sum FROM symbol_blocks WHERE instr(texts, ?)"
        for number, data, said in self._connection.execute(query, (text.encode(),)):
            texts = zip(count(number << BLOCK_BITS), _block_texts(number, data, said))
            found.update((code, known) for code, known in texts if known.startswith(text))
        return found

    def _is_fewer_than(self, texts: Sequence[str]) -> bool:
        """Whether the dictionary is so small that reading it whole is less than looking up each of these."""
        if len(texts) < self._thresholds.whole_dictionary_texts:
            return False
        last: int = self._connection.execute("SELECT max(block) FROM symbol_blocks").fetchone()[0]
        return (last + 1) * BLOCK < len(texts)

    def _whole(self, texts: Sequence[str]) -> dict[str, int]:
        """Codes of texts by reading the dictionary whole."""
        whole: dict[str, int] = {}
        for number, data, said in self._connection.execute("SELECT block, texts, sum FROM symbol_blocks"):
            whole.update(zip(_block_texts(number, data, said), count(number << BLOCK_BITS)))
        return {text: whole[text] for text in texts if text in whole}

    def _find(self, texts: Sequence[str]) -> dict[str, int]:
        """Codes of texts by the index; a key taken by another text is followed to the next key."""
        found: dict[str, int] = {}
        waiting = list(zip(self._keys_of(texts), texts, strict=True))
        while waiting:
            taken = self._index.taken(key for key, _ in waiting)
            candidates = [(key, text, taken[key]) for key, text in waiting if key in taken]
            stored = self.texts(as_codes(code for _, _, code in candidates))
            waiting = []
            for (key, text, code), stored_text in zip(candidates, stored, strict=True):
                if stored_text == text:  # keys may collide; only the text itself decides
                    found[text] = code
                else:
                    waiting.append((key + 1, text))
        self._remember(found)
        return found

    def _remember(self, found: dict[str, int]) -> None:
        """Texts met again are met often; those met once never come here."""
        if len(self._codes) + len(found) > CACHED_TEXTS:
            self._codes = dict(ALWAYS)
        if len(found) <= CACHED_TEXTS:
            self._codes.update(found)

    def _select(self, query: str, values: list[int]) -> Iterable[tuple[Any, ...]]:
        return self._connection.execute(f"{query} IN (SELECT value FROM json_each(?))", (json.dumps(values),))

    def assign(self, texts: Sequence[str], next_code: int) -> list[int]:
        """The code of each of some distinct texts; new ones get codes from `next_code` on, in their order."""
        if self._expect_new and len(texts) >= self._thresholds.bulk_texts:
            codes = self._assign_unseen(texts, next_code)
            if codes is not None:
                return codes
        uncached = sum([text not in self._codes for text in texts])
        codes = self.codes(texts)
        new = [text for text, code in zip(texts, codes, strict=True) if code < 0]
        # A bulk in which everything not cached was new will likely be followed by another one.
        self._expect_new = len(texts) >= self._thresholds.bulk_texts and len(new) == uncached
        self._append(new, next_code)
        self._index.add(self._keys_of(new), next_code)
        given = count(next_code)
        return [next(given) if code < 0 else code for code in codes]

    def _assign_unseen(self, texts: Sequence[str], next_code: int) -> list[int] | None:
        """`assign` when every text that is not cached is new; None, and nothing done, when that is not so.

        A bulk import mostly brings new texts. A run of their keys is refused as a whole if any key is taken, so they
        need not be looked up first: that would cost the writer 1.3 times its time (decision 405).
        """
        known = [(at, code) for at, code in enumerate(map(self._codes.get, texts)) if code is not None]
        new = _without_positions(texts, [at for at, _ in known])
        if len(new) < self._thresholds.bulk_texts or not self._index.add_run(self._keys_of(new), next_code):
            return None
        self._append(new, next_code)
        if len(self._codes) == len(ALWAYS):  # nothing is known yet about what comes often
            self._remember(dict(zip(new, range(next_code, next_code + len(new)), strict=True)))
            self._is_guess = True
        elif self._is_guess:  # what has come again may come often; the rest would be in the way
            self._codes = {**ALWAYS, **{texts[at]: code for at, code in known}}
            self._is_guess = False
        return _with_codes(known, next_code, len(texts))

    def _append(self, texts: list[str], next_code: int) -> None:
        if not texts:
            return
        number, filled = next_code >> BLOCK_BITS, next_code & (BLOCK - 1)
        if filled:  # the last block has room: it is written again with the first of these
            texts = self.block(number) + texts
        blocks = [SEPARATOR.join(texts[at : at + BLOCK]).encode() for at in range(0, len(texts), BLOCK)]
        rows = [(at, block, checksum(at, block)) for at, block in enumerate(blocks, number)]
        self._connection.executemany("INSERT OR REPLACE INTO symbol_blocks VALUES (?, ?, ?)", rows)


def _block_texts(number: int, data: bytes, said: int) -> list[str]:
    """The texts of a block that is as it was written."""
    require_sum(f"block {number} of the dictionary", said, number, data)
    return data.decode().split(SEPARATOR)


def _without_positions(texts: Sequence[str], positions: list[int]) -> list[str]:
    """Texts but for those at some ascending positions, in long pieces."""
    kept: list[str] = []
    start = 0
    for at in positions:
        kept += texts[start:at]
        start = at + 1
    kept += texts[start:]
    return kept


def _with_codes(known: list[tuple[int, int]], next_code: int, count: int) -> list[int]:
    """The codes of `count` texts: those known at their positions, the others numbered from `next_code` on."""
    codes: list[int] = []
    for before, (at, code) in enumerate(known):  # `before` of the texts in front are known
        codes += range(next_code + len(codes) - before, next_code + at - before)
        codes.append(code)
    codes += range(next_code + len(codes) - len(known), next_code + count - len(known))
    return codes


def _spans(codes: Codes) -> Iterator[tuple[int, int, int]]:
    """Runs of codes that lie in one block each: its number, where in it the run begins, and how long it is."""
    at, end = 0, len(codes)
    while at < end:
        first = codes[at]
        start = first & (BLOCK - 1)
        most = min(end - at, BLOCK - start)
        if codes[at + most - 1] - first == most - 1 and _is_run(codes[at : at + most].tolist()):
            length = most
        else:
            length = 1
            while length < most and codes[at + length] == first + length:
                length += 1
        yield first >> BLOCK_BITS, start, length
        at += length


def _groups(windows: list[list[int]]) -> Iterator[tuple[list[list[int]], set[int]]]:
    """Windows that are read together, with the blocks they touch.

    Ascending codes need a block only once, so few blocks are held at a time; otherwise all of them are.
    """
    ascending = all(window == sorted(window) for window in windows) and all(
        before[-1] <= after[0] for before, after in pairwise(windows)
    )
    group: list[list[int]] = []
    numbers: set[int] = set()
    for window in windows:
        group.append(window)
        if _is_run(window):  # no longer than a block, so its ends are in all the blocks that it touches
            numbers.update((window[0] >> BLOCK_BITS, window[-1] >> BLOCK_BITS))
        else:
            numbers.update([code >> BLOCK_BITS for code in window])
        if ascending and len(numbers) >= _BLOCKS_AT_ONCE:
            yield group, numbers
            group, numbers = [], set()
    if group:
        yield group, numbers


def _is_run(window: list[int]) -> bool:
    """Whether codes follow each other; those of one field of one batch mostly do."""
    first = window[0]
    return window[-1] - first == len(window) - 1 and window == list(range(first, first + len(window)))


def _window_texts(window: list[int], blocks: dict[int, list[str]]) -> list[str]:
    """The texts of at most BLOCK codes; a run of them lies in one block or two."""
    if not _is_run(window):
        return [blocks[code >> BLOCK_BITS][code & (BLOCK - 1)] for code in window]
    number, start = window[0] >> BLOCK_BITS, window[0] & (BLOCK - 1)
    texts = blocks[number][start : start + len(window)]
    if start + len(window) > BLOCK:
        texts += blocks[number + 1][: start + len(window) - BLOCK]
    return texts
