"""`lace.spark.evaluate`: rules as text over frames, as people write them in a notebook."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import cast

import pytest
from pyspark.sql import SparkSession

import lace.spark
from engine.goals import goals_at_every_place, random_world
from executors import reference
from lace.datalog import engine
from lace.datalog.language.annotations import read_annotated
from lace.datalog.language.formatting import format_atom, format_program
from lace.datalog.language.parser import parse_atom
from lace.datalog.language.syntax import Constant, Fact, Predicate
from lace.datalog.language.validate import RAW_PROFILE, check_program
from lace.errors import InvalidInput, InvalidLacegram, LimitExceeded, NotFound
from lace.limits import EngineLimits
from lace.spark.engine.executor import SparkSettings, limits_on
from lace.spark.engine.query import query_facts
from spark.archives import make_records, write_bundle

pytestmark = pytest.mark.spark


def test_relations_by_name_and_answers_named_by_their_variables(spark: SparkSession) -> None:
    edges = spark.createDataFrame([(1, 2), (2, 3)], "here int, there int")  # numbers are texts to a rule
    found = lace.spark.evaluate(
        "Reach(From,To) :- Edge(From,To).\n"
        "Reach(From,To) :- Reach(From,Via), Edge(Via,To).\n"
        "Closed() :- Reach(X,X).\n"
        "Open() :- not Closed().\n",
        {"Edge": edges},
    )
    assert found["Reach"].columns == ["From", "To"]
    assert sorted(map(tuple, found["Reach"].collect())) == [("1", "2"), ("1", "3"), ("2", "3")]
    assert (found["Closed"].count(), found["Open"].count()) == (0, 1)


LINKS = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")]


def test_a_goal_alone_is_derived_and_how_is_said(spark: SparkSession) -> None:
    edges = spark.createDataFrame([*LINKS, ("x", "y")], "here string, there string")
    rules = "Reach(X,Y) :- Edge(X,Y).\nReach(X,Z) :- Reach(X,Y), Edge(Y,Z).\n"
    found = lace.spark.evaluate(rules, {"Edge": edges}, "Reach('x',Where)")
    assert list(found) == ["Reach"]
    assert [tuple(row) for row in found["Reach"].collect()] == [("x", "y")]
    assert "Reach" in found.explain()


def test_records_and_a_relation_of_ones_own(spark: SparkSession, tmp_path: Path) -> None:
    write_bundle(tmp_path / "a.bundle", make_records(40, seed=3))
    records = spark.read.format("lace").load(str(tmp_path))
    groups = spark.createDataFrame([("u",)], "name string")
    found = lace.spark.evaluate("Chosen(P) :- Field(P,'Group',_,G), Wanted(G).", {"Wanted": groups}, records=records)
    expected = {row["hash"] for row in records.where("group = 'u'").collect()}
    assert {row["P"] for row in found["Chosen"].collect()} == expected != set()


def test_what_cannot_be_evaluated_says_why(spark: SparkSession) -> None:
    with pytest.raises(InvalidInput, match="give relations, records or both"):
        lace.spark.evaluate("A(X) :- B(X).")
    one = spark.createDataFrame([("x",)], "c string")
    with pytest.raises(InvalidInput, match=r"the rules read B with 2 terms .*B with 1 columns"):
        lace.spark.evaluate("A(X) :- B(X,_).", {"B": one})
    with pytest.raises(InvalidInput, match=r"the rules read C with 1 terms .*B"):
        lace.spark.evaluate("A(X) :- B(X), not C(X).", {"B": one})
    with pytest.raises(InvalidLacegram, match="X"):
        lace.spark.evaluate("A(X) :- not B(X).", {"B": one})


SAFE = (
    "Reach(X,Y) :- Edge(X,Y).\nReach(X,Z) :- Reach(X,Y), Edge(Y,Z).\nSafe(X) :- Edge(X,_), not Blocked(X,'it\\'s').\n"
)


@pytest.mark.parametrize("settings", [None, SparkSettings(small_rows=0)], ids=["as shipped", "all on the cluster"])
def test_every_derivation_is_a_row_with_its_rule_and_premises(
    spark: SparkSession, settings: SparkSettings | None
) -> None:
    edges = spark.createDataFrame([("a", "b"), ("b", "c"), ("a", "c")], "here string, there string")
    blocked = spark.createDataFrame([("a", "it's")], "who string, how string")
    found = lace.spark.evaluate(SAFE, {"Edge": edges, "Blocked": blocked}, settings=settings)
    direct, further = "Reach(X,Y) :- Edge(X,Y).", "Reach(X,Z) :- Reach(X,Y), Edge(Y,Z)."
    rows = found.derivations("Reach")
    assert rows.columns == ["X", "Y", "rule", "premises"]
    assert sorted(map(tuple, rows.collect())) == [
        ("a", "b", direct, ["Edge('a','b')"]),
        ("a", "c", direct, ["Edge('a','c')"]),
        ("a", "c", further, ["Reach('a','b')", "Edge('b','c')"]),
        ("b", "c", direct, ["Edge('b','c')"]),
    ]
    (safe,) = found.derivations("Safe").collect()
    assert (safe["X"], safe["premises"]) == ("b", ["Edge('b','c')", "not Blocked('b','it\\'s')"])
    assert str(found.why("Reach('a','c')")).splitlines()[0] == "Reach('a','c')"
    assert "└─ Edge('a','c')  (base fact)" in str(found.why("Reach('a','c')"))
    absent = found.why("Safe('a')")
    assert not absent.holds
    assert "Blocked('a','it\\'s')" in str(absent)


@pytest.mark.parametrize("settings", [None, SparkSettings(small_rows=0)], ids=["as shipped", "all on the cluster"])
def test_a_proof_never_stands_on_itself(spark: SparkSession, settings: SparkSettings | None) -> None:
    edges = spark.createDataFrame(LINKS, "here string, there string")
    rules = "Reach(X,Z) :- Reach(X,Y), Edge(Y,Z).\nReach(X,Y) :- Edge(X,Y).\n"
    found = lace.spark.evaluate(rules, {"Edge": edges}, settings=settings)
    text = str(found.why("Reach('a',X)"))  # a is on a circle: the first fact in text order is Reach('a','a')
    assert text.splitlines()[0] == "Reach('a','a')"
    assert [text.count(f"Edge('{here}','{there}')  (base fact)") for here, there in LINKS] == [1, 1, 1, 0]


def test_records_that_were_chosen_say_by_which_of_their_facts(spark: SparkSession, tmp_path: Path) -> None:
    valid = make_records(12, seed=3)
    write_bundle(tmp_path / "a.bundle", valid)
    records = spark.read.format("lace").load(str(tmp_path))
    found = lace.spark.evaluate("Chosen(P) :- Have(P), Field(P,'Group',_,'u').", records=records)
    expected = sorted(row["hash"] for row in records.where("group = 'u'").collect())
    rows = {row["P"]: row["premises"] for row in found.derivations("Chosen").collect()}
    assert sorted(rows) == expected != []
    for record, premises in rows.items():
        assert premises == [f"Have('{record}')", f"Field('{record}','Group','0','u')"]
    assert found.why(f"Chosen('{expected[0]}')").holds


def test_why_of_what_was_not_evaluated_whole_says_what_to_do(spark: SparkSession) -> None:
    edges = spark.createDataFrame(LINKS, "here string, there string")
    asked = lace.spark.evaluate(CLOSURE, {"Edge": edges}, "Reach('a',X)")
    with pytest.raises(InvalidInput, match="evaluate without `goal`"):
        asked.why("Reach('a','b')")
    with pytest.raises(NotFound, match="the rules derive no Raech: they derive Reach"):
        lace.spark.evaluate(CLOSURE, {"Edge": edges}).derivations("Raech")


CLOSURE = "Reach(X,Y) :- Edge(X,Y).\nReach(X,Z) :- Edge(X,Y), Reach(Y,Z).\n"
EXISTS = "D(X,X) :- F(X), F(W), LexCompare(W,'<=',X).\n"
OLDER = (
    "Older(N,T) :- Named(P,N), Dated(P,T), Dated(_,U), LexCompare(U,'>',T).\n"
    "Newest(N,T) :- Named(P,N), Dated(P,T), not Older(N,T).\n"
)
APART = "Reach(X,Y) :- Edge(X,Y).\nReach(X,Z) :- Reach(X,Y), Reach(Y,Z).\nFar(X,Y) :- Reach(X,Y), not Edge(X,Y).\n"


@pytest.mark.clause("030-EVAL-04")
@pytest.mark.parametrize("settings", [None, SparkSettings(small_rows=0)], ids=["as shipped", "all on the cluster"])
@pytest.mark.parametrize(
    ("rules", "goal"),
    [
        (CLOSURE, "Reach('a0',X)"),
        (CLOSURE, "Reach(X,'a3')"),
        (CLOSURE, "Reach('a1','a1')"),
        (APART, "Far('a0',X)"),
        (EXISTS, "D('b',B)"),
        (EXISTS, "D(A,'b')"),
        (OLDER, "Older('n0',T)"),
        (OLDER, "Newest('n3',T)"),
        ("Twice(NAME,Name) :- Named(P,NAME), Named(P,Name), Edge(Edge,_), Edge(_,EDGE).\n", "Twice('n0',X)"),
    ],
)
def test_a_goal_with_constants_is_answered_as_the_embedded_engine_does(
    spark: SparkSession, rules: str, goal: str, settings: SparkSettings | None
) -> None:
    edges = [(f"{part}{n}", f"{part}{n + 1}") for part in "ab" for n in range(4)]
    facts = [Fact(Predicate("Edge", 2), edge) for edge in edges]
    facts += [Fact(Predicate("F", 1), (value,)) for value in "abc"]
    facts += [Fact(Predicate("Named", 2), (f"p{n}", f"n{n}")) for n in range(4)]
    facts += [Fact(Predicate("Dated", 2), (f"p{n}", f"{time}")) for n in range(4) for time in (n, n + 1)]
    answer = query_facts(spark, facts, rules, goal, settings=settings)
    checked = check_program(read_annotated(rules, name="t").program, RAW_PROFILE.with_base(f.predicate for f in facts))
    atom = parse_atom(goal)
    whole = engine.evaluate(checked, facts).rows(atom.predicate)
    constants = {place: term.value for place, term in enumerate(atom.terms) if isinstance(term, Constant)}
    assert answer.rows() == sorted(row for row in whole if all(row[at] == text for at, text in constants.items()))


def test_what_a_goal_does_not_ask_for_is_not_derived(spark: SparkSession) -> None:
    """The whole closure is over the limit of facts; the goal's share of it is not."""
    edges = [(f"{part}{n}", f"{part}{n + 1}") for part in "abcdefgh" for n in range(5)]
    facts = [Fact(Predicate("Edge", 2), edge) for edge in edges]
    limits = EngineLimits(max_derived_facts_per_predicate=40)
    settings = SparkSettings(small_rows=0)
    with pytest.raises(LimitExceeded):
        query_facts(spark, facts, CLOSURE, "Reach(X,Y)", limits=limits, settings=settings)
    found = query_facts(spark, facts, CLOSURE, "Reach('c2',X)", limits=limits, settings=settings)
    assert found.rows() == [("c2", "c3"), ("c2", "c4"), ("c2", "c5")]


