"""Lace inside Pyodide, under node: the same answers as here, and its own tests."""

from __future__ import annotations

import json
import subprocess
import sysconfig
from pathlib import Path

import pytest
from lace_playground.door import Door
from lace_playground.presets import presets
from make_playground import MAX_FOLDER

from lace.testing.simulator import Weather

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
# What a tab has not: threads, other processes, a compiled library to compare with, more memory than a number can say.
NOT_IN_A_TAB = (
    "thread", "process", "library", "largest_blob", "nobody_can_count", "concurrent", "thin_record_is_checked",
)  # fmt: skip
CONFORMANCE = {
    "records": ("tests/records", "tests/notation/test_b64a.py", "tests/notation/test_tai.py"),
    "rules": ("tests/executors/test_cases.py", "tests/datalog/test_parser.py", "tests/datalog/test_canonical.py"),
    "exchange": ("tests/interlace", "tests/runtime/test_session.py", "tests/iltp/test_reader.py"),
}


def questions() -> list[str]:
    """Every scene to begin with, calm and in one of the weathers, and the way of one side's first record."""
    asked = [{"ask": "begin"}]
    weathers: list[dict[str, bool]] = [{"cut": True}, {"corrupt": True}, {"delay": True}]
    for number, preset in enumerate(presets()):
        scene = preset.scene.to_json()
        if len(preset.scene.laces) > 3:
            continue  # the same questions of more laces: they take long in a tab
        weather = Weather(number, **weathers[number % len(weathers)])
        asked += [{"ask": "play", "scene": scene}]
        asked += [{"ask": "play", "scene": {**scene, "weather": weather.to_json()}}]
        begun = json.loads(Door().answer(json.dumps({"ask": "check", "scene": scene})))
        laces = begun["stage"]["laces"]
        giver = number % 2 if laces[number % 2]["records"] else 0
        names = {"from": laces[giver]["name"], "to": laces[1 - giver]["name"]}
        asked += [{"ask": "why", "scene": scene, "record": laces[giver]["records"][0]["hash"], **names}]
    asked += [{"ask": "check", "scene": {"laces": [{"select": "SelectHave(P) :- Heve(P)."}, {}]}}, {"ask": "nothing"}]
    return [json.dumps(one) for one in asked]


def test_the_folder_is_small_and_holds_nothing_that_is_not_needed(folder: Path) -> None:
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    assert size <= MAX_FOLDER
    assert {path.name for path in folder.iterdir() if path.is_dir()} == {"pyodide", "noble"}
    for path in (*folder.glob("*.mjs"), *folder.glob("*.html"), *folder.glob("*.css")):
        assert "://" not in path.read_text(encoding="utf-8"), f"{path.name} names another place"


@pytest.mark.long
def test_answers_in_a_tab_are_the_answers_here_to_the_letter(unpacked: Path, node: str, tmp_path: Path) -> None:
    asked = questions()
    (tmp_path / "questions").write_text("\n".join(asked), encoding="utf-8")
    run = [node, str(HERE / "answer.mjs"), str(unpacked), str(tmp_path / "questions")]
    done = subprocess.run(run, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    door = Door()
    told = done.stdout.rstrip("\n").split("\n")
    assert len(told) == len(asked)
    for question, answer in zip(asked, told, strict=True):
        assert json.loads(answer) == json.loads(door.answer(question)), question[:300]


@pytest.mark.slow
@pytest.mark.parametrize("part", CONFORMANCE)
def test_the_conformance_tests_pass_in_a_tab(with_whole_library: Path, node: str, part: str) -> None:
    left_out = " and ".join(f"not {word}" for word in NOT_IN_A_TAB)
    packages = sysconfig.get_paths()["purelib"]
    run = [
        node,
        str(HERE / "in_pyodide.mjs"),
        str(with_whole_library),
        str(ROOT),
        packages,
        *CONFORMANCE[part],
        "-k",
        left_out,
    ]
    done = subprocess.run([*run, "-m", "not slow"], capture_output=True, text=True, check=False, timeout=3600)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
