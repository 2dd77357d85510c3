"""What tasks hand back adds up to what the set is, however its ids are spread over tasks and batches; without a JVM."""

from __future__ import annotations

import random
from functools import reduce

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from differences.sets import KEY, random_ids
from lace.differences.ids import Ids, ids_of_texts
from lace.differences.idset import set_of
from lace.differences.setview import SetView, measured_set
from lace.differences.sketch import no_symbols
from lace.differences.sums import nothing
from lace.differences.tree import UNKNOWN, tree_root
from lace.spark.peer import aggregates
from tries import tries

Task = list[pa.RecordBatch]


def spread(ids: Ids, rng: random.Random) -> list[Task]:
    """The ids in any order, cut into tasks and those into batches, some of them empty, some slices of longer ones."""
    texts = ids.texts()
    rng.shuffle(texts)
    tasks: list[Task] = [[] for _ in range(rng.randrange(1, 5))]
    while texts:
        cut = rng.randrange(1, len(texts) + 1)
        part, texts = texts[:cut], texts[cut:]
        whole = pa.record_batch([pa.array(["no id", *part], pa.string())], names=["hash"])
        rng.choice(tasks).append(whole.slice(1))
    tasks[0].append(pa.record_batch([pa.array([], pa.string())], names=["hash"]))
    return tasks


def sets() -> st.SearchStrategy[tuple[Ids, random.Random]]:
    return st.tuples(st.integers(0, 400), st.integers(0, 10**6)).map(
        lambda given_: (random_ids(*given_), random.Random(given_[1]))
    )


@pytest.mark.clause("070-LIN-01", "070-SUM-01", "070-EST-01")
@tries(25)
@given(sets())
def test_measures_of_tasks_add_up(given_: tuple[Ids, random.Random]) -> None:
    ids, rng = given_
    total = nothing()
    for task in spread(ids, rng):
        (row,) = aggregates.measure_task(KEY, task)
        total = total + np.frombuffer(row["part"][0].as_py(), np.uint64)
    assert (total == measured_set(set_of(ids), KEY)).all()


@pytest.mark.clause("070-LIN-01", "070-SKETCH-01", "070-SKETCH-02")
@tries(25)
@given(sets(), st.integers(0, 60), st.integers(1, 90))
def test_symbols_of_tasks_add_up(given_: tuple[Ids, random.Random], start: int, count: int) -> None:
    ids, rng = given_
    parts = [
        aggregates.symbols_of_bytes(
            next(aggregates.sketch_task(KEY, start, start + count, task))["part"][0].as_py(), count
        )
        for task in spread(ids, rng)
    ]
    found, wanted = (
        reduce(aggregates.plus, parts, no_symbols(count)),
        SetView(set_of(ids), KEY).symbols(start, start + count),
    )
    assert all((ours == theirs).all() for ours, theirs in zip(found, wanted, strict=True))


@pytest.mark.clause("070-END-03")
@tries(25)
@given(sets(), st.integers(0, 50))
def test_short_ids_name_the_ids_of_every_task(given_: tuple[Ids, random.Random], count: int) -> None:
    ids, rng = given_
    chosen = sorted(rng.sample(ids.texts(), min(count, len(ids))))
    short = np.sort(aggregates.keyed_ids(ids_of_texts(chosen), KEY).short)
    if not len(short):
        return
    found = [
        record
        for task in spread(ids, rng)
        for batch in aggregates.name_task(KEY, short, task)
        for record in batch["hash"].to_pylist()
    ]
    assert sorted(found) == chosen


@pytest.mark.clause("070-ROOT-01")
@tries(25)
@given(sets())
def test_a_root_of_parts_that_were_digested_apart_is_that_of_the_set(given_: tuple[Ids, random.Random]) -> None:
    ids, rng = given_
    parts: dict[str, list[str]] = {}
    texts = ids.texts()
    rng.shuffle(texts)
    for text in texts:
        parts.setdefault(text[2:4], []).append(text)
    digests = {}
    for prefix, held in parts.items():
        row = aggregates.part_task(pa.table({"prefix": [prefix] * len(held), "hash": held}))
        digests[row["prefix"][0].as_py()] = row["digest"][0].as_py()
    assert tree_root(digests) == UNKNOWN.of(set_of(ids)).root()
