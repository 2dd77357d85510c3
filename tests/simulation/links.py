"""A simulated link: two sessions, bytes between them that are split, delayed, spoiled and cut."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence

from lace.interlace import effects as asked
from lace.interlace import inputs as given
from lace.interlace.claims.advertisement import Advertisement
from lace.interlace.events import Advertising, Event, Unwanted
from lace.interlace.phases import Phase
from lace.interlace.setup.terms import MachineConfig
from lace.notation.digest import Hasher, hasher
from lace.runtime.link.session import ReceivedRecords, Request, Session
from lace.runtime.link.synchronous import carry_out
from simulation.laces import SimHost, SimLace


class Broken(AssertionError):
    """An invariant does not hold."""


class SimEnd:
    """One side of a link and its driver, whose every step the scheduler may delay."""

    def __init__(self, lace: SimLace, config: MachineConfig) -> None:
        self.lace = lace
        self.session = Session(config)
        self.host = SimHost(lace.disk, config.terms)
        self.work: deque[Request] = deque()
        self.wire = bytearray()  # written, not yet delivered
        self.written = hasher()
        self.closed = False  # nothing more will be written
        self.eof_given = False  # the peer's end was given to us
        self.events: list[Event] = []
        self.reconciled = False  # since the state was last checked
        self.listed: list[Advertisement] = []  # our own set as last advertised
        self._advertised: object = None
        self.requested: frozenset[str] = frozenset()
        self.taken_in_vain = 0
        self.seen_disk = self.first_disk = lace.disk.version

    @property
    def is_over(self) -> bool:
        """Whether an outcome was collected, or the connection was lost."""
        return self.closed

    @property
    def is_idle(self) -> bool:
        return self.session.machine.phase is Phase.IDLE and not self.work

    def collect(self) -> None:
        """Take what the session wants done and written."""
        for request in self.session.requests():
            if isinstance(request, asked.Report):  # told at once: what happened cannot be delayed
                self.events.append(request.event)
                self.reconciled |= isinstance(request.event, Advertising)
                self.taken_in_vain += request.event.count if isinstance(request.event, Unwanted) else 0
            else:
                self._check_received(request)
                self.work.append(request)
        while data := self.session.data_to_send():
            self.wire += data
            self.written.update(data)
        if self.session.outcome is not None:
            self.closed = True
        advertised = self.session.machine.advertised
        if advertised != self._advertised and advertised is not None:
            self._advertised = advertised
            self.listed = self.host.own.listing()

    def _check_received(self, request: Request) -> None:
        """Whatever is stored was asked for, or would have been: what comes unasked passes the same rules (070)."""
        if isinstance(request, ReceivedRecords):
            stray = {record for record, _ in request.records} - self.requested - self.host.requestable
            if stray:
                raise Broken(f"{sorted(stray)} would be stored and was never requestable")


class SimLink:
    """Two ends; `feed` gives one of them bytes of the other."""

    def __init__(self, first: SimEnd, second: SimEnd, rng: random.Random) -> None:
        self.ends = (first, second)
        self._others = {first: second, second: first}
        self._rng = rng
        self.now_ns = 0
        self.stalled_until_ns = 0
        self.is_spoiled = False

    @property
    def is_over(self) -> bool:
        return all(end.is_over for end in self.ends)

    def other(self, end: SimEnd) -> SimEnd:
        return self._others[end]

    def start(self, now_ns: int) -> None:
        self.now_ns = now_ns
        for end in self.ends:
            end.session.start(now_ns)
            self._after(end)

    # --- steps -------------------------------------------------------------------------------------------------

    def can_feed(self, end: SimEnd) -> bool:
        peer = self.other(end)
        return not end.is_over and (bool(peer.wire) or (peer.closed and not end.eof_given))

    def feed(self, end: SimEnd) -> None:
        """Some bytes of the peer, or its end."""
        peer = self.other(end)
        if not peer.wire:
            end.eof_given = True
            end.session.receive_eof(self.now_ns)
        else:
            count = len(peer.wire) if self._rng.random() < 0.5 else self._rng.randint(1, len(peer.wire))
            data = bytes(peer.wire[:count])
            del peer.wire[:count]
            end.session.receive_data(data, self.now_ns)
        self._after(end)

    def spoil(self, end: SimEnd) -> None:
        """Flip one byte on its way to an end."""
        wire = self.other(end).wire
        place = self._rng.randrange(len(wire))
        wire[place] ^= 1 << self._rng.randrange(8)
        self.is_spoiled = True  # a stream has no checksum: what two sides believe of each other may now differ

    def cut(self) -> None:
        """The connection is lost; some written bytes never arrive."""
        for end in self.ends:
            peer = self.other(end)
            del peer.wire[self._rng.randint(0, len(peer.wire)) :]
            while not end.is_over and peer.wire:
                self.feed(end)
            if not end.is_over:
                end.eof_given = True
                end.session.receive_eof(self.now_ns)
                self._after(end)
            end.closed = True

    def drop(self, end: SimEnd) -> None:
        """The lace of this end is gone; the other one sees its stream end."""
        end.closed = True
        end.work.clear()

    def fire(self, end: SimEnd) -> None:
        end.session.handle_timer(self.now_ns)
        self._after(end)

    def tell(self, end: SimEnd, news: given.LocalInput) -> None:
        if not end.is_over:
            end.session.answer(news, self.now_ns)
            self._after(end)

    def perform(self, end: SimEnd) -> None:
        """The next thing that a session asked for."""
        request = end.work.popleft()
        if end.closed and not isinstance(request, asked.KeepClaims | ReceivedRecords):
            return
        if isinstance(request, asked.SendRecords):
            for record in request.hashes:
                if record in end.lace.disk.records and (record in end.host.sendable) != (record in end.host.own):
                    raise Broken(f"{record} would be sent but is not sendable, or the other way round")
        carry_out(end.session, end.host, request, self.now_ns)
        if isinstance(request, ReceivedRecords):
            end.lace.acknowledged.update(record for record, _ in request.records if record in end.lace.disk.records)
        self._after(end)

    # --- what must hold ----------------------------------------------------------------------------------------

    def _after(self, end: SimEnd) -> None:
        while end.session.is_behind:
            end.session.go_on(self.now_ns)
        end.collect()
        self._check_requests(end)
        self._check_state(end)

    def _check_requests(self, end: SimEnd) -> None:
        """Nothing is requested unless it is allowed, advertised, missing and of an accepted format."""
        outstanding = end.session.machine.outstanding
        if outstanding == end.requested:
            return
        fresh = outstanding - end.requested
        if fresh:
            allowed = end.host.requestable
            peer = self.other(end)
            advertised = {claim.hash for claim in peer.listed}
            for record in fresh:
                if record not in allowed or record in end.host.have or not record.endswith(".H3"):
                    raise Broken(f"{record} is requested but not allowed, or not missing")
                if record not in advertised and not self.is_spoiled:
                    raise Broken(f"{record} is requested but was not advertised")
        end.requested = outstanding

    def _check_state(self, end: SimEnd) -> None:
        """After reconciliation the state we hold is what the peer listed, whatever way it came."""
        if not end.reconciled:
            return
        end.reconciled = False
        peer = self.other(end)
        held = end.host.claims.listing()
        if held != peer.listed and not self.is_spoiled:
            raise Broken(f"held {len(held)} claims, the peer listed {len(peer.listed)}")


def digest_of(hashers: Sequence[Hasher]) -> bytes:
    """One digest for several transcripts."""
    whole = hasher()
    for one in hashers:
        whole.update(one.digest())
    return whole.digest()
