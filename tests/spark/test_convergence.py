"""Archives against the machine: what reconcile names is what an interlace moves; and thousands of tiny files."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lace.policy.exposure import expose_all
from lace.policy.select import select_all
from lace.records.model import Blob
from lace.records.validate import validate
from lace.records.write import encode_record
from lace.runtime.local.local import exchange
from lace.runtime.local.party import Party, local_terms
from lace.spark.pipeline import Pipeline, PipelineSettings
from lace.spark.source.source import raw_records
from lace.store import open_store
from spark.archives import make_records

pytestmark = pytest.mark.spark


def missing(spark: SparkSession, tmp_path: Path, output: str) -> dict[str, set[str]]:
    """What the pipeline says that each of two stores lacks."""
    settings = PipelineSettings(
        output=tmp_path / output, inputs=[tmp_path / "west.lace"], archives={"east": tmp_path / "east.lace"}
    )
    pipeline = Pipeline(spark, settings, lambda *_: None)
    done = pipeline.run(["ingest", "validate", "reconcile"])
    rows = pipeline.table("missing").collect()
    found = {name: {row["hash"] for row in rows if row["archive"] == name} for name in ("here", "east")}
    assert done.steps["reconcile"].counts == {name: len(hashes) for name, hashes in found.items()}
    return found


def test_reconcile_names_exactly_what_an_interlace_then_moves(spark: SparkSession, tmp_path: Path) -> None:
    records = make_records(50, seed=31)
    for name, held in (("west", records[:30]), ("east", records[20:])):
        with open_store(tmp_path / f"{name}.lace", create=True) as store:
            store.put(held)
    before = missing(spark, tmp_path, "before")
    with open_store(tmp_path / "west.lace") as west, open_store(tmp_path / "east.lace") as east:
        parties = [Party(store=store, terms=local_terms(select_all(), (expose_all(),))) for store in (west, east)]
        to_west, to_east = exchange(*parties)
    assert before == {"here": set(to_west.received_hashes), "east": set(to_east.received_hashes)}
    assert {name: len(found) for name, found in before.items()} == {"here": 20, "east": 20}
    assert missing(spark, tmp_path, "after") == {"here": set(), "east": set()}


def test_thousands_of_tiny_files_are_a_few_tasks_and_nothing_is_lost(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    good, damaged = set(), {}
    for number in range(2000):
        stored = bytearray(encode_record(Blob(b"record %d" % number)))
        path = folder / f"{number:04}.bundle"
        if number % 40 == 0:
            stored.clear()
        elif number % 40 == 1:
            stored[-1] ^= 1
        elif number % 40 == 2:
            del stored[-1:]
        elif number % 40 == 3:
            stored[:] = b"no bundle, number %d" % number
        else:
            good.add(str(validate(bytes(stored)).hash))
        if 0 < number % 40 < 4:
            damaged[str(path)] = bytes(stored)
        path.write_bytes(stored)
    assert raw_records(spark, [folder]).rdd.getNumPartitions() <= 40
    pipeline = Pipeline(spark, PipelineSettings(output=tmp_path / "out", inputs=[folder]), lambda *_: None)
    pipeline.run(["ingest", "validate"])
    assert {row["hash"] for row in pipeline.table("records").collect()} == good
    quarantined = pipeline.table("quarantine").collect()
    assert {row["bundle"]: bytes(row["stored"]) for row in quarantined} == damaged
    assert len(quarantined) == len(damaged)
    assert all(row["rule"] and row["reason"] for row in quarantined)
