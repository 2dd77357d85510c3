"""Limits said in words: on a command line, in a node file, in a rule file (030-LIM-01).

Rule: a name that is not a limit is refused, with the nearest names; nothing is silently left at its default.

A rule file states its own limits in an annotation, so that the person who evaluates it need not know them:

    #:json {"limits": {"max_tuple_arity": 14}}
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from lace.errors import InvalidText
from lace.limits import EngineLimits
from lace.notation.jsontext import read_json

LIMIT_NAMES = tuple(field.name for field in fields(EngineLimits))
_MARKER = "#:json"  # as in `annotations`, which cannot read a rule before the limits are known
_VALUE = re.compile(r"([0-9][0-9_,]*)(k|M|G|Ki|Mi|Gi)?")
_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}


def limits_with(base: EngineLimits, given: Mapping[str, Any], place: str = "") -> EngineLimits:
    """Limits with some of them said otherwise; names with or without `max_`, `-` as good as `_`.

    >>> limits_with(EngineLimits(), {"tuple-arity": 14}).max_tuple_arity
    14
    """
    found: dict[str, int] = {}
    for word, value in given.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise InvalidText(f"{word} is a whole number above 0", rule="limit", place=place, found=repr(value))
        found[_limit_name(word, place)] = value
    return replace(base, **found)


def parse_limit(text: str) -> tuple[str, int]:
    """`NAME=VALUE`; a value may end in k, M, G, Ki, Mi or Gi.

    >>> parse_limit("max_working_rows=200M")
    ('max_working_rows', 200000000)
    """
    word, equals, value = text.partition("=")
    number = _VALUE.fullmatch(value.strip())
    if not equals or number is None:
        raise InvalidText("a limit is NAME=VALUE, such as max_tuple_arity=14", rule="limit", found=repr(text))
    return _limit_name(word.strip()), int(re.sub("[_,]", "", number[1])) * _UNITS[number[2] or ""]


def stated_limits(rules: str, *, name: str = "", base: EngineLimits | None = None) -> EngineLimits:
    """The limits that a rule file says, over the defaults."""
    limits = base or EngineLimits()
    if '"limits"' not in rules:
        return limits
    for number, line in enumerate(rules.split("\n"), start=1):
        if line.startswith(_MARKER):
            said = _said(line.removeprefix(_MARKER))
            if said is not None:
                limits = limits_with(limits, said, f"{name}:{number}" if name else str(number))
    return limits


def _said(annotation: str) -> Mapping[str, Any] | None:
    try:
        found = read_json(annotation)
    except ValueError:
        return None  # told with its place when the annotation itself is read
    said = found.get("limits") if isinstance(found, dict) else None
    return said if isinstance(said, dict) else None


def _limit_name(word: str, place: str = "") -> str:
    plain = word.lower().replace("-", "_")
    name = plain if plain.startswith("max_") else f"max_{plain}"
    if name in LIMIT_NAMES:
        return name
    from difflib import get_close_matches  # only for who mistyped

    near = get_close_matches(name, LIMIT_NAMES, n=3, cutoff=0.5) or LIMIT_NAMES
    raise InvalidText(f"there is no limit {word!r}: {', '.join(near)}", rule="limit", place=place)
