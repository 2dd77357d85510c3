"""What a node reports about its links: counters for its metrics, and calls to its hooks."""

from __future__ import annotations

from lace.interlace.events import Event
from lace.runtime.links import Hooks, LinkInfo
from lace.runtime.metering import Debt
from lace.runtime.metrics import Metrics
from lace.runtime.session import Outcome


class Reports:
    """Every count and every hook of a link's life in one place."""

    def __init__(self, metrics: Metrics, hooks: Hooks) -> None:
        self._metrics = metrics
        self.hooks = hooks

    def opened(self, info: LinkInfo, active: int) -> None:
        self._metrics.add("connections_total", label="dialled" if info.dialled else "accepted")
        self._metrics.put("connections_active", active)
        if self.hooks.on_open is not None:
            self.hooks.on_open(info)

    def event(self, info: LinkInfo, event: Event) -> None:
        self._metrics.count_event(event)
        if self.hooks.on_event is not None:
            self.hooks.on_event(info, event)

    def ended(self, info: LinkInfo, outcome: Outcome) -> None:
        how = outcome.abort or ("complete" if outcome.is_complete else outcome.ending)
        self._metrics.add("exchanges_total", label=how)
        if self.hooks.on_end is not None:
            self.hooks.on_end(info, outcome)

    def in_debt(self, info: LinkInfo, debt: Debt) -> None:
        self.limited(info, debt.account, f"used more {debt.account} than its rate; unread for {debt.wait_s:.1f} s")

    def limited(self, info: LinkInfo, kind: str, why: str) -> None:
        self._metrics.count_limited(info.account, kind)
        if self.hooks.on_limited is not None:
            self.hooks.on_limited(info, why)

    def refused(self, address: object, reason: str) -> None:
        self._metrics.add("connections_refused_total", label=reason)
        self.trouble(f"refused {address}: {reason}")

    def trouble(self, text: str) -> None:
        if self.hooks.on_trouble is not None:
            self.hooks.on_trouble(text)
