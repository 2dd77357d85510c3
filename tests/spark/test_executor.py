"""The Spark executor gives what the reference gives: the case suite, random programs, and records in a wide table."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from pyspark.sql import DataFrame, SparkSession

from executors import reference
from executors.cases import NAMES, Case, read_case
from executors.programs import Scenario, scenarios
from lace.datalog.language.formatting import format_fact
from lace.datalog.language.parser import parse_program
from lace.datalog.language.syntax import Fact, Predicate
from lace.datalog.language.validate import LOCAL_PROFILE, RAW_PROFILE, CheckedProgram, check_program
from lace.datalog.source import Row
from lace.errors import LaceError, LimitExceeded
from lace.facts.derive import derive_facts
from lace.limits import EngineLimits
from lace.records.model import ValidRecord
from lace.spark.engine.columns import compare_integers, compare_texts, text_shape
from lace.spark.engine.executor import SparkSettings, evaluate
from lace.spark.engine.joins import JoinChoice
from lace.spark.engine.pivot import stars_together
from lace.spark.engine.plans import Sized
from lace.spark.engine.relations import local_relation
from lace.spark.engine.stars import split
from lace.spark.source.rows import record_arrays
from lace.spark.source.schemas import WIDE, WrongSchema, arrow_schema
from spark.archives import make_records
from tries import tries

pytestmark = pytest.mark.spark

ON_THE_CLUSTER = SparkSettings(small_rows=0)  # nothing is handed to the embedded engine
FEW_AT_HOME = SparkSettings(small_rows=4)  # long relations on the cluster, the driver asks for what few rows meet


def relations(spark: SparkSession, facts: Iterable[Fact]) -> dict[Predicate, DataFrame]:
    rows: dict[Predicate, list[Row]] = {}
    for predicate, values in facts:
        rows.setdefault(predicate, []).append(values)
    return {predicate: local_relation(spark, predicate.arity, found).frame for predicate, found in rows.items()}


def run(
    spark: SparkSession, checked: CheckedProgram, facts: Iterable[Fact], limits: EngineLimits, how: SparkSettings
) -> dict[Predicate, set[Row]]:
    result = evaluate(checked, relations(spark, facts), spark=spark, limits=limits, settings=how)
    return {predicate: result.rows(predicate) for predicate in checked.derived}


def is_evaluated(case: Case) -> bool:
    """Cases about parsing and checking never reach an executor."""
    try:
        case.check()
    except LaceError:
        return False
    return not case.error


# A job on Spark takes its time however small it is: a run takes a share of the cases, LACE_SPARK_CASES=all every one
# (`make spark-cases`). The share is spread over all families, which stand side by side in the order of their names.
SHARE = 1 if os.environ.get("LACE_SPARK_CASES") == "all" else 12
EVALUATED = [name for name in NAMES if is_evaluated(read_case(name))][::SHARE]


@pytest.mark.clause("030-EVAL-01", "030-EVAL-04")
@pytest.mark.parametrize("name", EVALUATED)
def test_a_case_gives_its_expected_facts(spark: SparkSession, name: str) -> None:
    case = read_case(name)
    found = run(spark, case.check(), case.base_facts(), case.limits, ON_THE_CLUSTER)
    lines = {format_fact(Fact(predicate, row)) for predicate, rows in found.items() for row in rows}
    assert lines == case.expected


@pytest.mark.clause("030-EVAL-04", "030-EVAL-07")
@tries(6, least=3, suppress_health_check=list(HealthCheck))  # dozens of jobs each
@given(scenario=scenarios)
def test_random_programs_give_what_the_reference_gives(spark: SparkSession, scenario: Scenario) -> None:
    checked = check_program(scenario.program, RAW_PROFILE)
    expected = reference.evaluate(checked, scenario.facts)
    for how in (ON_THE_CLUSTER, SparkSettings(small_rows=1_000), FEW_AT_HOME):
        assert run(spark, checked, scenario.facts, EngineLimits(), how) == expected


def wide(spark: SparkSession, records: list[ValidRecord]) -> DataFrame:
    schema = arrow_schema(WIDE)
    columns = list(record_arrays(records, WIDE.names).values())
    return spark.createDataFrame(pa.table(columns, schema=schema), WIDE)


RECORD_PROGRAM = """
Sel(P) :- Have(P), Field(P,'Group',_,'u'), Field(P,'App',_,'ding'), Field(P,'Name',_,K), TextShape(K,'links/','','').
Blocked(V) :- Have(P), Field(P,'Group',_,'keys'), Field(P,'App',_,'blocked'), Field(P,'Name',_,V).
Member(P) :- Have(P), Field(P,'Signed-By',_,V), not Blocked(V).
Support(T) :- Have(P), RecordLink(P,'+Link',_,'evidence',T).
Closure(P) :- Sel(P).
Closure(Q) :- Closure(P), RecordLink(P,_,_,_,Q), Have(Q).
Tagged(P,T) :- Field(P,'X-Tag',I,T), IntCompare(I,'>=','0').
Two(P) :- Have(P), Cardinality(Field(P,'X-Tag',_,_),'>=','2').
Many(P) :- Have(P), Cardinality(Field(P,N,I,V),'>','7').
NoTag(P) :- Have(P), not Field(P,'X-Tag',_,_).
Name(N) :- Field(_,N,_,_).
Same(P,Q) :- BlobHash(P,H), BlobHash(Q,H), P != Q.
Inner(P,H) :- PlexHash(P,H).
Lone(P) :- Have(P), not Target(P).
Target(T) :- RecordLink(_,_,_,_,T).
Crowd(P) :- Field(P,'Type',_,'B'), Cardinality(Field(Q,'Group',_,'u'),'>','3').
Empty(P) :- Field(P,'Type',_,'B'), not Field(_,'Group',_,'nonesuch').
Dangling(T) :- RecordLink(P,'+Link',_,_,T), not Have(T).
Bare(P) :- RecordLink(P,'+Link',_,_,T), Cardinality(Field(T,'X-Tag',_,_),'<','1').
AnySeal() :- Field(P,'Type',_,'S').
Echo(P,N) :- Field(P,N,_,V), Field(P,N,_,W), V != W.
Length(P) :- Field(P,'Data-Length',_,N), IntCompare(N,'>','9').
Candidate(P,T) :- Have(P), Field(P,'TAI',_,T).
Before(P,Q) :- Candidate(P,T), Candidate(Q,T), LexCompare(Q,'>',P).
Before(P,Q) :- Candidate(P,TP), Candidate(Q,TQ), LexCompare(TQ,'>',TP).
Newest(P) :- Candidate(P,T), Cardinality(Before(P,Q),'<','5').
"""


@pytest.mark.clause("030-CARD-12")
def test_rules_over_records_give_what_the_reference_gives_over_their_facts(spark: SparkSession) -> None:
    records = make_records(40, seed=4)
    checked = check_program(parse_program(RECORD_PROGRAM.strip()), LOCAL_PROFILE)
    expected = reference.evaluate(checked, [fact for valid in records for fact in derive_facts(valid)])
    goals = sorted(checked.derived - {Predicate("Before", 2)})
    result = evaluate(checked, {}, spark=spark, records=wide(spark, records), goals=goals, settings=ON_THE_CLUSTER)
    assert {goal: result.rows(goal) for goal in goals} == {goal: expected[goal] for goal in goals}
    assert all(expected[goal] for goal in goals if goal.name not in ("Same", "Dangling"))


def physical_plan(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def test_what_one_record_decides_is_one_pass_without_a_shuffle(spark: SparkSession, tmp_path: object) -> None:
    program = """
