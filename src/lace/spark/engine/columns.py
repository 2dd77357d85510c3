"""The builtins of 030 as Spark columns: exact, unbounded, without a Python function in the way.

Rule: each function here says for columns what `lace.datalog.language.comparisons` says for two texts; a test compares
them.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user reads

from lace.datalog.language.comparisons import HOLDS
from lace.datalog.language.syntax import Operator

_INTEGER = r"\A-?[0-9]+\z"  # P4


def compare_texts(left: Column, operator: Operator, right: Column) -> Column:
    """LexCompare: Spark orders strings by their UTF-8 bytes, which is what 030 asks for."""
    holds: Column = HOLDS[operator](left, right)
    return holds


def compare_integers(left: Column, operator: Operator, right: Column) -> Column:
    """IntCompare: integers of any length, false where a text is none.

    A number becomes a triple that orders as the number does (sign, then length and digits, both mirrored for negative
    numbers), so nothing is ever cast to 64 bits.
    """
    both = left.rlike(_INTEGER) & right.rlike(_INTEGER)
    sign = _sign(left), _sign(right)
    size = _digits(left), _digits(right)
    longer = F.length(size[0]).cast("int") - F.length(size[1]).cast("int")
    by_digits = F.when(size[0] > size[1], 1).when(size[0] < size[1], -1).otherwise(0)
    magnitude = F.when(longer != 0, F.signum(longer).cast("int")).otherwise(by_digits)
    order = F.when(sign[0] != sign[1], sign[0] - sign[1]).otherwise(magnitude * sign[0])
    return F.coalesce(both & HOLDS[operator](order, 0), F.lit(False))


def text_shape(text: Column, start: Column, delimiters: str, end: Column | None) -> Column:
    """TextShape: Start, a middle (or one non-empty segment up to the first delimiter), End; None for an empty one."""
    if end is None and not delimiters:
        return text.startswith(start)
    end = F.lit("") if end is None else end
    rest = F.substring(text, F.length(start) + 1, F.length(text))
    if not delimiters:
        return text.startswith(start) & (F.length(rest) >= F.length(end)) & rest.endswith(end)
    mark = delimiters[0]
    # translate() maps every delimiter to the first one, scalar value by scalar value, so one instr() finds the first.
    flat = F.translate(rest, delimiters, mark * len(delimiters))
    position = F.instr(flat, mark)
    return text.startswith(start) & (position >= 2) & (F.substring(rest, position + 1, F.length(rest)) == end)


def _sign(number: Column) -> Column:
    return F.when(number.startswith("-") & (_digits(number) != ""), -1).otherwise(
        F.when(_digits(number) != "", 1).otherwise(0)
    )


def _digits(number: Column) -> Column:
    """The digits without sign and leading zeros; zero has none."""
    return F.regexp_replace(number, r"\A-?0*", "")


def count_holds(count: Column, operator: Operator, bound: Column) -> Column:
    """The test of Cardinality: a count against N, false where N is no integer."""
    return compare_integers(count.cast("string"), operator, bound)
