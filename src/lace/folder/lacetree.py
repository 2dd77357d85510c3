"""The lace tree: what the versions below a place put into a folder, followed from record to record.

Rule: only what is new in the lace is read; a version that both sides agreed on is known without reading it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from os import urandom

from lace.folder.contested import KnownVersion, shown_of
from lace.folder.trees import Item, ShownItem
from lace.notation.digest import hasher
from lace.notation.identifiers import RecordHash
from lace.people.standing import PEOPLE_APPS
from lace.porcelain.bulkreading import RECORDS_AT_ONCE, loaded
from lace.porcelain.lace import Lace
from lace.records.fileform import Attributes, FileKind, bases_of, read_attributes
from lace.records.manifest import content_length, full_hash, is_manifest
from lace.records.model import ValidRecord
from lace.records.retraction import ALL
from lace.records.tip import EVERYBODYS, TipPolicy
from lace.store.base import Entry, StoreCursor
from lace.values import dataclass

_NESTED = "/chunks/"
MARKS = "folder-rest"  # of settings: a key for each folder
_MANY = 1_000  # new records that are read one by one


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderPlace:
    """Where the records of a folder are: a group, an app and, if wanted, the beginning of a Name."""

    group: str
    app: str
    name: str = ""

    def full(self, name: str) -> str:
        """The Name of the record of a path."""
        return f"{self.name}/{name}" if self.name else name

    def relative(self, name: str) -> str | None:
        """What a Name says beyond the place; None if it is not below it, or a part of a content."""
        if self.name:
            if not name.startswith(f"{self.name}/"):
                return None
            name = name[len(self.name) + 1 :]
        return None if _NESTED in f"/{name}" and _is_nested(name) else name

    def __str__(self) -> str:
        return f"//{self.group}//{self.app}" + (f"//{self.name}" if self.name else "")


def _moment(cursor: StoreCursor, drawn: str) -> str:
    return f"{cursor.record}/{cursor.removal}/{drawn}"


def _is_nested(name: str) -> bool:
    above, _, last = name.rpartition("/")
    start, dots, end = last.partition("..")
    return (above == "chunks" or above.endswith("/chunks")) and bool(dots) and start.isdigit() and end.isdigit()


class LaceTree:
    """What a lace shows below a place."""

    def __init__(
        self, lace: Lace, place: FolderPlace, agreed: Mapping[str, ShownItem], *, reads_content: bool = True
    ) -> None:
        self._lace = lace
        self._reads_content = reads_content
        self._place = place
        self._agreed = agreed
        self._known: dict[str, Item] | None = None
        self._stored: dict[str, str] = {}  # the names of the versions that this folder stored since it looked here
        self._cursor: StoreCursor | None = None
        self._shown_at: dict[str, tuple[str, ...]] = {}  # by name the names of what it shows, itself and those beside
        self._shown: dict[str, ShownItem] = {}
        self._rests = False  # at what was agreed, which was not taken over yet
        self.contested: dict[str, list[KnownVersion]] = {}  # all versions of the files that have several heads

    @property
    def shown(self) -> dict[str, ShownItem]:
        """What the lace shows, by name."""
        if self._rests:
            self._rests = False
            for name, shown in self._agreed.items():
                self._shown[name] = shown
                of = shown.beside or name
                self._shown_at[of] = (*self._shown_at.get(of, ()), name)
        return self._shown

    def _items(self) -> dict[str, Item]:
        """What is known of versions without reading them: those that both sides agreed on, and those stored here."""
        if self._known is None:
            self._known = {shown.versions[0]: shown.item for shown in self._agreed.values()}
        return self._known

    def refresh(self) -> bool:
        """Read what is new; whether something was."""
        now = self._lace.store.cursor()
        if now == self._cursor:
            return False
        before, self._cursor = self._cursor, now
        names = None if before is None or before.removal != now.removal else self._new_names(before)
        policy = self._lace.tip_policy()
        self._stored.clear()
        if names is None or len(names) > _MANY + len(self.shown) // 8:  # listing everything is quicker
            self.shown.clear()
            self._shown_at.clear()
            self.contested.clear()
            entries = self._lace.store.entries(self._place.group, self._place.app, self._place.name)
            groups = (list(together) for _, together in groupby(entries, lambda entry: entry.name))
        else:
            place = self._place.group, self._place.app
            groups = (found for name in names if (found := self._lace.store.versions(*place, name)))
        while some := list(islice(groups, RECORDS_AT_ONCE)):
            self._show_all(some, policy)
        return True

    def _show_all(self, groups: Sequence[list[Entry]], policy: TipPolicy) -> None:
        """Show the versions of some coordinates, each with its own, and read together what is not known of them."""
        known = self._items()
        wanted = [entry.hash for found in groups for entry in found if entry.hash not in known or len(found) > 1]
        records = loaded(self._lace.store, wanted, self._lace.limits)
        for found in groups:
            self._show(found[0].name, found, policy, records)

    @property
    def cursor(self) -> StoreCursor | None:
        """What was read last."""
        return self._cursor

    def mark(self, folder: str) -> str:
        """Leave a mark in the lace by which `rest_at` knows what was read last; it stands for a folder's last one.

        A cursor alone would not do: a lace that came back from an old copy may have come to the same numbers by
        another way.
        """
        assert self._cursor is not None
        drawn = urandom(12).hex()
        self._lace.store.put_setting(MARKS, folder, drawn.encode())
        return _moment(self._cursor, drawn)

    def is_at(self, moment: str) -> bool:
        """Whether a mark was left at what was read last."""
        return self._cursor is not None and moment.rpartition("/")[0] == _moment(self._cursor, "").rpartition("/")[0]

    def rest_at(self, folder: str, moment: str) -> bool:
        """Take what was agreed for what the lace shows, if nothing was left to do at a mark and nothing came since."""
        cursor = self._lace.store.cursor()
        drawn = self._lace.store.get_setting(MARKS, folder)
        if drawn is None or moment != _moment(cursor, drawn.decode()):
            return False
        if self._cursor is None:
            self._cursor, self._rests = cursor, True
        return True

    def stored(self, name: str, shown: ShownItem) -> None:
        """Know a version that this folder stores, so that it need not be read again."""
        self._items()[shown.versions[0]] = shown.item
        self._stored[shown.versions[0]] = self._place.full(name)

    def _new_names(self, since: StoreCursor) -> set[str] | None:
        names = set()
        read = 0
        for _, record in self._lace.store.records_since(since.record):
            own = self._stored.get(record)
            if own is not None:
                names.add(own)
            elif record.type != "B":
                read += 1
                if read > _MANY:
                    return None
                parts = self._lace.load(record).parts
                if parts.group == self._place.group and parts.app in PEOPLE_APPS:
                    return None  # who may write here may be others now, so any name may show another version
                if (parts.group, parts.app) == (self._place.group, self._place.app):
                    names.add(parts.name)
        return names

    def _show(self, full: str, entries: list[Entry], policy: TipPolicy, records: Mapping[str, ValidRecord]) -> None:
        name = self._place.relative(full)
        if name is None:
            return
        admitted = [entry for entry in reversed(entries) if policy.admits(entry)]
        if len(admitted) > 1 or (admitted and admitted[0].withdraws):
            admitted = list(_within_reach(list(_unless_named_as_withdrawn(admitted, policy)), policy))
        alone = self._items().get(admitted[0].hash) if len(admitted) == 1 else None
        if alone is not None and name not in self._shown_at and name not in self.shown:
            self.shown[name] = ShownItem(alone, (admitted[0].hash,))
            self._shown_at[name] = (name,)
            self.contested.pop(name, None)
            return
        if alone is not None:
            versions = [KnownVersion(admitted[0].hash, admitted[0].tai, admitted[0].signer, None, alone)]
        else:
            versions = [self._version(entry, records) for entry in admitted]
        for old in self._shown_at.pop(name, ()):
            if (there := self.shown.get(old)) is not None and (old == name or there.beside == name):
                del self.shown[old]
        found = shown_of(name, versions)
        for at, shown in found.items():
            if not shown.beside or at not in self.shown or self.shown[at].beside:  # a file of its own comes first
                self.shown[at] = shown
        if found:
            self._shown_at[name] = tuple(found)
        if len(found) > 1:
            self.contested[name] = versions
        else:
            self.contested.pop(name, None)

    def _version(self, entry: Entry, records: Mapping[str, ValidRecord]) -> KnownVersion:
        record = records.get(entry.hash) or self._lace.load(entry.hash)
        headers = record.parts.headers
        meaning = None if entry.withdraws == (ALL,) else self._item(record)
        return KnownVersion(entry.hash, entry.tai, entry.signer, bases_of(headers), meaning)

    def _item(self, record: ValidRecord) -> Item:
        known = self._items().get(record.hash)
        return known if known is not None else item_of(self._lace, record, reads_content=self._reads_content)


def _within_reach(newest_first: Sequence[Entry], policy: TipPolicy) -> Iterator[Entry]:
    """The versions but those that a retraction of everything withdraws without touching what others wrote (083)."""
    gone: set[str] = set()
    for place, entry in enumerate(newest_first):
        reach = policy.reach(entry)
        if reach in gone:
            continue
        older = newest_first[place + 1 :] if entry.withdraws == (ALL,) and reach != EVERYBODYS else ()
        if any(not one.withdraws and policy.reach(one) != reach for one in older):
            gone.add(reach)
        else:
            yield entry


def _unless_named_as_withdrawn(newest_first: Iterable[Entry], policy: TipPolicy) -> Iterator[Entry]:
    """The versions but those that a retraction withdraws by their hash, and such retractions themselves (081)."""
    withdrawn: set[tuple[str, str]] = set()
    for entry in newest_first:
        reach = policy.reach(entry)
        if (entry.hash, reach) in withdrawn:
            continue
        if entry.withdraws and entry.withdraws != (ALL,):
            withdrawn.update((record, reach) for record in entry.withdraws)
        else:
            yield entry


def item_of(lace: Lace, record: ValidRecord, *, reads_content: bool = True) -> Item:
    """What a record puts into a folder; content that states no hash is read, or stands for itself."""
    said: Attributes = read_attributes(record.parts.headers)
    if said.kind is FileKind.FOLDER:
        return Item("", FileKind.FOLDER)
    if not reads_content and is_manifest(record):
        return Item(full_hash(record) or record.hash, said.kind, said.executable)
    return Item(_content_id(lace, record), said.kind, said.executable)


def _content_id(lace: Lace, record: ValidRecord) -> str:
    if not is_manifest(record):
        return record.parts.blob_hash
    stated = full_hash(record)
    return stated if stated is not None else blob_id(content_length(record), lace.content(record.hash))


def blob_id(size: int, pieces: Iterator[memoryview] | Iterator[bytes]) -> str:
    """The hash that a content has as a Blob."""
    running = hasher()
    running.update(b"Data-Length: %d\n\n" % size)
    for piece in pieces:
        running.update(piece)
    return RecordHash.of("B", running.digest())