O0(P) :- Have(P), Field(P,'Group',_,'u'), Field(P,'Name',_,K), TextShape(K,'links/','','').
O1(P) :- Have(P), Field(P,'App',_,'ding'), not Field(P,'X-Tag',_,'a').
Both(P) :- O0(P), O1(P).
"""
    wide(spark, make_records(40)).write.parquet(f"{tmp_path}/wide")
    checked = check_program(parse_program(program.strip()), LOCAL_PROFILE)
    both = Predicate("Both", 1)
    stored = spark.read.parquet(f"{tmp_path}/wide")
    result = evaluate(checked, {}, spark=spark, records=stored, goals=[both], settings=ON_THE_CLUSTER)
    plan = physical_plan(result.frame(both))
    assert "Exchange" not in plan, plan
    assert re.search(r"\bJoin\b", plan) is None, plan
    assert plan.count("Scan parquet") == 1, plan


def shuffled_rows(spark: SparkSession) -> int:
    """Rows that all stages so far have written for others to read."""
    context = spark.sparkContext
    context._jsc.sc().listenerBus().waitUntilEmpty()
    no_quantiles = context._gateway.new_array(context._jvm.double, 0)
    found = context._jsc.sc().statusStore().stageList(None, False, False, no_quantiles, None)
    return sum(found.apply(n).shuffleWriteRecords() for n in range(found.size()))


FEW_CHOOSE = """
Met(N) :- Wanted(N,_), Named(N,_).
Tied(N,K) :- Wanted(N,K), Named(N,_).
Found(K,A) :- Wanted(N,K), Named(N,A).
Both(K) :- Wanted(N,K), Named(N,_), Named(K,_).
"""


@pytest.mark.parametrize(("name", "shuffled"), [("Met/1", 100), ("Tied/2", 100), ("Found/2", 100), ("Both/1", 5_000)])
def test_few_rows_choose_among_many_before_these_are_brought_together(
    spark: SparkSession, name: str, shuffled: int
) -> None:
    """Many rows repeat in every task: to be told apart they would be sent around. A second test may do that once."""
    many = spark.range(4_000).selectExpr("concat('n', id % 2000) as c0", "if(id % 2 = 0, 'x', 'y') as c1").persist()
    many.count()
    rows = [("n7", "n8"), ("n7", "n9"), ("n1999", "none"), ("none", "n1"), ("n7", "n7")]
    given = {
        Predicate("Wanted", 2): local_relation(spark, 2, rows),
        Predicate("Named", 2): Sized(many.distinct(), repeating=many),
    }
    met = [row for row in rows if row[0] != "none"]
    expected: dict[str, set[Row]] = {
        "Met/1": {(row[0],) for row in met},
        "Tied/2": set(met),
        "Found/2": {(row[1], "y") for row in met},
        "Both/1": {("n8",), ("n9",), ("n7",)},
    }
    goal = Predicate(name[:-2], int(name[-1]))
    before = shuffled_rows(spark)
    checked = check_program(parse_program(FEW_CHOOSE.strip()), RAW_PROFILE)
    found = evaluate(checked, given, spark=spark, goals=[goal])
    assert found.rows(goal) == expected[name]
    assert shuffled_rows(spark) - before < shuffled
    many.unpersist()


def test_rows_that_turn_out_to_be_many_stay_on_the_cluster(spark: SparkSession) -> None:
    few, many = Predicate("Few", 1), Predicate("Many", 2)
    pairs = [("a", str(n % 300)) for n in range(600)] + [("b", str(n)) for n in range(40)]
    given = {few: local_relation(spark, 1, [("a",), ("b",)]), many: local_relation(spark, 2, pairs).frame}
    checked = check_program(parse_program("Met(X,Y) :- Few(X), Many(X,Y)."), RAW_PROFILE)
    met = Predicate("Met", 2)
    for most in (1, 339, 340, 10_000):
        result = evaluate(checked, given, spark=spark, settings=SparkSettings(lookup_rows=most))
        assert result.count(met) == 340
        assert result.rows(met) == set(pairs)
        assert (result.relations[met].values is None) == (most < 340)
        result.release()


HOSTILE = ("", "'", '"', "\\", "\\'", "a' or '1'='1", "null", "é", "\U0001f5a7", "a\nb", "%", "_", "${x}", "x\x00y")
NAMED_ROUNDS = {
    "T(X) :- Start(X).\nT(Y) :- T(X), E(X,Y).": "T/1",
    "T(X,X) :- Start(X).\nT(X,Z) :- T(X,Y), E(Y,Z).": "T/2",  # rows bring more than what they ask with
    "T(X,X) :- Start(X).\nT(Z,Y) :- T(X,X), E(X,Y), E(Z,X).": "T/2",  # only some of the rows ask
    "T(X,X) :- Start(X).\nT(Y,Z) :- T(X,Y), F(X,Y,Z).": "T/2",  # two columns ask together
    "T('é',X) :- Start(X).\nT(X,Y) :- T('é',X), E(X,Y).\nT('é',Y) :- T(X,Y), E(X,Y).": "T/2",
    "T(X) :- Start(X).\nT(Y) :- T(X), X != 'null', E(X,Y), not Stop(Y).": "T/1",
}


@pytest.mark.clause("030-EVAL-04")
@pytest.mark.parametrize("rules", NAMED_ROUNDS)
def test_few_rows_are_asked_for_by_their_values_whatever_these_are(spark: SparkSession, rules: str) -> None:
    """The longer relation stays on the cluster; the driver's rows stand in the plan, or are sent, or are too many."""
    ring = [*zip(HOSTILE, (*HOSTILE[1:], HOSTILE[0]), strict=True)]
    facts = [Fact(Predicate("Start", 1), ("",)), Fact(Predicate("Stop", 1), ("%",))]
    facts += [
        Fact(Predicate("E", 2), row) for row in [*ring, ("'", "é"), ("é", "'"), *((f"n{n}", "") for n in range(40))]
    ]
    facts += [Fact(Predicate("F", 3), (x, x, y)) for x, y in ring] + [Fact(Predicate("F", 3), ("", "'", '"'))]
    checked = check_program(parse_program(rules), RAW_PROFILE.with_base(fact.predicate for fact in facts))
    expected = reference.evaluate(checked, facts)
    goal = Predicate(NAMED_ROUNDS[rules][0], int(NAMED_ROUNDS[rules][-1]))
    assert len(expected[goal]) > 2
    for named in (0, 1, 64):
        how = SparkSettings(small_rows=30, joins=JoinChoice(named_rows=named))
        assert run(spark, checked, facts, EngineLimits(), how)[goal] == expected[goal]


