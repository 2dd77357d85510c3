"""The import direction of docs/architecture.md, and which package may import which library."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "lace"

# A package sees only what stands below it; packages on one line never see each other.
GROUND = {"notation", "limits", "thresholds", "errors", "values"}  # these may see each other
LAYERS = [
    {"cli"},
    {"inspector", "spark", "folder", "testing"},
    {"porcelain"},
    {"runtime"},
    {"transports"},
    {"intake", "people"},
    {"interlace", "iltp", "store"},
    {"policy"},
    {"facts", "reconcile"},
    {"records", "datalog", "differences"},
    {"workers"},
    GROUND,
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
    "numpy": {
        "datalog/engine",
        "differences",
        "reconcile",
        "spark",
        "store/columns/dictionary/bulk.py",
    },
    "starlette": {"inspector"},
    "uvicorn": {"inspector"},
    "pyfastcdc": {"porcelain/cutting.py"},
    "pathspec": {"folder"},
    "watchfiles": {"folder"},
    "click": {"cli"},
    "rich": {"cli"},
    "segno": {"cli"},
    "pytest": {"testing"},
}


@cache
def _nodes(path: Path) -> list[ast.AST]:
    """A module in parts, taken apart once: these tests run in one process (`_group` in conftest.py)."""
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


@cache
def _imports(path: Path) -> tuple[str, ...]:
    return tuple(_each_import(path))


def _each_import(path: Path) -> Iterator[str]:
    for node in _nodes(path):
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


def _is_upward(here: str, name: str) -> bool:
    parts = name.split(".")
    if parts[0] != "lace" or len(parts) == 1 or parts[1] not in RANK or parts[1] == here:
        return False
    same_floor = RANK[parts[1]] == RANK[here] and {here, parts[1]} <= GROUND
    return RANK[parts[1]] <= RANK[here] and not same_floor


def test_imports_point_one_way() -> None:
    assert not {_package(path) for path in MODULES} - RANK.keys(), "a package is in no layer"
    against = [
        f"{path} imports {name}" for path in MODULES for name in _imports(path) if _is_upward(_package(path), name)
    ]
    assert not against, "\n".join(against)


def _is_at_home(relative: str, name: str) -> bool:
    homes = LIBRARY_HOMES.get(name.split(".")[0])
    return homes is None or any(relative.startswith(home) for home in homes)


def test_each_library_has_one_home() -> None:
    places = [(path.relative_to(SOURCE).as_posix(), name) for path in MODULES for name in _imports(path)]
    astray = [f"{relative} imports {name}" for relative, name in places if not _is_at_home(relative, name)]
    assert not astray, "\n".join(astray)


PURE = ("notation", "records", "differences", "reconcile", "datalog", "facts", "policy", "interlace", "iltp")
WORLDLY = {
    "asyncio", "concurrent", "ctypes", "io", "multiprocessing", "os", "pathlib", "random", "secrets", "selectors",
    "signal", "socket", "sqlite3", "subprocess", "sys", "tempfile", "threading", "time",
}  # fmt: skip
EXCEPTIONS = {  # docs/architecture.md says why
    ("notation/compiled.py", "os"),
    ("records/curve.py", "os"),
    ("records/keys.py", "os"),
    ("records/keys.py", "threading"),
    ("datalog/engine/evaluate.py", "time"),
    ("datalog/engine/vector.py", "time"),
    ("datalog/library/database.py", "threading"),
    ("notation/stopping.py", "time"),
}


def test_the_pure_packages_touch_nothing_of_the_world() -> None:
    found = {
        (str(path.relative_to(SOURCE)), library)
        for path in MODULES
        if _package(path) in PURE
        for library in (name.split(".")[0] for name in _imports(path))
        if library in WORLDLY
    }
    assert found == EXCEPTIONS


def test_the_page_names_every_folder_of_the_runtime() -> None:
    page = (SOURCE.parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = page.partition("| folder | what it is |")[2].partition("\n\n")[0]
    named = {word for line in table.splitlines() for word in re.findall(r"`(\w+)`", line.split("|")[1] if line else "")}
    assert named == {path.parent.name for path in (SOURCE / "runtime").glob("*/__init__.py")}


def _classes(path: Path) -> Iterator[str]:
    return (node.name for node in _nodes(path) if isinstance(node, ast.ClassDef))


def is_there(name: str) -> bool:
    """Whether a dotted name of the page is a module of ours, or a name in one; the page leaves `runtime` out."""
    *above, last = name.split(".")
    for base in (SOURCE, SOURCE / "runtime", SOURCE / "interlace"):
        module = base.joinpath(*above, last)
        if module.is_dir() or module.with_suffix(".py").exists():
            return True
        for holder in (base.joinpath(*above).with_suffix(".py"), base.joinpath(*above, "__init__.py")):
            if holder.exists() and re.search(rf"\b{last}\b", holder.read_text("utf-8")):
                return True
    return False


def test_the_page_names_modules_that_are_there_and_at_most_nine_places_to_wait() -> None:
    page = (SOURCE.parent.parent / "docs" / "architecture.md").read_text("utf-8")
    named = set(re.findall(r"`([a-z_]+(?:\.[a-zA-Z_]+)+)`", page))
    assert len(named) > 20
    assert [name for name in sorted(named) if not is_there(name)] == []
    (places,) = re.findall(r"waits in at most nine places, each with a bound: (.*?)\n\n", page, re.DOTALL)
    assert len(places.split(";")) <= 9


def test_a_class_name_means_one_thing_in_the_whole_of_the_sources() -> None:
    """Private classes and classes inside functions count: whoever searches for a name finds one definition."""
    homes: dict[str, list[str]] = {}
    for path in [*MODULES, SOURCE / "__init__.py"]:
        for name in _classes(path):
            homes.setdefault(name, []).append(path.relative_to(SOURCE).as_posix())
    assert len(homes) > 500, "the classes were not found"
    assert not {name: places for name, places in homes.items() if len(places) > 1}
