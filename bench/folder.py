"""A folder that follows a lace beside `cp`, b3sum, rsync, git and Syncthing: seconds, CPU seconds, memory and bytes.

.venv/bin/python bench/folder.py [--quick]

Each step can be run by itself, on a quiet machine, and what it found is kept beside its files:

.venv/bin/python bench/folder.py --work /tmp/folder --step files|git|take|hub|changes|syncthing|live|million|report
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from report import Report

LACE = [sys.executable, "-m", "lace.cli"]
AT = ["--at", "//bench//files"]
PER_FOLDER = 100


def make(root: Path, files: int, size: int) -> None:
    """Files of random bytes, their sizes between nothing and twice the average."""
    draw = random.Random(1)
    for number in range(files):
        folder = root / f"{number // PER_FOLDER:05}"
        if number % PER_FOLDER == 0:
            folder.mkdir(parents=True)
        (folder / f"{number % PER_FOLDER:02}").write_bytes(draw.randbytes(draw.randrange(2 * size // files)))


def timed(words: Sequence[str | Path], cwd: Path) -> dict[str, float]:
    """Run a command to its end: seconds, CPU seconds and the most memory it had, in MB."""
    started = time.monotonic()
    process = subprocess.Popen(
        [str(word) for word in words], cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 8):
        raise SystemExit(f"{words}: {process.returncode}\n{said.decode()}")
    return {
        "seconds": round(time.monotonic() - started, 2),
        "cpu_s": round(used.ru_utime + used.ru_stime, 2),
        "peak_mb": round(used.ru_maxrss / 1024, 1),
    }


def stored(lace: Path) -> int:
    """Bytes of records in a lace."""
    said = subprocess.run([*LACE, "stat", str(lace), "--json"], capture_output=True, text=True, check=True).stdout
    return int(json.loads(said)["stored_bytes"])


Found = dict[str, Any]


def step_files(work: Path, files: int, size: int) -> Found:
    """The files, and a copy of them by rsync."""
    one = work / "one"
    make(one, files, size)
    os.sync()
    found: Found = {"files": files, "bytes": size}
    hash_all = 'find "$1" -type f -print0 | xargs -0 b3sum'
    found["b3sum of all"] = timed(["sh", "-c", hash_all, "sh", one], work)
    if shutil.which("rsync"):
        found["rsync -a"] = timed(["rsync", "-a", f"{one}/", work / "rsynced"], work)
        found["rsync -a, nothing changed"] = timed(["rsync", "-a", f"{one}/", work / "rsynced"], work)
        shutil.rmtree(work / "rsynced")
    return found


def step_git(work: Path) -> Found:
    """The same files as a commit."""
    one = work / "one"
    found: Found = {}
    git: list[str | Path] = ["git", "-C", one, "-c", "user.name=x", "-c", "user.email=x@x", "-c", "gc.auto=0"]
    timed([*git, "init", "-q"], work)
    found["git add"] = timed([*git, "add", "."], work)
    found["git commit"] = timed([*git, "commit", "-q", "-m", "x"], work)
    found["git status, nothing changed"] = timed([*git, "status", "-s"], work)
    shutil.rmtree(one / ".git")
    return found


def step_take(work: Path) -> Found:
    """In, nothing changed, and out, beside `cp -a` and b3sum in the same minute."""
    one = work / "one"
    found: Found = {}
    for name in ("copy", "out"):
        shutil.rmtree(work / name, ignore_errors=True)
    shutil.rmtree(one / ".lace", ignore_errors=True)
    os.sync()
    found["cp -a"] = timed(["cp", "-a", one, work / "copy"], work)
    found["b3sum of all"] = timed(["sh", "-c", 'find "$1" -type f -print0 | xargs -0 b3sum', "sh", one], work)
    found["take-in"] = timed([*LACE, "sync", one, "--once", "--quiet", *AT], work)
    shutil.rmtree(work / "copy")
    time.sleep(2.5)
    timed([*LACE, "sync", one, "--once", "--quiet"], work)  # what was new when it was stored is read once more
    found["nothing changed"] = timed([*LACE, "sync", one, "--once", "--quiet"], work)
    os.sync()
    found["checkout"] = timed([*LACE, "checkout", one / ".lace" / "folder.lace", work / "out", "--quiet"], work)
    shutil.rmtree(work / "out")
    return found


def step_hub(work: Path) -> Found:
    """Through a lace between two folders."""
    found: Found = {}
    hub = work / "hub.lace"
    timed([*LACE, "init", hub], work)
    found["to the hub"] = timed([*LACE, "sync", work / "one", hub, "--once", "--quiet"], work)
    found["from the hub and out"] = timed([*LACE, "sync", work / "other", hub, "--once", "--quiet", *AT], work)
    return found


def step_changes(work: Path) -> Found:
    """A tree under another name, and one byte more."""
    found: Found = {}
    one = work / "one"
    own = one / ".lace" / "folder.lace"
    before = stored(own)
    (one / "moved").mkdir()
    folders = sorted(path for path in one.iterdir() if path.name.isdigit())
    moved = folders[: max(1, len(folders) // 10)]
    count = sum(len(list(path.iterdir())) for path in moved)
    for path in moved:
        path.rename(one / "moved" / path.name)
    found["rename"] = timed([*LACE, "sync", one, "--once", "--quiet"], work) | {"files": count}
    found["rename, bytes a file"] = round((stored(own) - before) / count)
    big = one / "big"
    big.write_bytes(random.Random(2).randbytes(100_000_000))
    timed([*LACE, "sync", one, "--once", "--quiet"], work)
    before = stored(own)
    content = big.read_bytes()
    big.write_bytes(content[:30_000_000] + b"!" + content[30_000_000:])
    found["one byte into 100 MB"] = timed([*LACE, "sync", one, "--once", "--quiet"], work)
    found["one byte into 100 MB, bytes stored"] = stored(own) - before
    return found


def step_million(work: Path, files: int) -> Found:
    """Many small files: the memory of a run that finds nothing changed, beyond that of an empty folder."""
    many, none = work / "many", work / "none"
    none.mkdir()
    make(many, files, 10 * files)
    found: Found = {"many files": files}
    found["many: take-in"] = timed([*LACE, "sync", many, "--once", "--quiet", *AT], work)
    timed([*LACE, "sync", none, "--once", "--quiet", *AT], work)
    time.sleep(2.5)
    timed([*LACE, "sync", many, "--once", "--quiet"], work)
    found["many: nothing changed"] = timed([*LACE, "sync", many, "--once", "--quiet"], work)
    found["many: an empty folder"] = timed([*LACE, "sync", none, "--once", "--quiet"], work)
    shutil.rmtree(many)
    return found


class CountingDoor:
    """A door in front of a server that counts what goes through it."""

    def __init__(self, port: int) -> None:
        self.bytes = 0
        self._to = port
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port = self._door.getsockname()[1]
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            here, _ = self._door.accept()
            there = socket.create_connection(("127.0.0.1", self._to))
            for pair in ((here, there), (there, here)):
                threading.Thread(target=self._carry, args=pair, daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                self.bytes += len(data)
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)


def free_port() -> int:
    """A port that nobody uses."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        return int(door.getsockname()[1])


