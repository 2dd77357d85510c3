"""Tags on what a thread runs on the cluster, by which it is interrupted from another thread.

Rule: a session's own tags do not reach jobs that it hands to a thread of the JVM's, as it does for every result that
comes by Arrow; those of its context do. A remote session has no context, and its own tags reach everything.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lace.spark.session.watching import JobWatch, watched

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


_LISTENER_MS = 2000  # for events of jobs that have ended to be counted


@contextmanager
def counted_jobs(spark: SparkSession, watch: JobWatch) -> Iterator[Callable[[], int | None]]:
    """How many jobs this thread runs inside, to be asked for afterwards; None where a session cannot say.

    While they run, how far they are is told.
    """
    context = _context(spark)
    if context is None:  # Spark Connect tells its clients nothing about jobs
        yield lambda: None
        return
    tag = f"lace-step-{uuid.uuid4().hex}"
    found: list[int] = []
    add_tag(spark, tag)
    try:
        with watched(context, tag, watch):
            yield lambda: found[0] if found else None
    finally:
        remove_tag(spark, tag)
        found.append(_jobs_with(context, tag))


def _jobs_with(context: Any, tag: str) -> int:
    inner = context._jsc.sc()
    inner.listenerBus().waitUntilEmpty(_LISTENER_MS)
    return len(inner.statusTracker().getJobIdsForTag(tag))
