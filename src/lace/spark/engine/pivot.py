"""Answer a star by Column expressions over the wide table: one pass, no shuffle, no explode where a test will do.

Rule: a record is one row, so everything a star says of it is said by that row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import reduce
from operator import and_, or_
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user reads

from lace.datalog.language.syntax import (
    Anonymous,
    Atom,
    Cardinality,
    Compare,
    Constant,
    Literal,
    Negated,
    Positive,
    Term,
    TextShape,
    TrueLiteral,
    Unequal,
    Variable,
)
from lace.datalog.source import Row
from lace.facts.predicates import BLOB_HASH, FIELD, HAVE, PLEX_HASH, RECORD_LINK
from lace.spark.engine.columns import compare_integers, compare_texts, count_holds, text_shape
from lace.spark.engine.stars import Star
from lace.spark.source.schemas import SINGLETON_COLUMNS
from lace.values import dataclass

UNIT = "unit"  # the one column of a relation without any
_EMPTY = Constant("")


def relation_columns(arity: int) -> list[str]:
    """The column names of a relation."""
    return [f"c{position}" for position in range(arity)] or [UNIT]


class StarRows(NamedTuple):
    """A star's output rows, each once; whether there is at most one for each record, and else the rows with repeats."""

    frame: DataFrame
    one_a_record: bool
    repeating: DataFrame | None = None


def star_relation(records: DataFrame, star: Star) -> StarRows:
    """What a star says of every record."""
    scan = _scan(records, star)
    names = relation_columns(len(star.outputs))
    outputs = [value.alias(name) for value, name in zip(scan.values(star), names, strict=True)]
    rows = scan.frame.where(scan.condition()).select(*outputs)
    one_row_a_record = not scan.exploded and star.record in star.outputs
    return StarRows(rows, True) if one_row_a_record else StarRows(rows.distinct(), False, rows)


class StarsTogether(NamedTuple):
    """What several stars say, from one pass: each has columns of its own, null where it says nothing of a record."""

    frame: DataFrame
    stars: list[Star]
    width: int  # columns of the frame

    def apart(self, rows: Iterable[Row]) -> Iterator[tuple[Star, list[Row]]]:
        """Each star with its rows among those of the frame, each once."""
        together, at = list(rows), 0
        for star in self.stars:
            places = slice(at, at + len(relation_columns(len(star.outputs))))
            said = dict.fromkeys(row[places] for row in together if row[at] is not None)
            yield star, list(said) if star.outputs else [()] * len(said)
            at = places.stop


def stars_together(records: DataFrame, stars: Sequence[Star]) -> StarsTogether | None:
    """The stars that can be answered row by row, in one pass over the records; None if it would be for one star."""
    scans = [(star, scan) for star in stars if not (scan := _scan(records, star)).exploded]
    if len(scans) < 2:
        return None
    said = [F.when(scan.condition(), value) for star, scan in scans for value in scan.values(star)]
    columns = [column.alias(name) for column, name in zip(said, relation_columns(len(said)), strict=True)]
    rows = records.where(reduce(or_, (scan.condition() for _, scan in scans))).select(*columns)
    return StarsTogether(rows.distinct(), [star for star, _ in scans], len(columns))


class Among(NamedTuple):
    """That a variable of a star has one of some values, or none of them."""

    variable: Variable
    values: frozenset[str]
    negated: bool = False


def star_test(star: Star, tests: Sequence[Among] = ()) -> Column:
    """Whether a star has a row for a record for which some tests hold: true or false, and no row is multiplied."""
    held = _holds(_Scan(), sorted(star.body, key=_cheap_first), tests)
    return F.coalesce(held, F.lit(False))


def _holds(scan: _Scan, literals: Sequence[Literal], tests: Sequence[Among]) -> Column:
    """Where `_Scan` would multiply rows, the rest is asked of each item."""
    for place, literal in enumerate(literals):
        if isinstance(literal, Positive) and scan.multiplies(literal.atom):
            return _holds_of_some(scan, literal.atom, literals[place + 1 :], tests)
        scan.add(literal)
    for test in tests:
        scan.add_test(test)
    return scan.condition()


def _holds_of_some(scan: _Scan, atom: Atom, rest: Sequence[Literal], tests: Sequence[Among]) -> Column:
    scan.name_record(atom)
    items = F.filter(_items(atom), lambda item: _holds(scan.at(atom, item), rest, tests))
    return scan.condition() & (F.size(items) > 0)


