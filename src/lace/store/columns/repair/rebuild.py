"""Rebuilding a store file from the bytes of its records: what repairing and compacting have in common.

Rule: records keep their ids. Codes do not keep their meanings, so the generation changes and programs that have the
old file open get an error; followers cannot learn what was removed, so every cursor expires.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from lace.limits import MIB, StoreLimits
from lace.records.validate import ValidRecord
from lace.store.columns.segments.encode import encode_batch
from lace.store.columns.segments.packing import pack
from lace.store.columns.segments.segment import EMPTY
from lace.store.columns.store import SQLiteStore
from lace.store.columns.tables import state
from lace.store.columns.tables.checksum import checksum
from lace.store.columns.tables.state import StoreState
from lace.store.forgotten import NAMESPACE, note_forgotten

BATCH_RECORDS = 4096
BATCH_BYTES = 8 * MIB
CURSOR_GAP = 1 << 20  # removals that nobody can have counted to

SCRATCH = StoreLimits(min_free_bytes=0, min_reserve_bytes=0, max_reserve_bytes=0)  # for a file that changes its name

Kept = tuple[int, ValidRecord]
Setting = tuple[str, str, bytes]


def rebuild(
    target: Path,
    records: Iterable[Kept],
    settings: Iterable[Setting],
    before: StoreState,
    *,
    forgotten: Collection[str] = (),
    is_searched: bool = False,
) -> tuple[int, int]:
    """A new store at `target` with records under their ids, ascending; how many, and how many were forgotten.

    What its settings or `forgotten` say was forgotten stays out; `forgotten` is put on the list only if it was there.
    """
    left_out: set[str] = set()
    with SQLiteStore(target, create=True, read_only=False, limits=SCRATCH, is_scratch=True) as store:
        if is_searched:
            store.index_words(lambda _: None)
        with store.together():
            for namespace, key, value in settings:
                store.put_setting(namespace, key, value)
        gone = {*forgotten, *store.settings(NAMESPACE)}

        def kept() -> Iterator[Kept]:
            for number, record in records:
                if record.hash in gone:
                    left_out.add(record.hash)
                else:
                    yield number, record

        count = adopt_all(store, kept())
        note_forgotten(store, sorted(left_out))
        expire_cursors(store, before.last_removal)
        with store.file.writing() as connection:  # the last thing: afterwards this store has to be opened again
            now = state.read(connection)
            last = max(now.last_record, before.last_record)
            state.save(connection, now._replace(last_record=last, generation=new_generation(before)))
    return count, len(left_out)


def adopt_all(store: SQLiteStore, records: Iterable[Kept]) -> int:
    """Store records under ids of theirs, ascending and higher than any in the store; how many."""
    count = 0
    for batch in _batches(records):
        ids = {record.hash: number for number, record in batch}  # a record that is there twice is kept once
        distinct = list({record.hash: record for _, record in batch}.values())
        count += sum(store.adopt(encode_batch(distinct), [ids[record.hash] for record in distinct]).new)
    return count


def new_generation(before: StoreState) -> int:
    """Another meaning of codes than ever before."""
    return before.generation + 1 + secrets.randbelow(1 << 40)


def expire_cursors(store: SQLiteStore, last_removal: int) -> None:
    """Leave a gap in the log of removals: a follower whose cursor is before it starts over."""
    with store.file.writing() as connection:
        now = state.read(connection)
        removal = max(now.last_removal, last_removal) + CURSOR_GAP
        columns = pack(EMPTY)
        connection.execute("DELETE FROM removals")
        row = (removal, columns, checksum(removal, columns))
        connection.execute("INSERT INTO removals VALUES (?, ?, ?)", row)
        state.save(connection, now._replace(last_removal=removal))


def _batches(records: Iterable[Kept]) -> Iterator[list[Kept]]:
    batch: list[Kept] = []
    size = 0
    for number, record in records:
        batch.append((number, record))
        size += len(record.stored)
        if len(batch) >= BATCH_RECORDS or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
