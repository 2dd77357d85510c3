"""A node on a real socket, honest streams to spoil, and a raw peer that sends what it likes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from interlace.pair import ALL, config_of
from lace.iltp.address import Address
from lace.interlace.setup.terms import Terms
from lace.limits import SECOND_NS, ExchangeLimits
from lace.policy.exposure import expose_all
from lace.policy.operand import Module
from lace.records.validate import validate
from lace.runtime.clock import SystemClock
from lace.runtime.link.session import Outcome
from lace.runtime.node.node import Hooks, LinkInfo, Node, NodeLimits
from lace.store.base import RecordStore
from lace.store.memory import MemoryStore
from lace.transports.dial import TransportOptions, dial
from runtime.memory_link import End, MemoryLink
from transports.endpoints import any_port

PATIENCE_S = 20.0
CLOCK = SystemClock()


def filled(records: Sequence[bytes]) -> MemoryStore:
    """A store with these records."""
    store = MemoryStore()
    store.put([validate(record) for record in records])
    return store


def hashes(store: RecordStore) -> set[str]:
    """What a store holds."""
    return {str(record) for _, record in store.records_since()}


def honest_stream(dialer: Sequence[bytes], acceptor: Sequence[bytes], module: Module = ALL, **options: Any) -> bytes:
    """What an honest dialer would write to an acceptor with these records."""
    ends = [
        End(config_of(index, module, **options), filled(records)) for index, records in enumerate((dialer, acceptor))
    ]
    MemoryLink(ends).run()
    assert ends[0].outcome.is_complete, ends[0].outcome
    return bytes(ends[0].sent)


@dataclass
class Serving:
    """A node that accepts on one address, and how its exchanges ended."""

    node: Node
    address: Address
    store: RecordStore
    terms: Terms
    outcomes: asyncio.Queue[Outcome] = field(default_factory=asyncio.Queue)

    async def next_outcome(self) -> Outcome:
        return await asyncio.wait_for(self.outcomes.get(), PATIENCE_S)


def terms_of(module: Module = ALL, *, is_open: bool = True, timeout_s: float = 10.0, **options: Any) -> Terms:
    """Terms with a short patience."""
    limits = options.pop("limits", ExchangeLimits())
    limits = replace(limits, phase_timeout_ns=int(timeout_s * SECOND_NS))
    exposures = options.pop("exposures", (expose_all(),))
    return Terms(module=module, exposures=exposures, is_open=is_open, limits=limits, **options)


def make_node(
    store: RecordStore,
    hooks: Hooks | None = None,
    transport: TransportOptions | None = None,
    limits: NodeLimits | None = None,
    **options: Any,
) -> Node:
    """A node over a store that shows everything to everybody."""
    return Node(
        store,
        transport or TransportOptions(clock=CLOCK.tai),
        CLOCK,
        hooks=hooks,
        limits=limits or NodeLimits(store_poll_s=0.02, shutdown_grace_s=1.0, backoff_first_s=0.02, backoff_most_s=0.2),
        **options,
    )


@asynccontextmanager
async def serving(
    records: Sequence[bytes] | RecordStore,
    tmp_path: Path,
    scheme: str = "unix",
    terms: Terms | None = None,
    **options: Any,
) -> AsyncIterator[Serving]:
    """A node that accepts until the block ends."""
    store = filled(records) if isinstance(records, Sequence) else records
    outcomes: asyncio.Queue[Outcome] = asyncio.Queue()

    def note(_: LinkInfo, outcome: Outcome) -> None:
        outcomes.put_nowait(outcome)

    terms = terms or terms_of()
    node = make_node(store, Hooks(on_end=note), **options)
    address = await node.listen(any_port(scheme, tmp_path), terms)
    try:
        yield Serving(node, address, store, terms, outcomes)
    finally:
        await node.shutdown()


async def exchange_once(
    address: Address, records: Sequence[bytes] | RecordStore, module: Module = ALL, **options: Any
) -> tuple[Outcome, RecordStore]:
    """A bounded exchange of an honest dialer."""
    store = filled(records) if isinstance(records, Sequence) else records
    node = make_node(store, **options)
    try:
        outcome = await asyncio.wait_for(node.exchange(address, terms_of(module, is_open=False)), PATIENCE_S)
    finally:
        await node.shutdown()
    return outcome, store


async def send_raw(address: Address, data: bytes, *, close: bool = True, drip_s: float = 0.0) -> bytes:
    """Write bytes to a node and read what it says until it closes."""
    stream = await dial(address, TransportOptions(clock=CLOCK.tai))
    received = bytearray()

    async def read() -> None:
        while piece := await stream.receive():
            received.extend(piece)

    reading = asyncio.create_task(read())
    pieces = [data[at : at + 1] for at in range(len(data))] if drip_s else [data]
    try:
        for piece in pieces:
            if reading.done():
                break
            await stream.send(piece)
            await asyncio.sleep(drip_s)
        if close:
            await asyncio.sleep(0)
            closing = asyncio.create_task(stream.close())
            await asyncio.wait([reading, closing], timeout=PATIENCE_S)
    finally:
        await asyncio.wait([reading], timeout=PATIENCE_S)
        reading.cancel()
        stream.abort()
    return bytes(received)
