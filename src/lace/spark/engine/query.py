"""Ask archives by rules on Spark: what `lace.query` is for one machine.

Rule: the rows are those of `lace.query`; only where the work happens differs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user reads

from lace.datalog.goals import column_names, only_output
from lace.datalog.language.annotations import read_annotated
from lace.datalog.language.limiting import stated_limits
from lace.datalog.language.parser import parse_atom
from lace.datalog.language.syntax import Atom, Constant, Fact, Predicate, Variable
from lace.datalog.language.validate import LOCAL_PROFILE, RAW_PROFILE, CheckedProgram, check_program
from lace.datalog.planning.demand import demand
from lace.datalog.source import Row
from lace.errors import InvalidInput
from lace.limits import EngineLimits
from lace.policy.rewrite import body_atoms
from lace.spark.engine.evaluated import EvaluatedFrames
from lace.spark.engine.executor import SparkEvaluation, SparkSettings, limits_on
from lace.spark.engine.executor import evaluate as run_checked
from lace.spark.engine.pivot import relation_columns
from lace.spark.engine.provenance import WholeEvaluation
from lace.spark.engine.relations import collect_rows, local_relation
from lace.spark.jobs.ingest import first_copies
from lace.spark.jobs.validate import judged, records
from lace.spark.source.source import raw_records
from lace.values import dataclass


@dataclass(frozen=True, slots=True)
class SparkAnswer:
    """The facts that a query asked for, as a frame with one column a term of the goal."""

    predicate: Predicate
    names: tuple[str, ...]
    frame: DataFrame

    def rows(self) -> list[Row]:
        """The facts as texts, sorted."""
        return sorted(collect_rows(self.frame, self.predicate.arity))


def evaluate(
    rules: str,
    relations: Mapping[str, DataFrame] | None = None,
    goal: str | None = None,
    *,
    records: DataFrame | None = None,
    limits: EngineLimits | None = None,
    settings: SparkSettings | None = None,
) -> EvaluatedFrames:
    """Evaluate rules over frames: `{"Edge": edges}` in, a frame for each predicate that the rules derive out.

    With a goal (`"Reach('a',X)"`) it is that one alone, and only what the goal asks for is derived. What comes back is
    a dictionary of frames; its `explain()` says how they were worked out, `derivations("Reach")` gives every rule and
    premises of every row as a frame, `why("Reach('a','c')")` the proof of one.

    A relation's columns are its terms in their order, whatever they are called; numbers become texts. `records` is a
    table of records as `spark.read.format("lace")` gives it: the facts of 020 are then those of its records.
    """
    frames = dict(relations or {})
    anyone = records if records is not None else next(iter(frames.values()), None)
    if anyone is None:
        raise InvalidInput("there is nothing to evaluate over: give relations, records or both", rule="evaluate-frames")
    bounds = limits or stated_limits(rules, base=limits_on(anyone.sparkSession))
    given = {Predicate(name, len(frame.columns)): frame for name, frame in frames.items()}
    profile = RAW_PROFILE if records is None else LOCAL_PROFILE
    read = read_annotated(rules, limits=bounds)
    checked = check_program(read.program, profile.with_base(given), bounds)
    _require_relations(checked, given)
    if goal is not None:
        answer, result = _asked(anyone.sparkSession, checked, given, records, goal, bounds, settings)
        shown = answer.frame.toDF(*answer.names) if answer.names else answer.frame
        return EvaluatedFrames({answer.predicate.name: shown}, result, None)
    spark = anyone.sparkSession
    result = run_checked(checked, given, spark=spark, records=records, limits=bounds, settings=settings)
    heads = {rule.head.predicate: rule.head for rule in reversed(checked.program.rules)}
    found = {
        predicate.name: result.frame(predicate).toDF(*column_names(head)) if head.terms else result.frame(predicate)
        for predicate, head in heads.items()
    }
    of = WholeEvaluation(
        spark=spark,
        checked=checked,
        given=given,
        records=records,
        found=result,
        limits=bounds,
        settings=settings or SparkSettings(),
        annotations=read.sidecar,
    )
    return EvaluatedFrames(found, result, of)


def _require_relations(checked: CheckedProgram, given: Mapping[Predicate, DataFrame]) -> None:
    """Raise InvalidInput if the rules read a relation that was not given: a misspelt one would be silently empty."""
    widths = {predicate.name: predicate.arity for predicate in given}
    known = set(given) | checked.profile.base | {rule.head.predicate for rule in checked.program.rules}
    for atom in body_atoms(checked.program.rules):
        name, arity = atom.predicate
        if atom.predicate not in known:
            found = (
                f"{name} with {widths[name]} columns" if name in widths else f"{', '.join(sorted(widths)) or 'none'}"
            )
            raise InvalidInput(
                f"the rules read {name} with {arity} terms", rule="evaluate-relation", found=f"relations given: {found}"
            )


def query_archive(
    spark: SparkSession,
    paths: Sequence[Path | str] | Path | str,
    rules: str,
    goal: str | None = None,
    *,
    name: str = "<rules>",
    limits: EngineLimits | None = None,
) -> SparkAnswer:
    """Evaluate rules over every valid record of some bundles, directories and stores."""
    bounds = limits or stated_limits(rules, name=name, base=limits_on(spark))
    given = [paths] if isinstance(paths, str | Path) else paths
    wide = records(judged(first_copies(raw_records(spark, list(given)))))
    checked = check_program(read_annotated(rules, name=name, limits=bounds).program, LOCAL_PROFILE, bounds)
    return _answer(spark, checked, {}, wide, goal, bounds, None)


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
    bounds = limits or stated_limits(rules, name=name, base=limits_on(spark))
    rows: dict[Predicate, list[Row]] = {}
    for predicate, values in facts:
        rows.setdefault(predicate, []).append(values)
    relations = {predicate: local_relation(spark, predicate.arity, found).frame for predicate, found in rows.items()}
    checked = check_program(
        read_annotated(rules, name=name, limits=bounds).program, RAW_PROFILE.with_base(rows), bounds
    )
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
    return _asked(spark, checked, relations, wide, goal, limits, settings)[0]


def _asked(
    spark: SparkSession,
    checked: CheckedProgram,
    relations: Mapping[Predicate, DataFrame],
    wide: DataFrame | None,
    goal: str | None,
    limits: EngineLimits,
    settings: SparkSettings | None,
) -> tuple[SparkAnswer, SparkEvaluation]:
    """An answer, and the evaluation it comes from."""
    atom = parse_atom(goal, limits=limits) if goal is not None else only_output(checked)
    standing, written = atom.predicate, checked.program
    if goal is not None and atom.predicate in checked.derived and any(isinstance(t, Constant) for t in atom.terms):
        # 030-EVAL-04: only what the goal asks for. Its values are a relation of a few rows, which every scan is joined
        # with first; without it a closure would be derived whole and filtered at the end.
        asked = demand(checked, [atom], given=relations)
        checked, standing = asked.checked, asked.answers[atom.predicate]
        seeds: dict[Predicate, list[Row]] = {}
        for predicate, values in asked.seeds:
            seeds.setdefault(predicate, []).append(values)
        given = {predicate: local_relation(spark, predicate.arity, rows).frame for predicate, rows in seeds.items()}
        relations = {**relations, **given}
    result = run_checked(
        checked,
        relations,
        spark=spark,
        records=wide,
        goals=[standing],
        limits=limits,
        settings=settings,
        written=written,
    )
    shown = _matching(result.frame(standing), atom) if goal is not None else result.frame(standing)
    return SparkAnswer(atom.predicate, column_names(atom), shown), result


def _matching(frame: DataFrame, goal: Atom) -> DataFrame:
    """The rows that a goal's constants and repeated variables admit."""
    first: dict[Variable, str] = {}
    for term, column in zip(goal.terms, relation_columns(goal.predicate.arity), strict=False):
        if isinstance(term, Constant):
            frame = frame.where(F.col(column) == F.lit(term.value))
        elif isinstance(term, Variable) and first.setdefault(term, column) != column:
            frame = frame.where(F.col(column) == F.col(first[term]))
    return frame
