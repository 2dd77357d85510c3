"""Two interlace machines, two memory stores, the naive evaluator between: a whole exchange in a test, step by step.

Nothing is mocked: policies are lowered and evaluated, records validated. Only the wire is values instead of bytes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from interlace.fakehost import FakeHost
from lace.interlace import inputs as given
from lace.interlace.claims.advertisement import Advertisement, advertisement_facts, sendable_fields
from lace.interlace.effects import (
    Abort,
    Effect,
    EndBlock,
    Evaluate,
    Finish,
    HostEffect,
    Report,
    SendChanges,
    SendFacts,
    SendListing,
    SendRecords,
    SendResource,
    StoreRecords,
)
from lace.interlace.events import Event
from lace.interlace.host import NOT_NOW, Call, perform, store
from lace.interlace.machine import InterlaceMachine
from lace.interlace.result import InterlaceResult
from lace.interlace.setup.terms import Link, MachineConfig, Rules, Terms
from lace.limits import SECOND_NS
from lace.notation.fact import Fact
from lace.notation.factline import format_fact
from lace.notation.identifiers import RecordHash, Verifier
from lace.notation.tai import TAI
from lace.policy.exposure import Exposure, expose_all
from lace.policy.operand import Module
from lace.records.model import Blob, Plex
from lace.records.validate import validate
from lace.records.write import encode_record
from lace.runtime.link.stepper import Fitting
from lace.store.memory import MemoryStore

START_NS = 1_640_995_200 * SECOND_NS
VERIFIER_A = Verifier.of(bytes(32))
VERIFIER_B = Verifier.of(b"\x04" + bytes(31))

ALL = Module.author("SelectHave(P) :- Have(P).\nSelectAdvertised(P,S) :- Advertised(P,S).")
EXPOSE_ALL = (expose_all(),)


def group_module(group: str) -> Module:
    """Records of one group, by their validated and by their claimed field."""
    return Module.author(
        f"SelectHave(P) :- Have(P), Field(P,'Group',_,'{group}').\n"
        f"SelectAdvertised(P,S) :- Advertised(P,S), AdvertisedField(P,S,'Group',_,'{group}')."
    )


def plex(
    name: str, *, group: str = "u", app: str = "ding", data: bytes = b"", headers: Sequence[tuple[str, str]] = ()
) -> bytes:
    """A stored Plex."""
    tai = TAI("1640995200:000000000")
    return encode_record(Plex(group=group, app=app, name=name, tai=tai, headers=tuple(headers), blob=Blob(data)))


def blob(data: bytes) -> bytes:
    """A stored Blob."""
    return encode_record(Blob(data))


def hash_of(stored: bytes) -> RecordHash:
    """The hash that a stored record claims."""
    return RecordHash(stored.split(b"\n", 1)[0].decode().split(": ", 1)[1])


def changed(module: Module, exposures: tuple[Exposure, ...] = EXPOSE_ALL) -> given.RulesChanged:
    """One side has other rules now."""
    return given.RulesChanged(Rules(module, exposures))


_SEATED = ("link", "cursor_key", "is_direct", "salt", "holds_nothing", "takes", "refusals", "wants_lengths")


def config_of(index: int, module: Module = ALL, **options: Any) -> MachineConfig:
    """One side's configuration; an option that is none of the connection is one of the terms."""
    seated = {name: options.pop(name) for name in _SEATED if name in options}
    return MachineConfig(index=index, terms=Terms(module=module, **{"exposures": EXPOSE_ALL, **options}), **seated)


