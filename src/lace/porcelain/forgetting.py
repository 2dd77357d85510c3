"""Forgetting records: they leave a lace for good, and do not come back with an exchange, an import or a backup.

Rule: forgetting is local. Nobody else learns of it, and nobody else's copy is touched; `lace retract` is for that.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lace.errors import InvalidText, NotFound
from lace.notation.identifiers import RecordHash
from lace.porcelain.completeness import unneeded_parts
from lace.records.coordinate import is_place, parse_coordinate
from lace.runtime.host.refusedbefore import forget_refused
from lace.store.forgotten import NAMESPACE, note_forgotten

if TYPE_CHECKING:
    from lace.porcelain.lace import Lace

EMPTY_BLOB = "B.svyLzSM7ffc91i~XDbkMnuOsdjsw_6GrXpTSckqHlpO.H3"  # inside every record without content


class Forgotten(NamedTuple):
    """What was forgotten: the records, and of these how many were stored here; parts that only they needed."""

    records: Sequence[RecordHash]
    removed: int
    parts: int


def forget(lace: Lace, targets: Iterable[str]) -> Forgotten:
    """Remove records, with the parts that only they need, and put them on the list of what is never taken again."""
    store = lace.store
    found = list(dict.fromkeys(record for target in targets for record in _named(lace, target)))
    with store.together():  # so that nobody can store one of them meanwhile
        present = store.present(found)
        parts = unneeded_parts(store, lace.load, [record for record in found if record in present])
        inner = {name for record in (*present, *parts) for name in _inside(lace, record)}
        hidden = inner - {*found, *parts, *store.present([RecordHash(name) for name in inner])}
        store.delete(*present, *parts)
        note_forgotten(store, sorted({*found, *parts, *hidden}))
        forget_refused(store, found)
    return Forgotten(tuple(found), len(present), len(parts))


def _named(lace: Lace, target: str) -> list[RecordHash]:
    """The records that a target means: all versions of a coordinate, or one hash, stored or not."""
    if is_place(target) and (where := parse_coordinate(target)).version is None:
        found = [entry.hash for entry in lace.store.versions(where.group, where.app, where.name)]
        if not found:
            raise NotFound(f"there is no record at {where}", place=str(where))
        return found
    try:
        return [lace.resolve(target)]
    except NotFound:
        if is_place(target):
            raise
        try:
            return [RecordHash.parse(target.removeprefix("////"))]  # it is kept out before it ever comes
        except InvalidText:
            message = f"no record's hash begins with {target}; for one that is not here, give the whole hash"
            raise NotFound(message) from None


def _inside(lace: Lace, record: RecordHash) -> list[str]:
    """The hashes of the records inside a record, which hold the same content and may come by themselves."""
    parts = lace.load(record).parts
    return [name for name in (parts.plex_hash, parts.blob_hash) if name and name != EMPTY_BLOB]


class ForgottenJournal:
    """What a user forgot on this machine, in any lace, so that no older backup brings it back."""

    def __init__(self, home: Path) -> None:
        self.path = home / NAMESPACE

    def read(self) -> frozenset[str]:
        """Every hash in it."""
        try:
            return frozenset(self.path.read_text(encoding="utf-8").split())
        except FileNotFoundError:
            return frozenset()

    def add(self, records: Iterable[str]) -> None:
        """Append hashes."""
        known = self.read()
        lines = "".join(f"{record}\n" for record in records if record not in known)
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with os.fdopen(os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "w") as file:
            file.write(lines)
            file.flush()
            os.fsync(file.fileno())

    def remove(self, records: Iterable[str]) -> None:
        """Take hashes out."""
        gone = set(records)
        kept = "".join(f"{record}\n" for record in sorted(self.read() - gone))
        beside = self.path.with_name(f"{self.path.name}.part")
        beside.write_text(kept, encoding="utf-8")
        beside.chmod(0o600)
        os.replace(beside, self.path)
