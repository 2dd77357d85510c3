"""What a peer causes on a link, its accounts pay for; a link that is overdrawn waits, one too far overdrawn is cut."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from lace.runtime.clock import SteadyTai
from lace.runtime.metering import Debt, LinkMeter
from lace.runtime.session import Session


class Paying:
    """The accounts of one link at work."""

    def __init__(
        self,
        session: Session,
        meter: LinkMeter,
        time: SteadyTai,
        over: asyncio.Event,
        on_limited: Callable[[Debt], None] | None,
    ) -> None:
        self._session = session
        self._meter = meter
        self._time = time
        self._over = over  # set when the link has ended
        self._on_limited = on_limited

    def charge(self, account: str, amount: float) -> None:
        """Something was done for the peer."""
        self._meter.charge(account, amount, self._time.now_ns)

    def charge_blocks(self, before: int) -> None:
        """The session took blocks since it had taken so many."""
        if self._session.blocks_in != before:
            self.charge("blocks", self._session.blocks_in - before)

    @property
    def is_in_debt(self) -> bool:
        """Whether an account is overdrawn."""
        return self._meter.debt(self._time.now_ns) is not None

    async def afford(self) -> str:
        """Wait until no account is overdrawn; why the link should be cut, if it would have to wait for too long."""
        while not self._over.is_set() and (debt := self._meter.debt(self._time.now_ns)) is not None:
            if self._on_limited is not None:
                self._on_limited(debt)
            if debt.wait_s > self._meter.rates.max_wait_s:
                return f"used more {debt.account} than a link may"
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._over.wait(), debt.wait_s)
        return ""
