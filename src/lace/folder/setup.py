"""A folder that is set up: what it knows of itself, under `.lace`, and opening it.

Rule: one process at a time works on a folder. Nothing is created outside `.lace`, and a folder that was not set up is
left as it is.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from lace.errors import InvalidInput, NotFound, StoreError
from lace.folder.disk import RealDisk
from lace.folder.engine import Folder, FolderLimits
from lace.folder.ignoring import IGNORE_FILE, ignoring
from lace.folder.lacetree import FolderPlace
from lace.folder.memory import Memory
from lace.porcelain.lace import Lace
from lace.porcelain.openfolder import OWN
from lace.records.coordinate import parse_prefix
from lace.values import dataclass

SETTINGS = "folder.json"
LACE = "folder.lace"
TOLD = "told.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderSettings:
    """Which lace a folder follows, and where in it."""

    lace: str  # absolute, or relative to `.lace`
    place: FolderPlace
    sign: str | None = None

    def lace_path(self, root: Path) -> Path:
        """Where the lace is."""
        return root / os.fsdecode(OWN) / self.lace


def parse_place(text: str) -> FolderPlace:
    """`//group//app`, or what is below a name, `//group//app//name`."""
    prefix = parse_prefix(text if text.count("//") > 2 or text.endswith("/") else f"{text}//")
    if (
        prefix.group is None
        or prefix.app is None
        or prefix.version is not None
        or (prefix.under and prefix.name is None)
    ):
        message = "a folder is at one group and app, or below a name: //group//app or //group//app//name"
        raise InvalidInput(message, rule="folder-place", found=text)
    return FolderPlace(group=prefix.group, app=prefix.app, name=prefix.name or "")


def read_settings(root: Path) -> FolderSettings | None:
    """What a folder knows of itself; None if it was not set up."""
    path = root / os.fsdecode(OWN) / SETTINGS
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        place = FolderPlace(group=said["group"], app=said["app"], name=said["name"])
        return FolderSettings(lace=said["lace"], place=place, sign=said["sign"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{path} is not what `lace sync` writes: {error}") from None


def write_settings(root: Path, settings: FolderSettings) -> None:
    """Set a folder up."""
    own = root / os.fsdecode(OWN)
    own.mkdir(parents=True, exist_ok=True)
    place = settings.place
    said = {"lace": settings.lace, "group": place.group, "app": place.app, "name": place.name, "sign": settings.sign}
    beside = own / f"{SETTINGS}.new"
    beside.write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")
    beside.replace(own / SETTINGS)


def told_before(root: Path) -> set[str]:
    """The names of what no folder can keep, as people were told before."""
    try:
        return set(json.loads((root / os.fsdecode(OWN) / TOLD).read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, TypeError):
        return set()


def note_told(root: Path, names: Collection[str]) -> None:
    """Remember what people were told, so that they need not be told again; it is only a convenience."""
    (root / os.fsdecode(OWN) / TOLD).write_text(json.dumps(sorted(names)) + "\n", encoding="utf-8")


@contextmanager
def opened_folder(
    root: Path, settings: FolderSettings, lace: Lace, *, limits: FolderLimits | None = None
) -> Iterator[Folder]:
    """A folder that was set up, over its open lace."""
    own = root / os.fsdecode(OWN)
    if not own.is_dir():
        raise NotFound(f"{root} is not a folder of `lace sync`")
    with ExitStack() as stack:
        lock = stack.enter_context((own / "lock").open("w"))
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreError(f"another process is at work on {root}") from None
        yield Folder(
            lace,
            settings.place,
            stack.enter_context(RealDisk(root)),
            stack.enter_context(Memory(own / "agreed")),
            sign=settings.sign,
            ignored=ignoring(root / IGNORE_FILE),
            limits=limits,
            now_ns=lambda: lace.clock.tai().to_unix_ns(),
        )
