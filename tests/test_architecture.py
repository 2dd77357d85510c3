"""The import direction of docs/architecture.md, and which package may import which library."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "lace"

# A package sees only what stands below it; packages on one line never see each other.
LAYERS = [
    {"cli"},
    {"inspector", "spark"},
    {"porcelain"},
    {"runtime"},
    {"transports"},
    {"intake"},
    {"interlace", "iltp", "store"},
    {"policy"},
    {"facts"},
    {"records", "datalog", "differences"},
    {"workers"},
    {"notation", "limits", "errors"},
]
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}

LIBRARY_HOMES = {
    "pyspark": {"spark"},
    "deltalake": {"spark/archive/delta.py"},
    "sqlite3": {"store"},
    "websockets": {"transports"},
    "blake3": {"notation"},
    "cryptography": {"transports/certificate.py"},
    "cffi": {"records/libsecp.py"},
    "coincurve": {"records/libsecp.py"},
    "numpy": {"datalog/engine", "differences", "spark"},
    "starlette": {"inspector"},
    "uvicorn": {"inspector"},
    "click": {"cli"},
    "rich": {"cli"},
}


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: relative import"
            yield node.module
            if node.module == "lace":
                yield from (f"lace.{alias.name}" for alias in node.names)


MODULES = sorted(path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py")


def _package(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_one_way(path: Path) -> None:
    here = _package(path)
    assert here in RANK, f"{here} is in no layer"
    for name in _imports(path):
        parts = name.split(".")
        if parts[0] != "lace" or len(parts) == 1 or parts[1] not in RANK or parts[1] == here:
            continue
        same_floor = RANK[parts[1]] == RANK[here] and {here, parts[1]} <= {"notation", "limits", "errors"}
        assert RANK[parts[1]] > RANK[here] or same_floor, f"{path} imports {name}: against the direction"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_each_library_has_one_home(path: Path) -> None:
    relative = path.relative_to(SOURCE).as_posix()
    for name in _imports(path):
        homes = LIBRARY_HOMES.get(name.split(".")[0])
        if homes is not None:
            assert any(relative.startswith(home) for home in homes), f"{relative} imports {name}"
