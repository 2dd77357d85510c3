"""One case: rules, facts, and the derived facts or the error that must come of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

Rows = Iterable[tuple[str, ...] | str]
Tables = Mapping[str, Rows]


@dataclass(frozen=True)
class Case:
    """`expected` names derived rows by predicate; `error` is the error's class and rule or limit."""

    name: str
    rules: str
    facts: Tables = field(default_factory=dict)
    expected: Tables = field(default_factory=dict)
    error: str = ""
    limits: Mapping[str, int] = field(default_factory=dict)

    def files(self) -> dict[str, str]:
        """File name and text of everything the case consists of."""
        files = {"rules.lace": self.rules.strip("\n") + "\n", "facts.txt": fact_lines(self.facts)}
        if self.limits:
            files["limits.json"] = json.dumps(self.limits) + "\n"
        if self.error:
            files["error.txt"] = self.error + "\n"
        else:
            files["expected.txt"] = fact_lines(self.expected)
        return files


def fact_lines(tables: Tables) -> str:
    """Sorted fact lines, each once; a bare text is a row of one value."""
    lines = {fact_line(name, row) for name, rows in tables.items() for row in rows}
    return "".join(f"{line}\n" for line in sorted(lines))


def fact_line(name: str, row: tuple[str, ...] | str) -> str:
    """`Name('a','b')`."""
    values = (row,) if isinstance(row, str) else row
    return f"{name}({','.join(map(quote, values))})"


def quote(value: str) -> str:
    """A constant with its two escapes."""
    return "'" + "".join("\\" + c if c in "\\'" else c for c in value) + "'"
