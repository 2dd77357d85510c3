"""TAI text and the leap-second table."""

from __future__ import annotations

import calendar
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lace.errors import InvalidText
from lace.limits import SECOND_NS
from lace.notation.tai import LEAP_SECONDS, MAX_TAI_NS, TAI

INSTANTS = st.integers(0, MAX_TAI_NS)


@pytest.mark.clause("010-TAI-01", "010-TAI-03")
@given(INSTANTS, INSTANTS)
def test_text_order_is_time_order(one: int, other: int) -> None:
    left, right = TAI.from_ns(one), TAI.from_ns(other)
    assert (left < right) == (one < other)
    assert TAI.parse(str(left)).to_ns() == one
    assert (len(left), left[10], len(left[11:])) == (20, ":", 9)


@pytest.mark.clause("010-TAI-02")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "1640995200",
        "164099520:000000000",
        "11640995200:000000000",
        "1640995200:00000000",
        "1640995200:0000000000",
        "+640995200:000000000",
        "-640995200:000000000",
        "1640995200.000000000",
        "1640995200 000000000",
        " 1640995200:000000000",
        "1640995200:000000000 ",
        "1640995200:000000000\n",
        "164099520２:000000000",
        "1640995200:00000000x",
    ],
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(InvalidText):
        TAI.parse(text)


@pytest.mark.clause("010-TAI-04", "010-TAI-05")
@pytest.mark.parametrize(
    ("unix", "text"),
    [
        (1483228800, "1483228837:000000000"),
        (1483228799, "1483228835:000000000"),
        (1640995200, "1640995237:000000000"),
        (63072000, "0063072010:000000000"),
        (0, "0000000010:000000000"),
    ],
)
def test_unix_time_gains_the_offset_in_force(unix: int, text: str) -> None:
    assert TAI.of_unix_ns(unix * SECOND_NS) == text
    assert TAI(text).to_unix_ns() == unix * SECOND_NS
    assert TAI.of_unix_ns(unix * SECOND_NS + 5) == text[:-1] + "5"


@pytest.mark.clause("010-TAI-05")
def test_the_table_steps_by_one_second_on_first_days_of_january_and_july() -> None:
    assert [offset for _, offset in LEAP_SECONDS] == list(range(10, 38))
    days = [datetime.fromtimestamp(unix, UTC) for unix, _ in LEAP_SECONDS]
    assert all((day.day, day.hour, day.minute, day.second) == (1, 0, 0, 0) and day.month in (1, 7) for day in days)
    years = [
        1972,
        1972.5,
        *range(1973, 1981),
        1981.5,
        1982.5,
        1983.5,
        1985.5,
        1988,
        1990,
        1991,
        1992.5,
        1993.5,
        1994.5,
        1996,
        1997.5,
        1999,
        2006,
        2009,
        2012.5,
        2015.5,
        2017,
    ]
    assert [day.year + (0.5 if day.month == 7 else 0) for day in days] == years
    assert LEAP_SECONDS[-1][0] == calendar.timegm((2017, 1, 1, 0, 0, 0))


@pytest.mark.clause("010-TAI-05")
@given(st.integers(0, 2 * 10**9), st.integers(0, SECOND_NS - 1))
def test_unix_time_survives_the_way_there_and_back(seconds: int, nanoseconds: int) -> None:
    unix_ns = seconds * SECOND_NS + nanoseconds
    assert TAI.of_unix_ns(unix_ns).to_unix_ns() == unix_ns


def test_a_leap_second_is_an_instant_of_its_own() -> None:
    before, leap, after = (TAI.from_ns(second * SECOND_NS) for second in (1483228835, 1483228836, 1483228837))
    assert before < leap < after
    assert leap.to_unix_ns() == after.to_unix_ns()
    assert before.plus_ns(SECOND_NS) == leap
    assert after.plus_ns(-2 * SECOND_NS) == before


@pytest.mark.parametrize("tai_ns", [-1, MAX_TAI_NS + 1])
def test_instants_outside_the_text_form_are_refused(tai_ns: int) -> None:
    with pytest.raises(InvalidText):
        TAI.from_ns(tai_ns)