def test_what_few_rows_derive_too_much_of_for_the_driver_is_derived_on_the_cluster(spark: SparkSession) -> None:
    edges = spark.createDataFrame([(n, n + 1) for n in range(8)], "here int, there int")
    found = lace.spark.evaluate(CLOSURE, {"Edge": edges}, settings=SparkSettings(driver_rows=20))
    assert found["Reach"].count() == 36
    assert "on the cluster, a loop" in found.explain()
    few = lace.spark.evaluate(CLOSURE, {"Edge": edges}, settings=SparkSettings(driver_rows=36))
    assert "on the driver" in few.explain()
    with pytest.raises(LimitExceeded, match="max_derived_facts_per_predicate = 35"):
        lace.spark.evaluate(CLOSURE, {"Edge": edges}, limits=EngineLimits(max_derived_facts_per_predicate=35))


def test_a_cluster_derives_as_much_as_its_cores_hold(spark: SparkSession) -> None:
    class Cluster:
        """A session of a cluster of 1,600 cores, as far as limits ask it."""

        class sparkContext:  # noqa: N801 - Spark's name
            defaultParallelism = 1600  # noqa: N815

    assert limits_on(spark).max_derived_facts_per_predicate == 1 << 26  # of one machine: two cores hold less
    assert limits_on(cast(SparkSession, Cluster())).max_derived_facts_per_predicate == 1600 << 24


