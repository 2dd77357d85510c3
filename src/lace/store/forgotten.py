"""Records that a lace never takes again, because somebody forgot them on purpose.

Rule: only hashes are kept, so nothing else of what was forgotten stays. What is on the list comes in neither from peers
nor from bundles; only its owner takes it off.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Protocol

from lace.notation.identifiers import RecordHash

NAMESPACE = "forgotten"  # of settings: a key for each hash
WHY = "it was forgotten here"
RULE = "forgotten"
_AFTER_ALL = "~"
_FEW = 64  # that are looked up one by one


class SettingReader(Protocol):
    """What is needed of a store."""

    def get_setting(self, namespace: str, key: str) -> bytes | None: ...
    def put_setting(self, namespace: str, key: str, value: bytes | None) -> None: ...
    def settings(self, namespace: str) -> Mapping[str, bytes]: ...
    def last_setting(self, namespace: str, up_to: str) -> tuple[str, bytes] | None: ...


def forgotten_among(store: SettingReader, records: Collection[str]) -> set[str]:
    """Those of some records that were forgotten; one lookup where nothing ever was."""
    if not has_forgotten(store):
        return set()
    if len(records) <= _FEW:
        return {record for record in records if store.get_setting(NAMESPACE, record) is not None}
    return set(store.settings(NAMESPACE)).intersection(records)


def has_forgotten(store: SettingReader) -> bool:
    """Whether anything is on the list."""
    return store.last_setting(NAMESPACE, _AFTER_ALL) is not None


def all_forgotten(store: SettingReader) -> list[RecordHash]:
    """Everything on the list."""
    return [RecordHash(record) for record in store.settings(NAMESPACE)]


def note_forgotten(store: SettingReader, records: Iterable[str]) -> None:
    """Put records on the list."""
    for record in records:
        store.put_setting(NAMESPACE, record, b"")


def take_again(store: SettingReader, records: Iterable[str]) -> int:
    """Take records off the list; how many were on it."""
    found = [record for record in records if store.get_setting(NAMESPACE, record) is not None]
    for record in found:
        store.put_setting(NAMESPACE, record, None)
    return len(found)
