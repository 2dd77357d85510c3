"""Which index is built for which columns, what it holds, and that every kind answers alike."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

from engine.test_index import columns_of
from lace.datalog.engine import index as index_module
from lace.datalog.engine.index import (
    Codes,
    Compared,
    Hashed,
    Index,
    UniquePair,
    build_grouped,
    build_index,
    build_sorted,
    hashed,
    is_dense,
    pack,
    spread,
)


@pytest.mark.parametrize(
    ("domain", "rows", "dense"),
    [
        (65_536, 0, True),
        (65_537, 0, False),
        (65_552, 1, True),
        (65_553, 1, False),
        (65_536 + 1_600, 100, True),
        (65_536 + 1_601, 100, False),
    ],
)
def test_an_array_over_all_codes_may_have_sixteen_cells_a_row_and_a_few_more(
    domain: int, rows: int, dense: bool
) -> None:
    assert is_dense(domain, rows) is dense


SPARSE = 65_536 + 16 * 3 + 1  # one code too many for three rows
BUILT = [
    # columns, domain, the index, its bytes, the most rows of a key
    ([[2, 0, 1]], 3, "Unique", 16, 1),
    ([[]], 3, "Unique", 16, 1),
    ([[0, 0, 2]], 3, "Grouped", 20, 2),
    ([[0, 0, 2, 2]], 3, "Grouped", 20, 2),
    ([[2, 0, 0]], 3, "Grouped", 32, 2),
    ([[0, 1, 0, 0]], 2, "Grouped", 32, 3),
    ([[0, 1, 2]], SPARSE - 1, "Unique", 4 * SPARSE, 1),
    ([[0, 1, 2]], SPARSE, "Sorted", 48, 1),
    ([[7, 1, 7]], SPARSE, "Sorted", 48, 2),
    ([[5, 5, 5]], SPARSE, "Sorted", 48, 3),
    ([[]], 65_537, "Sorted", 0, 0),
    ([[0, 1, 2], [1, 1, 1]], 3, "CheckedIndex", 16, 1),
    ([[1, 1, 1], [0, 1, 2]], 3, "CheckedIndex", 16, 1),
    ([[1, 1, 1], [2, 2, 2], [0, 1, 2]], 3, "CheckedIndex", 16, 1),
    ([[0, 0, 1], [0, 1, 1]], 2, "UniquePair", 4 * 17, 1),
    ([[0, 0, 1], [0, 0, 1]], 2, "Sorted", 48, 2),
    ([[0, 0, 1], [0, 1, 1]], SPARSE, "Sorted", 48, 1),
    ([[0, 0, 1], [0, 1, 1]], 255, "UniquePair", 4 * 65_537, 1),
    ([[0, 0, 1], [0, 1, 1]], 256, "Sorted", 48, 1),  # nine bits a code: 262,144 pairs
    ([[0, 0, 1], [0, 1, 1], [0, 0, 0]], 2, "Hashed", 48, 1),
    ([[0, 0, 1], [1, 1, 1], [0, 0, 0]], 2, "Hashed", 48, 2),
    ([[1], [1], [1]], SPARSE + 3, "Hashed", 16, 1),
    ([[], [], []], 65_537, "Hashed", 0, 0),
]


@pytest.mark.parametrize(("columns", "domain", "kind", "held", "most"), BUILT)
def test_each_kind_of_columns_has_its_index(
    columns: list[list[int]], domain: int, kind: str, held: int, most: int
) -> None:
    found = build_index([np.array(column, np.uint32) for column in columns], domain)
    assert (type(found).__name__, found.nbytes, found.most) == (kind, held, most)


def test_an_array_over_pairs_ends_at_sixteen_mebibytes() -> None:
    rows = np.arange(1 << 18, dtype=np.uint32)
    columns = [rows >> np.uint32(9), rows & np.uint32(511)]  # each code 512 times, each pair once
    found = build_index(columns, 2_047)
    assert (type(found).__name__, found.nbytes) == ("UniquePair", 4 * ((1 << 22) + 1))
    assert found.find((511, 3)) == (511 * 512 + 3,)
    more = np.concatenate([columns[0]] * 4), np.concatenate([columns[1] + np.uint32(512 * n) for n in range(4)])
    assert type(build_index(more, 2_048)).__name__ == "Sorted"  # dense enough by its rows


def every_kind(columns: list[Codes], keys: list[Codes], domain: int) -> Iterator[tuple[str, Index]]:
    yield "built", build_index(columns, domain)
    yield "compared", Compared(columns, keys)
    yield "hashed", Hashed(columns)
    if len(columns) == 1:
        yield "grouped", build_grouped(columns[0], domain)
    if len(columns) < 3:
        yield "sorted", build_sorted(columns)
    if len(columns) == 2:
        pairs = UniquePair.build(columns, domain)
        if pairs is not None:
            yield "pairs", pairs


def small_tables() -> Iterator[tuple[int, int, list[tuple[int, ...]]]]:
    """Every list of a few rows over two or three codes."""
    for width, domain, most in ((1, 3, 3), (2, 2, 3), (3, 2, 2)):
        codes = list(product(range(domain), repeat=width))
        for count in range(most + 1):
            for rows in product(codes, repeat=count):
                yield width, domain, list(rows)
    wide = [(0, 1, 1, 0), (0, 1, 1, 1), (0, 1, 1, 0)]
    yield 4, 2, wide
    yield 4, 2, [wide[1], *wide, wide[1]]


@pytest.mark.parametrize("colliding", [False, True])
def test_every_kind_of_index_gives_the_rows_of_each_key_in_order(
    colliding: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if colliding:
        monkeypatch.setattr(index_module, "hashed", lambda keys: (keys[0] % 3).astype(np.uint64))
    tried = set()
    for width, domain, rows in small_tables():
        asked = [*product(range(domain + 2), repeat=width)]
        columns, keys = columns_of(rows, width), columns_of(asked, width)
        expected = [[n for n, row in enumerate(rows) if row == key] for key in asked]
        pairs = [(at, n) for at, numbers in enumerate(expected) for n in numbers]
        for kind, found in every_kind(columns, keys, domain):
            tried.add(kind)
            where = (kind, rows)
            places, numbers = found.expand(keys)
            assert list(zip(places.tolist(), numbers.tolist(), strict=True)) == pairs, where
            assert (places.dtype, numbers.dtype) == (np.int64, np.int64), where
            assert found.counts(keys).tolist() == list(map(len, expected)), where
            if not colliding or not isinstance(found, Hashed):
                assert found.most in {max(map(len, expected)), 1 if not rows else 0}, where
            for key, numbers_of in zip(asked[:: 1 + colliding], expected[:: 1 + colliding], strict=True):
                assert list(found.find(key)) == numbers_of, (where, key)
    assert tried == {"built", "compared", "hashed", "grouped", "sorted", "pairs"}


def test_rows_that_differ_anywhere_are_hashed_apart() -> None:
    """They may collide; these, which a mixture of too few columns or bits would not tell apart, do not."""
    for width in (2, 3, 4, 5):
        rows = [*product((0, 1, 7), repeat=width)]
        assert len(set(hashed(columns_of(rows, width)).tolist())) == len(rows)


def test_keys_are_packed_in_the_order_of_their_columns() -> None:
    left, right = np.array([0, 1, 2**32 - 1], np.uint32), np.array([5, 2**32 - 1, 0], np.uint32)
    assert pack([left]).tolist() == [0, 1, 2**32 - 1]
    assert pack([left, right]).tolist() == [5, 2**33 - 1, (2**32 - 1) << 32]


def test_ranges_are_spread_one_after_the_other() -> None:
    starts, counts = np.array([7, 0, 3], np.int64), np.array([2, 0, 3], np.int64)
    assert [part.tolist() for part in spread(starts, counts)] == [[0, 0, 2, 2, 2], [7, 8, 3, 4, 5]]
    assert [part.tolist() for part in spread(starts[:0], counts[:0])] == [[], []]
