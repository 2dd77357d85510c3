"""Many stored records are written as they are, and none that is no record gets among them."""

from __future__ import annotations

import pytest

from lace.errors import LocalProtocolError
from lace.iltp.markers import RECORD
from lace.iltp.writer import encode_record, encode_records

STORED = [RECORD + b"one", RECORD, RECORD + b"two"]


def test_many_are_what_each_is() -> None:
    assert list(encode_records(STORED)) == list(map(encode_record, STORED))
    assert list(encode_records([])) == []


@pytest.mark.parametrize("place", range(4))
def test_one_without_its_mark_is_refused_wherever_it_stands(place: int) -> None:
    with pytest.raises(LocalProtocolError, match="markline"):
        encode_records([*STORED[:place], b"x" + RECORD, *STORED[place:]])
