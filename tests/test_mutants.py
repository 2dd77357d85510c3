"""tools/mutants.py: which changes there are, and that a changed function is the one that tests then call."""

from __future__ import annotations

import ast
import subprocess
import sys
from copy import deepcopy
from importlib.util import module_from_spec
from pathlib import Path

import pytest

TOOLS = str(Path(__file__).parent.parent / "tools")


@pytest.fixture(autouse=True)
def tools_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(TOOLS)


def changes_of(source: str) -> list[str]:
    from mutation.changes import change, sites

    return [change(deepcopy(node), kind) for node, kind in sites(ast.parse(source))]


def test_operators_constants_and_conditions_of_functions_are_changed() -> None:
    source = "limit = 3\ndef f(a, b):\n    if a < b and not a:\n        return a + 1\n    return a in b\n"
    assert sorted(changes_of(source)) == [
        "and-or: a < b and (not a) -> a < b or not a",
        "comparison: a < b -> a <= b",
        "comparison: a in b -> a not in b",
        "condition: a < b and (not a) -> False",
        "constant: 1 -> 2",
        "not: not a -> not not a",
        "operator: a + 1 -> a - 1",
    ]


@pytest.mark.parametrize(
    "body",
    [
        "x: int | None = None",
        "return cast(int | str, x)",
        "return zip(x, x, strict=True)",
        "def inner(y: int | str) -> int | None: ...",
    ],
)
def test_what_no_run_can_tell_from_its_change_is_left_alone(body: str) -> None:
    assert changes_of(f"def f(x):\n    {body}\n") == []
    assert changes_of(f"class C:\n    def __repr__(self):\n        {body}\n        return 1 + 1\n") == []


def test_a_function_inside_another_offers_its_changes_once() -> None:
    assert changes_of("def f():\n    def g():\n        return 7\n    return g\n") == ["constant: 7 -> 8"]


def test_every_mutant_of_a_package_changes_the_code_of_a_function_that_is_in_memory() -> None:
    from mutation import changes, trials

    import lace.notation.b64a

    mutants = [mutant for mutant in changes.drawn(10**9, 1, ["notation"]) if mutant.path.name == "b64a.py"]
    assert len(mutants) > 20
    functions = [thing for thing in vars(lace.notation.b64a).values() if isinstance(thing, type(changes_of))]
    ours = [function for function in functions if function.__module__ == "lace.notation.b64a"]
    before = {trials.place(function.__code__): function.__code__ for function in ours}
    for mutant in mutants:
        code = compile(changes.mutated(mutant), str(mutant.source), "exec")
        after = {trials.place(inner): inner for inner in trials.codes(code)}
        assert [place for place in before if before[place] != after[place]], mutant


def test_whoever_imports_a_broken_module_gets_the_change_and_all_others_stay() -> None:
    from mutation.changes import drawn
    from mutation.trials import Breaking

    import lace.notation.decimal

    changed = "comparison: len(text) <= max_digits -> len(text) < max_digits"
    [mutant] = [mutant for mutant in drawn(10**9, 1, ["notation"]) if mutant.change == changed]
    breaking = Breaking(mutant)
    assert breaking.find_spec("lace.notation.b64a", None) is None
    spec = breaking.find_spec("lace.notation.decimal", None)
    assert spec is not None
    module = module_from_spec(spec)
    breaking.exec_module(module)
    assert module.natural("12", 2) is None
    assert lace.notation.decimal.natural("12", 2) == 12


@pytest.mark.long
def test_what_is_said_to_mean_the_same_is_there_once_and_never_drawn() -> None:
    from mutation import changes
    from mutation.equivalent import SAME

    packages = sorted({path.partition("/")[0] for path, _, _ in SAME})
    there = [mutant for package in packages for mutant in changes.mutants_of(package)]
    found = [(mutant.path.as_posix(), mutant.line, mutant.change) for mutant in there]
    assert {key: found.count(key) for key in SAME} == dict.fromkeys(SAME, 1)
    assert all(SAME.values())
    assert len(changes.drawn(10**9, 1, packages)) == len(there) - len(SAME)


TRIED = """
from lace.notation.decimal import natural

def test_that_fails_anyway(): assert natural("7", 2) is None
def test_that_waits():
    while natural("0") is None: pass
def test_of_the_bound(): assert natural("12", 2) == 12
"""
TRYING = """
import sys
sys.path.insert(0, sys.argv[1])
from mutation.changes import drawn
from mutation.trials import Trials, run_pytest

def told(mutant, found):
    print(mutant.change, found.outcome.name, found.tests, found.by.rpartition("::")[2], sep="|")

mutants = [mutant for mutant in drawn(10**9, 1, ["notation"]) if mutant.path.name == "decimal.py"]
plugin = Trials(mutants, lambda _, tests: list(tests), lambda _: 0.5, workers=1, most=20, told=told)
assert run_pytest(sys.argv[2:], plugin) == 0
print("unfit", *[test.rpartition("::")[2] for test in plugin.unfit], sep="|")
"""


def test_only_a_test_that_passes_unbroken_can_notice_a_mutant(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    slow\n    spark\n")
    (tmp_path / "test_decimals.py").write_text(TRIED)
    command = [sys.executable, "-c", TRYING, TOOLS, str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, text=True, capture_output=True, check=True)
    bounded, whole = "len(text) <= max_digits and is_decimal(text)", "_DECIMAL.fullmatch(text) is"
    assert sorted(done.stdout.splitlines()) == [
        f"and-or: {bounded} -> len(text) <= max_digits or is_decimal(text)|SURVIVED|2|",
        f"comparison: {whole} not None -> {whole} None|NOTICED|2|test_that_waits",
        "comparison: len(text) <= max_digits -> len(text) < max_digits|NOTICED|2|test_of_the_bound",
        "unfit|test_that_fails_anyway",
    ]


def test_outcomes_are_kept_until_something_changes(tmp_path: Path) -> None:
    from mutation.changes import drawn
    from mutation.outcomes import Found, Outcome, Outcomes

    one, two, three = drawn(3, 1, ["notation"])
    file = tmp_path / "new" / "outcomes.jsonl"
    kept = Outcomes(file, "first")
    assert one not in kept
    kept.add(one, Found(Outcome.NOTICED, 3, "tests/test_x.py::test_y[a|b]"))
    kept.add(two, Found(Outcome.SURVIVED, 7))

    again = Outcomes(file, "first")
    assert again[one] == Found(Outcome.NOTICED, 3, "tests/test_x.py::test_y[a|b]")
    assert again[two] == Found(Outcome.SURVIVED, 7)
    assert three not in again

    with file.open("a") as cut:
        cut.write('["notation/b64a')
    Outcomes(file, "first").add(three, Found(Outcome.UNDECIDED, 1))
    after = Outcomes(file, "first")
    assert (one in after, two in after, after[three].outcome) == (True, True, Outcome.UNDECIDED)

    assert one not in Outcomes(file, "second")
    assert one not in Outcomes(file, "first")
