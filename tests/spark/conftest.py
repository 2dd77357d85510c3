"""One real Spark session for all tests that need a JVM; they run in one worker process, one after another."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark import quickly

SOURCE = Path(__file__).parent.parent.parent / "src"


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A local session, set for many small jobs; Python workers find this source tree.

    LACE_SPARK_REMOTE names a server of Spark Connect to use in its place.
    """
    from lace.spark.session.session import spark_session

    if os.environ.get("LACE_SPARK_REMOTE"):
        yield spark_session(os.environ["LACE_SPARK_REMOTE"])
        return
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(SOURCE), os.environ.get("PYTHONPATH")]))
    session = spark_session(
        "local[2]",
        config={
            **quickly.SETTINGS,
            "spark.driver.extraJavaOptions": f"{quickly.FLAGS} {quickly.HEAP_FLAGS}",
            "spark.driver.memory": quickly.HEAP,
        },
    )
    quickly.remember_classes(session)
    yield session
    session.stop()
