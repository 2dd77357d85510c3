"""Records back as files: the tip of every coordinate below a place, written into a folder (110).

Rule: nothing outside the folder is touched, whatever a record is named, and no byte is lost: a file is replaced only if
its content is the content of a stored version, and every path holds its old or its new content at every moment.

A folder is walked by descriptors that follow no symbolic link, so a link inside it leads nowhere. A file that is
replaced is synced before it takes its name; a new one is not, as `cp` does not.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from lace.errors import InvalidInput, InvalidText, LaceError, NotFound
from lace.notation.closing import Closing
from lace.notation.identifiers import RecordHash
from lace.porcelain.content import CHUNK_FOLDER, is_same_content
from lace.porcelain.listing import covered_entries
from lace.porcelain.putting import FileState
from lace.records.coordinate import Prefix, parse_prefix
from lace.records.tip import TipPolicy, choose_tip
from lace.store.base import Entry
from lace.values import dataclass

if TYPE_CHECKING:
    from lace.porcelain.content import Progress
    from lace.porcelain.lace import Lace

_NESTED_MANIFEST = re.compile(rf"/{CHUNK_FOLDER}/[0-9]+\.\.[0-9]+$")
_DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | os.O_CLOEXEC
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | os.O_CLOEXEC
VERSIONS_COMPARED = 64  # stored versions that a differing file is compared with before it counts as somebody's own


@dataclass(frozen=True, slots=True)
class CheckedOut:
    """One record on its way into a folder: where it went, or why it did not."""

    path: Path
    name: str
    hash: RecordHash
    state: FileState
    refused: str = ""


def check_out(
    lace: Lace,
    folder: Path,
    place: str | None = None,
    *,
    policy: TipPolicy,
    replace: bool = False,
    progress: Progress | None = None,
) -> Iterator[CheckedOut]:
    """Write the tip of every coordinate of a place into a folder; a result for each file, given once it is there."""
    prefix = _one_space(lace, place)
    found = False
    with _Folder(folder) as below:
        for tip, versions in _tips(lace, prefix, policy):
            found = True
            name = _relative(prefix, tip.name)
            yield _Writing(lace, below, replace, progress).write(tip, versions, name)
    if not found:
        raise NotFound("no records are stored there", place=str(prefix))


def _one_space(lace: Lace, place: str | None) -> Prefix:
    """The group and app to check out: the one asked for, or the only one that the lace holds."""
    if place is not None:
        prefix = parse_prefix(place if place.count("//") > 2 or place.endswith("/") else f"{place}//")
        if prefix.group is None or prefix.app is None or (prefix.under and prefix.name is None) or prefix.version:
            message = "check out one group and app, or what is below a name: //group//app or //group//app//name"
            raise InvalidText(message, rule="checkout-place", found=place)
        if prefix.name is not None and not prefix.under and next(covered_entries(lace.store, prefix), None) is None:
            return Prefix(group=prefix.group, app=prefix.app, name=prefix.name, under=True)
        return prefix
    spaces = []
    for space, _ in groupby(lace.store.entries(), lambda entry: (entry.group, entry.app)):
        spaces.append(space)
        if len(spaces) > 1:
            named = " and ".join(f"//{group}//{app}" for group, app in spaces)
            raise InvalidInput(
                "this lace holds several groups or apps: say which one", rule="checkout-place", found=named
            )
    if not spaces:
        raise NotFound("this lace holds no files")
    return Prefix(group=spaces[0][0], app=spaces[0][1])


def _tips(lace: Lace, prefix: Prefix, policy: TipPolicy) -> Iterator[tuple[Entry, list[Entry]]]:
    """The tip of each coordinate, with the newest of its versions."""
    for name, together in groupby(covered_entries(lace.store, prefix), lambda entry: entry.name):
        if _NESTED_MANIFEST.search(name):  # a part of the content that stands beside it
            continue
        tip = None
        is_plain = True
        newest: deque[Entry] = deque(maxlen=VERSIONS_COMPARED)
        for version in together:  # oldest first, so the last that may be the tip is it
            newest.append(version)
            tip = choose_tip([version], policy) or tip
            is_plain = is_plain and not version.withdraws
        if tip is not None and not is_plain:
            tip = choose_tip(lace.store.newest_first(tip.group, tip.app, tip.name), policy)
        if tip is not None:
            yield tip, list(newest)


def _relative(prefix: Prefix, name: str) -> str:
    """The path of a record's file below the folder: what its name says beyond the place that was asked for."""
    if prefix.name is None:
        return name
    return name.removeprefix(f"{prefix.name}/") if prefix.under else name.rpartition("/")[2]


