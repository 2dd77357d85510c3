"""What a command does on a second core."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lace.cli.cores import read_ahead
from lace.cli.options.arguments import opened_for_rules
from lace.store import open_store
from lace.store.columns.segments.table import SegmentTable
from store.samples import plex


@pytest.mark.parametrize("has_two", [True, False])
def test_what_was_read_ahead_is_what_the_body_reads(
    tmp_path: Path, has_two: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(tmp_path / "a.lace", create=True) as store:
        store.put([plex(f"n/{n}") for n in range(3)])
    reads: list[object] = []
    plain = SegmentTable.all_live
    monkeypatch.setattr(SegmentTable, "all_live", lambda log: reads.append(log) or plain(log))
    with opened_for_rules(tmp_path / "a.lace") as lace, read_ahead(lace.store.snapshot, has_two=has_two):
        first = lace.store.snapshot()
        assert lace.store.snapshot() is first
        assert first.record_count == 3
    assert len(reads) == 1


def test_an_error_of_reading_ahead_is_left_to_the_body() -> None:
    def fail() -> None:
        raise OSError("no")

    usual = sys.getswitchinterval()
    with read_ahead(fail, has_two=True):
        pass
    assert sys.getswitchinterval() == usual


def test_an_error_of_the_body_waits_for_the_reader() -> None:
    done: list[int] = []
    with pytest.raises(KeyError), read_ahead(lambda: done.append(1), has_two=True):
        raise KeyError
    assert done == [1]


def test_one_core_reads_when_it_is_asked() -> None:
    done: list[int] = []
    with read_ahead(lambda: done.append(1), has_two=False):
        pass
    assert done == []
