"""Where an evaluation reads its base facts (030, fact sources).

Rule: a source shows one fixed snapshot; reading it twice gives the same facts.

`FactSource` is the contract of the specification. `ColumnSource` is the same snapshot as dictionary-encoded
columns, for engines that would rather not see texts: every value has one code, codes are dense from 0, and a
column is a buffer of native unsigned 32-bit codes (`memoryview` of format "I").
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol, runtime_checkable

from lace.datalog.language.syntax import Fact, Predicate
from lace.errors import InvalidLacegram
from lace.notation.fact import facts_of

Row = tuple[str, ...]
Codes = memoryview  # format "I"


class FactSource(Protocol):
    """Base facts of one snapshot."""

    def predicates(self) -> Iterable[Predicate]:
        """The predicates that may have facts here."""

    def iterate(self, predicate: Predicate) -> Iterator[Row]:
        """Every fact of a predicate, each once."""

    def query(self, predicate: Predicate, *values: str | None) -> Iterator[Row]:
        """Facts whose positions equal the values given; None and missing positions are free."""

    def count(self, predicate: Predicate) -> int:
        """How many facts a predicate has."""


@runtime_checkable
class ColumnSource(FactSource, Protocol):
    """A snapshot that also offers its facts as columns of value codes."""

    @property
    def code_count(self) -> int:
        """All codes are below this."""

    def codes(self, texts: Sequence[str]) -> list[int]:
        """The code of each text, -1 where the snapshot has none."""

    def texts(self, codes: Codes) -> list[str]:
        """The text of each code, read in bulk."""

    def columns(self, predicate: Predicate) -> Sequence[Codes]:
        """One column per position, rows aligned, each row once."""

    def slices(self, predicate: Predicate, position: int) -> Mapping[int, Sequence[Codes]] | None:
        """The relation split by the code at `position` (Field by its Name), or None where it is not kept so."""


@runtime_checkable
class LineSource(Protocol):
    """A column source that can hand out texts as they are kept, without making a string of each."""

    def lines(self, codes: Codes) -> bytes:
        """The texts of some codes in UTF-8, each ended by a line break; no text of such a source holds one."""


def all_facts(*sources: FactSource) -> Iterator[Fact]:
    """Everything that some sources hold, source by source."""
    for source in sources:
        for predicate in source.predicates():
            yield from facts_of(predicate, source.iterate(predicate))


def require_places(predicate: Predicate, values: Sequence[str | None]) -> None:
    """Refuse a query with more values than the predicate has places (030-FS-04)."""
    if len(values) > predicate.arity:
        raise InvalidLacegram(f"{predicate} asked with {len(values)} values", rule="query-arity")


class MemorySource:
    """A fact source over facts in memory."""

    def __init__(self, facts: Iterable[Fact] = ()) -> None:
        self._rows: dict[Predicate, dict[Row, None]] = {}
        for predicate, values in facts:
            self._rows.setdefault(predicate, {})[values] = None

    def predicates(self) -> Iterable[Predicate]:
        return self._rows.keys()

    def iterate(self, predicate: Predicate) -> Iterator[Row]:
        return iter(self._rows.get(predicate, ()))

    def query(self, predicate: Predicate, *values: str | None) -> Iterator[Row]:
        require_places(predicate, values)
        return self._matching(predicate, values)

    def _matching(self, predicate: Predicate, values: Sequence[str | None]) -> Iterator[Row]:
        wanted = [(position, value) for position, value in enumerate(values) if value is not None]
        for row in self._rows.get(predicate, ()):
            if all(row[position] == value for position, value in wanted):
                yield row

    def count(self, predicate: Predicate) -> int:
        return len(self._rows.get(predicate, ()))