@dataclass
class Side:
    """One side: a machine, its host, and what it did."""

    config: MachineConfig
    store: MemoryStore = field(default_factory=MemoryStore)
    offset_ns: int = 0

    def __post_init__(self) -> None:
        self.machine = InterlaceMachine(self.config)
        self.host = FakeHost(self.store, self.config.terms)
        self.inbox: deque[given.Input] = deque()  # from the peer, in order
        self.results: deque[given.Input] = deque()  # answers to our own effects
        self.arrived: dict[str, list[bytes]] = {}
        self.events: list[Event] = []
        self.wire: list[Effect | list[Advertisement]] = []  # everything sent
        self.asked: list[HostEffect] = []  # of the host
        self.finished: InterlaceResult | None = None
        self.aborted: Abort | None = None
        self.evaluation_error: str | None = None

    def put(self, *stored: bytes) -> list[RecordHash]:
        """Store records locally."""
        return [result.hash for result in self.store.put([validate(data) for data in stored])]

    @property
    def terms(self) -> Terms:
        return self.config.terms

    @property
    def runtime(self) -> list[list[Fact]]:
        return self.host.runtime

    @property
    def have(self) -> set[str]:
        return {record for _, record in self.store.records_since()}

    @property
    def held(self) -> list[Advertisement]:
        """What the peer claims, as far as this side knows."""
        return self.host.claims.listing()

    @property
    def held_hashes(self) -> list[str]:
        return [claim.hash for claim in self.held]

    @property
    def is_over(self) -> bool:
        return self.machine.is_closed

    def facts_sent(self) -> list[Fact]:
        """Every control fact this side sent, listings included."""
        facts: list[Fact] = []
        for effect in self.wire:
            if isinstance(effect, SendFacts):
                facts += effect.facts
            elif isinstance(effect, list):
                for claim in effect:
                    facts += advertisement_facts(claim, self.machine.agreement.own_source)
        return facts

    def named(self, predicate: str) -> list[tuple[str, ...]]:
        """The values of every sent fact of one predicate."""
        return [values for found, values in self.facts_sent() if found.name == predicate]

    # --- effects -----------------------------------------------------------------------------------------------

    def perform(self, effects: Iterable[Effect], peer: Side) -> None:
        for effect in effects:
            self._perform(effect, peer)

    def _perform(self, effect: Effect, peer: Side) -> None:
        match effect:
            case SendFacts(facts):
                self.wire.append(effect)
                peer.inbox.append(_as_lines(facts))
            case SendListing():
                named: list[str] = []
                for batch in self.host.list(effect, Call()):
                    self.wire.append(list(batch))
                    peer.inbox.append(_as_lines(self._listing_facts(batch, effect.source)))
                    named += effect.names(batch)
                self.results.append(given.ListingSent(named))
            case SendChanges():
                self.wire.append(effect)
                peer.inbox.append(self.host.differences(effect, Call()))
            case SendResource(identifier, kind, text):
                self.wire.append(effect)
                peer.inbox.append(given.ResourceReceived(identifier, kind, text))
            case EndBlock():
                self.wire.append(effect)
                peer.inbox.append(given.BlockEnded())
            case SendRecords():
                sent = self._send_records(effect, peer)
                self.wire.append(replace(effect, hashes=[record for record, _ in sent.sent]))
                self.results.append(sent)
            case StoreRecords(hashes):
                for record in hashes:
                    judged = self.host.judge([(record, self.arrived[record].pop(0))], Call())
                    self.results.extend(store(self.host, judged, Call()))
            case Report(event):
                self.events.append(event)
            case Finish(result):
                self.finished = result
                peer.inbox.append(given.StreamEnded())
            case Abort():
                self.aborted = effect
                peer.inbox.append(given.StreamEnded())
            case _:
                self.asked.append(effect)
                answer = perform(self.host, effect, Call())
                if isinstance(effect, Evaluate) and self.evaluation_error is not None:
                    answer = given.EvaluationFailed(self.evaluation_error)
                if answer is not None and answer is not NOT_NOW:
                    self.results.append(answer)

    def _listing_facts(self, claims: Sequence[Advertisement], source: str) -> list[Fact]:
        lines: list[Fact] = []
        for claim in claims:
            fields = sendable_fields(claim, source, self.terms.max_line_bytes)
            lines += advertisement_facts(Advertisement(claim.hash, fields), source)
        return lines

    def _send_records(self, effect: SendRecords, peer: Side) -> given.RecordsSent:
        service = Fitting(effect)
        for batch in self.host.load(effect, Call()):
            for record, data in service.take_all(batch):
                peer.inbox.append(given.RecordsReceived([(record, len(data))]))
                peer.arrived.setdefault(record, []).append(data)
        return given.RecordsSent(service.sent, service.missing)


def _as_lines(facts: Sequence[Fact]) -> given.FactsReceived:
    return given.FactsReceived(tuple(facts), sum(len(format_fact(fact).encode()) + 1 for fact in facts))


class Pair:
    """Two sides and the order in which they move."""

    def __init__(self, first: Side, second: Side) -> None:
        self.sides = (first, second)
        self.now_ns = START_NS

    def start(self) -> None:
        for side in self.sides:
            side.perform(side.machine.start(self.now_ns + side.offset_ns), self.other(side))

    def other(self, side: Side) -> Side:
        return self.sides[1] if side is self.sides[0] else self.sides[0]

    def give(self, side: Side, item: given.Input) -> None:
        """One input to one side."""
        side.perform(side.machine.receive(item, self.now_ns + side.offset_ns), self.other(side))

    def step(self, side: Side) -> bool:
        """Give one side its next input, own answers first."""
        if side.results:
            self.give(side, side.results.popleft())
            return True
        if side.inbox and not side.is_over and side.machine.wants_peer_input:
            self.give(side, side.inbox.popleft())
            return True
        return False

    def run(self, max_steps: int = 100_000, until: Callable[[], bool] = lambda: False) -> None:
        """Until nothing moves any more."""
        for _ in range(max_steps):
            moved = [self.step(side) for side in self.sides]
            if until() or not any(moved):
                return
        raise AssertionError("the exchange does not come to rest")

    def exchange(self) -> tuple[InterlaceResult, InterlaceResult]:
        """A bounded exchange from start to end."""
        self.start()
        self.run()
        first, second = self.sides
        assert first.finished is not None, first.aborted or first.machine.phase
        assert second.finished is not None, second.aborted or second.machine.phase
        return first.finished, second.finished

    def advance(self, nanoseconds: int) -> None:
        """Let time pass; timers that are due fire."""
        self.now_ns += nanoseconds
        for side in self.sides:
            due = side.machine.next_timer
            if due is not None and due <= self.now_ns + side.offset_ns:
                self.give(side, given.TimerFired())


def make_pair(
    first: Module = ALL,
    second: Module = ALL,
    *,
    expose: tuple[Exposure, ...] = EXPOSE_ALL,
    signed: bool = False,
    **options: Any,
) -> Pair:
    """A pair with the same options on both sides."""
    links = (Link(), Link())
    if signed:
        common = {"signs_hello": True, "peer_signs_hello": True}
        links = (
            Link(here=VERIFIER_A, peer=VERIFIER_B, **common),
            Link(here=VERIFIER_B, peer=VERIFIER_A, **common),
        )
    first_side, second_side = (
        Side(config_of(index, module, **{"link": links[index], "exposures": expose, **options}))
        for index, module in enumerate((first, second))
    )
    return Pair(first_side, second_side)
