"""Limits as people write them: in a command, and in a rule file."""

from __future__ import annotations

import pytest

from lace.datalog.language.limiting import LIMIT_NAMES, limits_with, parse_limit, stated_limits
from lace.errors import InvalidText
from lace.limits import EngineLimits


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("max_rules=7", ("max_rules", 7)),
        ("rules=1_000", ("max_rules", 1_000)),
        (" Tuple-Arity = 14 ", ("max_tuple_arity", 14)),
        ("working-rows=2k", ("max_working_rows", 2_000)),
        ("working-rows=2M", ("max_working_rows", 2_000_000)),
        ("working-rows=2G", ("max_working_rows", 2_000_000_000)),
        ("held_bytes=3Ki", ("max_held_bytes", 3_072)),
        ("held_bytes=3Mi", ("max_held_bytes", 3_145_728)),
        ("held_bytes=3Gi", ("max_held_bytes", 3_221_225_472)),
        ("held_bytes=1,024", ("max_held_bytes", 1_024)),
    ],
)
def test_a_limit_is_a_name_and_a_number(text: str, value: tuple[str, int]) -> None:
    assert parse_limit(text) == value


@pytest.mark.parametrize(
    "text", ["max_rules", "max_rules=", "max_rules=x", "max_rules=-1", "max_rules=1T", "=3", "max_rules=_1"]
)
def test_what_is_no_limit_says_how_one_is_written(text: str) -> None:
    with pytest.raises(InvalidText) as refused:
        parse_limit(text)
    if text == "=3":
        assert refused.value.message.startswith("there is no limit ''")
    else:
        assert refused.value.message == "a limit is NAME=VALUE, such as max_tuple_arity=14"
        assert refused.value.found == repr(text)


def test_a_name_that_is_none_says_which_are_near() -> None:
    with pytest.raises(InvalidText) as refused:
        parse_limit("max_rulez=3")
    assert refused.value.message.startswith("there is no limit 'max_rulez': max_rules")
    with pytest.raises(InvalidText) as refused:
        limits_with(EngineLimits(), {"zzzzzzzzzzzzzzzzzzzz": 3}, "here:4")
    assert (refused.value.message, refused.value.place) == (
        f"there is no limit 'zzzzzzzzzzzzzzzzzzzz': {', '.join(LIMIT_NAMES)}",
        "here:4",
    )


@pytest.mark.parametrize("value", [0, -3, True, 1.5, "7", None])
def test_a_limit_is_a_whole_number_above_0(value: object) -> None:
    with pytest.raises(InvalidText) as refused:
        limits_with(EngineLimits(), {"rules": value}, "file:2")
    error = refused.value
    assert (error.message, error.place, error.found) == ("rules is a whole number above 0", "file:2", repr(value))
    assert limits_with(EngineLimits(), {"rules": 1}).max_rules == 1


RULE = "A(X) :- B(X)."


def test_a_rule_file_says_its_limits() -> None:
    text = f'#:json {{"limits":{{"rules":5,"tuple_arity":9}}}}\n{RULE}\n#:json {{"limits":{{"rules":6}}}}\n{RULE}'
    assert stated_limits(text) == EngineLimits(max_rules=6, max_tuple_arity=9)
    base = EngineLimits(max_rules=3, max_value_bytes=77)
    assert stated_limits(RULE, base=base) is base
    assert stated_limits(text, base=base) == EngineLimits(max_rules=6, max_tuple_arity=9, max_value_bytes=77)
    assert stated_limits(RULE) == EngineLimits()


@pytest.mark.parametrize(
    "line",
    [
        '#:json {"limits":3}',
        '#:json ["limits"]',
        '#:json {"limits":',
        '# "limits" are none',
        ' #:json {"limits":{"rules":5}}',
    ],
)
def test_other_lines_say_no_limits(line: str) -> None:
    assert stated_limits(f"{line}\n{RULE}") == EngineLimits()


@pytest.mark.parametrize(("name", "place"), [("rules.lace", "rules.lace:2"), ("", "2")])
def test_a_limit_that_is_refused_says_where_it_stands(name: str, place: str) -> None:
    with pytest.raises(InvalidText) as refused:
        stated_limits(f'{RULE}\n#:json {{"limits":{{"rules":0}}}}', name=name)
    assert refused.value.place == place