def wait_until(is_so: Callable[[], bool], seconds: float, what: str) -> None:
    """Wait for something, looking every two milliseconds."""
    until = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > until:
            raise SystemExit(f"{what} did not come in {seconds:.0f} s")
        time.sleep(0.002)


def cpu_of(process: subprocess.Popen[bytes]) -> float:
    """CPU seconds of a running process."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_of(process: subprocess.Popen[bytes]) -> float:
    """The most memory that a running process had, in MB."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return round(int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024, 1)


def changes(one: Path, other: Path, seconds: float, times: int) -> list[float]:
    """How long each of some changes of one file takes to the other folder."""
    found = []
    for number in range(times):
        content = f"{number} {time.time_ns()}".encode() * 100
        started = time.monotonic()
        (one / "changing").write_bytes(content)
        there = other / "changing"
        wait_until(lambda: there.is_file() and there.read_bytes() == content, seconds, "a change")  # noqa: B023
        found.append(time.monotonic() - started)
        time.sleep(0.7 + 0.05 * (number % 7))
    return found


@contextmanager
def started(*commands: Sequence[object]) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Programs that run while the block lasts."""
    running: list[subprocess.Popen[bytes]] = []
    try:
        running.extend(
            subprocess.Popen(list(map(str, words)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            for words in commands
        )
        yield running
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait(30)


def live_lace(work: Path, one: Path, other: Path, files: int) -> dict[str, object]:
    """Two folders over a hub that serves on TCP."""
    found: dict[str, object] = {}
    port = free_port()
    timed([*LACE, "init", work / "hub.lace"], work)
    serve = [*LACE, "serve", work / "hub.lace", f"tcp:127.0.0.1:{port}", "--expose", "all"]
    with started(serve):
        wait_until(lambda: _answers(port), 30, "the hub")
        door = CountingDoor(port)
        hub = f"tcp:127.0.0.1:{door.port}"
        for root in (one, other):
            timed([*LACE, "sync", root, hub, "--once", "--quiet", *AT], work)
        follow = [[*LACE, "sync", root, hub, "--quiet"] for root in (one, other)]
        with started(*follow) as running:
            changes(one, other, 60, 3)
            arrived = changes(one, other, 60, 15)
            found["lace: a change arrives, p50 s"] = round(statistics.median(arrived), 3)
            found["lace: a change arrives, longest s"] = round(max(arrived), 3)
            time.sleep(5)
            before, began = [cpu_of(process) for process in running], time.monotonic()
            time.sleep(30)
            used = max(cpu_of(process) - spent for process, spent in zip(running, before, strict=True))
            found["lace: idle CPU, %"] = round(100 * used / (time.monotonic() - began), 2)
            found["lace: memory of a follower, MB"] = memory_of(running[1])
            before_bytes = door.bytes
            moved = sorted(path for path in one.iterdir() if path.name.isdigit())
            (one / "moved").mkdir()
            for path in moved:
                path.rename(one / "moved" / path.name)
            count = sum(len(list((one / "moved" / path.name).iterdir())) for path in moved)
            last = other / "moved" / moved[-1].name
            wait_until(lambda: last.is_dir() and _files(other) == _files(one), 240, "a renamed tree")
            found["lace: renamed files"] = count
            found["lace: a rename, bytes a file on each wire"] = round((door.bytes - before_bytes) / count / 2)
            big = random.Random(3).randbytes(100_000_000)
            (one / "big").write_bytes(big)
            wait_until(lambda: _size(other / "big") == len(big), 240, "100 MB")
            time.sleep(3)
            before_bytes = door.bytes
            (one / "big").write_bytes(big[:30_000_000] + b"!" + big[30_000_000:])
            wait_until(lambda: _size(other / "big") == len(big) + 1, 240, "a byte in 100 MB")
            time.sleep(1)
            found["lace: one byte into 100 MB, bytes on both wires"] = door.bytes - before_bytes
    return found


def _files(root: Path) -> int:
    return sum(len(names) for place, _, names in os.walk(root) if "/.lace" not in place)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else -1


def _answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def live_syncthing(work: Path, one: Path, other: Path, delay_s: int) -> dict[str, object]:
    """Two Syncthing devices that know each other's address and ask nobody else."""
    homes, ports = [work / f"st-{delay_s}-{side}" for side in "ab"], [free_port(), free_port()]
    ids = []
    for home in homes:
        subprocess.run(["syncthing", "generate", f"--home={home}", "--no-default-folder"], check=True,
                       capture_output=True)  # fmt: skip
        said = subprocess.run(
            ["syncthing", f"--home={home}", "--device-id"], check=True, capture_output=True, text=True
        )
        ids.append(said.stdout.split()[-1])
    for home, port, gui, root in zip(homes, ports, (free_port(), free_port()), (one, other), strict=True):
        devices = "".join(
            f'<device id="{name}" compression="never"><address>tcp://127.0.0.1:{at}</address></device>'
            for name, at in zip(ids, ports, strict=True)
        )
        members = "".join(f'<device id="{name}"></device>' for name in ids)
        (home / "config.xml").write_text(
            f'''<configuration version="37"><folder id="f" path="{root}" type="sendreceive" rescanIntervalS="3600"
            fsWatcherEnabled="true" fsWatcherDelayS="{delay_s}">{members}</folder>{devices}
            <gui enabled="false"><address>127.0.0.1:{gui}</address></gui><options>
            <listenAddress>tcp://127.0.0.1:{port}</listenAddress>
            <globalAnnounceEnabled>false</globalAnnounceEnabled><localAnnounceEnabled>false</localAnnounceEnabled>
            <relaysEnabled>false</relaysEnabled><natEnabled>false</natEnabled><urAccepted>-1</urAccepted>
            <autoUpgradeIntervalH>0</autoUpgradeIntervalH><startBrowser>false</startBrowser>
            <reconnectionIntervalS>1</reconnectionIntervalS><crashReportingEnabled>false</crashReportingEnabled>
            </options></configuration>'''
        )
    began = time.monotonic()
    name = f"syncthing, delay {delay_s} s"
    with started(*(["syncthing", "serve", f"--home={home}", "--no-browser", "--no-restart"] for home in homes)):
        wait_until(lambda: _files(other) >= _files(one), 240, "the first copy")
        found: dict[str, object] = {f"{name}: first copy, s": round(time.monotonic() - began, 1)}
        changes(one, other, 60, 1)
        arrived = changes(one, other, 60, 15 if delay_s < 5 else 5)
        found[f"{name}: a change arrives, p50 s"] = round(statistics.median(arrived), 3)
    return found


