"""Record ids as columns (070): 32 bytes of digest in four words, and the type letter.

Rule: ids stand sorted by digest bytes, then by letter, and each stands once. The arrays are never changed.
"""

from __future__ import annotations

import re
from binascii import a2b_base64, b2a_base64
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Literal, TypeVar, cast

import numpy as np
import numpy.typing as npt

from lace.errors import InvalidText, excerpt
from lace.notation import b64a
from lace.notation.identifiers import H3, RECORD_TYPES
from lace.values import dataclass

Words = npt.NDArray[np.uint64]
Letters = npt.NDArray[np.uint8]
Positions = npt.NDArray[np.int64]

ID_BYTES = 33
_PARTITION_BITS = 12
_PARTITIONS = 1 << _PARTITION_BITS
_PAYLOAD = slice(2, 45)  # of `P.<43 symbols>.H3`
_ROWS_AT_ONCE = 1 << 16
_TURNED_AT_ONCE = 1 << 12
_FEW = 4  # ids that are looked for one by one
_TEXT_LENGTH = 48
_LINE = _TEXT_LENGTH + 1
_AFTER_PAYLOAD = np.frombuffer(f".{H3}\n".encode(), np.uint8)
# 43 symbols hold 258 bits for 256: of the last symbol only the sixteen with two zero bits are canonical.
_IS_ID = re.compile(r"[BPS]\.[0-9A-Z_a-z~]{42}[048CGKOSW_dhlptx]\.H3")
_STANDARD = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
# What is not a symbol of B64A becomes one of neither alphabet: `+` and `/` are symbols of the standard one.
_TO_STANDARD = bytes.maketrans(
    bytes(set(range(256)) - set(b64a.ALPHABET.encode())) + b64a.ALPHABET.encode(), b"!" * 192 + _STANDARD.encode()
)
_FROM_STANDARD = bytes.maketrans(_STANDARD.encode(), b64a.ALPHABET.encode())


Value = TypeVar("Value", np.uint64, np.int64)


def distinct(values: npt.NDArray[Value]) -> npt.NDArray[Value]:
    """Sorted, each once."""
    ordered = np.sort(values)
    if len(ordered) < 2:
        return ordered
    return ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))]