def test_a_round_that_finds_few_rows_is_one_job_of_one_stage(spark: SparkSession) -> None:
    """Nothing is sent around for the one row that asks: neither shuffled nor broadcast by a job before."""
    edges = spark.range(5_000).selectExpr("concat('n', id) as a", "concat('n', id + 1) as b")
    given = {Predicate("Start", 1): local_relation(spark, 1, [("n4990",)]).frame, Predicate("E", 2): edges}
    checked = check_program(parse_program("T(X) :- Start(X).\nT(Y) :- T(X), E(X,Y)."), RAW_PROFILE)
    counts = []
    for named in (64, 0):
        before = jobs_done(spark)
        settings = SparkSettings(small_rows=1_000, joins=JoinChoice(named_rows=named))
        found = evaluate(checked, given, spark=spark, settings=settings)
        counts.append(jobs_done(spark) - before)
        assert found.count(Predicate("T", 1)) == 11
        assert len(found.round_seconds) == 11
        found.release()
    assert counts[1] - counts[0] == 11  # a broadcast less for every round


def jobs_done(spark: SparkSession) -> int:
    context = spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    jobs = context.statusStore().jobsList(None)  # the last thousand or so: old ones are forgotten, so none is counted
    return 1 + max((int(jobs.apply(place).jobId()) for place in {0, jobs.size() - 1} if jobs.size()), default=-1)


