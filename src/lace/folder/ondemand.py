"""What a lace shows below a place as a tree of files to look at, whose content may still be elsewhere.

Rule: nothing here writes. A file shows the size and the time that its version says, whether its content is here or not;
content that is not here is fetched when somebody opens the file, and an error says why it cannot be had.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import field

from lace.errors import InvalidText
from lace.folder.disk import FilePath
from lace.folder.lacetree import FolderPlace, LaceTree
from lace.folder.trees import ShownItem
from lace.notation.identifiers import RecordHash
from lace.porcelain.lace import Lace
from lace.porcelain.stretches import ContentStretches
from lace.records.fileform import FileKind, leads_inside, path_of, read_attributes
from lace.records.manifest import content_length
from lace.store.base import StoreCursor
from lace.values import dataclass

Fetch = Callable[[RecordHash], None]
"""Bring the content of a record here; LaceError or OSError says why that is not possible."""
LOOK_AFTER_S = 0.2  # news of the lace is looked for at most so often
BLOCK = 512


@dataclass(frozen=True, slots=True)
class Placeholder:
    """One file, link or folder as `stat` tells of it."""

    kind: FileKind
    executable: bool = False
    size: int = 0
    mtime_ns: int = 0
    here: int = 0  # bytes of it that are in the lace

    @property
    def mode(self) -> int:
        """Its kind and who may do what: nobody writes."""
        if self.kind is FileKind.FOLDER:
            return stat.S_IFDIR | 0o555
        if self.kind is FileKind.LINK:
            return stat.S_IFLNK | 0o777
        return stat.S_IFREG | (0o555 if self.executable else 0o444)

    def stat(self) -> dict[str, int]:
        """The fields of `stat`; blocks are what is here, so `du` tells what a tree takes and `ls -s` which files."""
        return {
            "st_mode": self.mode,
            "st_nlink": 2 if self.kind is FileKind.FOLDER else 1,
            "st_size": self.size,
            "st_blocks": -(-self.here // BLOCK),
            "st_mtime": self.mtime_ns,
            "st_ctime": self.mtime_ns,
            "st_atime": self.mtime_ns,
            "st_uid": os.getuid(),
            "st_gid": os.getgid(),
        }


_FOLDER = Placeholder(FileKind.FOLDER)


@dataclass(slots=True)
class _Tree:
    """What is shown, by path."""

    shown: dict[FilePath, ShownItem] = field(default_factory=dict)
    folders: dict[FilePath, dict[bytes, None]] = field(default_factory=dict)


class OnDemand:
    """A place of a lace as files; every method may be called from any thread."""

    def __init__(self, lace: Lace, place: FolderPlace, fetch: Fetch | None = None) -> None:
        self._lace = lace
        self._fetch = fetch
        self._tree = LaceTree(lace, place, {}, reads_content=False)
        self._shown = _Tree()
        self._looked = 0.0
        self._lock = threading.RLock()
        self._fetching = threading.Lock()  # one at a time: who waits may find that what it wants has come
        self._known: tuple[StoreCursor | None, dict[str, Placeholder]] = (None, {})
        self._open: dict[int, ContentStretches] = {}
        self._last = 0

    def look(self) -> _Tree:
        """The tree as the lace shows it now, or showed it a moment ago."""
        with self._lock:
            now = time.monotonic()
            if now - self._looked >= LOOK_AFTER_S:
                if self._tree.refresh():
                    self._shown = _tree_of(self._tree.shown)
                    self._known = (self._tree.cursor, {})
                self._looked = now
            return self._shown

    def listed(self, path: FilePath) -> Sequence[bytes]:
        """The names in a folder."""
        found = self.look().folders.get(path)
        if found is None:
            raise _error(errno.ENOENT if path not in self._shown.shown else errno.ENOTDIR)
        return list(found)

    def placeholder(self, path: FilePath) -> Placeholder:
        """What is at a path."""
        tree = self.look()
        shown = tree.shown.get(path)
        if shown is None:
            if path in tree.folders:
                return _FOLDER
            raise _error(errno.ENOENT)
        if shown.item.kind is FileKind.FOLDER:
            return _FOLDER
        version = shown.versions[0]
        with self._lock:
            known = self._known[1].get(version)
        if known is None:
            known = self._placeholder_of(RecordHash(version), shown)
            with self._lock:
                self._known[1][version] = known
        return known

    def _placeholder_of(self, version: RecordHash, shown: ShownItem) -> Placeholder:
        record = self._lace.load(version)
        size = content_length(record)
        lacking = self._lace.lacking(version)
        missing = lacking.missing_bytes if lacking is not None else 0
        time_ns = read_attributes(record.parts.headers).time_ns or 0
        return Placeholder(shown.item.kind, shown.item.executable, size, time_ns, max(size - missing, 0))

    def link(self, path: FilePath) -> bytes:
        """Where a link leads; a link that leads out of the tree is none."""
        shown = self.look().shown.get(path)
        if shown is None or shown.item.kind is not FileKind.LINK:
            raise _error(errno.ENOENT if shown is None else errno.EINVAL)
        version = RecordHash(shown.versions[0])
        self._require_here(version)
        target = self._lace.get(version)
        if not leads_inside(path, target):  # 082-LINK-01
            raise _error(errno.EPERM)
        return target

    def open(self, path: FilePath) -> int:
        """Open a file for reading, and fetch what of it is not here; its number for `read` and `release`."""
        shown = self.look().shown.get(path)
        if shown is None or shown.item.kind is not FileKind.FILE:
            raise _error(errno.ENOENT if shown is None and path not in self._shown.folders else errno.EISDIR)
        version = RecordHash(shown.versions[0])
        self._require_here(version)
        content = ContentStretches(self._lace.load(version), self._lace.load, self._lace.limits)
        with self._lock:
            self._last += 1
            self._open[self._last] = content
            return self._last

    def _require_here(self, version: RecordHash) -> None:
        """Fetch what a version lacks; LaceError if it cannot be had."""
        if self._lace.lacking(version) is None:
            return
        with self._fetching:
            lacking = self._lace.lacking(version)
            if lacking is None:
                return
            if self._fetch is not None:
                self._fetch(version)
                lacking = self._lace.lacking(version)
        if lacking is not None:
            raise InvalidText(str(lacking), rule="not-here")

    def read(self, number: int, offset: int, size: int) -> bytes:
        """Some bytes of an open file."""
        with self._lock:
            content = self._open.get(number)
        if content is None:
            raise _error(errno.EBADF)
        return content.read(offset, size)

    def release(self, number: int) -> None:
        """Close a file."""
        with self._lock:
            self._open.pop(number, None)


def _tree_of(shown: dict[str, ShownItem]) -> _Tree:
    """Files by path and the folders that they need; of a file and a folder of one name the folder is shown."""
    tree = _Tree(folders={(): {}})
    for name, one in shown.items():
        try:
            path = path_of(name)
        except InvalidText:
            continue
        for depth in range(len(path)):
            tree.folders.setdefault(path[:depth], {})[path[depth]] = None
        if one.item.kind is FileKind.FOLDER:
            tree.folders.setdefault(path, {})
        else:
            tree.shown[path] = one
    for path in tree.folders.keys() & tree.shown.keys():
        del tree.shown[path]
    return tree


def _error(number: int) -> OSError:
    return OSError(number, os.strerror(number))
