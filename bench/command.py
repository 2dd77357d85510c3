"""How fast the command starts, and how large content streams through it.

Start-up is measured as whole processes against a Python that does nothing; content as `lace put` and `lace get` of one
file against copying it with fsync, with each process's own peak memory.
"""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from report import Report

SOURCE = Path(__file__).resolve().parent.parent / "src"
MIB = 1 << 20
LACE = [sys.executable, "-m", "lace.cli"]


def run(command: list[str], folder: Path) -> tuple[float, float]:
    """Seconds and peak MiB of one process."""
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "LACE_HOME": str(folder / "home")}
    started = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    elapsed = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return elapsed, usage.ru_maxrss / 1024


def median_run(command: list[str], folder: Path, rounds: int) -> tuple[float, float]:
    runs = [run(command, folder) for _ in range(rounds)]
    return statistics.median(seconds for seconds, _ in runs), max(memory for _, memory in runs)


def copy_durably(source: Path, target: Path) -> float:
    started = time.perf_counter()
    with source.open("rb") as reading, target.open("wb") as writing:
        shutil.copyfileobj(reading, writing, MIB)
        writing.flush()
        os.fsync(writing.fileno())
    return time.perf_counter() - started


def measure_start(report: Report, folder: Path) -> None:
    rounds = 3 if report.quick else 11
    run([*LACE, "init", "small.lace"], folder)
    bare, memory = median_run([sys.executable, "-c", "pass"], folder, rounds)
    report.row("python -c pass", bare * 1000, 1.0, memory)
    for label, command in (
        ("import lace", [sys.executable, "-c", "import lace"]),
        ("lace --help", [*LACE, "--help"]),
        ("lace ls of an empty lace", [*LACE, "ls", "small.lace"]),
    ):
        seconds, memory = median_run(command, folder, rounds)
        report.row(label, seconds * 1000, seconds / bare, memory)
        if label in ("lace --help", "import lace"):
            report.at_most(f"`{label}` starts and ends in 0.3 s", wanted=0.3, got=seconds, unit=" s")


def measure_content(report: Report, folder: Path) -> None:
    size = (64 if report.quick else 512) * MIB
    source = folder / "content"
    with source.open("wb") as file:
        for _ in range(size // MIB):
            file.write(os.urandom(MIB))
    copied = copy_durably(source, folder / "copy")
    label = f"{size // MIB} MiB"
    report.row(
        f"copy {label} with fsync", copied * 1000, 1.0, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    )
    put, put_memory = run([*LACE, "put", "small.lace", "-g", "u", "-a", "a", "content"], folder)
    report.row(f"lace put {label}", put * 1000, put / copied, put_memory)
    get, get_memory = run([*LACE, "get", "small.lace", "//u//a//content", "-o", "back"], folder)
    report.row(f"lace get {label}", get * 1000, get / copied, get_memory)
    wanted = 300
    report.at_most(f"{label} go in with bounded memory", wanted=wanted, got=put_memory, unit=" MiB")
    report.at_most(f"{label} come out with bounded memory", wanted=wanted, got=get_memory, unit=" MiB")


def main() -> None:
    columns = ["what", "ms", "times the first of its kind", "peak MiB"]
    report = Report.start("command", "The command: start-up and large content", columns=columns)
    with tempfile.TemporaryDirectory() as name:
        measure_start(report, Path(name))
        measure_content(report, Path(name))
    report.note("medians of whole processes; content once, random bytes, over 32 MiB in chunks under a manifest")
    report.finish()


if __name__ == "__main__":
    main()
