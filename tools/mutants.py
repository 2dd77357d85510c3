"""Break the pure packages in small ways and see whether the tests notice: `python tools/mutants.py --sample 200`.

Each mutant is one changed operator, constant or condition in a copy of the sources. First the tests of its own package
run, then, if none fails, those of the packages around it. A mutant that no test notices is printed with its place: a
sentence of the code that nothing proves (or a change that means the same: read before you blame).

Rule: the sample is drawn by `--seed`, so a run can be repeated; exit status 1 means a share under `--least`.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = {  # the pure packages, and the tests that know them best
    "notation": ["notation"],
    "records": ["records", "facts"],
    "facts": ["facts", "policy"],
    "datalog": ["datalog", "executors"],
    "policy": ["policy"],
    "interlace": ["interlace"],
    "iltp": ["iltp"],
    "differences": ["differences"],
}
AROUND = [*PACKAGES, "executors", "engine", "porcelain", "runtime", "store"]
OTHER_COMPARISON: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
OTHER_OPERATOR: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult, ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One small change: the `number`th of its module."""

    path: Path  # relative to src/lace
    number: int
    line: int
    change: str

    @property
    def package(self) -> str:
        return self.path.parts[0]


def sites(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    """Every node inside a function that can be changed, with the kind of change, in a fixed order."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for statement in function.body:
            for node in ast.walk(statement):
                if isinstance(node, ast.Compare) and type(node.ops[0]) in OTHER_COMPARISON:
                    yield node, "comparison"
                elif isinstance(node, ast.BoolOp):
                    yield node, "and-or"
                elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
                    yield node, "not"
                elif isinstance(node, ast.BinOp) and type(node.op) in OTHER_OPERATOR:
                    yield node, "operator"
                elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int):
                    yield node, "constant"
                elif isinstance(node, ast.If):
                    yield node, "condition"


def change(node: ast.AST, kind: str) -> str:
    """Change a node in place; what it was and what it is now."""
    before = ast.unparse(node.test if isinstance(node, ast.If) else node)
    match node:
        case ast.Compare():
            node.ops[0] = OTHER_COMPARISON[type(node.ops[0])]()
        case ast.BoolOp():
            node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        case ast.BinOp():
            node.op = OTHER_OPERATOR[type(node.op)]()
        case ast.Constant(value=bool(value)):
            node.value = not value
        case ast.Constant(value=int(value)):
            node.value = value + 1
        case ast.If():
            node.test = ast.Constant(False)
        case ast.UnaryOp():
            node.operand = ast.UnaryOp(ast.Not(), node.operand)
    after = ast.unparse(node.test if isinstance(node, ast.If) else node)
    return f"{kind}: {before[:70]} -> {after[:70]}"


def drawn(sample: int, seed: int, packages: list[str]) -> list[Mutant]:
    """A sample of all mutants of some packages, shared out by how many each has."""
    everything = []
    for package in packages:
        for path in sorted((ROOT / "src" / "lace" / package).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            for number, (node, kind) in enumerate(sites(tree)):
                shown = change(copy.deepcopy(node), kind)
                line = getattr(node, "lineno", 0)
                everything.append(Mutant(path.relative_to(ROOT / "src" / "lace"), number, line, shown))
    return random.Random(seed).sample(everything, min(sample, len(everything)))


def mutated(source: str, number: int) -> str:
    """A module with its `number`th change."""
    tree = ast.parse(source)
    node, kind = list(sites(tree))[number]
    change(node, kind)
    return ast.unparse(ast.fix_missing_locations(tree))


class Workplace:
    """A copy of the project in which one mutant at a time is tried."""

    def __init__(self, folder: Path, seconds: float) -> None:
        self._folder = folder
        self._seconds = seconds
        for name in ("src", "tests", "tools", "docs", "bench", "demo", "pyproject.toml", "README.md", "Makefile"):
            origin = ROOT / name
            (shutil.copytree if origin.is_dir() else shutil.copy)(origin, folder / name)

    def is_sound(self) -> bool:
        """Whether all tests pass, within the time for one mutant, while nothing is broken: else nothing is shown."""
        return self._passes(AROUND)

    def survives(self, mutant: Mutant) -> bool:
        """Whether no test notices the mutant."""
        path = self._folder / "src" / "lace" / mutant.path
        source = path.read_text(encoding="utf-8")
        path.write_text(mutated(source, mutant.number), encoding="utf-8")
        try:
            near = PACKAGES[mutant.package]
            return self._passes(near) and self._passes([name for name in AROUND if name not in near])
        finally:
            path.write_text(source, encoding="utf-8")

    def _passes(self, folders: list[str]) -> bool:
        chosen = [f"tests/{name}" for name in folders if (self._folder / "tests" / name).is_dir()]
        command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:randomly"]
        command += ["-p", "no:cacheprovider", "-m", "not spark and not slow", *chosen]
        environment = {**os.environ, "PYTHONPATH": str(self._folder / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            done = subprocess.run(
                command, cwd=self._folder, env=environment, capture_output=True, timeout=self._seconds, check=False
            )
        except subprocess.TimeoutExpired:
            return False  # an endless loop is noticed too
        return done.returncode == 0


def tried(mutants: list[Mutant], workers: int, seconds: float) -> list[Mutant]:
    """The mutants that no test noticed, in the order of the sample."""
    with tempfile.TemporaryDirectory(prefix="lace-mutants-") as folder:
        free: Queue[Workplace] = Queue()
        for index in range(workers):
            place = Path(folder) / str(index)
            place.mkdir()
            free.put(Workplace(place, seconds))
        first = free.get()
        if not first.is_sound():
            raise SystemExit(
                "the tests fail, or take longer than --seconds, while nothing is broken: no mutant was tried"
            )
        free.put(first)

        def survives(mutant: Mutant) -> bool:
            place = free.get()
            try:
                survived = place.survives(mutant)
            finally:
                free.put(place)
            print(f"{'SURVIVED' if survived else 'noticed '}  {mutant.path}:{mutant.line}  {mutant.change}", flush=True)
            return survived

        with ThreadPoolExecutor(workers) as pool:
            return [mutant for mutant, survived in zip(mutants, pool.map(survives, mutants), strict=True) if survived]


def main() -> int:
    """Try a sample of mutants and say how many were noticed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=200, help="how many mutants to try")
    parser.add_argument("--seed", type=int, default=1, help="which sample")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=1200.0, help="for the tests of one mutant")
    parser.add_argument("--least", type=float, default=0.9, help="the share that must be noticed")
    parser.add_argument("--json", action="store_true", help="the figures as JSON on the last line")
    parser.add_argument(
        "packages", nargs="*", default=[name for name in PACKAGES if (ROOT / "src/lace" / name).is_dir()]
    )
    chosen = parser.parse_args()
    mutants = drawn(chosen.sample, chosen.seed, chosen.packages)
    left = Counter(mutant.package for mutant in tried(mutants, chosen.workers, chosen.seconds))
    of = Counter(mutant.package for mutant in mutants)
    for package in sorted(of):
        print(f"{package:<12} {of[package] - left[package]:>4} of {of[package]:>4} noticed")
    share = 1 - left.total() / max(1, of.total())
    print(f"{'all':<12} {of.total() - left.total():>4} of {of.total():>4} noticed: {share:.1%}")
    if chosen.json:
        print(json.dumps({"tried": of.total(), "noticed": of.total() - left.total(), "share": round(share, 4)}))
    return 0 if share >= chosen.least else 1


if __name__ == "__main__":
    sys.exit(main())