@dataclass(frozen=True, slots=True, eq=False)
class Ids:
    """Sorted distinct record ids; `words` is four columns, the most significant first."""

    words: Words
    letters: Letters

    def __len__(self) -> int:
        return len(self.letters)

    @property
    def nbytes(self) -> int:
        """What the columns hold."""
        return self.words.nbytes + self.letters.nbytes

    def take(self, chosen: npt.NDArray[np.int64] | npt.NDArray[np.bool_] | slice) -> Ids:
        """Some of them, chosen by ascending position or by a mask."""
        if isinstance(chosen, slice):
            return Ids(np.ascontiguousarray(self.words[:, chosen]), np.ascontiguousarray(self.letters[chosen]))
        places: Positions = np.flatnonzero(chosen) if chosen.dtype.kind == "b" else cast(Positions, chosen)
        return Ids(_ordered(self.words, places), self.letters[places])

    def positions(self, wanted: Ids) -> Positions:
        """Where each of some ids stands here, -1 for those that do not."""
        if len(wanted) <= _FEW and len(self):
            return np.array([self._position(wanted, ordinal) for ordinal in range(len(wanted))], np.int64)
        found = np.full(len(wanted), -1, np.int64)
        at = np.searchsorted(self.words[0], wanted.words[0])
        open_ = np.arange(len(wanted))
        # Ids that share their first word stand together; more than one takes grinding, which costs the grinder most.
        while len(open_):
            inside = at[open_] < len(self)
            open_ = open_[inside]
            here, there = self.words[:, at[open_]], wanted.words[:, open_]
            open_ = open_[here[0] == there[0]]
            here, there = self.words[:, at[open_]], wanted.words[:, open_]
            same = (here[1:] == there[1:]).all(axis=0) & (self.letters[at[open_]] == wanted.letters[open_])
            found[open_[same]] = at[open_[same]]
            open_ = open_[~same]
            at[open_] += 1
        return found

    def _position(self, wanted: Ids, ordinal: int) -> int:
        """Where one of some ids stands here, or -1.

        Columns of one id cost more to make than to look through, and `searchsorted` releases the interpreter lock,
        which takes longer to get back than the search.
        """
        first, rest = wanted.words[0, ordinal], wanted.words[1:, ordinal].tolist()
        letter, column = wanted.letters[ordinal], self.words[0]
        at = bisect_left(column, first)
        while at < len(column) and column[at] == first:
            if self.words[1:, at].tolist() == rest and self.letters[at] == letter:
                return at
            at += 1
        return -1

    def among(self, wanted: Ids) -> npt.NDArray[np.bool_]:
        """Which of some ids stand here."""
        return self.positions(wanted) >= 0

    def without(self, others: Ids) -> Ids:
        """These but for some others."""
        if not len(others) or not len(self):
            return self
        return self.take(~others.among(self))

    def with_(self, others: Ids) -> Ids:
        """These and some others."""
        if not len(others):
            return self
        if not len(self):
            return others
        fresh = others.without(self)
        if not len(fresh):
            return self
        words, letters = (
            np.concatenate((self.words, fresh.words), axis=1),
            np.concatenate((self.letters, fresh.letters)),
        )
        return sort_ids(words, letters, kind="stable")  # which merges two sorted runs

    def texts(self) -> list[str]:
        """The ids as `P.<b64a>.H3`, in the order of the columns."""
        if not len(self):
            return []
        symbols = _symbols(self).decode("ascii")
        letters = self.letters.tobytes().decode("ascii")
        return [f"{letters[i]}.{symbols[44 * i : 44 * i + 43]}.{H3}" for i in range(len(self))]

    def to_bytes(self) -> bytes:
        """A compact form for keeping: 33 bytes an id."""
        return self.rows().tobytes()

    def pieces(self, rows_at_once: int) -> Iterator[bytes]:
        """The same, some ids at a time."""
        for start in range(0, len(self), rows_at_once):
            yield self.take(slice(start, start + rows_at_once)).to_bytes()

    def rows(self) -> npt.NDArray[np.uint8]:
        """The same as an (n, 33) array: the digest, and the letter."""
        rows = np.empty((len(self), ID_BYTES), np.uint8)
        rows[:, 32] = self.letters
        _write_digests(self, rows)
        return rows


EMPTY = Ids(np.zeros((4, 0), np.uint64), np.zeros(0, np.uint8))


def _symbols(ids: Ids) -> bytes:
    """The payloads of some ids, 43 symbols and a zero each."""
    rows = np.zeros((len(ids), ID_BYTES), np.uint8)
    _write_digests(ids, rows)
    return b2a_base64(rows.tobytes(), newline=False).translate(_FROM_STANDARD)


def framed(ids: Ids, before: bytes, after: bytes) -> list[bytes]:
    """The text of each id between two that are the same for all: one block of rows, which is cut."""
    if not len(ids):
        return []
    start = len(before)
    row = before + b"?." + bytes(43) + f".{H3}".encode() + after
    rows = np.frombuffer(bytearray(row) * len(ids), np.uint8).reshape(len(ids), len(row))
    rows[:, start] = ids.letters
    rows[:, start + 2 : start + 45] = np.frombuffer(_symbols(ids), np.uint8).reshape(len(ids), 44)[:, :43]
    data, width = rows.tobytes(), len(row)
    return [data[at : at + width] for at in range(0, len(data), width)]


def in_text_order(ids: Ids) -> Ids:
    """The ids sorted as their texts are: by their letters first. Not for what looks for ids in the columns."""
    if not len(ids) or int(ids.letters.min()) == int(ids.letters.max()):
        return ids
    return ids.take(np.argsort(ids.letters, kind="stable"))