def _scan(records: DataFrame, star: Star) -> _Rows:
    scan = _Rows(records)
    for literal in sorted(star.body, key=_cheap_first):
        scan.add(literal)
    return scan


def _cheap_first(literal: Literal) -> int:
    """Atoms bind before filters test; atoms over arrays come after those over single columns."""
    match literal:
        case Positive(atom):
            return 0 if _single_name(atom) is not None or atom.predicate == HAVE else 1
        case _:
            return 2


def _single_name(atom: Atom) -> str | None:
    """The column that holds an atom's last value, if a record has at most one."""
    if atom.predicate == BLOB_HASH:
        return "blob_hash"
    if atom.predicate == PLEX_HASH:
        return "plex_hash"
    if atom.predicate == FIELD and isinstance(atom.terms[1], Constant):
        return SINGLETON_COLUMNS.get(atom.terms[1].value)
    return None


def _text_column(name: str) -> Column:
    """Every field is text to a rule; one column is a number."""
    return F.col(name).cast("string") if name == "data_length" else F.col(name)


@dataclass
class _Scan:
    """What is said of one row of the wide table so far: what is bound, and what must hold."""

    bound: dict[Variable, Column] = field(default_factory=dict)
    conditions: list[Column] = field(default_factory=list)
    records: set[Term] = field(default_factory=set)  # terms that are known to be the record

    def condition(self) -> Column:
        return reduce(and_, self.conditions) if self.conditions else F.lit(True)

    def values(self, star: Star) -> list[Column]:
        """What a star hands out; none of it is null where its conditions hold."""
        return [self.bound[variable] for variable in star.outputs] or [F.lit(True)]

    def add(self, literal: Literal) -> None:
        match literal:
            case Positive(atom):
                self._atom(atom)
            case Negated(atom):
                self.conditions.append(~F.coalesce(self._exists(atom), F.lit(False)))
            case Cardinality(atom=atom, operator=operator, bound=bound):
                self.conditions.append(count_holds(self._count(atom), operator, self._value(bound)))
            case Unequal(left=left, right=right):
                self.conditions.append(self._value(left) != self._value(right))
            case Compare(kind="int", left=left, operator=operator, right=right):
                self.conditions.append(compare_integers(self._value(left), operator, self._value(right)))
            case Compare(left=left, operator=operator, right=right):
                self.conditions.append(compare_texts(self._value(left), operator, self._value(right)))
            case TextShape(text=text, start=start, delimiters=delimiters, end=end):
                last = None if end == _EMPTY else self._value(end)
                self.conditions.append(text_shape(self._value(text), self._value(start), delimiters, last))
            case TrueLiteral():
                pass

    def _value(self, term: Term) -> Column:
        match term:
            case Constant(value):
                return F.lit(value)
            case Variable():
                return self.bound[term]
            case Anonymous():
                raise AssertionError("a safe rule has no _ here")

    def add_test(self, test: Among) -> None:
        found = self.bound[test.variable].isin(*sorted(test.values)) if test.values else F.lit(False)
        self.conditions.append(~found if test.negated else found)

    def name_record(self, atom: Atom) -> None:
        if atom.terms[0] not in self.records:
            self._unify(atom.terms[0], F.col("hash"))
            self.records.add(atom.terms[0])

    def multiplies(self, atom: Atom) -> bool:
        """Whether several facts of one record may match an atom, each with values of its own."""
        return atom.predicate != HAVE and _single_name(atom) is None and not self._only_tests(atom)

    def at(self, atom: Atom, item: Column) -> _Scan:
        """The same with one of the facts that match an atom; what was said before is not said again."""
        scan = _Scan(dict(self.bound), [], set(self.records))
        scan.take_item(atom, item)
        return scan

    def take_item(self, atom: Atom, item: Column) -> None:
        for term, column in zip(atom.terms[1:], _parts(atom, item), strict=True):
            self._unify(term, column)

    def _atom(self, atom: Atom) -> None:
        self.name_record(atom)
        if atom.predicate == HAVE:
            return
        name = _single_name(atom)
        if name is not None:
            single = _text_column(name)
            if not isinstance(atom.terms[-1], Constant):  # what equals a text is not null
                self.conditions.append(single.isNotNull())
            if atom.predicate == FIELD:
                self._unify(atom.terms[2], F.lit("0"))
            self._unify(atom.terms[-1], single)
        elif self._only_tests(atom):
            self.conditions.append(self._exists(atom))
        else:
            self._multiply(atom)

    def _multiply(self, atom: Atom) -> None:
        raise AssertionError("asked of each item by itself")

    def _unify(self, term: Term, column: Column) -> None:
        match term:
            case Constant(value):
                self.conditions.append(column == F.lit(value))
            case Variable() if term in self.bound:
                self.conditions.append(column == self.bound[term])
            case Variable():
                self.bound[term] = column
            case Anonymous():
                pass

    def _only_tests(self, atom: Atom) -> bool:
        """Whether every variable of an array atom is bound already (repeats among new ones would bind)."""
        return all(not isinstance(term, Variable) or term in self.bound for term in atom.terms)

    def _exists(self, atom: Atom) -> Column:
        """Whether the record has a fact that matches what is bound."""
        here = self._same_record(atom)
        if atom.predicate == HAVE:
            return here
        return here & (F.size(F.filter(_items(atom), lambda item: self._matches(atom, item))) > 0)

    def _count(self, atom: Atom) -> Column:
        if atom.predicate == HAVE:
            return F.lit(1)
        return F.size(F.filter(_items(atom), lambda item: self._matches(atom, item)))

    def _same_record(self, atom: Atom) -> Column:
        first = atom.terms[0]
        return F.lit(True) if isinstance(first, Anonymous) else F.col("hash") == self._value(first)

    def _matches(self, atom: Atom, item: Column) -> Column:
        """The item equals what the atom says at constants and bound variables, and itself at repeated new ones."""
        result = F.lit(True)
        seen: dict[Variable, Column] = {}
        for term, column in zip(atom.terms[1:], _parts(atom, item), strict=True):
            match term:
                case Constant(value):
                    result = result & (column == F.lit(value))
                case Variable() if term in self.bound:
                    result = result & (column == self.bound[term])
                case Variable() if term in seen:
                    result = result & (column == seen[term])
                case Variable():
                    seen[term] = column
                case Anonymous():
                    pass
        return result


