"""Keep docs/api.md, the reference of the public names, as the docstrings say: `python tools/api.py [--write]`.

Rule: `lace.open` and everything in `lace.__all__` stand there with signature and docstring, and nothing else does.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "api.md"
sys.path.insert(0, str(ROOT / "src"))
HEAD = """# API reference

Every public name of `import lace`, made from its docstring by `python tools/api.py --write`; do not edit.
[Lace from Python](python.md) explains them by examples.
"""


def signature(thing: object) -> str:
    """The parameters of a function or class, without default objects that have no short form."""
    if isinstance(thing, type) and issubclass(thing, Enum):
        return ": " + " | ".join(repr(member.value) for member in thing)
    try:
        text = str(inspect.signature(thing))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return ""
    text = re.sub(r"<[^<>]*>", "…", text)
    text = re.sub(r"= (\w+Limits)\([^()]*\)", r"= \1()", text)  # the defaults stand in docs of limits, not here
    return _plain(text)


def _plain(thing: object) -> str:
    """An annotation as somebody would write it."""
    text = re.sub(r"ForwardRef\('([^']*)'\)", r"\1", str(thing))
    text = re.sub(r"\b(?:lace|collections\.abc|pathlib|types|typing|logging)\.(?:\w+\.)*(?=[A-Za-z])", "", text)
    text = re.sub(r"Optional\[([^][]+)\]", r"\1 | None", text)
    return re.sub(r"Union\[([^][]+)\]", lambda found: found[1].replace(", ", " | "), text.replace("'", ""))


def _said_below(name: str) -> str:
    """The text that stands below the definition of an alias."""
    import lace

    tree = ast.parse(Path(sys.modules[lace.home_of(name)].__file__ or "").read_text(encoding="utf-8"))
    for node, after in zip(tree.body, tree.body[1:], strict=False):
        is_it = isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == name
        if is_it and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            return str(after.value.value)
    raise SystemExit(f"{name} is public and says nothing below its definition")


def docstring(thing: object) -> str:
    """A docstring without its examples, which stand on the other page."""
    text = inspect.getdoc(thing) or ""
    text = text.split("\n>>> ")[0].rstrip() if not text.startswith("@") else ""
    clause = r"(?:\d{3}-[A-Z]+-\d+|P\d+|\d{3})"
    # Numbers of clauses help those who read the source; here they are noise.
    text = re.sub(rf" \({clause}(?:(?:, | to | and ){clause})*\)", "", text)
    return re.sub(rf"(\(|^){clause}(?:(?:, | to | and ){clause})*: ", r"\1", text)


def methods(cls: type) -> Iterator[tuple[str, object]]:
    """The public methods and properties of a class; those it has in common with others stand first."""
    ours = [base for base in reversed(cls.__mro__) if base.__module__.startswith("lace.")]
    defined = {name: member for base in ours for name, member in vars(base).items()}
    for name, member in defined.items():
        if name.startswith("_") or not (inspect.isfunction(member) or isinstance(member, property | classmethod)):
            continue
        yield name, member


PARTS = ("lace.datalog", "lace.reconcile", "lace.records", "lace.testing")  # that stand alone


def sections() -> Iterator[str]:
    """One section for each public name: errors last, then the parts that stand alone."""
    import lace

    names = {name: getattr(lace, name) for name in (*lace.__all__, "open")}
    yield from _of(names)
    for name in PARTS:
        part = import_module(name)
        yield f"# {name}\n\n{docstring(part).split(chr(10))[0]}\n"
        own = {each: getattr(part, each) for each in part.__all__}
        yield from _of({each: thing for each, thing in own.items() if names.get(each) is not thing})


def _of(names: dict[str, Any]) -> Iterator[str]:
    errors = {name for name, thing in names.items() if isinstance(thing, type) and issubclass(thing, Exception)}
    for name in sorted(names.keys() - errors, key=lambda name: (name.lower(), name)):
        thing = names[name]
        if not inspect.isroutine(thing) and not isinstance(thing, type):
            yield f"## `{name}`\n\n```text\ntype {name} = {_plain(thing)}\n```\n\n{_said_below(name)}\n"
            continue
        kind = "class" if isinstance(thing, type) else "function"
        yield f"## `{name}`\n\n```text\n{kind} {name}{signature(thing)}\n```\n\n{docstring(thing)}\n"
        if isinstance(thing, type):
            yield from _members(thing)
    if errors:
        yield "## Errors\n\n" + "\n".join(f"- `{name}`: {_first_line(names[name])}" for name in sorted(errors)) + "\n"


def _members(cls: type) -> Iterator[str]:
    for name, member in methods(cls):
        if isinstance(member, property):
            shown, text = name, docstring(member)
        else:
            bound = getattr(cls, name)
            shown, text = f"{name}{signature(bound).replace('(self, ', '(').replace('(self)', '()')}", docstring(bound)
        if text:
            yield f"### `{cls.__name__}.{name}`\n\n```text\n{shown}\n```\n\n{text}\n"


def _first_line(thing: object) -> str:
    return docstring(thing).split("\n")[0]


def main(arguments: list[str]) -> int:
    """Check the page, or write it."""
    text = HEAD + "\n" + "\n".join(sections())
    if "--write" in arguments:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
        print("docs/api.md is not what the docstrings say: python tools/api.py --write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
