"""`lace.spark.evaluate`: rules as text over frames, as people write them in a notebook."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import lace.spark
from lace.errors import InvalidInput, InvalidLacegram
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
