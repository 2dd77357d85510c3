"""Noticing that a lace has another policy or other members than before, whoever brought that: a peer or a process.

Rule: a watch tells each change once, in the event loop; it never changes what is in force.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from lace.errors import LaceError
from lace.notation.identifiers import Verifier
from lace.people.policyrecords import PolicyVersion
from lace.people.standing import members_in_force
from lace.porcelain.policy import LacePolicy
from lace.runtime.loopevents import set_within, setter
from lace.store.base import StoreCursor

if TYPE_CHECKING:
    from lace.porcelain.lace import Lace

POLL_S = 0.5  # how soon a policy that another process stored is noticed

OnPolicy = Callable[[LacePolicy, list[PolicyVersion]], None]
"""Hears which policy is in force now, and which of its versions are new."""


OnMembers = Callable[[frozenset[Verifier]], object]
"""Hears who is a member now."""


class PolicyWatch:
    """The policy of one lace and its members, from now on."""

    def __init__(
        self, lace: Lace, tell: OnPolicy, poll_s: float = POLL_S, *, tell_members: OnMembers | None = None
    ) -> None:
        self._lace = lace
        self._tell = tell
        self._tell_members = tell_members
        self._members: frozenset[Verifier] | None = None
        self._poll_s = poll_s
        self._seen: StoreCursor | None = None
        self._policy = lace.policy()
        self._members_changed = False

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
                if self._tell_members is not None and self._members_changed:
                    self._members_changed = False
                    self._tell_members(self._members or frozenset())
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
        if now is not None and self._tell_members is not None:
            members = members_in_force(self._lace.store, now.in_force.root)
            self._members_changed = self._members_changed or members != self._members
            self._members = members
        if now is None or (before is not None and before.in_force.hashes == now.in_force.hashes):
            return None
        return now, now.in_force.newer_than(before.in_force if before is not None else None)
