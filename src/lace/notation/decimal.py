"""Natural numbers as texts: decimal digits without a leading zero, one text a number.

Rule: this is the only place that says what a canonical decimal is; how long one may be is its reader's business.
"""

from __future__ import annotations

import re

PATTERN = "(?:0|[1-9][0-9]*+)"
MAX_DIGITS = 19  # of a length in bytes: nothing is longer than 2**63
_DECIMAL = re.compile(PATTERN)


def is_decimal(text: str) -> bool:
    """Whether a text is a canonical decimal.

    >>> [is_decimal(text) for text in ("0", "10", "01", "", "-1", "1 ")]
    [True, True, False, False, False, False]
    """
    return _DECIMAL.fullmatch(text) is not None


def natural(text: str, max_digits: int = MAX_DIGITS - 1) -> int | None:
    """The number of a canonical decimal that is not too long; None of anything else that somebody may write there.

    >>> natural("10"), natural("01"), natural("1" * 30), natural("٣")
    (10, None, None, None)
    """
    return int(text) if len(text) <= max_digits and is_decimal(text) else None
