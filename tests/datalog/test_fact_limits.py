"""How long a value of a fact may be is counted in bytes, not in letters."""

from __future__ import annotations

import pytest

from lace.datalog.admission import check_fact
from lace.errors import LimitExceeded
from lace.limits import EngineLimits
from lace.notation.fact import Fact, Predicate

HAVE = Predicate("Have", 1)


@pytest.mark.clause("020-FACT-13")
@pytest.mark.parametrize("value", ["", "x" * 10, "é" * 5, "€" * 3 + "x"])
def test_a_value_of_as_many_bytes_as_allowed_is_taken(value: str) -> None:
    check_fact(Fact(HAVE, (value,)), EngineLimits(max_value_bytes=10))


@pytest.mark.clause("020-FACT-13")
@pytest.mark.parametrize("value", ["x" * 11, "é" * 5 + "x", "é" * 6, "€" * 4])
def test_one_byte_more_is_refused_with_the_limit(value: str) -> None:
    with pytest.raises(LimitExceeded) as refused:
        check_fact(Fact(HAVE, (value,)), EngineLimits(max_value_bytes=10))
    assert (refused.value.limit, refused.value.allowed) == ("max_value_bytes", 10)
    assert "Have/1" in refused.value.detail
