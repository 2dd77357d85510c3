"""What a process does until it is killed: put and delete, import, exchange, serve.

Rule: before a change a line says what is about to happen, after it a line says that it was acknowledged; each is one
write to a pipe, which outlives the process. Records are named by their number in SUPPLY.

    ?+3,4,5    these are about to be stored, all or none     +3,4,5   they are stored
    ?-3,4      these are about to be removed, all or none    -3,4     they are gone

Whoever does upkeep does it in pairs: a second process does something to the same files at the same time.
"""

from __future__ import annotations

import asyncio
import os
import random
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import lace
from interlace.pair import EXPOSE_ALL
from interop.harness import make_node
from lace import backup, compact, repair, restore
from lace.errors import NotFound, StoreError
from lace.iltp.address import UnixAddress
from lace.intake.bundles import ImportReport, import_bundles
from lace.interlace.events import Event, Received
from lace.interlace.setup.terms import Terms
from lace.limits import IngestLimits
from lace.policy.select import select_all
from lace.runtime.local.local import exchange
from lace.runtime.local.party import Party, local_terms
from lace.runtime.node.bounds import DriveLimits
from lace.runtime.node.node import Hooks, LinkInfo, NodeLimits
from lace.store import open_store
from lace.store.base import RecordStore
from store.samples import blob, plex, seal

SUPPLY = [
    seal(f"s/{number}") if number % 50 == 0 else blob(b"%d" % number * 40) if number % 7 == 0 else
    plex(f"n/{number}", headers=(("K", f"v{number % 9}"),), data=b"%d " % number * (number % 60))
    for number in range(300)
]  # fmt: skip
NUMBERS = {record.hash: number for number, record in enumerate(SUPPLY)}
CHUNK = 30

# What exchanges load when they need it: here once, and not in every worker.
for name in (
    "lace.runtime.rules.evaluator",
    "lace.runtime.rules.guests",
    "lace.transports.unix",
    "lace.differences.sketch",
):
    import_module(name)

Say = Callable[[str, Iterable[int]], None]
Play = Callable[[Path, random.Random, Say], None]


def speaker(pipe: int) -> Say:
    """Says lines into a pipe."""

    def say(word: str, numbers: Iterable[int]) -> None:
        text = ",".join(map(str, numbers))
        if text:
            os.write(pipe, f"{word}{text}\n".encode())

    return say


def put(folder: Path, draw: random.Random, say: Say) -> None:
    """Batches of any size, and deletions of several at once."""
    with open_store(folder / "a.lace", create=True) as store:
        while True:
            numbers = draw.sample(range(len(SUPPLY)), draw.choice((1, 1, 3, 20)))
            new = [number for number in numbers if not store.have(SUPPLY[number].hash)]
            say("?+", new)
            store.put([SUPPLY[number] for number in numbers])
            say("+", new)
            if draw.random() < 0.4:
                _remove(store, draw, say)


def _remove(store: RecordStore, draw: random.Random, say: Say) -> None:
    held = [NUMBERS[record] for _, record in store.records_since()]
    going = draw.sample(held, min(len(held), draw.choice((1, 4, 40))))
    say("?-", going)
    store.delete(*(SUPPLY[number].hash for number in going))
    say("-", going)


def write_bundle(folder: Path) -> Path:
    """All of the supply, in order, written once."""
    path = folder / "all.bundle"
    if not path.exists():
        path.write_bytes(b"".join(record.stored for record in SUPPLY))
    return path


def import_all(folder: Path, draw: random.Random, say: Say) -> None:
    """A bundle in small chunks; each is acknowledged when the progress hears of it."""
    bundle = write_bundle(folder)
    with open_store(folder / "a.lace", create=True) as store:
        while True:
            done = 0

            def hear(report: ImportReport) -> None:
                nonlocal done
                reached = report.stored + report.present
                say("+", range(done, reached))
                done = reached

            limits = IngestLimits(max_chunk_records=CHUNK)
            import_bundles(store, [bundle], workers=0, progress=hear, limits=limits)
            _remove(store, draw, say)


