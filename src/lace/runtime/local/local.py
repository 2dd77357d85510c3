"""Both sides of an exchange in one process (050, in-process engine).

Rule: the machines are the same as on a wire, and so are evaluation, validation and durability; only what travels
between them is values instead of bytes. Neither side sees the other's store (050-ENG-03).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any, Self

from lace.errors import RemoteProtocolError
from lace.interlace import effects as asked
from lace.interlace import inputs as given
from lace.interlace.claims.advertisement import Advertisement
from lace.interlace.events import Event
from lace.interlace.host import Call
from lace.interlace.machine import InterlaceMachine
from lace.interlace.reasons import AbortReason
from lace.interlace.result import InterlaceResult
from lace.interlace.setup.terms import Link, MachineConfig, Terms
from lace.limits import IngestLimits
from lace.notation.stopping import Interrupt, go_on, never
from lace.people.receiving import Receiving
from lace.records.tip import TipPolicy
from lace.runtime.clock import Clock, SystemClock
from lace.runtime.host.host import HostBounds, LocalHost
from lace.runtime.host.quotas import GateRules, QuotaGate, wants_lengths
from lace.runtime.host.receipts import publish_receipts
from lace.runtime.link.session import CheckedResource, ReceivedRecords, Request
from lace.runtime.link.stepper import JobPlace, LinkJob, LinkStepper
from lace.runtime.local.fixedpoint import LastFixedPoint
from lace.runtime.local.party import Party
from lace.runtime.local.preview import PreviewHost
from lace.runtime.node.bounds import DriveLimits
from lace.runtime.node.workers import Workers
from lace.workers.collector import seldom_collecting

OnEvent = Callable[[int, Event], None]
_LOOK_S = 0.01  # how often the caller is asked while others work
_DOING = "two laces exchanged; what was stored stays, and the next exchange goes on from there"
_MAX_HANDED_OVER = 2  # batches that may wait at the receiver: it works while the next is loaded, and no more are held
_LIMITS = IngestLimits()
_DRIVE = DriveLimits(
    max_batch_bytes=_LIMITS.max_chunk_bytes,
    max_batch_records=_LIMITS.max_chunk_records,
    linger_s=3600.0,  # a batch is closed when nothing else moves
    service_ns=1 << 62,
)
_BOUNDS = HostBounds(load_bytes=_LIMITS.max_chunk_bytes, load_records=_LIMITS.max_chunk_records)


class ExchangeAborted(RemoteProtocolError):
    """A local exchange broke off; `results` are what was reached, `side` is who broke it off."""

    def __init__(self, reason: AbortReason, detail: str, side: int, results: tuple[InterlaceResult, InterlaceResult]):
        super().__init__(f"{reason.value}: {detail}")
        self.reason = reason
        self.detail = detail
        self.side = side
        self.results = results


class _Mailbox:
    """What travels to one side: values, and the bytes of records by their names."""

    def __init__(self) -> None:
        self.inputs: deque[given.PeerInput] = deque()
        self.records: dict[str, bytes] = {}
        self.is_closed = False  # nobody reads it any more

    def put(self, item: given.PeerInput) -> None:
        if not self.is_closed:
            self.inputs.append(item)


class DirectSession:
    """A machine whose peer is in this process: values travel where a session over bytes writes and reads them."""

    def __init__(self, config: MachineConfig, host: LocalHost, mailbox: _Mailbox, peer: _Mailbox) -> None:
        self.machine: InterlaceMachine = InterlaceMachine(config)
        self.terms: Terms = config.terms
        self.finished: InterlaceResult | None = None
        self.aborted: asked.Abort | None = None
        self._host = host
        self._mailbox = mailbox
        self._peer = peer
        self._requests: list[Request] = []

    @property
    def next_timer(self) -> int | None:
        """When to tell the machine that a time has come."""
        return self.machine.next_timer

    def requests(self) -> list[Request]:
        """What is to be done now, in order."""
        waiting, self._requests = self._requests, []
        return waiting

    def start(self, now_ns: int) -> None:
        """Begin."""
        self._carry_out(self.machine.start(now_ns))

    def answer(self, answer: given.LocalInput, now_ns: int) -> None:
        """The answer to a request, or news of our own side."""
        self._carry_out(self.machine.receive(answer, now_ns))

    def read(self, now_ns: int) -> bool:
        """Take one item from the peer; False if there is none, or its time has not come."""
        waiting = self._mailbox.inputs
        if not waiting or self.machine.is_closed or not self.machine.wants_peer_input:
            return False
        self._carry_out(self.machine.receive(waiting.popleft(), now_ns))
        return True

    def put_listing(self, advertisements: Sequence[Advertisement], source: str) -> None:
        """Hand over advertisements of a listing."""
        self._peer.put(given.AdvertisementsReceived(advertisements))

    def put_records(self, records: Sequence[tuple[str, bytes]]) -> None:
        """Hand over records."""
        if records and not self._peer.is_closed:
            self._peer.records.update(records)
            self._peer.put(given.RecordsReceived([(record, len(data)) for record, data in records]))

    def takes_more(self, max_unsent_bytes: int) -> bool:
        """Whether the peer has little to read: few records are in memory (050-ENG-03)."""
        return len(self._peer.inputs) < _MAX_HANDED_OVER

    def resource_checked(self, checked: CheckedResource, now_ns: int) -> None:
        """Modules travel as they are."""
        raise AssertionError("nothing was asked to be checked")

    def _carry_out(self, effects: Iterable[asked.Effect]) -> None:
        for effect in effects:
            match effect:
                case asked.SendFacts(facts):
                    self._peer.put(given.FactsReceived(facts))
                case asked.SendResource(identifier, kind, text):
                    self._peer.put(given.ResourceReceived(identifier, kind, text))
                case asked.EndBlock():
                    self._peer.put(given.BlockEnded())
                case asked.SendChanges():  # has no answer, and what follows it in its block must not overtake it
                    self._peer.put(self._host.differences(effect, Call()))
                case asked.StoreRecords(hashes):
                    records = [(record, self._mailbox.records.pop(record)) for record in hashes]
                    self._requests.append(ReceivedRecords(records, sum([len(data) for _, data in records])))
                case asked.Finish(result):
                    self.finished = result
                    self._end()
                case asked.Abort():
                    self.aborted = effect
                    self._end()
                case _:
                    self._requests.append(effect)

    def _end(self) -> None:
        self._mailbox.is_closed = True
        self._mailbox.inputs.clear()
        self._peer.put(given.StreamEnded())


class _Side:
    """One machine with its host, and the jobs of its link that are under way."""

    def __init__(
        self,
        index: int,
        party: Party,
        peer: Party,
        mailboxes: Sequence[_Mailbox],
        *,
        is_direct: bool,
        workers: Workers,
        on_event: Callable[[Event], None] | None,
    ) -> None:
        self.index = index
        proven = party.here is not None and peer.here is not None
        config = MachineConfig(
            index=index,
            terms=party.terms,
            link=Link(here=party.here, peer=peer.here, signs_hello=proven, peer_signs_hello=proven),
            cursor_key=party.cursor_key,
            refusals=True,
            wants_lengths=wants_lengths(party.store, _rules(party)),
            is_direct=is_direct,
        )
        self.host = _host(party, workers)
        self.session = DirectSession(config, self.host, mailboxes[index], mailboxes[1 - index])
        # One that judges beside those that wait; a commit is always a job of its own.
        limits = replace(_DRIVE, verify_slices=workers.count + 2)
        self.stepper = LinkStepper(self.session, self.host, limits, on_event=on_event)
        self.under_way: list[tuple[LinkJob, Future[Any]]] = []

    @property
    def machine(self) -> InterlaceMachine:
        return self.session.machine

    @property
    def aborted(self) -> asked.Abort | None:
        return self.session.aborted

    @property
    def is_over(self) -> bool:
        return self.machine.is_closed


def _host(party: Party, workers: Workers) -> LocalHost:
    if party.preview is not None:
        return PreviewHost(party.store, party.terms, party.preview)
    gate = QuotaGate(party.store, _rules(party))
    return LocalHost(party.store, party.terms, workers=workers, bounds=_BOUNDS, gate=gate)


def _rules(party: Party) -> GateRules:
    """What a side lets in; its peer is known by what the side remembers it under."""
    if party.rules is not None:
        return party.rules
    receiving = Receiving(party.store, TipPolicy)
    return GateRules(peer=party.cursor_key, limits=party.terms.record_limits, receiving=receiving)


class LocalExchange:
    """Two sides, moved in turn until they rest."""

    def __init__(
        self,
        first: Party,
        second: Party,
        *,
        is_direct: bool = True,
        clock: Clock | None = None,
        on_event: OnEvent | None = None,
        stop: Interrupt = never,
    ) -> None:
        self._stop = stop
        self._workers = Workers()
        mailboxes, parties = (_Mailbox(), _Mailbox()), (first, second)

        def side(index: int) -> _Side:
            tell = partial(on_event, index) if on_event is not None else None
            pair = parties[index], parties[1 - index], mailboxes
            return _Side(index, *pair, is_direct=is_direct, workers=self._workers, on_event=tell)

        self.sides: tuple[_Side, _Side] = (side(0), side(1))
        self._clock = clock or SystemClock()
        self._start_tai_ns = self._clock.tai().to_ns()
        self._start_ns = self._clock.monotonic_ns()
        self._resources = ExitStack()
        self._resources.callback(self._workers.close)
        self._pools: dict[tuple[int, JobPlace], ThreadPoolExecutor] = {}

    @property
    def now_ns(self) -> int:
        """TAI nanoseconds that never go back."""
        return self._start_tai_ns + self._clock.monotonic_ns() - self._start_ns

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for side in self.sides:
            for _job, future in side.under_way:  # there are some if it was stopped: what has not begun is left out
                future.cancel()
        self._resources.close()
        for side in self.sides:
            side.host.close()

    # --- moving ------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Both sides begin."""
        for side in self.sides:
            side.session.start(self.now_ns)

    def run(self) -> None:
        """Move until nothing moves any more: the end, or the rest of an open exchange."""
        while self._turn() or self._flush():
            go_on(self._stop, _DOING)

    def _turn(self) -> bool:
        moved = [self._step(side) for side in self.sides]
        return any(moved)

    def _step(self, side: _Side) -> bool:
        """A step of the link, which gives the machine what our own side answered, and one thing of the peer."""
        if side.is_over:
            side.stepper.end()
        side.stepper.collect()
        moved = side.stepper.can_step
        self._do(side, side.stepper.step(self.now_ns))
        return any((moved, self._take_results(side), side.session.read(self.now_ns)))

    def _do(self, side: _Side, jobs: Iterable[LinkJob]) -> None:
        """What judges and commits goes to threads; the rest is done here."""
        for job in jobs:
            if job.place in (JobPlace.JUDGE, JobPlace.COMMIT):
                side.under_way.append((job, self._pool(side, job.place).submit(job.work, Call())))
            else:
                job.done(self._here(job), self.now_ns)

    def _here(self, job: LinkJob) -> Any:
        found = job.work(Call(interrupt=self._stop))
        go_on(self._stop, _DOING)  # before the machine takes a call that was given up for one that failed
        return found

    def _take_results(self, side: _Side) -> bool:
        done = [(job, future) for job, future in side.under_way if future.done()]
        side.under_way = [waiting for waiting in side.under_way if waiting not in done]
        for job, future in done:
            job.done(future.result(), self.now_ns)
            self._do(side, side.stepper.jobs())
        return bool(done)

    def _flush(self) -> bool:
        """Nothing moves: what was received is judged and stored to the last record."""
        for side in self.sides:
            side.stepper.flush()
            self._do(side, side.stepper.jobs())
        futures = [future for side in self.sides for _, future in side.under_way]
        while futures and not wait(futures, self._patience_s, return_when=FIRST_COMPLETED).done:
            go_on(self._stop, _DOING)
        return bool(futures)

    @property
    def _patience_s(self) -> float | None:
        return None if self._stop is never else _LOOK_S

    def tell(self, index: int, news: given.LocalInput) -> None:
        """News for one side."""
        side = self.sides[index]
        if not side.is_over:
            side.session.answer(news, self.now_ns)

    def results(self) -> tuple[InterlaceResult, InterlaceResult]:
        """What both sides have to report."""
        first, second = (side.session.finished or side.machine.result() for side in self.sides)
        return first, second

    def _pool(self, side: _Side, place: JobPlace) -> ThreadPoolExecutor:
        """Threads of one side, begun when records come: one to commit, which keeps the order, the others to judge."""
        key = side.index, place
        if key not in self._pools:
            count = 1 if place is JobPlace.COMMIT else self._workers.count + 1
            threads = ThreadPoolExecutor(count, thread_name_prefix=f"lace-{place.name.lower()}")
            self._pools[key] = self._resources.enter_context(threads)
        return self._pools[key]


