"""The data pipeline: archives of records validated, turned into facts, evaluated and reconciled on Spark.

Rule: this is the only package that imports pyspark; nothing outside it needs a JVM.

    from lace.spark import spark_session, evaluate

    spark = spark_session()
    records = spark.read.format("lace").load("archive/")
"""

from __future__ import annotations

from importlib import import_module

from lace.errors import naming_extras

_PUBLIC = {
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
