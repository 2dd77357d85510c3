"""How far the tests reach into what they test: private names and thresholds that they set by hand.

Rule: both numbers only go down. A test uses public names and hands values in (`lace.thresholds`, `lace.limits`). When
you remove such a place, lower the number here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
# Named tuples, and what PySpark hides of Java: neither is ours.
OF_OTHERS = {"_make", "_fields", "_replace", "_jvm", "_jdf", "_jsc", "_gateway"}
PRIVATE = re.compile(r"_[A-Za-z]\w*(?<!_)")  # a name that ends in _ too, as _repr_html_, is part of a public protocol
CONSTANT = re.compile(r"_?[A-Z][A-Z0-9_]+")
MOST_PRIVATE_NAMES = 16
MOST_PATCHED_THRESHOLDS = 0


@cache
def trees() -> dict[str, ast.Module]:
    return {str(file.relative_to(TESTS)): ast.parse(file.read_text("utf-8")) for file in sorted(TESTS.rglob("*.py"))}


def own_names(tree: ast.Module) -> set[str]:
    """Private names that a test file defines: its classes may have what they like."""
    defined = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    names = {node.name for node in ast.walk(tree) if isinstance(node, defined)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
                names.add(node.attr)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names


def private_names(tree: ast.Module) -> Iterator[str]:
    """Every place that reads a private attribute of something else, or imports a private name of ours."""
    own = own_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and PRIVATE.fullmatch(node.attr) and node.attr not in own | OF_OTHERS:
            if not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls", "os")):
                yield f"{node.lineno}: .{node.attr}"
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lace"):
            yield from (f"{node.lineno}: {name.name}" for name in node.names if PRIVATE.fullmatch(name.name))


def patched_thresholds(tree: ast.Module) -> Iterator[str]:
    """Every place that sets a constant of a module for the length of a test."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "setattr":
            names = [part.value for part in node.args[:2] if isinstance(part, ast.Constant)]
            for name in names:
                if isinstance(name, str) and CONSTANT.fullmatch(name.rpartition(".")[2]):
                    yield f"{node.lineno}: {name}"


@pytest.mark.parametrize(
    ("find", "most"),
    [(private_names, MOST_PRIVATE_NAMES), (patched_thresholds, MOST_PATCHED_THRESHOLDS)],
    ids=["private names", "patched thresholds"],
)
def test_tests_reach_in_no_further_than_before(find: object, most: int) -> None:
    assert callable(find)
    found = [f"tests/{file}:{place}" for file, tree in trees().items() for place in find(tree)]
    assert len(found) <= most, "\n".join(["reach for a public name, or hand the value in:", *found])


def test_a_reach_is_noticed() -> None:
    tree = ast.parse(
        "from lace.store import _hidden\nfrom lace.store import shown\n"
        "class Own:\n    def __init__(self): self._mine = 1\n"
        "def test(one, monkeypatch):\n    one._file.close()\n    assert one._mine\n    one.__dict__\n"
        "    monkeypatch.setattr(shown, '_FEW', 2)\n    monkeypatch.setattr('lace.store.FEW', 2)\n"
        "    monkeypatch.setattr(shown, 'few', 2)\n    monkeypatch.setattr(shown, '_few', 2)\n"
    )
    assert list(private_names(tree)) == ["1: _hidden", "6: ._file"]
    assert list(patched_thresholds(tree)) == ["9: _FEW", "10: lace.store.FEW"]
