"""What `lace.testing` gives to programs that embed Lace: a plugin, and assertions that can fail."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import lace
from lace.testing import MovableClock, assert_moved, assert_withheld

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("named", [True, False], ids=["named", "as installed"])
def test_the_page_of_testing_is_a_test_that_passes_by_the_plugin_alone(tmp_path: Path, named: bool) -> None:
    if not (named or entry_points(group="pytest11", name="lace.testing.plugin")):
        pytest.skip("this environment installed an older lace")
    page = (ROOT / "docs" / "howto" / "testing.md").read_text("utf-8")
    (tmp_path / "test_page.py").write_text(page.split("```python\n")[1].split("```")[0])
    plugin = ["-p", "lace.testing.plugin"] if named else []
    command = [sys.executable, "-m", "pytest", "-q", *plugin, "-p", "no:cacheprovider", "."]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False, env=environment
    )
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_assertions_fail_with_what_happened() -> None:
    here, there = lace.open(":memory:"), lace.open(":memory:")
    record = here.put(b"x", group="u", app="a", name="n")
    nothing = lace.exchange(here, there)
    with pytest.raises(AssertionError, match="did not come"):
        assert_moved(nothing, there, [record])
    assert_withheld(record, here, there, at="exposed")
    with pytest.raises(AssertionError, match="stops at 'exposed"):
        assert_withheld(record, here, there, at="valid")
    with pytest.raises(AssertionError, match="it would move"):
        assert_withheld(record, here, there, expose="all")
    with pytest.raises(ValueError, match="one of stored"):
        assert_withheld(record, here, there, at="mood")
    assert_moved(lace.exchange(here, there, expose="all"), there, [record])
    assert_withheld(record, here, there, at="missing", expose="all")


def test_a_clock_stands_until_it_is_moved() -> None:
    clock = MovableClock()
    notes = lace.open(":memory:", clock=clock)
    first = notes.put(b"1", group="u", app="a", name="n")
    clock.move(60)
    second = notes.put(b"2", group="u", app="a", name="n")
    early, late = (lace.TAI.parse(row["TAI"]).to_ns() for row in notes.list())
    assert late - early == 60 * 10**9
    assert notes.get("//u//a//n") == b"2"
    assert first != second
    with pytest.raises(ValueError, match="forward"):
        clock.move(-1)
