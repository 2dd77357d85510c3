"""Repeats are found by their bytes: within what is read, and among what is known."""

from __future__ import annotations

import random

import pytest
from pyspark.sql import SparkSession

from lace.spark.jobs.ingest import repeats

pytestmark = pytest.mark.spark

Place = tuple[str, str, int]


def repeated(places: list[Place], known: list[str]) -> list[Place]:
    """What `repeats` shall find, said plainly."""
    met = set(known)
    found = []
    for place in sorted(places, key=lambda place: place[1:]):
        if place[0] in met:
            found.append(place)
        met.add(place[0])
    return sorted(found)


@pytest.mark.parametrize("few", [False, True], ids=["many places", "few places"])
@pytest.mark.parametrize("known", [None, [], ["a", "a", "c", "z"]], ids=["no archive", "an empty one", "some"])
def test_every_place_but_the_first_of_new_bytes_is_a_repeat(
    spark: SparkSession, known: list[str] | None, few: bool
) -> None:
    rng = random.Random(9)
    places = [(rng.choice("abcdefgh"), f"{rng.randrange(3)}.bundle", offset) for offset in range(0, 2_000, 70)]
    rng.shuffle(places)
    frame = spark.createDataFrame(places, "content string, bundle string, offset long")
    held = None if known is None else spark.createDataFrame([(content,) for content in known], "content string")
    found = repeats(frame, held, few=few).collect()
    assert sorted(map(tuple, found)) == repeated(places, known or [])
