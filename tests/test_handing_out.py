"""Workers get every test once; those of a group come one after another in one worker."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

CONFTEST = """
import handing_out

def pytest_xdist_make_scheduler(config, log):
    return handing_out.groups(lambda file: "together" if file.startswith("test_group") else None, config, log)
"""
TOLD = """
import os
import pytest

def tell(name):
    with open("told", "a") as told:
        told.write(f"{os.environ['PYTEST_XDIST_WORKER']} {name}\\n")

@pytest.mark.parametrize("number", range(20))
def test_one(number):
    tell(f"{__name__} {number}")
"""


@pytest.mark.long
def test_every_test_runs_once_and_a_group_in_one_worker(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    for name in ("alone", "group_a", "group_b"):
        (tmp_path / f"test_{name}.py").write_text(TOLD)
    here = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    here["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # each of four processes would load them, and none is asked
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "xdist", "-n", "3", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env={**here, "PYTHONPATH": str(Path(__file__).parent)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    told = [line.split() for line in (tmp_path / "told").read_text().splitlines()]
    runs = Counter((name, number) for _, name, number in told)
    assert set(runs) == {(f"test_{name}", str(n)) for name in ("alone", "group_a", "group_b") for n in range(20)}
    assert "60 passed" in done.stdout, done.stdout + done.stderr
    assert set(runs.values()) == {1}
    assert len({worker for worker, name, _ in told if "group" in name}) == 1
    assert len({worker for worker, name, _ in told if "group" not in name}) > 1
