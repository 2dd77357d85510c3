"""The agreed tree as a file: what both sides were when they were last the same, and how the disk looked then.

Rule: only ever appended to, a line for each observation; a line that was cut short counts as not written. What is lost
with it is only knowledge: a later look finds out again what is equal, and what is not equal is kept twice.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from lace.folder.trees import Item, ShownItem
from lace.notation.closing import Closing
from lace.notation.digest import digest
from lace.records.fileform import FileKind

_HEAD = "lace-folder 1"
_SLACK = 1_000  # lines that no longer count before the file is written again


class Signature(NamedTuple):
    """How a file looked when its content was read; a file that looks the same has the same content."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


class Memory(Closing):
    """The agreed tree of one folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.agreed: dict[str, ShownItem] = {}
        self.looked: dict[str, Signature] = {}
        self.moment = ""  # of the lace, when both were at rest
        self._lines = 0
        good = self._load()
        self._file = path.open("a", encoding="utf-8", newline="\n")
        self._file.truncate(good)
        if not good:
            self._append(_HEAD)
        elif self._lines > 2 * len(self.agreed) + _SLACK:
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
                    self._note(text.decode())
                good += len(line)
                self._lines += 1
        return good

    def _note(self, text: str) -> None:
        name, *rest = text.split("\t")
        if not name:
            self.moment = rest[0]
            return
        self.moment = ""  # what was agreed on later was not yet so at that moment
        if len(rest) == 1:
            self.agreed.pop(name, None)
            self.looked.pop(name, None)
        else:
            content, kind, executable, versions, beside, *looked = rest
            self.agreed[name] = ShownItem(
                Item(content, FileKind(kind), executable == "x"), tuple(versions.split(" ")), beside
            )
            if looked:
                self.looked[name] = Signature(*map(int, looked))
            else:
                self.looked.pop(name, None)

    def agree(self, name: str, shown: ShownItem | None, looked: Signature | None) -> None:
        """Note what both sides are now; None: the path is gone on both."""
        self.moment = ""
        if shown is None:
            self.agreed.pop(name, None)
            self.looked.pop(name, None)
        else:
            self.agreed[name] = shown
            if looked is None:
                self.looked.pop(name, None)
            else:
                self.looked[name] = looked
        self._append(self._line(name))

    def at_rest(self, moment: str) -> None:
        """Note that nothing is left to do at a moment of the lace; empty while something is."""
        if moment != self.moment:
            self.moment = moment
            self._append(f"\t{moment}")

    def _line(self, name: str) -> str:
        shown = self.agreed.get(name)
        if shown is None:
            return f"{name}\t-"
        item, looked = shown.item, self.looked.get(name, ())
        parts = (name, item.content, item.kind, "x" if item.executable else "", " ".join(shown.versions), shown.beside)
        return "\t".join([*parts, *map(str, looked)])

    def _append(self, text: str) -> None:
        self._file.write(_checked(text))
        self._lines += 1

    def flush(self) -> None:
        """Hand everything to the system, so that it outlives this process."""
        self._file.flush()

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
        yield from map(self._line, self.agreed)
        yield f"\t{self.moment}"

    def forget(self, names: Mapping[str, object]) -> None:
        """Agree on nothing for some names: both sides count, and where they differ both are kept."""
        for name in names:
            self.agree(name, None, None)

    def close(self) -> None:
        """Keep what was noted; a second time does nothing."""
        if not self._file.closed:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()


def _checked(text: str) -> str:
    return f"{text}\t{crc32(text.encode()):08x}\n"