LOOKUPS = """
Group(G) :- Field(P,'Group',_,G), Field(P,'App',_,A), Chosen(A).
App(A) :- Field(P,'App',_,A), Wish(A).
Sealed(A) :- Field(_,'Type',_,'S'), Wish(A).
Never(A) :- Field(_,'Group',_,'nonesuch'), Wish(A).
Name(N) :- Field(P,'Name',_,N), not Wish(N).
Tag(T) :- Field(P,'X-Tag',_,T), not Wish(T).
Signer(V,G) :- Field(P,'Signed-By',_,V), Field(P,'Group',_,G), not Wish(V).
"""


@pytest.mark.parametrize("most", [1, 7, 10_000])
def test_lookups_that_one_pass_answers_are_those_of_passes_of_their_own(spark: SparkSession, most: int) -> None:
    """Few of them together, few alone but many together, many; with none, one and two columns."""
    records = make_records(60, seed=9)
    checked = check_program(
        parse_program(LOOKUPS.strip()), LOCAL_PROFILE.with_base([Predicate("Wish", 1), Predicate("Chosen", 1)])
    )
    extra = [Fact(Predicate("Wish", 1), ("ding",)), Fact(Predicate("Chosen", 1), ("ding",))]
    expected = reference.evaluate(checked, [*extra, *(fact for valid in records for fact in derive_facts(valid))])
    result = evaluate(
        checked,
        relations(spark, extra),
        spark=spark,
        records=wide(spark, records),
        settings=SparkSettings(lookup_rows=most),
    )
    assert {goal: result.rows(goal) for goal in checked.derived} == {goal: expected[goal] for goal in checked.derived}
    assert all(expected[goal] for goal in checked.derived if goal.name != "Never")
    result.release()


def test_several_lookups_are_one_scan_of_the_records(spark: SparkSession, tmp_path: object) -> None:
    wide(spark, make_records(40)).write.parquet(f"{tmp_path}/wide")
    stored = spark.read.parquet(f"{tmp_path}/wide")
    program = """
Sel(P) :- Field(P,'Name',_,N), Wanted(N), not Barred(N).
Wanted(N) :- Field(Q,'Group',_,'u'), Field(Q,'Name',_,N).
Barred(N) :- Field(Q,'App',_,'nonesuch'), Field(Q,'Name',_,N).
"""
    stars = split(parse_program(program.strip())).stars
    together = stars_together(stored, [star for star in stars if star.record not in star.outputs])
    assert together is not None
    assert len(together.stars) == 2
    plan = physical_plan(together.frame)
    assert plan.count("Scan parquet") == 1, plan
    names = {row[0] for row in stored.where("group = 'u' and name is not null").select("name").collect()}
    found = dict(together.apart(tuple(row) for row in together.frame.collect()))
    assert {star.predicate: set(rows) for star, rows in found.items()} == {
        together.stars[0].predicate: {(name,) for name in names},
        together.stars[1].predicate: set(),
    }
    assert stars_together(stored, together.stars[:1]) is None


