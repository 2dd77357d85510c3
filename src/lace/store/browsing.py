"""Pages of a store file for people who look around: spaces, names below a name, versions, recently stored records.

Rule: every answer costs what it shows. A page begins at a key and ends at a limit, folders are jumped over instead of
read through, and a count stops at the number it was told to stop at.
"""

from __future__ import annotations

import sqlite3
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from lace.limits import StoreLimits
from lace.notation.closing import Closing
from lace.notation.identifiers import RecordHash
from lace.store.base import Entry, StoreRecordId
from lace.store.columns.dictionary.symbols import SymbolTable, keyed_hash
from lace.store.columns.file import openers
from lace.store.columns.file.connect import connect, store_errors
from lace.store.columns.file.storefile import identity_of
from lace.store.columns.segments.segment import as_codes
from lace.store.columns.tables import state
from lace.store.columns.tables.coordinates import CoordinateIndex, Space

_AFTER_SLASH = "0"  # the character behind "/": a bound behind everything below a name


class Count(NamedTuple):
    """A number, or the limit at which counting stopped."""

    number: int
    is_whole: bool

    def __str__(self) -> str:
        return f"{self.number:,}" if self.is_whole else f"{self.number:,}+"


class Child(NamedTuple):
    """What is directly below a name: a folder of names, or a name that has versions."""

    name: str  # whole, from the space's root; a folder ends in "/"
    held: Count  # records below a folder, or versions of a name

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return self.name.endswith("/")


class Children(NamedTuple):
    """One page of children."""

    rows: tuple[Child, ...]
    next: str | None  # where the next page starts; None: there is none


class Survey(NamedTuple):
    """Who wrote the coordinates of a store, when, and where several did; `is_whole` says whether all were looked at."""

    looked_at: int
    is_whole: bool
    writers: tuple[tuple[str | None, int, str], ...]  # signer, versions, newest TAI; those with the most first
    days: tuple[tuple[int, int], ...]  # days since 1970 by the time of the records, and how many are of each
    shared: tuple[tuple[str, str, str], ...]  # group, app and name where several wrote, the newest first


