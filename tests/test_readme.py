"""README.md and the pages of docs are true: their console blocks run with the real `lace` and print
what they show.

In the expected text `…` stands for anything within a line, and runs of spaces count as one. A prompt may name a person
(`bob$ `): each has a folder and a home. A command that ends in ` &` runs until the page ends. `lace1.…` in a command is
the line that was last printed for that person: what they paste.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).parent.parent
PROMPT = re.compile(r"([a-z]*)\$ ")
PASTED = "lace1.…"
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Step(NamedTuple):
    """A command, who types it, and what it prints."""

    person: str
    command: str
    expected: str

    @property
    def typed(self) -> int:
        """How many characters are typed, without what is pasted."""
        return len(self.command.replace(PASTED, ""))


def steps(block: str) -> Iterator[Step]:
    """Steps in order; a command goes on after a trailing backslash."""
    person, command, output = "", "", []
    lines = iter(block.splitlines())
    for line in lines:
        prompt = PROMPT.match(line)
        if prompt is not None:
            if command:
                yield Step(person, command, "\n".join(output))
            person, command, output = prompt[1], line[prompt.end() :], []
            while command.endswith("\\"):
                command += "\n" + next(lines)
        else:
            output.append(line)
    yield Step(person, command, "\n".join(output))


def steps_of(page: str) -> list[Step]:
    blocks = BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    assert blocks, f"{page} shows no command"
    return [step for block in blocks for step in steps(block)]


class Stage:
    """Where a page is played: a folder and a home for each person, and what runs in the background."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self._folder, self._env = folder, env
        self._running: list[subprocess.Popen[bytes]] = []
        self._lines: dict[str, str] = {}  # what was printed for each person to paste
        folder.mkdir()

    def play(self, step: Step) -> str:
        folder, env = self._folder, self._env
        if step.person:
            folder = self._folder / step.person
            folder.mkdir(exist_ok=True)
            env = {**self._env, "LACE_HOME": str(folder / ".home")}
        command = step.command.replace(PASTED, self._lines.get(step.person, PASTED))
        if command.endswith(" &"):
            self._begin(command.removesuffix(" &"), folder, env)
            return ""
        done = subprocess.run(
            ["bash", "-c", command], cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120
        )
        shown = done.stdout.decode()
        for line in re.findall(r"lace1\.\S+", shown):
            self._lines[command.split()[-1] if "--address" not in command else command.split()[3]] = line
        return shown

    def _begin(self, command: str, folder: Path, env: dict[str, str]) -> None:
        with (folder / "background.txt").open("wb") as said:
            self._running.append(
                subprocess.Popen(["bash", "-c", f"exec {command}"], cwd=folder, env=env, stdout=said, stderr=said)
            )
        deadline = time.monotonic() + 60
        while "serve" in command and b"listening" not in (folder / "background.txt").read_bytes():
            assert time.monotonic() < deadline, "the server does not listen"
            time.sleep(0.1)

    def end(self) -> None:
        for running in self._running:
            running.terminate()
        for running in self._running:
            running.wait(30)


def pattern(expected: str) -> re.Pattern[str]:
    lines = (
        r"[^\n]+(?:\n[^\n]+)*" if line == "…" else re.escape(line).replace("…", r"[^\n]+?")
        for line in squeeze(expected).split("\n")
    )
    return re.compile("\n".join(lines))


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
    stage = Stage(tmp_path / "stage", shell)
    try:
        for step in steps_of(page):
            if step.command.startswith("make "):
                continue  # `make demo` and `make test` set up an environment of their own
            shown = squeeze(stage.play(step))
            expected = f"$ {step.command}\nexpected:\n{step.expected}\n\ngot:\n{shown}"
            assert pattern(step.expected).fullmatch(shown), expected
    finally:
        stage.end()


def test_everybody_but_the_founder_joins_by_one_command_and_one_pasted_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    tutorial = steps_of("docs/tutorial.md")
    joined = [step for step in tutorial if step.command.startswith("lace join")]
    assert {step.person for step in joined} == {"bob", "carla", "dave", "erin", "laptop"}
    for step in joined:
        assert step is next(one for one in tutorial if one.person == step.person)  # nothing before it
        assert step.command == f"lace join {PASTED}"
    assert not any("grep -o" in step.command for step in tutorial)
    founding = [step for step in tutorial[: tutorial.index(joined[0])] if step.person == "anna"]
    with capsys.disabled():
        typed = sum(step.typed for step in founding)
        sys.stdout.write(
            f"\nfive people from nothing: anna {len(founding)} commands, {typed} characters; "
            f"each other 1 command, {joined[0].typed} characters and 1 pasted line\n"
        )
    assert len(founding) <= 8


def test_the_python_block_runs(shell: dict[str, str], tmp_path: Path) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=shell, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
