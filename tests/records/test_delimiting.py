"""Where records end in a buffer, found without reading them."""

from __future__ import annotations

from interlace.pair import blob, plex
from lace.records.frame import delimit_run

RECORDS = [blob(b"one"), plex("two"), blob(b"three")]
BUFFER = b"".join(RECORDS)
FIRST, SECOND = len(RECORDS[0]), len(RECORDS[0] + RECORDS[1])


def test_a_run_holds_the_records_that_begin_before_its_stop_and_have_another_behind() -> None:
    assert delimit_run(BUFFER, 0, len(BUFFER)) == [FIRST, SECOND]
    assert delimit_run(BUFFER, 0, FIRST + 1) == [FIRST, SECOND]
    assert delimit_run(BUFFER, 0, FIRST) == [FIRST]
    assert delimit_run(BUFFER, FIRST, FIRST) == []
    assert delimit_run(BUFFER, FIRST, len(BUFFER)) == [SECOND]
    assert delimit_run(BUFFER[: SECOND - 1], 0, len(BUFFER)) == [FIRST]