def step_syncthing(work: Path) -> Found:
    """The same small change in folders that Syncthing keeps in step."""
    found: Found = {}
    if shutil.which("syncthing"):
        for delay_s in (1, 10):
            make(work / f"a{delay_s}", 500, 5_000_000)
            (work / f"b{delay_s}").mkdir()
            found |= live_syncthing(work, work / f"a{delay_s}", work / f"b{delay_s}", delay_s)
    return found


def step_live(work: Path, files: int) -> Found:
    """Two folders that are kept in step over a hub."""
    home = work / "live"
    make(home / "one", files, files * 10_000)
    (home / "other").mkdir()
    return {"live files": files} | live_lace(home, home / "one", home / "other", files)


def report_of(found: Found, notes: Sequence[str] = ()) -> Report:
    """The figures as a report; a step that was not run is a figure that is missed."""
    report = Report.start(
        "folder", "A folder that follows a lace", columns=["what", "seconds", "CPU seconds", "memory"]
    )
    for name, figure in found.items():
        if isinstance(figure, dict):
            memory = f"{figure['peak_mb']:.0f} MB" if figure["peak_mb"] > 20 else ""
            report.row(name, figure["seconds"], figure["cpu_s"], memory)

    def ratio(unit: str, of: str, *to: str) -> float:
        return round(sum(float(found[one][unit]) for one in to) / float(found[of][unit]), 2)

    count = f"{found['files']:,} files, {found['bytes'] / 1e9:.1f} GB"
    for unit, said in (("seconds", "time"), ("cpu_s", "CPU time")):
        report.at_least(f"{count}: taking in, {said} of `cp -a` and b3sum", wanted=0.4,
                        got=ratio(unit, "take-in", "cp -a", "b3sum of all"))  # fmt: skip
        report.at_least(f"{count}: checking out, {said} of `cp -a`", wanted=0.5, got=ratio(unit, "checkout", "cp -a"))
    report.at_most(f"{count}: nothing changed", wanted=2.0, got=found["nothing changed"]["seconds"], unit=" s")
    report.at_most(f"{count}: nothing changed, memory", wanted=100, got=found["nothing changed"]["peak_mb"], unit=" MB")
    report.at_most("a tree under another name, bytes stored a file", wanted=1_000, got=found["rename, bytes a file"])
    report.at_most("one byte into 100 MB, bytes stored", wanted=1_000_000,
                   got=found["one byte into 100 MB, bytes stored"])  # fmt: skip
    live = f"{found['live files']:,} files kept in step"
    report.at_most(
        f"{live}: a change arrives (p50)", wanted=0.15, got=found["lace: a change arrives, p50 s"], unit=" s"
    )
    report.at_most(f"{live}: idle, of one core", wanted=1.0, got=found["lace: idle CPU, %"], unit=" %")
    report.at_most("a renamed tree, bytes a file on each of the two wires", wanted=1_000,
                   got=found["lace: a rename, bytes a file on each wire"])  # fmt: skip
    report.at_most("one byte into 100 MB, bytes on both wires", wanted=1_000_000,
                   got=found["lace: one byte into 100 MB, bytes on both wires"])  # fmt: skip
    if "many files" in found:
        most, least = found["many: nothing changed"]["peak_mb"], found["many: an empty folder"]["peak_mb"]
        report.at_most(f"{found['many files']:,} files: memory a file while nothing changes", wanted=300,
                       got=round((most - least) * 1024 * 1024 / found["many files"]), unit=" B")  # fmt: skip
    for name, figure in found.items():
        if name.startswith("syncthing"):
            report.note(f"{name}: {figure}")
    report.note(f"the slowest of fifteen changes arrived after {found['lace: a change arrives, longest s']} s")
    report.note("`cp -a`, b3sum, taking in and checking out ran one after the other; a lace is durable, a copy is not")
    if found["load"] > 2 * (os.cpu_count() or 1):
        for claim in report.claims:
            if "bytes" not in str(claim["text"]) and "memory" not in str(claim["text"]):
                claim |= {"got": f"{claim['got']}, not settled", "ok": False}
        busy = f"others used the machine meanwhile (load {found['load']} on {os.cpu_count()} cores)"
        report.note(f"{busy}: times and their ratios swing by several times and settle nothing; bytes and memory count")
    for note in notes:
        report.note(note)
    return report