def same_ids(one: Ids, other: Ids) -> bool:
    """Whether two columns hold the same."""
    return np.array_equal(one.words, other.words) and np.array_equal(one.letters, other.letters)


def joined(columns: Sequence[Ids]) -> Ids:
    """Columns one after the other: each stands whole before the next."""
    if not columns:
        return EMPTY
    words = np.concatenate([one.words for one in columns], axis=1)
    return Ids(words, np.concatenate([one.letters for one in columns]))


def in_order(columns: Sequence[Ids]) -> Ids:
    """Columns that share nothing as one: those that follow each other are not sorted again."""
    whole = joined(columns)
    if bool((whole.words[0, 1:] > whole.words[0, :-1]).all()):
        return whole
    return sort_ids(whole.words, whole.letters, kind="stable")


def sort_ids(words: Words, letters: Letters, kind: Literal["stable"] | None = None) -> Ids:
    """Ids of columns in any order; repeats are dropped."""
    # Digests hardly ever share their first 64 bits: one word sorts them, unless somebody ground them to share it.
    order = np.argsort(words[0], kind=kind)
    first = words[0][order]
    if bool((first[1:] == first[:-1]).any()):
        order = np.lexsort((letters, words[3], words[2], words[1], words[0]))
        rows = np.vstack((words[:, order], letters[order].astype(np.uint64)))
        order = order[np.concatenate(([True], (rows[:, 1:] != rows[:, :-1]).any(axis=0)))]
    return Ids(_ordered(words, order), letters[order])


def _ordered(words: Words, order: Positions) -> Words:
    """Columns in another order, one after the other: a third of the time that indexing all four at once takes."""
    found = np.empty((len(words), len(order)), np.uint64)
    for place in range(len(words)):
        found[place] = words[place][order]
    return found


def ids_of_digests(digests: npt.NDArray[np.uint8], letters: Letters) -> Ids:
    """Ids of an (n, 32) array of digest bytes and their letters."""
    return sort_ids(_words(digests), letters)


def digests_of(ids: Ids) -> npt.NDArray[np.uint8]:
    """The digests as an (n, 32) array of bytes."""
    rows = np.empty((len(ids), 32), np.uint8)
    _write_digests(ids, rows)
    return rows


def _write_digests(ids: Ids, rows: npt.NDArray[np.uint8]) -> None:
    """Write digests to the first 32 places of rows, a piece at a time: turned columns of millions leave the cache."""
    for start in range(0, len(ids), _TURNED_AT_ONCE):
        part = slice(start, start + _TURNED_AT_ONCE)
        words = np.ascontiguousarray(ids.words[:, part].T).astype(">u8")
        rows[part, :32] = words.view(np.uint8).reshape(-1, 32)


