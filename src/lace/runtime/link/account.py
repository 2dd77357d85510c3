"""What a peer causes on a link, its accounts pay for; a link that is overdrawn waits, one too far overdrawn is cut."""

from __future__ import annotations

from collections.abc import Callable

from lace.runtime.clock import SteadyTai
from lace.runtime.link.session import Session
from lace.runtime.node.metering import Debt, LinkMeter


class LinkAccount:
    """The accounts of one link at work."""

    def __init__(
        self, session: Session, meter: LinkMeter, time: SteadyTai, on_limited: Callable[[Debt], None] | None
    ) -> None:
        self._session = session
        self._meter = meter
        self._time = time
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

    def debt(self) -> Debt | None:
        """What has to be waited for before more is done for the peer, who is told."""
        debt = self._meter.debt(self._time.now_ns)
        if debt is not None and self._on_limited is not None:
            self._on_limited(debt)
        return debt

    def is_too_deep(self, debt: Debt) -> bool:
        """Whether a link may not wait for so long: then it is cut."""
        return debt.wait_s > self._meter.rates.max_wait_s
