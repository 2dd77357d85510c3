"""Every value once, as a dense code (030, values).

Rule: equal texts have equal codes and no code is ever given twice. Codes below `base` are those of a column source;
texts that it does not know (rule constants, runtime facts) get the codes above.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from itertools import count, islice
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from lace.datalog.admission import check_value
from lace.datalog.source import ColumnSource, LineSource
from lace.limits import EngineLimits
from lace.thresholds import ENGINE_THRESHOLDS

Codes = npt.NDArray[np.uint32]
Objects = npt.NDArray[Any]


class Dictionary:
    """Texts and their codes."""

    def __init__(
        self,
        limits: EngineLimits,
        source: ColumnSource | None = None,
        kept_texts: int = ENGINE_THRESHOLDS.kept_texts,
    ) -> None:
        self._kept_texts = kept_texts
        self._limits = limits
        self._source = source
        self.base: int = source.code_count if source is not None else 0
        self._next = count(self.base).__next__
        # A dict that numbers its own misses interns a column without a Python step per value.
        self._codes: defaultdict[str, int] = defaultdict(self._next)
        self._known: dict[str, int] = {}  # texts of the source that were looked up
        self._read: dict[int, str] = {}  # single codes of the source that were read; changes ask for the same few
        self._text_bytes = 0
        self._texts = as_objects(())  # by code - base, with room for more; trails _codes until `settle`
        self._settled = 0  # texts that can be read

    @property
    def size(self) -> int:
        """All codes given so far are below this."""
        return self.base + len(self._codes)

    def intern(self, rows: Collection[Sequence[str]], position: int) -> Codes:
        """The codes of one column of rows of texts, new ones where needed."""
        values = list(map(itemgetter(position), rows))
        if values and values[0] == values[-1] and values.count(values[0]) == len(values):
            return np.full(len(values), self.code(values[0]), np.uint32)
        if self._source is not None:
            self._look_up(dict.fromkeys(values))
        known, codes = self._known, self._codes
        if not known or known.keys().isdisjoint(values):
            return np.fromiter(map(codes.__getitem__, values), np.uint32, len(values))
        return np.fromiter((known[v] if v in known else codes[v] for v in values), np.uint32, len(values))

    def code(self, text: str) -> int:
        """The code of one text, a new one if needed."""
        if self._source is not None:
            if text in self._known:
                return self._known[text]
            self._look_up((text,))
            if text in self._known:
                return self._known[text]
        return self._codes[text]

    def codes(self, rows: Collection[Sequence[str]]) -> list[tuple[int, ...]]:
        """The codes of the values of some facts, new ones where needed; the source is asked once for all of them."""
        self._look_up_rows(rows)
        known, own = self._known, self._codes
        return [tuple([known[t] if t in known else own[t] for t in row]) for row in rows]

    def found(self, rows: Collection[Sequence[str]]) -> list[tuple[int, ...]]:
        """The same without giving out any: -1 for a text that has no code."""
        self._look_up_rows(rows)
        known, own = self._known, self._codes
        return [tuple([known[t] if t in known else own.get(t, -1) for t in row]) for row in rows]

    def _look_up_rows(self, rows: Collection[Sequence[str]]) -> None:
        if self._source is not None:
            self._look_up(dict.fromkeys(text for row in rows for text in row))

    def find(self, text: str) -> int:
        """The code of a text, -1 if it has none; gives out nothing."""
        if text in self._codes:
            return self._codes[text]
        if self._source is not None:
            if text not in self._known:
                self._look_up((text,))
            return self._known.get(text, -1)
        return -1

    def _look_up(self, texts: Iterable[str]) -> None:
        assert self._source is not None
        unknown = [text for text in texts if text not in self._known and text not in self._codes]
        if unknown:
            found = self._source.codes(unknown)
            if max(found) >= 0:
                self._known.update([pair for pair in zip(unknown, found, strict=True) if pair[1] >= 0])

    def settle(self) -> None:
        """Check the texts that came in since the last time, and make them readable by code."""
        known = self._settled
        missing = len(self._codes) - known
        if not missing:
            return
        # A dict keeps the order of its numbers.
        fresh = list(islice(reversed(self._codes), missing))[::-1] if known else list(self._codes)
        self._text_bytes += check_texts(fresh, self._limits)
        if known + missing > len(self._texts):
            room = np.empty(max(known, missing), object)
            self._texts = np.concatenate([self._texts[:known], room])
        self._texts[known : known + missing] = as_objects(fresh)
        self._settled += missing

    def text(self, code: int) -> str:
        """The text of a code."""
        if code >= self.base:
            self.settle()
            text: str = self._texts[code - self.base]
            return text
        found = self._read.get(code)
        if found is None:
            if len(self._read) >= self._kept_texts:
                self._read.clear()
            found = self._read[code] = self.texts(np.array([code], np.uint32))[0]
        return found

    def texts(self, codes: Codes) -> list[str]:
        """The text of each code."""
        self.settle()
        if self._source is None:
            texts: list[str] = self._texts[codes].tolist()
            return texts
        own = codes >= self.base
        if not own.any():
            return self._source.texts(as_buffer(codes))
        found = iter(self._source.texts(as_buffer(codes[~own])))
        return [self._texts[c - self.base] if c >= self.base else next(found) for c in codes.tolist()]

    def lines(self, codes: Codes) -> bytes:
        """The texts of some codes in UTF-8, each ended by a line break."""
        if isinstance(self._source, LineSource) and not (codes >= self.base).any():
            return self._source.lines(as_buffer(codes))
        return "".join([f"{text}\n" for text in self.texts(codes)]).encode()

    @property
    def memory_bytes(self) -> int:
        """Roughly what the own texts and both tables hold."""
        return 110 * (len(self._codes) + len(self._known)) + self._text_bytes + 49 * self._settled


def as_objects(values: Collection[object]) -> Objects:
    """Values as an array. Unlike a list it is nothing that Python's cycle collector looks through."""
    return np.fromiter(values, object, len(values))


def as_buffer(codes: Codes) -> memoryview:
    """Codes as the buffer that a column source reads."""
    return np.ascontiguousarray(codes).data


def check_texts(texts: list[str], limits: EngineLimits) -> int:
    """Refuse values that no fact may hold (030-VAL-01..03); how long all of them are.

    Short ASCII, the common case, is checked in bulk.
    """
    joined = "".join(texts)
    if not joined.isascii() or max(map(len, texts), default=0) > limits.max_value_bytes:
        for text in sorted(texts):  # the same value is refused whatever the order of facts
            check_value(text, limits)
    return len(joined)
