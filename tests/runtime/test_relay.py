"""Two servers and somebody who stands between them, over real sockets."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

import lace
from lace.iltp.address import Address, parse_address
from lace.interlace.events import Event, Received
from lace.interlace.setup.terms import Terms
from lace.policy.select import select_all, select_coordinate
from lace.porcelain.lace import Lace
from lace.porcelain.network import serve
from lace.runtime.clock import SystemClock
from lace.runtime.link.session import Outcome, Session
from lace.runtime.local.relay import OnEvent, RelayLimits, relay
from lace.runtime.node.bounds import Budget
from lace.store.columns.segments.encode import EncodedBatch
from lace.store.memory import MemoryStore
from lace.transports.base import READ_BYTES
from lace.transports.dial import TransportOptions


def put(opened: Lace, group: str, names: range, size: int = 20) -> None:
    with opened.batch() as batch:
        for name in names:
            batch.put(f"{group} {name} ".encode() * size, group=group, app="app", name=str(name))


def free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"tcp:127.0.0.1:{probe.getsockname()[1]}"


def hashes(opened: Lace) -> set[str]:
    return {str(record) for _, record in opened.store.records_since()}


@pytest.fixture
def laces(tmp_path: Path) -> Iterator[tuple[Lace, Lace]]:
    with lace.open(tmp_path / "a.lace", create=True) as first, lace.open(tmp_path / "b.lace", create=True) as second:
        yield first, second


def run(
    laces: tuple[Lace, Lace],
    *,
    terms: Terms | None = None,
    select: tuple[str | None, str | None] = (None, None),
    limits: RelayLimits | None = None,
    on_event: OnEvent | None = None,
) -> tuple[Outcome, Outcome]:
    """Serve both, and stand between them."""
    with ExitStack() as serving:
        first, second = (
            parse_address(serving.enter_context(serve(one, free_address(), select=chosen, expose="all"))[0])
            for one, chosen in zip(laces, select, strict=True)
        )
        clock = SystemClock()
        options = TransportOptions(clock=clock.tai)
        chosen_terms = terms or Terms(module=select_all())
        return asyncio.run(
            asyncio.wait_for(relay(first, second, chosen_terms, options, clock, limits=limits, on_event=on_event), 60)
        )


def test_each_gets_what_the_other_has(laces: tuple[Lace, Lace]) -> None:
    put(laces[0], "u", range(30))
    put(laces[1], "v", range(25))
    for one in laces:
        put(one, "both", range(40))
    assert all(not outcome.abort and outcome.result.fixed_point for outcome in run(laces))
    assert hashes(laces[0]) == hashes(laces[1])
    assert len(hashes(laces[0])) >= 95


def test_what_both_have_is_not_moved(laces: tuple[Lace, Lace]) -> None:
    put(laces[0], "u", range(50))
    with lace.open(laces[0].store.path) as copy:  # type: ignore[attr-defined]
        for _, data in copy.store.bodies_since():
            laces[1].put_stored(data)
    put(laces[1], "v", range(2))
    first, second = run(laces)
    assert not first.result.received_hashes
    assert len(first.result.unconfirmed_hashes) == len(second.result.received_hashes) == 2
    assert hashes(laces[0]) == hashes(laces[1])


@pytest.mark.parametrize("sizes", [(0, 0), (0, 3), (3, 0)])
def test_an_empty_side_is_filled_and_two_empty_ones_rest(laces: tuple[Lace, Lace], sizes: tuple[int, int]) -> None:
    for one, group, size in zip(laces, "uv", sizes, strict=True):
        put(one, group, range(size))
    run(laces)
    assert hashes(laces[0]) == hashes(laces[1])


@pytest.mark.long
def test_no_more_is_held_than_there_is_room_for(laces: tuple[Lace, Lace]) -> None:
    put(laces[0], "u", range(60), size=2_000)
    put(laces[1], "v", range(60), size=2_000)
    limits, most = RelayLimits(max_held_bytes=400_000), [0]
    waiting: dict[str, int] = {}

    def hear(address: Address, event: Event) -> None:
        if isinstance(event, Received):
            waiting[str(address)] = event.bytes_received
            most[0] = max(most[0], len(event.hashes))

    run(laces, limits=limits, on_event=hear)
    assert hashes(laces[0]) == hashes(laces[1])
    assert most[0] < 60  # in several pieces


class Watch:
    """The most that was ever stored between the two, and the most that waited to be judged."""

    def __init__(self, patch: pytest.MonkeyPatch, limits: RelayLimits) -> None:
        self.stored = self.waiting = 0
        put_encoded, change = MemoryStore.put_encoded, Budget.change

        def putting(store: MemoryStore, batch: EncodedBatch) -> int:
            new = put_encoded(store, batch)
            self.stored = max(self.stored, store.stat().stored_bytes)
            return new

        def changing(budget: Budget, by: int) -> None:
            change(budget, by)
            if budget.max_bytes == limits.max_waiting_bytes:  # and not one of the servers'
                self.waiting = max(self.waiting, budget.held)

        patch.setattr(MemoryStore, "put_encoded", putting)
        patch.setattr(Budget, "change", changing)


@pytest.mark.long
@pytest.mark.parametrize("large", [40_000, 120_000])
def test_short_records_do_not_let_long_ones_past_the_bound(
    laces: tuple[Lace, Lace], monkeypatch: pytest.MonkeyPatch, large: int
) -> None:
    """Hundreds of short records make the relay ask for many at a time, and then long ones come."""
    limits = RelayLimits(max_held_bytes=200_000)
    watch = Watch(monkeypatch, limits)
    for one, group in zip(laces, "uv", strict=True):
        put(one, group, range(120), size=1)
        for name in range(400_000 // large):  # of one side twice what may be held of both
            one.put(name.to_bytes() * large, group=group, app="long", name=str(name))
    for outcome in run(laces, limits=limits):
        assert outcome.result.fixed_point
        assert not outcome.result.rejected_hashes
    assert hashes(laces[0]) == hashes(laces[1])
    assert watch.stored <= limits.max_stored_bytes
    assert watch.waiting <= limits.max_waiting_bytes + 2 * (READ_BYTES + large)  # what each side is in the middle of


def test_a_record_that_will_never_fit_is_left_out_and_named(laces: tuple[Lace, Lace]) -> None:
    put(laces[0], "u", range(20))
    laces[0].put(b"x" * 300_000, group="u", app="app", name="long")
    put(laces[1], "v", range(20))
    first, second = run(laces, limits=RelayLimits(max_held_bytes=100_000))
    assert len(hashes(laces[1])) == 40
    assert len(hashes(laces[0])) == 41
    (reason,) = first.result.rejected_hashes.values()
    assert "no room" in reason
    assert "75,000" in reason
    assert not second.result.rejected_hashes
    assert first.result.fixed_point


@pytest.mark.parametrize("frame", [b"", b"x" * 50_000])
def test_a_server_that_sends_other_bytes_than_were_asked_for_fills_nothing(
    laces: tuple[Lace, Lace], monkeypatch: pytest.MonkeyPatch, frame: bytes
) -> None:
    """Its records are not what their names say: they are judged, dropped, and not asked for again."""
    put(laces[0], "u", range(40), size=100)
    put(laces[1], "v", range(10))
    limits = RelayLimits(max_held_bytes=100_000)
    watch = Watch(monkeypatch, limits)
    put_records = Session.put_records

    def lie(session: Session, records: Sequence[tuple[str, bytes]]) -> None:
        if session.machine.config.index == 1:  # the one who was dialled
            records = [(name, _longer(one, frame) if frame else one[:-1] + b"?") for name, one in records]
        put_records(session, records)

    monkeypatch.setattr(Session, "put_records", lie)
    outcomes = run(laces, limits=limits)
    assert watch.stored <= limits.max_stored_bytes
    assert watch.waiting <= limits.max_waiting_bytes + 2 * (READ_BYTES + len(frame))
    assert not any(outcome.result.received_hashes for outcome in outcomes)
    assert len(hashes(laces[0])) == 40
    assert len(hashes(laces[1])) == 10


def _longer(stored: bytes, more: bytes) -> bytes:
    """The same record under the same name with other data, framed as it should be."""
    head, _, data = stored.partition(b"\n\n")
    lines = [
        b"Data-Length: %d" % (len(data) + len(more)) if line.startswith(b"Data-Length") else line
        for line in head.split(b"\n")
    ]
    return b"\n".join(lines) + b"\n\n" + data + more


def test_rules_of_either_side_and_of_who_stands_between_hold(laces: tuple[Lace, Lace]) -> None:
    for one, name in zip(laces, "ab", strict=True):
        put(one, "u", range(5) if name == "a" else range(5, 8))
        put(one, "v", range(5) if name == "a" else range(5, 8))
        put(one, "w", range(5) if name == "a" else range(5, 8))
    terms = Terms(module=select_coordinate("//u//"))
    run(laces, terms=terms)
    for one, other in (laces, laces[::-1]):
        groups = {row.coordinate.split("//")[1] for row in one.list("//") if str(row.hash) in hashes(other)}
        assert groups == {"u"}


def test_a_side_that_refuses_records_does_not_hold_up_the_rest(laces: tuple[Lace, Lace]) -> None:
    put(laces[0], "u", range(20))
    put(laces[0], "v", range(20))
    put(laces[1], "u", range(20, 30))
    run(laces, select=(None, "//u//"))
    assert len(list(laces[1].list("//u//"))) == 30
    assert not list(laces[1].list("//v//"))


@pytest.mark.long
def test_a_cut_in_the_middle_loses_nothing_and_the_next_try_ends_it(laces: tuple[Lace, Lace]) -> None:
    put(laces[0], "u", range(300))
    put(laces[1], "v", range(300))
    cut: list[Outcome] = []

    async def broken() -> None:
        clock = SystemClock()
        options = TransportOptions(clock=clock.tai)
        with ExitStack() as serving:
            bound = [serving.enter_context(serve(one, free_address(), expose="all"))[0] for one in laces]
            port = int(bound[1].rpartition(":")[2])
            line = await asyncio.start_server(lambda r, w: _forward(r, w, port, 20_000), "127.0.0.1", 0)
            middle = parse_address(f"tcp:127.0.0.1:{line.sockets[0].getsockname()[1]}")
            limits = RelayLimits(max_held_bytes=50_000)
            terms = Terms(module=select_all())
            work = relay(parse_address(bound[0]), middle, terms, options, clock, limits=limits)
            cut.extend(await asyncio.wait_for(work, 60))
            line.close()

    asyncio.run(broken())
    assert cut[1].abort or not cut[1].result.fixed_point or cut[1].result.closed_by_peer
    run(laces)
    assert hashes(laces[0]) == hashes(laces[1])


async def _forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int, most: int) -> None:
    """Pass so many bytes on, then hang up on both."""
    far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
    moved = 0

    async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        nonlocal moved
        while moved < most:
            data = await source.read(4096)
            if not data:
                return
            moved += len(data)
            sink.write(data)
            await sink.drain()

    tasks = [asyncio.create_task(pump(reader, far_writer)), asyncio.create_task(pump(far_reader, writer))]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    for end in (writer, far_writer):
        end.transport.abort()
