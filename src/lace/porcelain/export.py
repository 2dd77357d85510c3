"""Export records as bytes back to back, the form of bundles and streams.

Rule: one record in memory at a time; a file gets its name only once it is complete.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from lace.porcelain.content import Load
from lace.porcelain.listing import chosen_entries
from lace.records.coordinate import Prefix
from lace.records.manifest import is_manifest, manifest_pieces
from lace.records.model import ValidRecord
from lace.store.base import RecordStore
from lace.store.bundle import BundleWriter, index_path


class Writable(Protocol):
    """Anything that takes bytes."""

    def write(self, data: bytes, /) -> object: ...


def all_bodies(store: RecordStore) -> Iterator[bytes]:
    """All records, in the order of storing."""
    return (stored for _, stored in store.bodies_since())


def covered_bodies(store: RecordStore, prefix: Prefix, load: Load) -> Iterator[bytes]:
    """The records under a prefix, each manifest after its chunks; a shared chunk is repeated for each manifest."""
    for entry in chosen_entries(store, prefix):
        yield from _with_chunks(load(entry.hash), load)


def _with_chunks(record: ValidRecord, load: Load) -> Iterator[bytes]:
    if is_manifest(record):
        for piece in manifest_pieces(record):
            yield from _with_chunks(load(piece.target), load)
    yield record.stored


def write_stream(sink: Writable, bodies: Iterator[bytes], progress: Callable[[int], None]) -> int:
    """Write to an open sink; return how many records."""
    count = 0
    for stored in bodies:
        sink.write(stored)
        progress(len(stored))
        count += 1
    return count


def write_bundle(path: Path, bodies: Iterator[bytes], progress: Callable[[int], None]) -> int:
    """Write a bundle and its index, which get their names once both are complete; return how many records."""
    part = path.with_name(f".{path.name}.part")
    try:
        with BundleWriter(part) as writer:
            for stored in bodies:
                writer.write(stored)
                progress(len(stored))
        os.replace(part, path)
        os.replace(index_path(part), index_path(path))
    except BaseException:
        part.unlink(missing_ok=True)
        index_path(part).unlink(missing_ok=True)
        raise
    return writer.records
