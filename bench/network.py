"""Laces converging over loopback, beside rsync and git on the same data.

python bench/network.py [--quick] [--count=100000]

Both sides of every exchange are processes of their own, started by the `lace` command. rsync and git are measured if
they are installed; their bytes are counted by a relay in front of their daemons.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
from report import Report

import lace
from lace.iltp.address import UnixAddress
from lace.interlace.setup.terms import Terms
from lace.notation.digest import digest
from lace.notation.tai import TAI
from lace.policy.exposure import expose_all
from lace.policy.select import select_all
from lace.records.keys import SigningKey
from lace.records.model import Blob, Plex
from lace.records.validate import validate
from lace.records.write import encode_record
from lace.runtime.clock import SystemClock
from lace.runtime.node.node import Node, NodeLimits
from lace.runtime.trace.trace import TraceReader, read_capture
from lace.store import MemoryStore
from lace.store.bundle import BundleWriter
from lace.transports.dial import TransportOptions

KEY = SigningKey(digest(b"bench"))
MIB = 1 << 20
SOURCE = Path(lace.__file__).parent
# As installed: modules are compiled once, and not anew by every process.
ENVIRONMENT = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
ENVIRONMENT["PYTHONPATH"] = str(SOURCE.parent)


def sealed(number: int) -> bytes:
    """A sealed record of 1 KB of data."""
    tai = TAI.from_ns((1_640_995_200 + number) * 10**9)
    body = Blob(random.Random(number).randbytes(1024))  # nothing for anybody to compress
    plex = Plex(group="u/people", app="ding", name=f"links/{number:07}", tai=tai, blob=body)
    return encode_record(KEY.seal(plex, aux=b"\x01" * 32))


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "lace.cli", *arguments]


def run_lace(*arguments: str) -> str:
    done = subprocess.run(command(*arguments), env=ENVIRONMENT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"lace {' '.join(arguments)}: {done.stderr}")
    return done.stdout


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Memory:
    """The highest memory of a process and its children, sampled; pages that they share count once (PSS)."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self.peak = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._stop.wait(0.1):
            try:
                family = [self._process, *self._process.children(recursive=True)]
                self.peak = max(self.peak, sum(member.memory_full_info().pss for member in family))
            except psutil.Error:
                continue

    def stop(self) -> int:
        self._stop.set()
        self._thread.join()
        return self.peak


