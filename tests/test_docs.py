"""The documentation is true: links lead somewhere, docs/cli.md is what `lace --help` says, examples run."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src"
PAGES = [path for path in sorted((ROOT / "docs").rglob("*.md")) if ">>> " in path.read_text(encoding="utf-8")]
MODULES = [path for path in sorted(SOURCE.rglob("*.py")) if ">>> " in path.read_text(encoding="utf-8")]


def test_links_and_the_command_reference_are_right() -> None:
    command = [sys.executable, "tools/check_docs.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("tool", ["api", "decisions", "import_graph", "repeated"])
def test_what_a_tool_reads_off_the_project_is_what_the_pages_say(tool: str) -> None:
    done = subprocess.run([sys.executable, f"tools/{tool}.py"], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_the_examples_of_a_page_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = re.sub(r"^```.*$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    test = doctest.DocTestParser().get_doctest(text, {}, path.name, str(path), 0)
    assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test).failed == 0


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_the_examples_of_a_module_run(path: Path) -> None:
    name = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    found = doctest.testmod(import_module(name))
    assert found.attempted > 0
    assert found.failed == 0


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_the_examples_of_a_page_are_typed(path: Path, tmp_path: Path) -> None:
    """What a reader copies passes `mypy --strict`: every verb is a plain, typed function or method."""
    lines = [line[4:] for line in path.read_text(encoding="utf-8").split("\n") if re.match(r">>> |\.\.\. ", line)]
    (tmp_path / "example.py").write_text("\n".join(lines) + "\n", encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--config-file", "", "example.py"]
    environment = {**os.environ, "MYPYPATH": str(SOURCE)}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, env=environment)
    found = [line for line in done.stdout.split("\n") if line.startswith("example.py")]
    assert found == []
