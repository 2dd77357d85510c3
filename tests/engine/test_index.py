"""Indexes of several columns against looking at every row."""

from __future__ import annotations

import tracemalloc
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lace.cli.cores import run_both
from lace.datalog.engine import index as index_module
from lace.datalog.engine.index import Codes, Compared, build_index
from lace.datalog.engine.runs import ColumnRun
from lace.datalog.engine.sorting import numbered, order_of, search, sort, use_both
from tries import tries


def columns_of(rows: list[tuple[int, ...]], width: int) -> list[Codes]:
    return [np.array([row[n] for row in rows], np.uint32) for n in range(width)]


@pytest.mark.parametrize("kind", ["built", "colliding", "compared"])
@given(st.integers(0, 2**32))
def test_an_index_finds_exactly_the_rows_of_each_key(kind: str, seed: int) -> None:
    random = Random(seed)
    width, domain = random.randint(1, 5), random.choice((2, 5, 300, 5_000))
    rows = [tuple(random.randrange(domain) for _ in range(width)) for _ in range(random.randint(0, 60))]
    rows = random.choice((rows, list(dict.fromkeys(rows))))
    asked = [*rows, *(tuple(random.randrange(domain + 3) for _ in range(width)) for _ in range(20))]
    with pytest.MonkeyPatch.context() as patch:
        if kind == "colliding":
            patch.setattr(index_module, "hashed", lambda keys: (keys[0] % 3).astype(np.uint64))
        columns, keys = columns_of(rows, width), columns_of(asked, width)
        found = Compared(columns, keys) if kind == "compared" else build_index(columns, domain)
        places, numbers = found.expand(keys)
        pairs = set(zip(places.tolist(), numbers.tolist(), strict=True))
        assert pairs == {(at, n) for at, key in enumerate(asked) for n, row in enumerate(rows) if row == key}
        assert len(pairs) == len(places)
        assert found.counts(keys).tolist() == [rows.count(key) for key in asked]
        assert all(sorted(found.find(key)) == [n for n, row in enumerate(rows) if row == key] for key in asked)
        assert all(count <= found.most for count in found.counts(keys).tolist())


@given(st.lists(st.integers(0, 40), max_size=60), st.lists(st.integers(0, 45), max_size=60))
def test_two_halves_sort_and_search_like_one(values: list[int], keys: list[int]) -> None:
    column, asked = np.array(values, np.uint64), np.array(keys, np.uint64)
    use_both(run_both)
    try:
        distinct, places = numbered(column)
        assert distinct.tolist() == sorted(set(values))
        assert distinct[places].tolist() == values
        ordered = column.copy()
        sort(ordered, 2)
        assert ordered.tolist() == sorted(values)
        assert search(ordered, asked, 2).tolist() == np.searchsorted(np.sort(column), asked).tolist()
    finally:
        use_both(None)


def test_an_error_of_either_half_is_raised_when_both_have_ended() -> None:
    done: list[int] = []

    def fail() -> None:
        raise MemoryError("no room")

    for pair in ((fail, lambda: done.append(1)), (lambda: done.append(2), fail)):
        with pytest.raises(MemoryError):
            run_both(*pair)
    assert done == [1, 2]


@given(st.integers(0, 2**32))
@tries(40)
def test_dealing_orders_rows_like_comparing_them(seed: int) -> None:
    random = Random(seed)
    most = random.choice((3, 70_000, 2**32 - 1))
    rows = [(random.randint(0, most), random.randint(0, 5)) for _ in range(random.randint(0, 50))]
    order = order_of(columns_of(rows, 2)).tolist()
    assert order == sorted(range(len(rows)), key=rows.__getitem__)


def test_a_run_is_compared_with_a_few_keys_and_ordered_for_more() -> None:
    codes = np.arange(10_000, dtype=np.uint32)[::-1].copy()
    run = ColumnRun([codes], len(codes), len(codes))
    for key in range(100):
        asked = [np.array([key], np.uint32)]
        assert run.sought((0,), asked).expand(asked)[1].tolist() == [9_999 - key]
        assert run.contains((0,), asked).tolist() == [True]
        assert run.is_indexed((0,)) == (key >= 8)  # each of the two looked at all rows for eight keys


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
