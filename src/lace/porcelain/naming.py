"""Records by their fields where a text names them by their hashes: `lace explain --columns Name,App`.

Rule: a text is never changed, only added to; a hash that is not stored gets nothing beside it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from lace.notation.identifiers import RecordHash
from lace.porcelain.lace import Lace
from lace.porcelain.listing import record_fields

_RECORD = re.compile(rf"\b{RecordHash.PATTERN}")


class Naming:
    """Some fields of the records that a text speaks of."""

    def __init__(self, lace: Lace, columns: Sequence[str]) -> None:
        self._lace = lace
        self._columns = [column.strip() for column in columns if column.strip()]
        self._known: dict[str, dict[str, tuple[str, ...]]] = {}

    def of(self, text: str) -> dict[str, dict[str, tuple[str, ...]]]:
        """The stored records of a text, each with its fields."""
        fields = {record: self._fields(record) for record in dict.fromkeys(_RECORD.findall(text))}
        return {record: found for record, found in fields.items() if found}

    def beside(self, text: str) -> str:
        """The text with the fields of its records at the ends of the lines that name them."""
        return "".join(self._line(line) for line in text.splitlines(keepends=True))

    def _line(self, line: str) -> str:
        said = "; ".join(
            ", ".join(f"{name} {value}" for name, values in fields.items() for value in values)
            for fields in self.of(line).values()
        )
        body = line.rstrip("\n")
        return f"{body}   # {said}{line[len(body) :]}" if said else line

    def _fields(self, record: str) -> dict[str, tuple[str, ...]]:
        if record not in self._known:
            stored = RecordHash(record)
            have = self._lace.store.have(stored)
            found = record_fields(self._lace.load(stored), self._columns) if have else {}
            self._known[record] = {name: found[name] for name in self._columns if name in found}
        return self._known[record]