def exchange(
    first: Party,
    second: Party,
    *,
    is_direct: bool = True,
    clock: Clock | None = None,
    on_event: OnEvent | None = None,
    stop: Interrupt = never,
) -> tuple[InterlaceResult, InterlaceResult]:
    """A bounded exchange between two laces in this process: both results, or ExchangeAborted, or CallStopped.

    Unless `is_direct`, advertisements travel as listings or partitions, as on a wire.
    """
    now = clock or SystemClock()
    known = LastFixedPoint(first, second)
    if known.is_current():
        return known.results()
    with (
        seldom_collecting(),
        LocalExchange(first, second, is_direct=is_direct, clock=now, on_event=on_event, stop=stop) as running,
    ):
        running.start()
        running.run()
        results = running.results()
        # Read before the hosts are closed: what was stored after these moments is not part of the fixed point.
        seen = running.sides[0].host.evaluated_at, running.sides[1].host.evaluated_at
        for side in running.sides:
            if side.aborted is not None:
                raise ExchangeAborted(side.aborted.reason, side.aborted.detail, side.index, results)
    for party, peer, result in zip((first, second), (second, first), results, strict=True):
        if party.receipts is not None and peer.here is not None:
            publish_receipts(party.store, result.received_hashes, peer.here, party.receipts, now.tai())
    known.remember(results, seen)
    return results
