"""A folder that follows a lace beside `cp`, b3sum, git, rsync and Syncthing: seconds, CPU seconds, memory and bytes.

.venv/bin/python bench/folder.py --files 100000 --bytes 1000000000 --out bench/results/folder.json

`--live` measures what goes on while folders are kept in step (`--live-files` of them), and nothing else; what is found
is added to what the file of `--out` says already.
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
from contextlib import contextmanager, suppress
from pathlib import Path

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


def run(work: Path, files: int, size: int) -> dict[str, object]:
    """Every figure of one run."""
    found: dict[str, object] = {"files": files, "bytes": size}
    one, other, hub = work / "one", work / "other", work / "hub.lace"
    make(one, files, size)
    os.sync()
    found["cp -a"] = timed(["cp", "-a", one, work / "copy"], work)
    hash_all = (
        "import sys, blake3, pathlib\nfor path in pathlib.Path(sys.argv[1]).rglob('*'):\n"
        "    path.is_file() and blake3.blake3(path.read_bytes()).digest()"
    )
    found["blake3 of all"] = timed([sys.executable, "-c", hash_all, one], work)
    if shutil.which("b3sum"):
        found["b3sum of all"] = timed(["sh", "-c", 'find "$1" -type f -print0 | xargs -0 b3sum', "sh", one], work)
    shutil.rmtree(work / "copy")
    if shutil.which("rsync"):
        found["rsync -a"] = timed(["rsync", "-a", f"{one}/", work / "rsynced"], work)
        shutil.rmtree(work / "rsynced")
    git: list[str | Path] = ["git", "-C", one, "-c", "user.name=x", "-c", "user.email=x@x", "-c", "gc.auto=0"]
    timed([*git, "init", "-q"], work)
    found["git add"] = timed([*git, "add", "."], work)
    found["git commit"] = timed([*git, "commit", "-q", "-m", "x"], work)
    found["git status, nothing changed"] = timed([*git, "status", "-s"], work)
    shutil.rmtree(one / ".git")

    sync: list[str | Path] = [*LACE, "sync"]
    timed([*LACE, "init", hub], work)
    found["take-in"] = timed([*sync, one, "--once", "--quiet", *AT], work)
    time.sleep(2.5)
    found["second run, after a look"] = timed([*sync, one, "--once", "--quiet"], work)
    found["nothing changed"] = timed([*sync, one, "--once", "--quiet"], work)
    found["to the hub"] = timed([*sync, one, hub, "--once", "--quiet"], work)
    found["from the hub and out"] = timed([*sync, other, hub, "--once", "--quiet", *AT], work)
    found["checkout"] = timed([*LACE, "checkout", one / ".lace" / "folder.lace", work / "out", "--quiet"], work)
    shutil.rmtree(work / "out")

    own = one / ".lace" / "folder.lace"
    before = stored(own)
    (one / "moved").mkdir()
    moved = sorted(path for path in one.iterdir() if path.name.isdigit())[: max(1, files // PER_FOLDER // 10)]
    count = sum(len(list(path.iterdir())) for path in moved)
    for path in moved:
        path.rename(one / "moved" / path.name)
    found["rename"] = timed([*sync, one, "--once", "--quiet"], work)
    found["rename, bytes a file"] = round((stored(own) - before) / count)

    big = one / "big"
    big.write_bytes(random.Random(2).randbytes(100_000_000))
    timed([*sync, one, "--once", "--quiet"], work)
    before = stored(own)
    content = big.read_bytes()
    big.write_bytes(content[:30_000_000] + b"!" + content[30_000_000:])
    found["one byte into 100 MB"] = timed([*sync, one, "--once", "--quiet"], work)
    found["one byte into 100 MB, bytes stored"] = stored(own) - before
    found["lace file, MB"] = round(own.stat().st_size / 1e6, 1)
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
            found["lace: a rename, bytes a file on both wires"] = round((door.bytes - before_bytes) / count)
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


def live(work: Path, files: int, size: int) -> dict[str, object]:
    """Every figure of folders that are kept in step."""
    make(work / "one", files, size)
    (work / "other").mkdir()
    found: dict[str, object] = {"live files": files, "live bytes": size}
    if shutil.which("syncthing"):
        for delay_s in (1, 10):
            for side in "ab":
                (work / f"{side}{delay_s}").mkdir()
            make(work / f"a{delay_s}", 500, 5_000_000)
            found |= live_syncthing(work, work / f"a{delay_s}", work / f"b{delay_s}", delay_s)
    return found | live_lace(work, work / "one", work / "other", files)


def main() -> None:
    """Print the figures, and keep them if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="2,000 files")
    parser.add_argument("--files", type=int)
    parser.add_argument("--bytes", type=int)
    parser.add_argument("--live", action="store_true", help="folders that are kept in step")
    parser.add_argument("--live-files", type=int, default=10_000)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files = asked.files or (2_000 if asked.quick else 100_000)
        if asked.live:
            found = live(Path(folder), asked.live_files, asked.bytes or asked.live_files * 10_000)
        else:
            found = run(Path(folder), files, asked.bytes or files * 10_000)
    for name, figure in found.items():
        print(f"{name:40} {figure}")
    if asked.out is not None:
        if asked.live and asked.out.exists():
            found = json.loads(asked.out.read_text(encoding="utf-8")) | found
        asked.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
