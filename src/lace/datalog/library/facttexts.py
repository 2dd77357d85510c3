"""The text of a Python value as a fact holds it (030, values).

Rule: a value has one text, equal values of one type have equal texts, and what has none is refused, never guessed.

| value | text |
|---|---|
| `str` | itself |
| `int` | decimal digits, `-` before a negative one; `IntCompare` reads it |
| `bool` | `true`, `false` |
| `float` | the shortest decimal that reads back as the same number, as `repr` gives it; no NaN, no infinity |
| `Decimal`, `Fraction`, `UUID` | as `str` gives it |
| `date`, `time`, `datetime` | ISO 8601, as `isoformat` gives it |
| `bytes` | lowercase hex digits |
| a member of an `Enum` | the text of its value |
| a number of numpy | that of the Python number |
"""

from __future__ import annotations

from datetime import date, time
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from math import isfinite
from uuid import UUID

from lace.errors import InvalidInput

_ADVICE = "give text, a whole or decimal number, a date or time, bytes, a UUID or an Enum member"


def fact_text(value: object) -> str:
    """The text of a value.

    >>> [fact_text(value) for value in ("a", 7, True, 0.5, b"\\x01")]
    ['a', '7', 'true', '0.5', '01']
    """
    if isinstance(value, Enum):
        return fact_text(value.value)
    match value:
        case str():
            return str(value)
        case bool():
            return "true" if value else "false"
        case int():
            return int.__repr__(value)
        case float() if isfinite(value):
            return float.__repr__(value)
        case Decimal() | Fraction() | UUID():
            return str(value)
        case date() | time():
            return value.isoformat()
        case bytes():
            return value.hex()
        case _:
            pass
    number = getattr(value, "item", None)  # a scalar of numpy
    if callable(number) and getattr(value, "shape", None) == ():
        return fact_text(number())
    raise InvalidInput(f"{value!r} has no text as a fact value: {_ADVICE}", rule="fact-value")
