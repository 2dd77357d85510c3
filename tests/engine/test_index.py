"""Indexes of several columns against looking at every row."""

from __future__ import annotations

import tracemalloc
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lace.datalog.engine import index as index_module
from lace.datalog.engine.index import Codes, build_index
from lace.datalog.engine.sorting import order_of


def columns_of(rows: list[tuple[int, ...]], width: int) -> list[Codes]:
    return [np.array([row[n] for row in rows], np.uint32) for n in range(width)]


@pytest.mark.parametrize("collide", [False, True])
@given(st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_an_index_finds_exactly_the_rows_of_each_key(collide: bool, seed: int) -> None:
    random = Random(seed)
    width, domain = random.randint(1, 5), random.choice((2, 5, 300, 5_000))
    rows = [tuple(random.randrange(domain) for _ in range(width)) for _ in range(random.randint(0, 60))]
    rows = random.choice((rows, list(dict.fromkeys(rows))))
    asked = [*rows, *(tuple(random.randrange(domain + 3) for _ in range(width)) for _ in range(20))]
    with pytest.MonkeyPatch.context() as patch:
        if collide:
            patch.setattr(index_module, "hashed", lambda keys: (keys[0] % 3).astype(np.uint64))
        found = build_index(columns_of(rows, width), domain)
        keys = columns_of(asked, width)
        places, numbers = found.expand(keys)
        pairs = set(zip(places.tolist(), numbers.tolist(), strict=True))
        assert pairs == {(at, n) for at, key in enumerate(asked) for n, row in enumerate(rows) if row == key}
        assert len(pairs) == len(places)
        assert found.counts(keys).tolist() == [rows.count(key) for key in asked]
        assert all(sorted(found.find(key)) == [n for n, row in enumerate(rows) if row == key] for key in asked)
        assert all(count <= found.most for count in found.counts(keys).tolist())


@given(st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_dealing_orders_rows_like_comparing_them(seed: int) -> None:
    random = Random(seed)
    most = random.choice((3, 70_000, 2**32 - 1))
    rows = [(random.randint(0, most), random.randint(0, 5)) for _ in range(random.randint(0, 50))]
    order = order_of(columns_of(rows, 2)).tolist()
    assert order == sorted(range(len(rows)), key=rows.__getitem__)


def test_counting_rows_of_a_common_key_does_not_list_them() -> None:
    """A rule may ask for a key that all rows have, once for each row: a square of rows must not be made."""
    rows = 20_000
    same = np.zeros(rows, np.uint32)
    keys = [same, same, same]
    found = build_index(keys, 1)
    tracemalloc.start()
    try:
        assert found.counts(keys).tolist() == [rows] * rows
        assert tracemalloc.get_traced_memory()[1] < 100 * rows
    finally:
        tracemalloc.stop()
