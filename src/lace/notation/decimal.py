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
