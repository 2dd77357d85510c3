"""The pytest plugin `lace`: fixtures for programs that embed Lace.

Rule: each fixture is a real thing in a folder of the test's own, closed when the test ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lace.porcelain.lace import Lace, open_lace
from lace.testing.clock import MovableClock


@pytest.fixture
def lace_clock() -> MovableClock:
    """The clock of the laces of this test; it stands until the test moves it."""
    return MovableClock()


@pytest.fixture
def lace_folder(tmp_path: Path) -> Path:
    """Where the laces of this test are."""
    return tmp_path


@pytest.fixture
def lace_pair(lace_folder: Path, lace_clock: MovableClock) -> Iterator[tuple[Lace, Lace]]:
    """Two empty laces in files, under the clock of this test."""
    first, second = lace_folder / "first.lace", lace_folder / "second.lace"
    with (
        open_lace(first, create=True, clock=lace_clock) as one,
        open_lace(second, create=True, clock=lace_clock) as other,
    ):
        yield one, other
