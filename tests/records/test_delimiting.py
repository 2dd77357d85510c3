"""Where records end in a buffer, found without reading them."""

from __future__ import annotations

from hypothesis import given as examples
from hypothesis import strategies as st

from interlace.pair import blob, plex
from lace.records.frame import MARKLINE_BYTES, claimed_hash, claimed_hashes, delimit_run
from lace.records.grammar import MARK

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


@examples(
    st.lists(
        st.one_of(
            st.sampled_from(RECORDS),
            st.binary(max_size=130),
            st.sampled_from([MARK, MARK + b"\n", RECORDS[0][:20], RECORDS[0].replace(b".H3\n", b".H30\n", 1)]),
            st.sampled_from([RECORDS[0][:MARKLINE_BYTES], RECORDS[0][: MARKLINE_BYTES - 1], b""]),
        ),
        max_size=8,
    )
)
def test_what_many_records_call_themselves_is_what_each_does(records: list[bytes]) -> None:
    assert claimed_hashes(records) == [claimed_hash(record) for record in records]


def test_heads_that_make_marklines_only_together_are_looked_at_one_by_one() -> None:
    line = RECORDS[0][:MARKLINE_BYTES]
    cut = [line[:7], line[7:] + line[:7], line[7:]]
    assert claimed_hashes(cut) == [claimed_hash(piece) for piece in cut]
