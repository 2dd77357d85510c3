"""Noticing that a lace has another policy than before, whoever brought it: a peer, this process or another one.

Rule: a watch tells each change once, in the event loop; it never changes what is in force.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from lace.errors import LaceError
from lace.people.policyrecords import PolicyVersion
from lace.porcelain.policy import LacePolicy
from lace.runtime.loopevents import set_within, setter
from lace.store.base import StoreCursor

if TYPE_CHECKING:
    from lace.porcelain.lace import Lace

POLL_S = 0.5  # how soon a policy that another process stored is noticed

OnPolicy = Callable[[LacePolicy, list[PolicyVersion]], None]
"""Hears which policy is in force now, and which of its versions are new."""


class PolicyWatch:
    """The policy of one lace, from now on."""

    def __init__(self, lace: Lace, tell: OnPolicy, poll_s: float = POLL_S) -> None:
        self._lace = lace
        self._tell = tell
        self._poll_s = poll_s
        self._seen: StoreCursor | None = None
        self._policy = lace.policy()

    async def run(self) -> None:
        """Tell of every change until cancelled, or until the lace has to be opened again."""
        changed = asyncio.Event()
        unlisten = self._lace.store.news.listen(setter(changed))
        try:
            while True:
                await set_within(changed, self._poll_s)
                changed.clear()
                found = await asyncio.to_thread(self._look)
                if found is not None:
                    self._tell(*found)
        except LaceError:  # closed, or written anew: the node finds the same and says it
            return
        finally:
            unlisten()

    def _look(self) -> tuple[LacePolicy, list[PolicyVersion]] | None:
        """The policy if it is another one than at the last look, with what is new in it."""
        cursor = self._lace.store.cursor()
        if cursor == self._seen:
            return None
        now, before = self._lace.policy(), self._policy
        self._seen, self._policy = cursor, now
        if now is None or (before is not None and before.in_force.hashes == now.in_force.hashes):
            return None
        return now, now.in_force.newer_than(before.in_force if before is not None else None)