class _Folder(Closing):
    """An open folder and the open folders on the way to the file that is written now.

    Records come in the order of their names, so neighbours share most of the way. At most as many folders are
    open as a path has parts.
    """

    def __init__(self, path: Path) -> None:
        if os.open not in os.supports_dir_fd:
            raise InvalidInput("checking out needs a system that opens files below an open folder", rule="platform")
        path.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._root = os.open(path, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | os.O_CLOEXEC)
        self._way: list[tuple[str, int]] = []

    def parent(self, parts: list[str]) -> int:
        """The descriptor of a folder below this one, made if need be; OSError if a link or a file is in the way."""
        shared = 0
        while shared < min(len(parts), len(self._way)) and self._way[shared][0] == parts[shared]:
            shared += 1
        self._leave(shared)
        for part in parts[shared:]:
            above = self._way[-1][1] if self._way else self._root
            with suppress(FileExistsError):
                os.mkdir(part, dir_fd=above)
            self._way.append((part, os.open(part, _DIRECTORY, dir_fd=above)))
        return self._way[-1][1] if self._way else self._root

    def _leave(self, keep: int) -> None:
        while len(self._way) > keep:
            os.close(self._way.pop()[1])

    def close(self) -> None:
        """Let go of every descriptor; a second time does nothing."""
        self._leave(0)
        if self._root >= 0:
            os.close(self._root)
            self._root = -1


@dataclass(frozen=True, slots=True)
class _Writing:
    """How one file is written."""

    lace: Lace
    below: _Folder
    replace: bool
    progress: Progress | None

    def write(self, tip: Entry, versions: list[Entry], name: str) -> CheckedOut:
        """Bring one file up to date; what became of it."""
        path = self.below.path / name
        try:
            state, why = self._bring(tip, versions, name)
        except LaceError as error:
            state, why = FileState.REFUSED, str(error)
        except OSError as error:
            state, why = FileState.REFUSED, _in_the_way(error)
        return CheckedOut(path, tip.name, tip.hash, state, why)

    def _bring(self, tip: Entry, versions: list[Entry], name: str) -> tuple[FileState, str]:
        *folders, file_name = name.split("/")
        parent = self.below.parent(folders)
        mode = None
        try:
            there = os.open(file_name, _READ, dir_fd=parent)
        except FileNotFoundError:
            pass
        else:
            with os.fdopen(there, "rb") as file:
                mode = os.fstat(file.fileno()).st_mode
                if not stat.S_ISREG(mode):
                    return FileState.REFUSED, "something that is not a regular file has this path"
                if self._has(tip, file):
                    return FileState.UNCHANGED, ""
                if not self.replace and not any(self._has(version, file) for version in versions):
                    return FileState.REFUSED, "the file has content that this lace does not hold"
        self._put_in_place(tip, parent, file_name, mode)
        return (FileState.NEW if mode is None else FileState.CHANGED), ""

    def _has(self, version: Entry, file: BinaryIO) -> bool:
        record = self.lace.load(version.hash)
        return is_same_content(record, file, load=self.lace.load, limits=self.lace.limits)

    def _put_in_place(self, tip: Entry, parent: int, file_name: str, mode: int | None) -> None:
        """Write beside, then rename: the path never holds half a file."""
        beside = f".lace-{os.getpid()}-{tip.id}.part"
        with ExitStack() as on_failure:
            descriptor = os.open(beside, _CREATE, 0o666, dir_fd=parent)
            on_failure.callback(_remove, beside, parent)
            with os.fdopen(descriptor, "wb") as file:
                for piece in self.lace.content(tip.hash):
                    file.write(piece)
                    if self.progress is not None:
                        self.progress(len(piece))
                if mode is not None:
                    os.fchmod(file.fileno(), stat.S_IMODE(mode))
                    file.flush()
                    os.fsync(file.fileno())
            os.rename(beside, file_name, src_dir_fd=parent, dst_dir_fd=parent)
            on_failure.pop_all()


def _remove(name: str, parent: int) -> None:
    with suppress(OSError):
        os.unlink(name, dir_fd=parent)


def _in_the_way(error: OSError) -> str:
    if isinstance(error, NotADirectoryError) or error.errno == errno.ELOOP:
        return "a file or a symbolic link is in the way"
    return error.strerror or str(error)
