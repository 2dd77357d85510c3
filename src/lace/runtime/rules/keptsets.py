"""What may be sent under a policy, kept with the lace (070, shared sets): a new process with nothing new starts there.

Rule: a kept set belongs to one moment of the store, and is used there, or followed from there where the rules allow
that; and only whole: what does not carry the digest of its bytes is the same as none. Losing one costs an evaluation.
Roots of its partitions (050, P16) name the set that they are of by its digest; losing those costs its hashing.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from itertools import islice

from lace.differences.ids import Ids, ids_of_bytes
from lace.differences.idset import IdSet
from lace.errors import InvalidText, LaceError
from lace.interlace.claims.columns import column_parts
from lace.interlace.claims.partitions import Partition
from lace.notation import b64a
from lace.notation.digest import digest, hasher
from lace.store.base import RecordStore, StoreCursor
from lace.values import dataclass

_NAMESPACE = "sendable"
_ROOTS = "sendable-roots"
_INDEX = "index"
_MOST_KEPT = 4
_MOST_LABELS = 4  # whose roots are kept, 131 kB each
_MOST_IDS = 4_000_000
_DIGEST_BYTES = 32

Roots = Mapping[str, Sequence[Partition]]


@dataclass(frozen=True, slots=True)
class KeptSet:
    """A set, its moment, the digest of both, and the roots of its partitions by label."""

    at: StoreCursor
    ids: Ids
    digest: bytes
    roots: dict[str, list[Partition]] = field(default_factory=dict)


def keep(store: RecordStore, name: str, cursor: StoreCursor, ids: IdSet, min_ids: int) -> bytes:
    """Keep a set, and forget the ones that were kept longest ago; the digest of what is kept, empty if nothing is."""
    if not min_ids <= len(ids) <= _MOST_IDS:
        return b""
    head = json.dumps([cursor.record, cursor.removal]).encode() + b"\n"
    # What came since is not sorted in: that would take as long as all the rest, and hold all ids three times.
    parts = ids.base.without(ids.removed), ids.added
    found, data = _sealed([head, *(part.rows().data.cast("B") for part in parts if len(part))])
    try:
        names = [name, *(known for known in _names(store) if known != name)]
        for old in names[_MOST_KEPT:]:
            store.put_setting(_NAMESPACE, old, None)
            store.put_setting(_ROOTS, old, None)
        store.put_setting(_NAMESPACE, name, data)
        store.put_setting(_NAMESPACE, _INDEX, json.dumps(names[:_MOST_KEPT]).encode())
    except LaceError:
        return b""
    return found


def _sealed(pieces: Sequence[bytes | memoryview]) -> tuple[bytes, bytes]:
    """The digest of what is kept, and the digest followed by what is kept: the only copy of millions of ids."""
    one = hasher()
    for piece in pieces:
        one.update(piece)
    found = one.digest()
    return found, b"".join((found, *pieces))


def keep_roots(store: RecordStore, name: str, kept: bytes, roots: Roots) -> None:
    """Keep the roots of all partitions of a set that is kept, under some labels."""
    labels = list(islice(roots, _MOST_LABELS))
    told = b"".join(b64a.decode(part.root) for label in labels for part in roots[label])
    body = kept + json.dumps(labels).encode() + b"\n" + told
    with contextlib.suppress(LaceError):
        store.put_setting(_ROOTS, name, digest(body) + body)


def recall(store: RecordStore, name: str) -> KeptSet | None:
    """The set that was kept under a name."""
    data = store.get_setting(_NAMESPACE, name)
    if data is None:
        return None
    head, found, _ = data[_DIGEST_BYTES : _DIGEST_BYTES + 64].partition(b"\n")
    if not found or digest(memoryview(data)[_DIGEST_BYTES:]) != data[:_DIGEST_BYTES]:
        return None
    try:
        record, removal = json.loads(head)
        ids = ids_of_bytes(memoryview(data)[_DIGEST_BYTES + len(head) + 1 :])
        kept = data[:_DIGEST_BYTES]
        return KeptSet(StoreCursor(record, removal), ids, kept, _recall_roots(store, name, kept, ids))
    except (InvalidText, ValueError, TypeError):
        return None


def _recall_roots(store: RecordStore, name: str, kept: bytes, ids: Ids) -> dict[str, list[Partition]]:
    data = store.get_setting(_ROOTS, name) or b""
    body = data[_DIGEST_BYTES:]
    head, found, told = body[_DIGEST_BYTES:].partition(b"\n")
    if not found or not body.startswith(kept) or digest(body) != data[:_DIGEST_BYTES]:
        return {}
    labels, parts = json.loads(head), column_parts(ids)
    if len(told) != len(labels) * len(parts) * _DIGEST_BYTES:
        return {}
    roots = (b64a.encode(told[at : at + _DIGEST_BYTES]) for at in range(0, len(told), _DIGEST_BYTES))
    return {label: [Partition(prefix, len(part), next(roots)) for prefix, part in parts.items()] for label in labels}


def _names(store: RecordStore) -> list[str]:
    try:
        names = json.loads(store.get_setting(_NAMESPACE, _INDEX) or b"[]")
    except ValueError:
        return []
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
