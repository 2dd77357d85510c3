"""Draw which package imports which as docs/images/imports.svg: `python tools/import_graph.py [--write]`.

Without --write the exit status is 1 if the picture is old.

Rule: the picture is read off the sources. An arrow that another path of arrows already tells is left out.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "lace"
PICTURE = ROOT / "docs" / "images" / "imports.svg"
PURE = {"notation", "records", "differences", "reconcile", "datalog", "facts", "policy", "interlace", "iltp"}
WIDTH, ROW, BOX, HEIGHT = 760, 66, 94, 30  # of the picture, of a level, of a package
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


def levels(graph: Graph) -> list[list[str]]:
    """The packages in rows, each above all that it imports and as low as it can be, near its importers."""
    height: dict[str, int] = {}

    def level(package: str) -> int:
        if package not in height:
            height[package] = 1 + max((level(one) for one in graph.get(package, ())), default=-1)
        return height[package]

    rows: list[list[str]] = [[] for _ in range(1 + max(map(level, graph)))]
    for package in sorted(graph):
        rows[-1 - height[package]].append(package)
    place: dict[str, float] = {}
    for row in rows:
        above = {one: [place[other] for other in place if one in graph[other]] for one in row}
        row.sort(key=lambda one: (sum(above[one]) / len(above[one]) if above[one] else WIDTH, one))
        place.update({one: _middle(number, row) for number, one in enumerate(row)})
    return rows


def _middle(number: int, row: list[str]) -> float:
    return WIDTH * (number + 0.5) / len(row)


STYLE = """<style>
text { font: 13px system-ui, sans-serif; fill: #1d1f1e; text-anchor: middle; }
rect { fill: #fff; stroke: #a9aca8; } .pure rect { fill: #e3efea; stroke: #22604f; }
path { fill: none; stroke: #8b918d; stroke-width: 1.3; marker-end: url(#tip); }
#tip path { fill: #8b918d; stroke: none; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6e8e6; } rect { fill: #1c1f1e; stroke: #5a615d; } .pure rect { fill: #1d332c; stroke: #7fc9b2; }
  path { stroke: #7d8681; } #tip path { fill: #7d8681; }
}
</style>"""


def picture() -> str:
    """The graph as an SVG that needs nothing from elsewhere."""
    graph = reduced(packages())
    rows = levels(graph)
    spot = {
        one: (_middle(number, row), depth * ROW + HEIGHT / 2 + 2)
        for depth, row in enumerate(rows)
        for number, one in enumerate(row)
    }
    tall = (len(rows) - 1) * ROW + HEIGHT + 4
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {tall}" role="img">',
        "<title>Which package of lace imports which</title>",
        STYLE,
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z"/></marker></defs>',
    ]
    for package, wanted in sorted(graph.items()):
        for one in sorted(wanted):
            (left, top), (right, bottom) = spot[package], spot[one]
            begin, end = top + HEIGHT / 2, bottom - HEIGHT / 2 - 1
            bend = (end - begin) / 2
            lines.append(
                f'<path d="M{left:.0f} {begin:.0f}C{left:.0f} {begin + bend:.0f} {right:.0f} {end - bend:.0f} '
                f'{right:.0f} {end:.0f}"/>'
            )
    for package, (middle, height) in sorted(spot.items()):
        kind = ' class="pure"' if package in PURE else ""
        lines.append(
            f'<g{kind}><rect x="{middle - BOX / 2:.0f}" y="{height - HEIGHT / 2:.0f}" width="{BOX}" height="{HEIGHT}" '
            f'rx="6"/><text x="{middle:.0f}" y="{height + 4.5:.1f}">{package}</text></g>'
        )
    return "\n".join([*lines, "</svg>", ""])


def main(arguments: list[str]) -> int:
    """Check the picture, or draw it."""
    drawn = picture()
    if "--write" in arguments:
        PICTURE.write_text(drawn, encoding="utf-8")
        return 0
    if not PICTURE.exists() or PICTURE.read_text(encoding="utf-8") != drawn:
        print(f"{PICTURE.relative_to(ROOT)} shows other imports than the sources: python tools/import_graph.py --write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
