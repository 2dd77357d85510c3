"""Records back as files: the tip of every coordinate below a place, written into a folder (110).

Rule: nothing outside the folder is touched, whatever a record is named, and no byte is lost: a file is replaced only if
its content is the content of a stored version, and every path holds its old or its new content at every moment.

A folder is walked by descriptors that follow no symbolic link, so a link inside it leads nowhere. A file that is
replaced is synced before it takes its name; a new one is not, as `cp` does not.
"""

from __future__ import annotations

import os
import re
import stat
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from lace.errors import InvalidInput, InvalidText, LaceError, NotFound
from lace.notation.identifiers import RecordHash
from lace.porcelain.bulkreading import RECORDS_AT_ONCE, ReadContent, contents
from lace.porcelain.content import CHUNK_FOLDER, is_same_content
from lace.porcelain.listing import covered_entries
from lace.porcelain.openfolder import (
    CREATE,
    NAME_OF_OURS,
    READ,
    OpenFolder,
    in_the_way,
    is_ours,
    name_beside,
    with_executable,
    write_all,
)
from lace.porcelain.putting import FileState
from lace.records.coordinate import Prefix, parse_prefix
from lace.records.fileform import Attributes, FileKind, leads_inside, path_of, read_attributes
from lace.records.tip import TipPolicy, choose_tip
from lace.store.base import Entry
from lace.values import dataclass

if TYPE_CHECKING:
    from lace.porcelain.content import Progress
    from lace.porcelain.lace import Lace
    from lace.records.model import ValidRecord

_NESTED_MANIFEST = re.compile(rf"/{CHUNK_FOLDER}/[0-9]+\.\.[0-9]+$")
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
    with OpenFolder(folder) as below:
        writing = _Writing(lace, below, replace, progress)
        tips = _tips(lace, prefix, policy)
        while some := list(islice(tips, RECORDS_AT_ONCE)):
            found = True
            read = contents(lace.store, [tip.hash for tip, _ in some], lace.limits)
            for (tip, versions), content in zip(some, read, strict=True):
                yield writing.write(tip, versions, _relative(prefix, tip.name), content)
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


@dataclass(frozen=True, slots=True)
class _Writing:
    """How one file is written."""

    lace: Lace
    below: OpenFolder
    replace: bool
    progress: Progress | None

    def write(self, tip: Entry, versions: list[Entry], name: str, read: ReadContent | None) -> CheckedOut:
        """Bring one file up to date; what became of it."""
        where = name
        try:
            parts = path_of(name)
            where = os.fsdecode(b"/".join(parts))
            if is_ours(parts):  # what `lace sync` believes of a folder is not for others to write
                raise InvalidText(NAME_OF_OURS, rule="file-name")
            state, why = self._bring(tip, versions, parts, read)
        except LaceError as error:
            state, why = FileState.REFUSED, str(error)
        except OSError as error:
            state, why = FileState.REFUSED, in_the_way(error)
        return CheckedOut(self.below.path / where, tip.name, tip.hash, state, why)

    def _bring(
        self, tip: Entry, versions: list[Entry], parts: tuple[bytes, ...], read: ReadContent | None
    ) -> tuple[FileState, str]:
        record, pieces = (self.lace.load(tip.hash), None) if read is None else read
        said = read_attributes(record.parts.headers)
        if said.kind is FileKind.FOLDER:
            return self._folder(parts), ""
        parent = self.below.parent(parts[:-1])
        if said.kind is FileKind.LINK:
            return self._link(b"".join(self.lace.content(tip.hash)), parts, parent)
        mode = None
        try:
            there = os.open(parts[-1], READ, dir_fd=parent)
        except FileNotFoundError:
            pass
        else:
            with os.fdopen(there, "rb") as file:
                mode = os.fstat(file.fileno()).st_mode
                if not stat.S_ISREG(mode):
                    return FileState.REFUSED, "something that is not a regular file has this path"
                if self._has(record, file):
                    return self._mode(file.fileno(), mode, said), ""
                if not self.replace and not any(self._has(self.lace.load(one.hash), file) for one in versions):
                    return FileState.REFUSED, "the file has content that this lace does not hold"
        self._put_in_place(tip, parent, parts[-1], mode, said, pieces)
        return (FileState.NEW if mode is None else FileState.CHANGED), ""

    def _folder(self, parts: tuple[bytes, ...]) -> FileState:
        parent = self.below.parent(parts[:-1])
        try:
            os.mkdir(parts[-1], dir_fd=parent)
        except FileExistsError:
            self.below.parent(parts)  # it is a folder, or OSError
            return FileState.UNCHANGED
        return FileState.NEW

    def _link(self, target: bytes, parts: tuple[bytes, ...], parent: int) -> tuple[FileState, str]:
        if not leads_inside(parts, target):  # 082-LINK-01
            return FileState.REFUSED, "it is a link that leads out of the folder"
        try:
            os.symlink(target, parts[-1], dir_fd=parent)
        except FileExistsError:
            with suppress(OSError):
                if os.readlink(parts[-1], dir_fd=parent) == target:
                    return FileState.UNCHANGED, ""
            return FileState.REFUSED, "something else has this path"
        return FileState.NEW, ""

    def _has(self, version: ValidRecord, file: BinaryIO) -> bool:
        return is_same_content(version, file, load=self.lace.load, limits=self.lace.limits)

    def _mode(self, descriptor: int, mode: int, said: Attributes) -> FileState:
        """Let the owner execute a file whose content is right, or no longer."""
        wanted = with_executable(mode, executable=said.executable)
        if wanted == stat.S_IMODE(mode):
            return FileState.UNCHANGED
        os.fchmod(descriptor, wanted)
        return FileState.CHANGED

    def _put_in_place(
        self, tip: Entry, parent: int, file_name: bytes, mode: int | None, said: Attributes,
        pieces: Iterable[memoryview] | None,
    ) -> None:  # fmt: skip
        """Write beside, then rename: the path never holds half a file."""
        beside = name_beside(tip.id)
        descriptor = os.open(beside, CREATE, 0o777 if said.executable else 0o666, dir_fd=parent)
        try:
            try:
                for piece in self.lace.content(tip.hash) if pieces is None else pieces:
                    write_all(descriptor, piece)
                    if self.progress is not None:
                        self.progress(len(piece))
                if said.time_ns is not None:
                    os.utime(descriptor, ns=(said.time_ns, said.time_ns))
                if mode is not None:
                    os.fchmod(descriptor, with_executable(mode, executable=said.executable))
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)
            os.rename(beside, file_name, src_dir_fd=parent, dst_dir_fd=parent)
        except BaseException:
            _remove(beside, parent)
            raise


def _remove(name: bytes, parent: int) -> None:
    with suppress(OSError):
        os.unlink(name, dir_fd=parent)
