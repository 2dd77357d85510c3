"""What a public function takes or gives can be named by whoever calls it."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import lace

SOURCES = Path(__file__).parents[2] / "src" / "lace"
# Protocols that things of the caller keep without naming them, and what only an inner door asks for.
UNNAMED = {"Coordinate", "Entry", "FactSource", "HasRecordStore", "HasStore", "Module", "Terms", "Usage", "Writable"}
OTHERS = {
    "Asked",
    "Content",
    "Path",
    "Progress",
    "Steps",
    "Table",
}  # pathlib, pyarrow, aliases: here they mean no class of ours


def our_classes() -> set[str]:
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in SOURCES.rglob("*.py"))
    return {node.name for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)}


def public_functions() -> Iterator[tuple[str, Callable[..., object]]]:
    for name in lace.__all__:
        thing = getattr(lace, name)
        if inspect.isfunction(thing):
            yield name, thing
        elif inspect.isclass(thing):
            members = inspect.getmembers(thing, inspect.isfunction)
            yield from ((f"{name}.{own}", member) for own, member in members if not own.startswith("_"))


def test_every_class_in_a_public_signature_is_public() -> None:
    known = our_classes() - set(lace.__all__) - UNNAMED - OTHERS
    hidden = {
        f"{name}: {word}"
        for name, function in public_functions()
        for annotation in function.__annotations__.values()
        for word in re.findall(r"\w+", str(annotation))
        if word in known
    }
    assert hidden == set()


def test_every_public_name_is_found_and_documented() -> None:
    for name in lace.__all__:
        assert inspect.getdoc(getattr(lace, name)), name
    assert set(lace.__all__) <= set(dir(lace))
