"""Looking at the store for what others have done to it: records that came or went (050-OPEN-03), or the file itself.

Rule: what is wrong with a store is reported once, not at every look; and a store that was rewritten is looked at no
more, for it has to be opened again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from lace.errors import LaceError, StoreReplaced
from lace.runtime.loopevents import set_within, setter
from lace.store.base import RecordStore, StoreCursor

Look = Callable[[Callable[[], StoreCursor]], Awaitable[StoreCursor]]


class StoreWatch:
    """One store, for all links of a node."""

    def __init__(self, store: RecordStore, poll_s: float, tell: Callable[[str], None]) -> None:
        self._store = store
        self._poll_s = poll_s
        self._tell = tell
        self._told = ""
        self.changed: asyncio.Event = asyncio.Event()  # set by any part that knows that something was stored
        self.outdated: asyncio.Event = asyncio.Event()  # nothing can be read or stored until it is opened again

    async def run(self, stopping: asyncio.Event, look: Look, spread: Callable[[], None]) -> None:
        """Notice every change, by this process or another, until the node stops.

        What this process stores is heard of; what another one stores is found by looking now and then.
        """
        unlisten = self._store.news.listen(setter(self.changed))
        try:
            await self._look_on(stopping, look, spread)
        finally:
            unlisten()

    async def _look_on(self, stopping: asyncio.Event, look: Look, spread: Callable[[], None]) -> None:
        seen: StoreCursor | None = None
        while not stopping.is_set() and not self.outdated.is_set():
            try:
                now = await look(self._store.cursor)
                self._told = ""
            except LaceError as error:
                self.trouble(error)
                now = None
            if now is not None and seen is not None and now != seen:
                self._store.news.notice(now)
                spread()
            seen = now or seen
            await set_within(self.changed, self._poll_s)
            self.changed.clear()

    async def until_outdated(self, work: Awaitable[None]) -> None:
        """Work that has to end when the store is rewritten; its owner starts it again."""
        try:
            await work
        except StoreReplaced as error:
            self.trouble(error)

    def trouble(self, error: LaceError, where: str = "") -> None:
        """Something failed that may be the store's fault."""
        if isinstance(error, StoreReplaced):
            self.outdated.set()
        text = f"{where}{error}"
        if text != self._told:
            self._told = text
            self._tell(text)
