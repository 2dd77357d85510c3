"""Two sessions with their real stores and policies, joined by nothing but bytes: a whole exchange without a socket."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from interlace.pair import EXPOSE_ALL, START_NS, Side
from lace.iltp.resources import fault_of
from lace.intake.received import judge_received
from lace.interlace import effects as asked
from lace.interlace import inputs as given
from lace.interlace.config import MachineConfig
from lace.interlace.events import Event
from lace.limits import RecordLimits
from lace.runtime.judging import commit_safely
from lace.runtime.session import CheckResource, Outcome, ReceivedRecords, Request, Session
from lace.runtime.side import LocalSide
from lace.store.base import RecordStore


class ReferenceEvaluator:
    """The naive evaluator: slow, and right by being small."""

    def __init__(self, side: Side) -> None:
        self.side = side

    def prepare(self, effect: asked.PreparePolicy) -> given.PolicyPrepared | given.PolicyRefused:
        return self.side._prepare(effect)  # type: ignore[return-value]  # the two answers to this effect

    def evaluate(self, effect: asked.Evaluate) -> given.Evaluated | given.EvaluationFailed:
        return self.side._evaluate(effect)  # type: ignore[return-value]

    def get_ready(self) -> None:
        pass


@dataclass
class End:
    """One end of a memory link."""

    config: MachineConfig
    store: RecordStore
    sent: bytearray = field(default_factory=bytearray)  # everything it wrote
    events: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.session = Session(self.config)
        evaluator = ReferenceEvaluator(Side(self.config, EXPOSE_ALL, self.store))  # type: ignore[arg-type]
        self.side = LocalSide(self.store, lambda: evaluator)
        self.taken = 0  # how many of the peer's bytes it was given
        self.runtime = evaluator.side.runtime

    @property
    def outcome(self) -> Outcome:
        assert self.session.outcome is not None, self.session.machine.phase
        return self.session.outcome

    @property
    def have(self) -> set[str]:
        return {str(record) for _, record in self.store.records_since()}

    def perform(self, now_ns: int) -> bool:
        """Carry out what the session asks for, and collect what it writes."""
        moved = False
        while requests := self.session.requests():
            moved = True
            for request in requests:
                self._perform(request, now_ns)
        while data := self.session.data_to_send():
            self.sent += data
            moved = True
        return moved

    def _perform(self, request: Request, now_ns: int) -> None:
        match request:
            case ReceivedRecords(records):
                for answer in commit_safely(judge_received(records, RecordLimits()), self.store):
                    self.session.answer(answer, now_ns)
            case CheckResource(resource):
                self.session.resource_checked(resource, fault_of(resource), now_ns)
            case asked.SendRecords(hashes=hashes):
                loaded = {record: data for batch in self.side.load(hashes, 1000, 1 << 30) for record, data in batch}
                for data in loaded.values():
                    if data is not None:
                        self.session.put_records([data])
                sent = [(record, len(data)) for record, data in loaded.items() if data is not None]
                missing = [record for record, data in loaded.items() if data is None]
                self.session.answer(given.RecordsSent(sent, missing), now_ns)
            case asked.Report(event):
                self.events.append(event)
            case asked.LoadCursor(key):
                self.session.answer(self.side.load_cursor(key), now_ns)
            case asked.SaveCursor(key, cursor):
                self.side.save_cursor(key, cursor)
            case asked.PreparePolicy():
                self.session.answer(self.side.prepare(request), now_ns)
            case asked.Evaluate():
                self.session.answer(self.side.evaluate(request), now_ns)
            case asked.Summarise():
                self.session.answer(self.side.summarise(request), now_ns)


Cut = Callable[[End], int | None]  # after how many bytes written by an end the link breaks


class MemoryLink:
    """Bytes from each end to the other, in pieces of a chosen size."""

    def __init__(self, ends: Sequence[End], *, piece: int = 1 << 20, cut_after: int | None = None) -> None:
        self.ends = tuple(ends)
        self.now_ns = START_NS
        self._piece = piece
        self._cut_after = cut_after  # bytes of the first end that still arrive; then both directions are gone

    def run(self) -> None:
        """Until nothing moves any more; an end that finished closes the stream."""
        for end in self.ends:
            end.session.start(self.now_ns)
        moved = True
        while moved:
            steps = [self._step(end, self.ends[1 - index]) for index, end in enumerate(self.ends)]
            moved = any(steps)

    def _step(self, end: End, peer: End) -> bool:
        moved = end.perform(self.now_ns)
        if end.session.outcome is not None:
            return moved
        limit = len(peer.sent)
        is_cut = self._cut_after is not None and peer is self.ends[0] and limit >= self._cut_after
        if is_cut and self._cut_after is not None:
            limit = self._cut_after
        if end.taken < limit:
            data = bytes(peer.sent[end.taken : min(limit, end.taken + self._piece)])
            end.taken += len(data)
            end.session.receive_data(data, self.now_ns)
            return True
        if (is_cut or peer.session.outcome is not None) and end.session.outcome is None and not moved:
            end.session.receive_eof(self.now_ns)
            end.perform(self.now_ns)
            return end.session.outcome is not None
        return moved
