"""Which tests run which line of the pure packages: measured once, and kept.

A mutant then costs the tests that reach it and no other. Only the folders of tests that know the pure packages best are
measured: what a package says should be proven beside it, and not by a command that happens to use it. A test that is
new or changed since the measurement is taken to reach everything its package has, and of a source that has changed
every line is taken to be reached by whatever reached any. That costs time but proves no less; where much has changed it
costs more than to measure anew.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path

from coverage import CoverageData

from mutation.changes import ROOT, SOURCE, Mutant

KEPT = ROOT / ".mutants"
COVERAGE, TIMES, DIGESTS = KEPT / "coverage", KEPT / "times.json", KEPT / "digests.json"
MOST_CHANGED = 12  # sources; from there on everything is measured anew
AT_IMPORT = ""  # the context of what runs before the first test


def _digests(packages: Iterable[str]) -> dict[str, str]:
    places = [SOURCE / package for package in packages]
    files = [path for place in [*places, ROOT / "tests"] for path in sorted(place.rglob("*.py"))]
    return {str(path.relative_to(ROOT)): sha256(path.read_bytes()).hexdigest() for path in files}


def _measure(homes: Mapping[str, Sequence[str]], workers: int, digests: dict[str, str]) -> None:
    KEPT.mkdir(exist_ok=True)
    DIGESTS.unlink(missing_ok=True)
    command = [
        *(sys.executable, "-m", "pytest", "-q", "-n", str(workers), "-m", "not spark and not slow"),
        *("-p", "no:randomly", "-p", "testtimes", "--cov-context=test", "--cov-report="),
        *(f"--cov={SOURCE / package}" for package in homes),
        *sorted({f"tests/{folder}" for folders in homes.values() for folder in folders}),
    ]
    told = {"COVERAGE_FILE": str(COVERAGE), "LACE_TEST_TIMES": str(TIMES), "LACE_HYPOTHESIS_PROFILE": "mutants"}
    environment = {**os.environ, **told, "PYTHONPATH": str(Path(__file__).parent)}
    if subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode != 0:
        raise SystemExit("the tests fail while nothing is broken: no mutant was tried")
    DIGESTS.write_text(json.dumps(digests, indent=1), encoding="utf-8")


def test_times() -> Callable[[str], float]:
    """How long each test took when that was measured; of one that is new nothing is known."""
    times = json.loads(TIMES.read_text(encoding="utf-8"))
    return lambda test: float(times.get(test, 1.0))


def patience() -> Callable[[str], float]:
    """How many seconds of processor time a test may take before it is said to have noticed something."""
    usual = test_times()
    return lambda test: 5 + 10 * usual(test)


@dataclass
class Reach:
    """From a mutant to the tests that may notice it."""

    homes: dict[str, Sequence[str]]  # package -> the test folders that know it best
    changed: set[str]
    seconds: Callable[[str], float]
    _data: CoverageData = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._data = CoverageData(str(COVERAGE))
        self._data.read()
        self._by_line = cache(self._data.contexts_by_lineno)

    @classmethod
    def of(cls, homes: dict[str, Sequence[str]], workers: int) -> Reach:
        """What is kept, or measured anew where many sources have changed or one is new."""
        digests = _digests(homes)
        kept = json.loads(DIGESTS.read_text(encoding="utf-8")) if DIGESTS.exists() else {}
        changed = {name for name in digests.keys() | kept.keys() if digests.get(name) != kept.get(name)}
        sources = [name for name in changed & digests.keys() if name.startswith("src/")]
        if len(sources) > MOST_CHANGED or any(name not in kept for name in sources):
            _measure(homes, workers, digests)
            changed = set()
        return cls(homes, changed, test_times())

    def at_import(self, mutant: Mutant) -> bool:
        """Whether the line has run before any test does."""
        by_line = self._by_line(str(mutant.source))
        return any(AT_IMPORT in by_line.get(line, ()) for line in mutant.lines)

    def files(self, mutants: Iterable[Mutant]) -> list[str]:
        """The test files that have a test for any of these."""
        contexts = set().union(*map(self._contexts, mutants)) - {AT_IMPORT}
        named = {context.partition("::")[0] for context in contexts} | self.changed
        return sorted(name for name in named if Path(name).name.startswith("test_") and (ROOT / name).exists())

    def tests(self, mutant: Mutant, collected: Sequence[str]) -> list[str]:
        """Tests by how soon an answer is to be expected: those of the package first, the quickest first.

        What a fixture runs is known of the first test that asked for it only: its whole file is taken.
        """
        contexts = [context.rpartition("|") for context in self._contexts(mutant) if context != AT_IMPORT]
        reaching = {test for test, _, _ in contexts}
        files = {test.partition("::")[0] for test, _, phase in contexts if phase == "setup"}
        homes = tuple(f"tests/{folder}/" for folder in self.homes[mutant.package])

        def is_tried(test: str) -> bool:
            file = test.partition("::")[0]
            return test in reaching or file in files or (file in self.changed and file.startswith(homes))

        def order(test: str) -> tuple[bool, float]:
            return not test.startswith(homes), self.seconds(test)

        return sorted(filter(is_tried, collected), key=order)

    def _contexts(self, mutant: Mutant) -> set[str]:
        by_line = self._by_line(str(mutant.source))
        is_changed = mutant.source.relative_to(ROOT).as_posix() in self.changed
        return {context for line in (by_line if is_changed else mutant.lines) for context in by_line.get(line, ())}
