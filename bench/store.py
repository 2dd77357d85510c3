"""Importing sealed records, and opening a store of a million, against the signature ceiling of the same run.

python bench/store.py [--quick] [--large]

`--large` adds the import of a bundle of 1 GB, for its memory. Every figure of the store is taken in its own
process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
from report import Report

import lace
from lace.datalog.language.syntax import Predicate
from lace.facts.predicates import FIELD, NAME, RECORD_PREDICATES
from lace.intake.bundles import import_bundles
from lace.notation.digest import digest
from lace.notation.identifiers import RecordHash
from lace.notation.tai import TAI
from lace.records.keys import SigningKey
from lace.records.model import Blob, Plex
from lace.records.validate import validate
from lace.records.write import encode_record
from lace.store import open_store
from lace.store.bundle import BundleWriter
from records import library_tasks, library_verify

KEY = SigningKey(digest(b"bench"))
BATCH = 8192
MIB = 1 << 20


def plex(number: int) -> Plex:
    """A Plex of 1 KB of data, different for each number."""
    tai = TAI.from_ns((1_640_995_200 + number) * 10**9)
    return Plex(
        group="u/people", app="ding", name=f"links/{number:07}", tai=tai,
        headers=(("Content-Type", "text/plain"),), blob=Blob(digest(number.to_bytes(4, "big")) * 32),
    )  # fmt: skip


def write_bundle(path: Path, count: int, *, sealed: bool) -> int:
    """A bundle of `count` records; its size."""
    with BundleWriter(path) as writer:
        for number in range(count):
            writer.write(encode_record(KEY.seal(plex(number), aux=b"\x01" * 32) if sealed else plex(number)))
        return writer.bytes


def signature_ceiling(count: int) -> float:
    """Signatures that two threads verify a second with libsecp256k1's own Schnorr verification, one by one."""
    tasks = library_tasks(250)
    started = time.perf_counter()
    with ThreadPoolExecutor(2) as pool:
        done = sum(pool.map(library_verify, [tasks] * (count // len(tasks))))
    return done / (time.perf_counter() - started)


def signature_cpu() -> float:
    """Microseconds of CPU that one of those verifications takes, at best."""
    tasks = library_tasks(250)
    best = float("inf")
    for _ in range(20):
        started = time.thread_time()
        library_verify(tasks)
        best = min(best, time.thread_time() - started)
    return best / len(tasks) * 1e6


def in_own_process(step: str, *arguments: object) -> dict[str, float]:
    """Run one of the STEPS in a fresh process; its figures, and the peak memory of it and its workers together."""
    environment = {**os.environ, "PYTHONPATH": str(Path(lace.__path__[0]).parent)}
    command = [sys.executable, __file__, "--step", step, *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True)
    peak = 0
    while process.poll() is None:
        peak = max(peak, _memory(process.pid))
        time.sleep(0.25)  # looking costs time that the import needs
    assert process.stdout is not None
    figures: dict[str, float] = json.loads(process.stdout.read())
    return {**figures, "peak_mib": peak / MIB}


def _memory(pid: int) -> int:
    """Bytes that a process and its children hold, shared pages counted once for each."""
    try:
        process = psutil.Process(pid)
        return sum(one.memory_info().rss for one in (process, *process.children(recursive=True)))
    except psutil.Error:
        return 0


def import_step(bundle: str, store_path: str) -> dict[str, float]:
    """Import a bundle into a new store."""
    with open_store(store_path, create=True) as store:
        started, used = time.perf_counter(), sum(os.times()[:4])
        report = import_bundles(store, [Path(bundle)], workers=os.cpu_count())
        seconds, used = time.perf_counter() - started, sum(os.times()[:4]) - used  # workers are waited for by then
    return {"records": report.stored, "seconds": seconds, "cpu_seconds": used, "rejected": report.rejected_total}


def build_step(store_path: str, count: str) -> dict[str, float]:
    """A store of unsealed Plexes."""
    started = time.perf_counter()
    with open_store(store_path, create=True) as store:
        for first in range(0, int(count), BATCH):
            numbers = range(first, min(first + BATCH, int(count)))
            store.put([validate(encode_record(plex(number))) for number in numbers])
    return {"seconds": time.perf_counter() - started, "bytes": Path(store_path).stat().st_size}


def open_step(store_path: str, record_hash: str) -> dict[str, float]:
    """Open, fetch one record, hand over every column, read every name."""
    figures = {}
    started = time.perf_counter()
    with open_store(store_path, read_only=True) as store:
        found = store.get(RecordHash(record_hash))
        figures["open_and_fetch"] = time.perf_counter() - started
        if found is None:
            raise AssertionError("the record is not there")
        started = time.perf_counter()
        snapshot = store.snapshot()
        slices = snapshot.slices(FIELD, 1) or {}
        figures["slices"] = time.perf_counter() - started
        rows = sum(len(snapshot.columns(predicate)[0]) for predicate in _all())
        figures["columns"] = time.perf_counter() - started
        started = time.perf_counter()
        names = snapshot.texts(slices[snapshot.codes([NAME])[0]][3])
        figures["names"] = time.perf_counter() - started
        started = time.perf_counter()
        versions = store.versions("u/people", "ding", names[len(names) // 2])
        figures["coordinate"] = time.perf_counter() - started
    return {**figures, "facts": rows, "versions": len(versions)}


def _all() -> Iterator[Predicate]:
    yield from RECORD_PREDICATES


STEPS = {"import": import_step, "build": build_step, "open": open_step}


def importing(report: Report, folder: Path) -> None:
    count = 20_000 if report.quick else 100_000
    bundle = folder / "sealed.bundle"
    size = write_bundle(bundle, count, sealed=True)
    ceiling = rate = peak = 0.0
    cpu = float("inf")
    for turn in range(1 if report.quick else 3):  # the machine is shared: the best of alternating turns, for both
        ceiling = max(ceiling, signature_ceiling(20_000), signature_ceiling(20_000))
        figures = in_own_process("import", bundle, folder / f"import{turn}.lace")
        rate = max(rate, figures["records"] / figures["seconds"])
        peak = max(peak, figures["peak_mib"])
        cpu = min(cpu, figures["cpu_seconds"] / figures["records"] * 1e6)
    ceiling = max(ceiling, signature_ceiling(20_000))
    verifying = signature_cpu()
    report.row("libsecp256k1's own Schnorr verification, two threads", ceiling, 1.0, "")
    what = f"import of {count:,} sealed records of {size / count:,.0f} bytes, verified and durable"
    report.row(what, rate, rate / ceiling, f"{peak:.0f} MiB")
    told = f"{cpu:.1f} µs, libsecp256k1's verification {verifying:.1f} µs"
    report.row("CPU of the import, all processes, a record: share that the verification alone would be", "",
               verifying / cpu, told)  # fmt: skip
    report.at_least("import, of the two-core signature ceiling", wanted=0.8, got=rate / ceiling)
    report.at_most("memory of the import, workers included", wanted=300, got=peak, unit=" MiB")


def large_import(report: Report, folder: Path) -> None:
    bundle = folder / "large.bundle"
    size = write_bundle(bundle, 830_000, sealed=False)
    figures = in_own_process("import", bundle, folder / "large.lace")
    rate = figures["records"] / figures["seconds"]
    report.row(
        f"import of {figures['records']:,.0f} Plexes, {size / 1e9:.2f} GB", rate, "", f"{figures['peak_mib']:.0f} MiB"
    )
    report.at_most("memory of importing 1 GB", wanted=300, got=figures["peak_mib"], unit=" MiB")
    bundle.unlink()


def opening(report: Report, folder: Path) -> None:
    count = 30_000 if report.quick else 1_000_000
    path = folder / "million.lace"
    built = in_own_process("build", path, count)
    report.row(
        f"puts of {count:,} Plexes in batches of {BATCH}", count / built["seconds"], "", f"{built['peak_mib']:.0f} MiB"
    )
    wanted = validate(encode_record(plex(count // 3))).hash
    runs = [in_own_process("open", path, wanted) for _ in range(3)]
    figures = {name: min(run[name] for run in runs) for name in runs[0]}
    for name, text in {
        "open_and_fetch": "open and fetch one record by hash",
        "slices": f"columns of {figures['facts']:,.0f} facts, fields by name",
        "columns": "  and every predicate as whole columns",
        "names": f"texts of {count:,} names",
        "coordinate": "find one coordinate",
    }.items():
        report.row(
            f"{text} ({count:,} records)", "", f"{figures[name] * 1000:.1f} ms", f"{figures['peak_mib']:.0f} MiB"
        )
    report.at_most("open a store of a million and fetch by hash", wanted=0.5, got=figures["open_and_fetch"], unit=" s")
    report.at_most("all columns of a million records", wanted=1.0, got=figures["columns"], unit=" s")


def main() -> None:
    report = Report.start("store", "The store", columns=["what", "per second", "ratio or time", "peak memory"])
    with tempfile.TemporaryDirectory(prefix="lace-bench-") as folder:
        importing(report, Path(folder))
        opening(report, Path(folder))
        if "--large" in sys.argv[1:]:
            large_import(report, Path(folder))
    report.note("memory is the sum over all processes, so pages they share count more than once")
    report.finish()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--step"]:
        print(json.dumps(STEPS[sys.argv[2]](*sys.argv[3:])))
    else:
        main()
