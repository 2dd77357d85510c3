"""What a peer causes on a link, its accounts pay for; a link that is overdrawn waits, one too far overdrawn is cut."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from lace.runtime.clock import SteadyTai
from lace.runtime.link.session import Session
from lace.runtime.link.wakes import set_within
from lace.runtime.node.metering import Debt, LinkMeter


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
        self._charged_blocks = session.blocks_in
        self.waits = 0  # for an account to be level again, so far

    def charge(self, account: str, amount: float) -> None:
        """Something was done for the peer."""
        self._meter.charge(account, amount, self._time.now_ns)

    def charge_blocks(self) -> None:
        """The blocks that the session has taken since it was last asked, whatever made it read on: bytes that came, or
        an answer that blocks sent ahead were waiting for."""
        taken = self._session.blocks_in
        if taken != self._charged_blocks:
            self.charge("blocks", taken - self._charged_blocks)
            self._charged_blocks = taken

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
            self.waits += 1
            await set_within(self._over, debt.wait_s)
        return ""
