"""README.md and the pages of docs are true: their console blocks run with the real `lace` and print
what they show.

In the expected text `…` stands for anything within a line, and runs of spaces count as one.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def steps(block: str) -> Iterator[tuple[str, str]]:
    """(command, expected output) in order; a command goes on after a trailing backslash."""
    command, output = "", []
    lines = iter(block.splitlines())
    for line in lines:
        if line.startswith("$ "):
            if command:
                yield command, "\n".join(output)
            command, output = line[2:], []
            while command.endswith("\\"):
                command += "\n" + next(lines)
        else:
            output.append(line)
    yield command, "\n".join(output)


def pattern(expected: str) -> re.Pattern[str]:
    escaped = re.escape(squeeze(expected))
    return re.compile(escaped.replace("…", r"[^\n]+?"))


def squeeze(text: str) -> str:
    return "\n".join(" ".join(line.split()) for line in text.strip().splitlines())


@pytest.fixture
def shell(tmp_path: Path) -> dict[str, str]:
    """An environment whose `lace` is the one under test."""
    script = tmp_path / "bin" / "lace"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m lace.cli "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    return {
        **os.environ,
        "PATH": f"{script.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "LACE_HOME": str(tmp_path / "home"),
    }


PAGES = [
    path.relative_to(ROOT).as_posix()
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if BLOCK.search(path.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize("page", PAGES)
def test_the_console_blocks_print_what_they_show(page: str, shell: dict[str, str], tmp_path: Path) -> None:
    stage = tmp_path / "stage"
    stage.mkdir()
    blocks = BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    assert blocks, f"{page} shows no command"
    for command, expected in (step for block in blocks for step in steps(block)):
        if command.startswith("make "):
            continue  # `make demo` and `make test` set up an environment of their own
        done = subprocess.run(
            ["bash", "-c", command], cwd=stage, env=shell, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120
        )
        shown = squeeze(done.stdout.decode())
        assert pattern(expected).fullmatch(shown), f"$ {command}\nexpected:\n{expected}\n\ngot:\n{shown}"


def test_the_python_block_runs(shell: dict[str, str], tmp_path: Path) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=shell, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
