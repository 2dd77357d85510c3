"""Keep docs/decisions/README.md, the index of decisions, as the files beside it say.

usage: python tools/decisions.py [--write]     (without: exit 1 where something is missing or old)

Rule: a decision's first line is `# NNN Title`; one of its next lines is `*DATE · STATUS*`, and STATUS is `in force` or
says by which decision it was replaced.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "decisions"
TITLE = re.compile(r"# (\d{3}):? (.+)")
STATUS = re.compile(r"\*(\d{4}-\d{2}-\d{2}) · ([^*]+)\*")
HEAD = """# Decisions

What was decided where there was a choice, and what it cost. A decision is never rewritten to look right afterwards:
a later one replaces it and says so.

| decision | date | status |
|---|---|---|
"""


def rows() -> list[str]:
    """A table row for each decision; ValueError names the file that lacks something."""
    found = []
    for path in sorted(FOLDER.glob("[0-9]*.md")):
        first, *rest = path.read_text(encoding="utf-8").split("\n")
        title = TITLE.fullmatch(first)
        status = next((match for match in map(STATUS.fullmatch, rest[:4]) if match), None)
        if title is None or not path.name.startswith(title[1]):
            raise ValueError(f"{path.name}: the first line is not `# {path.name[:3]} Title`: {first}")
        if status is None:
            raise ValueError(f"{path.name}: no line `*YYYY-MM-DD · status*` under the title")
        found.append(f"| [{title[1]} {title[2]}]({path.name}) | {status[1]} | {status[2]} |")
    return found


def main(arguments: list[str]) -> int:
    """Check the index, or write it."""
    index = FOLDER / "README.md"
    try:
        text = HEAD + "\n".join(rows()) + "\n"
    except ValueError as error:
        print(error)
        return 1
    if "--write" in arguments:
        index.write_text(text, encoding="utf-8")
        return 0
    if index.read_text(encoding="utf-8") != text:
        print("docs/decisions/README.md is not what the decisions say: python tools/decisions.py --write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
