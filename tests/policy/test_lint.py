"""Doubts about rules: what can never match, and what nothing reads, each with its place and advice."""

from __future__ import annotations

import pytest

from interlace.pair import blob, hash_of
from lace.datalog.language.parser import parse_program
from lace.datalog.language.syntax import Predicate
from lace.datalog.language.validate import LOCAL_PROFILE
from lace.policy.exposure import EXPOSURE_PROFILE, expose_selected
from lace.policy.lint import doubts, nearest, profile_of
from lace.policy.operand import SELECTOR_PROFILE
from lace.policy.select import select_coordinate, select_hash

HASH = hash_of(blob(b"x"))


def found(text: str) -> list[tuple[int, str]]:
    """All doubts but those about parts, which most short selectors give."""
    program = parse_program(text)
    return [(doubt.line, doubt.rule) for doubt in doubts(program, profile_of(program)) if doubt.rule != "parts"]


@pytest.mark.parametrize(
    "text, profile",
    [
        ("SelectHave(P) :- Have(P).", SELECTOR_PROFILE),
        ("SelectAdvertised(P,S) :- Advertised(P,S).", SELECTOR_PROFILE),
        ("AllowQueryRecord(V,P) :- Have(P), Peer(V).", EXPOSURE_PROFILE),
        ("Out(P) :- Have(P).", LOCAL_PROFILE),
        ("", LOCAL_PROFILE),
    ],
)
def test_a_file_is_what_its_heads_say(text: str, profile: object) -> None:
    assert profile_of(parse_program(text)) is profile


@pytest.mark.parametrize(
    "atom",
    [
        "Field(P,'Group','0','u')",
        "Field(P,'Group',_,'a/b')",
        "Field(P,'Name',_,'x')",
        "Field(P,'Type',_,'P')",
        "Field(P,'Type',_,'B')",
        "Field(P,'Type',_,'S')",
        "Field(P,'Data-Length',_,'0')",
        "Field(P,'Data-Length',_,'10')",
        "Field(P,'TAI',_,'1640995200:000000000')",
        "Field(P,'My-Header','7','//')",
        "Field(P,N,_,'u'), Have(N)",
        "Field(P,_,'0','//')",
        f"BlobHash(P,'{HASH}')",
        f"RecordLink('{HASH}',_,_,_,_), Have(P)",
    ],
)
def test_what_may_match_gives_no_doubt(atom: str) -> None:
    assert found(f"Out(P) :- {atom}.") == []


@pytest.mark.parametrize(
    "atom, rule",
    [
        ("Field(P,'Group',_,'/u')", "field-value"),
        ("Field(P,'App',_,'u/')", "field-value"),
        ("Field(P,'Name',_,'a//b')", "field-value"),
        ("Field(P,'Name',_,'')", "field-value"),
        ("Field(P,'Type',_,'X')", "field-value"),
        ("Field(P,'Data-Length',_,'01')", "field-value"),
        ("Field(P,'Data-Length',_,'ten')", "field-value"),
        ("Field(P,'Data-Length',_,'-1')", "field-value"),
        ("Field(P,'TAI',_,'today')", "field-value"),
        ("Field(P,'Signed-By',_,'me')", "field-value"),
        ("Field(P,'Gruop',_,'u')", "field-name"),
        ("Field(P,'Group','first','u')", "index"),
        ("Field(P,'Group','٣','u')", "index"),
        ("Have(P), BlobHash('me',_)", "record-name"),
        ("Have(P), Haave(P)", "unknown-predicate"),
        ("Have(P), Field(P,'Name',_)", "arity"),
        ("Have(P), Advertised(P,_)", "never-supplied"),
        ("Have(P), P != P", "never-unequal"),
        ("Field(P,'Group',_,'u'), Field(P,'Group',_,'v')", "two-values"),
    ],
)
def test_what_can_never_match_is_doubted(atom: str, rule: str) -> None:
    assert found(f"Fine(P) :- Have(P).\nOut(P) :- {atom}.") == [(2, rule)]


@pytest.mark.parametrize(
    "body",
    [
        "Field(P,'Group',_,'u'), Field(P,'Group',_,'u')",
        "Field(P,'Group',_,'u'), Field(P,'App',_,'v')",
        "Field(P,'Group',_,'u'), Field(Q,'Group',_,'v')",
        "Have(P), Field(_,'Group',_,'u'), Field(_,'Group',_,'v')",
        "Field(P,'Colour',_,'red'), Field(P,'Colour',_,'blue')",
        "Field(P,'Group',_,'u'), not Field(P,'Group',_,'v')",
        "Have(P), Have(Q), P != Q",
    ],
)
def test_two_values_are_doubted_only_of_one_field_of_one_record(body: str) -> None:
    assert found(f"Out(P) :- {body}.") == []


