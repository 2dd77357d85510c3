"""What may be sent under a policy, kept with the lace (070, shared sets): a new process with nothing new starts there.

Rule: a kept set belongs to one moment of the store, and is used there, or followed from there where the rules allow
that; and only whole: what does not carry the digest of its bytes is the same as none. Losing one costs an evaluation.
Its ids are kept in pieces, because a store holds a value three times while it writes it: a million ids are 33 MB. Roots
of its partitions (050, P16) name the set that they are of by its digest; losing those costs its hashing.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from itertools import islice

from lace.differences.ids import Ids, ids_of_bytes, in_order
from lace.differences.idset import IdSet
from lace.errors import InvalidText, LaceError
from lace.interlace.claims.columns import column_parts
from lace.interlace.claims.partitions import Partition
from lace.notation import b64a
from lace.notation.digest import digest, hasher
from lace.store.base import RecordStore, StoreCursor
from lace.thresholds import RuleThresholds
from lace.values import dataclass

_NAMESPACE = "sendable"
_IDS = "sendable-ids"
_ROOTS = "sendable-roots"
_INDEX = "index"
_MOST_KEPT = 4
_MOST_LABELS = 4  # whose roots are kept, 131 kB each
_MOST_IDS = 4_000_000
_DIGEST_BYTES = 32
_MOST_HEAD_BYTES = 128

Roots = Mapping[str, Sequence[Partition]]


@dataclass(frozen=True, slots=True)
class KeptSet:
    """A set, its moment, the digest of both, and the roots of its partitions by label."""

    at: StoreCursor
    ids: Ids
    digest: bytes
    roots: dict[str, list[Partition]] = field(default_factory=dict)


def keep(store: RecordStore, name: str, cursor: StoreCursor, ids: IdSet, thresholds: RuleThresholds) -> bytes:
    """Keep a set, and forget the ones that were kept longest ago; the digest of what is kept, empty if nothing is."""
    if not thresholds.min_kept_ids <= len(ids) <= _MOST_IDS:
        return b""
    # What came since is not sorted in: that would take as long as all the rest, and hold all ids three times.
    parts = [part for part in (ids.base.without(ids.removed), ids.added) if len(part)]
    at_once = thresholds.kept_piece_ids
    count = sum(-(-len(part) // at_once) for part in parts)
    head = json.dumps([cursor.record, cursor.removal, count]).encode()
    sealed = hasher()
    sealed.update(head)
    try:
        names = [name, *(known for known in _names(store) if known != name)]
        for old in names[_MOST_KEPT:]:
            _forget(store, old)
        _forget_pieces(store, name, from_piece=count)
        for number, piece in enumerate(piece for part in parts for piece in part.pieces(at_once)):
            sealed.update(piece)
            store.put_setting(_IDS, _piece(name, number), piece)
        found = sealed.digest()
        store.put_setting(_NAMESPACE, name, found + head)
        store.put_setting(_NAMESPACE, _INDEX, json.dumps(names[:_MOST_KEPT]).encode())
    except LaceError:
        return b""
    return found


def _piece(name: str, number: int) -> str:
    return f"{name}/{number}"


def _forget(store: RecordStore, name: str) -> None:
    _forget_pieces(store, name, from_piece=0)
    store.put_setting(_NAMESPACE, name, None)
    store.put_setting(_ROOTS, name, None)


def _forget_pieces(store: RecordStore, name: str, *, from_piece: int) -> None:
    """Those of the set that is kept under a name from one of them on."""
    head = _head(store, name)
    for number in range(from_piece, head.pieces if head is not None else 0):
        store.put_setting(_IDS, _piece(name, number), None)


def keep_roots(store: RecordStore, name: str, kept: bytes, roots: Roots) -> None:
    """Keep the roots of all partitions of a set that is kept, under some labels."""
    labels = list(islice(roots, _MOST_LABELS))
    told = b"".join(b64a.decode(part.root) for label in labels for part in roots[label])
    body = kept + json.dumps(labels).encode() + b"\n" + told
    with contextlib.suppress(LaceError):
        store.put_setting(_ROOTS, name, digest(body) + body)


@dataclass(frozen=True, slots=True)
class _Head:
    """What is kept of a set beside its ids."""

    digest: bytes
    text: bytes
    at: StoreCursor
    pieces: int


def _head(store: RecordStore, name: str) -> _Head | None:
    data = store.get_setting(_NAMESPACE, name)
    if data is None or len(data) > _MOST_HEAD_BYTES:  # a set as it was kept before there were pieces
        return None
    text = data[_DIGEST_BYTES:]
    try:
        record, removal, pieces = json.loads(text)
        return _Head(data[:_DIGEST_BYTES], text, StoreCursor(record, removal), min(pieces, _MOST_IDS))
    except (ValueError, TypeError):
        return None


def recall(store: RecordStore, name: str) -> KeptSet | None:
    """The set that was kept under a name."""
    head = _head(store, name)
    if head is None:
        return None
    sealed, parts = hasher(), list[Ids]()
    sealed.update(head.text)
    try:
        for number in range(head.pieces):
            piece = store.get_setting(_IDS, _piece(name, number))
            if piece is None:
                return None
            sealed.update(piece)
            parts.append(ids_of_bytes(piece))
        if sealed.digest() != head.digest:
            return None
        ids = in_order(parts)
        return KeptSet(head.at, ids, head.digest, _recall_roots(store, name, head.digest, ids))
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
