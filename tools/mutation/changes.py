"""Which small changes a module offers, and how to make one of them."""

from __future__ import annotations

import ast
import copy
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mutation.equivalent import SAME

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCE = ROOT / "src" / "lace"
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
    lines: range
    change: str
    line: str = ""  # the first of them, as it is written

    @property
    def is_known_to_mean_the_same(self) -> bool:
        return (self.path.as_posix(), self.line, self.change) in SAME

    @property
    def package(self) -> str:
        return self.path.parts[0]

    @property
    def module(self) -> str:
        return ".".join(["lace", *self.path.with_suffix("").parts]).removesuffix(".__init__")

    @property
    def source(self) -> Path:
        return SOURCE / self.path


def _means_nothing(tree: ast.Module) -> Iterator[ast.AST]:
    """Parts of a module that no run can tell from their change: a mutant there says nothing about the tests.

    - Annotations and the first argument of `cast`: nothing evaluates them, or nothing looks at what they give.
    - `zip(strict=True)`: it states what holds anyway.
    - `__repr__`: it is for a person at a debugger.
    """
    for node in ast.walk(tree):
        match node:
            case ast.AnnAssign(annotation=annotation) | ast.arg(annotation=ast.expr() as annotation):
                yield annotation
            case ast.FunctionDef(name="__repr__"):
                yield node
            case ast.FunctionDef(returns=ast.expr() as returns) | ast.AsyncFunctionDef(returns=ast.expr() as returns):
                yield returns
            case ast.Call(func=ast.Name(id="cast"), args=[as_type, *_]):
                yield as_type
            case ast.keyword(arg="strict"):
                yield node


def sites(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    """Every node inside a function that can be changed, with the kind of change, in a fixed order."""
    passed = {id(node) for part in _means_nothing(tree) for node in ast.walk(part)}
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for node in (node for statement in function.body for node in ast.walk(statement)):
            kind = _kind(node)
            if kind and id(node) not in passed:
                passed.add(id(node))  # a function inside another is walked with it, and by itself
                yield node, kind


def _kind(node: ast.AST) -> str:
    match node:
        case ast.Compare(ops=[operator, *_]) if type(operator) in OTHER_COMPARISON:
            return "comparison"
        case ast.BoolOp():
            return "and-or"
        case ast.UnaryOp(op=ast.Not()):
            return "not"
        case ast.BinOp() if type(node.op) in OTHER_OPERATOR:
            return "operator"
        case ast.Constant(value=bool() | int()):
            return "constant"
        case ast.If():
            return "condition"
    return ""


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


def _lines(node: ast.AST) -> range:
    spoken = node.test if isinstance(node, ast.If) else node
    assert isinstance(spoken, ast.expr)
    return range(getattr(node, "lineno", spoken.lineno), (spoken.end_lineno or spoken.lineno) + 1)


def mutants_of(package: str) -> Iterator[Mutant]:
    for path in sorted((SOURCE / package).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        written = text.splitlines()
        for number, (node, kind) in enumerate(sites(ast.parse(text))):
            shown, lines = change(copy.deepcopy(node), kind), _lines(node)
            yield Mutant(path.relative_to(SOURCE), number, lines, shown, written[lines.start - 1].strip())


def all_of(packages: list[str], *, mean_the_same: bool = False) -> list[Mutant]:
    """All mutants of some packages that may mean something; or those for which somebody wrote down why they do not."""
    mutants = (mutant for package in packages for mutant in mutants_of(package))
    return [mutant for mutant in mutants if mutant.is_known_to_mean_the_same == mean_the_same]


def drawn(sample: int, seed: int, packages: list[str]) -> list[Mutant]:
    """A sample of all mutants of some packages that may mean something, shared out by how many each has."""
    everything = all_of(packages)
    return random.Random(seed).sample(everything, min(sample, len(everything)))


def mutated(mutant: Mutant) -> ast.Module:
    """The module of a mutant with its change; every line is where it was."""
    tree = ast.parse(mutant.source.read_text(encoding="utf-8"))
    node, kind = list(sites(tree))[mutant.number]
    change(node, kind)
    return ast.fix_missing_locations(tree)
