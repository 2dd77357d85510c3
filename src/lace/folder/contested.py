"""What a coordinate's heads put into a folder: the newest at its path, each other beside it (082-HEAD-04).

Rule: pure. The name of a file beside another follows from the record alone, so every folder chooses the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from lace.errors import InvalidText
from lace.folder.trees import Item, ShownItem
from lace.limits import SECOND_NS
from lace.notation.tai import TAI
from lace.records.fileform import name_of, path_of
from lace.records.heads import heads_of
from lace.records.tip import tip_order
from lace.values import dataclass

_LONGEST = 255  # bytes of a part that file systems take


@dataclass(frozen=True, slots=True)
class KnownVersion:
    """A stored version of a file."""

    hash: str
    tai: str
    signer: str | None
    bases: tuple[str, ...] | None
    meaning: Item | None  # None: a retraction


def shown_of(name: str, versions: Iterable[KnownVersion]) -> dict[str, ShownItem]:
    """What the versions of one coordinate put into the folder, by name; nothing if they were retracted."""
    groups = heads_of(versions)
    gone = [version for group in groups for version in group if version.meaning is None]
    found: dict[str, ShownItem] = {}
    for group in groups:
        first = group[0]
        if first.meaning is None:
            continue
        hashes = tuple(version.hash for version in group)
        if not found:
            is_withdrawn = any(tip_order(version) > tip_order(first) for version in gone)
            hashes += tuple(version.hash for version in gone)
            found[name] = ShownItem(first.meaning, hashes, is_withdrawn=is_withdrawn)
        elif (beside := beside_name(name, first)) is not None:
            found[beside] = ShownItem(first.meaning, hashes, name)
    return found


def beside_name(name: str, version: KnownVersion) -> str | None:
    """The name of the file that shows a version beside another; None for a Name without a path.

    >>> beside_name("a/b.txt", KnownVersion("P.abcdefgh", "1640995237:000000000", None, None, None))
    'a/b (conflict 2022-01-01 00.00.00 unsigned abcdef).txt'
    """
    try:
        *above, last = path_of(name)
    except InvalidText:
        return None
    moment = datetime.fromtimestamp(TAI(version.tai).to_unix_ns() // SECOND_NS, UTC).strftime("%Y-%m-%d %H.%M.%S")
    writer = version.signer[2:10] if version.signer else "unsigned"
    dot = last.rfind(b".")
    stem, ending = (last[:dot], last[dot:]) if dot > 0 and len(last) - dot <= 16 else (last, b"")
    added = f" (conflict {moment} {writer} {version.hash[2:8]})".encode() + ending
    return name_of([*above, _cut(stem, _LONGEST - len(added)) + added])


def _cut(stem: bytes, size: int) -> bytes:
    """The beginning of a name, without half a character."""
    if len(stem) <= size:
        return stem
    stem = stem[:size]
    try:
        stem.decode()
    except UnicodeDecodeError as error:
        return stem[: error.start] if error.end == len(stem) and error.start >= len(stem) - 3 else stem
    return stem


def contested(names: Iterable[tuple[str, ShownItem]]) -> dict[str, list[tuple[str, ShownItem]]]:
    """Contested files with what is beside them."""
    found: dict[str, list[tuple[str, ShownItem]]] = {}
    for name, shown in names:
        if shown.beside:
            found.setdefault(shown.beside, []).append((name, shown))
    return found
