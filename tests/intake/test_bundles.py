"""Import and export: the good records go in, the bad ones come back with their reasons."""

from __future__ import annotations

import base64
import io
import json
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from lace.datalog.language.syntax import Fact
from lace.errors import InvalidRecord, StoreError
from lace.facts.derive import derive_facts
from lace.facts.predicates import RECORD_PREDICATES
from lace.intake.bundles import ImportReport, RejectedFile, import_bundles
from lace.limits import IngestLimits
from lace.notation.digest import digest
from lace.notation.identifiers import RecordHash
from lace.porcelain.export import all_bodies, write_bundle
from lace.records.validate import validate
from lace.store import MemoryStore, SQLiteStore, open_store
from lace.store.bundle import BundleReader
from store.samples import assortment, blob, bundle_of, plex, seal

SMALL = IngestLimits(max_chunk_records=4, max_chunk_bytes=4096)


@pytest.fixture(params=["sqlite", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SQLiteStore | MemoryStore]:
    with open_store(tmp_path / "a.lace", create=True) if request.param == "sqlite" else MemoryStore() as opened:
        yield opened


GOOD = [record.stored for record in assortment()]
WRONG_DIGEST = blob(b"0123456789").stored.replace(b"0123", b"4567")
WRONG_SIGNATURE = seal("signed", key=0).stored.replace(
    seal("signed", key=0).parts.signed_by.encode(), seal("signed", key=1).parts.signed_by.encode()
)
WRONG_INNER = plex("inner", data=b"inner data").stored.replace(b"inner data", b"other data")


def rehashed(stored: bytes) -> bytes:
    """A record whose own hash fits whatever its payload says."""
    head, payload = stored.split(b"\n", 1)
    mark, kind = head[:6], head[6:7].decode()
    return mark + RecordHash.of(kind, digest(payload)).encode() + b"\n" + payload


@pytest.mark.clause("020-FACT-02", "020-FACT-03", "020-FACT-04", "020-FACT-05")
@pytest.mark.parametrize("workers", [0, 2])
def test_bad_records_are_refused_with_reasons_and_good_ones_go_in(
    tmp_path: Path, store: SQLiteStore | MemoryStore, workers: int
) -> None:
    bad = [WRONG_DIGEST, rehashed(WRONG_SIGNATURE), rehashed(WRONG_INNER), b"no record at all\n"]
    pieces = [*GOOD[:3], bad[0], *GOOD[3:6], bad[1], GOOD[6], bad[2], *GOOD[7:], GOOD[0], bad[3]]
    path = bundle_of(tmp_path / "mixed.bundle", *pieces)
    sink = io.StringIO()
    report = import_bundles(store, [path], workers=workers, rejected_sink=RejectedFile(sink), limits=SMALL)
    assert (report.stored, report.present, report.rejected_total) == (len(GOOD), 1, 4)
    assert report.bytes == report.total_bytes == path.stat().st_size
    lines = [json.loads(line) for line in sink.getvalue().splitlines()]
    assert sorted(base64.b64decode(line["data"]) for line in lines) == sorted(bad)
    assert Counter(line["rule"] for line in lines) == report.rejected
    whole = path.read_bytes()
    for line in lines:
        assert line["bundle"] == str(path)
        assert whole[line["offset"] : line["offset"] + line["bytes"]] == base64.b64decode(line["data"])
        assert line["reason"]
    by_data = {base64.b64decode(line["data"]): line["rule"] for line in lines}
    for refused in bad[:3]:
        with pytest.raises(InvalidRecord) as error:
            validate(refused)
        assert by_data[refused] == error.value.rule
    snapshot = store.snapshot()
    facts = Counter(Fact(predicate, row) for predicate in RECORD_PREDICATES for row in snapshot.iterate(predicate))
    assert facts == Counter(fact for record in assortment() for fact in derive_facts(record))


def test_importing_again_stores_nothing_new(tmp_path: Path, store: SQLiteStore | MemoryStore) -> None:
    path = bundle_of(tmp_path / "a.bundle", *GOOD)
    first = import_bundles(store, [path], workers=0)
    again = import_bundles(store, [path, path], workers=0)
    assert (first.stored, first.present) == (len(GOOD), 0)
    assert (again.stored, again.present) == (0, 2 * len(GOOD))


def test_an_export_holds_every_record_in_order(tmp_path: Path, store: SQLiteStore | MemoryStore) -> None:
    store.put(assortment())
    store.delete(assortment()[2].hash)
    path = tmp_path / "out.bundle"
    assert write_bundle(path, all_bodies(store), lambda _: None) == len(GOOD) - 1
    assert [item.data for item in BundleReader(path).records()] == GOOD[:2] + GOOD[3:]
    with MemoryStore() as other:
        assert import_bundles(other, [path], workers=0).stored == len(GOOD) - 1
        assert {e.hash for e in other.entries()} == {e.hash for e in store.entries()}


def test_progress_hears_of_each_durable_chunk(tmp_path: Path) -> None:
    path = bundle_of(tmp_path / "a.bundle", *GOOD)
    heard: list[tuple[int, int, int]] = []
    with open_store(tmp_path / "a.lace", create=True) as store:

        def progress(report: ImportReport) -> None:
            heard.append((report.bytes, report.stored, store.stat().records))

        import_bundles(store, [path], workers=0, limits=SMALL, progress=progress)
    assert len(heard) > 3
    assert [stored for _, stored, _ in heard] == [records for _, _, records in heard]
    assert heard[-1][:2] == (path.stat().st_size, len(GOOD))


def test_a_worker_that_dies_is_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = shutil.which("false")
    assert nothing is not None
    monkeypatch.setattr(sys, "executable", nothing)
    path = bundle_of(tmp_path / "a.bundle", *GOOD)
    with MemoryStore() as store, pytest.raises(StoreError, match="worker process"):
        import_bundles(store, [path], workers=1)


def test_a_large_record_passes_the_chunk_limits(tmp_path: Path, store: SQLiteStore | MemoryStore) -> None:
    large = blob(bytes(range(256)) * 20_000)
    path = bundle_of(tmp_path / "a.bundle", GOOD[0], large.stored, GOOD[1])
    assert import_bundles(store, [path], workers=1, limits=SMALL).stored == 3
    assert store.get(large.hash) == large.stored
