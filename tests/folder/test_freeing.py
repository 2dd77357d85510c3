"""Freeing never removes the only copy, whoever says that it has one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import lace
from lace.errors import InvalidInput
from lace.porcelain.freeing import free, freeable

PLACE = ("g", "files", "")
CONTENT = bytes(range(256)) * 400


@pytest.fixture
def notes(tmp_path: Path) -> Iterator[lace.Lace]:
    """A lace with one content in three parts."""
    with lace.open(tmp_path / "x.lace", create=True) as opened:
        cut = lambda _: iter([CONTENT[:40_000], CONTENT[40_000:80_000], CONTENT[80_000:]])  # noqa: E731
        opened.put(CONTENT, group="g", app="files", name="a", cut=cut)
        yield opened


def parts_of(notes: lace.Lace) -> set[str]:
    return {str(record) for _, record in notes.store.records_since() if record.type == "B"}


def test_a_peer_that_serves_the_very_lace_frees_nothing(notes: lace.Lace) -> None:
    def ask() -> list[set[str]]:
        return [parts_of(notes)]  # it answers from the same file

    found = freeable(notes, PLACE, ask())
    assert len(found.parts) == 3
    with pytest.raises(InvalidInput, match="the only copy"):
        free(notes, found, ask)
    assert notes.get("//g//files//a") == CONTENT


def test_a_peer_that_is_gone_when_it_is_asked_again_frees_nothing(notes: lace.Lace) -> None:
    def gone() -> list[set[str]]:
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError):
        free(notes, freeable(notes, PLACE, [parts_of(notes)]), gone)
    assert notes.get("//g//files//a") == CONTENT


def test_what_every_peer_still_has_is_freed(notes: lace.Lace) -> None:
    held = parts_of(notes)
    assert free(notes, freeable(notes, PLACE, [held]), lambda: [held]) == 3
    assert parts_of(notes) == set()


def test_a_lace_named_as_its_own_peer_is_refused_under_any_name(notes: lace.Lace, tmp_path: Path) -> None:
    (tmp_path / "same.lace").symlink_to("x.lace")
    command = [sys.executable, "-m", "lace.cli", "free", "x.lace", "//g//files", "--from", "same.lace", "--apply"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "same.lace is the lace to free" in done.stderr
    assert notes.get("//g//files//a") == CONTENT
