"""One side of one link over a byte stream: the machine and the codec joined, still without I/O (050, 060).

Rule: bytes and times come in, bytes and requests go out, nothing else. Its driver carries out every request in
the order given and answers those that the machine wants answered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Self, assert_never, cast

from lace.errors import InvalidStream, LaceError, LocalProtocolError, NotConverged
from lace.iltp.items import BlankLine, EndOfStream, FactLines, Item, Preface, RecordItem, Resource
from lace.iltp.packed import encode_packed
from lace.iltp.reader import FACT_ITEM_BYTES, StreamReader
from lace.iltp.resources import ResourceBook, ResourceKind, fault_of
from lace.iltp.writer import encode_blank, encode_facts, encode_preface, encode_records, encode_resource
from lace.interlace import effects as asked
from lace.interlace import inputs as given
from lace.interlace.claims.advertisement import Advertisement, canonical_listing
from lace.interlace.machine import InterlaceMachine
from lace.interlace.reasons import AbortReason
from lace.interlace.result import ExchangeStatus, InterlaceResult
from lace.interlace.setup.terms import MachineConfig, Terms
from lace.interlace.vocabulary import EXCHANGE_OPERAND
from lace.limits import MIB, EngineLimits, RecordLimits, StreamLimits
from lace.notation.fact import Fact
from lace.notation.identifiers import LacegramId
from lace.policy.operand import Module
from lace.thresholds import StreamThresholds
from lace.values import dataclass

_WRITE_BYTES = 256 * 1024  # small pieces are joined up to this: a phase is one write, not one for each line
_FACTS_CHUNK = 5000
_BLANK = encode_blank()
_REFUSED = {AbortReason.REFUSED_BY_PEER, AbortReason.REFUSED_BY_US}
_LIMITED = {AbortReason.TRANSFER_LIMIT_EXCEEDED, AbortReason.OVERSIZED_FACT_BLOCK}


@dataclass(frozen=True, slots=True)
class ReceivedRecords:
    """StoreRecords of the machine together with the bytes that came."""

    records: Sequence[tuple[str, bytes]]
    size: int  # bytes of all


@dataclass(frozen=True, slots=True)
class CheckResource:
    """A received resource to be judged by `check_resource`; answered by `resource_checked`.

    Judging a large rule text takes time that other links should not wait for, so it is asked for and not done here.
    """

    resource: Resource


@dataclass(frozen=True, slots=True)
class CheckedResource:
    """A received resource, what is wrong with it, and what it is as a module, or why it is none."""

    resource: Resource
    fault: InvalidStream | None
    module: Module | LaceError | None = None


def checked(resource: Resource, limits: EngineLimits) -> CheckedResource:
    """The answer to CheckResource; takes long for a long text."""
    fault = fault_of(resource, limits)
    if fault is not None or resource.kind != ResourceKind.LACEGRAM:
        return CheckedResource(resource, fault)
    try:
        return CheckedResource(resource, None, Module.receive(resource.text, announced=LacegramId(resource.id)))
    except LaceError as error:
        return CheckedResource(resource, None, error)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an exchange ended; `abort` is empty unless the peer or our side broke it off."""

    result: InterlaceResult
    abort: str = ""
    detail: str = ""

    @property
    def is_complete(self) -> bool:
        """Whether it ended as exchanges should: at a fixed point; not by an abort, a limit or an early close."""
        return not self.abort and self.result.is_complete

    @property
    def is_converged(self) -> bool:
        """Whether both sides have what both rules select, as far as ours was told: complete, and nothing was refused,
        held back or not to be had."""
        return not self.abort and self.result.is_converged

    @property
    def status(self) -> ExchangeStatus:
        """How it ended, in one word."""
        if self.abort in _REFUSED:
            return ExchangeStatus.REFUSED
        if self.abort in _LIMITED:
            return ExchangeStatus.LIMITED
        return ExchangeStatus.CLOSED_EARLY if self.abort else self.result.status

    def raise_for_status(self) -> Self:
        """NotConverged unless both sides have everything that both rules select; else this outcome."""
        if not self.is_converged:
            why = ": ".join(part for part in (self.abort, self.detail) if part)
            raise NotConverged(self.status, why or self.result.missing)
        return self


Request = asked.HostEffect | asked.SendListing | asked.SendRecords | ReceivedRecords | CheckResource | asked.Report


