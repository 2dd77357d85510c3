"""The case suite on disk: tests/cases/<name>/{rules.lace, facts.txt, expected.txt or error.txt, limits.json}."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from lace.datalog.language.parser import parse_facts, parse_program
from lace.datalog.language.syntax import Fact
from lace.datalog.language.validate import LOCAL_PROFILE, CheckedProgram, check_program
from lace.limits import EngineLimits

CASES = Path(__file__).parent.parent / "cases"
NAMES = sorted(path.parent.name for path in CASES.glob("*/rules.lace"))


@dataclass(frozen=True)
class Case:
    """One case, read."""

    name: str
    rules: str
    facts: str
    expected: frozenset[str]
    error: str
    limits: EngineLimits

    def check(self) -> CheckedProgram:
        """The program, or the error that the case may be about."""
        return check_program(parse_program(self.rules, limits=self.limits), LOCAL_PROFILE, self.limits)

    def base_facts(self) -> list[Fact]:
        """The facts; the case's own limits are for the executor, not for reading the file."""
        return list(parse_facts(self.facts))


def read_case(name: str) -> Case:
    """The case of a name."""
    texts = {path.name: path.read_bytes().decode() for path in (CASES / name).iterdir()}
    limits = EngineLimits(**json.loads(texts.get("limits.json", "{}")))
    expected = frozenset(texts.get("expected.txt", "").split("\n")) - {""}
    return Case(name, texts["rules.lace"], texts["facts.txt"], expected, texts.get("error.txt", "").strip(), limits)
