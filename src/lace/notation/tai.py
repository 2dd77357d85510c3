"""TAI text (010): ten digits of seconds, a colon, nine digits of nanoseconds, on the International Atomic scale.

Rule: a `TAI` is a checked text, so it stands in facts and sorts as time does; where unix time comes in, the
leap-second table of P25 stands between.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from datetime import UTC, datetime
from typing import Self

from lace.errors import InvalidText, excerpt
from lace.limits import SECOND_NS

_FORM = re.compile(r"[0-9]{10}:[0-9]{9}")
MAX_TAI_NS = 10**10 * SECOND_NS - 1

# P25: unix second from which an offset TAI - UTC is in force, and the offset. The scale of 1972 is used before it.
LEAP_SECONDS: tuple[tuple[int, int], ...] = (
    (63072000, 10), (78796800, 11), (94694400, 12), (126230400, 13), (157766400, 14), (189302400, 15),
    (220924800, 16), (252460800, 17), (283996800, 18), (315532800, 19), (362793600, 20), (394329600, 21),
    (425865600, 22), (489024000, 23), (567993600, 24), (631152000, 25), (662688000, 26), (709948800, 27),
    (741484800, 28), (773020800, 29), (820454400, 30), (867715200, 31), (915148800, 32), (1136073600, 33),
    (1230768000, 34), (1341100800, 35), (1435708800, 36), (1483228800, 37),
)  # fmt: skip
_UNIX_STARTS = [unix for unix, _ in LEAP_SECONDS]
_TAI_STARTS = [unix + offset for unix, offset in LEAP_SECONDS]
_OFFSETS = [10] + [offset for _, offset in LEAP_SECONDS]


class TAI(str):
    """An instant, for example `1640995200:000000000`."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """The instant that `text` spells, or InvalidText."""
        if _FORM.fullmatch(text) is None:  # 010-TAI-02
            form = "10 digits, a colon and 9 digits"
            raise InvalidText(f"a TAI text is {form}", rule="tai-form", found=excerpt(text))
        return cls(text)

    @classmethod
    def of_text(cls, text: str) -> Self:
        """The instant of a TAI text or of a date or time in ISO 8601; UTC where it names no zone.

        >>> TAI.of_text("2017-01-01")
        '1483228837:000000000'
        """
        if _FORM.fullmatch(text) is not None:
            return cls(text)
        try:
            moment = datetime.fromisoformat(text)
            since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - datetime(1970, 1, 1, tzinfo=UTC)
        except (ValueError, OverflowError):
            form = "a time is 2026-11-18, 2026-11-18T12:00:05+01:00 or a TAI text"
            raise InvalidText(form, rule="time-form", found=excerpt(text)) from None
        return cls.of_unix_ns((since.days * 86_400 + since.seconds) * SECOND_NS + since.microseconds * 1_000)

    @classmethod
    def from_ns(cls, tai_ns: int) -> Self:
        """The instant that lies so many nanoseconds after the scale's zero."""
        if not 0 <= tai_ns <= MAX_TAI_NS:
            raise InvalidText("the instant lies outside what a TAI text can say", rule="tai-range", found=str(tai_ns))
        seconds, nanoseconds = divmod(tai_ns, SECOND_NS)
        return cls(f"{seconds:010d}:{nanoseconds:09d}")

    @classmethod
    def of_unix_ns(cls, unix_ns: int) -> Self:
        """The instant of a unix time in nanoseconds.

        >>> TAI.of_unix_ns(1483228800 * 10**9)
        '1483228837:000000000'
        """
        offset = _OFFSETS[bisect_right(_UNIX_STARTS, unix_ns // SECOND_NS)]
        return cls.from_ns(unix_ns + offset * SECOND_NS)

    def to_ns(self) -> int:
        """Nanoseconds since the scale's zero."""
        return int(self[:10]) * SECOND_NS + int(self[11:])

    def to_unix_ns(self) -> int:
        """The unix time; a leap second repeats the first second of the day that follows it, as unix clocks do."""
        tai_ns = self.to_ns()
        return tai_ns - _OFFSETS[bisect_right(_TAI_STARTS, tai_ns // SECOND_NS)] * SECOND_NS

    def plus_ns(self, nanoseconds: int) -> Self:
        """The instant so many nanoseconds later (earlier if negative)."""
        return self.from_ns(self.to_ns() + nanoseconds)
