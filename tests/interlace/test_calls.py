"""A call to a host: counted, limited, and given up when nobody waits for it."""

from __future__ import annotations

import pytest

from lace.errors import LimitExceeded
from lace.interlace.host import Call, Cancelled


def test_a_call_counts_what_it_is_charged() -> None:
    call = Call()
    call.charge(rows=3, size=10)
    call.charge(rows=2)
    assert (call.rows, call.bytes) == (5, 10)
    assert not call.is_cancelled


def test_a_call_may_touch_as_many_rows_as_granted_and_no_more() -> None:
    call = Call(max_rows=5)
    call.charge(rows=5)
    with pytest.raises(LimitExceeded, match="max_rows = 5"):
        call.charge(rows=1)


def test_a_cancelled_call_ends_at_its_next_step() -> None:
    call = Call()
    call.check()
    call.cancel()
    assert call.is_cancelled
    with pytest.raises(Cancelled):
        call.check()
    with pytest.raises(Cancelled):
        call.charge(rows=1)
