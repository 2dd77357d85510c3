"""Archives of records: added, evaluated, listed, published, reconciled and served, by this process or on Spark.

Rule: this is the only package that imports pyspark; nothing outside it needs a JVM.

Words of this floor:

    archive      tables of records under one address, and the log that says which files they are
    pipeline     the steps of `lace pipeline`, over an archive
    step         what brings a table up to date: add, select, list, publish, facts, reconcile, report
    executor     who carries a step out: `InProcess` or `OnSpark` (`archive.executors` decides)
    batch        what one addition brought
    mark         a name for everything that a result depends on
    wide table   one row a record, with headers and links as lists: what rules are evaluated over
    star         what a rule asks of one record, read from its row in one pass
    relation     what rules derive, as a frame with columns c0, c1, …
    listing      what a peer may have or says it has, one advertisement a record
    source       the format `lace` of Spark: bundles and stores read, streamed and written
    peer         an archive that exchanges like a lace

What never happens here: a file of a table is changed; a reader sees a row that no commit names; a record is believed
that was not judged; a JVM starts for what this process does sooner.

    from lace.spark import spark_session, evaluate

    spark = spark_session()
    records = spark.read.format("lace").load("archive/")
"""

from __future__ import annotations

from importlib import import_module

from lace.errors import naming_extras

_PUBLIC = {
    "ArchiveThresholds": "lace.thresholds",
    "Pipeline": "lace.spark.pipeline",
    "PipelineSettings": "lace.spark.pipeline",
    "SparkSettings": "lace.spark.engine.executor",
    "evaluate": "lace.spark.engine.query",
    "query_archive": "lace.spark.engine.query",
    "query_facts": "lace.spark.engine.query",
    "register": "lace.spark.source.source",
    "spark_session": "lace.spark.session.session",
}
__all__ = sorted(_PUBLIC)


def __getattr__(name: str) -> object:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with naming_extras():
        return getattr(import_module(_PUBLIC[name]), name)
