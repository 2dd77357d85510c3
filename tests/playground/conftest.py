"""A built playground, once for all tests that need one."""

from __future__ import annotations

import gzip
import shutil
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


@pytest.fixture(scope="session")
def unpacked(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same folder as the tab sees it: node reads files, and nobody unpacks them for it."""
    out = tmp_path_factory.mktemp("unpacked") / "out"
    shutil.copytree(folder, out)
    for path in out.rglob("*.packed"):
        path.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
        path.unlink()
    return out


@pytest.fixture(scope="session")
def with_whole_library(unpacked: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with all of Python's own library: pytest needs what the playground leaves out."""
    out = tmp_path_factory.mktemp("whole") / "out"
    shutil.copytree(unpacked, out)
    modules = npm_packages.packages(ROOT / "playground", ROOT / "build" / "playground")
    shutil.copy(modules / "pyodide/python_stdlib.zip", out / "pyodide/python_stdlib.zip")
    return out
