"""The integrity check of a store file.

Rule: nothing is taken on trust but the bytes of records, whose hashes are checked: every fact and every index entry is
derived from them again and compared. Signatures are checked elsewhere.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from lace.errors import InvalidRecord, StoreDamaged
from lace.facts.derive import derive_facts
from lace.facts.predicates import RECORD_PREDICATES
from lace.notation.stopping import Interrupt, go_on, never
from lace.records.frame import claimed_hash
from lace.records.retraction import as_text, withdraws
from lace.records.validate import ValidRecord, reread
from lace.store.base import StoreCursor
from lace.store.columns.dictionary.symbols import BLOCK, SymbolTable
from lace.store.columns.segments.segment import Segment, subjects_of
from lace.store.columns.segments.table import SegmentRow, SegmentTable
from lace.store.columns.segments.view import SegmentView
from lace.store.columns.tables.checksum import Part, checksum
from lace.store.columns.tables.schema import SUMMED
from lace.store.columns.tables.state import StoreState

_STEPS_UNTIL_ASKED = 100_000  # of the database's own machine: some milliseconds
_DOING = "a lace was verified"


class Inspection:
    """One look at one moment of a file."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        symbols: SymbolTable,
        segments: SegmentTable,
        state: StoreState,
        stop: Interrupt = never,
    ) -> None:
        self._connection = connection
        self._symbols = symbols
        self._segments = segments
        self._state = state
        self._stop = stop
        self._coordinates = 0  # entries that there should be

    def problems(self) -> Iterator[str]:
        """What is wrong, one sentence each."""
        found = self._pages()
        yield from found
        if found:  # the rest would read damaged pages
            return
        yield from _guarded(self._counters)
        yield from _guarded(self._dictionary)
        yield from _guarded(self._sums)
        for row in self._segments.rows():
            yield from _guarded(lambda row=row: self._segment(row))  # type: ignore[misc]
        yield from self._gaps()
        if (entries := self._one("SELECT count(*) FROM coordinates")) != self._coordinates:
            yield f"the index of coordinates has {entries} entries for {self._coordinates} records"

    def _pages(self) -> list[str]:
        """What the database finds by itself. It is one statement, and asks now and then whether to go on."""
        if self._stop is not never:
            self._connection.set_progress_handler(self._stop, _STEPS_UNTIL_ASKED)
        try:
            return [str(row[0]) for row in self._connection.execute("PRAGMA integrity_check") if row[0] != "ok"]
        except sqlite3.OperationalError:
            go_on(self._stop, _DOING)
            raise
        finally:
            self._connection.set_progress_handler(None, 0)

    def _one(self, query: str) -> int:
        return int(self._connection.execute(query).fetchone()[0])

    def _counters(self) -> Iterator[str]:
        query = "SELECT count(*), coalesce(sum(length(body)), 0), coalesce(max(id), 0) FROM records"
        count, size, last = self._connection.execute(query).fetchone()
        said = self._state
        if (said.records, said.stored_bytes) != (count, size):
            holds = f"the file holds {count} of {size}"
            yield f"the counters say {said.records} records of {said.stored_bytes} bytes, {holds}"
        if last > said.last_record:
            yield f"record {last} is above the high-water mark {said.last_record}"

    def _dictionary(self) -> Iterator[str]:
        """Every code has one text, and the index finds it under it."""
        indexed, kept = self._symbols.indexed, 0
        if indexed != self._state.next_code:
            yield f"the symbol index has {indexed} entries for {self._state.next_code} values"
        for number, size in self._connection.execute("SELECT block, length(texts) FROM symbol_blocks").fetchall():
            if number * BLOCK != kept or not size:
                yield f"symbol block {number} does not follow on {kept} values"
                return
            go_on(self._stop, _DOING)
            texts = self._symbols.block(number)
            kept += len(texts)
            if self._symbols.look_up(texts) != list(range(number * BLOCK, kept)):
                yield f"values of symbol block {number} are not found under their codes"
        if kept != self._state.next_code:
            yield f"the symbol blocks hold {kept} values, not {self._state.next_code}"

    def _sums(self) -> Iterator[str]:
        for table, (key, others) in SUMMED.items():
            columns = (*(key if table != "segments" else ()), *others)
            rows = self._connection.execute(f"SELECT {', '.join((*key, 'sum', *columns))} FROM {table}")
            wrong = [
                row[: len(key)] for row in rows if checksum(*_summed(row[len(key) + 1 :], columns)) != row[len(key)]
            ]
            for name in wrong:
                yield f"{table} {', '.join(map(str, name))}: the checksum does not fit"

    def _segment(self, row: SegmentRow) -> Iterator[str]:
        """The records of a segment, and what columns and coordinates say of them."""
        segment = self._segments.live(row)
        if _highest(segment) >= self._state.next_code:
            yield f"segment {row.id} uses values that the dictionary does not have"
            return
        query = "SELECT id, code FROM records WHERE id BETWEEN ? AND ? ORDER BY id"
        if self._connection.execute(query, (row.first, row.last)).fetchall() != list(
            zip(segment.ids, segment.subjects, strict=True)
        ):
            yield f"segment {row.id} and the records {row.first} to {row.last} differ"
        said = self._sums_of_facts(segment)
        bodies = "SELECT id, code, body FROM records WHERE id BETWEEN ? AND ? ORDER BY id"
        for record, code, body in self._connection.execute(bodies, (row.first, row.last)):
            go_on(self._stop, _DOING)
            try:
                valid = reread(body)
            except InvalidRecord:  # the check of records reports it
                self._coordinates += claimed_hash(body)[:1] in ("P", "S")
                continue
            if said.get(valid.hash) != _sum_of_facts(valid):
                yield f"record {record} {valid.hash}: its facts in segment {row.id} are not those that its bytes say"
            if valid.type != "B":
                self._coordinates += 1
                if not self._is_indexed(record, code, valid):
                    yield f"record {record} {valid.hash}: the index of coordinates says something else"

    def _sums_of_facts(self, segment: Segment) -> Counter[str]:
        """A number for the facts of each record, whatever their order; a fact more or less changes it."""
        view = SegmentView(self._symbols, self._state.next_code, [segment], StoreCursor())
        sums: Counter[str] = Counter()
        for predicate in RECORD_PREDICATES:
            for row in view.iterate(predicate):
                sums[row[0]] += hash((predicate, row))
        return sums

    def _is_indexed(self, record: int, code: int, valid: ValidRecord) -> bool:
        parts = valid.parts
        group, app, signer = self._symbols.codes([parts.group, parts.app, parts.signed_by])
        query = """SELECT c.code, c.signer, c.data_length, c.withdraws
            FROM coordinates c JOIN spaces s ON s.id = c.space
            WHERE s.group_code = ? AND s.app_code = ? AND c.name = ? AND c.tai = ? AND c.record = ?"""
        found = self._connection.execute(query, (group, app, parts.name, parts.tai, record)).fetchall()
        return found == [
            (code, signer if parts.signed_by else None, valid.data_length, as_text(withdraws(valid)) or None)
        ]

    def _gaps(self) -> Iterator[str]:
        reached = 0
        for row in self._segments.rows():
            if row.first <= reached:
                yield f"segment {row.id} overlaps the one before it"
            gap = "SELECT count(*) FROM records WHERE id > ? AND id < ?"
            if self._connection.execute(gap, (reached, row.first)).fetchone()[0]:
                yield f"records between {reached} and {row.first} are in no segment"
            reached = row.last
        if self._connection.execute("SELECT count(*) FROM records WHERE id > ?", (reached,)).fetchone()[0]:
            yield f"records after {reached} are in no segment"


def _summed(row: tuple[Part, ...], columns: tuple[str, ...]) -> tuple[Part, ...]:
    return row[:-1] if columns[-1] == "withdraws" and row[-1] is None else row


def _guarded(part: Callable[[], Iterable[str]]) -> Iterator[str]:
    """What a part finds; damage that stops it is a finding too."""
    try:
        yield from part()
    except StoreDamaged as error:
        yield str(error)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        yield f"its bytes cannot be read: {error}"


def _sum_of_facts(valid: ValidRecord) -> int:
    return sum(hash((fact.predicate, tuple(fact.values))) for fact in derive_facts(valid))


def _highest(segment: Segment) -> int:
    columns = [segment.subjects]
    for group in segment.groups:
        columns += [subjects_of(segment, group), *group.columns]
    return max((max(column) for column in columns if len(column)), default=0)
