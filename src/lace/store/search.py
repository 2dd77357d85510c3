"""Words of records, if a lace is to be searched: an FTS5 index over coordinates, headers and text content.

Rule: it is opt-in, in the store's own file, and moves in the transaction that moves the records: a record is found
from the moment it is stored until the moment it is gone. The index holds words and no texts; what is taken out of it is
worked out again from the record's bytes, so the words of a record are a function of its bytes alone.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, runtime_checkable

from lace.errors import StoreError
from lace.limits import KIB
from lace.notation.identifiers import RecordHash
from lace.store.base import StoreRecordId

TABLE = "search"
COLUMNS = ("name", "headers", "content")
MAX_TEXT_BYTES = 64 * KIB  # of one content
MAX_WORDS = 16  # of one question
_TOKENS = "unicode61 remove_diacritics 2"
CREATE = f"CREATE VIRTUAL TABLE {TABLE} USING fts5({', '.join(COLUMNS)}, content='', tokenize='{_TOKENS}')"
SHADOWS = tuple(f"{TABLE}_{part}" for part in ("data", "idx", "content", "docsize", "config"))  # tables of FTS5's own
_INSERT = f"INSERT INTO {TABLE}(rowid, name, headers, content) VALUES (?, ?, ?, ?)"
_DELETE = f"INSERT INTO {TABLE}({TABLE}, rowid, name, headers, content) VALUES ('delete', ?, ?, ?, ?)"
_FILL_ROWS = 1000

Words = tuple[str, str, str]


@runtime_checkable
class SearchedStore(Protocol):
    """A store whose records can be found by words."""

    @property
    def is_searched(self) -> bool:
        """Whether the words of its records are kept."""

    def index_words(self, told: Callable[[int], None]) -> int:
        """Keep the words of every record from now on; how many records there are. `told` hears how many were done."""

    def forget_words(self) -> bool:
        """Keep words no longer; whether they were kept."""

    def find_words(
        self, question: str, *, before: int | None = None, limit: int
    ) -> list[tuple[StoreRecordId, RecordHash]]:
        """Records that hold every word of a question, newest first, from before an id on."""


class SearchIndex:
    """The index in a store file; its caller holds the connection's lock and transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    @property
    def is_on(self) -> bool:
        """Whether this lace is searched; another process may have decided so a moment ago."""
        query = "SELECT 1 FROM sqlite_master WHERE name = ?"
        return self._connection.execute(query, (TABLE,)).fetchone() is not None

    def create(self, told: Callable[[int], None]) -> int:
        """Index every record from scratch; how many. `told` hears how many more were done."""
        self.drop()
        try:
            self._connection.execute(CREATE)
        except sqlite3.OperationalError as error:
            raise StoreError(f"this SQLite has no full-text search (FTS5): {error}") from error
        count, page = 0, list[tuple[int, bytes]]()
        for row in self._connection.execute("SELECT id, body FROM records ORDER BY id"):
            page.append(row)
            if len(page) == _FILL_ROWS:
                count += self._add(page)
                told(len(page))
                page = []
        told(len(page))
        return count + self._add(page)

    def drop(self) -> bool:
        """Search this lace no longer; whether it was."""
        was_on = self.is_on
        self._connection.execute(f"DROP TABLE IF EXISTS {TABLE}")
        return was_on

    def add(self, rows: Iterable[tuple[int, bytes]]) -> None:
        """Index new records, if this lace is searched."""
        if self.is_on:
            self._add(rows)

    def _add(self, rows: Iterable[tuple[int, bytes]]) -> int:
        found = [(record, *words_of(body)) for record, body in rows]
        self._connection.executemany(_INSERT, found)
        return len(found)

    def remove(self, record: int, body: bytes) -> None:
        """Take a record out."""
        if self.is_on:
            self._connection.execute(_DELETE, (record, *words_of(body)))

    def find(self, question: str, *, before: int | None, limit: int) -> list[int]:
        """The ids of records that hold every word of a question, newest first."""
        if not self.is_on:
            raise StoreError("this lace has no index of words: create it with `lace index`")
        expression = match_expression(question)
        if not expression:
            return []
        query = f"SELECT rowid FROM {TABLE} WHERE {TABLE} MATCH ? AND rowid < ? ORDER BY rowid DESC LIMIT ?"
        bound = (1 << 62) if before is None else before
        return [int(row[0]) for row in self._connection.execute(query, (expression, bound, limit))]

    def problems(self) -> Iterator[str]:
        """What is wrong with the index, one sentence each."""
        if not self.is_on:
            return
        missing, lost = (self._connection.execute(query).fetchone()[0] for query in (_MISSING, _LOST))
        if missing or lost:
            yield f"the search index lacks {missing} records and has {lost} that are gone: rebuild it with `lace index`"


_MISSING = f"SELECT count(*) FROM records r LEFT JOIN {TABLE}_docsize d ON d.id = r.id WHERE d.id IS NULL"
_LOST = f"SELECT count(*) FROM {TABLE}_docsize d LEFT JOIN records r ON r.id = d.id WHERE r.id IS NULL"


def words_of(body: bytes) -> Words:
    """What a record is found by: its coordinate, its headers, its content as far as it is text."""
    from lace.records.validate import reread

    record = reread(body)
    parts = record.parts
    place = f"{parts.group} {parts.app} {parts.name}" if parts.group else ""
    headers = "\n".join([parts.signed_by, *(f"{name} {value}" for name, value in parts.headers)])
    return place, headers, _text(bytes(record.data[:MAX_TEXT_BYTES]), is_cut=record.data_length > MAX_TEXT_BYTES)


def _text(data: bytes, *, is_cut: bool) -> str:
    """Bytes as text; empty if they are not text. A character that the cut went through is left out."""
    try:
        found = data.decode("utf-8")
    except UnicodeDecodeError as error:
        if not is_cut or error.start < len(data) - 3:
            return ""
        found = data[: error.start].decode("utf-8")
    return "" if "\0" in found else found


def match_expression(question: str) -> str:
    """A question as FTS5 reads it: words that must all be there, `word*` for a beginning, "a phrase" as it stands.

    >>> match_expression('power brok* "like a state" name:books')
    '"power" "brok" * "like a state" name : "books"'
    """
    parts = []
    for word in _split(question)[:MAX_WORDS]:
        column, colon, rest = word.partition(":")
        if not (colon and column in COLUMNS and rest):
            column, rest = "", word
        beginning = rest.endswith("*") and len(rest) > 1
        plain = rest.removesuffix("*") if beginning else rest
        quoted = '"' + plain.replace('"', "").replace("\0", "") + '"'
        parts.append(f"{column} : {quoted}" if column else quoted)
        if beginning:
            parts[-1] += " *"
    return " ".join(part for part in parts if part.strip('" *'))


def _split(question: str) -> Sequence[str]:
    """Words, with quoted ones together."""
    found: list[str] = []
    for number, part in enumerate(question.split('"')):
        found += [part] if number % 2 and part.strip() else part.split() if not number % 2 else []
    return found
