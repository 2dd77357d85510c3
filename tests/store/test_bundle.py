"""Bundles: what is written comes back, and no byte of a damaged one is lost."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lace.errors import InvalidInput, StoreError
from lace.limits import RecordLimits
from lace.records.grammar import MARK
from lace.records.validate import ValidRecord, validate
from lace.store import bundle
from lace.store.bundle import BundleReader, BundleWriter, Frame, RejectedBytes, index_path, read_frames
from lace.thresholds import BundleThresholds
from store.samples import assortment, blob, plex, seal

STORED = [record.stored for record in assortment()]
LIMITS = RecordLimits()


def frames_of(data: bytes, thresholds: BundleThresholds | None = None) -> list[Frame | RejectedBytes]:
    return list(read_frames(io.BytesIO(data), 0, len(data), LIMITS, thresholds or BundleThresholds()))


def valid_among(items: list[Frame | RejectedBytes]) -> list[bytes]:
    good = []
    for item in items:
        if isinstance(item, Frame):
            try:
                good.append(validate(item.data).stored)
            except InvalidInput:
                continue
    return good


def write(path: Path, every: int = 4) -> None:
    with BundleWriter(path, index_every=every) as writer:
        for stored in STORED:
            writer.write(stored)


def test_a_bundle_is_its_records_back_to_back(tmp_path: Path) -> None:
    path = tmp_path / "a.bundle"
    write(path)
    assert path.read_bytes() == b"".join(STORED)
    assert [item.data for item in BundleReader(path).records()] == STORED


@pytest.mark.parametrize("indexed", [True, False])
def test_splits_cover_every_record_once(tmp_path: Path, indexed: bool) -> None:
    path = tmp_path / "a.bundle"
    write(path)
    if not indexed:
        index_path(path).unlink()
    reader = BundleReader(path)
    splits = reader.splits(500)
    assert len(splits) > 1 if indexed else splits == [(0, reader.bytes)]
    assert [item.data for start, end in splits for item in reader.records(start, end)] == STORED


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"lace-bundle-index":1,"bytes":7,"offsets":[3]}',
        '{"offsets":"x"}',
        "\x00",
        "[" * 200_000,
        '{"a":' * 200_000,
        '{"lace-bundle-index":1,"bytes":SIZE,"offsets":[0,99999999]}',
        '{"lace-bundle-index":1,"bytes":SIZE,"offsets":[-7]}',
    ],
    ids=["empty", "list", "other-length", "no-list", "binary", "nested", "nested-objects", "beyond", "before"],
)
def test_an_index_that_does_not_fit_is_not_used(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.bundle"
    write(path)
    index_path(path).write_text(text.replace("SIZE", str(path.stat().st_size)))
    assert BundleReader(path).splits(1) == [(0, path.stat().st_size)]


def test_a_missing_bundle_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="No such file"):
        BundleReader(tmp_path / "none")


@given(at=st.integers(0, len(STORED) - 1), garbage=st.binary(min_size=1, max_size=200))
def test_garbage_between_records_is_rejected_and_the_records_are_not(at: int, garbage: bytes) -> None:
    items = frames_of(b"".join([*STORED[:at], garbage, *STORED[at:]]))
    assert b"".join(item.data for item in items) == b"".join([*STORED[:at], garbage, *STORED[at:]])
    assert valid_among(items) == STORED


@given(where=st.integers(0, len(b"".join(STORED)) - 1), flip=st.integers(1, 255))
def test_one_damaged_byte_costs_at_most_its_own_record(where: int, flip: int) -> None:
    whole = bytearray(b"".join(STORED))
    whole[where] ^= flip
    end, hit = 0, -1
    while end <= where:
        hit += 1
        end += len(STORED[hit])
    items = frames_of(bytes(whole))
    assert b"".join(item.data for item in items) == bytes(whole)
    good = valid_among(items)
    remaining = iter(good)  # a record inside the damaged one may have come out on its own
    assert all(stored in remaining for stored in STORED[:hit] + STORED[hit + 1 :])


@given(cut=st.integers(0, len(b"".join(STORED)) - 1))
def test_a_cut_bundle_gives_what_is_whole(cut: int) -> None:
    items = frames_of(b"".join(STORED)[:cut])
    assert b"".join(item.data for item in items) == b"".join(STORED)[:cut]
    whole = 0
    while len(b"".join(STORED[: whole + 1])) <= cut:
        whole += 1
    assert valid_among(items)[:whole] == STORED[:whole]


def test_a_wrong_length_does_not_swallow_the_records_behind_it() -> None:
    liar = blob(b"x" * 100).stored.replace(b"Data-Length: 100", b"Data-Length: 900")
    items = frames_of(liar + b"".join(STORED))
    assert [item.data for item in items if isinstance(item, RejectedBytes)] == [liar]
    assert valid_among(items) == STORED


def test_a_seal_with_a_damaged_head_leaves_its_plex() -> None:
    inner = plex("in a seal", data=b"abc")
    damaged = seal("in a seal", data=b"abc").stored.replace(MARK, b"????: ", 1)
    items = frames_of(damaged + STORED[0])
    assert valid_among(items) == [inner.stored, STORED[0]]


def test_records_cross_the_edges_of_what_is_read_at_once() -> None:
    garbage = b"garbage" * 30
    items = frames_of(garbage + b"".join(STORED), BundleThresholds(read_bytes=7))
    assert [item.data for item in items] == [garbage, *STORED]


def test_long_damage_comes_in_pieces() -> None:
    short = BundleThresholds(read_bytes=1000, rejected_piece_bytes=2000)
    items = frames_of(bytes(50_000) + STORED[3], short)
    assert valid_among(items) == [STORED[3]]
    assert max(len(item.data) for item in items if isinstance(item, RejectedBytes)) < 4000
    assert b"".join(item.data for item in items) == bytes(50_000) + STORED[3]


def head(length: int) -> bytes:
    """The head of a Blob that promises so many bytes; its hash is none of anything."""
    return MARK + b"B." + b"0" * 43 + b".H3\nData-Length: %d\n\n" % length


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Bytes that were hashed, and bytes at which a frame was looked for."""
    done = [0, 0]
    plain_validate, plain_end = bundle.validate, bundle.frame_end

    def validate_counted(stored: bytes, **options: bool) -> ValidRecord:
        done[0] += len(stored)
        return plain_validate(stored, **options)

    def end_counted(buffer: bytes, offset: int, limits: RecordLimits) -> int | None:
        done[1] += 1
        return plain_end(buffer, offset, limits)

    monkeypatch.setattr(bundle, "validate", validate_counted)
    monkeypatch.setattr(bundle, "frame_end", end_counted)
    return done


@pytest.mark.parametrize("length", [500, 5_000, 50_000, 300_000])
def test_promises_that_are_not_kept_cost_work_in_proportion_to_their_bytes(work: list[int], length: int) -> None:
    limits = RecordLimits(max_data_bytes=100_000)
    hostile = head(length) * 3000
    items = list(read_frames(io.BytesIO(hostile + STORED[0]), 0, len(hostile + STORED[0]), limits))
    assert b"".join(item.data for item in items) == hostile + STORED[0]
    assert work[0] <= bundle.HASHED_PER_BYTE * len(hostile) + 2 * limits.max_data_bytes
    assert work[1] <= 3001
    assert items[-1].data.endswith(STORED[0])


def test_marks_in_the_middle_of_lines_are_each_tried_once(work: list[int]) -> None:
    hostile = (b"x" + MARK + b"P." + b"0" * 43 + b".H3\n") * 2000
    items = frames_of(hostile + b"\n".join(STORED))
    assert work[1] <= 2000 + 3 * len(STORED)
    assert valid_among(items) == STORED


def test_a_record_before_garbage_is_found_after_hostile_promises(work: list[int]) -> None:
    items = frames_of(head(7) * 50 + b"garbage".join(STORED))
    assert valid_among(items) == STORED
