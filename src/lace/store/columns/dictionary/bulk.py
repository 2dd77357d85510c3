"""The index of the dictionary by the thousand keys, in numpy: keys of texts, and runs of keys.

Rule: `bulk_keys` gives what `symbols.plain_keys` gives, in a third of the time. What is held of a run is what the file
has, for runs never change; the filter may say too often that a key could be there, and never that it is not when it is.
This module is loaded for long batches and for many questions only: loading numpy takes as long as some thousand texts.
Runs save the writer of an import 1.2 times its CPU and 1.5 times its bytes (decisions 200 and 225, bench/store.py).
"""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lace.store.columns.dictionary.keyindex import ENTRY_BYTES, KEY_BITS, WHAT, require_page
from lace.store.columns.dictionary.symbols import plain_keys
from lace.store.columns.segments.segment import SEPARATOR
from lace.store.columns.tables.checksum import checksum, damaged
from lace.store.columns.tables.smallcache import small_cache
from lace.thresholds import StoreThresholds

Keys = npt.NDArray[np.uint64]
Positions = npt.NDArray[np.intp]

FILTER_BITS = 23  # of a key; a byte for each value, set where a run may have such a key
ROWS_AT_ONCE = 1 << 16


def bulk_keys(texts: Sequence[str], prime: int, matrix_texts: int) -> memoryview:
    """The bytes of each text as a number, modulo the prime."""
    data = np.frombuffer((SEPARATOR.join(texts) + SEPARATOR).encode(), np.uint8)
    ends = np.flatnonzero(data == ord(SEPARATOR))
    if len(ends) != len(texts):  # no value of a record holds one, but a question may
        return memoryview(array("Q", plain_keys(texts, prime)))
    starts = np.concatenate((np.zeros(1, ends.dtype), ends[:-1] + 1))
    lengths = ends - starts
    order = np.argsort(lengths, kind="stable")
    keys = np.zeros(len(texts), np.uint64)
    for rows in np.split(order, np.flatnonzero(np.diff(lengths[order])) + 1):
        length = int(lengths[rows[0]])
        if len(rows) < matrix_texts:
            keys[rows] = plain_keys([texts[row] for row in rows], prime)
        elif length:
            letters = np.lib.stride_tricks.sliding_window_view(data, length)[starts[rows]]
            keys[rows] = _remainders(letters, prime)
    return keys.data


def _remainders(letters: npt.NDArray[np.uint8], prime: int) -> npt.NDArray[np.uint64]:
    """Rows of bytes as numbers, modulo a prime of 44 bits: 4,096 products of 52 bits fit into 64."""
    total = np.zeros(len(letters), np.uint64)
    weights = _powers(letters.shape[1], prime)
    for start in range(0, letters.shape[1], 4096):
        part = slice(start, start + 4096)
        products = np.einsum("ij,j->i", letters[:, part], weights[part], dtype=np.uint64, casting="unsafe")
        total = (total + products % np.uint64(prime)) % np.uint64(prime)
    return total


@lru_cache(maxsize=256)
def _powers(length: int, prime: int) -> npt.NDArray[np.uint64]:
    """What a byte counts at each place, the highest first."""
    powers = [1]
    while len(powers) < length:
        powers.append(powers[-1] * 256 % prime)
    return np.array(powers[::-1], np.uint64)


class KeyRun(NamedTuple):
    """Keys, ascending, and the code of each."""

    keys: Keys
    codes: npt.NDArray[np.uint32]