def test_newest_n_is_a_rank_and_never_quadratic(spark: SparkSession) -> None:
    candidates = [(f"p{i:04d}", str(i % 50)) for i in range(400)]
    rules = """
Before(P,Q) :- Candidate(P,T), Candidate(Q,T), LexCompare(Q,'>',P).
Before(P,Q) :- Candidate(P,TP), Candidate(Q,TQ), LexCompare(TQ,'>',TP).
Newest(P) :- Candidate(P,T), Cardinality(Before(P,Q),'<','10').
"""
    checked = check_program(parse_program(rules.strip()), RAW_PROFILE)
    facts = [Fact(Predicate("Candidate", 2), row) for row in candidates]
    # As facts, Before would hold 79,800 rows: the limit shows that they are never made.
    limits = EngineLimits(max_derived_facts_per_predicate=1_000)
    newest = Predicate("Newest", 1)
    result = evaluate(
        checked, relations(spark, facts), spark=spark, goals=[newest], limits=limits, settings=ON_THE_CLUSTER
    )
    ordered = sorted(candidates, key=lambda row: (row[1].encode(), row[0].encode()), reverse=True)
    assert result.rows(newest) == {(name,) for name, _ in ordered[:10]}


def test_limits_are_kept_on_the_cluster(spark: SparkSession) -> None:
    edges = [Fact(Predicate("E", 2), (str(i), str(i + 1))) for i in range(6)]
    rules = "T(X,Y) :- E(X,Y).\nT(X,Z) :- T(X,Y), E(Y,Z)."
    checked = check_program(parse_program(rules), RAW_PROFILE)
    with pytest.raises(LimitExceeded, match="max_stratum_iterations"):
        run(spark, checked, edges, EngineLimits(max_stratum_iterations=3), ON_THE_CLUSTER)
    with pytest.raises(LimitExceeded, match="max_derived_facts_per_predicate"):
        run(spark, checked, edges, EngineLimits(max_derived_facts_per_predicate=9), ON_THE_CLUSTER)


def test_a_table_without_the_columns_of_records_is_refused_by_name(spark: SparkSession) -> None:
    checked = check_program(parse_program("A(P) :- Have(P)."), LOCAL_PROFILE)
    with pytest.raises(WrongSchema, match="column type must be string"):
        evaluate(checked, {}, spark=spark, records=spark.createDataFrame([("x",)], "hash string"))


BUILTIN_TEXTS = ["", "0", "-0", "007", "7", "-7", "-07", "10", "9" * 30, "-" + "9" * 30, "1" + "0" * 30, "x", "1.0",
                 "+1", " 1", "a/b", "a", "é", "a//b", "aé/b", "ab", "/b", "a/", "\U0001f5a7/b", "￿", "𐀀"]  # fmt: skip


@pytest.mark.clause("030-INT-05", "030-LEX-03")
def test_builtins_as_columns_agree_with_the_truth_for_builtins(spark: SparkSession) -> None:
    from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user reads

    from lace.datalog.language import comparisons
    from lace.datalog.language.syntax import OPERATORS

    pairs = [(a, b) for a in BUILTIN_TEXTS for b in BUILTIN_TEXTS]
    frame = spark.createDataFrame(pairs, "a string, b string")
    a, b = F.col("a"), F.col("b")
    columns = [compare_integers(a, op, b).alias(f"int{op}") for op in OPERATORS]
    columns += [compare_texts(a, op, b).alias(f"lex{op}") for op in OPERATORS]
    columns += [text_shape(a, b, d, F.lit("b")).alias(f"shape{d}") for d in ("", "/", "é/")]
    for row in frame.select("a", "b", *columns).collect():
        for op in OPERATORS:
            assert row[f"int{op}"] == comparisons.int_compare(row["a"], op, row["b"]), (row["a"], op, row["b"])
            assert row[f"lex{op}"] == comparisons.lex_compare(row["a"], op, row["b"]), (row["a"], op, row["b"])
        for d in ("", "/", "é/"):
            assert row[f"shape{d}"] == comparisons.text_shape(row["a"], row["b"], d, "b"), (row["a"], row["b"], d)
