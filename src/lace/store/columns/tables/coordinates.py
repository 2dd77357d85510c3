"""The coordinate index of a store file: Plexes and Seals by group, app, name and TAI (110).

Rule: it names versions in order and judges none of them; which of them counts is decided by `lace.records.tip`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import nlargest
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from lace.notation.identifiers import RecordHash
from lace.records.retraction import of_text
from lace.records.tip import newest_first, tip_order
from lace.store.base import Entry, StoreRecordId
from lace.store.columns.dictionary.symbols import SymbolTable
from lace.store.columns.segments.segment import NO_TEXT, as_codes
from lace.store.columns.tables.checksum import checksum, damaged, plain_sum, require_sum

if TYPE_CHECKING:
    from lace.store.columns.segments.encode import EncodedBatch

PAGE_ROWS = 1024
_AFTER_ALL = "~"  # sorts behind every TAI


class Space(NamedTuple):
    """One group and app."""

    id: int
    group: str
    app: str


class CoordinateIndex:
    """Reads and writes the index; its caller holds the connection's lock and transaction."""

    def __init__(self, connection: sqlite3.Connection, symbols: SymbolTable) -> None:
        self._connection = connection
        self._symbols = symbols
        self._space_ids: dict[tuple[int, int], int] = {}

    def forget(self) -> None:
        """Drop what is cached: a transaction was rolled back."""
        self._space_ids.clear()

    def add(self, batch: EncodedBatch, table: Sequence[int], ids: Mapping[int, int]) -> None:
        """Index the records of a batch that have ids; `table` turns the batch's codes into the store's."""
        rows, texts, subjects = batch.coordinates, batch.texts, batch.segment.subjects
        spaces = {
            pair: self._space(table[pair[0]], table[pair[1]]) for pair in set(zip(rows.groups, rows.apps, strict=True))
        }
        columns = (
            rows.ordinals, rows.groups, rows.apps, rows.names, rows.tais, rows.signers, rows.data_lengths,
            rows.withdraws,
        )  # fmt: skip
        prepared = [
            _summed(spaces[group, app], texts[name], texts[tai], ids[ordinal], table[subjects[ordinal]],
                    None if signer == NO_TEXT else table[signer], length,
                    None if withdraws == NO_TEXT else texts[withdraws])
            for ordinal, group, app, name, tai, signer, length, withdraws in zip(*columns, strict=True)
            if ordinal in ids
        ]  # fmt: skip
        prepared.sort()  # in the tree's order; no two have the same record
        self._connection.executemany("INSERT INTO coordinates VALUES (?,?,?,?,?,?,?,?,?)", prepared)

    def remove(self, record: int, group: str, app: str, name: str, tai: str) -> None:
        """Take one record out of the index."""
        group_code, app_code = self._symbols.codes([group, app])
        key = (self._space(group_code, app_code), name, tai, record)
        self._connection.execute("DELETE FROM coordinates WHERE space=? AND name=? AND tai=? AND record=?", key)

    def _space(self, group: int, app: int) -> int:
        found = self._space_ids.get((group, app))
        if found is None:
            query = "SELECT id FROM spaces WHERE group_code = ? AND app_code = ?"
            row = self._connection.execute(query, (group, app)).fetchone()
            if row is None:
                insert = "INSERT INTO spaces(group_code, app_code) VALUES (?, ?) RETURNING id"
                row = self._connection.execute(insert, (group, app)).fetchone()
                said = checksum(row[0], group, app)
                self._connection.execute("UPDATE spaces SET sum = ? WHERE id = ?", (said, row[0]))
            found = self._space_ids[group, app] = int(row[0])
        return found

    def spaces(self, group: str | None, app: str | None) -> list[Space]:
        """The spaces that hold something under a group and app, None meaning any, in order."""
        rows = self._connection.execute("SELECT id, group_code, app_code, sum FROM spaces").fetchall()
        for *values, said in rows:
            require_sum("the list of groups and apps", said, *values)
        groups, apps = (self._symbols.texts(as_codes(row[at] for row in rows)) for at in (1, 2))
        found = (Space(row[0], *texts) for row, *texts in zip(rows, groups, apps, strict=True))
        wanted = (space for space in found if group in (None, space.group) and app in (None, space.app))
        return sorted(wanted, key=itemgetter(1, 2))

    def page(self, space: Space, after: tuple[str, str, int]) -> list[Entry]:
        """The next entries of a space behind (name, TAI, record)."""
        where = "(name, tai, record) > (?, ?, ?) ORDER BY name, tai, record LIMIT ?"
        return self.select(space, where, (*after, PAGE_ROWS))

    def named(self, group: str, app: str, name: str) -> list[Entry]:
        """The entries of one coordinate by TAI and record."""
        space = self.space(group, app)
        return self.select(space, "name = ? ORDER BY tai, record", (name,)) if space else []

    def space(self, group: str, app: str) -> Space | None:
        """The space of a group and app, if it ever held something."""
        codes = self._symbols.codes([group, app])
        row = self._connection.execute("SELECT id FROM spaces WHERE group_code = ? AND app_code = ?", codes).fetchone()
        return Space(row[0], group, app) if row else None

    def newest(
        self, space: Space, name: str, *, until: str | None = None, before: Entry | None = None, limit: int
    ) -> list[Entry]:
        """The newest versions of a coordinate by TAI and hash, newest first: those up to an instant, behind an entry.

        The index orders what has one TAI by arrival. Where that would decide which versions are the newest so many,
        all of that instant are looked at, a page at a time.
        """
        found: list[Entry] = []
        bound, values = "tai <= ?", (name, until or _AFTER_ALL)
        if before is not None:
            found = self._of_instant(space, name, before.tai, limit, below=before.hash)
            bound, values = "tai < ?", (name, before.tai)
        if len(found) == limit:
            return found
        rows = self.select(
            space, f"name = ? AND {bound} ORDER BY tai DESC, record DESC LIMIT ?", (*values, limit - len(found) + 1)
        )
        if len(rows) <= limit - len(found):
            return found + newest_first(rows)
        cut = rows[-1].tai
        found += newest_first(entry for entry in rows if entry.tai > cut)
        return found + self._of_instant(space, name, cut, limit - len(found)) if len(found) < limit else found

    def _of_instant(self, space: Space, name: str, tai: str, limit: int, below: str | None = None) -> list[Entry]:
        """Of the versions of one instant those with the highest hashes (below one), highest first."""
        return nlargest(
            limit,
            (entry for entry in self._each_of_instant(space, name, tai) if below is None or entry.hash < below),
            key=tip_order,
        )

    def _each_of_instant(self, space: Space, name: str, tai: str) -> Iterator[Entry]:
        after = 0
        where = "name = ? AND tai = ? AND record > ? ORDER BY record LIMIT ?"
        while page := self.select(space, where, (name, tai, after, PAGE_ROWS)):
            yield from page
            after = page[-1].id

    def select(self, space: Space, where: str, values: tuple[str | int, ...]) -> list[Entry]:
        columns = "name, tai, record, code, signer, data_length, sum, withdraws"
        query = f"SELECT {columns} FROM coordinates WHERE space = ? AND {where}"
        rows = self._connection.execute(query, (space.id, *values)).fetchall()
        for row in rows:
            summed = row[:6] if row[7] is None else (*row[:6], row[7])
            if plain_sum((space.id, *summed)) != row[6]:
                raise damaged("the index of coordinates")
        hashes = self._symbols.texts(as_codes(row[3] for row in rows))
        signers = self._symbols.texts(as_codes(row[4] or 0 for row in rows))
        return [
            Entry(space.group, space.app, name, tai, RecordHash(record_hash), StoreRecordId(record),
                  None if signer_code is None else signer, length, of_text(withdraws))
            for (name, tai, record, _, signer_code, length, _, withdraws), record_hash, signer in zip(
                rows, hashes, signers, strict=True
            )
        ]  # fmt: skip


def _summed(
    space: int, name: str, tai: str, record: int, code: int, signer: int | None, length: int, withdraws: str | None
) -> tuple[int, str, str, int, int, int | None, int, int, str | None]:
    """A row with its `plain_sum`, written out: a third of the time, and every record has one."""
    line = f"{space}\n{name}\n{tai}\n{record}\n{code}\n{signer}\n{length}\n"
    if withdraws is not None:  # rows that older programs wrote keep their sums
        line += f"{withdraws}\n"
    return space, name, tai, record, code, signer, length, crc32(line.encode()), withdraws


def in_tip_order(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Entries that come by name, TAI and id, with those of one name and TAI ordered by hash (110)."""
    for _, same in groupby(entries, key=lambda entry: (entry.group, entry.app, entry.name, entry.tai)):
        yield from sorted(same, key=tip_order)


def paged(page: Callable[[Entry | None, int], list[Entry]]) -> Iterator[Entry]:
    """The versions of a coordinate newest first, by pages of those behind an entry: mostly the first one is enough."""
    before: Entry | None = None
    limit = 1
    while found := page(before, limit):
        yield from found
        before, limit = found[-1], min(limit * 32, PAGE_ROWS)
