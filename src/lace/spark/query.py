"""Ask archives by rules on Spark: what `lace.query` is for one machine.

Rule: the rows are those of `lace.query`; only where the work happens differs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user reads

from lace.datalog.annotations import read_annotated
from lace.datalog.parser import parse_atom
from lace.datalog.source import Row
from lace.datalog.syntax import Atom, Constant, Fact, Predicate, Variable
from lace.datalog.validate import LOCAL_PROFILE, RAW_PROFILE, CheckedProgram, check_program
from lace.limits import EngineLimits
from lace.porcelain.query import column_names, only_output
from lace.spark.executor import SparkSettings, evaluate
from lace.spark.jobs.ingest import first_copies
from lace.spark.jobs.validate import judged, records
from lace.spark.pivot import relation_columns
from lace.spark.relations import collect_rows, local_relation
from lace.spark.source import raw_records


@dataclass(frozen=True, slots=True)
class SparkAnswer:
    """The facts that a query asked for, as a frame with one column a term of the goal."""

    predicate: Predicate
    names: tuple[str, ...]
    frame: DataFrame

    def rows(self) -> list[Row]:
        """The facts as texts, sorted."""
        return sorted(collect_rows(self.frame, self.predicate.arity))


def query_archive(
    spark: SparkSession,
    paths: Sequence[Path],
    rules: str,
    goal: str | None = None,
    *,
    name: str = "<rules>",
    limits: EngineLimits | None = None,
    settings: SparkSettings | None = None,
) -> SparkAnswer:
    """Evaluate rules over every valid record of some bundles, directories and stores."""
    bounds = limits or EngineLimits()
    wide = records(judged(first_copies(raw_records(spark, paths))))
    checked = check_program(read_annotated(rules, name=name).program, LOCAL_PROFILE, bounds)
    return _answer(spark, checked, {}, wide, goal, bounds, settings)


def query_facts(
    spark: SparkSession,
    facts: Iterable[Fact],
    rules: str,
    goal: str | None = None,
    *,
    name: str = "<rules>",
    limits: EngineLimits | None = None,
    settings: SparkSettings | None = None,
) -> SparkAnswer:
    """Evaluate rules over facts in memory."""
    bounds = limits or EngineLimits()
    rows: dict[Predicate, list[Row]] = {}
    for predicate, values in facts:
        rows.setdefault(predicate, []).append(values)
    relations = {predicate: local_relation(spark, predicate.arity, found).frame for predicate, found in rows.items()}
    checked = check_program(read_annotated(rules, name=name).program, RAW_PROFILE.with_base(rows), bounds)
    return _answer(spark, checked, relations, None, goal, bounds, settings)


def _answer(
    spark: SparkSession,
    checked: CheckedProgram,
    relations: dict[Predicate, DataFrame],
    wide: DataFrame | None,
    goal: str | None,
    limits: EngineLimits,
    settings: SparkSettings | None,
) -> SparkAnswer:
    atom = parse_atom(goal, limits=limits) if goal is not None else only_output(checked)
    result = evaluate(
        checked, relations, spark=spark, records=wide, goals=[atom.predicate], limits=limits, settings=settings
    )
    shown = _matching(result.frame(atom.predicate), atom) if goal is not None else result.frame(atom.predicate)
    return SparkAnswer(atom.predicate, column_names(atom), shown)


def _matching(frame: DataFrame, goal: Atom) -> DataFrame:
    """The rows that a goal's constants and repeated variables admit."""
    first: dict[Variable, str] = {}
    for term, column in zip(goal.terms, relation_columns(goal.predicate.arity), strict=False):
        if isinstance(term, Constant):
            frame = frame.where(F.col(column) == F.lit(term.value))
        elif isinstance(term, Variable) and first.setdefault(term, column) != column:
            frame = frame.where(F.col(column) == F.col(first[term]))
    return frame
