"""Saving what can be read of a damaged store file.

Rule: only the bytes of records count: what they hash to they are, whatever tables and indexes say. Nothing is lost on
the way: the damaged file stays beside the new one under a name of its own.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Container, Iterator
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from urllib.parse import quote

from lace.errors import InvalidInput, NotFound, StoreError
from lace.limits import RecordLimits
from lace.notation.closing import Closing
from lace.records.frame import claimed_hash
from lace.records.validate import validate
from lace.store.bundle import Frame, read_frames
from lace.store.columns.repair.leafpages import LeafPages
from lace.store.columns.repair.placing import put_in_place_of, real, resume_move, signs_of, unused, upkeep
from lace.store.columns.repair.rebuild import Kept, Setting, rebuild
from lace.store.columns.tables.checksum import checksum
from lace.store.columns.tables.schema import PAGE_BYTES
from lace.store.columns.tables.state import StoreState
from lace.values import dataclass

UNREADABLE = (sqlite3.Error, UnicodeDecodeError)  # SQLite quotes the bytes it found in its complaints
IN_ONE_PIECE = RecordLimits(max_data_bytes=PAGE_BYTES)  # longer ones are interrupted by numbers of pages


@dataclass(frozen=True, slots=True)
class Lost:
    """A record of which not all can be read; `id` is 0 where not even its number is known."""

    id: int
    hash: str
    reason: str


@dataclass(slots=True)
class RepairReport:
    """What became of the records of a damaged file."""

    kept: int = 0
    forgotten: int = 0  # left out, because they were forgotten here
    carved: int = 0  # of those: found in the file, but in none of its tables; a deleted one may be among them
    lost: list[Lost] = field(default_factory=list)
    settings: int = 0
    lost_settings: bool = False  # not even how many there were is known
    damaged_file: Path | None = None


def repair(
    path: Path,
    limits: RecordLimits,
    progress: Callable[[int], None] = lambda _: None,
    forgotten: Collection[str] = (),
) -> RepairReport:
    """Put a whole store in the place of a damaged one, which is kept as `<name>.damaged`."""
    path = real(path)
    resume_move(path, f"{path.name}.damaged")
    if not path.exists():
        raise NotFound(f"{path}: there is no store")
    with unused(path) as file:
        before = signs_of(path, file)
    aside = free_name(path.with_name(f"{path.name}.damaged"))
    report = RepairReport(damaged_file=aside)
    with upkeep(path, "repair") as part:
        with _Salvage(path, limits, report, progress) as salvage:  # closed before its name is another file's
            found = rebuild(part, salvage.records(), salvage.settings(), salvage.state(), forgotten=forgotten)
            report.kept, report.forgotten = found
        with unused(path) as file:
            if signs_of(path, file) != before:
                raise StoreError(f"{path}: somebody wrote to it meanwhile: nothing was changed, try again")
            put_in_place_of(part, path, aside)
    return report


def free_name(path: Path) -> Path:
    """A path that is not taken yet."""
    number = 1
    found = path
    while found.exists():
        number += 1
        found = path.with_name(f"{path.name}{number}")
    return found


class _Salvage(Closing):
    """Reads around the damage."""

    def __init__(self, path: Path, limits: RecordLimits, report: RepairReport, progress: Callable[[int], None]) -> None:
        self._path = path
        self._limits = limits
        self._report = report
        self._progress = progress
        self._connection = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, isolation_level=None)
        self._connection.text_factory = bytes  # a damaged text need not be UTF-8, and must not end the reading
        with suppress(*UNREADABLE):
            self._connection.execute("PRAGMA trusted_schema = OFF")
        self._is_broken = False  # some of the table of records cannot be reached
        self._unreadable: Exception | None = None  # why SQLite knows nothing of the table

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def state(self) -> StoreState:
        """The counters, as far as they make sense; ids and removals must only not come again."""
        try:
            self._require_table("state")
            row = self._connection.execute("SELECT last_record, last_removal, generation FROM state").fetchone()
        except UNREADABLE:
            row = None
        numbers = [value if isinstance(value, int) and 0 < value < 1 << 48 else 0 for value in row or (0, 0, 0)]
        return StoreState(last_record=numbers[0], last_removal=numbers[1], generation=numbers[2] + 1)

    def settings(self) -> Iterator[Setting]:
        """The settings that are as they were written."""
        try:
            self._require_table("settings")
            rows = self._connection.execute("SELECT namespace, key, value, sum FROM settings").fetchall()
        except UNREADABLE:
            self._report.lost_settings = True
            return
        for namespace, key, value, said in rows:
            try:
                texts = namespace.decode(), key.decode()
            except (AttributeError, UnicodeDecodeError):
                continue
            if checksum(*texts, value) == said:
                self._report.settings += 1
                yield (*texts, value)

    def records(self) -> Iterator[Kept]:
        """Every record whose bytes are whole, by its id; the others are reported."""
        seen: set[str] = set()
        highest = 0
        for number, body in self._bodies():
            highest = number
            try:
                record = validate(body, limits=self._limits)
            except InvalidInput as error:
                self._report.lost.append(Lost(number, claimed_hash(body), str(error)))
                continue
            seen.add(record.hash)
            self._progress(1)
            yield number, record
        if self._is_broken:
            highest = max(highest, self.state().last_record)
            for number, body in self._outside(seen):
                record = validate(body, limits=self._limits)
                if record.hash not in seen:
                    seen.add(record.hash)
                    highest = max(highest + 1, number)
                    self._report.carved += 1
                    self._progress(1)
                    yield highest, record

    def _bodies(self) -> Iterator[tuple[int, bytes]]:
        """The rows of the table of records that can be reached, in order."""
        last = self._last_id()
        after = 0
        while after < last:
            found = self._next(after)
            if found is None:
                self._is_broken = True
                after = self._skip(after, last)
                continue
            number, body = found
            if number <= after:  # the end, or a tree that leads back
                self._is_broken |= number < 0
                return
            after = number
            if isinstance(body, bytes):
                yield number, body
            else:
                self._report.lost.append(Lost(number, "", "its place does not hold bytes"))

    def _last_id(self) -> int:
        known = self.state().last_record
        try:
            self._require_table("records")
            row = self._connection.execute("SELECT max(id) FROM records").fetchone()
        except UNREADABLE as error:
            self._is_broken = True
            self._unreadable = error
            return 0 if "is not a table" in str(error) else known
        return max(known, row[0] or 0)

    def _require_table(self, name: str) -> None:
        """sqlite3.DatabaseError unless it is a plain table: a view in its place may never end."""
        query = "SELECT type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' FROM sqlite_master WHERE name = ?"
        if self._connection.execute(query, (name,)).fetchone() != (1,):
            raise sqlite3.DatabaseError(f"{name} is not a table")

    def _next(self, after: int) -> tuple[int, object] | None:
        """The next row behind an id, (0, …) if there is none; None if it cannot be read."""
        query = "SELECT id, body FROM records WHERE id > ? ORDER BY id LIMIT 1"
        try:
            row = self._connection.execute(query, (after,)).fetchone()
        except UNREADABLE:
            return None
        return (0, b"") if row is None else (row[0], row[1])

    def _skip(self, after: int, last: int) -> int:
        """Past a row or page that cannot be read: its id, where that much is known, else by wider steps."""
        query = "SELECT id FROM records WHERE id > ? ORDER BY id LIMIT 1"
        try:
            row = self._connection.execute(query, (after,)).fetchone()
        except UNREADABLE:
            row = None
        if row is not None and row[0] > after:
            self._report.lost.append(Lost(row[0], "", "its page cannot be read"))
            return int(row[0])
        # A page that cannot be read hides an unknown number of ids. Doubling finds an id behind it, halving the first
        # such id: a handful of queries for each damaged page instead of one for each id.
        step = 1
        while after + step < last and self._next(after + step) is None:
            step *= 2
        low, high = step // 2, step  # the last step that failed, the first that did not
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._next(after + middle) is None else (low, middle)
        return min(after + high, last)

    def _outside(self, seen: Container[str]) -> Iterator[tuple[int, bytes]]:
        """Whole records that the tables do not lead to: those on leaves with their ids, then any in one piece."""
        missed = {lost.id for lost in self._report.lost}
        with LeafPages(self._path, PAGE_BYTES) as pages:
            if not len(pages) and self._unreadable is not None:
                raise StoreError(f"{self._path}: nothing of it can be read: {self._unreadable}")
            for row in pages.rows():
                name = claimed_hash(row.body)
                if name in seen:
                    continue
                reason = "pages of it are missing" if not row.is_whole else self._fault(row.body)
                if not reason:
                    yield row.id, row.body
                elif row.id not in missed:
                    missed.add(row.id)
                    self._report.lost.append(Lost(row.id, name, reason))
        for body in self._carved():
            yield 0, body

    def _fault(self, body: bytes) -> str:
        """Why bytes are not a record; empty if they are one."""
        try:
            validate(body, limits=self._limits)
        except InvalidInput as error:
            return str(error)
        return ""

    def _carved(self) -> Iterator[bytes]:
        """Records that lie in one piece anywhere in the file, which is within one page."""
        with self._path.open("rb") as file:
            for item in read_frames(file, 0, self._path.stat().st_size, IN_ONE_PIECE):
                if isinstance(item, Frame) and not self._fault(item.data):
                    yield item.data