class Outbox:
    """What one side has to say and nobody has taken yet: bytes, and facts that become bytes when they are taken.

    What waits is counted, records by their bytes, blocks by their ends, facts by their number, so that a peer who does
    not read can be charged for it.
    """

    def __init__(self, limits: StreamLimits, thresholds: StreamThresholds) -> None:
        self._limits = limits
        self._packed_bytes = thresholds.packed_bytes
        self._waiting: deque[bytes | Iterator[bytes]] = deque()
        self.taken: int = 0  # bytes, in all
        self.bytes: int = 0  # of records and listings
        self.blocks: int = 0  # ended: a peer that reads lets few of them pile up
        self.facts: int = 0

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def put(self, data: bytes) -> None:
        """Something short that is not counted."""
        self._waiting.append(data)

    def put_facts(self, facts: Sequence[Fact], *, packs: bool) -> None:
        """A block of facts, or a part of one."""
        self.facts += len(facts)
        self._waiting.append(self._fact_pieces(facts, packs=packs))

    def put_lines(self, data: bytes, *, packs: bool) -> None:
        """Fact lines that are written already."""
        pieces = list(encode_packed(data, self._packed_bytes)) if packs else [data]
        self._waiting.extend(pieces)
        self.bytes += sum(map(len, pieces))

    def put_records(self, stored: Sequence[bytes]) -> None:
        """Records, short ones joined to pieces of a sensible size."""
        pieces = encode_records(stored)
        sizes = list(map(len, pieces))
        size = sum(sizes)
        self.bytes += size
        if max(sizes, default=0) > _WRITE_BYTES:  # a long one is not copied to be joined to others
            self._waiting.extend(pieces)
            return
        count = max(1, len(pieces) * _WRITE_BYTES // max(1, size))  # of records to a write, if they are alike
        self._waiting.extend([b"".join(pieces[at : at + count]) for at in range(0, len(pieces), count)])

    def end_block(self) -> None:
        """The blank line behind a block."""
        self._waiting.append(_BLANK)
        self.blocks += 1

    def take(self) -> bytes:
        """The next bytes; empty if there are none now."""
        pieces: list[bytes] = []
        size = 0
        while self._waiting and size < _WRITE_BYTES:
            head = self._waiting[0]
            piece = head if isinstance(head, bytes) else next(head, b"")
            if isinstance(head, bytes) or not piece:
                self._waiting.popleft()
            if head == _BLANK:
                self.blocks -= 1
            pieces.append(piece)
            size += len(piece)
        self.taken += size
        self.bytes = max(0, self.bytes - size)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def clear(self) -> None:
        """Nothing of it is said any more."""
        self._waiting.clear()
        self.bytes = self.blocks = self.facts = 0

    def _fact_pieces(self, facts: Sequence[Fact], *, packs: bool) -> Iterator[bytes]:
        for start in range(0, len(facts), _FACTS_CHUNK):
            chunk = facts[start : start + _FACTS_CHUNK]
            self.facts -= len(chunk)
            lines = encode_facts(chunk, self._limits)
            if packs:
                yield from encode_packed(lines, self._packed_bytes)
            else:
                yield lines


class Session:
    """A machine that speaks ILTP."""

    def __init__(self, config: MachineConfig) -> None:
        self.machine: InterlaceMachine = InterlaceMachine(config)
        terms = config.terms
        self.terms: Terms = terms
        # The machine counts blocks by the agreed limit; the reader's own is only a net below it.
        block_bytes = terms.limits.max_fact_block_size + MIB
        self._reader = StreamReader(
            terms.stream_limits,
            _framing(terms.record_limits),
            max_block_bytes=block_bytes,
            fact_bytes_at_once=terms.stream_thresholds.read_fact_bytes,
        )
        self._reader.record_gate = self._admit_record
        self.outbox: Outbox = Outbox(terms.stream_limits, terms.stream_thresholds)
        self._requests: list[Request] = []
        self._arrived: Sequence[tuple[str, bytes]] = ()  # what the machine is being told of
        self._resources = ResourceBook()
        self._checked: CheckedResource | None = None  # the last one: a module takes more than its text
        self._items: deque[Item | list[RecordItem]] = deque()  # of the block being read
        self._checking = False
        self._unasked: str | None = None
        self.outcome: Outcome | None = None
        self.bytes_in: int = 0
        self.blocks_in: int = 0
        self.is_behind: bool = False  # whether more is here that the machine would take
        self._has_ended = False

    # --- what goes in ------------------------------------------------------------------------------------------

    def start(self, now_ns: int) -> None:
        """Our preface and setup; they wait for nobody (060-PREF-10)."""
        self.outbox.put(encode_preface())
        self._carry_out(self.machine.start(now_ns))

    def receive_data(self, data: bytes, now_ns: int) -> None:
        """Bytes of the peer; those that were on their way when its end was told are of no use."""
        if self._has_ended:
            return
        self.bytes_in += len(data)
        self._reader.receive(data)
        self._read(now_ns)

    def receive_eof(self, now_ns: int) -> None:
        """The peer sends no more, however that came about."""
        self._has_ended = True
        self._reader.receive_eof()
        self._read(now_ns)

    def lose(self, now_ns: int) -> None:
        """The peer is gone and is not waited for, wherever the exchange stands."""
        if not self.machine.is_closed:
            self._carry_out(self.machine.receive(given.StreamEnded(clean=False), now_ns))

    def answer(self, answer: given.LocalInput, now_ns: int) -> None:
        """The answer to a request, or news of our own side."""
        self._carry_out(self.machine.receive(answer, now_ns))
        self._read(now_ns)

    def handle_timer(self, now_ns: int) -> None:
        """Say that `next_timer` has come."""
        if not self.machine.is_closed:
            self._carry_out(self.machine.receive(given.TimerFired(), now_ns))
            self._read(now_ns)

    def resource_checked(self, checked: CheckedResource, now_ns: int) -> None:
        """The answer to CheckResource."""
        self._checking = False
        try:
            if checked.fault is not None:
                raise checked.fault
            if not self._resources.knows(checked.resource):
                self._resources.keep(checked.resource)
            self._checked = checked
        except InvalidStream as error:
            self._fail(error, now_ns)
            return
        self._read(now_ns)

    def put_records(self, records: Sequence[tuple[str, bytes]]) -> None:
        """Write records of a SendRecords request."""
        self.outbox.put_records([stored for _, stored in records])

    def put_listing(self, advertisements: Sequence[Advertisement], source: str) -> None:
        """Write advertisement records of a SendListing request."""
        data = canonical_listing(advertisements, source, self.terms.max_line_bytes)
        self.outbox.put_lines(data, packs=self.machine.packs)

    def takes_more(self, max_unsent_bytes: int) -> bool:
        """Whether little of what was put is still unsent."""
        return self.outbox.bytes <= max_unsent_bytes

    def close(self) -> None:
        """Nothing more comes in or goes out: let go of what waits, and of the reader that asks this session."""
        self._reader.record_gate = None
        self.outbox.clear()
        self._arrived = ()
        self._items.clear()

    # --- what comes out ----------------------------------------------------------------------------------------

    def data_to_send(self) -> bytes:
        """The next bytes for the peer, in pieces of a sensible size; empty if there are none now."""
        return self.outbox.take()

    @property
    def bytes_out(self) -> int:
        """Bytes that were taken for the peer."""
        return self.outbox.taken

    @property
    def has_data(self) -> bool:
        """Whether there may be bytes for the peer."""
        return bool(self.outbox)

    def requests(self) -> list[Request]:
        """What is to be done now, in order."""
        waiting, self._requests = self._requests, []
        return waiting

    @property
    def next_timer(self) -> int | None:
        """When to call `handle_timer`, in the nanoseconds of the times given."""
        return None if self.machine.is_closed else self.machine.next_timer

    @property
    def buffered(self) -> int:
        """Bytes of the peer that wait for their phase."""
        return self._reader.buffered

    # --- between codec and machine -----------------------------------------------------------------------------

    def go_on(self, now_ns: int) -> None:
        """Read on where too much was there to be read at once; for as long as `is_behind`."""
        self._read(now_ns)

    def _read(self, now_ns: int) -> None:
        """Give the machine what it wants; what belongs to a later phase waits in the reader (060-STREAM-07)."""
        self.is_behind = False
        at_once = self.terms.stream_thresholds
        facts, most = 0, self.blocks_in + at_once.read_blocks  # bytes, blocks
        while self.machine.wants_peer_input and not self._checking:
            if not self._items:
                if facts >= at_once.read_fact_bytes or self.blocks_in >= most:
                    self.is_behind = True
                    return
                try:
                    self._items.extend(_batched(self._reader.read_block()))
                except InvalidStream as error:
                    self._fail(error, now_ns)
                    return
                facts += sum([item.size + FACT_ITEM_BYTES for item in self._items if isinstance(item, FactLines)])
            if not self._items:
                return
            self._give(self._items.popleft(), now_ns)

    def _give(self, item: Item | list[RecordItem], now_ns: int) -> None:
        match item:
            case Preface():
                return
            case FactLines(facts, size):
                if not self._give_module(facts[0], now_ns):
                    self._items.appendleft(item)
                    return
                told: given.PeerInput = given.FactsReceived(facts, size)
            case Resource():
                if not self._resources.knows(item):
                    self._checking = True
                    self._requests.append(CheckResource(item))
                return
            case BlankLine():
                self.blocks_in += 1
                told = given.BlockEnded()
            case EndOfStream():
                told = given.StreamEnded(clean=True)
            case list():
                self._arrived = item
                told = given.RecordsReceived([(claimed, len(data)) for claimed, data in item])
            case RecordItem():
                raise AssertionError("records come in lists")
            case _:
                assert_never(item)
        self._carry_out(self.machine.receive(told, now_ns))
        self._arrived = ()  # what the machine wanted of it is handed over
        self._reader.accepts_packed = self._reader.accepts_packed or self.machine.packs

    def _give_module(self, fact: Fact, now_ns: int) -> bool:
        """Resources wait in a bounded book, and the machine is told the one that a setup fact names; False if that has
        to be read first, which is asked for and not done here."""
        text = self._resources.text(fact.values[1]) if fact.predicate == EXCHANGE_OPERAND else None
        if text is None:
            return True
        named = Resource(fact.values[1], ResourceKind.LACEGRAM, text)
        if self._checked is None or self._checked.resource != named:
            self._checking = True
            self._requests.append(CheckResource(named))
            return False
        told = given.ResourceReceived(named.id, named.kind, text, self._checked.module)
        self._carry_out(self.machine.receive(told, now_ns))
        return True

    def _admit_record(self, claimed: str) -> None:
        """060-REC-05: a record that nobody asked for is refused by its name, before its bytes are waited for."""
        if not self.machine.expects_record(claimed):
            self._unasked = claimed
            raise InvalidStream("a record that was not requested", rule="record-unasked", found=claimed[:80])

    def _fail(self, error: InvalidStream, now_ns: int) -> None:
        told: given.PeerInput
        if error.rule == "stream-cut":
            told = given.StreamEnded(clean=False)
        elif self._unasked is not None:
            told = given.RecordsReceived([(self._unasked, 0)])
        else:
            told = given.StreamFailed(str(error))
        self._carry_out(self.machine.receive(told, now_ns))

    def _carry_out(self, effects: Iterable[asked.Effect]) -> None:
        for effect in effects:
            self._carry_out_one(effect)

    def _carry_out_one(self, effect: asked.Effect) -> None:
        match effect:
            case (
                asked.Report()
                | asked.SendListing()
                | asked.SendRecords()
                | asked.PreparePolicy()
                | asked.Evaluate()
                | asked.Summarise()
                | asked.TakeClaims()
                | asked.Reconcile()
                | asked.Measure()
                | asked.Sketch()
                | asked.Decode()
                | asked.TakeDifference()
                | asked.TakeChange()
                | asked.KeepClaims()
            ):
                self._requests.append(effect)
            case asked.SendFacts(facts):
                self.outbox.put_facts(facts, packs=self.machine.packs)
            case asked.SendResource(identifier, kind, text):
                self.outbox.put(encode_resource(identifier, kind, text, self.terms.stream_limits))
            case asked.EndBlock():
                self.outbox.end_block()
            case asked.SendChanges():
                raise LocalProtocolError("changes travel only between two sides in one process")
            case asked.StoreRecords(hashes):
                self._requests.append(received(self._arrived, hashes))
            case asked.Finish(result):
                self.outcome = Outcome(result)
            case asked.Abort(reason, detail, result):
                self.outbox.clear()  # 050-ERR-20: no further bytes
                self._arrived = ()
                self.outcome = Outcome(result, abort=reason.value, detail=detail)
            case _:
                assert_never(effect)


def received(records: Sequence[tuple[str, bytes]], hashes: Sequence[str]) -> ReceivedRecords:
    """What came under some names: mostly all of it. The first under a name counts; a second aborts."""
    if [claimed for claimed, _ in records] != hashes:
        found = dict(reversed(records))
        records = [(record, found[record]) for record in hashes]
    return ReceivedRecords(records, sum([len(data) for _, data in records]))


def _framing(limits: RecordLimits) -> RecordLimits:
    """What a record on the stream may measure: smaller limits of ours refuse a record, they do not break the link."""
    widest = RecordLimits()
    names = ("max_data_bytes", "max_header_line_bytes", "max_extra_headers")
    return replace(limits, **{name: max(getattr(limits, name), getattr(widest, name)) for name in names})


def _batched(items: Sequence[Item]) -> Iterator[Item | list[RecordItem]]:
    """The items, consecutive records as one list."""
    for kind, run in groupby(items, type):
        if kind is RecordItem:
            yield cast("list[RecordItem]", list(run))
        else:
            yield from run
