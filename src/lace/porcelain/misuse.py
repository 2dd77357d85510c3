"""What a program gives that is of the wrong kind: an error that says what to write.

Rule: only the public doors ask these functions; what is behind them has types.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

from lace.errors import InvalidInput, InvalidText
from lace.notation.fact import Fact
from lace.notation.tai import TAI

When = str | datetime
"""A time: a TAI text such as `1640995200:000000000`, or a datetime with a time zone."""


class RulesWarning(UserWarning):
    """Rules ask for what no record has, and so have no answer: a misspelt name looks like any other question."""


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_RULE = "argument-type"


def text_of(value: object, what: str, example: str) -> str:
    """The value, if it is text.

    >>> text_of(5, "name", "links/1")
    Traceback (most recent call last):
    lace.errors.InvalidText: name is text, such as 'links/1', and not int (found 5)
    """
    if isinstance(value, str):
        return value
    message = f"{what} is text, such as {example!r}, and not {type(value).__name__}"
    raise InvalidText(message, rule=_RULE, found=repr(value)[:80])


def require_lace(value: object) -> None:
    """InvalidInput unless it is an open lace."""
    if not hasattr(value, "store"):
        message = f'give an open lace, `lace.open("notes.lace")`, and not {type(value).__name__}'
        raise InvalidInput(message, rule=_RULE, found=repr(value)[:80])


def require_path(value: object) -> None:
    """InvalidInput if it is a lace where its file is asked for."""
    if hasattr(value, "store"):
        message = "give the path of its file, and not the open lace"
        raise InvalidInput(message, rule=_RULE, found=repr(value)[:80])


def target_of(value: object) -> str:
    """The value, if it may name a record."""
    return text_of(value, "a record's name", "//group//app//name") if not isinstance(value, str) else value


def time_of(moment: When) -> TAI:
    """The instant that a text or a datetime names.

    >>> time_of(datetime(2022, 1, 1, tzinfo=UTC)) == TAI.of_unix_ns(1640995200 * 10**9)
    True
    """
    if isinstance(moment, datetime):
        if moment.tzinfo is None:
            message = "a datetime needs a time zone: datetime.now(timezone.utc), or replace(tzinfo=…)"
            raise InvalidText(message, rule="time-zone", found=repr(moment))
        return TAI.of_unix_ns((moment - _EPOCH) // timedelta(microseconds=1) * 1000)
    return TAI.parse(text_of(moment, "a time", "1640995200:000000000"))


def facts_of(given: Iterable[object]) -> Iterator[Fact]:
    """The facts, if that is what they are and their values are texts."""
    if isinstance(given, str):
        raise InvalidInput("facts are lace.Fact values, and not one text", rule=_RULE, found=repr(given)[:80])
    for one in given:
        if not isinstance(one, Fact):
            message = 'a fact is lace.Fact(lace.Predicate("Edge", 2), ("a", "b"))'
            raise InvalidInput(f"{message}, and not {type(one).__name__}", rule=_RULE, found=repr(one)[:80])
        for value in one.values:
            if not isinstance(value, str):
                message = f"values of {one.predicate} are texts: write str({value!r})"
                raise InvalidInput(message, rule=_RULE, found=repr(value)[:80])
        if len(one.values) != one.predicate.arity:
            message = f"{one.predicate} takes {one.predicate.arity} values, and is given {len(one.values)}"
            raise InvalidInput(message, rule="arity", found=repr(one.values)[:80])
        yield one
