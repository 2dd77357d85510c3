"""Print, per specification, how many clauses are named by a test, and which are not.

A test names clauses by `@pytest.mark.clause("030-SAFETY-04", ...)`, on a function, a class, in `pytestmark`, or on a
`pytest.param`. Exit 1 if a test names a clause that does not exist; with `--strict`, also if one is unnamed.
"""

from __future__ import annotations

import argparse
import ast
import csv
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def named_clauses(tests: Path) -> dict[str, list[str]]:
    """Clause id -> the places that name it."""
    places: dict[str, list[str]] = defaultdict(list)
    for path in sorted(tests.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "clause":
                for argument in node.args:
                    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                        places[argument.value].append(f"{path.relative_to(ROOT)}:{node.lineno}")
    return places


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("specs", nargs="*", help="only these specifications, for example 030")
    parser.add_argument("--strict", action="store_true", help="exit 1 if a clause of those is named by no test")
    arguments = parser.parse_args()
    with (ROOT / "docs/spec/clauses.csv").open(encoding="utf-8", newline="") as file:
        clauses = list(csv.DictReader(file))
    named = named_clauses(ROOT / "tests")
    by_spec: dict[str, list[dict[str, str]]] = defaultdict(list)
    for clause in clauses:
        by_spec[clause["spec"]].append(clause)
    missing_in_scope = 0
    for spec, rows in sorted(by_spec.items()):
        missing = [row for row in rows if row["id"] not in named]
        if arguments.specs and spec not in arguments.specs:
            continue
        missing_in_scope += len(missing)
        print(f"{spec}: {len(rows) - len(missing)} of {len(rows)} clauses named by a test")
        for row in missing:
            print(f"    {row['id']:<14} {row['level']:<8} {row['text'][:140]}")
    unknown = sorted(set(named) - {clause["id"] for clause in clauses})
    for clause_id in unknown:
        print(f"no such clause: {clause_id}  ({', '.join(named[clause_id])})")
    return 1 if unknown or (arguments.strict and missing_in_scope) else 0


if __name__ == "__main__":
    sys.exit(main())
