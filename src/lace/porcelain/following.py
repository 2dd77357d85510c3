"""A peer that a node follows: `async with node.follow(address) as link:`.

Rule: it tells how an open exchange stands and decides nothing about it; whether and when to dial again is the node's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from enum import StrEnum
from types import TracebackType
from typing import Any, Self

from lace.errors import LaceError, LocalProtocolError, TransportError
from lace.interlace.inputs import CloseRequested
from lace.interlace.result import ExchangeStatus
from lace.notation.identifiers import Verifier
from lace.runtime.link.drive import Driver
from lace.runtime.link.session import Outcome
from lace.runtime.node.links import LinkInfo, LinkListener

LOOK_S = 0.02  # how often a link is asked whether it has settled, while somebody waits for that
LEAVE_S = 2.0  # for an exchange to end at a phase boundary


class LinkState(StrEnum):
    """How a followed peer stands."""

    DIALLING = "dialling"
    EXCHANGING = "exchanging"
    SETTLED = "settled"  # connected, and neither side wants more
    WAITING = "waiting"  # the peer was lost or cannot be reached, and will be dialled again
    ENDED = "ended"


class _Connection(LinkListener):
    """What the node tells about a followed peer."""

    def __init__(self) -> None:
        self.info: LinkInfo | None = None
        self.driver: Driver | None = None
        self.outcome: Outcome | None = None
        self.error: TransportError | None = None
        self.is_left = False

    @property
    def is_over(self) -> bool:
        return self.is_left

    def opened(self, info: LinkInfo, driver: Driver) -> None:
        self.info, self.driver, self.error = info, driver, None

    def ended(self, outcome: Outcome) -> None:
        self.driver, self.outcome = None, outcome

    def lost(self, error: TransportError) -> None:
        self.driver, self.error = None, error

    def has_settled(self, stored: int) -> bool:
        """Whether neither side wants more, after an evaluation over so many stored records."""
        if self.driver is None:
            return False
        machine = self.driver.session.machine
        if not machine.is_resting:
            return False
        result = machine.result()
        return result.fixed_point and result.store_mark >= stored


class FollowedLink(Coroutine[Any, Any, None]):
    """One followed peer. Use it in `async with`, or await it or make a task of it to follow until that is cancelled."""

    def __init__(
        self,
        address: str,
        keep: Callable[[LinkListener], Coroutine[Any, Any, None]],
        stored_now: Callable[[], int],
        is_running: Callable[[], bool],
    ) -> None:
        self.address = address
        self._heard = _Connection()
        self._keep = keep
        self._stored_now = stored_now
        self._is_running = is_running
        self._task: asyncio.Task[None] | None = None
        self._failure: BaseException | None = None
        self._coroutine: Coroutine[Any, Any, None] | None = None

    # --- for the application -----------------------------------------------------------------------------------

    @property
    def peer(self) -> Verifier | None:
        """The key that the peer proved, on the connection of now or the last one."""
        info = self._heard.info
        return None if info is None else info.peer

    @property
    def outcome(self) -> Outcome | None:
        """How the last connection ended; None before one has."""
        return self._heard.outcome

    @property
    def error(self) -> TransportError | None:
        """Why the last attempt to connect failed, if it did."""
        return self._heard.error

    @property
    def state(self) -> LinkState:
        """How it stands now."""
        if self._task is None or self._task.done() or not self._is_running():
            return LinkState.ENDED
        driver = self._heard.driver
        if driver is not None:
            return LinkState.SETTLED if driver.session.machine.is_resting else LinkState.EXCHANGING
        return LinkState.DIALLING if self.outcome is None and self.error is None else LinkState.WAITING

    async def settled(self) -> None:
        """Wait until both sides have what their rules select of everything stored here before this call.

        A peer that is lost meanwhile is dialled again and waited for; use `asyncio.timeout` if that may take too long.
        NotConverged if the peer refuses the exchange, LocalProtocolError if nothing follows it any more.
        """
        stored = self._stored_now()
        while not self._heard.has_settled(stored):
            if self._failure is not None:
                raise self._failure
            if self.state is LinkState.ENDED:
                raise LocalProtocolError(f"{self.address} is not followed any more, so it cannot settle")
            outcome = self.outcome if self._heard.driver is None else None
            if outcome is not None and outcome.status is ExchangeStatus.REFUSED:
                outcome.raise_for_status()
            await asyncio.sleep(LOOK_S)

    async def aclose(self) -> None:
        """Follow the peer no longer; what is under way ends at a phase boundary, or is cut after a moment."""
        self._heard.is_left = True
        task, driver = self._task, self._heard.driver
        if task is None or task.done():
            return
        if driver is not None:
            driver.tell(CloseRequested())
            await asyncio.wait([task], timeout=LEAVE_S)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def __aenter__(self) -> Self:
        if self._task is not None:
            raise LocalProtocolError("a followed link is entered once; call `node.follow` again")
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __await__(self) -> Generator[Any, Any, None]:
        return self._awaited().__await__()

    def send(self, value: Any, /) -> Any:
        return self._awaited().send(value)

    def throw(self, kind: Any, value: Any = None, trace: Any = None, /) -> Any:
        return self._awaited().throw(kind if value is None else value)

    def close(self) -> None:
        if self._coroutine is not None:
            self._coroutine.close()

    def _awaited(self) -> Coroutine[Any, Any, None]:
        """What `asyncio.create_task(node.follow(address))` runs."""
        if self._coroutine is None:
            self._coroutine = self._keep(self._heard)
        return self._coroutine

    async def _run(self) -> None:
        try:
            await self._keep(self._heard)
        except LaceError as error:
            self._failure = error