class _Rows(_Scan):
    """A growing scan of the wide table: its rows too, and whether they were multiplied."""

    def __init__(self, frame: DataFrame) -> None:
        super().__init__()
        self.frame = frame
        self.exploded = 0

    def _multiply(self, atom: Atom) -> None:
        self.exploded += 1
        name = f"_item{self.exploded}"
        # What is known of the item is tested inside the array, before any row is multiplied.
        items = F.filter(_items(atom), lambda item: self._matches(atom, item))
        # Conditions so far filter first: explode only the rows that survive them.
        self.frame = self.frame.where(self.condition()).withColumn(name, F.explode(items))
        self.conditions = []
        self.take_item(atom, F.col(name))


_HEADERS = "array<struct<name:string,index:int,value:string>>"


def _items(atom: Atom) -> Column:
    """All facts of an atom's predicate that one record has, as an array of structs."""
    if atom.predicate == RECORD_LINK:
        return F.col("links")
    if atom.predicate == BLOB_HASH:
        return _present([F.struct(F.col("blob_hash").alias("value"))])
    if atom.predicate == PLEX_HASH:
        return _present([F.struct(F.col("plex_hash").alias("value"))])
    name = atom.terms[1]
    if isinstance(name, Constant) and name.value not in SINGLETON_COLUMNS:
        return F.col("headers")
    return singletons({name.value: SINGLETON_COLUMNS[name.value]}) if isinstance(name, Constant) else every_field()


def singletons(wanted: Mapping[str, str]) -> Column:
    """The fields that a record has once, by name and column, as an array of structs."""
    return _present([
        F.struct(F.lit(label).alias("name"), F.lit(0).alias("index"), F.col(column).cast("string").alias("value"))
        for label, column in wanted.items()
    ])  # fmt: skip


def every_field() -> Column:
    """All fields of a record as an array of structs."""
    # Of one type to the letter: Spark overlooks that a header's value is never null, other engines do not.
    return F.concat(singletons(SINGLETON_COLUMNS).cast(_HEADERS), F.col("headers").cast(_HEADERS))


def _present(items: list[Column]) -> Column:
    return F.filter(F.array(*items), lambda item: item["value"].isNotNull())


def _parts(atom: Atom, item: Column) -> list[Column]:
    """An item's values at the positions after the record."""
    readers: dict[object, Callable[[], list[Column]]] = {
        FIELD: lambda: [item["name"], item["index"].cast("string"), item["value"]],
        RECORD_LINK: lambda: [item["name"], item["index"].cast("string"), item["data"], item["target"]],
        BLOB_HASH: lambda: [item["value"]],
        PLEX_HASH: lambda: [item["value"]],
    }
    return readers[atom.predicate]()
