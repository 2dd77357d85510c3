"""Write the case suite, tests/cases/<name>/{rules.lace, facts.txt, expected.txt or error.txt}.

Rule: expected results come from set comprehensions and Python's own integers, bytes and regular expressions in
tools/cases, never from an executor of Lace. `--check` writes nothing and exits 1 if the files differ.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from cases.case import Case  # noqa: E402  # likewise

from cases import builtins, invalid, joins, negation, records, recursion  # noqa: E402  # found by the line above

CASES = ROOT / "tests" / "cases"


def all_cases() -> list[Case]:
    """Every case; names are unique."""
    cases = [case for family in (builtins, joins, negation, recursion, records, invalid) for case in family.CASES]
    names = [case.name for case in cases]
    assert len(names) == len(set(names)), sorted(name for name in names if names.count(name) > 1)
    return cases


def main() -> int:
    parser = argparse.ArgumentParser(description="Write the case suite.")
    parser.add_argument("--check", action="store_true", help="compare only")
    check = parser.parse_args().check
    wanted = {f"{case.name}/{name}": text for case in all_cases() for name, text in case.files().items()}
    present = {str(path.relative_to(CASES)): path.read_text("utf-8") for path in CASES.glob("*/*") if path.is_file()}
    if check:
        different = sorted(name for name in wanted.keys() | present.keys() if wanted.get(name) != present.get(name))
        print("\n".join(different) or f"{len(all_cases())} cases as generated")
        return 1 if different else 0
    shutil.rmtree(CASES, ignore_errors=True)
    for name, text in wanted.items():
        path = CASES / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8", newline="\n")
    print(f"{len(all_cases())} cases")
    return 0


if __name__ == "__main__":
    sys.exit(main())
