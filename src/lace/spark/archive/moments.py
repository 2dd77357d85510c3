"""Times that a user writes, and times as commits say them of files.

Rule: a time without a zone is UTC, whatever zone the session, the machine or the user is in. What a commit says of a
file is cut off to the second, so whatever is compared with it is cut off too: never less is read than was asked for.
"""

from __future__ import annotations

from datetime import UTC, datetime

from lace.errors import InvalidInput

FORM = "2026-11-16, 2026-11-16T12:00 or 2026-11-16T12:00:05.25+01:00"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_moment(text: str, rule: str, wanted: str = "a time") -> datetime:
    """A time in ISO 8601, in UTC."""
    try:
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidInput(f"{wanted}: {FORM}", rule=rule, found=text) from None


def micros(moment: datetime) -> int:
    """Microseconds since 1970, leap seconds left out."""
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def second(moment: datetime) -> str:
    """The second that a time lies in, as a text that orders like the time."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def second_at(unix: int) -> str:
    """The same for a number of seconds since 1970."""
    return second(datetime.fromtimestamp(unix, UTC))
