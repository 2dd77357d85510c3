"""Break the pure packages in small ways and see whether the tests notice: `python tools/mutants.py --sample 200`.

Each mutant is one changed operator, constant or condition of one module, made while the module is imported: no file is
touched. First the test files run that name the module, then the others of its package, then those of the packages
around it; the first test that fails ends it. A mutant that no test notices is printed with its place: a sentence of
the code that nothing proves (or a change that means the same: read before you blame).

Rule: the sample is drawn by `--seed`, so a run can be repeated; exit status 1 means a share under `--least`. With
`--near` the packages around are left out: what is noticed then is a lower bound of the share.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib.abc
import importlib.machinery
import json
import math
import os
import random
import resource
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import ModuleType

import pytest

CHILD = "--child"  # how this script starts itself
MOST_MEMORY = 8 << 30
ROOT = Path(__file__).resolve().parent.parent
PACKAGES = {  # the pure packages, and the tests that know them best
    "notation": ["notation"],
    "records": ["records", "facts"],
    "facts": ["facts", "policy"],
    "datalog": ["datalog", "engine", "executors"],
    "policy": ["policy"],
    "interlace": ["interlace", "differences"],
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

    @property
    def module(self) -> str:
        return ".".join(["lace", *self.path.with_suffix("").parts]).removesuffix(".__init__")


def sites(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    """Every node inside a function that can be changed, with the kind of change, in a fixed order."""
    stated = {
        id(keyword.value) for keyword in ast.walk(tree) if isinstance(keyword, ast.keyword) and keyword.arg == "strict"
    }  # `zip(strict=True)` states what holds anyway: that it stands there changes nothing
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
                elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int) and id(node) not in stated:
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


class Breaking(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives one module with its change to whoever imports it in this process; all others as they are."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant
        self._path = ROOT / "src" / "lace" / mutant.path

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != self._mutant.module:
            return None
        places = [str(self._path.parent)] if self._path.name == "__init__.py" else None
        spec = importlib.machinery.ModuleSpec(name, self, origin=str(self._path), is_package=places is not None)
        spec.submodule_search_locations = places
        return spec

    def exec_module(self, module: ModuleType) -> None:
        module.__file__ = str(self._path)
        source = mutated(self._path.read_text(encoding="utf-8"), self._mutant.number)
        exec(compile(source, str(self._path), "exec"), module.__dict__)


@cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def files_in(folders: Sequence[str]) -> list[Path]:
    return [path for name in folders for path in sorted((ROOT / "tests" / name).rglob("test_*.py"))]


def stages(mutant: Mutant, near_only: bool) -> Iterator[list[Path]]:
    """Test files to try one batch after the other, those most likely to notice first."""
    package, _, stem = mutant.module.rpartition(".")
    names = (mutant.module, f"from {package} import {stem}\n", f"from {package} import {stem},", f"import {stem} as")
    near = files_in(PACKAGES[mutant.package])
    telling = [path for path in near if any(name in _text(path) for name in names)]
    yield telling
    yield [path for path in near if path not in telling]
    if not near_only:
        around = files_in([name for name in AROUND if name not in PACKAGES[mutant.package]])
        naming = [path for path in around if any(name in _text(path) for name in names)]
        yield naming
        yield [path for path in around if path not in naming]


def passes(files: Sequence[Path], mutant: Mutant | None, cpu_seconds: int) -> bool:
    """Whether these tests pass with a mutant, in a process of its own.

    An endless loop is noticed too: time on a processor counts, so that a busy machine does not.
    """
    if not files:
        return True
    broken = f"{mutant.path}:{mutant.number}" if mutant is not None else ""
    command = [sys.executable, __file__, CHILD, broken, str(cpu_seconds), *map(str, files)]
    shown = None if mutant is None else subprocess.DEVNULL
    with subprocess.Popen(command, cwd=ROOT, stdout=shown, stderr=shown, start_new_session=True) as child:
        try:
            return child.wait(20 * cpu_seconds) == 0  # one that waits for ever uses no processor
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            return False


def tested(broken: str, cpu_seconds: int, files: list[str]) -> int:
    """What the process of a mutant does."""
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    os.environ["LACE_HYPOTHESIS_PROFILE"] = "mutants"
    if broken:
        path, _, number = broken.rpartition(":")
        sys.meta_path.insert(0, Breaking(Mutant(Path(path), int(number), 0, "")))
    options = ["-x", "-q", "--no-header", "-p", "no:randomly", "-p", "no:cacheprovider", "-m", "not spark and not slow"]
    return int(pytest.main([*options, *files]))


def survives(mutant: Mutant, near_only: bool, cpu_seconds: int) -> bool:
    """Whether no test notices the mutant."""
    survived = all(passes(files, mutant, cpu_seconds) for files in stages(mutant, near_only))
    print(f"{'SURVIVED' if survived else 'noticed '}  {mutant.path}:{mutant.line}  {mutant.change}", flush=True)
    return survived


def interval(noticed: int, of: int) -> tuple[float, float]:
    """Between which shares the true one lies with 95 % confidence (Wilson)."""
    z, share = 1.96, noticed / of
    middle = (share + z * z / (2 * of)) / (1 + z * z / of)
    half = z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of)) / (1 + z * z / of)
    return middle - half, middle + half


def main() -> int:
    """Try a sample of mutants and say how many were noticed."""
    if sys.argv[1:2] == [CHILD]:
        broken, seconds, *files = sys.argv[2:]
        return tested(broken, int(seconds), files)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=200, help="how many mutants to try")
    parser.add_argument("--seed", type=int, default=1, help="which sample")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=int, default=300, help="of processor time for one batch of tests")
    parser.add_argument("--near", action="store_true", help="only the tests of a mutant's own package")
    parser.add_argument("--least", type=float, default=0.9, help="the share that must be noticed")
    parser.add_argument("--json", action="store_true", help="the figures as JSON on the last line")
    parser.add_argument("packages", nargs="*", default=list(PACKAGES))
    chosen = parser.parse_args()
    mutants = drawn(chosen.sample, chosen.seed, chosen.packages)
    folders = {name for mutant in mutants for name in PACKAGES[mutant.package]} | set(() if chosen.near else AROUND)
    with ThreadPoolExecutor(chosen.workers) as pool:
        unbroken = partial(passes, mutant=None, cpu_seconds=chosen.seconds)
        sound = dict(zip(folders, pool.map(unbroken, [files_in([name]) for name in folders]), strict=True))
        if not all(sound.values()):
            failing = ", ".join(sorted(name for name, is_sound in sound.items() if not is_sound))
            raise SystemExit(f"the tests of {failing} fail while nothing is broken: no mutant was tried")
        lives = list(pool.map(partial(survives, near_only=chosen.near, cpu_seconds=chosen.seconds), mutants))
    left = Counter(mutant.package for mutant, survived in zip(mutants, lives, strict=True) if survived)
    of = Counter(mutant.package for mutant in mutants)
    for package in sorted(of):
        print(f"{package:<12} {of[package] - left[package]:>4} of {of[package]:>4} noticed")
    noticed = of.total() - left.total()
    share, (low, high) = noticed / of.total(), interval(noticed, of.total())
    print(f"{'all':<12} {noticed:>4} of {of.total():>4} noticed: {share:.1%}, 95 % interval {low:.0%} to {high:.0%}")
    if chosen.json:
        print(json.dumps({"tried": of.total(), "noticed": noticed, "share": round(share, 4)}))
    return 0 if share >= chosen.least else 1


if __name__ == "__main__":
    sys.exit(main())
