"""A Spark session with the settings that Lace's jobs were measured under.

Rule: any master the user names is respected, and so is every setting they already made.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from lace.errors import TransportError, naming_extras
from lace.spark.session.java import java_home
from lace.spark.session.master import require_master

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULT_MASTER = "local[*]"
_QUIET_LOGGING = Path(__file__).with_name("log4j2.properties")


# What any session may ask for itself, a remote one too.
SESSION_SETTINGS = {
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "4096",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # what other readers of Parquet expect
    "spark.sql.sources.partitionOverwriteMode": "dynamic",
    "spark.sql.session.localRelationSizeLimit": str(3 << 30),  # the default; Sail says "3GB", which PySpark cannot read
}


def settings(cores: int) -> dict[str, str]:
    """What we ask of Spark unless the user said otherwise; `cores` is how many tasks run at once."""
    return SESSION_SETTINGS | {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": str(max(2, cores * 2)),
        "spark.sql.limit.initialNumPartitions": str(max(2, cores * 2)),  # a bounded result is one job, not two
        "spark.driver.memory": "2g",
        "spark.python.daemon.module": "lace.spark.session.daemon",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_QUIET_LOGGING.as_uri()}",
    }


def spark_session(
    master: str | None = None, *, app_name: str = "lace", config: Mapping[str, str] | None = None
) -> SparkSession:
    """The active session if there is one, else a new one on `master` (a URL, `local[*]`, or `sc://…` for Connect)."""
    with naming_extras():
        from pyspark.sql import SparkSession

        from lace.spark.source.source import register

    active = SparkSession.getActiveSession()
    if active is not None and master is None:
        return register(active)
    where = master or os.environ.get("MASTER") or DEFAULT_MASTER
    require_master(where)
    if where.startswith("sc://"):
        with _without_master():
            builder = _configured(SparkSession.builder.remote(where), SESSION_SETTINGS | dict(config or {}))
            return register(_started(builder, where))
    _prepare_environment()
    builder = SparkSession.builder.appName(app_name).master(where)
    return register(_started(_configured(builder, {**settings(os.cpu_count() or 2), **(config or {})}), where))


@contextmanager
def _without_master() -> Iterator[None]:
    """MASTER out of the environment: PySpark takes it for a second master beside a remote one, whatever it says."""
    master = os.environ.pop("MASTER", None)
    try:
        yield
    finally:
        if master is not None:
            os.environ["MASTER"] = master


def _started(builder: SparkSession.Builder, where: str) -> SparkSession:
    """The session of a builder; why there is none, in words."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    from lace.spark.session.failure import reason_of

    try:
        return builder.getOrCreate()
    except (Py4JJavaError, PySparkException) as error:
        said = str(error.java_exception) if isinstance(error, Py4JJavaError) else str(error)
        raise TransportError(f"no session of Spark could be started at {where}: {reason_of(said)}") from error


def _configured(builder: SparkSession.Builder, config: Mapping[str, str] | None) -> SparkSession.Builder:
    for key, value in (config or {}).items():
        builder = builder.config(key, value)
    return builder


def _prepare_environment() -> None:
    """Workers run the interpreter that runs us; the driver binds to loopback unless the user set an address."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["JAVA_HOME"] = str(java_home())
