"""What the inspector shows: laces, archives, captured streams, and perhaps a running node.

Rule: the kind of a path is decided by its content, once, when the inspector starts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import field
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar, cast

from lace.errors import StoreError, StoreReplaced
from lace.iltp.markers import KNOT
from lace.inspector.names import Names, ring_names
from lace.people.names import petnames
from lace.porcelain.lace import Lace, open_lace
from lace.store.base import Snapshot, StoreCursor
from lace.store.browsing import Browser
from lace.store.columns.file.openers import is_store_file
from lace.values import dataclass

T = TypeVar("T")
ARCHIVE_MARKS = ("log", "manifest.json", "report.json", "tables")


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectorLimits:
    """What one page may show or take."""

    page_rows: int = 100
    count_to: int = 1000  # folders are counted up to here, and the versions of a name
    versions: int = 20  # on one page of a history
    versions_counted: int = 100_000  # of one coordinate
    linked: int = 12  # records drawn on one side of a graph
    shown_bytes: int = 256 << 10  # of a content, as text or JSON
    hex_bytes: int = 4 << 10
    form_bytes: int = 1 << 20
    answers_kept: int = 4  # evaluations whose rows can be paged through
    told_lines: int = 400  # of a conversation on one page
    exported_records: int = 2000
    surveyed: int = 100_000  # coordinates that the home of a lace counts by writer and by day
    manifests: int = 200  # contents in parts that the home of a lace looks through
    conflicts: int = 50  # coordinates with several writers that the home of a lace judges


@dataclass(slots=True)
class OpenedLace:
    """One lace, its second reader, and cached results about it."""

    slug: str
    path: Path
    lace: Lace
    browser: Browser
    work: Lock = field(default_factory=Lock)  # one evaluation at a time: each may take all memory that limits allow
    _snapshot: tuple[StoreCursor, Snapshot] | None = None
    _names: tuple[object, Names] | None = None
    kept: dict[str, tuple[object, Any]] = field(default_factory=dict)  # what pages worked out, by the state it is of

    @property
    def base(self) -> str:
        """The address of its first page."""
        return f"/lace/{self.slug}"

    def snapshot(self) -> Snapshot:
        """The current facts; cached while the store does not change, so that its columns are joined once."""
        cursor = self.lace.store.cursor()
        kept = self._snapshot
        if kept is None or kept[0] != cursor:
            found = self.lace.store.snapshot()
            kept = self._snapshot = (found.cursor, found)
        return kept[1]

    def names(self) -> Names:
        """The names of keys here; worked out again when records, petnames or the user's ring change."""
        ring = ring_names()
        moment = (self.lace.store.cursor(), ring, petnames(self.lace.store))
        kept = self._names
        if kept is None or kept[0] != moment:
            kept = self._names = (moment, Names.of(self.lace.store, ring))
        return kept[1]

    def while_unchanged(self, what: str, work: Callable[[], T]) -> T:
        """What was worked out before, as long as no record came or went since."""
        moment = self.lace.store.cursor()
        kept = self.kept.get(what)
        if kept is None or kept[0] != moment:
            kept = self.kept[what] = (moment, work())
        return cast("T", kept[1])

    def close(self) -> None:
        """Release the file."""
        self.browser.close()
        self.lace.close()


@dataclass(slots=True)
class Inspected:
    """Everything that one inspector shows."""

    laces: dict[str, OpenedLace] = field(default_factory=dict)
    archives: dict[str, Path] = field(default_factory=dict)
    captures: dict[str, Path] = field(default_factory=dict)
    node: str = ""  # the watch socket of a running node
    write: bool = False
    limits: InspectorLimits = field(default_factory=InspectorLimits)
    _opening: Lock = field(default_factory=Lock)

    def names(self) -> Names:
        """The names for what belongs to no lace: those of the only lace that is open, else those of the ring."""
        if len(self.laces) == 1:
            return self.current(next(iter(self.laces))).names()
        return Names.of(None, ring_names())

    @property
    def only(self) -> str | None:
        """The address of what there is to see, if that is one lace or one thing."""
        places = [f"/lace/{slug}" for slug in self.laces] or [
            *(f"/archive/{name}" for name in self.archives),
            *(f"/capture/{name}" for name in self.captures),
            *(["/node"] if self.node else []),
        ]
        return places[0] if len(places) == 1 else None

    def current(self, slug: str) -> OpenedLace:
        """A lace in its current state; reopened if it was compacted or restored since."""
        with self._opening:
            opened = self.laces[slug]
            try:
                opened.lace.store.cursor()
            except StoreReplaced:
                opened.close()
                lace = open_lace(opened.path, read_only=not self.write)
                opened = self.laces[slug] = _opened(slug, opened.path, lace)
            return opened

    def close(self) -> None:
        """Release every file."""
        for opened in self.laces.values():
            opened.close()


def open_all(
    paths: Sequence[Path], *, node: str = "", write: bool = False, limits: InspectorLimits | None = None
) -> Inspected:
    """Open everything that the paths name; StoreError if one of them cannot be shown."""
    inspected = Inspected(node=node, write=write, limits=limits or InspectorLimits())
    try:
        for path in paths:
            _open(inspected, path)
    except BaseException:
        inspected.close()
        raise
    return inspected


def _open(inspected: Inspected, path: Path) -> None:
    if path.is_dir():
        if not any((path / mark).exists() for mark in ARCHIVE_MARKS):
            error = StoreError(f"{path}: this directory is not an archive: it has none of {', '.join(ARCHIVE_MARKS)}")
            error.add_note("`lace pipeline run --output` makes archives")
            raise error
        inspected.archives[_slug(path, inspected.archives)] = path
        return
    if not path.exists():
        error = StoreError(f"{path}: there is no lace here")
        error.add_note(f"create it with `lace init {path}`")
        raise error
    if is_store_file(path):
        slug = _slug(path, inspected.laces)
        lace = open_lace(path, read_only=not inspected.write)
        inspected.laces[slug] = _opened(slug, path, lace)
        return
    with path.open("rb") as file:
        head = file.read(len(KNOT))
    if head[:1] == b"{" or head.startswith(KNOT):
        inspected.captures[_slug(path, inspected.captures)] = path
    else:
        raise StoreError(f"{path}: neither a lace, nor an archive, nor a captured stream")


def _opened(slug: str, path: Path, lace: Lace) -> OpenedLace:
    try:
        return OpenedLace(slug, path, lace, Browser(path))
    except BaseException:
        lace.close()
        raise


def _slug(path: Path, taken: dict[str, T]) -> str:
    """A short name for addresses: the file's name, numbered if two files share it."""
    plain = re.sub(r"[^a-z0-9]+", "-", path.stem.lower()).strip("-") or "lace"
    found, number = plain, 1
    while found in taken:
        number += 1
        found = f"{plain}-{number}"
    return found
