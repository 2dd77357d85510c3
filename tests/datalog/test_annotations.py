"""Annotated source (030, P6)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lace.datalog.language.annotations import canonicalize, format_annotated, read_annotated, read_annotated_all
from lace.datalog.language.canonical import Lacegram, rule_id
from lace.datalog.language.parser import parse_program
from lace.errors import InvalidLacegram, LimitExceeded
from lace.limits import EngineLimits

MEMBER = "Member(P) :- Have(P)."
OTHER = "Other(P) :- Member(P)."


@pytest.mark.clause("030-ANN-01", "030-ANN-02", "030-ANN-03", "030-ANN-05", "030-ANN-09", "030-ANN-07")
def test_annotated_source_gives_text_identifier_and_sidecar() -> None:
    text = '# human\n#:json {"label":"other"}\nOther( P ) :- Member(P).\n\n#:json {"why":"é"}\n# between\n' + MEMBER
    result = canonicalize(text)
    assert result.lacegram.text == f"{MEMBER}\n{OTHER}"
    assert result.lacegram.id == Lacegram.from_program(parse_program(f"{OTHER}\n{MEMBER}")).id
    assert result.sidecar == {rule_id(OTHER): {"label": "other"}, rule_id(MEMBER): {"why": "é"}}


@pytest.mark.clause("030-ANN-06")
def test_annotations_before_one_rule_merge_and_later_keys_win() -> None:
    text = f'#:json {{"a":1,"b":{{"x":1}}}}\n# c\n#:json {{"b":{{"y":2}},"c":3}}\n{MEMBER}'
    assert canonicalize(text).sidecar == {rule_id(MEMBER): {"a": 1, "b": {"y": 2}, "c": 3}}


@pytest.mark.clause("030-ANN-06", "030-ANN-09")
def test_equal_rules_merge_their_annotations_in_order() -> None:
    text = f'#:json {{"a":1,"b":1}}\n{MEMBER}\n{OTHER}\n#:json {{"b":2}}\nMember(P):-Have(P).'
    result = canonicalize(text)
    assert result.sidecar == {rule_id(MEMBER): {"a": 1, "b": 2}}
    assert result.lacegram.text == f"{MEMBER}\n{OTHER}"


@pytest.mark.clause("030-ANN-04")
@pytest.mark.parametrize(
    ("content", "code"),
    [
        (" [1]", "annotation-object"),
        (" 1", "annotation-object"),
        (' "x"', "annotation-object"),
        (" null", "annotation-object"),
        (' {"a":1} {"b":2}', "annotation-json"),
        (' {"a":1', "annotation-json"),
        (" {a:1}", "annotation-json"),
        ("", "annotation-json"),
        (' {"a":NaN}', "annotation-json"),
        (' {"a":"\\ud800"}', "annotation-json"),
        (" " + '{"a":' * 100_000, "annotation-json"),
        (' {"a":' + "1" * 5000 + "}", "annotation-json"),
        ('{"a":1}', "annotation-form"),
        (' {"a":"e\u0301"}', "text-nfc"),
    ],
    ids=str,
)
def test_an_annotation_is_exactly_one_json_object(content: str, code: str) -> None:
    with pytest.raises(InvalidLacegram) as refused:
        read_annotated(f"#:json{content}\n{MEMBER}", name="rules.lace")
    assert refused.value.rule == code
    assert refused.value.place == "rules.lace:1:1"


@pytest.mark.clause("030-ANN-08")
def test_an_annotation_without_a_rule_is_refused() -> None:
    with pytest.raises(InvalidLacegram) as refused:
        read_annotated(f'{MEMBER}\n#:json {{"a":1}}\n# end\n')
    assert (refused.value.rule, refused.value.line) == ("annotation-dangling", 2)


@pytest.mark.clause("030-EQ-03")
def test_equality_is_refused_in_annotated_source_too() -> None:
    with pytest.raises(InvalidLacegram) as refused:
        read_annotated("# equal\nA(X) :- B(X), X = 'a'.")
    assert (refused.value.rule, refused.value.line) == ("equality", 2)


def test_all_errors_are_collected_and_safety_errors_show_the_authored_line() -> None:
    source, errors = read_annotated_all('A(x) :- B(X).\n#:json 1\nC() :- true.\n#:json {"a":1}')
    assert [error.line for error in errors] == [1, 2, 4]
    assert len(source.program.rules) == 1
    with pytest.raises(InvalidLacegram) as refused:
        canonicalize("# one\nA(X)   :- B(Y).")
    assert "A(X)   :- B(Y)." in refused.value.picture


@pytest.mark.clause("030-LIM-05")
def test_the_rule_limit_counts_bad_lines_too() -> None:
    with pytest.raises(LimitExceeded, match="max_rules"):
        read_annotated_all("A(x)\n" * 4, limits=EngineLimits(max_rules=3))


def test_formatting_keeps_each_comment_with_its_rule() -> None:
    text = (
        '# The whole file.\n#\n# More.\n\n\n# about z\n#:json {"label":"z"}\nZ( X ):-B(X) .\n\nY() :- true.\n'
        "# about a\n\n# and more\nA(X):-B(X).\nA(X) :- B(X).\n# the end"
    )
    expected = (
        "# The whole file.\n#\n# More.\n\n# about a\n# and more\nA(X) :- B(X).\nY() :- true.\n\n# about z\n"
        '#:json {"label":"z"}\nZ(X) :- B(X).\n\n# the end\n'
    )
    assert format_annotated(read_annotated(text)) == expected


COMMENT = st.sampled_from(["# a", "# b", "#", '#:json {"k":1}', '#:json {"k":2,"l":3}'])
BLOCK = st.tuples(st.lists(COMMENT | st.just(""), max_size=4), st.sampled_from([MEMBER, OTHER, "A(X):-B( X )."]))
SOURCES = st.tuples(st.lists(BLOCK, max_size=5), st.lists(st.sampled_from(["# z", ""]), max_size=2)).map(
    lambda parts: "\n".join([*(line for block in parts[0] for line in (*block[0], block[1])), *parts[1]])
)


@pytest.mark.clause("030-ANN-02", "030-ANN-07")
@given(SOURCES)
def test_formatting_is_stable_and_changes_neither_identifier_nor_sidecar(text: str) -> None:
    source = read_annotated(text)
    formatted = format_annotated(source)
    again = read_annotated(formatted)
    assert format_annotated(again) == formatted
    assert again.sidecar == source.sidecar
    assert canonicalize(formatted).lacegram == canonicalize(text).lacegram
    comments = sorted(line for line in text.split("\n") if line.startswith("#"))
    assert sorted(line for line in formatted.split("\n") if line.startswith("#")) == comments


@pytest.mark.parametrize("between", ["", "  ", "\t", " \t"])
def test_an_annotation_is_the_marker_one_space_and_one_object(between: str) -> None:
    """P6."""
    with pytest.raises(InvalidLacegram, match="followed by one space"):
        canonicalize("#:json" + between + '{"label":"x"}\nA(P) :- Have(P).')
    assert canonicalize('#:json {"label":"x"}\nA(P) :- Have(P).').sidecar
    assert canonicalize("#:json {}\nA(P) :- Have(P).").sidecar == {}