def main() -> None:
    """Run every step, or one of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="2,000 files")
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--live-files", type=int, default=10_000)
    parser.add_argument("--many-files", type=int, default=1_000_000)
    parser.add_argument("--work", type=Path, help="where files and figures stay between steps")
    parser.add_argument("--step", help="one step: files, git, take, hub, changes, syncthing, live, million or report")
    parser.add_argument("--note", action="append", default=[], help="a sentence that the report ends with")
    asked = parser.parse_args()
    files, live, many = (2_000, 500, 2_000) if asked.quick else (asked.files, asked.live_files, asked.many_files)
    steps: dict[str, Callable[[Path], Found]] = {
        "files": lambda work: step_files(work, files, files * 10_000),
        "git": step_git,
        "take": step_take,
        "hub": step_hub,
        "changes": step_changes,
        "syncthing": step_syncthing,
        "live": lambda work: step_live(work, live),
        "million": lambda work: step_million(work, many),
    }
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # as installed: nothing is compiled at every start
    with ExitStack() as stack:
        work = asked.work or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        work.mkdir(parents=True, exist_ok=True)
        kept = work / "found.json"
        for name in [asked.step] if asked.step else [*steps, "report"]:
            found = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
            if name == "report":
                report_of(found, asked.note).end(is_whole=True)
            else:
                new = steps[name](work)
                new["load"] = max(found.get("load", 0), round(os.getloadavg()[0]))
                for what, figure in new.items():
                    print(f"{what:45} {figure}", file=sys.stderr, flush=True)
                kept.write_text(json.dumps(found | new, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