@contextmanager
def served(store: Path, address: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A `lace serve` that is ready."""
    notices = folder / f"notify-{free_port()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready:
        ready.bind(str(notices))
        ready.settimeout(120)
        child = subprocess.Popen(
            command("serve", str(store), address, "--expose", "all"),
            stderr=subprocess.DEVNULL,
            env={**ENVIRONMENT, "NOTIFY_SOCKET": str(notices)},
        )
        ready.recv(100)
        try:
            yield child
        finally:
            child.send_signal(signal.SIGTERM)
            child.wait(60)


def interlace(near: Path, address: str, *more: str) -> list[str]:
    return command("interlace", str(near), address, "--expose", "all", "--json", *more)


def exchange(near: Path, address: str, *more: str) -> tuple[dict[str, object], float]:
    """`lace interlace`: what it said, and how long the process took."""
    started = time.perf_counter()
    done = subprocess.run(interlace(near, address, *more), stdout=subprocess.PIPE, env=ENVIRONMENT, check=False)
    seconds = time.perf_counter() - started
    if done.returncode:
        raise RuntimeError(f"interlace ended with {done.returncode}: {done.stdout.decode()}")
    return json.loads(done.stdout), seconds


def import_all(folder: Path, count: int) -> float:
    """`lace import` of the bundle into a new lace; records a second."""
    full = folder / "full.lace"
    full.unlink(missing_ok=True)
    run_lace("init", str(full))
    started = time.perf_counter()
    run_lace("import", str(full), str(folder / "all.bundle"))
    return count / (time.perf_counter() - started)


SCHEMES = ("tcp", "ws")
TURNS = 4
RSYNC_RECORDS = 10_000  # each is a file and a flush of its own


@dataclass(frozen=True, slots=True)
class Transfers:
    """Records a second of imports and transports, and the shares of those in the imports right before and after."""

    imports: list[float]
    rates: dict[str, list[float]]
    shares: dict[str, list[float]]
    moved: dict[str, int]  # bytes on the wire


def transfers(report: Report, folder: Path, count: int) -> Transfers:
    """The import and the same records over loopback, in turns. The machine is shared and its speed drifts: so every
    transfer stands between two imports, and is compared with these. Memory is looked at in runs of its own, for
    looking takes time."""
    found = Transfers(
        [import_all(folder, count)], {scheme: [] for scheme in SCHEMES}, {scheme: [] for scheme in SCHEMES}, {}
    )
    for _ in range(1 if report.quick else TURNS):
        for scheme in SCHEMES:
            rate, found.moved[scheme] = transfer(folder, count, scheme)
            found.imports.append(import_all(folder, count))
            found.rates[scheme].append(rate)
            found.shares[scheme].append(rate / statistics.mean(found.imports[-2:]))
    report.row("lace import of the same records", max(found.imports), 1.0, "records a second, the whole process, best")
    for scheme in SCHEMES:
        shares = found.shares[scheme]
        told = f"figure: best; share: median of {len(shares)}, {min(shares):.3f} to {max(shares):.3f}"
        share = statistics.median(shares)
        report.row(f"{scheme}: {count:,} sealed 1 KB records", max(found.rates[scheme]), share, told)
        near, far = transfer_memory(folder, count, scheme)
        report.at_most(f"memory of the receiving side over {scheme}", wanted=400, got=near / MIB, unit=" MB")
        report.at_most(f"memory of the sending side over {scheme}", wanted=400, got=far / MIB, unit=" MB")
    return found


@contextmanager
def whole_transfer(folder: Path, count: int, scheme: str) -> Iterator[tuple[subprocess.Popen[bytes], Path, str]]:
    """A full lace that is served and an empty one: the server, the empty lace and the address; checked at the end."""
    near = folder / f"near-{scheme}.lace"
    run_lace("init", str(near))
    address = f"{scheme}:127.0.0.1:{free_port()}"
    with served(folder / "full.lace", address, folder) as server:
        yield server, near, address
    with lace.open(near, read_only=True) as opened:
        if opened.stat().records != count:
            raise RuntimeError(f"{opened.stat().records} of {count} records arrived")
    near.unlink()


def transfer(folder: Path, count: int, scheme: str) -> tuple[float, int]:
    """Everything from a full lace to an empty one: records a second, and bytes on the wire."""
    with whole_transfer(folder, count, scheme) as (_, near, address):
        said, seconds = exchange(near, address)
    return count / seconds, moved_by(said)


def moved_by(said: dict[str, object]) -> int:
    return int(str(said["bytes_received"])) + int(str(said["bytes_sent"]))


def transfer_memory(folder: Path, count: int, scheme: str) -> tuple[int, int]:
    """The same: highest memory of the receiver and of the sender."""
    with whole_transfer(folder, count, scheme) as (server, near, address):
        child = subprocess.Popen(interlace(near, address), stdout=subprocess.DEVNULL, env=ENVIRONMENT)
        watched = Memory(child.pid), Memory(server.pid)
        if child.wait():
            raise RuntimeError(f"interlace ended with {child.returncode}")
        return watched[0].stop(), watched[1].stop()


def rsync_rate(folder: Path, records: Sequence[bytes]) -> float | None:
    """The same records as files, by rsync, durable."""
    if shutil.which("rsync") is None:
        return None
    source, sink = folder / "files", folder / "files-copied"
    source.mkdir()
    for number, record in enumerate(records):
        (source / f"{number:07}").write_bytes(record)
    started = time.perf_counter()
    subprocess.run(["rsync", "--archive", "--fsync", f"{source}/", str(sink)], check=True)
    rate = len(records) / (time.perf_counter() - started)
    shutil.rmtree(sink)
    shutil.rmtree(source)
    return rate


# --- bytes on the wire ---


@contextmanager
def counted(target: int) -> Iterator[tuple[int, list[int]]]:
    """A relay to a local port that counts the bytes of both directions."""
    listener = socket.create_server(("127.0.0.1", 0))
    moved = [0]

    def pump(source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(1 << 16):
                moved[0] += len(data)
                sink.sendall(data)
        except OSError:
            pass
        finally:
            with suppress(OSError):
                sink.shutdown(socket.SHUT_WR)

    def accept() -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", target))
            for pair in ((near, far), (far, near)):
                threading.Thread(target=pump, args=pair, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listener.getsockname()[1], moved
    finally:
        listener.close()


def wire(report: Report, folder: Path, records: Sequence[bytes], different: int) -> None:
    """Two laces that differ in `different` records of `len(records)`; bytes moved per byte of payload."""
    count = len(records)
    half = different // 2
    payload = sum(map(len, records[:different]))
    name = f"N={count:,}, d={different:,}"
    for path, chosen in (
        (folder / "w-near", records[half:]),
        (folder / "w-far", [*records[:half], *records[different:]]),
    ):
        bundle = path.with_suffix(".bundle")
        with BundleWriter(bundle) as writer:
            for record in chosen:
                writer.write(record)
        run_lace("init", str(path.with_suffix(".lace")))
        run_lace("import", str(path.with_suffix(".lace")), str(bundle))
    address = f"tcp:127.0.0.1:{free_port()}"
    with served(folder / "w-far.lace", address, folder):
        said, _ = exchange(folder / "w-near.lace", address)
    moved = moved_by(said)
    report.row(f"lace, both ways, {name}: bytes per payload byte", moved / payload, "", f"{moved:,} B")
    for file in ("w-near.lace", "w-far.lace"):
        (folder / file).unlink()
    for tool, bytes_moved in (
        ("rsync", rsync_wire(folder, records, different)),
        ("git", git_wire(folder, records, different)),
    ):
        if bytes_moved is None:
            report.note(f"{tool} is not installed: left out")
        else:
            report.row(
                f"{tool}, one way, {name}: bytes per payload byte", bytes_moved / payload, "", f"{bytes_moved:,} B"
            )


def rsync_wire(folder: Path, records: Sequence[bytes], different: int) -> int | None:
    if shutil.which("rsync") is None:
        return None
    source, sink = folder / "r-source", folder / "r-sink"
    source.mkdir()
    sink.mkdir()
    for number, record in enumerate(records):
        (source / f"{number:07}").write_bytes(record)
        if number >= different:
            shutil.copy2(source / f"{number:07}", sink / f"{number:07}")
    port = free_port()
    config = folder / "rsyncd.conf"
    config.write_text(f"[data]\npath = {source}\nuse chroot = no\nuid = {os.getuid()}\ngid = {os.getgid()}\n")
    daemon = subprocess.Popen(["rsync", "--daemon", "--no-detach", f"--port={port}", f"--config={config}"])
    try:
        wait_for_port(port)
        with counted(port) as (relay, moved):
            subprocess.run(
                ["rsync", "--archive", f"rsync://127.0.0.1:{relay}/data/", str(sink)], check=True, capture_output=True
            )
            return moved[0]
    finally:
        daemon.terminate()
        daemon.wait()
        shutil.rmtree(source)
        shutil.rmtree(sink)


def git_wire(folder: Path, records: Sequence[bytes], different: int) -> int | None:
    if shutil.which("git") is None:
        return None
    source, clone = folder / "g-source", folder / "g-clone"
    source.mkdir()

    def git(where: Path, *arguments: str) -> None:
        subprocess.run(["git", "-C", str(where), *arguments], check=True, capture_output=True)

    git(source, "init", "-q", "-b", "main")
    for key, value in (("user.name", "b"), ("user.email", "b@example.com"), ("maintenance.auto", "false")):
        git(source, "config", key, value)
    for number in range(different, len(records)):
        (source / f"{number:07}").write_bytes(records[number])
    git(source, "add", "-A")
    git(source, "commit", "-qm", "shared")
    subprocess.run(["git", "clone", "-q", str(source), str(clone)], check=True, capture_output=True)
    git(clone, "config", "maintenance.auto", "false")  # nothing may run on in the background
    for number in range(different):
        (source / f"{number:07}").write_bytes(records[number])
    git(source, "add", "-A")
    git(source, "commit", "-qm", "more")
    port = free_port()
    daemon = subprocess.Popen(
        ["git", "daemon", "--export-all", f"--port={port}", "--listen=127.0.0.1", f"--base-path={folder}", str(folder)],
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for_port(port)
        with counted(port) as (relay, moved):
            git(clone, "fetch", "-q", f"git://127.0.0.1:{relay}/g-source", "main")
            return moved[0]
    finally:
        daemon.terminate()
        daemon.wait()
        shutil.rmtree(source)
        shutil.rmtree(clone)


def wait_for_port(port: int) -> None:
    for _ in range(200):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError(f"nothing listens on {port}")


def turns(report: Report, folder: Path, records: Sequence[bytes]) -> None:
    """How often one side waits for an answer to what it said, from first contact to the fixed point; then the same
    two again, with nothing new."""
    for name, chosen in (("t-near", records[:5]), ("t-far", records[5:10])):
        with lace.open(folder / f"{name}.lace", create=True) as opened:
            for record in chosen:
                opened.put_stored(record)
    address = f"unix:{folder}/t.sock"
    with served(folder / "t-far.lace", address, folder):
        for name, wanted in (("first contact, records both ways", 4), ("nothing new", 2)):
            capture = folder / "capture"
            exchange(folder / "t-near.lace", address, "--trace", str(capture))
            phases = turns_in(capture)
            report.row(f"turns from connect to fixed point, {name}", phases, "", "setup crosses ours and is no turn")
            report.at_most(f"turns, {name}", wanted=wanted, got=phases)
            capture.unlink()


def turns_in(capture: Path) -> int:
    """Blocks that came; setup crosses ours, so nobody waits for it, and the two ends of a response are one wait."""
    teller = TraceReader()
    heard = [told for row in read_capture(capture) if row.way == "in" for told in teller.feed(row)]
    ends = [told for told in heard if told.kind == "end"]
    responses = sum(told.kind == "record" for told in heard) > 0
    return len(ends) - 1 - responses


# --- open exchanges ---


def terms() -> Terms:
    return Terms(module=select_all(), exposures=(expose_all(),), is_open=True)


def make_node(store: MemoryStore, limits: NodeLimits) -> Node:
    clock = SystemClock()
    options = TransportOptions(clock=clock.tai)
    return Node(store, options, clock, limits=limits)


async def idle(report: Report, folder: Path, links: int, seconds: float) -> None:
    """Many open exchanges that have nothing to say; then how soon a commit on one side is one on the other."""
    # A quarter of the places is kept for proven peers, and these prove nothing.
    limits = NodeLimits(max_links=2 * links, max_links_per_peer=2 * links, store_poll_s=1.0, threads=2)
    far, near = MemoryStore(), MemoryStore()
    server, client = make_node(far, limits), make_node(near, limits)
    address = await server.listen(UnixAddress(str(folder / "idle.sock")), terms())
    process = psutil.Process()
    before = process.memory_info().rss
    for _ in range(links):
        client.keep_in_background(address, terms())
    while server.metrics.get("fixed_points_total") < links:
        await asyncio.sleep(0.05)
    await asyncio.sleep(1)
    used = process.memory_info().rss - before
    start = sum(process.cpu_times()[:2])
    await asyncio.sleep(seconds)
    share = (sum(process.cpu_times()[:2]) - start) / seconds
    report.row(
        f"{links} idle open exchanges, both ends: share of a core", share, "", f"{used / links / 1024:.0f} KB a link"
    )
    await client.shutdown()
    await server.shutdown()


async def latency(report: Report, folder: Path, rounds: int) -> None:
    far, near = MemoryStore(), MemoryStore()
    limits = NodeLimits(store_poll_s=1.0)
    server, client = make_node(far, limits), make_node(near, limits)
    address = await server.listen(UnixAddress(str(folder / "latency.sock")), terms())
    client.keep_in_background(address, terms())
    while server.metrics.get("fixed_points_total") < 1:
        await asyncio.sleep(0.01)
    times = []
    for number in range(rounds):
        record = validate(sealed(number))
        started = time.perf_counter()
        near.put([record])
        while not far.have(record.hash):
            await asyncio.sleep(0.0005)
        times.append((time.perf_counter() - started) * 1000)
        await asyncio.sleep(0.05)
    times.sort()
    report.row(
        "commit here to commit there, p50", statistics.median(times), "", "ms, one record, both ends in one process"
    )
    report.row("commit here to commit there, p99", times[int(len(times) * 0.99)], "", "ms")
    await client.shutdown()
    await server.shutdown()


def main() -> None:
    report = Report.start(
        "network", "Exchanges over loopback", columns=["what", "figure", "of the local import", "more"]
    )
    chosen = [int(text.removeprefix("--count=")) for text in sys.argv[1:] if text.startswith("--count=")]
    count = chosen[0] if chosen else 5_000 if report.quick else 100_000
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(SOURCE)], check=True, env=ENVIRONMENT)
    with tempfile.TemporaryDirectory(prefix="lace-bench-") as name:
        folder = Path(name)
        records = [sealed(number) for number in range(count)]
        with BundleWriter(folder / "all.bundle") as writer:
            for record in records:
                writer.write(record)
        found = transfers(report, folder, count)
        shares = {scheme: statistics.median(found.shares[scheme]) for scheme in SCHEMES}
        best_import, best_tcp = max(found.imports), max(found.rates["tcp"])
        report.at_least("tcp against the local import", wanted=0.75, got=shares["tcp"])
        report.note(f"tcp at its best against the import at its best: {best_tcp / best_import:.3f}")
        payload = sum(map(len, records))
        for scheme in SCHEMES:
            moved = found.moved[scheme]
            what = f"{scheme}: first copy of {count:,} sealed 1 KB records, bytes per payload byte"
            report.row(what, moved / payload, "", f"{moved:,} B")
        report.at_most("first copy over tcp, bytes per payload byte", wanted=1.15, got=found.moved["tcp"] / payload)
        report.at_least("ws against tcp", wanted=0.8, got=shares["ws"] / shares["tcp"])
        rsync = rsync_rate(folder, records[:RSYNC_RECORDS])
        if rsync is None:
            report.note("rsync is not installed: left out")
        else:
            what = f"rsync --archive --fsync of {min(count, RSYNC_RECORDS):,} of them as files"
            report.row(what, rsync, rsync / best_import, "records a second")
            report.at_least("tcp against rsync --archive --fsync", wanted=5, got=best_tcp / rsync, unit=" times")
        turns(report, folder, records)
        wire(report, folder, records[:1_000], 100)
        if not report.quick:
            wire(report, folder, records, 1_000)
        asyncio.run(idle(report, folder, 20 if report.quick else 100, 2 if report.quick else 10))
        asyncio.run(latency(report, folder, 20 if report.quick else 200))
    report.note("both sides on the same machine share its cores; rsync and git move one way, lace both")
    report.finish()


if __name__ == "__main__":
    main()
