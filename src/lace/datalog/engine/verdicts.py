"""Builtins over columns of codes (030, built-ins).

Rule: `lace.datalog.language.comparisons` decides, once per distinct value or pair of values; columns only look
verdicts up. No rule makes a value, so a verdict found once stays true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import repeat
from typing import assert_never

import numpy as np
import numpy.typing as npt

from lace.datalog.engine.dictionary import Dictionary
from lace.datalog.engine.index import Codes, Mask, pack
from lace.datalog.engine.sorting import numbered, sorted_unique
from lace.datalog.language.comparisons import HOLDS, compare, integer_key, text_shape
from lace.datalog.language.syntax import Compare, Constant, Operator, Term, TextShape, Unequal, Variable
from lace.datalog.language.terms import variable_names
from lace.datalog.planning.plan import Test
from lace.thresholds import ENGINE_THRESHOLDS

_UNKNOWN, _TRUE, _FALSE = 0, 1, 2
Ranks = npt.NDArray[np.int64]
_KEPT_ORDERS = 4


def holds(test: Test, value: Callable[[Term], str]) -> bool:
    """A builtin on texts."""
    match test:
        case Unequal(left, right):
            return value(left) != value(right)
        case Compare(kind, left, operator, right):
            return compare(kind, value(left), operator, value(right))
        case TextShape(text, start, delimiters, end):
            return text_shape(value(text), value(start), delimiters, value(end))
        case _:
            assert_never(test)


def constant_value(term: Term) -> str:
    """The text of a constant."""
    assert isinstance(term, Constant)
    return term.value


class Judged:
    """The answers of a builtin with one variable, by code."""

    def __init__(self, test: Test, dictionary: Dictionary) -> None:
        self._test = test
        self._dictionary = dictionary
        self.table: np.typing.NDArray[np.uint8] = np.zeros(dictionary.size, np.uint8)

    def mask(self, column: Codes) -> Mask:
        """Which rows pass."""
        self._grow()
        verdicts = self.table[column]
        unknown = verdicts == _UNKNOWN
        if unknown.any():
            codes = distinct_codes(column[unknown], len(self.table))
            self.table[codes] = np.where(self._judge(self._dictionary.texts(codes), len(codes)), _TRUE, _FALSE)
            verdicts = self.table[column]
        return np.equal(verdicts, _TRUE)

    def one(self, code: int) -> bool:
        """Whether a single value passes."""
        if code >= len(self.table):
            self._grow()
        verdict = self.table.item(code)
        if verdict == _UNKNOWN:
            verdict = _TRUE if self._judge([self._dictionary.text(code)], 1)[0] else _FALSE
            self.table[code] = verdict
        return verdict == _TRUE

    def _grow(self) -> None:
        size = self._dictionary.size
        if len(self.table) < size:
            grown = np.zeros(size + (size >> 3) + 64, np.uint8)  # more than is needed: new values come a few at a time
            grown[: len(self.table)] = self.table
            self.table = grown

    def _judge(self, texts: Iterable[str], count: int) -> Mask:
        plain = _plain_shape(self._test)
        if plain is not None:
            return _begin_and_end(texts, count, *plain)
        return np.fromiter((holds(self._test, _reader({}, text)) for text in texts), np.bool_, count)


class Verdicts:
    """Answers of builtins, kept by test."""

    def __init__(self, dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        self._judged: dict[Test, Judged] = {}
        self._orders: list[tuple[str, Codes, Ranks]] = []  # the last few, newest first: kind, codes, their ranks

    @property
    def nbytes(self) -> int:
        """What the kept answers hold."""
        orders = sum(codes.nbytes + ranks.nbytes for _, codes, ranks in self._orders)
        return orders + sum(judged.table.nbytes for judged in self._judged.values())

    def judged(self, test: Test) -> Judged:
        """The answers of a test with one variable."""
        found = self._judged.get(test)
        if found is None:
            found = self._judged[test] = Judged(test, self._dictionary)
        return found

    def mask(self, test: Test, columns: Mapping[str, Codes], rows: int) -> Mask:
        """Which rows pass."""
        names = sorted(set(variable_names(test)))
        if not names:
            return np.full(rows, holds(test, constant_value), np.bool_)
        if isinstance(test, Unequal):
            return self._unequal(test, columns)
        if len(names) == 1:
            return self.judged(test).mask(columns[names[0]])
        if isinstance(test, Compare):
            return self._compare(test, columns)
        return self._distinct_tuples(test, names, columns)

    def _unequal(self, test: Unequal, columns: Mapping[str, Codes]) -> Mask:
        left, right = (self._operand(term, columns) for term in (test.left, test.right))
        return np.asarray(left != right)

    def _operand(self, term: Term, columns: Mapping[str, Codes]) -> Codes | np.uint32:
        return (
            columns[term.name] if isinstance(term, Variable) else np.uint32(self._dictionary.code(constant_value(term)))
        )

    def _compare(self, test: Compare, columns: Mapping[str, Codes]) -> Mask:
        assert isinstance(test.left, Variable)
        assert isinstance(test.right, Variable)
        left, right = columns[test.left.name], columns[test.right.name]
        size = self._dictionary.size
        codes = distinct_codes(np.concatenate([left, right]), size)
        ranks = self.ranks(codes, test.kind)
        left_rank = ranks[np.searchsorted(codes, left)]
        right_rank = ranks[np.searchsorted(codes, right)]
        # A text that is not an integer has no rank, and no comparison with it holds, not even `!=`.
        return ordered(left_rank, test.operator, right_rank) & (left_rank >= 0) & (right_rank >= 0)

    def ranks(self, codes: Codes, kind: str) -> Ranks:
        """Each code's place in the order of the builtin, equal values equal, -1 for what it cannot compare.

        A question asked again over the same facts orders the same codes, so the last few orders are kept.
        """
        for known, ordered_codes, found in self._orders:
            if known == kind and np.array_equal(ordered_codes, codes):
                return found
        texts = self._dictionary.texts(codes)
        ranks = integer_ranks(texts) if kind == "int" else text_ranks(texts)
        self._orders = [(kind, codes, ranks), *self._orders[: _KEPT_ORDERS - 1]]
        return ranks

    def _distinct_tuples(self, test: Test, names: list[str], columns: Mapping[str, Codes]) -> Mask:
        # Columns are folded in one at a time. Renumbered after each, tuples never exceed the number of rows, so a
        # tuple and the next column fit into 64 bits however many columns there are.
        inverse = np.zeros(len(columns[names[0]]), np.uint32)
        for name in names:
            inverse = numbered(pack([inverse, columns[name]]))[1].astype(np.uint32)
        first = np.zeros(int(inverse.max()) + 1, np.int64)
        first[inverse] = np.arange(len(inverse))  # any row of each kind
        texts = {name: self._dictionary.texts(columns[name][first]) for name in names}
        answers = np.empty(len(first), np.bool_)
        for row in range(len(first)):
            answers[row] = holds(test, _reader({name: column[row] for name, column in texts.items()}, ""))
        return answers[inverse]


def _reader(values: Mapping[str, str], otherwise: str) -> Callable[[Term], str]:
    """Terms under an assignment; with a single variable its name does not matter."""

    def value(term: Term) -> str:
        return values.get(term.name, otherwise) if isinstance(term, Variable) else constant_value(term)

    return value


def _plain_shape(test: Test) -> tuple[str, str] | None:
    match test:
        case TextShape(Variable(), Constant(start), "", Constant(end)):
            return start, end
        case _:
            return None


def _begin_and_end(texts: Iterable[str], count: int, start: str, end: str) -> Mask:
    """Prefix and suffix, the common shape; a prefix alone needs no step of the interpreter per text."""
    if not end:
        return np.fromiter(map(str.startswith, texts, repeat(start)), np.bool_, count)
    least = len(start) + len(end)
    answers = (text.startswith(start) and len(text) >= least and text.endswith(end) for text in texts)
    return np.fromiter(answers, np.bool_, count)


def distinct_codes(column: Codes, domain: int) -> Codes:
    """The codes that occur, ascending."""
    if domain <= 16 * len(column) + 65_536:
        flags = np.zeros(domain, np.bool_)
        flags[column] = True
        return np.flatnonzero(flags).astype(np.uint32)
    return sorted_unique(column)


def ordered(left: Ranks, operator: Operator, right: Ranks) -> Mask:
    """An operator on numbers."""
    holds: Mask = HOLDS[operator](left, right)
    return holds


WORDS_BYTES = 32  # a date or a name is ordered 1.7 times as fast, a hash of 45 characters half as fast


def integer_ranks(texts: list[str]) -> Ranks:
    """Ranks of decimal integers of any length (P4), -1 for other texts."""
    keys = [integer_key(text) for text in texts]
    order = {key: rank for rank, key in enumerate(sorted({key for key in keys if key is not None}))}
    return np.array([-1 if key is None else order[key] for key in keys], np.int64)


def text_ranks(texts: list[str], words_texts: int = ENGINE_THRESHOLDS.words_texts) -> Ranks:
    """Ranks of different texts in UTF-8 byte order."""
    ranks = np.empty(len(texts), np.int64)
    # Python orders texts by code points, which is the order of their UTF-8 bytes.
    words = as_words(texts) if len(texts) >= words_texts else None
    order = np.lexsort(words) if words else np.array(sorted(range(len(texts)), key=texts.__getitem__), np.int64)
    ranks[order] = np.arange(len(texts))
    return ranks


def as_words(texts: list[str]) -> list[npt.NDArray[np.uint64]] | None:
    """ASCII texts as big-endian words, least significant first; None where bytes would not order like texts."""
    joined = "".join(texts)
    if not joined.isascii() or "\0" in joined:  # numpy fills up with zero bytes, so no text may hold one
        return None
    width = -(-max(map(len, texts)) // 8) * 8
    if not 0 < width <= WORDS_BYTES:
        return None
    table = np.array(texts, dtype=f"S{width}").view(">u8").reshape(len(texts), width // 8)
    words = [table[:, place].astype(np.uint64) for place in reversed(range(width // 8))]
    return [word for word in words if word.min() != word.max()] or words[:1]  # a shared beginning orders nothing
