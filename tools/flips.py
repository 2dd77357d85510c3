"""Flip single bits of a store file and see whether any answer changes unnoticed.

python tools/flips.py [--flips 3000] [--seed 1] [--records 300]

For each flip a fresh copy is asked everything: all facts, listings, coordinates, records, settings. An answer may stay
the same, or be refused with an error of ours. An answer that changes must be one that `lace verify` tells of; any other
ends this program with 1, and so does any error that is not ours.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import lace
from lace.datalog.source import ColumnSource
from lace.errors import LaceError, NotFound, StoreDamaged
from lace.facts.predicates import RECORD_PREDICATES
from lace.notation.digest import digest
from lace.records.keys import SigningKey
from lace.store import SQLiteStore, StoreCursor, StoreRecordId, open_store
from lace.thresholds import StoreThresholds

KEY = SigningKey(digest(b"flips"))
FEW = 4  # new values that are a run of the index already, in the first half of the records
SAME, REFUSED, VERIFY, UNNOTICED, CRASHED = "same", "refused", "only verify tells", "UNNOTICED", "CRASHED"


def build(path: Path, records: int) -> list[lace.RecordHash]:
    """A store with a history: single puts, deletions, links, repeated headers, settings, both kinds of index."""
    kept: list[lace.RecordHash] = []
    short = StoreThresholds(bulk_texts=FEW)
    with lace.Lace(open_store(path, create=True, thresholds=short)) as notes:
        put(notes, range(records // 2), kept)
    with lace.open(path) as notes:
        put(notes, range(records // 2, records), kept)
        notes.delete(*kept[5::11])
        notes.store.put_setting("some", "key", b"value")
        return [record for _, record in notes.store.records_since()]


def put(notes: lace.Lace, numbers: range, kept: list[lace.RecordHash]) -> None:
    """Single puts, each linked with the one before it."""
    for number in numbers:
        headers = [("Kind", f"k{number % 7}"), ("Kind", "x"), *([("Odd", "yes")] if number % 2 else [])]
        links = [("after", kept[-1])] if kept else []
        kept.append(
            notes.put(
                digest(b"%d" % number) * (1 + number % 40), group=f"g/{number % 3}", app="ding",
                name=f"n/{number % 50}", tai=f"{1_700_000_000 + number:010d}:000000000", headers=headers,
                links=links, sign=KEY if number % 3 == 0 else None,
            )
        )  # fmt: skip


def answers(path: Path, hashes: Sequence[lace.RecordHash]) -> dict[str, object]:
    """Everything that a file says, or the error it gives, question by question."""
    found: dict[str, object] = {}
    try:
        with open_store(path, read_only=True) as store:
            for name, question in questions(store, hashes):
                try:
                    found[name] = question()
                except LaceError as error:
                    found[name] = error
    except LaceError as error:
        found["open"] = error
    return found


def counted(source: ColumnSource) -> Counter[object]:
    return Counter((str(one), row) for one in RECORD_PREDICATES for row in source.iterate(one))


def questions(store: SQLiteStore, hashes: Sequence[lace.RecordHash]) -> Iterator[tuple[str, Callable[[], object]]]:
    """What a file is asked, by name."""

    def facts() -> object:
        return counted(store.snapshot())

    def changed() -> object:
        changes = store.changes(StoreCursor(StoreRecordId(2), 0))
        return changes and (changes.added_records, changes.removed_records, counted(changes.added), changes.cursor)

    def selected() -> object:
        snapshot = store.snapshot()
        return sorted(snapshot.query(RECORD_PREDICATES[1], None, "Kind", None, "k3"))

    def bodies() -> object:
        with lace.Lace(store) as notes:
            return [notes.load(record).stored for record in hashes]

    yield "hashes", lambda: list(store.records_since())
    yield "facts", facts
    yield "selected", selected
    yield "entries", lambda: list(store.entries())
    yield "versions", lambda: store.versions("g/1", "ding", "n/7")
    yield "changes", changed
    yield "settings", lambda: store.settings("some")
    yield "counters", lambda: (store.cursor(), store.stat().records, store.stat().stored_bytes, store.stat().values)
    yield "bodies", bodies  # last: it closes the store


def outcome(path: Path, expected: dict[str, object], hashes: Sequence[lace.RecordHash]) -> str:
    """What became of the answers of a damaged file."""
    found = answers(path, hashes)
    if "open" in found:
        return REFUSED
    worst = SAME
    for name, answer in expected.items():
        if isinstance(found.get(name), LaceError) and not isinstance(found[name], NotFound):
            worst = REFUSED
        elif found.get(name) != answer:
            return VERIFY if findings(path) else UNNOTICED
    return worst


def findings(path: Path) -> bool:
    try:
        with lace.open(path, read_only=True) as notes:
            return any(True for _ in notes.verify())
    except StoreDamaged:
        return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--flips", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--records", type=int, default=300)
    chosen = parser.parse_args()
    chance = random.Random(chosen.seed)
    seen: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        whole, path = Path(folder) / "whole.lace", Path(folder) / "flipped.lace"
        hashes = build(whole, chosen.records)
        expected = answers(whole, hashes)
        data = whole.read_bytes()
        for _ in range(chosen.flips):
            at, bit = chance.randrange(len(data)), chance.randrange(8)
            flipped = bytearray(data)
            flipped[at] ^= 1 << bit
            path.write_bytes(flipped)
            try:
                what = outcome(path, expected, hashes)
            except Exception as error:  # noqa: BLE001  (the point is to see them)
                what = CRASHED
                print(f"byte {at} bit {bit}: {type(error).__name__}: {error}")
            seen[what] += 1
            if what == UNNOTICED:
                print(f"byte {at} bit {bit}: an answer changed, and nothing tells")
            for suffix in ("-wal", "-shm"):
                Path(f"{path}{suffix}").unlink(missing_ok=True)
    print(f"{chosen.flips} flips in {len(data):,} bytes: " + ", ".join(f"{n} {what}" for what, n in seen.most_common()))
    return 1 if seen[UNNOTICED] or seen[CRASHED] else 0


if __name__ == "__main__":
    sys.exit(main())
