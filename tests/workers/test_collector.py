"""How often Python's collector looks is the program's own again once nobody needs it otherwise."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from lace.workers.collector import ALLOCATIONS, SERVING, collecting_briefly, seldom_collecting


@pytest.fixture(autouse=True)
def threshold() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_the_last_to_leave_sets_the_threshold_back_whatever_the_order() -> None:
    gc.set_threshold(700, 10, 10)
    first, second = ExitStack(), ExitStack()
    first.enter_context(seldom_collecting())
    second.enter_context(seldom_collecting())
    assert gc.get_threshold() == (ALLOCATIONS, 10, 10)
    first.close()
    assert gc.get_threshold() == (ALLOCATIONS, 10, 10)
    second.close()
    assert gc.get_threshold() == (700, 10, 10)


@pytest.mark.parametrize("chosen", [0, ALLOCATIONS + 1])
def test_a_program_that_chose_to_collect_less_keeps_its_choice(chosen: int) -> None:
    gc.set_threshold(chosen)
    with seldom_collecting():
        assert gc.get_threshold()[0] == chosen
    assert gc.get_threshold()[0] == chosen


def test_a_server_looks_often_and_briefly_until_it_ends_and_no_exchange_changes_that() -> None:
    gc.set_threshold(700, 10, 10)
    assert SERVING[0] * (SERVING[1] + 1) <= 10_000  # values in one look
    assert SERVING[0] * (SERVING[1] + 1) * SERVING[2] >= 10_000_000  # all of them seldom
    with collecting_briefly():  # what it set aside stays there, or every later search would go through all tests
        assert gc.get_threshold() == SERVING
        assert gc.get_freeze_count() > 0
        with seldom_collecting():
            assert gc.get_threshold() == SERVING
        assert gc.get_threshold() == SERVING
    assert gc.get_threshold() == (700, 10, 10)
    with seldom_collecting():
        assert gc.get_threshold() == (ALLOCATIONS, 10, 10)
