"""A simulated link: two sessions, bytes between them that are split, delayed, spoiled and cut."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence

from lace.errors import LaceError
from lace.iltp.resources import fault_of
from lace.interlace import effects as asked
from lace.interlace import inputs as given
from lace.interlace.advertisement import Advertisement
from lace.interlace.config import MachineConfig
from lace.interlace.events import Advertising, Event
from lace.interlace.phases import Phase
from lace.notation.digest import Hasher, hasher
from lace.notation.identifiers import RecordHash
from lace.records.validate import validate
from lace.runtime.session import CheckResource, ReceivedRecords, Request, Session
from lace.runtime.side import LocalSide
from simulation.laces import SimEvaluator, SimLace


class Broken(AssertionError):
    """An invariant does not hold."""


class SimEnd:
    """One side of a link and its driver, whose every step the scheduler may delay."""

    def __init__(self, lace: SimLace, config: MachineConfig) -> None:
        self.lace = lace
        self.session = Session(config)
        self.evaluator = SimEvaluator(lace.disk, lace.showing)
        self.work: deque[Request] = deque()
        self.wire = bytearray()  # written, not yet delivered
        self.written = hasher()
        self.closed = False  # nothing more will be written
        self.eof_given = False  # the peer's end was given to us
        self.events: list[Event] = []
        self.reconciled = False  # since the state was last checked
        self.listed: list[Advertisement] = []  # our own set as last advertised
        self._advertised = (0, -1)
        self.requested: set[str] = set()
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
            else:
                self.work.append(request)
        while data := self.session.data_to_send():
            self.wire += data
            self.written.update(data)
        if self.session.outcome is not None:
            self.closed = True
        machine = self.session.machine
        advertised = (machine._epochs, machine._advertised_version)
        if advertised != self._advertised and machine._advertised_version >= 0:
            self._advertised = advertised
            self.listed = machine._own.listing()


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
        if end.closed and not isinstance(request, asked.SaveCursor | ReceivedRecords):
            return
        match request:
            case asked.LoadCursor(key):
                end.session.answer(given.CursorLoaded(end.lace.disk.kept(key)), self.now_ns)
            case asked.SaveCursor(key, cursor):
                end.lace.disk.keep(key, cursor.encode())
            case asked.PreparePolicy():
                end.session.answer(end.evaluator.prepare(request), self.now_ns)
            case asked.Evaluate():
                end.session.answer(end.evaluator.evaluate(request), self.now_ns)
            case asked.Summarise():
                end.session.answer(LocalSide.summarise(request), self.now_ns)
            case asked.SendRecords():
                self._send_records(end, request)
            case ReceivedRecords(records):
                self._store(end, records)
            case CheckResource(resource):
                end.session.resource_checked(resource, fault_of(resource), self.now_ns)
            case asked.Report():
                raise AssertionError("reports are no work")
        self._after(end)

    def _send_records(self, end: SimEnd, request: asked.SendRecords) -> None:
        sent: list[tuple[str, int]] = []
        missing: list[str] = []
        total = 0
        for record in request.hashes:
            stored = end.lace.disk.records.get(RecordHash(record))
            if stored is None:
                missing.append(record)
                continue
            total += len(stored.stored)
            if total > request.limit_bytes or (sent and total > request.budget_bytes):
                break
            if record not in end.evaluator.sendable:
                raise Broken(f"{record} is sent but not sendable")
            end.session.put_records([stored.stored])
            sent.append((record, len(stored.stored)))
        end.session.answer(given.RecordsSent(sent, missing), self.now_ns)

    def _store(self, end: SimEnd, records: Sequence[tuple[str, bytes]]) -> None:
        good: list[RecordHash] = []
        reasons: dict[str, str] = {}
        for claimed, data in records:
            try:
                valid = validate(data)
                if valid.hash != claimed:
                    raise LaceError(f"the bytes are {valid.hash}")
            except LaceError as error:
                reasons[claimed] = str(error)
                continue
            end.lace.disk.put([valid])
            good.append(valid.hash)
        end.lace.acknowledged.update(good)
        if good:
            end.session.answer(given.RecordsStored(good), self.now_ns)
        if reasons:
            end.session.answer(given.RecordsRejected(reasons), self.now_ns)

    # --- what must hold ----------------------------------------------------------------------------------------

    def _after(self, end: SimEnd) -> None:
        end.collect()
        self._check_requests(end)
        self._check_state(end)

    def _check_requests(self, end: SimEnd) -> None:
        """Nothing is requested unless it is allowed, advertised, missing and of an accepted format."""
        outstanding = end.session.machine._book.outstanding
        if outstanding == end.requested:
            return
        fresh = outstanding - end.requested
        if fresh:
            allowed = end.evaluator.requestable
            peer = self.other(end)
            advertised = {claim.hash for claim in peer.listed}
            for record in fresh:
                if record not in allowed or record in end.evaluator.have or not record.endswith(".H3"):
                    raise Broken(f"{record} is requested but not allowed, or not missing")
                if record not in advertised and not self.is_spoiled:
                    raise Broken(f"{record} is requested but was not advertised")
        end.requested = set(outstanding)

    def _check_state(self, end: SimEnd) -> None:
        """After reconciliation the state we hold is what the peer listed, whatever way it came."""
        if not end.reconciled:
            return
        end.reconciled = False
        peer = self.other(end)
        held = end.session.machine._held.listing()
        if held != peer.listed and not self.is_spoiled:
            raise Broken(f"held {len(held)} claims, the peer listed {len(peer.listed)}")


def digest_of(hashers: Sequence[Hasher]) -> bytes:
    """One digest for several transcripts."""
    whole = hasher()
    for one in hashers:
        whole.update(one.digest())
    return whole.digest()
