"""Two peers elsewhere, and we between them: each gets what the other shows us and its own rules take (050).

Rule: towards each side we are an ordinary peer that brought rules and shows what it holds, and all that passes through:
records are asked for as far as there is room and the other side lacks them, judged like any others, offered to the
other side, and forgotten when that had its choice. Nothing is written to a disk.

What is held is bounded whatever a peer sends: bytes are charged as they come, past a quarter of the bound neither side
is read until they are judged, and past the rest a record is dropped, and asked for again when there is room for it.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import accumulate

from lace.errors import LaceError
from lace.iltp.address import Address
from lace.intake.received import JudgedBatch
from lace.interlace import effects as asked
from lace.interlace import inputs as given
from lace.interlace.events import Event
from lace.interlace.host import Call
from lace.interlace.ledger import keep_newest
from lace.interlace.phases import Phase
from lace.interlace.setup.terms import MachineConfig, Terms
from lace.limits import MIB
from lace.notation.identifiers import RecordHash, Verifier
from lace.policy.exposure import expose_all
from lace.runtime.clock import Clock
from lace.runtime.host.host import LocalHost
from lace.runtime.host.quotas import Allowance, ClaimOf, Committed, GateRules, QuotaGate, Quotas
from lace.runtime.host.refusedbefore import RefusedRecord
from lace.runtime.link.drive import Driver
from lace.runtime.link.session import Outcome, Session
from lace.runtime.node.bounds import Budget, DriveLimits
from lace.runtime.node.hookcalls import HookCalls
from lace.runtime.node.links import Heard, link_of
from lace.runtime.node.reports import log_failure
from lace.store.base import RecordStore, StoreStat
from lace.store.memory import MemoryStore
from lace.transports.base import ByteStream
from lace.transports.dial import TransportOptions, dial
from lace.values import dataclass

_ANY_LENGTH = 1 << 40  # of a request list that is cut down afterwards
_LOOK_S = 0.02  # how often it is looked whether both sides rest
_FIRST_RECORDS = 16  # asked for at once while it is not known how long they are
_MOST_RECORDS = 4096
_THREADS = 4
_SETTLE_S = 2.0  # for async hooks to end
_BATCH_BYTES = 5 * MIB  # of one commit


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayLimits:
    """What may be held between the two."""

    max_held_bytes: int = 64 * MIB  # of records that one side gave and the other has not received yet; each side also
    # may be in the middle of one record
    max_kept_names: int = 1_000_000  # of records that the other side did not want, which are not asked for again

    @property
    def max_waiting_bytes(self) -> int:
        """Received and not yet judged, of both sides together."""
        return self.max_held_bytes // 4

    @property
    def max_stored_bytes(self) -> int:
        """Judged, and waiting for the other side."""
        return self.max_held_bytes - self.max_waiting_bytes


OnEvent = Callable[[Address, Event], Heard]


class RelayHost(LocalHost):
    """Our side of one of the two links: it asks for what the other peer lacks, as far as there is room."""

    def __init__(self, store: RecordStore, terms: Terms, relay: _Between) -> None:
        super().__init__(store, terms, gate=_RoomGate(store, relay))
        self._relay = relay
        self.other: RelayHost | None = None
        self.has_listed = False  # the peer has told what it has
        self.left: int = 0  # records that could be asked for and were not yet

    def evaluate(self, wanted: asked.Evaluate, call: Call) -> given.Evaluated:
        """As ever, but for what is asked for."""
        if not wanted.max_requests:
            return super().evaluate(wanted, call)
        refused = wanted.refused - self._relay.dropped.keys()  # what there was no room for is asked for again
        asked_for = replace(wanted, max_requests=_ANY_LENGTH, max_request_bytes=_ANY_LENGTH, refused=refused)
        found = super().evaluate(asked_for, call)
        lacking = self._lacking(found.requests)
        chosen = self._relay.choose(lacking)[: wanted.max_requests]
        self.left = len(lacking) - len(chosen)
        return replace(found, requests=chosen)

    def _lacking(self, records: Sequence[str]) -> list[str]:
        """Those that the other side lacks; none before it has told."""
        if self.other is None or not self.other.has_listed or self.other.agreed is None:  # or it has ended
            return []
        there = self.other.claims_among(records)
        left_out = self._relay.is_left_out
        return [record for record in records if record not in there and not left_out(record)]

    def claims_among(self, records: Sequence[str]) -> set[str]:
        """Those of some records that the peer claims to have."""
        return set(self._prepared().claims.among(records))


class _Between:
    """What both links share: the records on their way, and how many more there is room for."""

    def __init__(self, limits: RelayLimits) -> None:
        self._limits = limits
        self.store: MemoryStore = MemoryStore()
        self.unwanted: dict[str, None] = {}
        self.dropped: dict[str, int] = {}  # records that came when there was no room, and how long they are
        self._passed = 0
        self._passed_bytes = 0

    @property
    def max_stored_bytes(self) -> int:
        return self._limits.max_stored_bytes

    def is_left_out(self, record: str) -> bool:
        """Whether a record is not asked for again: the other side did not want it, or there will be no room."""
        return record in self.unwanted or self.dropped.get(record, 0) > self.max_stored_bytes

    def drop(self, records: Mapping[str, int]) -> None:
        """Records came for which there was no room; how long they are is known from here on."""
        self.dropped.update(records)
        keep_newest(self.dropped, self._limits.max_kept_names)
        fitting = [size for size in records.values() if size <= self.max_stored_bytes]
        self._passed += len(fitting)
        self._passed_bytes += sum(fitting)

    def choose(self, lacking: Sequence[str]) -> Sequence[str]:
        """What of it one side is asked for: each has half of the room. Records that had none come first, by their
        length; of others so many as fit by the mean length of those that passed."""
        stat = self.store.stat()
        free = self.max_stored_bytes // 2 - stat.stored_bytes
        known = [record for record in lacking if record in self.dropped]
        if known and stat.records:
            return []
        if known:
            sums = accumulate(self.dropped[record] for record in known)
            return known[: max(1, sum(1 for size in sums if size <= free))]  # one may be longer than half
        return lacking[: self._room(free, stat)]

    def _room(self, free: int, stat: StoreStat) -> int:
        records = self._passed + stat.records
        if free <= 0:
            return 0
        if not records:
            return _FIRST_RECORDS
        mean = (self._passed_bytes + stat.stored_bytes) / records
        room = min(_MOST_RECORDS, int(free / (2 * mean + 1)), _FIRST_RECORDS * (records + 1))
        if stat.records and room < _FIRST_RECORDS:  # a loop for each of a few: 050 bounds loops, so the room is emptied
            return 0
        return max(1, room)

    def empty(self, hosts: Sequence[RelayHost]) -> bool:
        """Forget what both sides had their choice of; whether there was anything."""
        held = [record for _, record in self.store.records_since()]
        if not held:
            return False
        stat = self.store.stat()
        self._passed += stat.records
        self._passed_bytes += stat.stored_bytes
        there = set.intersection(*(host.claims_among(held) for host in hosts))
        self.unwanted.update(dict.fromkeys(record for record in map(str, held) if record not in there))
        keep_newest(self.unwanted, self._limits.max_kept_names)
        self.store.delete(*(RecordHash(record) for record in held))
        return True


class _RoomGate(QuotaGate):
    """Lets in what there is room for; the rest is dropped here, and asked for again another time."""

    def __init__(self, store: RecordStore, relay: _Between) -> None:
        super().__init__(store, GateRules(quotas=Quotas(total=Allowance(bytes=relay.max_stored_bytes))))
        self._relay = relay

    def commit(self, judged: JudgedBatch) -> Committed:
        """As far as there is room, counted where it is stored."""
        passed = super().commit(judged)
        stored = set(passed.stored)
        sizes = {name: len(body) for name, body in zip(judged.stored, judged.batch.bodies, strict=True)}
        dropped = {str(name): size for name, size in sizes.items() if name not in stored}
        if not dropped:
            return passed
        self._relay.drop(dropped)
        most = self._relay.max_stored_bytes
        reasons = {
            name: f"no room: the record has {size:,} bytes, and {most:,} may be on their way at a time"
            for name, size in dropped.items()
        }
        return replace(passed, refused={**passed.refused, **reasons})

    def affordable(self, records: Collection[str], claim_of: ClaimOf) -> Collection[str]:
        """How many are asked for at a time is chosen elsewhere."""
        return records

    def _remember(self, refused: Mapping[str, RefusedRecord], stored: Sequence[str]) -> None:
        """There may be room for them next time."""


class _RelaySide:
    """One of the two links."""

    def __init__(self, driver: Driver, host: RelayHost) -> None:
        self.driver = driver
        self.host = host
        self.running = asyncio.create_task(driver.run())

    def rests(self, now: object) -> bool:
        """Whether there is nothing to do for it at this moment of the store."""
        machine = self.driver.session.machine
        return machine.phase is Phase.IDLE and machine.wants_peer_input and self.host.evaluated_at == now


async def relay(
    first: Address,
    second: Address,
    terms: Terms,
    transport: TransportOptions,
    clock: Clock,
    *,
    limits: RelayLimits | None = None,
    here: Verifier | None = None,
    standard: bool = False,
    on_event: OnEvent | None = None,
) -> tuple[Outcome, Outcome]:
    """Dial both and stand between them until neither can get more; how each exchange ended.

    If one of them ends early the other is ended too. TransportError if one cannot be reached.
    """
    limits = limits or RelayLimits()
    between, budget = _Between(limits), Budget(limits.max_waiting_bytes)
    waiting = DriveLimits(max_batch_bytes=min(_BATCH_BYTES, limits.max_waiting_bytes // 2))
    terms = replace(terms, exposures=(expose_all(),), is_open=True)
    threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="lace-relay")
    streams: list[ByteStream] = []
    calls = HookCalls(log_failure)
    try:
        streams += [await dial(first, transport)]
        streams += [await dial(second, transport)]
        hosts = [RelayHost(between.store, terms, between) for _ in streams]
        hosts[0].other, hosts[1].other = hosts[1], hosts[0]
        sides = []
        for address, stream, host in zip((first, second), streams, hosts, strict=True):
            session = Session(_config(stream, terms, here, standard=standard))
            tell = _teller(calls, address, on_event)
            driver = Driver(stream, session, host, clock, threads, limits=waiting, budget=budget, on_event=tell)
            sides.append(_RelaySide(driver, host))
        await _pass_on(sides, between)
        return await sides[0].running, await sides[1].running
    except (LaceError, asyncio.CancelledError):
        for stream in streams:
            stream.abort()
        raise
    finally:
        await calls.settle(_SETTLE_S)
        threads.shutdown(wait=False, cancel_futures=True)


async def _pass_on(sides: Sequence[_RelaySide], between: _Between) -> None:
    """Until nothing is left, or one of the two is gone."""
    running = [side.running for side in sides]
    seen, asked_in_vain = between.store.cursor(), False
    while not any(task.done() for task in running):
        await asyncio.wait(running, timeout=_LOOK_S, return_when=asyncio.FIRST_COMPLETED)
        now = between.store.cursor()
        if now != seen:
            seen, asked_in_vain = now, False
            _tell(sides, given.LocalChanged())
        elif all(side.rests(now) for side in sides) and not between.empty([side.host for side in sides]):
            is_first = not all(side.host.has_listed for side in sides)
            if not is_first and (asked_in_vain or not any(side.host.left for side in sides)):
                break
            asked_in_vain = not is_first
            for side in sides:
                side.host.has_listed = True  # at a fixed point each knows what the other has
            _tell(sides, given.LocalChanged())
    _tell(sides, given.CloseRequested())
    await asyncio.wait(running)


def _tell(sides: Sequence[_RelaySide], news: given.LocalChanged | given.CloseRequested) -> None:
    for side in sides:
        side.driver.tell(news)


def _teller(calls: HookCalls, address: Address, on_event: OnEvent | None) -> Callable[[Event], None] | None:
    return None if on_event is None else lambda event: calls.call("on_event", on_event, address, event)


def _config(stream: ByteStream, terms: Terms, here: Verifier | None, *, standard: bool) -> MachineConfig:
    salt = None if standard else secrets.randbits(128)
    return MachineConfig(index=0, terms=terms, link=link_of(stream.proof, here), salt=salt, holds_nothing=True)
