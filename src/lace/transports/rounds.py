"""When the next round of what many connections want begins: after the event loop has looked at everything else.

Rule: a round comes last. To wake whoever was served, to read from it and to accept it take one look of the loop each; a
round between them would make each step of an exchange wait for one more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

LOOKS = 2


def after_others(begin: Callable[[], None], looks: int = LOOKS) -> None:
    """Begin once the loop has done all that is ready, so many times."""
    then = partial(after_others, begin, looks - 1) if looks else begin
    asyncio.get_running_loop().call_soon(then)
