"""Two peers elsewhere, and we between them: each gets what the other shows us and its own rules take (050).

Rule: towards each side we are an ordinary peer that brought rules and shows what it holds, and all that passes through:
records are asked for as far as there is room and the other side lacks them, judged like any others, offered to the
other side, and forgotten when that had its choice. Nothing is written to a disk.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from lace.errors import LaceError
from lace.iltp.address import Address
from lace.interlace import effects as asked
from lace.interlace import inputs as given
from lace.interlace.events import Event
from lace.interlace.host import Call
from lace.interlace.phases import Phase
from lace.interlace.terms import MachineConfig, Terms
from lace.limits import MIB
from lace.notation.identifiers import RecordHash, Verifier
from lace.policy.exposure import expose_all
from lace.runtime.clock import Clock
from lace.runtime.drive import Driver
from lace.runtime.host import LocalHost
from lace.runtime.links import link_of
from lace.runtime.session import Outcome, Session
from lace.store.base import RecordStore
from lace.store.memory import MemoryStore
from lace.transports.base import ByteStream
from lace.transports.dial import TransportOptions, dial

_ANY_LENGTH = 1 << 40  # of a request list that is cut down afterwards
_LOOK_S = 0.02  # how often it is looked whether both sides rest
_FIRST_RECORDS = 16  # asked for at once while it is not known how long they are
_MOST_RECORDS = 4096
_THREADS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayLimits:
    """What may be held between the two."""

    max_held_bytes: int = 64 * MIB  # of records that one side gave and the other has not had yet
    max_kept_names: int = 1_000_000  # of records that the other side did not want, which are not asked for again


OnEvent = Callable[[Address, Event], None]


class RelayHost(LocalHost):
    """Our side of one of the two links: it asks for what the other peer lacks, as far as there is room."""

    def __init__(self, store: RecordStore, terms: Terms, relay: _Between) -> None:
        super().__init__(store, terms)
        self._relay = relay
        self.other: RelayHost | None = None
        self.has_listed = False  # the peer has told what it has
        self.left = 0  # records that could be asked for and were not yet

    def evaluate(self, wanted: asked.Evaluate, call: Call) -> given.Evaluated:
        """As ever, but for what is asked for."""
        if not wanted.max_requests:
            return super().evaluate(wanted, call)
        found = super().evaluate(replace(wanted, max_requests=_ANY_LENGTH, max_request_bytes=_ANY_LENGTH), call)
        lacking = self._lacking(found.requests)
        chosen = lacking[: min(self._relay.room(), wanted.max_requests)]
        self.left = len(lacking) - len(chosen)
        return replace(found, requests=chosen)

    def _lacking(self, records: Sequence[str]) -> list[str]:
        """Those that the other side lacks; none before it has told."""
        if self.other is None or not self.other.has_listed:
            return []
        there = self.other.claims_among(records)
        unwanted = self._relay.unwanted
        return [record for record in records if record not in there and record not in unwanted]

    def claims_among(self, records: Sequence[str]) -> set[str]:
        """Those of some records that the peer claims to have."""
        return set(self._prepared().claims.among(records))


class _Between:
    """What both links share: the records on their way, and how many more there is room for."""

    def __init__(self, limits: RelayLimits) -> None:
        self._limits = limits
        self.store = MemoryStore()
        self.unwanted: dict[str, None] = {}
        self._passed = 0
        self._passed_bytes = 0

    def room(self) -> int:
        """How many records one side may be asked for: each has half of the room, by the length of those that passed."""
        stat = self.store.stat()
        free = self._limits.max_held_bytes // 2 - stat.stored_bytes
        records = self._passed + stat.records
        if free <= 0:
            return 0
        if not records:
            return _FIRST_RECORDS
        mean = (self._passed_bytes + stat.stored_bytes) / records
        return max(1, min(_MOST_RECORDS, int(free / (2 * mean + 1)), _FIRST_RECORDS * (records + 1)))

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
        while len(self.unwanted) > self._limits.max_kept_names:
            del self.unwanted[next(iter(self.unwanted))]
        self.store.delete(*(RecordHash(record) for record in held))
        return True


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
    between = _Between(limits or RelayLimits())
    terms = replace(terms, exposures=(expose_all(),), is_open=True)
    threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="lace-relay")
    streams: list[ByteStream] = []
    try:
        streams += [await dial(first, transport)]
        streams += [await dial(second, transport)]
        hosts = [RelayHost(between.store, terms, between) for _ in streams]
        hosts[0].other, hosts[1].other = hosts[1], hosts[0]
        sides = []
        for address, stream, host in zip((first, second), streams, hosts, strict=True):
            session = Session(_config(stream, terms, here, standard=standard))
            tell = _teller(address, on_event)
            sides.append(_RelaySide(Driver(stream, session, host, clock, threads, on_event=tell), host))
        await _pass_on(sides, between)
        return await sides[0].running, await sides[1].running
    except LaceError:
        for stream in streams:
            stream.abort()
        raise
    finally:
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


def _teller(address: Address, on_event: OnEvent | None) -> Callable[[Event], None] | None:
    return None if on_event is None else lambda event: on_event(address, event)


def _config(stream: ByteStream, terms: Terms, here: Verifier | None, *, standard: bool) -> MachineConfig:
    salt = None if standard else secrets.randbits(128)
    return MachineConfig(index=0, terms=terms, link=link_of(stream.proof, here), salt=salt, holds_nothing=True)
