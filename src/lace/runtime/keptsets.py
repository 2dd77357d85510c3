"""What may be sent under a policy, kept with the lace (070, shared sets): a new process with nothing new starts there.

Rule: a kept set belongs to one moment of the store, and is used there, or followed from there where the rules allow
that; and only whole: what does not carry the digest of its bytes is the same as none. Losing one costs an evaluation.
"""

from __future__ import annotations

import contextlib
import json

from lace.differences.ids import Ids, ids_of_bytes
from lace.errors import InvalidText, LaceError
from lace.notation.digest import digest
from lace.store.base import RecordStore, StoreCursor

_NAMESPACE = "sendable"
_INDEX = "index"
_MOST_KEPT = 4
_FEWEST_IDS = 10_000  # below this an evaluation costs less than it is worth keeping
_MOST_IDS = 4_000_000
_DIGEST_BYTES = 32


def keep(store: RecordStore, name: str, cursor: StoreCursor, ids: Ids) -> None:
    """Keep a set, and forget the ones that were kept longest ago."""
    if not _FEWEST_IDS <= len(ids) <= _MOST_IDS:
        return
    body = json.dumps([cursor.record, cursor.removal]).encode() + b"\n" + ids.to_bytes()
    with contextlib.suppress(LaceError):
        names = [name, *(known for known in _names(store) if known != name)]
        for old in names[_MOST_KEPT:]:
            store.put_setting(_NAMESPACE, old, None)
        store.put_setting(_NAMESPACE, name, digest(body) + body)
        store.put_setting(_NAMESPACE, _INDEX, json.dumps(names[:_MOST_KEPT]).encode())


def recall(store: RecordStore, name: str) -> tuple[StoreCursor, Ids] | None:
    """The set that was kept under a name, and its moment."""
    data = store.get_setting(_NAMESPACE, name)
    if data is None:
        return None
    head, found, _ = data[_DIGEST_BYTES : _DIGEST_BYTES + 64].partition(b"\n")
    if not found or digest(memoryview(data)[_DIGEST_BYTES:]) != data[:_DIGEST_BYTES]:
        return None
    try:
        record, removal = json.loads(head)
        return StoreCursor(record, removal), ids_of_bytes(memoryview(data)[_DIGEST_BYTES + len(head) + 1 :])
    except (InvalidText, ValueError, TypeError):
        return None


def _names(store: RecordStore) -> list[str]:
    try:
        names = json.loads(store.get_setting(_NAMESPACE, _INDEX) or b"[]")
    except ValueError:
        return []
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
