"""The coordinate index of a store file: Plexes and Seals by group, app, name and TAI (110).

Rule: it names candidates in order and judges none of them; which version counts is policy's business.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from lace.notation.identifiers import RecordHash
from lace.store.base import Entry, StoreRecordId
from lace.store.columns.checksum import checksum, damaged, plain_sum, require_sum
from lace.store.columns.segments import NO_SIGNER, as_codes
from lace.store.columns.symbols import SymbolTable

if TYPE_CHECKING:
    from lace.store.columns.encode import EncodedBatch

PAGE_ROWS = 1024
_AFTER_ALL = "~"  # sorts behind every TAI
_KNOWN = "signer IN (SELECT value FROM json_each(?))"


class Space(NamedTuple):
    """One group and app."""

    id: int
    group: str
    app: str


class Candidates(NamedTuple):
    """The versions of a coordinate among which its tip is, oldest first."""

    entries: list[Entry]
    is_whole: bool  # False: there are more versions than were looked at, and one of those may be the tip


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
        columns = (rows.ordinals, rows.groups, rows.apps, rows.names, rows.tais, rows.signers, rows.data_lengths)
        prepared = [
            _summed(spaces[group, app], texts[name], texts[tai], ids[ordinal], table[subjects[ordinal]],
                    None if signer == NO_SIGNER else table[signer], length)
            for ordinal, group, app, name, tai, signer, length in zip(*columns, strict=True)
            if ordinal in ids
        ]  # fmt: skip
        prepared.sort()  # in the tree's order; no two have the same record
        self._connection.executemany("INSERT INTO coordinates VALUES (?,?,?,?,?,?,?,?)", prepared)

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
        space = self._found_space(group, app)
        return self.select(space, "name = ? ORDER BY tai, record", (name,)) if space else []

    def latest(self, group: str, app: str, name: str, until: str | None, signers: Collection[str]) -> list[Entry]:
        """The entries of one coordinate from where its tip may be, by TAI and record (see `latest_versions`)."""
        space = self._found_space(group, app)
        if space is None:
            return []
        codes = json.dumps([code for code in self._symbols.codes(list(signers)) if code >= 0])
        newest = "SELECT tai FROM coordinates WHERE space = ? AND name = ? AND tai <= ?"
        at = (space.id, name, until or _AFTER_ALL)
        row = None
        if codes != "[]":
            row = self._connection.execute(f"{newest} AND {_KNOWN} ORDER BY tai DESC LIMIT 1", (*at, codes)).fetchone()
        row = row or self._connection.execute(f"{newest} ORDER BY tai DESC LIMIT 1", at).fetchone()
        return self.select(space, "name = ? AND tai >= ? ORDER BY tai, record", (name, row[0] if row else ""))

    def _found_space(self, group: str, app: str) -> Space | None:
        codes = self._symbols.codes([group, app])
        row = self._connection.execute("SELECT id FROM spaces WHERE group_code = ? AND app_code = ?", codes).fetchone()
        return Space(row[0], group, app) if row else None

    def candidates(self, space: Space, name: str, *, until: str, signers: Sequence[str], within: int) -> Candidates:
        """Of the versions up to an instant the newest, and the newest that one of these keys signed.

        At most `within` versions are looked at, newest first; all of one instant are candidates, as hashes order them.
        """
        codes = json.dumps([code for code in self._symbols.codes(signers) if code >= 0])
        at = (space.id, name, until)
        newest = (
            "SELECT tai, signer FROM coordinates WHERE space = ? AND name = ? AND tai <= ? ORDER BY tai DESC LIMIT ?"
        )
        first = self._connection.execute(newest, (*at, 1)).fetchone()
        if first is None:
            return Candidates([], True)
        found = self.select(space, "name = ? AND tai = ? ORDER BY record LIMIT ?", (name, first[0], within + 1))
        if codes == "[]":
            return Candidates(list(in_tip_order(found[:within])), len(found) <= within)
        known = self._connection.execute(f"SELECT tai FROM ({newest}) WHERE {_KNOWN} LIMIT 1", (*at, within, codes))
        signed = known.fetchone()
        if signed is None:
            count = self._connection.execute(f"SELECT count(*) FROM ({newest})", (*at, within + 1)).fetchone()[0]
            return Candidates(list(in_tip_order(found[:within])), count <= within)
        where = f"name = ? AND tai = ? AND {_KNOWN} ORDER BY record LIMIT ?"
        of_known = self.select(space, where, (name, signed[0], codes, within + 1))
        return Candidates(list(in_tip_order(of_known[:within])), len(of_known) <= within)

    def select(self, space: Space, where: str, values: tuple[str | int, ...]) -> list[Entry]:
        columns = "name, tai, record, code, signer, data_length, sum"
        query = f"SELECT {columns} FROM coordinates WHERE space = ? AND {where}"
        rows = self._connection.execute(query, (space.id, *values)).fetchall()
        for row in rows:
            if plain_sum((space.id, *row[:-1])) != row[-1]:
                raise damaged("the index of coordinates")
        hashes = self._symbols.texts(as_codes(row[3] for row in rows))
        signers = self._symbols.texts(as_codes(row[4] or 0 for row in rows))
        return [
            Entry(space.group, space.app, name, tai, RecordHash(record_hash), StoreRecordId(record),
                  None if signer_code is None else signer, length)
            for (name, tai, record, _, signer_code, length, _), record_hash, signer in zip(
                rows, hashes, signers, strict=True
            )
        ]  # fmt: skip


def _summed(
    space: int, name: str, tai: str, record: int, code: int, signer: int | None, length: int
) -> tuple[int, str, str, int, int, int | None, int, int]:
    """A row with its `plain_sum`, written out: a third of the time, and every record has one."""
    line = f"{space}\n{name}\n{tai}\n{record}\n{code}\n{signer}\n{length}\n"
    return space, name, tai, record, code, signer, length, crc32(line.encode())


def in_tip_order(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Entries that come by name, TAI and id, with those of one name and TAI ordered by hash (110)."""
    for _, same in groupby(entries, key=lambda entry: (entry.group, entry.app, entry.name, entry.tai)):
        yield from sorted(same, key=lambda entry: entry.hash)
