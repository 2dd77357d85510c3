"""Listings and records that go out while the peer's items come in: as fast as the peer takes them, and no faster."""

from __future__ import annotations

import asyncio
from typing import Any

from lace.interlace import effects as asked
from lace.interlace import inputs as given
from lace.interlace.host import Host, at_hand
from lace.runtime.clock import SteadyTai
from lace.runtime.link.hostcalls import HostCalls
from lace.runtime.link.session import Session
from lace.runtime.link.waiting import Waiting
from lace.runtime.node.bounds import Service


class Outgoing:
    """Writes what the host lists and loads, a batch at a time."""

    def __init__(
        self,
        session: Session,
        host: Host[Any],
        calls: HostCalls,
        waiting: Waiting,
        wake: asyncio.Event,
        time: SteadyTai,
        service_ns: int,
    ) -> None:
        self._session = session
        self._host = host
        self._calls = calls
        self._waiting = waiting
        self._wake = wake  # there is something to send
        self._time = time
        self._service_ns = service_ns

    def listed_at_once(self, request: asked.SendListing) -> given.ListingSent | None:
        """A few advertisement records, if they are at hand and the peer takes what it is sent."""
        if not self._waiting.is_drained or (found := at_hand(self._host, self._host.list, request)) is None:
            return None
        for listed in found:
            self._session.put_listing(listed, request.source)
        return given.ListingSent([name for listed in found for name in request.names(listed)])

    def served_at_once(self, request: asked.SendRecords) -> given.RecordsSent | None:
        """A few stored records, in the same way."""
        if not self._waiting.is_drained or (found := at_hand(self._host, self._host.load, request)) is None:
            return None
        service = Service(request)
        for loaded in found:
            self._session.put_records([stored for _, stored in service.take_all(loaded)])
        return given.RecordsSent(service.sent, service.missing)

    async def list(self, request: asked.SendListing) -> given.ListingSent:
        """Advertisement records as the host lists them: a listing may be large."""
        named: list[str] = []
        with self._calls.calling() as call:
            batches = self._host.list(request, call)
            while batch := await self._calls.in_thread(next, batches, None):
                self._session.put_listing(batch, request.source)
                named += request.names(batch)
                await self._flow()
        return given.ListingSent(named)

    async def serve(self, request: asked.SendRecords) -> given.RecordsSent:
        """Stored records until a bound is reached; the rest is deferred (050-XFER-01)."""
        service = Service(request)
        started = self._time.now_ns
        with self._calls.calling() as call:
            batches = self._host.load(request, call)
            while not service.is_full and (batch := await self._calls.in_thread(next, batches, None)):
                self._session.put_records([stored for _, stored in service.take_all(batch)])
                await self._flow()
                if self._time.now_ns - started > self._service_ns:
                    break
        return given.RecordsSent(service.sent, service.missing)

    async def _flow(self) -> None:
        self._wake.set()
        await self._waiting.drained()
