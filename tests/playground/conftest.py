"""A built playground, once for all tests that need one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
TOOLS = str(ROOT / "tools")

# Only while these are loaded: a tool that is named like a folder of tests (siege) would hide it from everybody else.
sys.path.append(TOOLS)
try:
    import make_playground
    import npm_packages
    import playground_server  # noqa: F401  (a test takes it from here on by its name)
finally:
    sys.path.remove(TOOLS)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that `make playground` makes; what it takes from npm is kept between runs."""
    out = tmp_path_factory.mktemp("playground") / "out"
    try:
        make_playground.build(out, ROOT / "build" / "playground")
    except npm_packages.NotFetched as why:
        pytest.skip(f"the playground was not run in a tab: {why}")
    return out


@pytest.fixture(scope="session")
def node() -> str:
    """node, which runs the folder without a browser."""
    try:
        return npm_packages.node()
    except npm_packages.NotFetched as why:
        pytest.skip(f"the playground was not run under node: {why}")
