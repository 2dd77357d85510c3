"""What became of mutants, in a file as it becomes known: a run that was ended goes on where it was.

An outcome counts while nothing has changed that could change it: our sources, the tests with their data, this tool and
the bounds it was given. Whoever mends a test begins anew.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import IntEnum
from hashlib import sha256
from pathlib import Path

from mutation.changes import ROOT, Mutant


class Outcome(IntEnum):
    """How a trial ended; also the exit status of its process."""

    NOTICED = 10
    SURVIVED = 11
    UNDECIDED = 12  # the time for it was used up: counts as one that survived
    BETTER_IMPORTED = 13  # its code fits into no function that is there


@dataclass(frozen=True)
class Found:
    """What became of one mutant: by which test it was noticed, and how many reach it."""

    outcome: Outcome
    tests: int
    by: str = ""


def stamp(*bounds: int) -> str:
    """What the outcomes of a run hang on, in few letters."""
    whole = sha256(repr(bounds).encode())
    for place in ("src/lace", "tests", "tools/mutation"):
        for path in sorted((ROOT / place).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts and path.stem != "equivalent":
                whole.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + sha256(path.read_bytes()).digest())
    return whole.hexdigest()


@dataclass
class Outcomes:
    """The outcomes in a file: its first line is the stamp, each further one a mutant."""

    file: Path
    stamp: str
    _found: dict[tuple[str, int], Found] = field(default_factory=dict)

    def __post_init__(self) -> None:
        lines = self.file.read_text(encoding="utf-8").splitlines(keepends=True) if self.file.exists() else []
        if lines[:1] != [self.stamp + "\n"]:
            self.file.parent.mkdir(exist_ok=True)
            self.file.write_text(self.stamp + "\n", encoding="utf-8")
            return
        whole = [line for line in lines if line.endswith("\n")]
        if whole != lines:  # the last was being written when the run was ended
            self.file.write_text("".join(whole), encoding="utf-8")
        for line in whole[1:]:
            path, number, outcome, tests, by = json.loads(line)
            self._found[path, number] = Found(Outcome(outcome), tests, by)

    def __getitem__(self, mutant: Mutant) -> Found:
        return self._found[mutant.path.as_posix(), mutant.number]

    def __contains__(self, mutant: Mutant) -> bool:
        return (mutant.path.as_posix(), mutant.number) in self._found

    def add(self, mutant: Mutant, found: Found) -> None:
        key = mutant.path.as_posix(), mutant.number
        self._found[key] = found
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps([*key, found.outcome, found.tests, found.by]) + "\n")
