"""Two interlace machines, two memory stores, the naive evaluator between: a whole exchange in a test, step by step.

Nothing is mocked: policies are lowered and evaluated, records validated. Only the wire is values instead of bytes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from lace.datalog import reference
from lace.datalog.syntax import Fact, Predicate
from lace.errors import LaceError
from lace.facts.predicates import FIELD
from lace.interlace import inputs as given
from lace.interlace.advertisement import (
    Advertisement,
    FieldClaim,
    advertisement_facts,
    canonical_fields,
    sendable_fields,
)
from lace.interlace.config import Link, MachineConfig
from lace.interlace.effects import (
    Abort,
    Effect,
    EndBlock,
    Evaluate,
    Finish,
    LoadCursor,
    PreparePolicy,
    Report,
    SaveCursor,
    SendAdvertisements,
    SendChanges,
    SendFacts,
    SendRecords,
    SendResource,
    StoreRecords,
    Summarise,
)
from lace.interlace.events import Event
from lace.interlace.machine import InterlaceMachine
from lace.interlace.negotiate import FieldSchema
from lace.interlace.result import InterlaceResult
from lace.limits import SECOND_NS
from lace.notation.factline import format_fact
from lace.notation.identifiers import RecordHash, Verifier
from lace.notation.tai import TAI
from lace.policy.exposure import Exposure, expose_all
from lace.policy.lower import LoweredPolicy, LoweringOptions, lower
from lace.policy.operand import Module
from lace.records.model import Blob, Plex
from lace.records.validate import validate
from lace.records.write import encode_record
from lace.runtime.side import LocalSide
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


@dataclass
class Side:
    """One side: a machine, a store, local policy, and what it did."""

    config: MachineConfig
    exposures: tuple[Exposure, ...] = EXPOSE_ALL
    store: MemoryStore = field(default_factory=MemoryStore)
    offset_ns: int = 0

    def __post_init__(self) -> None:
        self.machine = InterlaceMachine(self.config)
        self.inbox: deque[given.Input] = deque()  # from the peer, in order
        self.results: deque[given.Input] = deque()  # answers to our own effects
        self.arrived: dict[str, list[bytes]] = {}
        self.events: list[Event] = []
        self.wire: list[Effect] = []  # everything sent
        self.summarised: list[Summarise] = []  # roots it asked for
        self.finished: InterlaceResult | None = None
        self.aborted: Abort | None = None
        self.policy: LoweredPolicy | None = None
        self.runtime: list[list[Fact]] = []
        self._claims: dict[str, Advertisement] = {}
        self._sendable: set[str] = set()
        self._requestable: set[str] = set()
        self._schema = FieldSchema(None)
        self.loaded: Callable[[str], bytes | None] = lambda record: self.store.get(RecordHash(record))
        self.evaluation_error: str | None = None

    def put(self, *stored: bytes) -> list[RecordHash]:
        """Store records locally."""
        return [result.hash for result in self.store.put([validate(data) for data in stored])]

    @property
    def have(self) -> set[str]:
        return {record for _, record in self.store.records_since()}

    @property
    def is_over(self) -> bool:
        return self.machine.is_closed

    def facts_sent(self) -> list[Fact]:
        """Every control fact this side sent, listings included."""
        facts: list[Fact] = []
        for effect in self.wire:
            if isinstance(effect, SendFacts):
                facts += effect.facts
            elif isinstance(effect, SendAdvertisements):
                for claim in effect.advertisements:
                    facts += advertisement_facts(claim, effect.source)
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
            case SendFacts() | SendAdvertisements() | SendChanges() | SendResource() | EndBlock():
                self.wire.append(effect)
                peer.inbox.extend(as_inputs(effect, self.config.max_line_bytes))
            case SendRecords():
                self.wire.append(effect)
                self.results.append(self._send_records(effect, peer))
            case LoadCursor(key):
                self.results.append(given.CursorLoaded(self.store.get_setting("cursor", key)))
            case SaveCursor(key, cursor):
                self.store.put_setting("cursor", key, cursor.encode())
            case PreparePolicy():
                self.results.append(self._prepare(effect))
            case Evaluate():
                self.results.append(self._evaluate(effect))
            case Summarise():
                self.summarised.append(effect)
                self.results.append(LocalSide.summarise(effect))
            case StoreRecords(hashes):
                self.results.extend(self._store(hashes))
            case Report(event):
                self.events.append(event)
            case Finish(result):
                self.finished = result
                peer.inbox.append(given.StreamEnded())
            case Abort():
                self.aborted = effect
                peer.inbox.append(given.StreamEnded())

    def _send_records(self, effect: SendRecords, peer: Side) -> given.RecordsSent:
        sent: list[tuple[str, int]] = []
        missing: list[str] = []
        total = 0
        for record in effect.hashes:
            data = self.loaded(record)
            if data is None:
                missing.append(record)
                continue
            total += len(data)
            if total > effect.limit_bytes or (sent and total > effect.budget_bytes):
                break
            sent.append((record, len(data)))
            peer.inbox.append(given.RecordsReceived([(record, len(data))]))
            peer.arrived.setdefault(record, []).append(data)
        return given.RecordsSent(sent, missing)

    def _prepare(self, effect: PreparePolicy) -> given.Input:
        options = LoweringOptions(send_gate=effect.send_gate)
        try:
            self.policy = lower(
                effect.plan,
                local_index=effect.local_index,
                viewer=effect.viewer,
                exposures=self.exposures,
                options=options,
            )
        except LaceError as error:
            return given.PolicyRefused(str(error))
        self._claims.clear()
        self._sendable.clear()
        self._requestable.clear()
        self._schema = effect.schema
        return given.PolicyPrepared()

    def _evaluate(self, effect: Evaluate) -> given.Input:
        if self.evaluation_error is not None:
            return given.EvaluationFailed(self.evaluation_error)
        assert self.policy is not None
        for claim in effect.advertised_removed:
            assert self._claims.pop(claim.hash) == claim
        for claim in effect.advertised_added:
            assert claim.hash not in self._claims
            self._claims[claim.hash] = claim
        runtime = list(effect.runtime.facts())
        self.runtime.append(runtime)
        snapshot = self.store.snapshot()
        facts = [Fact(predicate, row) for predicate in snapshot.predicates() for row in snapshot.iterate(predicate)]
        facts += runtime
        for claim in self._claims.values():
            facts += advertisement_facts(claim, effect.source)
        try:
            derived = reference.evaluate(self.policy.program, facts)
        except LaceError as error:
            return given.EvaluationFailed(str(error))
        return self._delta(_ones(derived, self.policy.sendable), _ones(derived, self.policy.requestable))

    def _delta(self, sendable: set[str], requestable: set[str]) -> given.Evaluated:
        answer = given.Evaluated(
            send_added=[self.advertise(record) for record in sorted(sendable - self._sendable)],
            send_removed=sorted(self._sendable - sendable),
            request_added=sorted(requestable - self._requestable),
            request_removed=sorted(self._requestable - requestable),
            store_mark=self.store.high_water(),
        )
        self._sendable, self._requestable = sendable, requestable
        return answer

    def advertise(self, record: str) -> Advertisement:
        rows = self.store.snapshot().query(FIELD, record)
        claims = (FieldClaim(name, index, value) for _, name, index, value in rows if self._schema.allows(name))
        return Advertisement(record, canonical_fields(claims))

    def _store(self, hashes: Sequence[str]) -> list[given.Input]:
        answers: list[given.Input] = []
        for record in hashes:
            data = self.arrived[record].pop(0)
            try:
                valid = validate(data)
                if valid.hash != record:
                    raise LaceError(f"the bytes are {valid.hash}")
            except LaceError as error:
                answers.append(given.RecordsRejected({record: str(error)}))
            else:
                self.store.put([valid])
                answers.append(given.RecordsStored([valid.hash]))
        return answers


def _ones(derived: dict[Predicate, set[tuple[str, ...]]], predicate: Predicate) -> set[str]:
    return {row[0] for row in derived.get(predicate, ())}


def as_inputs(effect: Effect, max_line_bytes: int) -> list[given.Input]:
    """What the peer reads for what was sent."""
    match effect:
        case SendFacts(facts):
            return [given.FactsReceived(tuple(facts), sum(len(format_fact(fact).encode()) + 1 for fact in facts))]
        case SendAdvertisements(claims, source):
            lines: list[Fact] = []
            for claim in claims:
                lines += advertisement_facts(
                    Advertisement(claim.hash, sendable_fields(claim, source, max_line_bytes)), source
                )
            return [given.FactsReceived(tuple(lines), sum(len(format_fact(fact).encode()) + 1 for fact in lines))]
        case SendChanges(added, removed, is_whole):
            return [given.ChangesReceived(added, removed, is_whole)]
        case SendResource(identifier, kind, text):
            return [given.ResourceReceived(identifier, kind, text)]
        case EndBlock():
            return [given.BlockEnded()]
        case _:
            raise AssertionError(effect)


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
    **options: object,
) -> Pair:
    """A pair with the same options on both sides."""
    links = (Link(), Link())
    if signed:
        common = {"signs_hello": True, "peer_signs_hello": True}
        links = (
            Link(here=VERIFIER_A, peer=VERIFIER_B, **common),
            Link(here=VERIFIER_B, peer=VERIFIER_A, **common),
        )
    configs = [
        replace(MachineConfig(index=index, module=module, link=links[index]), **options)
        for index, module in enumerate((first, second))
    ]
    return Pair(Side(configs[0], expose), Side(configs[1], expose))
