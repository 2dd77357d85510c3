"""The rows of the table of records, read off the pages of a store file without the trees that lead to them.

Rule: a page is believed to be what it looks like, because every body is hashed by its reader. SQLite finds
a row by its first page, the schema and the pages of a tree; where one of those is gone, the leaves are mostly still
there, and in the log beside the file too. The forms are those of https://www.sqlite.org/fileformat2.html.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import BinaryIO, NamedTuple

from lace.notation.closing import Closing
from lace.records.grammar import MARK

TABLE_LEAF = 0x0D
HEADER_BYTES = 100  # of the file, before the first page's own
READ_PER_BYTE = 8  # of the file: pages that say they belong to many rows are not read for all of them
LONGEST_PAGE = 1 << 16
LOG_HEADER_BYTES, FRAME_HEADER_BYTES = 32, 24
_INTEGER_BYTES = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 8: 0, 9: 0}  # of each kind of number
_LONGEST_HEADER = 1 + 1 + 1 + 9  # of a row of an id, a number and bytes


class LeafRow(NamedTuple):
    """A row that looks like a record's: its id, what is known of its body, and whether that is all."""

    id: int
    body: bytes
    is_whole: bool


class _Cell(NamedTuple):
    id: int
    size: int  # of the body
    at: int  # where the body begins in its page
    local: int  # how many of its bytes are there
    rest: int  # the page where it goes on, 0 if it does not


class LeafPages(Closing):
    """A store file as pages."""

    def __init__(self, path: Path, page_bytes: int) -> None:
        self._file: BinaryIO = path.open("rb")
        log = Path(f"{path}-wal")
        self._log: BinaryIO = log.open("rb") if log.exists() else BytesIO()
        self._page_bytes = page_bytes
        self._logged = _logged_pages(self._log, page_bytes)
        self._in_file = -(-path.stat().st_size // page_bytes)
        # A log may say that it holds any page at all, so those behind the file are taken by name and not counted up to.
        behind = sorted(number for number in self._logged if number > self._in_file)
        self._most_bytes = (self._in_file + len(behind)) * page_bytes  # that a row can have
        self._left = READ_PER_BYTE * (self._in_file + len(behind))  # pages that may still be read for long bodies
        self._ids = array("q")
        self._places = array("q")  # of each id: its page, and where in it
        for number in chain(range(1, self._in_file + 1), behind):
            for at, cell in self._cells(number):
                self._ids.append(cell.id)
                self._places.append(number * LONGEST_PAGE + at)

    def __len__(self) -> int:
        return len(self._ids)

    def close(self) -> None:
        """Let go of the file and its log."""
        self._file.close()
        self._log.close()

    def rows(self) -> Iterator[LeafRow]:
        """Every row, by ascending id; a row on several pages comes several times."""
        read, page = 0, b""
        for index in sorted(range(len(self._ids)), key=self._ids.__getitem__):
            number, at = divmod(self._places[index], LONGEST_PAGE)
            if number != read:
                read, page = number, self._page(number)
            cell = self._cell(page, at)
            if cell is not None:
                yield self._row(cell, page)

    def _is_there(self, number: int) -> bool:
        return 0 < number <= self._in_file or number in self._logged

    def _page(self, number: int) -> bytes:
        at = self._logged.get(number)
        file = self._file if at is None else self._log
        file.seek((number - 1) * self._page_bytes if at is None else at)
        return file.read(self._page_bytes)

    def _row(self, cell: _Cell, page: bytes) -> LeafRow:
        pieces = [page[cell.at : cell.at + cell.local]]
        missing = cell.size - cell.local
        following = cell.rest
        while missing and self._is_there(following) and self._left:
            self._left -= 1
            page = self._page(following)
            pieces.append(page[4 : 4 + missing])
            missing -= len(pieces[-1])
            following = int.from_bytes(page[:4])
            if len(page) < self._page_bytes:
                break
        return LeafRow(cell.id, b"".join(pieces), missing == 0)

    def _cells(self, number: int) -> Iterator[tuple[int, _Cell]]:
        """Where in a page rows of records begin, and what they say; none if the page is not a leaf."""
        page = self._page(number)
        start = HEADER_BYTES if number == 1 else 0
        if len(page) < start + 8 or page[start] != TABLE_LEAF:
            return
        count = int.from_bytes(page[start + 3 : start + 5])
        pointers = start + 8
        if pointers + 2 * count > len(page):
            return
        for pointer in range(pointers, pointers + 2 * count, 2):
            at = int.from_bytes(page[pointer : pointer + 2])
            cell = self._cell(page, at)
            if cell is not None:
                yield at, cell

    def _cell(self, page: bytes, at: int) -> _Cell | None:
        """A row of an id, a number and bytes that begin like a record; None if something else is there."""
        try:
            payload, at = _varint(page, at)
            row, start = _varint(page, at)
            header, at = _varint(page, start)
            if header > _LONGEST_HEADER:
                return None
            alias, at = _varint(page, at)
            number, at = _varint(page, at)
            kind, at = _varint(page, at)
        except IndexError:
            return None
        if at != start + header or alias != 0 or number not in _INTEGER_BYTES or kind < 12 or kind % 2 or row <= 0:
            return None
        body = at + _INTEGER_BYTES[number]
        size = (kind - 12) // 2
        fits = payload == body - start + size <= self._most_bytes
        if not fits or not page.startswith(MARK, body):
            return None
        local = self._local(payload)
        end = start + local
        rest = int.from_bytes(page[end : end + 4]) if local < payload else 0
        return _Cell(row, size, body, end - body, rest)

    def _local(self, payload: int) -> int:
        """How much of a payload is in its leaf."""
        usable = self._page_bytes
        if payload <= usable - 35:
            return payload
        least = (usable - 12) * 32 // 255 - 23
        some = least + (payload - least) % (usable - 4)
        return some if some <= usable - 35 else least


def _varint(page: bytes, at: int) -> tuple[int, int]:
    """A number of one to nine bytes, and where the next thing begins."""
    value = 0
    for length in range(8):
        byte = page[at + length]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + length + 1
    value = value << 8 | page[at + 8]
    return (value - (1 << 64) if value >> 63 else value), at + 9


def _logged_pages(log: BinaryIO, page_bytes: int) -> dict[int, int]:
    """Where in a log the newest form of each page stands that a transaction brought to its end.

    The log's own header is not needed: its writer gives all frames of one round the same two random numbers.
    """
    places: dict[int, int] = {}
    open_places: dict[int, int] = {}
    at, salts = LOG_HEADER_BYTES, b""
    while True:
        log.seek(at)
        head = log.read(FRAME_HEADER_BYTES)
        salts = salts or head[8:16]
        number, pages_after = int.from_bytes(head[:4]), int.from_bytes(head[4:8])
        if len(head) < FRAME_HEADER_BYTES or head[8:16] != salts or not number:
            return places
        open_places[number] = at + FRAME_HEADER_BYTES
        if pages_after:  # only the last frame of a transaction has it
            places.update(open_places)
            open_places.clear()
        at += FRAME_HEADER_BYTES + page_bytes
