"""Every command on a real terminal, wide and narrow, with colour and without: nothing is broken, nothing is raw."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest

from lace.cli.catalogue import CATALOGUE
from lace.cli.output.text import hanging

if sys.platform == "win32":
    pytest.skip("no terminals of this kind", allow_module_level=True)

from cli.screens import MORE_SCREENS, SCENES, SCREENS, Scene, Screen, Shot

STYLE = re.compile(r"\x1b\[[0-9;]*m")
COLOUR = re.compile(r"\x1b\[(?:[0-9;]*;)?(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])(?:;[0-9;]*)?m")
# What a progress bar of ours writes and takes back: cursor off and on, a line erased, a line up.
BAR = re.compile(r"\x1b\[(?:\?25[lh]|2K|1A)|\r(?!\n)")
SPELLED_STYLE = re.compile(r"\\(?:x1b|u001b|033)\[[0-9;]*m|(?<!\x1b)\[[0-9;]+m")
GUIDES = "│├└"


@pytest.fixture(scope="module")
def shots(tmp_path_factory: pytest.TempPathFactory) -> list[Shot]:
    return filmed(tmp_path_factory.mktemp("film") / "film.json")


def filmed(film: Path, *options: str) -> list[Shot]:
    """By a process that forks: this one may have threads."""
    script = Path(__file__).with_name("screens.py")
    subprocess.run([sys.executable, str(script), "--film", str(film), *options], check=True, timeout=400)
    return [_shot(row) for row in json.loads(film.read_text())]


def _shot(row: dict[str, dict[str, object]]) -> Shot:
    scene = {name: tuple(value) if isinstance(value, list) else value for name, value in row["scene"].items()}
    return Shot(Scene(**scene), Screen(**row["screen"]), row["written"], row["exit_code"])  # type: ignore[arg-type]


def lines(shot: Shot) -> Iterator[str]:
    """What a person sees, before the terminal breaks lines."""
    return iter(STYLE.sub("", BAR.sub("", shot.written)).replace("\r\n", "\n").split("\n"))


def cells(line: str) -> int:
    """Columns, written out here anew."""
    return sum(
        0 if unicodedata.category(one)[0] == "M" else 1 + (unicodedata.east_asian_width(one) in "WF") for one in line
    )


def told(shot: Shot) -> str:
    return f"{shot.screen}: lace {' '.join(shot.scene.words)}\n{shot.written}"


def test_every_command_has_a_scene() -> None:
    assert set(SCENES) == {entry.name for entry in CATALOGUE}
    assert all(scenes and all(one.words[0] == name for one in scenes) for name, scenes in SCENES.items())


def test_a_long_line_of_a_tree_keeps_its_guides_and_all_its_text() -> None:
    line = "│  ├─ Selected('a','b') :- Field(P,'Title',_,'" + "x" * 50 + "'), Field(P,'Group',_,'u')."
    for columns in range(20, 90):
        pieces = hanging(line, columns)
        assert all(cells(piece) <= columns for piece in pieces)
        assert all(piece.startswith("│  │") for piece in pieces[1:])
        assert "".join("".join(pieces).split()).replace("│", "") == "".join(line.split()).replace("│", "")
    assert hanging("short", 80) == ["short"]
    wide = hanging("日本語" * 10, 20)
    assert [cells(piece) for piece in wide] == [20, 20, 20, 6]
    assert "".join(piece.strip() for piece in wide) == "日本語" * 10


@pytest.mark.long
def test_nothing_is_broken_on_any_screen(shots: list[Shot]) -> None:
    """One test for all, so that they are filmed once whoever runs it; every finding is told."""
    require_whole(shots, SCREENS)


@pytest.mark.slow
def test_nothing_is_broken_on_the_screens_of_the_night(tmp_path: Path) -> None:
    require_whole(filmed(tmp_path / "film.json", "--more"), MORE_SCREENS)


def require_whole(shots: list[Shot], screens: list[Screen]) -> None:
    assert len(shots) == len(screens) * sum(map(len, SCENES.values()))
    found = [f"{what}: {told(shot)}" for shot in shots for what in findings(shot)]
    assert not found, "\n\n".join(found[:10]) + f"\n{len(found)} findings"


def findings(shot: Shot) -> Iterator[str]:
    """What a person would stumble over."""
    if shot.exit_code not in shot.scene.exits:
        yield f"exit code {shot.exit_code}"
    if not shot.written.strip() and not shot.scene.is_silent:
        yield "nothing is printed"
    if "Traceback" in shot.written:
        yield "a traceback"
    plain = "\n".join(lines(shot))
    if SPELLED_STYLE.search(plain):
        yield "an escape is spelled out"
    raw = {one for one in plain if unicodedata.category(one) in ("Cc", "Cf", "Zl", "Zp") and one not in "\n\t"}
    if raw - ({"\x04", "\x08"} if shot.scene.typed else set()):  # the terminal itself shows ^D so
        yield f"raw control characters {raw!r}"
    if shot.screen.settings.get("NO_COLOR") and COLOUR.search(shot.written):
        yield "colour in spite of NO_COLOR"
    if "\x1b[?25l" in shot.written and shot.written.rfind("\x1b[?25l") > shot.written.rfind("\x1b[?25h"):
        yield "a bar is left behind"
    wide = [line for line in lines(shot) if cells(line) > shot.screen.columns]
    if any(guide in line for line in wide for guide in GUIDES):
        yield "a tree is broken"
    table = re.search(r"^\x1b\[1m.*", shot.written, re.MULTILINE | re.DOTALL)  # from its heading on
    if table and not shot.scene.wraps and shot.scene.words[0] in TABLES:
        rows = STYLE.sub("", table[0]).replace("\r\n", "\n").split("\n")
        if any(cells(row) > shot.screen.columns for row in rows):
            yield "a table is wider than the terminal"


TABLES = {"ls", "find", "query", "browse", "quota", "key", "rules"}


@pytest.mark.long
def test_colours_and_hostile_names_are_really_there(shots: list[Shot]) -> None:
    """Otherwise the test above would find nothing whatever happens."""
    for command, has_colour in (("why", True), ("test", True), ("stat", True)):
        of_command = [shot for shot in shots if shot.scene.words[0] == command]
        coloured = {bool(shot.screen.settings.get("NO_COLOR")) for shot in of_command if COLOUR.search(shot.written)}
        assert coloured == ({False} if has_colour else set()), command
    for command in ("ls", "get", "cat", "facts", "find", "why", "explain", "query", "browse", "view", "export"):
        assert any("evil\\u202eboat" in shot.written.replace("\r\n", "").replace(" ", "") or "\\u202e" in shot.written
                   for shot in shots if shot.scene.words[0] == command), command  # fmt: skip
    trees = [shot for shot in shots if any(guide in shot.written for guide in GUIDES)]
    assert {shot.scene.words[0] for shot in trees} >= {"why", "explain", "test"}
