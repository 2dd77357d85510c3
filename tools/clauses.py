"""Print, per specification, how many clauses are named by a test, and which are not.

A test names clauses by `@pytest.mark.clause("030-SAFETY-04", ...)`, on a function, a class, in `pytestmark`, or on a
`pytest.param`. With `--short`, tests marked `slow` count for nothing: what `make test` proves. Exit 1 if a test names a
clause that does not exist; with `--strict`, also if one is unnamed.
"""

from __future__ import annotations

import argparse
import ast
import csv
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def _is_slow(marks: Iterable[ast.AST]) -> bool:
    return any(isinstance(node, ast.Attribute) and node.attr == "slow" for mark in marks for node in ast.walk(mark))


def _slow_parts(module: ast.Module) -> Iterator[ast.AST]:
    """What of a module is left out by `-m "not slow"`: all of it, a class or test, or one row of parameters."""
    for node in ast.walk(module):
        match node:
            case ast.Assign(targets=[ast.Name(id="pytestmark")]) if _is_slow([node.value]):
                yield module
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                marks = [mark for mark in node.decorator_list if "parametrize" not in ast.unparse(mark)]
                if _is_slow(marks):
                    yield node
            case ast.ClassDef() if _is_slow(node.decorator_list):
                yield node
            case ast.Call(func=ast.Attribute(attr="param")) if _is_slow(node.keywords):
                yield node


def named_clauses(tests: Path, *, short: bool = False) -> dict[str, list[str]]:
    """Clause id -> the places that name it."""
    places: dict[str, list[str]] = defaultdict(list)
    for path in sorted(tests.rglob("*.py")):
        module = ast.parse(path.read_text(encoding="utf-8"))
        left_out = {id(node) for part in _slow_parts(module) for node in ast.walk(part)} if short else set()
        for node in ast.walk(module):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "clause":
                for argument in node.args if id(node) not in left_out else ():
                    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                        places[argument.value].append(f"{path.relative_to(ROOT)}:{node.lineno}")
    return places


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("specs", nargs="*", help="only these specifications, for example 030")
    parser.add_argument("--strict", action="store_true", help="exit 1 if a clause of those is named by no test")
    parser.add_argument("--short", action="store_true", help="tests marked slow do not count")
    arguments = parser.parse_args()
    with (ROOT / "docs/spec/clauses.csv").open(encoding="utf-8", newline="") as file:
        clauses = list(csv.DictReader(file))
    named = named_clauses(ROOT / "tests", short=arguments.short)
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
