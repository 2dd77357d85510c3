"""The limits of a lace hold at every door, and never against what is stored already."""

from __future__ import annotations

from pathlib import Path

import pytest

import lace
from lace.errors import InvalidRecord
from lace.limits import RecordLimits
from store.samples import bundle_of

SMALL = RecordLimits(max_data_bytes=10)


def test_a_record_over_the_limit_comes_in_by_no_door(tmp_path: Path) -> None:
    with lace.open(":memory:") as large, lace.open(tmp_path / "small.lace", create=True, limits=SMALL) as small:
        wide = large.put(b"0123456789a", group="u", app="a", name="wide")
        slim = large.put(b"0123456789", group="u", app="a", name="slim")
        with pytest.raises(InvalidRecord):
            small.put_stored(large.stored(wide))
        report = small.import_(bundle_of(tmp_path / "all.bundle", large.stored(wide), large.stored(slim)))
        assert (report.stored, dict(report.rejected)) == (1, {"record-frame": 1})
        small.delete(slim)
        lace.exchange(large, small, expose="all")
        assert [record for _, record in small.store.records_since()] == [slim]


def test_what_was_stored_under_wider_limits_can_be_deleted_under_narrow_ones(tmp_path: Path) -> None:
    path = tmp_path / "a.lace"
    with lace.open(path, create=True) as notes:
        wide = notes.put(b"0123456789a", group="u", app="a", name="wide")
    with lace.open(path, limits=SMALL) as notes:
        assert notes.delete(wide) == 1
        assert list(notes.list()) == []
