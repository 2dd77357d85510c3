"""A pytest plugin: how long each test took, as JSON in the file that LACE_TEST_TIMES names."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path

import pytest

_seconds: defaultdict[str, float] = defaultdict(float)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Under xdist the process that hands out the tests hears of all of them."""
    _seconds[report.nodeid] += report.duration


def pytest_sessionfinish(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):
        Path(os.environ["LACE_TEST_TIMES"]).write_text(json.dumps(_seconds), encoding="utf-8")