def exchange_two(folder: Path, draw: random.Random, say: Say) -> None:
    """Another lace with the supply, until this one has it too; then some goes and it begins anew."""
    with open_store(folder / "a.lace", create=True) as store, open_store(folder / "other.lace", create=True) as other:
        while True:
            other.put(draw.sample(SUPPLY, 30))

            def hear(side: int, event: Event) -> None:
                if side == 0 and isinstance(event, Received):
                    say("+", [NUMBERS[record] for record in event.hashes])

            terms = local_terms(select_all(), EXPOSE_ALL)
            exchange(Party(store=store, terms=terms), Party(store=other, terms=terms), on_event=hear)
            _remove(store, draw, say)


def serve(folder: Path, draw: random.Random, say: Say) -> None:
    """A node on a socket; the peer that pushes lives in the same process and is as dead as the server then."""
    asyncio.run(_serve(folder, draw, say))


async def _serve(folder: Path, draw: random.Random, say: Say) -> None:
    def hear(_: LinkInfo, event: Event) -> None:
        if isinstance(event, Received):
            say("+", [NUMBERS[record] for record in event.hashes])

    limits = NodeLimits(threads=2, workers=0, store_poll_s=0.01)
    drive = DriveLimits(max_batch_bytes=4000, linger_s=0.001)
    address = UnixAddress(str(folder / "node.sock"))
    Path(address.path).unlink(missing_ok=True)
    terms = Terms(module=select_all(), exposures=EXPOSE_ALL, is_open=True)
    with lace.open(folder / "a.lace", create=True) as served:
        node = make_node(served.store, Hooks(on_event=hear), limits=limits, drive_limits=drive)
        await node.listen(address, terms)
        while True:
            with lace.open(":memory:") as pushed:
                pushed.store.put(draw.sample(SUPPLY, 30))
                peer = make_node(pushed.store, limits=limits)
                await peer.exchange(address, Terms(module=select_all(), exposures=EXPOSE_ALL))
                await peer.shutdown()
            _remove(served.store, draw, say)


Work = Callable[[Path], object]
WORKS: dict[str, Work] = {
    "compact": lambda folder: compact(folder / "a.lace"),
    "backup": lambda folder: backup(folder / "a.lace", folder / "b.lace", replace=True),
    "restore": lambda folder: restore(folder / "b.lace", folder / f"c{os.urandom(4).hex()}.lace"),
    "restore to one name": lambda folder: restore(folder / "b.lace", folder / "c.lace"),
    "repair": lambda folder: repair(folder / "a.lace"),
}


def upkeep(folder: Path, draw: random.Random, say: Say) -> None:
    """Two of compact, backup, restore and repair at once, beside puts and deletions."""
    path = folder / "a.lace"
    _put_some(path, draw, say)
    while True:
        first, second = draw.choice(list(WORKS)), draw.choice(list(WORKS))
        child = os.fork()  # while this process has nothing open
        if child == 0:
            try:
                _work(second, folder)
                os._exit(0)
            except BaseException:  # noqa: BLE001 - told, then the process ends
                traceback.print_exc()
            finally:
                os._exit(70)
        if draw.random() < 0.5:
            _work(first, folder)
        _put_some(path, draw, say)
        _work(first, folder)
        if os.waitpid(child, 0)[1]:
            raise RuntimeError(f"{second} failed")


def _work(name: str, folder: Path) -> None:
    with suppress(StoreError, NotFound):  # another one is at it, has it open, or has made nothing yet
        WORKS[name](folder)


def _put_some(path: Path, draw: random.Random, say: Say) -> None:
    """Some puts and deletions; a lace that is compacted or repaired meanwhile is opened again another time."""
    with suppress(StoreError), open_store(path, create=True) as store:
        for _ in range(draw.randrange(4)):
            numbers = draw.sample(range(len(SUPPLY)), draw.choice((1, 20)))
            new = [number for number in numbers if not store.have(SUPPLY[number].hash)]
            say("?+", new)
            store.put([SUPPLY[number] for number in numbers])
            say("+", new)
            if draw.random() < 0.4:
                _remove(store, draw, say)


ANNOUNCING = {"put", "upkeep"}  # the plays that say of everything that it is about to be stored
PLAYS: dict[str, Play] = {
    "put": put, "import": import_all, "exchange": exchange_two, "serve": serve, "upkeep": upkeep
}  # fmt: skip
