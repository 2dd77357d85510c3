"""What a node reports about its links: counters for its metrics, and calls to its hooks."""

from __future__ import annotations

import logging
from collections.abc import Callable

from lace.interlace.events import Event
from lace.runtime.clock import SteadyTai
from lace.runtime.link.session import Outcome
from lace.runtime.node.hookcalls import HarmlessTap, HookCalls, refuse_awaitable
from lace.runtime.node.links import Hooks, LinkInfo
from lace.runtime.node.metering import Bucket, Debt, Rate
from lace.runtime.node.metrics import Metrics
from lace.runtime.trace.tap import Tap
from lace.transports.base import TransportProof

_ON_TROUBLE = "on_trouble"
_LOG = logging.getLogger("lace.hooks")

RetryAfter = Callable[[TransportProof], float | None]
"""When a peer should come back, if there is no place for it; None if there is."""


REFUSAL_LINES = Rate(2, 50)  # that are logged; the others are counted, and the next line says how many they were


class Reports:
    """Every count and every hook of a link's life in one place; listeners tell it what they do by themselves."""

    def __init__(
        self,
        metrics: Metrics,
        hooks: Hooks,
        time: SteadyTai,
        retry_after_s: RetryAfter,
        logger: logging.Logger | None = None,
    ) -> None:
        self._metrics = metrics
        self.hooks = hooks
        self._calls = HookCalls(self.failed)
        self._time = time
        self._links_log = None if logger is None else logger.getChild("links")
        self._node_log = None if logger is None else logger.getChild("node")
        self._lines = Bucket(REFUSAL_LINES, time.now_ns)
        self._unsaid = 0
        self.retry_after_s = retry_after_s

    def opened(self, info: LinkInfo, active: int) -> None:
        self._metrics.add("connections_total", label="dialled" if info.dialled else "accepted")
        self._metrics.put("connections_active", active)
        self._log(logging.INFO, info, "link %d with %s opened", info.number, info.address)
        self._calls.call("on_open", self.hooks.on_open, info)

    def event(self, info: LinkInfo, event: Event) -> None:
        self._metrics.count_event(event)
        self._calls.call("on_event", self.hooks.on_event, info, event)

    def ended(self, info: LinkInfo, outcome: Outcome) -> None:
        how = outcome.abort or ("complete" if outcome.is_complete else outcome.status)
        self._metrics.add("exchanges_total", label=how)
        said = {"lace_status": outcome.status.value, "lace_abort": outcome.abort, "lace_detail": outcome.detail}
        self._log(
            logging.INFO, info, "link %d with %s ended: %s", info.number, info.address, outcome.status.value, **said
        )
        self._calls.call("on_end", self.hooks.on_end, info, outcome)

    def in_debt(self, info: LinkInfo, debt: Debt) -> None:
        self.limited(info, debt.account, f"used more {debt.account} than its rate; unread for {debt.wait_s:.1f} s")

    def limited(self, info: LinkInfo, kind: str, why: str) -> None:
        self._metrics.count_limited(info.account, kind)
        self._log(logging.WARNING, info, "link %d with %s: %s", info.number, info.address, why, lace_limit=kind)
        self._calls.call("on_limited", self.hooks.on_limited, info, why)

    def refused(self, address: object, reason: str, why: str = "") -> None:
        """A connection was turned away; a crowd that keeps coming must not fill the log."""
        self._metrics.add("connections_refused_total", label=reason)
        now_ns = self._time.now_ns
        if not self._lines.has(1, now_ns):
            self._unsaid += 1
            return
        self._lines.charge(1, now_ns)
        unsaid, self._unsaid = self._unsaid, 0
        more = f" (and {unsaid:,} others since the last such line)" if unsaid else ""
        self.trouble(f"refused {address}: {reason}{f': {why}' if why else ''}{more}")

    def trouble(self, text: str) -> None:
        if self._node_log is not None:
            self._node_log.warning("%s", text)
        self._calls.call(_ON_TROUBLE, self.hooks.on_trouble, text)

    def _log(self, level: int, info: LinkInfo, text: str, *values: object, **extra: object) -> None:
        """A line about a link, with what it is about as fields for structured logs."""
        if self._links_log is not None and self._links_log.isEnabledFor(level):
            about = {"lace_link": info.number, "lace_address": info.address, "lace_peer": info.peer}
            self._links_log.log(level, text, *values, extra={**about, **extra})

    def failed(self, name: str, error: Exception) -> None:
        """A part that the application gave us failed: log it, and tell it as trouble unless telling is what failed."""
        log_failure(name, error)
        if name != _ON_TROUBLE:
            self.trouble(f"{name} failed: {type(error).__name__}: {error}")

    def tap(self, info: LinkInfo) -> Tap | None:
        """What the application wants to see the bytes of a link with."""
        make = self.hooks.make_tap
        try:
            tap = None if make is None else make(info)
            refuse_awaitable(tap, "make_tap is called before the first byte passes and cannot be async")
        except Exception as error:  # noqa: BLE001 - of the application: reported, and no concern of the exchange
            self.failed("make_tap", error)
            return None
        return None if tap is None else HarmlessTap(tap, self.failed)

    async def settle(self, seconds: float) -> None:
        """Let async hooks end."""
        await self._calls.settle(seconds)


def log_failure(name: str, error: Exception) -> None:
    """Write what a hook raised, with where, to the log `lace.hooks`."""
    _LOG.error("%s failed", name, exc_info=error)
