"""Both sides of an exchange in one process (050, in-process engine).

Rule: the machines are the same as on a wire, and so are evaluation, validation and durability; only what travels
between them is values instead of bytes. Neither side sees the other's store (050-ENG-03).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import Self

from lace.errors import LaceError, RemoteProtocolError
from lace.intake.received import JudgedBatch
from lace.interlace import effects as asked
from lace.interlace import inputs as given
from lace.interlace.events import Event, FixedPoint
from lace.interlace.host import NOT_NOW, Arrived, Call, limit_of, perform, store
from lace.interlace.machine import InterlaceMachine
from lace.interlace.reasons import AbortReason
from lace.interlace.result import InterlaceResult
from lace.interlace.setup.terms import Link, MachineConfig
from lace.limits import IngestLimits
from lace.runtime.clock import Clock, SystemClock
from lace.runtime.host.host import HostBounds, LocalHost
from lace.runtime.host.quotas import GateRules, QuotaGate, wants_lengths
from lace.runtime.host.receipts import publish_receipts
from lace.runtime.local.fixedpoint import LastFixedPoint
from lace.runtime.local.party import Party
from lace.runtime.local.preview import PreviewHost
from lace.runtime.node.bounds import Fitting
from lace.runtime.node.workers import Workers
from lace.workers.collector import seldom_collecting

OnEvent = Callable[[int, Event], None]
_MAX_HANDED_OVER = 2  # batches that may wait at the receiver: it works while the next is loaded, and no more are held
_LIMITS = IngestLimits()
_BOUNDS = HostBounds(load_bytes=_LIMITS.max_chunk_bytes, load_records=_LIMITS.max_chunk_records)


class ExchangeAborted(RemoteProtocolError):
    """A local exchange broke off; `results` are what was reached, `side` is who broke it off."""

    def __init__(self, reason: AbortReason, detail: str, side: int, results: tuple[InterlaceResult, InterlaceResult]):
        super().__init__(f"{reason.value}: {detail}")
        self.reason = reason
        self.detail = detail
        self.side = side
        self.results = results


class _Side:
    """One machine with its host, what waits for it, and what it takes in."""

    def __init__(self, index: int, party: Party, peer: Party, *, is_direct: bool, workers: Workers) -> None:
        self.index = index
        self.party = party
        proven = party.here is not None and peer.here is not None
        self.machine = InterlaceMachine(
            MachineConfig(
                index=index,
                terms=party.terms,
                link=Link(here=party.here, peer=peer.here, signs_hello=proven, peer_signs_hello=proven),
                cursor_key=party.cursor_key,
                refusals=True,
                wants_lengths=wants_lengths(party.store, _rules(party)),
                is_direct=is_direct,
            )
        )
        self.host = _host(party, workers)
        self.inbox: deque[given.PeerInput] = deque()
        self.answers: deque[given.LocalInput] = deque()
        self.arrived: dict[str, bytes] = {}
        self.intake: _Intake | None = None
        self.service: Iterator[bool] | None = None
        self.finished: InterlaceResult | None = None
        self.aborted: asked.Abort | None = None

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
    return GateRules(peer=party.cursor_key, limits=party.terms.record_limits)


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
    ) -> None:
        self._workers = Workers()
        self.sides = (
            _Side(0, first, second, is_direct=is_direct, workers=self._workers),
            _Side(1, second, first, is_direct=is_direct, workers=self._workers),
        )
        self._clock = clock or SystemClock()
        self._on_event = on_event
        self._start_tai_ns = self._clock.tai().to_ns()
        self._start_ns = self._clock.monotonic_ns()
        self._resources = ExitStack()
        self._resources.callback(self._workers.close)

    @property
    def now_ns(self) -> int:
        """TAI nanoseconds that never go back."""
        return self._start_tai_ns + self._clock.monotonic_ns() - self._start_ns

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._resources.close()
        for side in self.sides:
            side.host.close()

    # --- moving ------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Both sides begin."""
        for side in self.sides:
            self._carry_out(side, side.machine.start(self.now_ns))

    def run(self) -> None:
        """Move until nothing moves any more: the end, or the rest of an open exchange."""
        while self._turn() or self._flush():
            pass

    def _turn(self) -> bool:
        moved = [self._step(side) for side in self.sides]
        return any(moved)

    def _flush(self) -> bool:
        """Nothing moves: what was received is judged and stored to the last record."""
        for side in self.sides:
            if side.intake is not None:
                side.answers.extend(side.intake.flush())
        return any(side.answers and not side.is_over for side in self.sides)

    def tell(self, index: int, news: given.LocalInput) -> None:
        """News for one side."""
        side = self.sides[index]
        if not side.is_over:
            self._carry_out(side, side.machine.receive(news, self.now_ns))

    def results(self) -> tuple[InterlaceResult, InterlaceResult]:
        """What both sides have to report."""
        first, second = (side.finished or side.machine.result() for side in self.sides)
        return first, second

    def _step(self, side: _Side) -> bool:
        if side.is_over:
            return False
        peer = self.sides[1 - side.index]
        # What our own side answered comes first: the machine takes nothing from its peer while a question is open.
        if side.answers:
            self._carry_out(side, side.machine.receive(side.answers.popleft(), self.now_ns))
        elif side.inbox and side.machine.wants_peer_input:
            self._carry_out(side, side.machine.receive(side.inbox.popleft(), self.now_ns))
        elif side.service is not None and (len(peer.inbox) < _MAX_HANDED_OVER or peer.is_over):
            side.service = side.service if next(side.service, False) else None
        else:
            return False
        return True

    def _carry_out(self, side: _Side, effects: Iterable[asked.Effect]) -> None:
        for effect in effects:
            self._carry_out_one(side, effect)

    def _carry_out_one(self, side: _Side, effect: asked.Effect) -> None:
        peer = self.sides[1 - side.index]
        match effect:
            case asked.SendFacts(facts):
                peer.inbox.append(given.FactsReceived(facts))
            case asked.SendListing():
                side.service = self._list(side, peer, effect)
            case asked.SendChanges():
                peer.inbox.append(side.host.differences(effect, Call()))
            case asked.SendResource(identifier, kind, text):
                peer.inbox.append(given.ResourceReceived(identifier, kind, text))
            case asked.EndBlock():
                peer.inbox.append(given.BlockEnded())
            case asked.SendRecords():
                side.service = self._serve(side, peer, effect)
            case asked.StoreRecords(hashes):
                records = [(record, side.arrived.pop(record)) for record in hashes]
                side.answers.extend(self._intake(side).add(records))
            case asked.Report(event):
                if self._on_event is not None:
                    self._on_event(side.index, event)
                if isinstance(event, FixedPoint) and side.party.terms.is_open:  # the next change is likely a small one
                    side.host.rest(Call())
            case asked.Finish(result):
                side.finished = result
                peer.inbox.append(given.StreamEnded())
            case asked.Abort():
                side.aborted = effect
                peer.inbox.append(given.StreamEnded())
            case _:
                answer = perform(side.host, effect, Call())
                if answer is not None and answer is not NOT_NOW:
                    side.answers.append(answer)

    # --- records -----------------------------------------------------------------------------------------------

    def _list(self, side: _Side, peer: _Side, effect: asked.SendListing) -> Iterator[bool]:
        """A listing as on a wire, a batch at a step."""
        try:
            for batch in side.host.list(effect, Call()):
                peer.inbox.append(given.AdvertisementsReceived(batch))
                yield True
        except LaceError as error:
            side.answers.append(given.LocalFailed(str(error), limit_of(error)))
            return
        side.answers.append(given.ListingSent())

    def _serve(self, side: _Side, peer: _Side, effect: asked.SendRecords) -> Iterator[bool]:
        """Load and hand over, a batch at a step, so that few records are in memory (050-ENG-03)."""
        service = Fitting(effect)
        try:
            for batch in side.host.load(effect, Call()):
                if peer.is_over:
                    return
                self._hand_over(peer, service.take_all(batch))
                if service.is_full:
                    break
                yield True
        except LaceError as error:
            side.answers.append(given.LocalFailed(str(error), limit_of(error)))
            return
        side.answers.append(given.RecordsSent(service.sent, service.missing))

    @staticmethod
    def _hand_over(peer: _Side, batch: Sequence[tuple[str, bytes]]) -> None:
        if batch:
            peer.arrived.update(batch)
            peer.inbox.append(given.RecordsReceived([(record, len(data)) for record, data in batch]))

    def _intake(self, side: _Side) -> _Intake:
        if side.intake is None:
            judges = ThreadPoolExecutor(self._workers.count + 1, thread_name_prefix="lace-judge")
            committer = ThreadPoolExecutor(1, thread_name_prefix="lace-commit")
            for threads in (judges, committer):
                self._resources.enter_context(threads)
            side.intake = _Intake(side.host, judges, committer, max_waiting=self._workers.count + 2)
        return side.intake


