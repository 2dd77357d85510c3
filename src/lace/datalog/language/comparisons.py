"""What the builtins mean (030 and P4): the one truth that every executor agrees with.

Rule: pure functions of texts. Integers have no size; text order is UTF-8 byte order; shapes are over scalar values.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from operator import ge, gt, le, lt
from typing import Any

from lace.datalog.language.syntax import Operator

_INTEGER = re.compile(r"-?[0-9]+")
_NINES_COMPLEMENT = str.maketrans("0123456789", "9876543210")
IntegerKey = tuple[int, str]
HOLDS: dict[Operator, Callable[[Any, Any], Any]] = {"<": lt, "<=": le, ">": gt, ">=": ge}  # of columns, too


def integer_key(text: str) -> IntegerKey | None:
    """A key that orders decimal integer texts as numbers, None for a text that is not one (P4).

    Digits are never converted: a text may be longer than any machine integer and than `int` is willing to read.

    >>> sorted(["10", "-5", "9", "-40", "007"], key=integer_key)
    ['-40', '-5', '007', '9', '10']
    """
    if _INTEGER.fullmatch(text) is None:
        return None
    digits = text.lstrip("-").lstrip("0")
    if text[0] == "-":
        return -len(digits), digits.translate(_NINES_COMPLEMENT)
    return len(digits), digits


def int_compare(left: str, operator: Operator, right: str) -> bool:
    """`IntCompare`: numeric; false if either text is not an integer (030-INT-06)."""
    left_key, right_key = integer_key(left), integer_key(right)
    if left_key is None or right_key is None:
        return False
    holds: bool = HOLDS[operator](left_key, right_key)
    return holds


def lex_compare(left: str, operator: Operator, right: str) -> bool:
    """`LexCompare`: UTF-8 byte order, which for scalar values is the order of code points that `str` has."""
    holds: bool = HOLDS[operator](left, right)
    return holds


def compare(kind: str, left: str, operator: Operator, right: str) -> bool:
    """`IntCompare` (kind "int") or `LexCompare` (kind "lex")."""
    return int_compare(left, operator, right) if kind == "int" else lex_compare(left, operator, right)


def text_shape(text: str, start: str, delimiters: str, end: str) -> bool:
    """`TextShape`: start, a middle, end.

    Without delimiters the middle is any text (030-SHAPE-07). With delimiters it is a non-empty run of other scalar
    values and then one delimiter, the first after `start`; what follows must be exactly `end` (030-SHAPE-14..17).

    >>> text_shape("links/bob/msg", "links/", "./", "msg"), text_shape("links/.msg", "links/", "./", "msg")
    (True, False)
    """
    if not text.startswith(start):
        return False
    if not delimiters:
        return len(text) >= len(start) + len(end) and text.endswith(end)
    first = next((i for i in range(len(start), len(text)) if text[i] in delimiters), None)
    return first is not None and first > len(start) and text[first + 1 :] == end


def cardinality_holds(count: int, operator: Operator, bound: str) -> bool:
    """Whether a count compares with a bound as asked; false if the bound is not an integer (030-CARD-06)."""
    return int_compare(str(count), operator, bound)
