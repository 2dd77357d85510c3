"""The agreed tree as a file: what both sides were when they were last the same, and how the disk looked then.

Rule: only ever appended to, a line for each observation; a line that was cut short counts as not written. What is lost
with it is only knowledge: a later look finds out again what is equal, and what is not equal is kept twice.

A folder may have a million files, so what is known of one is kept as it is written, and read when somebody asks.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from lace.errors import StoreError
from lace.folder.trees import Item, ShownItem
from lace.notation.closing import Closing
from lace.notation.digest import digest
from lace.records.fileform import FileKind

_HEAD = "lace-folder 1"
_GONE = b"-"
_LOOKED = 5  # fields of a line before those that say how a file looked
_SLACK = 1_000  # lines that no longer count before the file is written again


class Signature(NamedTuple):
    """How a file looked when its content was read; a file that looks the same has the same content."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


class AgreedTree(Mapping[str, ShownItem]):
    """What both sides agreed on, by name; each is read from its line when it is asked for."""

    def __init__(self, lines: Mapping[str, bytes]) -> None:
        self._lines = lines

    def __getitem__(self, name: str) -> ShownItem:
        content, kind, executable, versions, beside, *_ = self._lines[name].decode().split("\t")
        return ShownItem(Item(content, FileKind(kind), executable == "x"), tuple(versions.split(" ")), beside)

    def __contains__(self, name: object) -> bool:
        return name in self._lines

    def __iter__(self) -> Iterator[str]:
        return iter(self._lines)

    def __len__(self) -> int:
        return len(self._lines)


class Memory(Closing):
    """The agreed tree of one folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: dict[str, bytes] = {}  # by name, its line without name and check
        self.agreed = AgreedTree(self._known)
        self.moment = ""  # of the lace, when both were at rest
        self._lines = 0
        good = self._load()
        self._file = path.open("a", encoding="utf-8", newline="\n")
        self._file.truncate(good)
        if not good:
            self._append(_HEAD)
        elif self._lines > 2 * len(self._known) + _SLACK:
            self._rewrite()

    @property
    def folder(self) -> str:
        """A name for the folder on this machine, which a copy of it does not have."""
        return digest(os.fsencode(self.path.resolve())).hex()[:24]

    def _load(self) -> int:
        """Read what is there; how many bytes of it are whole lines."""
        good = 0
        try:
            file = self.path.open("rb")
        except FileNotFoundError:
            return 0
        with file:
            for line in file:
                text, _, check = line[:-1].rpartition(b"\t")
                if not line.endswith(b"\n") or check != b"%08x" % crc32(text):
                    break
                if good or text != _HEAD.encode():
                    self._note(text)
                good += len(line)
                self._lines += 1
        return good

    def _note(self, text: bytes) -> None:
        name, _, said = text.partition(b"\t")
        if not name:
            self.moment = said.decode()
            return
        self.moment = ""  # what was agreed on later was not yet so at that moment
        if said == _GONE:
            self._known.pop(name.decode(), None)
        else:
            self._known[name.decode()] = said

    def agree(self, name: str, shown: ShownItem | None, looked: Signature | None) -> None:
        """Note what both sides are now; None: the path is gone on both."""
        self.moment = ""
        if shown is None:
            self._known.pop(name, None)
        else:
            item = shown.item
            mode, versions = "x" if item.executable else "", " ".join(shown.versions)
            parts = (item.content, item.kind, mode, versions, shown.beside, *map(str, looked or ()))
            self._known[name] = "\t".join(parts).encode()
        self._append(self._line(name))

    def looked(self, name: str) -> Signature | None:
        """How the disk looked when both sides agreed; None if that does not say what is in the file."""
        found = self._known[name].split(b"\t")[_LOOKED:] if name in self._known else []
        return Signature(*map(int, found)) if found else None

    def is_as(self, name: str, kind: FileKind, executable: bool | None, looked: Signature) -> bool:
        """Whether what is on disk is what both sides agreed on, by its looks; `executable` if the disk can tell."""
        known = self._known.get(name)
        if known is None:
            return False
        _, agreed_kind, mode, rest = known.split(b"\t", 3)
        if agreed_kind.decode() != kind:
            return False
        if kind is FileKind.FOLDER:
            return True
        is_same_mode = executable is None or (mode == b"x") == executable
        return is_same_mode and rest.endswith(b"\t%d\t%d\t%d\t%d" % looked)

    def contested(self) -> Iterator[tuple[str, str]]:
        """The names of files that show another version of a file beside it, each with the name of that one."""
        for name, known in self._known.items():
            beside = known.split(b"\t", 5)[4]
            if beside:
                yield name, beside.decode()

    def at_rest(self, moment: str) -> None:
        """Note that nothing is left to do at a moment of the lace; empty while something is."""
        if moment != self.moment:
            self.moment = moment
            self._append(f"\t{moment}")

    def _line(self, name: str) -> str:
        return f"{name}\t{self._known.get(name, _GONE).decode()}"

    def _append(self, text: str) -> None:
        with self._errors():
            self._file.write(_checked(text))
        self._lines += 1

    def flush(self) -> None:
        """Hand everything to the system, so that it outlives this process."""
        with self._errors():
            self._file.flush()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            message = (
                f"{self.path}: {error.strerror}; the files are as they should be, and the next run compares them again"
            )
            raise StoreError(message) from None

    def _rewrite(self) -> None:
        beside = self.path.with_suffix(".new")
        with beside.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(_checked(line) for line in self._all_lines())
            file.flush()
            os.fsync(file.fileno())
        self._file.close()
        beside.replace(self.path)
        self._file = self.path.open("a", encoding="utf-8", newline="\n")

    def _all_lines(self) -> Iterator[str]:
        yield _HEAD
        yield from map(self._line, self._known)
        yield f"\t{self.moment}"

    def forget(self, names: Mapping[str, object]) -> None:
        """Agree on nothing for some names: both sides count, and where they differ both are kept."""
        for name in names:
            self.agree(name, None, None)

    def close(self) -> None:
        """Keep what was noted; a second time does nothing."""
        if self._file.closed:
            return
        try:
            with self._errors():
                self._file.flush()
                os.fsync(self._file.fileno())
        finally:
            with suppress(OSError):  # it would write once more what could not be written
                self._file.close()


def _checked(text: str) -> str:
    return f"{text}\t{crc32(text.encode()):08x}\n"
