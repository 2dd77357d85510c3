"""Mutants that were read and mean the same as the original, each with the reason.

What a rule can say stands in `changes._means_nothing`; in `equivalent.txt` stands what only a reader can: a module, a
line of it, a change of that line and why no run can tell it from the line as it is, each further in than the one
before. A test sees that each is still there: whoever changes the line decides anew.
"""

from __future__ import annotations

from pathlib import Path

_INDENT = 2
_LEVELS = 4  # module, line, change, reason


def _read(text: str) -> dict[tuple[str, str, str], str]:
    found: dict[tuple[str, str, str], str] = {}
    said = [""] * _LEVELS
    for line in text.splitlines():
        level = (len(line) - len(line.lstrip())) // _INDENT
        said[level] = line.strip()
        if level == _LEVELS - 1:
            found[said[0], said[1], said[2]] = said[3]
    return found


SAME = _read(Path(__file__).with_suffix(".txt").read_text(encoding="utf-8"))  # (path, line, change) -> why
