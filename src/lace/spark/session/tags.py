"""Tags on what a thread runs on the cluster, by which it is interrupted from another thread.

Rule: a session's own tags do not reach jobs that it hands to a thread of the JVM's, as it does for every result that
comes by Arrow; those of its context do. A remote session has no context, and its own tags reach everything.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _context(spark: SparkSession) -> Any:
    return getattr(spark, "sparkContext", None)


def tags(spark: SparkSession) -> Collection[str]:
    """Of this thread."""
    context = _context(spark)
    return spark.getTags() if context is None else context.getJobTags()


def add_tag(spark: SparkSession, tag: str) -> None:
    """To what this thread runs from now on."""
    context = _context(spark)
    (spark.addTag if context is None else context.addJobTag)(tag)


def remove_tag(spark: SparkSession, tag: str) -> None:
    """From this thread."""
    context = _context(spark)
    (spark.removeTag if context is None else context.removeJobTag)(tag)


def interrupt(spark: SparkSession, tag: str) -> None:
    """Whatever runs with a tag."""
    context = _context(spark)
    (spark.interruptTag if context is None else context.cancelJobsWithTag)(tag)
