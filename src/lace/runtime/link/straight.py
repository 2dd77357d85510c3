"""What a link does in a single turn: requests that its host answers at once, and bytes that its stream takes at once.

Rule: what is done is what `drive` does in its loops, in the same order; nothing here waits, and a go is short, so that
it may be part of a turn on the event loop, which pays for it. To wake a loop for a step costs more than the step, and
one new record takes some twenty of them on every link.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

from lace.interlace import effects as asked
from lace.interlace import inputs as given
from lace.interlace.events import Advertising, EpochBegan, Event, FixedPoint
from lace.interlace.host import NOT_NOW, Call, Host, NotNow, perform
from lace.runtime.link.outgoing import Outgoing
from lace.runtime.link.paying import Paying
from lace.runtime.link.session import CheckResource, ReceivedRecords, Request, Session
from lace.runtime.link.waiting import Waiting
from lace.runtime.trace.tap import Tap
from lace.transports.base import ByteStream, PromptStream

AT_ONCE = 16  # requests of one go


class Straight:
    """One link's."""

    def __init__(
        self,
        stream: ByteStream,
        session: Session,
        host: Host[Any],
        outgoing: Outgoing,
        paying: Paying,
        waiting: Waiting,
        over: asyncio.Event,
        on_event: Callable[[Event], None] | None,
        tap: Tap | None,
    ) -> None:
        self.work: deque[Request] = deque()  # what the session wants done
        self.is_held_up = False  # by a request that has to be waited for
        self.is_sending = False  # bytes that had to wait
        self.may_go_on = False  # whether what is next may be done without waiting, in another go
        self._stream = stream if isinstance(stream, PromptStream) else None
        self._session = session
        self._host = host
        self._outgoing = outgoing
        self._paying = paying
        self._waiting = waiting
        self._over = over  # set when the link has ended
        self._on_event = on_event
        self._tap = tap

    def collect(self) -> None:
        """What a call into the session brought."""
        for request in self._session.requests():
            if isinstance(request, ReceivedRecords):
                self._waiting.storing_bytes += request.size
            self.work.append(request)
        if self._session.outcome is not None:
            self._over.set()

    def foresee(self) -> None:
        """Tell our side of a listing that is still coming: what it needs for many records takes a while to start."""
        listed = self._session.machine.listed_so_far
        if listed:
            self._host.expect(listed)

    def go(self, now_ns: int) -> None:
        """Carry out what is next for as long as nothing has to wait for it, and send what came of that."""
        self.may_go_on = False
        if self.is_held_up:
            return
        self.collect()
        for _ in range(AT_ONCE):
            if self._over.is_set() or not self.work or not self._carries_out(self.work[0], now_ns):
                break
            self.work.popleft()
            self.collect()
        else:
            self.may_go_on = bool(self.work)
        if not self._over.is_set():
            self._send()

    def _carries_out(self, request: Request, now_ns: int) -> bool:
        """Whether a request could be carried out without waiting, and was."""
        if not self._host.answers_now:
            return False
        if isinstance(request, asked.Report):
            return self._reports(request.event)
        answer = self._answer(request)
        if answer is None:
            return False
        self._session.answer(answer, now_ns)
        return True

    def _reports(self, event: Event) -> bool:
        if isinstance(event, FixedPoint) and self._session.terms.is_open:
            try:
                self._host.rest(Call(may_wait=False))
            except NotNow:
                return False
        self.tell(event)
        return True

    def tell(self, event: Event) -> None:
        """Something happened that the application may want to hear."""
        if isinstance(event, Advertising | EpochBegan):
            self._paying.charge("epochs" if isinstance(event, EpochBegan) else "loops", 1)
        if self._on_event is not None:
            self._on_event(event)

    def _answer(self, request: Request) -> given.LocalInput | None:
        match request:
            case ReceivedRecords() | CheckResource() | asked.Report() | asked.PreparePolicy() | asked.KeepClaims():
                return None
            case asked.SendListing():
                return self._outgoing.listed_at_once(request)
            case asked.SendRecords():
                return self._outgoing.served_at_once(request)
            case asked.Evaluate() if self._paying.is_in_debt:
                return None
            case _:
                answer = perform(self._host, request, Call(may_wait=False))
                return None if answer is NOT_NOW else answer

    def _send(self) -> None:
        """Hand over what the session has to say, or the beginning of it, if the stream holds nothing back."""
        stream = None if self.is_sending else self._stream
        if stream is not None and self._session.has_data and stream.is_prompt:
            data = self._session.data_to_send()
            if self._tap is not None:
                self._tap.sent(data)
            stream.put(data)