class _Intake:
    """What one side takes in: batches are judged side by side and committed in order."""

    def __init__(self, host: LocalHost, judges: Executor, committer: Executor, *, max_waiting: int) -> None:
        self._host = host
        self._judges = judges
        self._committer = committer  # one thread: the order stays, and while it waits for a disk the sender reads on
        self._max_waiting = max_waiting
        self._batch: list[Arrived] = []
        self._batch_bytes = 0
        self._waiting: deque[Future[Sequence[given.LocalInput]]] = deque()

    def add(self, records: Sequence[Arrived]) -> Iterator[given.LocalInput]:
        """Take records in; answers come as batches are done."""
        self._batch += records
        self._batch_bytes += sum([len(data) for _, data in records])
        if len(self._batch) >= _LIMITS.max_chunk_records or self._batch_bytes >= _LIMITS.max_chunk_bytes:
            self._pass_on()
        while len(self._waiting) > self._max_waiting:
            yield from self._waiting.popleft().result()

    def flush(self) -> Iterator[given.LocalInput]:
        """Judge and store everything that waits."""
        self._pass_on()
        while self._waiting:
            yield from self._waiting.popleft().result()

    def _pass_on(self) -> None:
        batch, self._batch, self._batch_bytes = self._batch, [], 0
        if batch:
            judging = self._judges.submit(self._host.judge, batch, Call())
            # Submitted right away: the one committer waits for this batch to be judged, and later ones stand behind it.
            self._waiting.append(self._committer.submit(self._commit, judging))

    def _commit(self, judging: Future[JudgedBatch]) -> Sequence[given.LocalInput]:
        return store(self._host, judging.result(), Call())


def exchange(
    first: Party,
    second: Party,
    *,
    is_direct: bool = True,
    clock: Clock | None = None,
    on_event: OnEvent | None = None,
) -> tuple[InterlaceResult, InterlaceResult]:
    """A bounded exchange between two laces in this process: both results, or ExchangeAborted.

    Unless `is_direct`, advertisements travel as listings or partitions, as on a wire.
    """
    now = clock or SystemClock()
    known = LastFixedPoint(first, second)
    if known.is_current():
        return known.results()
    with (
        seldom_collecting(),
        LocalExchange(first, second, is_direct=is_direct, clock=now, on_event=on_event) as running,
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