def ids_of_texts(records: Iterable[str]) -> Ids:
    """The ids of some texts, each an exact H3 id; InvalidText for any other."""
    piece = "\n".join((*records, "")).encode(errors="replace")
    return _ids_of_one(piece) if len(piece) == _LINE else ids_of_lines((piece,), len(piece) // _LINE)


@lru_cache(maxsize=64)
def _ids_of_one(piece: bytes) -> Ids:
    """A new record is asked about some ten times for each of the links that it goes to."""
    return ids_of_lines((piece,), 1)


def ids_of_lines(pieces: Iterable[bytes], count: int) -> Ids:
    """The ids of so many texts that each end in a line break, some texts at a time; InvalidText for one that is not an
    H3 id. However many they are, no text becomes a string, and no column is held twice before they are sorted."""
    words, letters, end = np.empty((4, count), np.uint64), np.empty(count, np.uint8), 0
    for piece in pieces:
        rows = _rows_of_lines(piece)
        start, end = end, end + len(rows)
        letters[start:end] = rows[:, 0]
        try:
            words[:, start:end] = _words(_decoded(rows))
        except ValueError:
            raise _not_an_id(piece) from None
    return sort_ids(words, letters) if count else EMPTY


def _rows_of_lines(piece: bytes) -> npt.NDArray[np.uint8]:
    if len(piece) % _LINE:
        raise _not_an_id(piece)
    rows = np.frombuffer(piece, np.uint8).reshape(-1, _LINE)
    if not _are_framed(rows):
        raise _not_an_id(piece)
    return rows


def _are_framed(rows: npt.NDArray[np.uint8]) -> bool:
    """Whether what stands around the payloads of some rows is what stands around those of ids."""
    letters = rows[:, 0]
    known = (letters == ord("B")) | (letters == ord("P")) | (letters == ord("S"))
    return bool(known.all() and (rows[:, 1] == ord(".")).all() and (rows[:, 45:] == _AFTER_PAYLOAD).all())


def _not_an_id(piece: bytes) -> InvalidText:
    texts = piece.decode(errors="replace").split("\n")[:-1]
    wrong = next((text for text in texts if not _IS_ID.fullmatch(text)), "")
    return InvalidText("not an H3 record id", rule="record-id", found=excerpt(wrong))


def _decoded(rows: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """The digests of ids that stand as rows of characters; ValueError if a payload is not canonical."""
    # 43 symbols and a zero symbol are 33 bytes, so that many ids are decoded as one text.
    symbols = np.full((len(rows), 44), ord("0"), np.uint8)
    symbols[:, :43] = rows[:, _PAYLOAD]
    data = a2b_base64(symbols.tobytes().translate(_TO_STANDARD))  # which passes over what is not a symbol
    if len(data) != len(rows) * ID_BYTES:
        raise ValueError("a symbol that is not of B64A")
    decoded = np.frombuffer(data, np.uint8).reshape(-1, ID_BYTES)
    if decoded[:, 32].any():
        raise ValueError("bits beyond the digest")
    return decoded[:, :32]


def _words(digests: npt.NDArray[np.uint8]) -> Words:
    return np.ascontiguousarray(digests).view(">u8").reshape(len(digests), 4).T.astype(np.uint64)


def unsorted_ids(text: bytes) -> Ids:
    """Ids that are known to be H3 ids, back to back, in the order given: for what hangs on no order, as sums do."""
    rows = np.frombuffer(text, np.uint8).reshape(-1, _TEXT_LENGTH)
    return Ids(_words(_decoded(rows)), np.ascontiguousarray(rows[:, 0]))


def partition_sizes(ids: Ids) -> Positions:
    """How many of some ids are in each of the 4,096 partitions by the first two symbols (050)."""
    return np.bincount((ids.words[0] >> np.uint64(64 - _PARTITION_BITS)).astype(np.int64), minlength=_PARTITIONS)


def columnar(records: Iterable[str]) -> list[str]:
    """Those of some record ids that columns can hold."""
    return [record for record in records if _IS_ID.fullmatch(record)]


def ids_of_bytes(data: bytes | memoryview, rows_at_once: int = _ROWS_AT_ONCE) -> Ids:
    """What `Ids.to_bytes` gave; InvalidText if it cannot have. A piece at a time: there may be millions."""
    if len(data) % ID_BYTES:
        raise InvalidText("kept ids are cut", rule="kept-ids", found=f"{len(data)} bytes")
    rows = np.frombuffer(data, np.uint8).reshape(-1, ID_BYTES)
    letters = rows[:, 32].copy()
    if sum(np.count_nonzero(letters == ord(letter)) for letter in RECORD_TYPES) != len(letters):
        raise InvalidText("kept ids have an unknown letter", rule="kept-ids")
    words = np.empty((4, len(rows)), np.uint64)
    for start in range(0, len(rows), rows_at_once):
        part = slice(start, start + rows_at_once)
        words[:, part] = np.ascontiguousarray(rows[part, :32]).view(">u8").T
    if bool((words[0, 1:] > words[0, :-1]).all()):
        return Ids(words, letters)
    return sort_ids(words, letters, kind="stable")  # a sorted run, and a short one behind it
