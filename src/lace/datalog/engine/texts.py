"""Columns of facts as texts, for writing millions of them: sorted, as JSON lines, as Arrow.

Rule: a text is looked up once for each distinct value of a column; a row is numbers until it is written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from lace.datalog.engine.dictionary import Dictionary
from lace.datalog.engine.index import Codes
from lace.datalog.engine.verdicts import distinct_codes
from lace.errors import naming_extras
from lace.thresholds import ENGINE_THRESHOLDS
from lace.values import dataclass

if TYPE_CHECKING:
    import pyarrow as pa

Places = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class TextColumn:
    """A column: its distinct texts in their order, and for each row the place of its text among them."""

    texts: list[str]
    places: Places

    def whole(self) -> list[str]:
        """The text of every row."""
        found: list[str] = np.array([*self.texts, None], object)[self.places].tolist()
        return found

    def part(self, start: int, end: int) -> list[str]:
        """The texts of some rows."""
        return [self.texts[place] for place in self.places[start:end].tolist()]


def text_column(column: Codes, dictionary: Dictionary) -> TextColumn:
    """A column of codes as texts."""
    codes = distinct_codes(column, dictionary.size)
    texts = dictionary.texts(codes)
    order = sorted(range(len(texts)), key=texts.__getitem__)
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return TextColumn([texts[n] for n in order], rank[np.searchsorted(codes, column)])


def in_text_order(columns: Sequence[TextColumn]) -> list[TextColumn]:
    """The same rows, sorted."""
    keys = columns[0].places.astype(np.int64)
    rest = list(columns[1:])
    if rest and len(columns[0].texts) * len(rest[0].texts) < 1 << 62:
        second = rest.pop(0)  # two columns fit into one key, which sorts faster than each after the other
        keys = keys * max(len(second.texts), 1) + second.places
    later: list[npt.NDArray[np.integer]] = [column.places for column in reversed(rest)]
    order = np.lexsort((*later, keys)) if later else np.argsort(keys)
    return [TextColumn(column.texts, column.places[order]) for column in columns]


def json_lines(
    names: Sequence[str],
    columns: Sequence[TextColumn],
    shown: Callable[[str], str] = str,
    page_rows: int = ENGINE_THRESHOLDS.page_rows,
) -> Iterator[str]:
    """One JSON object for each row, some thousand lines at a time, each ended; `shown` has the last say on a value."""
    as_json = json.JSONEncoder(ensure_ascii=False).encode

    def encode(text: str) -> str:
        return shown(as_json(text))

    pieces = [
        np.array([*(f"{lead}{encode(name)}: {encode(text)}" for text in column.texts), None], object)
        for name, column, lead in zip(names, columns, ["{", *[", "] * len(names)], strict=False)
    ]
    for start in range(0, len(columns[0].places), page_rows):
        end = start + page_rows
        page = [piece[column.places[start:end]].tolist() for piece, column in zip(pieces, columns, strict=True)]
        lines = map("".join, zip(*page, strict=True)) if len(page) > 1 else page[0]
        yield "}\n".join(lines) + "}\n"


def arrow_table(names: Sequence[str], columns: Sequence[TextColumn]) -> pa.Table:
    """An Arrow table of strings."""
    with naming_extras():
        import pyarrow

    def array(column: TextColumn) -> pa.Array:
        return pyarrow.array(column.texts, pyarrow.string()).take(pyarrow.array(column.places))

    return pyarrow.table([array(column) for column in columns], names=list(names))
