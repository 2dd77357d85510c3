"""Draw into docs/architecture.md which package imports which: `python tools/import_graph.py [--write]`.

Without --write the exit status is 1 if the picture there is old.

Rule: the picture is read off the sources. An arrow that another path of arrows already tells is left out.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "lace"
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- import graph: made by tools/import_graph.py -->", "<!-- end of import graph -->"
GROUND = {"errors", "limits", "thresholds", "values"}  # everybody imports these: arrows to them would hide the rest

Graph = dict[str, set[str]]


def packages() -> Graph:
    """Every package (or module) of lace with the others that it imports, also inside functions."""
    graph: Graph = {}
    for path in sorted(SOURCE.rglob("*.py")):
        here = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if here in {"__init__", *GROUND}:
            continue
        found = graph.setdefault(here, set())
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            found.update(name.split(".")[1] for name in names if name.startswith("lace."))
        found -= {here, *GROUND}
    return graph


def reduced(graph: Graph) -> Graph:
    """The graph without the arrows that longer ways already tell; the direction has no circles."""

    def below(package: str) -> set[str]:
        return {further for one in graph.get(package, ()) for further in {one, *below(one)}}

    return {
        package: {one for one in wanted if not any(one in below(other) for other in wanted)}
        for package, wanted in graph.items()
    }


def picture() -> str:
    """The graph in the notation that code hosts draw."""
    arrows = [
        f"    {package} --> {one}" for package, wanted in sorted(reduced(packages()).items()) for one in sorted(wanted)
    ]
    return "\n".join([BEGIN, "```mermaid", "graph TD", *arrows, "```", END])


def main(arguments: list[str]) -> int:
    """Check the picture, or draw it."""
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    drawn = before + picture() + after
    if "--write" in arguments:
        PAGE.write_text(drawn, encoding="utf-8")
        return 0
    if page != drawn:
        print("docs/architecture.md shows other imports than the sources: python tools/import_graph.py --write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
