"""JSON that somebody else wrote.

Rule: what cannot be read is a ValueError, also what is nested deeper than a reader can follow.
"""

from __future__ import annotations

import json
from typing import Any


def read_json(text: str | bytes) -> Any:
    """The value of a JSON text.

    >>> read_json("[" * 100_000)
    Traceback (most recent call last):
    ValueError: the JSON is nested too deeply
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None