def test_rules_are_read_under_the_limits_that_are_said(spark: SparkSession) -> None:
    names = ",".join(f"X{n}" for n in range(9))
    wide = {"Row": spark.createDataFrame([tuple(range(9))], ", ".join(f"c{n} int" for n in range(9)))}
    rules = f"Wide({names}) :- Row({names})."
    with pytest.raises(LimitExceeded, match="max_tuple_arity = 8"):
        lace.spark.evaluate(rules, wide)
    assert lace.spark.evaluate(rules, wide, limits=EngineLimits(max_tuple_arity=9))["Wide"].count() == 1
    stated = f'#:json {{"limits": {{"max_tuple_arity": 9}}}}\n{rules}'
    assert lace.spark.evaluate(stated, wide)["Wide"].count() == 1


@pytest.mark.clause("030-EVAL-04")
@pytest.mark.parametrize("settings", [None, SparkSettings(small_rows=0)], ids=["as shipped", "all on the cluster"])
@pytest.mark.parametrize("seed", range(4))
def test_goals_of_generated_programs_choose_their_facts(
    spark: SparkSession, seed: int, settings: SparkSettings | None
) -> None:
    random = Random(seed)
    world = random_world(random)
    checked = check_program(world.program, RAW_PROFILE)
    predicate, rows = random.choice(list(reference.evaluate(checked, world.facts).items()))
    goal = random.choice(list(goals_at_every_place(random, predicate, rows))[1:])
    answer = query_facts(spark, world.facts, format_program(world.program), format_atom(goal), settings=settings)
    assert answer.rows() == sorted(row for row in rows if reference.match(goal, row, {}) is not None), (goal, world)