class Browser(Closing):
    """A connection of its own that only reads a store file; threads take turns."""

    def __init__(self, path: str | Path) -> None:
        self.path: Path = Path(path)
        self._lock = Lock()
        log, self._identity = openers.log_beside(self.path), identity_of(str(self.path))
        openers.note_open(self._identity)
        try:
            self._connection = connect(self.path, create=False, read_only=True, limits=StoreLimits(), log=log)
        except BaseException:
            openers.note_closed(self._identity)
            raise
        try:
            with store_errors(str(self.path)):
                keys = keyed_hash(state.secret(self._connection))
        except BaseException:
            self.close()
            raise
        self._symbols = SymbolTable(self._connection, keys)
        self._index = CoordinateIndex(self._connection, self._symbols)
        self._spaces: tuple[int, list[Space]] = (-1, [])

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._lock, store_errors(str(self.path)):
            self._connection.execute("BEGIN DEFERRED")
            try:
                yield self._connection
            finally:
                self._connection.execute("ROLLBACK")

    # --- groups and apps

    def spaces(self, *, start: tuple[str, str] = ("", ""), group: str | None = None, limit: int) -> list[Space]:
        """The spaces from (group, app) on that hold something, in order."""
        with self._reading():
            every = self._every_space()
            found: list[Space] = []
            for space in every[bisect_left(every, start, key=_coordinate) :]:
                if len(found) == limit or (group is not None and space.group > group):
                    break
                if group in (None, space.group) and self._holds(space):
                    found.append(space)
            return found

    def _every_space(self) -> list[Space]:
        """All spaces in order; kept while none is added, and none is ever taken out."""
        newest = self._connection.execute("SELECT coalesce(max(id), 0) FROM spaces").fetchone()[0]
        if self._spaces[0] != newest:
            self._spaces = (newest, self._index.spaces(None, None))
        return self._spaces[1]

    def _holds(self, space: Space) -> bool:
        query = "SELECT 1 FROM coordinates WHERE space = ? LIMIT 1"
        return self._connection.execute(query, (space.id,)).fetchone() is not None

    def count(self, space: Space, under: str = "", *, limit: int) -> Count:
        """How many records are in a space, or below one of its names."""
        with self._reading():
            return self._count(space, under, limit)

    def _count(self, space: Space, under: str, limit: int) -> Count:
        bound, values = _below(under)
        query = f"SELECT count(*) FROM (SELECT 1 FROM coordinates WHERE space = ?{bound} LIMIT ?)"
        found = self._connection.execute(query, (space.id, *values, limit + 1)).fetchone()[0]
        return Count(min(found, limit), found <= limit)

    def space(self, group: str, app: str) -> Space | None:
        """The space of a group and app, if it ever held something."""
        with self._reading():
            return self._index.space(group, app)

    # --- names

    def children(self, space: Space, under: str = "", *, start: str = "", limit: int, count_to: int) -> Children:
        """What is directly below a name (empty, or with its final slash), from `start` on."""
        rows: list[Child] = []
        bound = max(start, under)
        with self._reading():
            while (name := self._first_name(space, bound)) is not None and name.startswith(under):
                if len(rows) == limit:
                    return Children(tuple(rows), bound)
                segment, slash, _ = name[len(under) :].partition("/")
                if slash:
                    folder = f"{under}{segment}/"
                    rows.append(Child(folder, self._count(space, folder, count_to)))
                    bound = f"{under}{segment}{_AFTER_SLASH}"
                else:
                    rows.append(Child(name, self._versions_up_to(space, name, count_to)))
                    bound = f"{name}\0"
        return Children(tuple(rows), None)

    def names(self, space: Space, *, limit: int) -> list[str]:
        """The first names of a space, in order."""
        with self._reading():
            query = "SELECT DISTINCT name FROM coordinates WHERE space = ? ORDER BY name LIMIT ?"
            return [str(name) for (name,) in self._connection.execute(query, (space.id, limit))]

    def _first_name(self, space: Space, bound: str) -> str | None:
        query = "SELECT name FROM coordinates WHERE space = ? AND name >= ? ORDER BY name LIMIT 1"
        row = self._connection.execute(query, (space.id, bound)).fetchone()
        return None if row is None else str(row[0])

    def _versions_up_to(self, space: Space, name: str, limit: int) -> Count:
        query = "SELECT count(*) FROM (SELECT 1 FROM coordinates WHERE space = ? AND name = ? LIMIT ?)"
        found = self._connection.execute(query, (space.id, name, limit + 1)).fetchone()[0]
        return Count(min(found, limit), found <= limit)

    def versions(self, space: Space, name: str, *, before: Entry | None = None, limit: int) -> list[Entry]:
        """The newest versions of one coordinate, newest first, behind an entry."""
        with self._reading():
            return self._index.newest(space, name, before=before, limit=limit)

    def version_count(self, space: Space, name: str, *, limit: int) -> Count:
        """How many versions a coordinate has."""
        with self._reading():
            return self._versions_up_to(space, name, limit)

    def named_like(self, words: Sequence[str], *, look_at: int, limit: int) -> list[tuple[str, str, str]]:
        """Group, app and name of coordinates whose name contains every word, among the first so many in order."""
        if not words:
            return []
        where = " AND ".join("name LIKE ? ESCAPE '!'" for _ in words)
        query = f"SELECT DISTINCT space, name FROM (SELECT space, name FROM coordinates LIMIT ?) WHERE {where} LIMIT ?"
        with self._reading():
            rows = self._connection.execute(query, (look_at, *map(_containing, words), limit)).fetchall()
            return self._coordinates(rows)

    def _coordinates(self, rows: Sequence[tuple[int, str]]) -> list[tuple[str, str, str]]:
        spaces = {space.id: space for space in self._every_space()}
        return [(spaces[space].group, spaces[space].app, name) for space, name in rows]

    # --- all of it, up to a limit

    def survey(self, *, look_at: int, writers: int, shared: int) -> Survey:
        """Writers, days and shared coordinates among the first so many versions, in the order of the index."""
        part = "(SELECT * FROM coordinates LIMIT ?)"
        with self._reading():
            run = self._connection.execute
            seen = run(f"SELECT count(*) FROM {part}", (look_at + 1,)).fetchone()[0]
            by_writer = run(
                f"SELECT signer, count(*), max(tai) FROM {part} GROUP BY signer ORDER BY 2 DESC LIMIT ?",
                (look_at, writers),
            ).fetchall()
            days = run(
                f"SELECT CAST(tai AS INTEGER) / 86400, count(*) FROM {part} GROUP BY 1 ORDER BY 1", (look_at,)
            ).fetchall()
            several = run(
                f"SELECT space, name FROM {part} GROUP BY space, name "
                "HAVING count(DISTINCT coalesce(signer, -1)) > 1 ORDER BY max(tai) DESC LIMIT ?",
                (look_at, shared),
            ).fetchall()
            signers = self._symbols.texts(as_codes(code or 0 for code, _, _ in by_writer))
            places = self._coordinates(several)
        named = tuple(
            (None if code is None else signer, number, newest)
            for (code, number, newest), signer in zip(by_writer, signers, strict=True)
        )
        return Survey(min(seen, look_at), seen <= look_at, named, tuple(days), tuple(places))

    # --- recently stored

    def newest_records(self, *, before: int | None = None, limit: int) -> list[tuple[StoreRecordId, RecordHash]]:
        """Records in the order in which they were stored, newest first."""
        with self._reading():
            bound = (1 << 62) if before is None else before
            query = "SELECT id, code FROM records WHERE id < ? ORDER BY id DESC LIMIT ?"
            rows = self._connection.execute(query, (bound, limit)).fetchall()
            texts = self._symbols.texts(as_codes(code for _, code in rows))
        return [(StoreRecordId(row[0]), RecordHash(text)) for row, text in zip(rows, texts, strict=True)]

    def close(self) -> None:
        """Release the file."""
        with self._lock:
            self._connection.close()
            identity, self._identity = self._identity, None
            openers.note_closed(identity)


def _containing(word: str) -> str:
    """A pattern for names that contain a word as it is written."""
    plain = word.replace("!", "!!").replace("%", "!%").replace("_", "!_")
    return f"%{plain}%"


def _coordinate(space: Space) -> tuple[str, str]:
    return space.group, space.app


def _below(under: str) -> tuple[str, Sequence[str]]:
    return (" AND name >= ? AND name < ?", (under, under[:-1] + _AFTER_SLASH)) if under else ("", ())
