"""Items to bytes and back (060)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iltp.stream_samples import DATA, PREFACE, read_every_way
from lace.errors import LocalProtocolError
from lace.iltp.items import BlankLine, FactLines, Preface, RecordItem
from lace.iltp.writer import encode_blank, encode_facts, encode_preface, encode_record
from lace.notation.fact import Fact, Predicate

texts = st.text(st.characters(blacklist_categories=["Cs", "Cc"]), max_size=30).filter(
    lambda text: __import__("unicodedata").is_normalized("NFC", text)
)
facts = st.builds(
    lambda name, values: Fact(Predicate(name, len(values)), tuple(values)),
    st.from_regex(r"[A-Z][A-Za-z]{0,12}", fullmatch=True),
    st.lists(texts, max_size=5),
)


@pytest.mark.clause("060-STREAM-02", "060-FACT-01")
@given(st.lists(facts, min_size=1, max_size=10))
def test_facts_written_are_facts_read(block: list[Fact]) -> None:
    data = encode_facts(block)
    items, rule = read_every_way(encode_preface() + data + encode_blank())
    assert rule is None
    assert items == [Preface(), FactLines(tuple(block), len(data)), BlankLine()]


@pytest.mark.clause("060-STREAM-02")
def test_a_record_is_written_as_it_is_stored() -> None:
    assert encode_record(DATA) == DATA
    assert isinstance(read_every_way(PREFACE + encode_record(DATA))[0][1], RecordItem)


def test_what_a_reader_would_refuse_is_not_written() -> None:
    have = Predicate("Have", 1)
    assert encode_facts([Fact(have, ("x" * 1016,))]).endswith(b"')\n")
    for write in (
        lambda: encode_facts([Fact(have, ("x" * 1017,))]),
        lambda: encode_facts([Fact(have, ("a\rb",))]),
        lambda: encode_record(b"Have('x')\n"),
    ):
        with pytest.raises(LocalProtocolError):
            write()


@pytest.mark.clause("060-CMT-15", "060-CMT-05")
def test_a_comment_of_full_length_reads_as_nothing() -> None:
    assert read_every_way(PREFACE + b"#" + b"x" * 126 + b"\n") == ([Preface()], None)