def test_two_sources_may_say_different_things_of_one_record() -> None:
    have = "SelectHave(P) :- Have(P).\n"
    fields = "AdvertisedField(P,{0},'Group',_,'u'), AdvertisedField(P,{1},'Group',_,'v')"
    assert found(have + f"SelectAdvertised(P,S) :- Advertised(P,S), {fields.format('S', 'T')}.") == []
    assert found(have + f"SelectAdvertised(P,S) :- Advertised(P,S), {fields.format('S', 'S')}.") == [(2, "two-values")]


def test_a_selector_without_one_of_its_exports_says_what_follows_from_it() -> None:
    program = parse_program("SelectHave(P) :- Have(P).")
    (doubt,) = doubts(program, SELECTOR_PROFILE)
    assert (doubt.line, doubt.rule) == (1, "missing-export")
    assert "SelectAdvertised/2" in doubt.message
    both = "SelectHave(P) :- Have(P).\nSelectAdvertised(P,S) :- Advertised(P,S)."
    assert found(both) == []


def test_a_helper_that_no_export_needs_is_told_once_and_by_its_place() -> None:
    text = (
        "AllowQueryRecord(V,P) :- Good(P), Peer(V).\nGood(P) :- Have(P).\n"
        "Goood(P) :- Field(P,'Group',_,'u').\nGoood(P) :- Field(P,'Group',_,'v')."
    )
    assert found(text) == [(3, "unread")]
    (doubt,) = doubts(parse_program(text), EXPOSURE_PROFILE)
    assert doubt.advice == "did you mean Good?"
    assert found("Good(P) :- Have(P).\nOther(P) :- Have(P).") == []  # over a lace every head may be asked for


def test_an_exposure_sees_no_advertisements() -> None:
    assert found("AllowQueryRecord(V,P) :- Have(P), Peer(V), Advertised(P,_).") == [(1, "never-supplied")]


def test_facts_from_elsewhere_are_known() -> None:
    program = parse_program("Out(P) :- Have(P), Mine(P).")
    assert [doubt.rule for doubt in doubts(program, LOCAL_PROFILE)] == ["unknown-predicate"]
    assert doubts(program, LOCAL_PROFILE, [Predicate("Mine", 1)]) == []


def test_doubts_come_in_the_order_of_the_text() -> None:
    text = "Out(P) :- Have(P), Nowhere(P), Field(P,'Group','x',_).\nOut(P) :- P != P, Have(P)."
    assert found(text) == [(1, "unknown-predicate"), (1, "index"), (2, "never-unequal")]


def test_the_nearest_words_are_few_and_close() -> None:
    assert nearest("Grup", ["Group", "App"]) == "did you mean Group?"
    assert nearest("group", ["Group"]) == "did you mean Group?"
    assert nearest("Zebra", ["Group", "App"]) == ""


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        (
            "Out(P) :- Have(P), Fied(P,'x').",
            (1, 20),
            ("nothing supplies Fied/2: no rule defines it and it is not a fac", "did you mean Field?"),
        ),
        (
            "A(P) :- Have(P).\nOut(P) :- Have(P,P).",
            (2, 11),
            ("Have has 1 values, not 2: this atom can never match", "the fact is Have(P)"),
        ),
        (
            "Out(P) :- A(P).\nA('x','y') :- Have(_).",
            (1, 11),
            ("A has 2 values, not 1: this atom can never match", "the fact is A/2"),
        ),
        (
            "Out(P) :- Advertised(P,_).",
            (1, 11),
            (
                "Advertised/2 is known only in an exchange: over a lace alone",
                "a selector defines SelectHave/1 and SelectAdvertised/2",
            ),
        ),
        (
            "Out(P) :- Field(P,'Group','x',_).",
            (1, 11),
            ("an index is a number from '0' on, never 'x'", "write _ where any will do"),
        ),
        (
            "Out(P) :- Field(P,'Grop',_,_).",
            (1, 11),
            ("records have no field 'Grop' by the specification", "did you mean Group?"),
        ),
        (
            "Out(P) :- Field(P,'Type',_,'X').",
            (1, 11),
            ("Type is never 'X': a type is B, P or S", ""),
        ),
        (
            "Out(P) :- Field(P,'Data-Length',_,'01').",
            (1, 11),
            ("Data-Length is never '01': a length is a decimal number", ""),
        ),
        (
            "Out(P) :- Field(P,'Group',_,'a/').",
            (1, 11),
            ("Group is never 'a/': a path has no empty segment", ""),
        ),
        (
            "Out(P) :- Field(P,'Name',_,'').",
            (1, 11),
            ("Name is never '': a path has no empty segment", ""),
        ),
        (
            "Out('x') :- Have('x').",
            (1, 13),
            ("a record is named by its hash, never 'x'", "a hash is B, P or S, a dot, 43 characters and .H3"),
        ),
        (
            "Out(P) :- Have(P), P != P.",
            (1, 20),
            ("nothing differs from itself: this rule can never derive anyt", ""),
        ),
        (
            "Out(P) :- Field(P,'App',_,'a'), Field(P,'App',_,'b').",
            (1, 33),
            ("a record has one App: it cannot be 'a' and 'b'", "write two rules where either will do"),
        ),
        (
            "SelectHave(P) :- Have(P).",
            (1, 1),
            (
                "without a rule for SelectAdvertised/2 nothing is asked for",
                "a selector defines both SelectHave/1 and SelectAdvertised/2",
            ),
        ),
        (
            "SelectAdvertised(P,S) :- Advertised(P,S).",
            (1, 1),
            (
                "without a rule for SelectHave/1 nothing of ours is offered",
                "a selector defines both SelectHave/1 and SelectAdvertised/2",
            ),
        ),
        (
            "AllowQueryRecord(V,P) :- Have(P), Peer(V).\nHelp(P) :- Have(P).",
            (2, 1),
            ("Help/1 is defined, and nothing needs it", ""),
        ),
    ],
)
def test_a_doubt_says_what_where_and_what_to_do(text: str, place: tuple[int, int], said: tuple[str, str]) -> None:
    program = parse_program(text)
    (doubt,) = doubts(program, profile_of(program))
    assert (doubt.line, doubt.column) == place
    assert doubt.message.startswith(said[0])
    assert doubt.advice.startswith(said[1])
    assert bool(doubt.advice) is bool(said[1])
    assert doubt.picture.startswith(text.split("\n")[doubt.line - 1][:30])


