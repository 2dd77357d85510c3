"""Sorting and searching in two halves at once, where there is somebody for the other half."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from lace.datalog.engine.sorting import Work, search, sort, use_both


@pytest.fixture
def halves() -> Iterator[list[int]]:
    """How often two things were done at once."""
    done: list[int] = []

    def both(one: Work, other: Work) -> None:
        done.append(1)
        one()
        other()

    use_both(both)
    yield done
    use_both(None)


@pytest.mark.parametrize(("size", "halved"), [(0, 0), (1, 0), (7, 0), (8, 1), (9, 1), (33, 1)])
def test_many_values_are_sorted_and_sought_in_two_halves(size: int, halved: int, halves: list[int]) -> None:
    values = np.arange(size)[::-1] * 3 % 31
    found = values.copy()
    sort(found, 8)
    assert found.tolist() == sorted(values.tolist())
    assert len(halves) == halved
    keys = np.arange(size) - 1
    expected = [sum(value < key for value in found.tolist()) for key in keys.tolist()]
    assert search(found, keys, 8).tolist() == expected
    assert len(halves) == 2 * halved


def test_where_nobody_takes_a_half_all_is_done_at_once() -> None:
    values = np.arange(40)[::-1].copy()
    sort(values, 8)
    assert values.tolist() == list(range(40))
    assert search(values, np.arange(40), 8).tolist() == list(range(40))
