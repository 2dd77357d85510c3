"""Many peers coming and going over one server, connections cut at random: do all converge, does anything leak?

python tools/soak.py [--minutes 10] [--peers 20] [--seed N] [--out soak-out]

The server is a `lace serve` of its own process; the peers run here, each with its own lace, each behind a relay that
cuts connections at random bytes. Records are stored on every side all the time. At the end everything is left alone
until all laces hold the same records. Memory and file descriptors of the server are sampled, written to
`soak.json`, and plotted to `soak.png` if matplotlib is there. Exit code 1: not converged, or a leak.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

import psutil  # noqa: E402  (after the path is set)

import lace  # noqa: E402
from lace.iltp.address import UnixAddress  # noqa: E402
from lace.interlace.setup.terms import Terms  # noqa: E402
from lace.policy.exposure import expose_all  # noqa: E402
from lace.policy.select import select_all  # noqa: E402
from lace.runtime.clock import SystemClock  # noqa: E402
from lace.runtime.node.node import Node, NodeLimits  # noqa: E402
from lace.transports.dial import TransportOptions  # noqa: E402

GROWTH_MB = 64  # of the last fifth of the memory samples over the second, whatever came meanwhile
TERMS = Terms(module=select_all(), exposures=(expose_all(),), is_open=True)


@dataclass
class Samples:
    """What the server used over time."""

    seconds: list[float] = field(default_factory=list)
    memory_mb: list[float] = field(default_factory=list)
    descriptors: list[int] = field(default_factory=list)
    records: list[int] = field(default_factory=list)

    def leaks(self) -> list[str]:
        """What grew: descriptors at all, memory by more than a fixed allowance."""
        fifth = max(1, len(self.seconds) // 5)
        early, late = slice(fifth, 2 * fifth), slice(-fifth, None)
        found = []
        if max(self.descriptors[late]) > max(self.descriptors[early]) + 20:
            found.append(f"descriptors grew from {max(self.descriptors[early])} to {max(self.descriptors[late])}")
        # One that grew with anything that is measured here could never fail.
        if max(self.memory_mb[late]) > max(self.memory_mb[early]) + GROWTH_MB:
            found.append(f"memory grew from {max(self.memory_mb[early]):.0f} to {max(self.memory_mb[late]):.0f} MB")
        return found


class Relay:
    """Passes bytes on to the server and drops the connection after a random number of them."""

    def __init__(self, path: Path, target: Path, rng: random.Random) -> None:
        self._path, self._target, self._rng = path, target, rng
        self.is_cutting = True
        self.cuts = 0

    async def start(self) -> None:
        await asyncio.start_unix_server(self._accept, str(self._path))

    async def _accept(self, near: asyncio.StreamReader, near_out: asyncio.StreamWriter) -> None:
        try:
            far, far_out = await asyncio.open_unix_connection(str(self._target))
        except OSError:
            near_out.close()
            return
        budget = [int(self._rng.expovariate(1 / 40_000)) if self.is_cutting else 1 << 60]
        await asyncio.gather(self._pump(near, far_out, budget), self._pump(far, near_out, budget))

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, budget: list[int]) -> None:
        try:
            while data := await source.read(4096):
                budget[0] -= len(data)
                if budget[0] < 0:
                    self.cuts += 1
                    sink.transport.abort()
                    return
                sink.write(data)
                await sink.drain()
        except OSError:
            pass
        finally:
            sink.close()


async def live(number: int, folder: Path, relay: Path, rng: random.Random, until: float) -> None:
    """One peer: a node that comes, stores, stays a while, goes, and comes again."""
    path = folder / f"peer-{number}.lace"
    while time.monotonic() < until:
        with lace.open(path, create=not path.exists()) as opened:
            node = make_node(opened.store)
            node.keep_in_background(UnixAddress(str(relay)), TERMS)
            leave = min(until, time.monotonic() + rng.uniform(2, 20))
            while time.monotonic() < leave:
                opened.put(
                    rng.randbytes(rng.randint(0, 3000)), group="u", app=f"peer/{number}", name=str(time.time_ns())
                )
                await asyncio.sleep(rng.uniform(0.5, 4))
            await node.shutdown()
        await asyncio.sleep(rng.uniform(0.1, 3))


async def settle(folder: Path, relay: Path, peers: int, server: Path, patience_s: float) -> bool:
    """Everybody stays and nobody stores, until all hold the same."""
    laces = [lace.open(folder / f"peer-{number}.lace") for number in range(peers)]
    nodes = [make_node(opened.store) for opened in laces]
    for node in nodes:
        node.keep_in_background(UnixAddress(str(relay)), TERMS)
    deadline = time.monotonic() + patience_s
    converged = False
    while not converged and time.monotonic() < deadline:
        await asyncio.sleep(1)
        converged = len({held(opened) for opened in laces} | {held_at(server)}) == 1
    for node in nodes:
        await node.shutdown()
    for opened in laces:
        opened.close()
    return converged


def held(opened: lace.Lace) -> frozenset[str]:
    return frozenset(str(record) for _, record in opened.store.records_since())


def held_at(path: Path) -> frozenset[str]:
    with lace.open(path, read_only=True) as opened:
        return held(opened)


def make_node(store: object) -> Node:
    clock = SystemClock()
    limits = NodeLimits(threads=2, workers=0, store_poll_s=1.0, backoff_most_s=2.0, shutdown_grace_s=2.0)
    return Node(
        store,  # type: ignore[arg-type]  # the store of an opened lace
        TransportOptions(clock=clock.tai),
        clock,
        limits=limits,
    )


async def sample(process: psutil.Process, server: Path, samples: Samples, until: float) -> None:
    started = time.monotonic()
    while time.monotonic() < until:
        samples.seconds.append(round(time.monotonic() - started, 1))
        samples.memory_mb.append(process.memory_info().rss / (1 << 20))
        samples.descriptors.append(process.num_fds())
        samples.records.append(len(held_at(server)))
        await asyncio.sleep(2)


async def soak(chosen: argparse.Namespace, folder: Path) -> int:
    rng = random.Random(chosen.seed)
    server, socket_path, relay_path = folder / "server.lace", folder / "server.sock", folder / "relay.sock"
    lace.open(server, create=True).close()
    child = subprocess.Popen(
        [sys.executable, "-m", "lace.cli", "serve", str(server), f"unix:{socket_path}", "--expose", "all"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])},
        stderr=subprocess.DEVNULL,
    )
    while not socket_path.exists():
        await asyncio.sleep(0.05)
    relay = Relay(relay_path, socket_path, rng)
    await relay.start()
    samples = Samples()
    until = time.monotonic() + chosen.minutes * 60
    peers = [live(number, folder, relay_path, rng, until) for number in range(chosen.peers)]
    await asyncio.gather(sample(psutil.Process(child.pid), server, samples, until), *peers)
    relay.is_cutting = False
    converged = await settle(folder, relay_path, chosen.peers, server, 120)
    child.send_signal(signal.SIGTERM)
    code = child.wait(60)
    leaks = samples.leaks()
    print(f"{samples.records[-1]:,} records, {relay.cuts:,} cuts, converged: {converged}, server ended with {code}")
    for leak in leaks:
        print(f"leak: {leak}")
    write(chosen.out, samples, relay.cuts, converged, chosen.seed)
    return 0 if converged and not leaks and code == 0 else 1


def write(out: Path, samples: Samples, cuts: int, converged: bool, seed: int) -> None:
    out.mkdir(parents=True, exist_ok=True)
    rows = {"seed": seed, "cuts": cuts, "converged": converged, **samples.__dict__}
    (out / "soak.json").write_text(json.dumps(rows), encoding="utf-8")
    try:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
    except ImportError:
        return
    figure, axes = plt.subplots(3, 1, sharex=True, figsize=(9, 7))
    for axis, name in zip(axes, ("memory_mb", "descriptors", "records"), strict=True):
        axis.plot(samples.seconds, getattr(samples, name))
        axis.set_ylabel(name)
    axes[-1].set_xlabel("seconds")
    figure.savefig(out / "soak.png")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--peers", type=int, default=20)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--out", type=Path, default=ROOT / "soak-out")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lace-soak-") as name:
        return asyncio.run(soak(chosen, Path(name)))


if __name__ == "__main__":
    sys.exit(main())
