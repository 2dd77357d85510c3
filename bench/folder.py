"""A folder that follows a lace beside `cp`, git and rsync, in one run: seconds, CPU seconds, memory and bytes.

.venv/bin/python bench/folder.py --files 100000 --bytes 1000000000 --out bench/results/folder.json
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
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


def main() -> None:
    """Print the figures, and keep them if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="2,000 files")
    parser.add_argument("--files", type=int)
    parser.add_argument("--bytes", type=int)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files = asked.files or (2_000 if asked.quick else 100_000)
        found = run(Path(folder), files, asked.bytes or files * 10_000)
    for name, figure in found.items():
        print(f"{name:40} {figure}")
    if asked.out is not None:
        asked.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
