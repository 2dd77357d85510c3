"""What a public function takes or gives can be named by whoever calls it."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import lace

PUBLIC = (*lace.__all__, "open")
SOURCES = Path(__file__).parents[2] / "src" / "lace"
# Protocols that things of the caller keep without naming them, and what only an inner door asks for.
UNNAMED = {"HasRecordStore", "HasStore", "OperandIdentity", "Rule", "Terms", "Viewer"}
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
    for name in PUBLIC:
        thing = getattr(lace, name)
        if inspect.isfunction(thing):
            yield name, thing
        elif inspect.isclass(thing):
            members = inspect.getmembers(thing, inspect.isfunction)
            yield from ((f"{name}.{own}", member) for own, member in members if not own.startswith("_"))


def test_every_class_in_a_public_signature_is_public() -> None:
    known = our_classes() - set(PUBLIC) - UNNAMED - OTHERS
    hidden = {
        f"{name}: {word}"
        for name, function in public_functions()
        for annotation in function.__annotations__.values()
        for word in re.findall(r"\w+", str(annotation))
        if word in known
    }
    assert hidden == set()


def test_every_public_name_is_found_and_documented() -> None:
    for name in PUBLIC:
        thing = getattr(lace, name)
        is_alias = not inspect.isroutine(thing) and not isinstance(thing, type)  # the page of the API has its text
        assert is_alias or inspect.getdoc(thing), name
    assert set(PUBLIC) <= set(dir(lace))


def test_a_star_import_leaves_the_built_in_open_alone() -> None:
    taken: dict[str, object] = {}
    exec("from lace import *", taken)
    assert "open" not in taken
    assert taken["Lace"] is lace.Lace
    assert lace.open.__module__.startswith("lace.")


def test_a_misspelt_name_is_told_with_the_right_one() -> None:
    with pytest.raises(AttributeError, match="no attribute 'exhange'; did you mean 'exchange'"):
        _ = lace.exhange  # type: ignore[attr-defined]


@pytest.mark.long
def test_a_type_checker_finds_a_misspelt_name_and_a_misspelt_option(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import lace\n"
        "notes = lace.open(':memory:')\n"
        "lace.exhange(notes, notes)\n"
        "lace.Node(notes, exposed='all')\n"
        "lace.connect(notes, 'unix:/x', expose='all').raise_for_status()\n"
    )
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", str(program)]
    found = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env={"MYPYPATH": str(SOURCES.parent)})
    lines = found.stdout.splitlines()
    assert [line.partition(": ")[0].rpartition(":")[2] for line in lines if "error" in line] == ["3", "4"], lines
    assert "exhange" in found.stdout
    assert "exposed" in found.stdout
