"""Try to break folders that follow a lace: by generated trees, by simulated worlds, and by killing real processes.

    python tools/folder.py [--trees 1000000] [--worlds 100000] [--kills 200] [--seed N]

Trees are pairs of folders against the planner (tests/folder/test_planner.py); worlds have the whole engine over
simulated file systems (tests/folder/simulated.py); kills end `lace sync` on either side of a real hub at random
moments, with random edits in both folders. Exit code 1 at the first finding, with its seed.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:1] = [str(ROOT / "src"), str(ROOT / "tests")]

NAMES = ["a", "b", "d/x", "d/y", "e/f/g", "h"]
LACE = [sys.executable, "-m", "lace.cli"]


def edit(root: Path, draw: random.Random, wrote: set[bytes]) -> None:
    """Somebody changes, creates or deletes a few files."""
    for _ in range(draw.randrange(4)):
        path = root / draw.choice(NAMES)
        if path.is_file() and draw.random() < 0.3:
            path.unlink()
            continue
        data = draw.randbytes(draw.choice([1, 40, 3_000, 400_000]))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        except OSError:
            continue
        wrote.add(data)


def files_of(root: Path) -> dict[str, bytes]:
    """The files of a folder."""
    found = (path for path in root.rglob("*") if path.is_file() and ".lace" not in path.relative_to(root).parts)
    return {
        path.relative_to(root).as_posix(): path.read_bytes() for path in found if not path.name.startswith(".lace-")
    }


def looks_of(root: Path) -> list[tuple[str, int, int]]:
    """How the folder and what it knows of itself look."""
    found = []
    for path in sorted(root.rglob("*")):
        with contextlib.suppress(FileNotFoundError):
            there = path.stat()
            if path.name not in ("lock", "clock"):
                found.append((str(path), there.st_size, there.st_mtime_ns))
    return found


def held(lace_path: Path) -> set[bytes]:
    """Every content that a lace can give back."""
    import lace

    with lace.open(lace_path, read_only=True) as notes:
        found = set()
        for row in notes.list(withdrawn=True):
            try:
                found.add(notes.get(row.hash))
            except lace.LaceError:
                continue  # its parts are on their way
        return found


def kill(kills: int, seed: int) -> int:
    """Kill one side after the other while both are edited; how many were killed at work."""
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as home:
        hub, roots = Path(home) / "hub.lace", [Path(home) / "one", Path(home) / "other"]
        subprocess.run([*LACE, "init", str(hub)], check=True, stdout=subprocess.DEVNULL)
        words = {root: [*LACE, "sync", str(root), str(hub), "--once", "--quiet", "--yes"] for root in roots}
        for root in roots:
            root.mkdir()
            subprocess.run([*words[root], "--at", "//club//files"], check=True)
        at_work = 0
        for number in range(kills):
            root = roots[number % 2]
            seen: set[bytes] = set()
            edit(root, draw, seen)
            before = set(files_of(root).values())
            looked = looks_of(root)
            process = subprocess.Popen(words[root], stderr=subprocess.DEVNULL)
            while process.poll() is None and looks_of(root) == looked:  # until it has changed something
                time.sleep(0.001)
            time.sleep(draw.random() * 0.05)
            at_work += process.poll() is None
            process.send_signal(signal.SIGKILL)
            process.wait()
            left = set(files_of(root).values()) | held(root / ".lace" / "folder.lace")
            require(before <= left, seed, f"kill {number}: {len(before - left)} contents are lost")
            if number % 20 == 19 or number == kills - 1:
                settle(words, roots, seed)
        return at_work


def settle(words: dict[Path, list[str]], roots: list[Path], seed: int) -> None:
    """Let both come to rest; then they are equal, or what differs is named."""
    before = {root: set(files_of(root).values()) for root in roots}
    said = ""
    for _ in range(4):
        said = ""
        for root in roots:
            said += subprocess.run(words[root], capture_output=True, text=True, check=False).stderr
    trees = [files_of(root) for root in roots]
    for name in trees[0].keys() | trees[1].keys():
        if trees[0].get(name) != trees[1].get(name):
            require(name in said, seed, f"{name} differs, and nobody says so:\n{said}")
    for root, contents in before.items():
        left = set(files_of(root).values()) | held(root / ".lace" / "folder.lace")
        require(contents <= left, seed, f"{len(contents - left)} contents of {root.name} are lost")


def require(is_so: bool, seed: int, text: str) -> None:
    """End with a finding unless something is so."""
    if not is_so:
        raise SystemExit(f"seed {seed}: {text}")


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("trees", "worlds", "kills", "seed"):
        parser.add_argument(f"--{name}", type=int, default=0)
    asked = parser.parse_args()
    started = time.monotonic()
    if asked.trees:
        from folder.test_planner import run

        for seed in range(asked.seed, asked.seed + asked.trees):
            run(seed)
        print(f"{asked.trees:,} pairs of trees: nothing found in {time.monotonic() - started:.0f} s")
    if asked.worlds:
        from folder.simulated import run_seed

        with tempfile.TemporaryDirectory() as home:
            for seed in range(asked.seed, asked.seed + asked.worlds):
                run_seed(seed, Path(home))
        print(f"{asked.worlds:,} worlds: nothing found in {time.monotonic() - started:.0f} s")
    if asked.kills:
        at_work = kill(asked.kills, asked.seed)
        print(
            f"{asked.kills:,} kills, {at_work:,} of them at work: nothing found in {time.monotonic() - started:.0f} s"
        )


if __name__ == "__main__":
    main()
