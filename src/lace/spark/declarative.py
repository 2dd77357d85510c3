"""A project for Spark Declarative Pipelines: ingest, validate, facts, tips.

Rule: what is written is a project of the user's own: plain files to read and change. It uses the public format `lace`
and the functions of `lace.spark.jobs`.
"""

from __future__ import annotations

from pathlib import Path

from lace.errors import InvalidInput

SPEC = "spark-pipeline.yml"
TRANSFORMATIONS = "transformations/lace_tables.py"

_SPEC = """name: {name}
storage: {storage}
libraries:
  - glob:
      include: transformations/**
"""

_TABLES = '''"""Records from an inbox: judged, refused ones apart, their facts, and the tip of each coordinate.

Run with `spark-pipelines run` in the folder above. Move finished bundles into the inbox: each is read once.
"""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lace.spark.jobs.facts import field_facts, link_facts
from lace.spark.jobs.tips import tips as tip_rows
from lace.spark.source.schemas import WIDE

INBOX = {inbox!r}
COLUMNS = [*WIDE.names, "stored"]
spark = SparkSession.active()


@dp.table(comment="Every stored record that came, judged: _corrupt_record says why one is none.")
def judged() -> DataFrame:
    return spark.readStream.format("lace").option("stored", "true").load(INBOX)


@dp.table(comment="Valid records, one row each, however many bundles brought them.")
def records() -> DataFrame:
    # Which hashes were seen is the state of this stream, on the executors: some 0.1 kB a record.
    valid = spark.readStream.table("judged").where("_corrupt_record is null").select(*COLUMNS)
    return valid.dropDuplicates(["hash"])


@dp.table(comment="What is no record, with its bytes and the reason; equal bytes once.")
def quarantine() -> DataFrame:
    refused = spark.readStream.table("judged").where("_corrupt_record is not null")
    named = refused.select("hash", "_corrupt_record", "stored", F.sha2("stored", 256).alias("digest"))
    return named.dropDuplicates(["digest"])


@dp.materialized_view(comment="Field(P,Name,Index,Value).")
def fields() -> DataFrame:
    return field_facts(spark.read.table("records"))


@dp.materialized_view(comment="RecordLink(P,Name,Index,Data,Target).")
def record_links() -> DataFrame:
    return link_facts(spark.read.table("records"))


@dp.materialized_view(comment="The tip of each coordinate, as `lace get` finds it, and who else has written there.")
def tips() -> DataFrame:
    return tip_rows(spark.read.table("records"))
'''


def write_project(folder: Path, inbox: Path) -> list[Path]:
    """Write the files of a new project; those of one that is there are never replaced."""
    if (folder / SPEC).exists():
        raise InvalidInput("there is a pipeline project already", rule="pipeline-exists", place=str(folder / SPEC))
    storage = (folder / "storage").absolute()
    storage.mkdir(parents=True, exist_ok=True)
    made = [folder / SPEC, folder / TRANSFORMATIONS]
    made[1].parent.mkdir(parents=True, exist_ok=True)
    made[0].write_text(_SPEC.format(name="lace", storage=storage.as_uri()), encoding="utf-8")
    made[1].write_text(_TABLES.replace("{inbox!r}", repr(str(inbox.absolute()))), encoding="utf-8")
    return made
