"""Both sides of an exchange in one process (050, in-process engine).

Rule: the machines are the same as on a wire, and so are evaluation, validation and durability; only what travels
between them is values instead of bytes. Neither side sees the other's store (050-ENG-03).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import assert_never

from lace.errors import LaceError, RemoteProtocolError
from lace.facts.predicates import MAY_REQUEST
from lace.intake.check import Checker
from lace.intake.received import Intake, Received, checkers_for
from lace.interlace import effects as asked
from lace.interlace import inputs as given
from lace.interlace.config import Link, MachineConfig
from lace.interlace.events import Event, FixedPoint
from lace.interlace.machine import InterlaceMachine
from lace.interlace.reasons import AbortReason
from lace.interlace.result import InterlaceResult
from lace.limits import IngestLimits
from lace.policy.lower import LoweringOptions
from lace.runtime.bounds import Service
from lace.runtime.clock import Clock, SystemClock
from lace.runtime.collector import seldom_collecting
from lace.runtime.evaluate import StoreEvaluator
from lace.runtime.judging import answers
from lace.runtime.loading import stored_batches
from lace.runtime.memory import Memory
from lace.runtime.party import UNBOUNDED, Party, Terms
from lace.runtime.receipts import publish_receipts
from lace.runtime.side import CURSORS, LocalSide

OnEvent = Callable[[int, Event], None]
_MAX_HANDED_OVER = 2


class ExchangeAborted(RemoteProtocolError):
    """A local exchange broke off; `results` are what was reached, `side` is who broke it off."""

    def __init__(self, reason: AbortReason, detail: str, side: int, results: tuple[InterlaceResult, InterlaceResult]):
        super().__init__(f"{reason.value}: {detail}")
        self.reason = reason
        self.detail = detail
        self.side = side
        self.results = results


class _Side:
    """One machine with its store, its evaluator and its intake."""

    def __init__(self, index: int, party: Party, peer: Party, terms: Terms) -> None:
        self.index = index
        self.party = party
        proven = party.here is not None and peer.here is not None
        link = Link(here=party.here, peer=peer.here, signs_hello=proven, peer_signs_hello=proven)
        self.machine = InterlaceMachine(
            MachineConfig(
                index=index,
                module=party.module,
                link=link,
                is_open=terms.is_open,
                send_gate=party.send_gate,
                lowering=terms.lowering,
                limits=terms.limits,
                engine_limits=terms.engine_limits,
                is_direct=terms.is_direct,
                cursor_key=party.cursor_key,
                tick_interval_ns=terms.tick_interval_ns,
                partition_threshold_bytes=terms.partition_threshold_bytes,
                max_service_bytes=UNBOUNDED,
            )
        )
        self.evaluator = StoreEvaluator(
            party.store,
            party.exposures,
            limits=terms.engine_limits,
            options=LoweringOptions(send_gate=party.send_gate, trust_peer=party.trust_peer),
        )
        self.inbox: deque[given.PeerInput] = deque()
        self.answers: deque[given.LocalInput] = deque()
        self.arrived: dict[str, bytes] = {}
        self.intake: Intake | None = None
        self.service: Iterator[bool] | None = None
        self.finished: InterlaceResult | None = None
        self.aborted: asked.Abort | None = None

    @property
    def is_over(self) -> bool:
        return self.machine.is_closed

    def hear(self, batches: Iterable[Received]) -> None:
        for received in batches:
            self.answers.extend(answers(received))


class LocalExchange:
    """Two sides, moved in turn until they rest."""

    def __init__(
        self, first: Party, second: Party, terms: Terms, *, clock: Clock | None = None, on_event: OnEvent | None = None
    ) -> None:
        self.sides = (_Side(0, first, second, terms), _Side(1, second, first, terms))
        self._clock = clock or SystemClock()
        self._on_event = on_event
        self._start_tai_ns = self._clock.tai().to_ns()
        self._start_ns = self._clock.monotonic_ns()
        self._resources = ExitStack()
        self._checker: Checker | None = None
        self._workers = 0
        self._ingest_limits = IngestLimits()

    @property
    def now_ns(self) -> int:
        """TAI nanoseconds that never go back."""
        return self._start_tai_ns + self._clock.monotonic_ns() - self._start_ns

    def __enter__(self) -> LocalExchange:
        return self

    def __exit__(self, *_: object) -> None:
        self._resources.close()

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
                side.hear(side.intake.flush())
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
                if facts[0].predicate == MAY_REQUEST:
                    self._expect_records(len(facts))
                peer.inbox.append(given.FactsReceived(facts))
            case asked.SendAdvertisements(advertisements):
                peer.inbox.append(given.AdvertisementsReceived(advertisements))
            case asked.SendChanges(added, removed, is_whole):
                if is_whole:  # at least so many are new to the peer
                    self._expect_records(len(added) - peer.party.store.stat().records)
                peer.inbox.append(given.ChangesReceived(added, removed, is_whole))
            case asked.SendResource(identifier, kind, text):
                peer.inbox.append(given.ResourceReceived(identifier, kind, text))
            case asked.EndBlock():
                peer.inbox.append(given.BlockEnded())
            case asked.SendRecords():
                side.service = self._serve(side, peer, effect)
            case asked.StoreRecords(hashes):
                records = [(record, side.arrived.pop(record)) for record in hashes]
                side.hear(self._intake(side).add(records))
            case asked.LoadCursor(key):
                side.answers.append(given.CursorLoaded(side.party.store.get_setting(CURSORS, key)))
            case asked.SaveCursor(key, cursor):
                side.party.store.put_setting(CURSORS, key, cursor.encode())
            case asked.PreparePolicy():
                side.answers.append(side.evaluator.prepare(effect))
            case asked.Evaluate():
                side.answers.append(side.evaluator.evaluate(effect))
            case asked.Summarise():
                side.answers.append(LocalSide.summarise(effect))
            case asked.Report(event):
                if self._on_event is not None:
                    self._on_event(side.index, event)
                if isinstance(event, FixedPoint) and side.machine.config.is_open:
                    side.evaluator.get_ready()
            case asked.Finish(result):
                side.finished = result
                peer.inbox.append(given.StreamEnded())
            case asked.Abort():
                side.aborted = effect
                peer.inbox.append(given.StreamEnded())
            case _:
                assert_never(effect)

    # --- records -----------------------------------------------------------------------------------------------

    def _expect_records(self, count: int) -> None:
        """Workers start as soon as a listing or a request lets much be expected."""
        if self._checker is None and count > 0:
            self._checker, self._workers = self._resources.enter_context(checkers_for(count, self._ingest_limits))

    def _serve(self, side: _Side, peer: _Side, effect: asked.SendRecords) -> Iterator[bool]:
        """Load and hand over, a batch at a step, so that few records are in memory (050-ENG-03)."""
        service = Service(effect)
        limits = self._ingest_limits
        batches = stored_batches(side.party.store, effect.hashes, limits.max_chunk_records, limits.max_chunk_bytes)
        try:
            for batch in batches:
                if peer.is_over:
                    return
                self._hand_over(peer, service.take_all(batch))
                if service.is_full:
                    break
                yield True
        except LaceError as error:
            side.answers.append(given.LocalFailed(str(error)))
            return
        side.answers.append(given.RecordsSent(service.sent, service.missing))

    @staticmethod
    def _hand_over(peer: _Side, batch: Sequence[tuple[str, bytes]]) -> None:
        if batch:
            peer.arrived.update(batch)
            peer.inbox.append(given.RecordsReceived([(record, len(data)) for record, data in batch]))

    def _intake(self, side: _Side) -> Intake:
        if side.intake is None:
            side.intake = Intake(
                side.party.store,
                self._checker,
                self._resources.enter_context(ThreadPoolExecutor(1, thread_name_prefix="lace-commit")),
                max_waiting=self._workers + 2,
                record_limits=side.party.record_limits,
                limits=self._ingest_limits,
            )
        return side.intake


def exchange(
    first: Party,
    second: Party,
    terms: Terms | None = None,
    *,
    clock: Clock | None = None,
    on_event: OnEvent | None = None,
) -> tuple[InterlaceResult, InterlaceResult]:
    """A bounded exchange between two laces in this process: both results, or ExchangeAborted."""
    used = terms or Terms()
    now = clock or SystemClock()
    known = Memory(first, second, used)
    if known.is_current():
        return known.results()
    with seldom_collecting(), LocalExchange(first, second, used, clock=now, on_event=on_event) as running:
        running.start()
        running.run()
        results = running.results()
        for side in running.sides:
            if side.aborted is not None:
                raise ExchangeAborted(side.aborted.reason, side.aborted.detail, side.index, results)
    for party, peer, result in zip((first, second), (second, first), results, strict=True):
        if party.receipts is not None and peer.here is not None:
            publish_receipts(party.store, result.received_hashes, peer.here, party.receipts, now.tai())
    known.remember(results, (running.sides[0].evaluator.cursor, running.sides[1].evaluator.cursor))
    return results
