"""The index of a dictionary: key of a text → its code, in one tree for single texts and in runs for bulk.

Rule: a key has one code, in the tree or in one run; a run never changes, it is only replaced by a longer one.

Keys are spread evenly, so a batch of many touches every page of a tree, and the longer the index the more pages are
written again for each batch. A run is written once, and once more each time eight of its size become one. What the tree
holds moves into the next run, so bulk imports find it empty. A run is kept in rows of some hundred keys, by their
first: a key is found without reading it whole, and for many lookups `bulk` holds the runs in memory (decision 225).
"""

from __future__ import annotations

import json
import sqlite3
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING

from lace.store.columns.segments.packing import native
from lace.store.columns.tables.checksum import damaged, require_sum
from lace.thresholds import StoreThresholds

if TYPE_CHECKING:
    from lace.store.columns.dictionary.bulk import HeldRuns

KEY_BITS = 44
PACKED_BITS = 16  # of an ordinal beside its key in one 63-bit integer
PACKED_TEXTS = 1 << PACKED_BITS
MAX_CODES = 1 << 32
ENTRY_BYTES = 12
WHAT = "the index of values"


class KeyIndex:
    """Reads and writes the index; its caller holds the connection's lock and transaction."""

    def __init__(self, connection: sqlite3.Connection, thresholds: StoreThresholds) -> None:
        self._connection = connection
        self._thresholds = thresholds
        self._held: HeldRuns | None = None

    def forget(self) -> None:
        """Drop what is cached: a transaction was rolled back, and the numbers of its runs are given out again."""
        self._held = None

    def __len__(self) -> int:
        """How many keys there are."""
        tree = self._connection.execute("SELECT count(*) FROM symbol_index").fetchone()[0]
        pages = f"SELECT coalesce(sum(length(entries)), 0) / {ENTRY_BYTES} FROM symbol_pages"
        return int(tree + self._connection.execute(pages).fetchone()[0])

    def _runs(self) -> dict[int, int]:
        """How many keys each run has."""
        rows = self._connection.execute("SELECT run, keys, sum FROM symbol_runs").fetchall()
        for run, keys, said in rows:
            require_sum(WHAT, said, run, keys)
        return {run: keys for run, keys, _ in rows}

    # --- reading

    def taken(self, keys: Iterable[int]) -> dict[int, int]:
        """The codes of those among some keys that have one."""
        wanted = sorted(keys)
        query = "SELECT key, code FROM symbol_index WHERE key IN (SELECT value FROM json_each(?))"
        found = dict(self._connection.execute(query, (json.dumps(wanted),)))
        if len(found) < len(wanted) and (runs := self._runs()):
            found |= self._in_runs([key for key in wanted if key not in found], runs)
        if not all(isinstance(code, int) and 0 <= code < MAX_CODES for code in found.values()):
            raise damaged(WHAT)
        return found

    def _in_runs(self, keys: Sequence[int], runs: Mapping[int, int]) -> dict[int, int]:
        if self._held is None and len(keys) * len(runs) <= self._thresholds.looked_up_pages:
            return self._in_pages(keys, runs)
        return self._hold(runs).codes(keys)

    def _in_pages(self, keys: Sequence[int], runs: Iterable[int]) -> dict[int, int]:
        """Codes by one page of each run for each key; if a run begins after a key, the page is one of another run."""
        places = [(run << KEY_BITS) + key for run in runs for key in keys]
        query = """SELECT value, page.id, entries, sum FROM json_each(?) JOIN symbol_pages AS page
            ON page.id = (SELECT max(one.id) FROM symbol_pages AS one WHERE one.id <= value)"""
        found: dict[int, int] = {}
        for place, page, entries, said in self._connection.execute(query, (json.dumps(places),)):
            key = place & (1 << KEY_BITS) - 1
            code = _code_in(require_page(page, entries, said), key)
            if code is not None:
                found[key] = code
        return found

    def _hold(self, runs: Mapping[int, int]) -> HeldRuns:
        """The runs, to be searched in memory."""
        from lace.store.columns.dictionary.bulk import HeldRuns

        if self._held is None:
            self._held = HeldRuns(self._connection, self._thresholds)
        self._held.expect(runs)
        return self._held

    # --- writing

    def add(self, keys: Sequence[int], first_code: int) -> None:
        """Index consecutive codes, each under its own key or the first free one behind it."""
        if self._add_free(keys, first_code):
            return
        waiting = list(zip(keys, count(first_code)))
        while waiting:
            taken = self.taken(key for key, _ in waiting)
            free: dict[int, int] = {}
            behind = []
            for key, code in waiting:
                # Taken in the file, or by another text of this very batch, which came first.
                if taken.get(key, free.setdefault(key, code)) != code:
                    behind.append((key + 1, code))
            rows = sorted((key, code) for key, code in free.items() if key not in taken)
            self._connection.executemany("INSERT INTO symbol_index VALUES (?, ?)", rows)
            waiting = behind

    def _add_free(self, keys: Sequence[int], first_code: int) -> bool:
        """Index consecutive codes under their keys; False if some were taken, and perhaps only the others are in."""
        if len(keys) >= self._thresholds.bulk_texts:
            return self.add_run(keys, first_code)
        if (runs := self._runs()) and self._in_runs(keys, runs):
            return False
        return self._add_to_tree(keys, first_code)

    def _add_to_tree(self, keys: Sequence[int], first_code: int) -> bool:
        """One statement over packed integers, in the tree's order: half the time of one statement for each row."""
        insert = f"""INSERT OR IGNORE INTO symbol_index
            SELECT value >> {PACKED_BITS}, ?1 + (value & {PACKED_TEXTS - 1}) FROM json_each(?2)"""
        before = self._connection.total_changes
        packed = sorted([key << PACKED_BITS | at for at, key in enumerate(keys)])
        self._connection.execute(insert, (first_code, str(packed)))  # a list of integers is JSON as it is
        return self._connection.total_changes - before == len(keys)

    def add_run(self, keys: Sequence[int], first_code: int) -> bool:
        """A run of these and what the tree holds; False, and nothing done, if any key is taken."""
        runs = self._runs()
        held = self._hold(runs)
        fresh = held.fresh(keys, first_code)
        if fresh is None:
            return False
        self._connection.execute("DELETE FROM symbol_index")  # what the tree held is part of the run
        held.write(max(runs, default=0) + 1, fresh)
        self._fold()
        return True

    def _fold(self) -> None:
        """Make one run of those of a size, wherever there are `run_fanout` of them."""
        while alike := self._foldable(runs := self._runs()):
            held = self._hold(runs)
            held.write(max(runs) + 1, held.merged(alike))
            for run in alike:
                self._connection.execute("DELETE FROM symbol_runs WHERE run = ?", (run,))
                last = (run + 1 << KEY_BITS) - 1
                self._connection.execute("DELETE FROM symbol_pages WHERE id BETWEEN ? AND ?", (run << KEY_BITS, last))

    def _foldable(self, runs: Mapping[int, int]) -> list[int]:
        by_level: dict[int, list[int]] = {}
        for run, keys in runs.items():
            if keys < self._thresholds.folded_run_keys:
                by_level.setdefault(keys.bit_length() // 3, []).append(run)  # three bits: within a factor of eight
        return next((alike for alike in by_level.values() if len(alike) >= self._thresholds.run_fanout), [])


def require_page(page: int, entries: bytes, said: int) -> bytes:
    """The entries of a page that is as it was written."""
    if not isinstance(entries, bytes):
        raise damaged(WHAT)
    require_sum(WHAT, said, page, entries)
    return entries


def _code_in(entries: bytes, key: int) -> int | None:
    """The code of a key in a page: the keys, ascending, then their codes."""
    size = len(entries) // ENTRY_BYTES
    page = memoryview(entries)
    keys = native(page[: 8 * size], "Q")
    at = bisect_left(keys, key)
    return native(page[8 * size :], "I")[at] if at < size and keys[at] == key else None
