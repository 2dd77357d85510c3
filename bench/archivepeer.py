"""An archive on Spark that is served, against a lace of a part of it: bytes, memory of the driver, files read.

    python bench/archivepeer.py [--quick] [--archive 500000] [--lace 100000] [--differ 1000] [--folder FOLDER]

The lace selects one group, which holds as many records of the archive as the lace does; the two differ in half as many
records on either side. The archive is compacted, as one that is kept is. With --folder archive and lace stay there and
are used again by a run of the same sizes.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from network import ENVIRONMENT, command, free_port
from report import Report

from lace.notation.tai import TAI
from lace.records.model import Blob, Plex
from lace.records.validate import validate
from lace.records.write import encode_record
from lace.spark.archive.archive import Archive
from lace.spark.session.session import spark_session
from lace.store import open_store
from lace.store.bundle import BundleWriter

PATIENCE = "600"
GROUP = "u/near"
PIECES = 16
REST_S = 60.0


def option(name: str, otherwise: int) -> int:
    return int(sys.argv[sys.argv.index(name) + 1]) if name in sys.argv else otherwise


def record(number: int, group: str) -> bytes:
    tai = TAI.from_ns((1_640_995_200 + number) * 10**9)
    return encode_record(Plex(group=group, app="ding", name=f"links/{number:08}", tai=tai, blob=Blob(b"%d" % number)))


@dataclass(frozen=True, slots=True)
class Sizes:
    """Records of the archive, of the lace, and how many only one of them has."""

    archive: int
    lace: int
    differ: int

    def archived(self, number: int) -> bytes:
        return record(number, GROUP if number < self.lace else "u/far")

    @property
    def missing(self) -> range:
        """Numbers of the archive that the lace lacks; it has as many others."""
        return range(self.lace - self.differ // 2, self.lace)


def write_piece(job: tuple[Path, range, Sizes]) -> None:
    path, numbers, sizes = job
    with BundleWriter(path) as bundle:
        for number in numbers:
            bundle.write(sizes.archived(number))


def make_archive(folder: Path, sizes: Sizes) -> Path:
    made = folder / f"archive-{sizes.archive}-{sizes.lace}"
    if not made.exists():
        build_archive(made, folder / "bundles", sizes)
    used = made.with_suffix(".used")
    shutil.rmtree(used, ignore_errors=True)  # of a run before, which changed it
    return Path(shutil.copytree(made, used))


def build_archive(made: Path, bundles: Path, sizes: Sizes) -> None:
    bundles.mkdir()
    each = -(-sizes.archive // PIECES)
    jobs = [
        (bundles / f"{n:02}.bundle", range(n * each, min(sizes.archive, (n + 1) * each)), sizes) for n in range(PIECES)
    ]
    with multiprocessing.Pool(2) as pool:
        pool.map(write_piece, jobs, 1)
    spark = spark_session("local[2]", app_name="bench", config={"spark.driver.memory": "3g"})
    archive = Archive(str(made), lambda: spark)
    archive.init()
    archive.add([bundles])
    archive.compact(small_bytes=1 << 40)
    spark.stop()
    shutil.rmtree(bundles)


def make_lace(folder: Path, sizes: Sizes) -> Path:
    others = range(10 * sizes.archive, 10 * sizes.archive + sizes.differ // 2)
    return filled(folder / f"lace-{sizes.lace}-{sizes.differ}.lace", [*range(sizes.missing.start), *others])


def filled(kept: Path, numbers: Sequence[int]) -> Path:
    """A copy of a lace with the records of some numbers, made if it is not there."""
    if not kept.exists():
        with open_store(kept, create=True) as store:
            for start in range(0, len(numbers), 10_000):
                store.put([validate(record(n, GROUP)) for n in numbers[start : start + 10_000]])
    return Path(shutil.copy(kept, kept.with_suffix(".used")))


@dataclass(slots=True)
class Served:
    """An archive that is served, what it logged, and the highest memory of its two driver processes."""

    child: subprocess.Popen[str]
    reads: list[dict[str, object]] = field(default_factory=list)
    python_mb: float = 0.0
    java_mb: float = 0.0
    is_over: threading.Event = field(default_factory=threading.Event)

    def listen(self) -> None:
        assert self.child.stderr is not None
        for line in self.child.stderr:
            if not line.startswith("{"):  # of the JVM
                continue
            said = json.loads(line)
            if said["event"] == "archive":
                self.reads.append(said)

    def rested(self) -> None:
        """Wait until the archive has prepared itself for the next contact."""
        end = time.monotonic() + REST_S  # it may have nothing to prepare
        while not any("work out the root" in str(read["text"]) for read in self.reads[-1:]) and time.monotonic() < end:
            time.sleep(0.2)

    def watch(self) -> None:
        process = psutil.Process(self.child.pid)
        while not self.is_over.wait(0.1):
            try:
                self.python_mb = max(self.python_mb, process.memory_info().rss / 1e6)
                java = [one for one in process.children() if one.name().startswith("java")]
                self.java_mb = max(self.java_mb, *(one.memory_info().rss / 1e6 for one in java), 0.0)
            except psutil.Error:
                continue


@contextmanager
def served(archive: Path, address: str, folder: Path, *more: str) -> Iterator[Served]:
    notices = folder / f"notify-{free_port()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready:
        ready.bind(str(notices))
        ready.settimeout(120)
        child = subprocess.Popen(
            command("serve", str(archive), address, "--expose", "all", "--log", "json", "--patience", PATIENCE,
                    "--take-from-strangers", *more),
            stderr=subprocess.PIPE,
            text=True,
            env={**ENVIRONMENT, "NOTIFY_SOCKET": str(notices)},
        )  # fmt: skip
        running = Served(child)
        for work in (running.listen, running.watch):
            threading.Thread(target=work, daemon=True).start()
        ready.recv(100)
        try:
            yield running
        finally:
            running.is_over.set()
            child.send_signal(signal.SIGTERM)
            child.wait(60)


def exchange(lace: Path, address: str, *more: str) -> tuple[dict[str, int], float]:
    began = time.perf_counter()
    arguments = command(
        "interlace", str(lace), address, "--expose", "all", "--select-coordinate", f"//{GROUP}//", "--json",
        "--patience", PATIENCE, *more,
    )  # fmt: skip
    done = subprocess.run(arguments, stdout=subprocess.PIPE, env=ENVIRONMENT, check=False)
    if done.returncode:
        raise RuntimeError(f"interlace ended with {done.returncode}: {done.stdout.decode()}")
    return json.loads(done.stdout), time.perf_counter() - began


def items_of(trace: Path) -> list[dict[str, Any]]:
    """What a capture holds, as `lace tap` shows it."""
    done = subprocess.run(command("tap", str(trace), "--json"), stdout=subprocess.PIPE, env=ENVIRONMENT, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def behind_hellos(trace: Path) -> int:
    """Bytes of both directions behind the hellos."""
    items = items_of(trace)
    hellos = [item for item in items if item["text"] == "of block 2"]
    return int(sum(item["size"] for item in items) - sum(item["offset"] + item["size"] for item in hellos))


def learning(trace: Path) -> int:
    """Bytes by which either side learns what the other has: comparison and advertisements, which is what 070 is for."""
    said = ("Difference", "Advertised")
    return sum(item["size"] for item in items_of(trace) if item["kind"] == "facts" and _says(item["text"], said))


def _says(text: str, words: tuple[str, ...]) -> bool:
    return any(part.split(" ")[-1].startswith(words) for part in text.split(", "))


def beside_records(said: dict[str, int]) -> int:
    total = said["bytes_received"] + said["bytes_sent"]
    return total - said["record_bytes_received"] - said["record_bytes_sent"]


def run_lace(report: Report, folder: Path, sizes: Sizes) -> int:
    """A lace in the archive's place, with the records that the rules let it show; bytes beside the records."""
    near, lace = filled(folder / f"near-{sizes.lace}.lace", range(sizes.lace)), make_lace(folder, sizes)
    address = f"tcp:127.0.0.1:{free_port()}"
    with served(near, address, folder) as running:
        said, seconds = exchange(lace, address)
        report.row("a lace in its place", beside_records(said), f"{seconds:.1f} s", f"{running.python_mb:.0f}", "", "")
    return beside_records(said)


