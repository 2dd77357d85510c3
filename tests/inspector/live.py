"""A node that serves a lace in a process of its own, and a peer that came to it once."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import lace
from inspector.visiting import World, make_world


@dataclass(frozen=True)
class Place:
    """Where the node, its watch socket and the captured stream are."""

    world: World
    address: Path
    watch: Path
    capture: Path

    @property
    def here(self) -> Path:
        return self.world.path


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """A command of ours."""
    return subprocess.run([sys.executable, "-m", "lace.cli", *words], capture_output=True, text=True, timeout=60)


def make_archive(root: Path) -> Path:
    """The folder of an archive with one table of 260 rows; needs pyarrow."""
    import pyarrow
    from pyarrow import parquet

    for batch in (1, 2):
        place = root / "tables" / "records" / f"batch={batch}"
        place.mkdir(parents=True)
        rows = {"hash": [f"<b>{batch}-{number}" for number in range(130)], "body": [b"x"] * 130}
        parquet.write_table(pyarrow.table(rows), place / "part.parquet", row_group_size=40)
    (root / "report.json").write_text(json.dumps({"records": 260, "by_type": [["P", 260]]}))
    return root


@contextmanager
def meeting_place(folder: Path) -> Iterator[Place]:
    """A node that one peer came to, once, with its stream captured."""
    place = Place(make_world(folder / "here.lace"), folder / "n", folder / "w", folder / "talk")
    lace.open(folder / "there.lace", create=True).close()
    with _serving(place):
        words = [str(folder / "there.lace"), f"unix:{place.address}", "--expose", "all", "--trace", str(place.capture)]
        done = run("interlace", *words)
        assert done.returncode == 0, done.stderr
        yield place


@contextmanager
def _serving(place: Place) -> Iterator[None]:
    words = [sys.executable, "-m", "lace.cli", "serve", str(place.here), f"unix:{place.address}", "--expose", "all"]
    node = subprocess.Popen([*words, "--watch", str(place.watch)], stderr=subprocess.PIPE, text=True)
    try:
        assert node.stderr is not None
        for line in node.stderr:
            if "listening" in line:
                break
        yield
    finally:
        node.send_signal(signal.SIGTERM)
        node.communicate(timeout=30)
