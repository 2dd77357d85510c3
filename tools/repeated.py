"""Find lines of the sources that stand in two places: `python tools/repeated.py [--most 12]`, exit 1 if any do.

Rule: a run of more than `--most` equal lines is a piece of code that should be called, not written again. Blank lines,
comments and imports do not count.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
Line = tuple[Path, int, str]


def telling_lines(path: Path) -> list[Line]:
    """The lines of a module that say something, with their numbers."""
    lines = []
    within_import = False
    for number, raw in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
        text = raw.strip()
        starts_import = raw.startswith(("import ", "from ")) or (
            text.startswith(("import ", "from ")) and " import " in text
        )
        if starts_import or within_import:
            within_import = (starts_import and text.endswith("(")) or (within_import and not text.startswith(")"))
        elif text and not text.startswith("#"):
            lines.append((path, number, text))
    return lines


def repeated_runs(modules: list[list[Line]], most: int) -> list[tuple[Line, Line, int]]:
    """(first place, second place, how many lines) for every longest run over `most`, each once."""
    windows: dict[tuple[str, ...], tuple[int, int]] = {}
    found: list[tuple[Line, Line, int]] = []
    for index, lines in enumerate(modules):
        position = 0
        while position + most < len(lines):
            key = tuple(text for _, _, text in lines[position : position + most + 1])
            other = windows.setdefault(key, (index, position))
            if other == (index, position) or (other[0] == index and other[1] + most >= position):
                position += 1
                continue
            length = most + 1
            twin, start = modules[other[0]], other[1]
            while (
                position + length < len(lines)
                and start + length < len(twin)
                and lines[position + length][2] == twin[start + length][2]
            ):
                length += 1
            found.append((twin[start], lines[position], length))
            position += length
    return found


def main() -> int:
    """Print every run that stands twice."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=12, help="how many equal lines may stand in two places")
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "src")
    chosen = parser.parse_args()
    runs = repeated_runs([telling_lines(path) for path in sorted(chosen.folder.rglob("*.py"))], chosen.most)
    for (first, line, _), (second, other, _), length in runs:
        print(f"{length} lines stand twice: {first.relative_to(chosen.folder)}:{line} and "
              f"{second.relative_to(chosen.folder)}:{other}")  # fmt: skip
    return 1 if runs else 0


if __name__ == "__main__":
    sys.exit(main())