def run(report: Report, folder: Path, sizes: Sizes) -> None:
    by_lace = run_lace(report, folder, sizes)
    archive, lace = make_archive(folder, sizes), make_lace(folder, sizes)
    address = f"tcp:127.0.0.1:{free_port()}"
    with served(archive, address, folder, "--master", "local[2]") as running:
        for name in ("first contact", "nothing new"):
            running.reads.clear()
            trace = folder / "trace"
            said, seconds = exchange(lace, address, "--trace", str(trace))
            beside = beside_records(said)
            scans = [str(read["text"]) for read in running.reads if " files, " in str(read["text"])]
            for scan in scans:
                print("   ", scan, file=sys.stderr)
            memory = f"{running.python_mb:.0f}", f"{running.java_mb:.0f}"
            report.row(name, beside, f"{seconds:.1f} s", *memory, "; ".join(scans))
            if name == "first contact":
                came, went = said["received"], said["sent"]
                report.note(f"first contact: {came:,} records came to the lace and {went:,} went to the archive")
                report.at_most(
                    f"{sizes.differ:,} differences: bytes of comparison and advertisements",
                    wanted=100 * sizes.differ, got=learning(trace), unit=" B",
                )  # fmt: skip
                report.at_most(
                    f"{sizes.differ:,} differences: bytes beside the records, beside those of a lace in its place",
                    wanted=1.1, got=beside / by_lace,
                )  # fmt: skip
                running.rested()
            else:
                report.at_most("nothing new: bytes behind the hellos", wanted=300, got=behind_hellos(trace), unit=" B")
                report.at_most("nothing new: passes over ids or records", wanted=0, got=len(scans))
        report.at_most("the driver's own process, at its peak", wanted=700, got=running.python_mb, unit=" MB")
        report.note(f"on local[2] the JVM is driver and executor at once: {running.java_mb:.0f} MB at its peak")


def main() -> None:
    report = Report.start(
        "archivepeer",
        "An archive on Spark as a peer",
        columns=["what", "bytes beside records", "took", "driver MB", "JVM MB", "read"],
    )
    sizes = Sizes(
        option("--archive", 20_000 if report.quick else 500_000),
        option("--lace", 5_000 if report.quick else 100_000),
        option("--differ", 100 if report.quick else 1_000),
    )
    report.note(f"archive of {sizes.archive:,} records, lace of {sizes.lace:,}, {sizes.differ:,} differences")
    if "--folder" in sys.argv:
        folder = Path(sys.argv[sys.argv.index("--folder") + 1])
        folder.mkdir(exist_ok=True)
        run(report, folder, sizes)
    else:
        with tempfile.TemporaryDirectory() as name:
            run(report, Path(name), sizes)
    report.end(is_whole=True)


if __name__ == "__main__":
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    main()