def test_names_that_a_rewriting_would_choose_stay_with_who_wrote_them(spark: SparkSession, tmp_path: Path) -> None:
    write_bundle(tmp_path / "a.bundle", make_records(40, seed=3))
    records = spark.read.format("lace").load(str(tmp_path))
    taken = spark.createDataFrame([("u",)], "name string")
    rules = "_star1(P) :- Field(P,'Group',_,G), _star0(G).\nChosen(P) :- _star1(P), not Field(P,'Group',_,'x')."
    found = lace.spark.evaluate(rules, {"_star0": taken}, records=records)
    expected = {row["hash"] for row in records.where("group = 'u'").collect()}
    assert {row["P"] for row in found["Chosen"].collect()} == expected != set()


@pytest.mark.parametrize("settings", [None, SparkSettings(small_rows=0)], ids=["as shipped", "all on the cluster"])
def test_a_goal_that_derives_too_much_names_the_predicate_that_was_written(
    spark: SparkSession, settings: SparkSettings | None
) -> None:
    facts = [Fact(Predicate("F", 1), (f"{n}",)) for n in range(20)]
    limits = EngineLimits(max_derived_facts_per_predicate=10)
    with pytest.raises(LimitExceeded) as error:
        query_facts(spark, facts, "Pair(X,Y) :- F(X), F(Y).\n", "Pair('1',Y)", limits=limits, settings=settings)
    assert "Pair" in str(error.value)
    assert "?" not in str(error.value)