def test_of_several_slips_each_is_told_in_its_place() -> None:
    lines = ["Out(P) :- Fied(P).", "Out(P) :- Have(P), Fied(P), Gied(P).", "Out(P) :- Have(P)."]
    program = parse_program("\n".join(lines))
    assert [(doubt.line, doubt.column) for doubt in doubts(program, LOCAL_PROFILE)] == [(1, 11), (2, 20), (2, 29)]


@pytest.mark.parametrize("field, value", [("TAI", "now"), ("Type", "X"), ("Data-Length", "-1")])
def test_what_a_peer_claims_is_doubted_by_the_same_rules(field: str, value: str) -> None:
    claimed = "SelectHave(P) :- Have(P).\nSelectAdvertised(P,S) :- AdvertisedField(P,S,'{}',_,'{}')."
    assert found(claimed.format(field, value)) == [(2, "field-value")]
    assert found(claimed.format("Name", value)) == []


BY_GROUP = (
    "SelectHave(P) :- Have(P), Field(P,'Group',_,'u').\nSelectAdvertised(P,S) :- AdvertisedField(P,S,'Group',_,'u')."
)
SHOWN = "AllowQueryRecord(V,P) :- Have(P), Field(P,'Group',_,'u')."


@pytest.mark.parametrize("text, lines", [(BY_GROUP, [1, 2]), (SHOWN, [1])])
def test_rules_that_leave_parts_behind_are_doubted_and_the_advice_mends_it(text: str, lines: list[int]) -> None:
    program = parse_program(text)
    told = doubts(program, profile_of(program))
    assert [(doubt.line, doubt.rule) for doubt in told] == [(line, "parts") for line in lines]
    mended = parse_program("\n".join([text, *(doubt.advice.removeprefix("add ") for doubt in told)]))
    assert doubts(mended, profile_of(mended)) == []


@pytest.mark.parametrize(
    "text",
    [
        "SelectHave(P) :- Have(P).\nSelectAdvertised(P,S) :- Advertised(P,S).",
        "AllowQueryRecord(V,P) :- Have(P), Peer(V).",
        "AllowQueryRecord(V,P) :- Have(P), Field(P,'Type',_,'B').",
        "AllowQueryRecord(V,P) :- Have(P), Field(P,'Group',_,'u').\nAllowQueryRecord(V,P) :- Have(P).",
        "AllowQueryRecord(V,P) :- Field(P,'Group',_,'u'), Field(P,'Data-Length',_,'7').",
        "AllowQueryRecord(V,P) :- Near(P).\nNear(P) :- Field(P,'App',_,'a').\n"
        "Near(Q) :- Near(P), RecordLink(P,_,_,_,Q).",
    ],
)
def test_rules_that_take_all_or_no_manifests_or_follow_every_link_are_not(text: str) -> None:
    program = parse_program(text)
    assert doubts(program, profile_of(program)) == []


def test_what_the_wrappers_and_templates_write_gives_no_doubt() -> None:
    for selector in (select_coordinate("//u//"), select_hash(str(HASH))):
        assert doubts(parse_program(selector.text), SELECTOR_PROFILE) == []
        assert doubts(expose_selected(selector).program, EXPOSURE_PROFILE) == []


def test_a_short_word_with_two_letters_changed_round_is_near() -> None:
    assert nearest("bbo", ["anna", "bob", "carol"]) == "did you mean bob?"
    assert nearest("zed", ["anna", "bob", "carol"]) == ""
