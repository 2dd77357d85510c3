"""What every store promises, on both implementations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from lace.datalog.language.syntax import Fact, Predicate
from lace.datalog.source import ColumnSource
from lace.facts.derive import derive_facts
from lace.facts.predicates import BLOB_HASH, FIELD, HAVE, PLEX_HASH, RECORD_LINK, RECORD_PREDICATES
from lace.notation.identifiers import RecordHash
from lace.records.validate import ValidRecord
from lace.store import MemoryStore, RecordStore, StoreCursor, StoreRecordId, open_store
from lace.store.columns.segments.segment import as_codes
from store.samples import assortment, blob, plex, seal


@pytest.fixture(params=["sqlite", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RecordStore]:
    opened: RecordStore = open_store(tmp_path / "a.lace", create=True) if request.param == "sqlite" else MemoryStore()
    with opened:
        yield opened


def facts_of(source: ColumnSource) -> Counter[Fact]:
    return Counter(Fact(predicate, row) for predicate in RECORD_PREDICATES for row in source.iterate(predicate))


def column_facts(source: ColumnSource) -> Counter[Fact]:
    facts: Counter[Fact] = Counter()
    for predicate in RECORD_PREDICATES:
        columns = [source.texts(column) for column in source.columns(predicate)]
        facts.update(Fact(predicate, row) for row in zip(*columns, strict=True))
    return facts


def slice_facts(source: ColumnSource) -> Counter[Fact]:
    slices = source.slices(FIELD, 1)
    assert slices is not None
    facts: Counter[Fact] = Counter()
    for name, columns in slices.items():
        assert set(columns[1]) <= {name}
        facts.update(Fact(FIELD, row) for row in zip(*map(source.texts, columns), strict=True))
    return facts


def expected(*records: ValidRecord) -> Counter[Fact]:
    return Counter(fact for record in records for fact in derive_facts(record))


def only(facts: Counter[Fact], predicate: Predicate) -> Counter[Fact]:
    return Counter({fact: count for fact, count in facts.items() if fact.predicate == predicate})


@pytest.mark.clause("020-FACT-01", "020-FACT-06", "020-FACT-07", "020-FACT-08", "020-FACT-09", "020-FACT-10")
def test_a_snapshot_shows_exactly_the_facts_of_the_stored_records(store: RecordStore) -> None:
    records = assortment()
    assert facts_of(store.snapshot()) == Counter()
    store.put(records[:4])
    for record in records[4:]:
        store.put([record])
    snapshot = store.snapshot()
    assert facts_of(snapshot) == column_facts(snapshot) == expected(*records)
    assert slice_facts(snapshot) == only(expected(*records), FIELD)
    assert snapshot.record_count == len(records)
    for predicate in RECORD_PREDICATES:
        assert snapshot.count(predicate) == sum(only(expected(*records), predicate).values())


@pytest.mark.clause("020-FACT-15")
def test_storing_a_record_twice_changes_nothing(store: RecordStore) -> None:
    records = assortment()
    first = store.put([*records, records[0]])
    assert [result.new for result in first] == [True] * len(records) + [False]
    assert [result.hash for result in first] == [*(record.hash for record in records), records[0].hash]
    again = store.put(records)
    assert [(result.id, result.new) for result in again] == [(result.id, False) for result in first[:-1]]
    mixed = store.put([records[3], plex("new"), records[5]])
    assert [result.new for result in mixed] == [False, True, False]
    assert facts_of(store.snapshot()) == expected(*records, plex("new"))
    assert store.stat().records == len(records) + 1


@pytest.mark.clause("020-EMBED-01", "020-EMBED-02", "020-EMBED-03", "020-EMBED-04", "020-EMBED-05", "020-EMBED-08")
def test_an_embedded_record_is_not_stored_with_its_outer_record(store: RecordStore) -> None:
    outer = seal("outer", data=b"inner data")
    inner_plex, inner_blob = plex("outer", data=b"inner data"), blob(b"inner data")
    store.put([outer])
    snapshot = store.snapshot()
    assert not store.have(inner_plex.hash)
    assert store.get(inner_blob.hash) is None
    assert list(snapshot.iterate(HAVE)) == [(outer.hash,)]
    assert list(snapshot.iterate(PLEX_HASH)) == [(outer.hash, inner_plex.hash)]
    assert list(snapshot.iterate(BLOB_HASH)) == [(outer.hash, inner_blob.hash)]
    assert list(snapshot.query(FIELD, None, "Name")) == [(outer.hash, "Name", "0", "outer")]
    store.put([inner_plex])
    assert store.have(inner_plex.hash)
    assert facts_of(store.snapshot()) == expected(outer, inner_plex)


def test_bytes_come_back_as_they_were_stored(store: RecordStore) -> None:
    store.put(assortment())
    for record in assortment():
        assert store.get(record.hash) == record.stored
        assert store.have(record.hash)
    assert store.get(RecordHash.of("B", bytes(32))) is None
    assert not store.have(RecordHash.of("B", bytes(32)))


def test_the_first_of_many_are_read_at_once_up_to_a_size(store: RecordStore) -> None:
    records = [blob(bytes([n]) * 100) for n in range(5)]
    store.put(records)
    hashes, stored = [record.hash for record in records], [record.stored for record in records]
    nowhere = RecordHash.of("B", bytes(32))
    assert store.get_first([], 1000) == []
    assert store.get_first([*hashes, nowhere], 1 << 20) == [*stored, None]
    assert store.get_first([nowhere, *hashes], 1) == [None, stored[0]]
    assert store.get_first(hashes, len(stored[0]) + 1) == stored[:2]


@pytest.mark.clause("020-VIEW-04")
def test_a_snapshot_never_sees_later_writes(store: RecordStore) -> None:
    records = assortment()
    store.put(records[:8])
    snapshot = store.snapshot()
    store.put(records[8:])
    store.delete(records[0].hash, records[3].hash)
    assert facts_of(snapshot) == column_facts(snapshot) == expected(*records[:8])
    assert facts_of(store.snapshot()) == expected(*records[1:3], *records[4:])


def test_deleting_removes_the_record_and_its_facts(store: RecordStore) -> None:
    records = assortment()
    store.put(records)
    assert store.delete(records[2].hash, records[9].hash, RecordHash.of("P", bytes(32))) == 2
    assert store.delete(records[2].hash) == 0
    rest = [record for at, record in enumerate(records) if at not in (2, 9)]
    assert store.get(records[2].hash) is None
    assert facts_of(store.snapshot()) == expected(*rest)
    assert [record_hash for _, record_hash in store.records_since()] == [record.hash for record in rest]
    assert {entry.hash for entry in store.entries()} == {record.hash for record in rest if record.type != "B"}
    put_again = store.put([records[2]])
    assert put_again[0].new
    assert put_again[0].id == len(records) + 1
    assert facts_of(store.snapshot()) == expected(*rest, records[2])
    assert store.stat().stored_bytes == sum(len(record.stored) for record in [*rest, records[2]])


@pytest.mark.clause("020-ID-03", "020-ID-04")
def test_an_identifier_without_have_is_only_a_text(store: RecordStore) -> None:
    target = blob(b"linked")
    unknown = "P.00.H9"  # of a definition nobody here supports
    linking = plex("linking", headers=(("+Link", f"source {target.hash}"), ("+Link", f"source {unknown}")))
    store.put([target, linking])
    assert {row[0] for row in store.snapshot().iterate(HAVE)} == {target.hash, linking.hash}
    store.delete(target.hash)
    snapshot = store.snapshot()
    assert [row[4] for row in snapshot.iterate(RECORD_LINK)] == [target.hash, unknown]
    assert list(snapshot.query(HAVE, target.hash)) == list(snapshot.query(FIELD, target.hash)) == []
    assert list(snapshot.query(HAVE, unknown)) == []
    assert store.get(target.hash) is None


def test_ids_count_insertions_and_are_never_used_again(store: RecordStore) -> None:
    records = assortment()
    assert store.high_water() == 0
    assert [result.id for result in store.put(records[:5])] == [1, 2, 3, 4, 5]
    store.delete(records[4].hash)
    assert store.high_water() == 5
    assert [result.id for result in store.put(records[4:6])] == [6, 7]
    assert list(store.records_since(StoreRecordId(3))) == [
        (4, records[3].hash),
        (6, records[4].hash),
        (7, records[5].hash),
    ]
    assert list(store.bodies_since(StoreRecordId(6))) == [(7, records[5].stored)]


def test_entries_are_ordered_by_coordinate_then_time_then_hash(store: RecordStore) -> None:
    store.put(reversed(assortment()))
    entries = list(store.entries())
    assert entries == sorted(entries, key=lambda e: (e.group, e.app, e.name, e.tai, e.hash))
    plexes = {record.hash: record for record in assortment() if record.type != "B"}
    assert {entry.hash for entry in entries} == plexes.keys()
    for entry in entries:
        parts = plexes[entry.hash].parts
        assert (entry.group, entry.app, entry.name, entry.tai) == (parts.group, parts.app, parts.name, parts.tai)
        assert entry.signer == (parts.signed_by or None)
        assert entry.data_length == plexes[entry.hash].data_length


@pytest.mark.parametrize(
    ("group", "app", "prefix", "names"),
    [
        ("u", "ding", "n/", ["n/1"] * 5 + ["n/10"]),
        ("u", "ding", "n/10", ["n/10"]),
        ("u", "ding/b", "", ["n"]),
        ("u", "ding", "zz", []),
        ("nowhere", None, "", []),
        (None, "ding", "z", ["z"]),
        ("groß", None, "ü", ["ü/é"]),
    ],
)
def test_a_coordinate_prefix_selects(
    store: RecordStore, group: str | None, app: str | None, prefix: str, names: list[str]
) -> None:
    store.put(assortment())
    assert [entry.name for entry in store.entries(group, app, prefix)] == names


@pytest.mark.clause("110-VER-09")
def test_the_last_version_is_the_tip(store: RecordStore) -> None:
    store.put(assortment())
    versions = store.versions("u", "ding", "n/1")
    assert len(versions) == 5
    assert versions[-1].hash == max(seal(at=2).hash, seal(at=2, key=1).hash)
    assert store.versions("u", "ding", "n") == []


def test_changes_name_what_came_and_went(store: RecordStore) -> None:
    records = assortment()
    store.put(records[:6])
    before = store.cursor()
    store.put(records[6:9])
    store.delete(records[0].hash, records[7].hash)
    changes = store.changes(before)
    assert changes is not None
    assert facts_of(changes.added) == column_facts(changes.added) == expected(records[6], records[8])
    assert facts_of(changes.removed) == column_facts(changes.removed) == expected(records[0])
    assert changes.added_records == (records[6].hash, records[8].hash)
    assert changes.removed_records == (records[0].hash,)
    nothing = store.changes(changes.cursor)
    assert nothing is not None
    assert (nothing.added_records, nothing.removed_records) == ((), ())


def test_a_record_that_went_and_came_again_is_no_change(store: RecordStore) -> None:
    records = assortment()
    store.put(records[:6])
    before = store.cursor()
    for _ in range(2):
        store.delete(records[1].hash)
        store.put([records[1]])
    changes = store.changes(before)
    assert changes is not None
    assert facts_of(changes.added) == facts_of(changes.removed) == Counter()


def test_a_record_that_went_twice_is_removed_once(store: RecordStore) -> None:
    records = assortment()
    store.put(records[:6])
    before = store.cursor()
    store.delete(records[1].hash)
    store.put([records[1]])
    store.delete(records[1].hash)
    changes = store.changes(before)
    assert changes is not None
    assert changes.removed_records == (records[1].hash,)
    assert facts_of(changes.removed) == expected(records[1])


def test_a_cursor_from_elsewhere_gets_no_changes(store: RecordStore) -> None:
    assert store.changes(StoreCursor(StoreRecordId(5), 0)) is None
    assert store.changes(StoreCursor(StoreRecordId(0), 1)) is None


def test_codes_keep_their_meaning_between_snapshots(store: RecordStore) -> None:
    records = assortment()
    store.put(records[:6])
    first = store.snapshot()
    texts = first.texts(as_codes(range(first.code_count)))
    assert texts[0] == "0"
    assert len(set(texts)) == len(texts)
    store.put(records[6:])
    second = store.snapshot()
    assert second.codes(texts) == list(range(first.code_count))
    assert second.codes(["nobody says this", texts[3]]) == [-1, 3]
    assert second.texts(as_codes([3, 0, 3])) == [texts[3], "0", texts[3]]


@pytest.mark.parametrize(
    "pattern",
    [
        (FIELD, (None, "Tag")),
        (FIELD, (None, None, "1")),
        (FIELD, (None, "Group", "0", "u")),
        (FIELD, (None, "X-085")),
        (FIELD, (None, "X-000", "1")),
        (FIELD, ("nothing",)),
        (HAVE, ()),
        (Predicate("RecordLink", 5), (None, "+Link", None, "source")),
        (Predicate("Other", 2), ()),
    ],
)
def test_a_query_binds_positions(store: RecordStore, pattern: tuple[Predicate, tuple[str | None, ...]]) -> None:
    store.put(assortment())
    predicate, values = pattern
    wanted = {
        fact.values
        for fact in expected(*assortment())
        if fact.predicate == predicate and all(value in (None, fact.values[at]) for at, value in enumerate(values))
    }
    found = list(store.snapshot().query(predicate, *values))
    assert set(found) == wanted
    assert len(found) == len(wanted)


def test_settings_are_kept_by_namespace(store: RecordStore) -> None:
    assert store.get_setting("link", "a") is None
    store.put_setting("link", "a", b"1")
    store.put_setting("link", "b", b"2")
    store.put_setting("other", "a", b"3")
    store.put_setting("link", "a", b"4")
    assert store.get_setting("link", "a") == b"4"
    assert store.settings("link") == {"a": b"4", "b": b"2"}
    store.put_setting("link", "a", None)
    assert store.settings("link") == {"b": b"2"}


def test_nothing_put_is_nothing_done(store: RecordStore) -> None:
    assert store.put([]) == []
    assert store.delete() == 0
    assert store.high_water() == 0
    assert store.check_integrity() == []


def test_many_small_puts_fold_into_few_segments(tmp_path: Path) -> None:
    records = [plex(f"n/{number}", headers=(("K", str(number % 7)),)) for number in range(150)]
    with open_store(tmp_path / "a.lace", create=True) as store:
        for record in records:
            store.put([record])
        assert store.file.connection.execute("SELECT count(*) FROM segments").fetchone()[0] < 30
        assert facts_of(store.snapshot()) == expected(*records)
        store.delete(*(record.hash for record in records[10:140]))
        assert facts_of(store.snapshot()) == expected(*records[:10], *records[140:])
        assert store.check_integrity() == []


def test_records_are_found_by_the_beginnings_of_their_hashes(store: RecordStore) -> None:
    records = assortment()
    store.put(records)
    store.delete(records[-1].hash)
    kept = {record.hash for record in records[:-1]}
    mentioned = {record.parts.blob_hash for record in records} | {records[-1].hash}  # known to the store, and not in it
    for text in (*kept, *mentioned):
        for beginning in (text[:2], text[:7], text[:20], text, text + "x"):
            assert set(store.beginning_with(beginning)) == {one for one in kept if one.startswith(beginning)}
    assert store.beginning_with("Q.") == []
