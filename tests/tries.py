"""How many examples a property is tried with: hypothesis' profile says, for all of them alike.

`@tries(200)` stands where an ordinary property has 60: a run under the default profile takes a third of either, and
`make nightly` five times as many.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings

ORDINARY = 60
_LEAST = 6  # fewer would hardly leave the simplest examples


def tries(usual: int, *, least: int = _LEAST, **more: Any) -> settings:
    """Settings for a property that deserves so many examples where others have 60, and at least so many of them."""
    return settings(max_examples=share(usual, least), **more)


def share(usual: int, least: int = _LEAST) -> int:
    """Of so many cases that a test goes through by itself, how many the profile gives it."""
    return max(usual * settings().max_examples // ORDINARY, min(usual, least))
