"""A real `lace serve` in a process of its own, an army in another, and what can be seen of it from outside."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import psutil

import lace
from interlace.pair import plex
from interop.test_misbehaviour import OURS
from lace.porcelain.network import Caller, connect, terms_of
from lace.records.validate import validate
from lace.runtime.link.session import Outcome
from lace.spark.archive.archive import Archive
from lace.transports.certificate import write_self_signed
from lace.transports.tls import ClientTls, ServerTls
from siege.scenes import SCHEMES

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 60.0
ARCHIVE_PATIENCE_S = 180.0
MIB = 1 << 20


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def make_stock(path: Path, records: int) -> None:
    """A lace of so many small records, and the one that plays know by name."""
    with lace.open(path, create=True) as opened:
        opened.store.put([validate(OURS)])
        for start in range(0, records, 10_000):
            numbers = range(start, min(start + 10_000, records))
            opened.store.put([validate(plex(f"r{number}", group="u")) for number in numbers])


@dataclass
class Fortress:
    """A server of a lace, with its ports."""

    folder: Path
    records: int = 200
    extra: tuple[str, ...] = ("--expose", "all")
    stock: Path | None = None  # where a lace of that many records is kept, to be made once
    ports: dict[str, int] = field(default_factory=lambda: {name: free_port() for name in (*SCHEMES, "metrics")})
    process: subprocess.Popen[bytes] = field(init=False)
    start_bytes: int = 0
    _pin: bytes = b""

    @property
    def path(self) -> Path:
        """Of what is served."""
        return self.folder / "fortress.lace"

    @property
    def patience_s(self) -> float:
        """Until it is open, and has ended."""
        return PATIENCE_S

    def fill(self, stock: Path) -> None:
        """Have the records of a lace."""
        shutil.copy(stock, self.path)

    def start(self) -> None:
        """Serve a store with some records, and wait until it is open."""
        if not self.path.exists():
            stock = (self.stock or self.folder) / "stock.lace"
            if not stock.exists():
                make_stock(stock, self.records)
            self.fill(stock)
            shutil.copy(stock, self.folder / "good.lace")  # the good peer was here before: it has what there is
        files = ServerTls(certificate_file=self.folder / "cert.pem", key_file=self.folder / "key.pem")
        if not self._pin:
            now = datetime.now(UTC)
            self._pin = write_self_signed(
                files.certificate_file, files.key_file, ["127.0.0.1"], not_before=now, valid_days=2
            )
        addresses = [f"{scheme}:127.0.0.1:{self.ports[scheme]}" for scheme in SCHEMES]
        command = [sys.executable, "-m", "lace.cli", "serve", str(self.path), *addresses, *self.extra]
        command += ["--cert", str(files.certificate_file), "--cert-key", str(files.key_file)]
        command += ["--metrics", str(self.ports["metrics"]), "--log", "json"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "LACE_HOME": str(self.folder / "home")}
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(command, env=environment, stderr=log, stdout=log)
        deadline = time.monotonic() + self.patience_s
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                self.metrics()
                self.good_exchange("tcp")
            except (OSError, lace.LaceError):
                time.sleep(0.05)
            else:
                self.start_bytes = self.memory()
                return
        raise RuntimeError("the server did not come up")

    def metrics(self) -> dict[str, float]:
        """The counters without labels, and the sums of those with one."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports['metrics']}/", timeout=PATIENCE_S) as page:
            text = page.read().decode()
        found: dict[str, float] = {}
        for name, value in re.findall(r"^(lace_\w+)(?:\{[^}]*\})? ([\d.e+-]+)$", text, re.MULTILINE):
            found[name] = found.get(name, 0.0) + float(value)
        return found

    def memory(self) -> int:
        """Bytes of the server and of every process it started; what they share counts once."""
        total = 0
        for process in self._family():
            try:
                total += process.memory_full_info().pss
            except psutil.Error:
                continue
        return total

    def cpu_s(self) -> float:
        """Processor seconds of the server and its children, ended ones included."""
        own = psutil.Process(self.process.pid).cpu_times()
        used = own.user + own.system + own.children_user + own.children_system
        for child in self._family()[1:]:
            try:
                times = child.cpu_times()
            except psutil.Error:
                continue
            used += times.user + times.system
        return used

    def _family(self) -> list[psutil.Process]:
        own = psutil.Process(self.process.pid)
        return [own, *own.children(recursive=True)]

    def good_exchange(self, scheme: str) -> tuple[Outcome, float]:
        """A good peer, from connecting to the fixed point, and the seconds that took."""
        tls = ClientTls(pin=self._pin) if scheme == "wss" else None
        with lace.open(self.folder / "good.lace") as good:
            started = time.monotonic()
            outcome = connect(good, f"{scheme}:127.0.0.1:{self.ports[scheme]}", expose="all", tls=tls)
            return outcome, time.monotonic() - started

    def stop(self) -> tuple[int, float]:
        """SIGTERM: the exit code, and the seconds it took."""
        started = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(self.patience_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        return code, time.monotonic() - started

    def log(self) -> str:
        """What the server said."""
        return (self.folder / "log").read_text(encoding="utf-8")


class ArchiveFortress(Fortress):
    """A server of an archive on a Spark of its own; the good peer comes with something new each time.

    Its memory is that of its own process and of those in which peers' rules run: Spark has a heap of a fixed size.
    """

    _came = 0

    @property
    def path(self) -> Path:
        """Of what is served."""
        return self.folder / "archive"

    @property
    def patience_s(self) -> float:
        """Spark takes its time to start, on a machine that is busy."""
        return ARCHIVE_PATIENCE_S

    def fill(self, stock: Path) -> None:
        """Have the records of a lace, as one batch."""
        bundle = self.folder / "stock.bundle"
        with lace.open(stock) as opened:
            opened.export(bundle)
        archive = Archive(str(self.path))
        archive.init()
        archive.add([bundle])

    def _family(self) -> list[psutil.Process]:
        return [process for process in super()._family() if not _is_of_spark(process)]

    def good_exchange(self, scheme: str) -> tuple[Outcome, float]:
        """The same, with one record more than last time, and more patience."""
        self._came += 1
        tls = ClientTls(pin=self._pin) if scheme == "wss" else None
        with lace.open(self.folder / "good.lace") as good:
            good.store.put([validate(plex(f"new {self._came}", group="u"))])
            started = time.monotonic()
            terms = terms_of(good, None, "all", is_open=False)
            limits = replace(terms.limits, phase_timeout_ns=int(self.patience_s * 1e9))
            caller = Caller(tls=tls, horizon_s=good.horizon_s)
            outcome = caller.exchange(
                good.store, f"{scheme}:127.0.0.1:{self.ports[scheme]}", replace(terms, limits=limits)
            )
            return outcome, time.monotonic() - started


def _is_of_spark(process: psutil.Process) -> bool:
    """The JVM, and the Python workers that it started."""
    try:
        return process.name() == "java" or any(parent.name() == "java" for parent in process.parents())
    except psutil.Error:
        return True


@contextmanager
def army(name: str, scheme: str, port: int, links: int, seed: int) -> Iterator[subprocess.Popen[bytes]]:
    """Hostile links in a process of their own, which is killed at the end; it is nicer than an attacker would be, for
    an attacker does not sit on the machine of its victim."""
    command = [sys.executable, str(ROOT / "tools" / "siege.py"), "--attack", name, "--scheme", scheme]
    command += ["--port", str(port), "--links", str(links), "--seed", str(seed)]
    process = subprocess.Popen(["nice", "-n", "10", *command], stdout=subprocess.PIPE)
    try:
        if process.stdout is None or not process.stdout.readline():
            raise RuntimeError(f"the attackers of {name!r} did not come up")
        yield process
        if process.poll() is not None:
            raise RuntimeError(f"the attackers of {name!r} fell over their own feet")
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
