"""Finding rows by key (030, evaluation): the join kernels.

Rule: an index answers for exactly one set of positions of one immutable run of rows. It is given key columns and
answers with row numbers, for whole columns at once or for a single key.

`Unique`    an array code → row, where no two rows share a key (most record fields)
`UniquePair` the same for pairs of codes, where these are few
`Grouped`   offsets by code into rows in key order, where codes are dense enough
`Sorted`    binary search in sorted keys of 64 bits: one or two codes packed
`CheckedIndex` the first on one column of several, and the remaining columns compared
`Compared`  nothing made: all rows compared with each of a few keys, where no index stands yet
`Hashed`    binary search in hashes of three columns and more, and the columns compared
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from lace.datalog.engine.sorting import order_of

Codes = npt.NDArray[np.uint32]
Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Keys = npt.NDArray[np.uint64]

NO_ROWS: Rows = np.empty(0, np.int64)
_DENSE_SLACK = 1 << 16  # codes: an array over so many is small whatever it holds
_PAIR_BITS = 22  # at most 16 MiB for an array over all pairs of codes
_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: neighbouring codes end up far apart
_HALF = np.uint64(32)


class Index(Protocol):
    """Rows by key."""

    nbytes: int
    most: int  # no key has more rows

    def counts(self, keys: Sequence[Codes]) -> Rows:
        """How many rows each key has."""

    def expand(self, keys: Sequence[Codes]) -> tuple[Rows, Rows]:
        """Every (place in keys, row) pair, in the order of keys."""

    def find(self, key: Sequence[int]) -> Sequence[int]:
        """The rows of one key."""

    def size(self, key: Sequence[int]) -> int:
        """How many rows one key has, or a few more."""


def is_dense(domain: int, rows: int) -> bool:
    """Whether an array over all codes is worth its memory."""
    return domain <= 16 * rows + _DENSE_SLACK


def pack(keys: Sequence[Codes]) -> Keys:
    """One or two columns as one of 64 bits, in the order of the columns."""
    if len(keys) == 1:
        return keys[0].astype(np.uint64)
    return (keys[0].astype(np.uint64) << _HALF) | keys[1]


def hashed(keys: Sequence[Codes]) -> Keys:
    """Any number of columns mixed into 64 bits; equal rows agree, others may, so the caller compares."""
    mixed = pack(keys[:2])
    with np.errstate(over="ignore"):
        for column in keys[2:]:
            mixed = (mixed ^ (mixed >> np.uint64(29))) * _MIX
            mixed ^= column
    return mixed


def spread(starts: Rows, counts: Rows) -> tuple[Rows, Rows]:
    """Every (place, start + 0..count) pair of consecutive ranges."""
    places = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    # Counting from 0 to the total runs through all ranges without a gap; each range is off by its own shift.
    shift = starts - (ends - counts)
    return places, np.arange(total, dtype=np.int64) + shift[places]


def clipped(keys: Codes, domain: int) -> Codes:
    """Codes given after an index was built all fall on its last, empty place."""
    if len(keys) and int(keys.max()) >= domain:
        return np.minimum(keys, np.uint32(domain))
    return keys


class Unique:
    """code → row, -1 where there is none; the last place stands for every later code."""

    def __init__(self, row_of: npt.NDArray[np.int32]) -> None:
        self._row_of = row_of
        self._cells = row_of.data  # plain integers, for one key at a time
        self._domain = len(row_of) - 1
        self.nbytes: int = row_of.nbytes
        self.most = 1

    def counts(self, keys: Sequence[Codes]) -> Rows:
        return (self._row_of[clipped(keys[0], self._domain)] >= 0).astype(np.int64)

    def expand(self, keys: Sequence[Codes]) -> tuple[Rows, Rows]:
        rows = self._row_of[clipped(keys[0], self._domain)]
        places = np.flatnonzero(rows >= 0)
        found = rows if len(places) == len(rows) else rows[places]
        return places, found.astype(np.int64)

    def find(self, key: Sequence[int]) -> Sequence[int]:
        row = self._cells[key[0]] if key[0] < self._domain else -1
        return (row,) if row >= 0 else ()

    def size(self, key: Sequence[int]) -> int:
        return len(self.find(key))


class UniquePair:
    """The same by pairs of codes, where there are few and no two rows share one."""

    def __init__(self, rows: Unique, bits: int, domain: int) -> None:
        self._rows = rows
        self._bits = np.uint32(bits)
        self._domain = domain
        self.nbytes: int = rows.nbytes
        self.most = 1

    @classmethod
    def build(cls, columns: Sequence[Codes], domain: int) -> UniquePair | None:
        """None where a pair comes twice."""
        bits = domain.bit_length()
        unique = _build_unique((columns[0] << np.uint32(bits)) | columns[1], 1 << 2 * bits)
        return None if unique is None else cls(unique, bits, domain)

    def _packed(self, keys: Sequence[Codes]) -> list[Codes]:
        """Codes given later are none of these: they fall on the pair that no row has."""
        first, second = (clipped(column, self._domain) for column in keys)
        packed = first << self._bits
        packed |= second
        return [packed]

    def counts(self, keys: Sequence[Codes]) -> Rows:
        return self._rows.counts(self._packed(keys))

    def expand(self, keys: Sequence[Codes]) -> tuple[Rows, Rows]:
        return self._rows.expand(self._packed(keys))

    def find(self, key: Sequence[int]) -> Sequence[int]:
        if max(key) >= self._domain:
            return ()
        return self._rows.find((key[0] << int(self._bits) | key[1],))

    def size(self, key: Sequence[int]) -> int:
        return len(self.find(key))


class Grouped:
    """Rows of code c are order[offsets[c]:offsets[c + 1]]; the last offset pair is empty."""

    def __init__(self, offsets: npt.NDArray[np.int32], order: npt.NDArray[np.int32] | None) -> None:
        self._offsets = offsets
        self._cells = offsets.data
        self._order = order
        self._domain = len(offsets) - 2
        self.most: int = int((offsets[1:] - offsets[:-1]).max())
        self.nbytes: int = offsets.nbytes + (order.nbytes if order is not None else 0)

    def _ranges(self, keys: Sequence[Codes]) -> tuple[Rows, Rows]:
        column = clipped(keys[0], self._domain)
        starts = self._offsets[column].astype(np.int64)
        return starts, self._offsets[1:][column] - starts

    def counts(self, keys: Sequence[Codes]) -> Rows:
        return self._ranges(keys)[1]

    def expand(self, keys: Sequence[Codes]) -> tuple[Rows, Rows]:
        places, rows = spread(*self._ranges(keys))
        return places, rows if self._order is None else self._order[rows].astype(np.int64)

    def find(self, key: Sequence[int]) -> Sequence[int]:
        if key[0] >= self._domain:
            return ()
        low, high = self._cells[key[0]], self._cells[key[0] + 1]
        if self._order is None:
            return range(low, high)
        found: list[int] = self._order[low:high].tolist()
        return found

    def size(self, key: Sequence[int]) -> int:
        return self._cells[key[0] + 1] - self._cells[key[0]] if key[0] < self._domain else 0


class Sorted:
    """Binary search over keys of one or two columns."""

    def __init__(self, keys: Keys, order: Rows) -> None:
        self._keys = keys
        self._order = order
        self.nbytes: int = keys.nbytes + order.nbytes
        # Where each key begins, and the end: the distances between are the numbers of rows.
        starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1], [True]])) if len(keys) else NO_ROWS
        self.most: int = int(np.diff(starts).max()) if len(keys) else 0

    def ranges(self, packed: Keys) -> tuple[Rows, Rows]:
        starts = np.searchsorted(self._keys, packed, "left")
        return starts, np.searchsorted(self._keys, packed, "right") - starts

    def counts(self, keys: Sequence[Codes]) -> Rows:
        return self.ranges(pack(keys))[1]

    def expand(self, keys: Sequence[Codes]) -> tuple[Rows, Rows]:
        return self.expand_packed(pack(keys))

    def expand_packed(self, packed: Keys) -> tuple[Rows, Rows]:
        places, rows = spread(*self.ranges(packed))
        return places, self._order[rows]

    def find(self, key: Sequence[int]) -> Sequence[int]:
        packed = np.uint64(key[0] if len(key) == 1 else key[0] << 32 | key[1])
        low, high = self._keys.searchsorted(packed, "left"), self._keys.searchsorted(packed, "right")
        found: list[int] = self._order[low:high].tolist()
        return found

    def size(self, key: Sequence[int]) -> int:
        packed = np.uint64(key[0] if len(key) == 1 else key[0] << 32 | key[1])
        return int(self._keys.searchsorted(packed, "right") - self._keys.searchsorted(packed, "left"))


class CheckedIndex:
    """An index on `inner_places` of the key, none of whose rows share a key; the other columns of the run decide."""

    def __init__(self, inner: Unique, inner_places: Sequence[int], columns: Sequence[Codes]) -> None:
        self._inner = inner
        self._places = inner_places
        self._columns = columns
        self.nbytes: int = inner.nbytes
        self.most: int = inner.most

    def expand(self, keys: Sequence[Codes]) -> tuple[Rows, Rows]:
        places, rows = self._inner.expand([keys[n] for n in self._places])
        rest = [n for n in range(len(keys)) if n not in self._places]
        same = _equal([self._columns[n][rows] for n in rest], [keys[n][places] for n in rest], len(rows))
        return places[same], rows[same]

    def counts(self, keys: Sequence[Codes]) -> Rows:
        return np.bincount(self.expand(keys)[0], minlength=len(keys[0]))

    def find(self, key: Sequence[int]) -> Sequence[int]:
        rest = [(self._columns[n], key[n]) for n in range(len(key)) if n not in self._places]
        rows = self._inner.find([key[n] for n in self._places])
        return [row for row in rows if all(column[row] == code for column, code in rest)]

    def size(self, key: Sequence[int]) -> int:
        return len(self.find(key))


class Hashed:
    """Binary search over hashes of three columns and more; the columns decide.

    Rows of one hash are of one key unless hashes collide. As long as none do, one row of each answers for all of them:
    a key that a million rows have is counted without looking at them.
    """

    def __init__(self, columns: Sequence[Codes]) -> None:
        mixed = hashed(columns)
        self._order = np.argsort(mixed, kind="stable")
        self._columns = columns
        self._inner = Sorted(mixed[self._order], self._order)
        self.nbytes: int = self._inner.nbytes
        self.most: int = self._inner.most
        keys, rows = mixed[self._order], [column[self._order] for column in columns]
        # Neighbours with one hash and different columns. From one such pair on, every row that is found is compared.
        alike = _equal([column[1:] for column in rows], [column[:-1] for column in rows], max(0, len(keys) - 1))
        self._collides = bool(((keys[1:] == keys[:-1]) & ~alike).any())

    def _ranges(self, keys: Sequence[Codes]) -> tuple[Rows, Rows]:
        """Where the rows of each key stand in order, as far as one of them tells."""
        starts, counts = self._inner.ranges(hashed(keys))
        if not len(self._order):
            return starts, counts
        # A hash above all others starts behind the last row; any row will do there, for its count is 0 already.
        first = self._order[np.minimum(starts, len(self._order) - 1)]
        return starts, np.where(_equal([column[first] for column in self._columns], keys, len(first)), counts, 0)

    def expand(self, keys: Sequence[Codes]) -> tuple[Rows, Rows]:
        if not self._collides:
            places, numbers = spread(*self._ranges(keys))
            return places, self._order[numbers]
        places, rows = self._inner.expand_packed(hashed(keys))
        same = _equal([column[rows] for column in self._columns], [key[places] for key in keys], len(rows))
        return places[same], rows[same]

    def counts(self, keys: Sequence[Codes]) -> Rows:
        if not self._collides:
            return self._ranges(keys)[1]
        return np.bincount(self.expand(keys)[0], minlength=len(keys[0]))

    def find(self, key: Sequence[int]) -> Sequence[int]:
        found: list[int] = self.expand([np.array([code], np.uint32) for code in key])[1].tolist()
        return found

    def size(self, key: Sequence[int]) -> int:
        mixed = hashed([np.array([code], np.uint32) for code in key])
        return int(self._inner.ranges(mixed)[1][0])


class Compared:
    """The rows of a few keys, each found by comparing all rows with it: no order is made for a single question."""

    def __init__(self, columns: Sequence[Codes], keys: Sequence[Codes]) -> None:
        wanted = zip(*(column.tolist() for column in keys), strict=True)
        self._rows: dict[tuple[int, ...], Rows] = {key: matching(columns, key) for key in dict.fromkeys(wanted)}
        self.most: int = max(map(len, self._rows.values()), default=0)
        self.nbytes = 0

    def _of(self, keys: Sequence[Codes]) -> list[Rows]:
        return [self._rows[key] for key in zip(*(column.tolist() for column in keys), strict=True)]

    def counts(self, keys: Sequence[Codes]) -> Rows:
        return np.array([len(rows) for rows in self._of(keys)], np.int64)

    def expand(self, keys: Sequence[Codes]) -> tuple[Rows, Rows]:
        places = np.repeat(np.arange(len(keys[0]), dtype=np.int64), self.counts(keys))
        return places, np.concatenate([NO_ROWS, *self._of(keys)])

    def find(self, key: Sequence[int]) -> Sequence[int]:
        found: list[int] = self._rows[tuple(key)].tolist()
        return found

    def size(self, key: Sequence[int]) -> int:
        return len(self.find(key))


def matching(columns: Sequence[Codes], key: Sequence[int]) -> Rows:
    """The rows that have a key, ascending."""
    found = np.flatnonzero(columns[0] == np.uint32(key[0]))
    for column, code in zip(columns[1:], key[1:], strict=True):
        found = found[column[found] == np.uint32(code)]
    return found


def _equal(left: Sequence[Codes], right: Sequence[Codes], rows: int) -> Mask:
    same = np.ones(rows, np.bool_)
    for mine, other in zip(left, right, strict=True):
        same &= mine == other
    return same


def build_index(columns: Sequence[Codes], domain: int) -> Index:
    """The best index for key columns whose codes are below `domain`."""
    rows = len(columns[0])
    if len(columns) == 1:
        return _build_single(columns[0], domain)
    if is_dense(domain, rows):
        # One column that no two rows share finds the row; the others only have to be compared there.
        for place, column in enumerate(columns):
            unique = _build_unique(column, domain)
            if unique is not None:
                return CheckedIndex(unique, (place,), columns)
    pair_bits = 2 * domain.bit_length()
    if len(columns) == 2 and pair_bits <= _PAIR_BITS and is_dense(1 << pair_bits, rows):
        pairs = UniquePair.build(columns, domain)
        if pairs is not None:
            return pairs
    if len(columns) == 2:
        return build_sorted(columns)
    return Hashed(columns)


def _build_single(column: Codes, domain: int) -> Index:
    if not is_dense(domain, len(column)):
        return build_sorted([column])
    unique = _build_unique(column, domain)
    return unique if unique is not None else build_grouped(column, domain)


def _build_unique(column: Codes, domain: int) -> Unique | None:
    if len(column) > domain:
        return None  # there are not so many codes
    row_of = np.full(domain + 1, -1, np.int32)
    numbers = np.arange(len(column), dtype=np.int32)
    # Where rows share a code, one overwrites the others, and these do not find their own numbers again.
    row_of[column] = numbers
    return Unique(row_of) if np.array_equal(row_of[column], numbers) else None


def build_grouped(column: Codes, domain: int) -> Grouped:
    offsets = np.zeros(domain + 2, np.int32)  # one place more than ends: an empty range for every later code
    np.cumsum(np.bincount(column, minlength=domain), out=offsets[1:-1])
    offsets[-1] = offsets[-2]
    if len(column) < 2 or bool((column[1:] >= column[:-1]).all()):
        return Grouped(offsets, None)  # in order already: a place in the ranges is a row number
    return Grouped(offsets, order_of([column]).astype(np.int32))


def build_sorted(columns: Sequence[Codes]) -> Sorted:
    order = order_of(columns)
    return Sorted(pack([column[order] for column in columns]), order)