class HeldRuns:
    """The runs of one index in memory."""

    def __init__(self, connection: sqlite3.Connection, thresholds: StoreThresholds) -> None:
        self._connection = connection
        self._thresholds = thresholds
        self._runs: dict[int, KeyRun] = {}
        self._sizes: dict[int, int] = {}  # of all runs
        self._numbers: set[int] = set()  # of runs whose keys the filter knows
        self._filter = np.zeros((1 << FILTER_BITS) + 1, np.bool_)  # a key that moved on may be one too high

    def expect(self, sizes: Mapping[int, int]) -> None:
        """Know the runs that the file has now, and no others."""
        self._sizes = dict(sizes)
        now = set(sizes)
        for gone in self._runs.keys() - now:
            del self._runs[gone]
        self._numbers &= now
        for number in sorted(now - self._numbers):
            self._know(number, self._read(number))

    def _know(self, number: int, run: KeyRun) -> None:
        self._numbers.add(number)
        for start in range(0, len(run.keys), ROWS_AT_ONCE):
            self._filter[_parts(run.keys[start : start + ROWS_AT_ONCE])] = True
        if sum([len(one.keys) for one in self._runs.values()]) + len(run.keys) <= self._thresholds.held_run_keys:
            self._runs[number] = run

    def _read(self, number: int) -> KeyRun:
        query = "SELECT id, entries, sum FROM symbol_pages WHERE id BETWEEN ? AND ? ORDER BY id"
        bounds = (number << KEY_BITS, (number + 1 << KEY_BITS) - 1)
        expected, end = self._sizes[number], 0
        run = KeyRun(np.empty(expected, np.uint64), np.empty(expected, np.uint32))
        with small_cache(self._connection):
            for page, stored, said in self._connection.execute(query, bounds):
                entries = require_page(page, stored, said)
                size = len(entries) // ENTRY_BYTES
                start, end = end, end + size
                if end > expected:
                    raise damaged(WHAT)
                run.keys[start:end] = np.frombuffer(entries, "<u8", size)
                run.codes[start:end] = np.frombuffer(entries, "<u4", size, 8 * size)
        if end != expected:
            raise damaged(WHAT)
        return run

    def _run(self, number: int) -> KeyRun:
        return self._runs.get(number) or self._read(number)

    def codes(self, keys: Sequence[int]) -> dict[int, int]:
        """The codes of those among some keys that a run has."""
        wanted = np.array(keys, np.uint64)
        wanted = wanted[self._filter[_parts(wanted)]]
        found: dict[int, int] = {}
        for number in self._numbers if len(wanted) else ():
            run = self._run(number)
            places = _places(run.keys, wanted)
            found.update(zip(run.keys[places].tolist(), run.codes[places].tolist(), strict=True))
        return found

    def fresh(self, keys: Sequence[int], first_code: int) -> KeyRun | None:
        """A run of what the tree holds and of consecutive codes under some keys; None if any of these is taken."""
        own = np.array(keys, np.uint64)
        wanted = own[self._filter[_parts(own)]]
        if any(len(_places(self._run(number).keys, wanted)) for number in (self._numbers if len(wanted) else ())):
            return None
        tree = self._tree()
        codes = np.arange(first_code, first_code + len(own), dtype=np.uint32)
        run = _in_order(KeyRun(np.concatenate((tree.keys, own)), np.concatenate((tree.codes, codes))))
        return None if (run.keys[1:] == run.keys[:-1]).any() else run

    def _tree(self) -> KeyRun:
        """What the tree holds: little, but in a file of before there were runs."""
        rows = self._connection.execute("SELECT key, code FROM symbol_index")
        parts = [np.zeros((0, 2), np.uint64)]
        while some := rows.fetchmany(ROWS_AT_ONCE):
            parts.append(np.array(some, np.uint64))
        table = np.concatenate(parts)
        return KeyRun(table[:, 0], table[:, 1].astype(np.uint32))

    def merged(self, numbers: Iterable[int]) -> KeyRun:
        """One run for several."""
        runs = list(map(self._run, numbers))
        return _in_order(
            KeyRun(np.concatenate([run.keys for run in runs]), np.concatenate([run.codes for run in runs]))
        )

    def write(self, number: int, run: KeyRun) -> None:
        """Write a run under a new number."""
        keys, codes = run.keys.astype("<u8"), run.codes.astype("<u4")
        size = self._thresholds.run_page_keys
        parts = [slice(at, at + size) for at in range(0, len(keys), size)]
        first = number << KEY_BITS
        rows = [(first + int(keys[part.start]), keys[part].tobytes() + codes[part].tobytes()) for part in parts]
        summed = [(page, entries, checksum(page, entries)) for page, entries in rows]
        self._connection.executemany("INSERT INTO symbol_pages VALUES (?, ?, ?)", summed)
        row = (number, len(keys), checksum(number, len(keys)))
        self._connection.execute("INSERT INTO symbol_runs VALUES (?, ?, ?)", row)
        self._sizes[number] = len(keys)
        self._know(number, run)


def _parts(keys: Keys) -> Positions:
    """The places of keys in the filter."""
    return (keys >> np.uint64(KEY_BITS - FILTER_BITS)).astype(np.intp)


def _places(keys: Keys, wanted: Keys) -> Positions:
    """The positions in a run of the wanted keys that are in it."""
    at = np.searchsorted(keys, wanted)
    inside = at[at < len(keys)]
    found: Positions = inside[keys[inside] == wanted[at < len(keys)]]
    return found


def _in_order(run: KeyRun) -> KeyRun:
    order = np.argsort(run.keys)
    return KeyRun(run.keys[order], run.codes[order])
