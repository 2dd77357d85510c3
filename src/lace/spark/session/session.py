"""A Spark session with the settings that Lace's jobs were measured under.

Rule: what we ask for is a default below everybody else's: `spark-defaults.conf`, arguments of `spark-submit`
(`PYSPARK_SUBMIT_ARGS`), a server's own settings and `--conf` all win, and on a cluster the cluster decides how many
tasks run at once.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from lace.errors import InvalidInput, TransportError, naming_extras
from lace.spark.session.java import java_home
from lace.spark.session.master import require_master

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULT_MASTER = "local[*]"
_LOGGING = "log4j2.properties"
_QUIET_LOGGING = Path(__file__).with_name(_LOGGING)
_LOCAL = re.compile(r"local(\[(?P<cores>\d+|\*)(,\s*\d+)?\])?")
_DRIVER_MEMORY = "2g"
_NO_PROGRESS_BAR = "-Dspark.ui.showConsoleProgress=false"  # said here, since later Spark has set it to true itself
_UNNAMED = "pyspark-shell"  # what Spark calls a session that nobody named


# What any session may ask for itself, a remote one too.
SESSION_SETTINGS = {
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "4096",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # what other readers of Parquet expect
}
_LOCAL_RELATION = "spark.sql.session.localRelationSizeLimit"
_LOCAL_RELATION_BYTES = str(3 << 30)  # Spark's default; Sail says "3GB", which PySpark cannot read


def context_settings(master: str) -> dict[str, str]:
    """What a context of ours has where nobody says otherwise; how tasks are cut is said only for this machine."""
    quiet = {"spark.python.daemon.module": "lace.spark.session.daemon"}
    cores = local_cores(master)
    if cores is None:
        return quiet
    tasks = str(max(2, cores * 2))
    return quiet | {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": tasks,
        "spark.sql.limit.initialNumPartitions": tasks,  # a bounded result is one job, not two
    }


def local_cores(master: str) -> int | None:
    """How many tasks run at once under a master that is this process; None under any other."""
    found = _LOCAL.fullmatch(master)
    if found is None:
        return None
    cores = found["cores"] or "1"
    return (os.cpu_count() or 2) if cores == "*" else int(cores)


def parse_settings(texts: tuple[str, ...]) -> dict[str, str]:
    """Settings of Spark as they are given on a command line: KEY=VALUE."""
    found: dict[str, str] = {}
    for text in texts:
        key, sign, value = text.partition("=")
        if not sign or not key.startswith("spark."):
            raise InvalidInput("a setting of Spark is spark.KEY=VALUE", rule="spark-conf", found=text)
        found[key] = value
    return found


def spark_session(
    master: str | None = None,
    *,
    app_name: str = "lace",
    config: Mapping[str, str] | None = None,
    on_cluster: Mapping[str, str] | None = None,
) -> SparkSession:
    """The active session if there is one, else a new one on `master` (a URL, `local[*]`, or `sc://…` for Connect).

    Without `master` it is that of MASTER, of the arguments of `spark-submit` or of `spark-defaults.conf`. `config` wins
    over all that is set elsewhere, `on_cluster` over nothing, and only where executors are other machines.
    """
    with naming_extras():
        from pyspark.core.context import SparkContext
        from pyspark.sql import SparkSession

        from lace.spark.source.source import register

    if master is None:
        active = SparkSession.getActiveSession()
        if active is None and SparkContext._active_spark_context is not None:  # of another thread
            active = SparkSession.builder.getOrCreate()
        if active is not None:
            return register(active)
    where = master or os.environ.get("MASTER") or os.environ.get("SPARK_REMOTE")
    if where is not None:
        require_master(where)
        if where.startswith("sc://"):
            return register(_remote(where, config or {}))
    found = _launched(where, config or {})
    where = where or found.get("spark.master") or DEFAULT_MASTER
    require_master(where)
    ours = context_settings(where) | SESSION_SETTINGS
    if local_cores(where) is None:
        ours |= on_cluster or {}
    named = found.get("spark.app.name", _UNNAMED)
    builder = SparkSession.builder.appName(app_name if named == _UNNAMED else named).master(where)
    chosen = {key: value for key, value in ours.items() if key not in found} | dict(config or {})
    return register(_started(_configured(builder, chosen), where))


def _remote(where: str, config: Mapping[str, str]) -> SparkSession:
    """A session of Spark Connect: of what the server says for itself nothing is changed."""
    from pyspark.sql import SparkSession

    with _without_master():
        session = _started(_configured(SparkSession.builder.remote(where), config), where)
    for key, value in SESSION_SETTINGS.items():
        if key not in config:
            session.conf.set(key, session.conf.get(key, value) or value)  # what is set already, else ours
    # Asked without a default: a server says that back where nobody has set anything.
    if not (session.conf.get(_LOCAL_RELATION) or "").isdigit():
        session.conf.set(_LOCAL_RELATION, _LOCAL_RELATION_BYTES)
    return session


def _launched(master: str | None, config: Mapping[str, str]) -> dict[str, str]:
    """Start the JVM, if there is none, and say what its defaults file and arguments set.

    What has to be known before it starts is handed over where Spark itself looks last: in the environment.
    """
    from pyspark.conf import SparkConf
    from pyspark.core.context import SparkContext

    if SparkContext._jvm is None:
        given = SparkConf(loadDefaults=False)
        for key, value in config.items():
            given.set(key, value)
        with _launch_environment(master):
            SparkContext._ensure_initialized(conf=given)
    found = dict(SparkConf().getAll())
    _prepare_workers(found)
    return found


@contextmanager
def _launch_environment(master: str | None) -> Iterator[None]:
    """The lowest level of what a JVM starts with, taken back once it runs."""
    added = {"SPARK_DRIVER_MEMORY": _DRIVER_MEMORY} if "SPARK_MEM" not in os.environ else {}
    before = {name: os.environ.get(name) for name in (*added, "SPARK_SUBMIT_OPTS")}
    os.environ["JAVA_HOME"] = str(java_home())
    if master is None or local_cores(master) is not None or _is_loopback(master):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    for name, value in added.items():
        os.environ.setdefault(name, value)
    options = [_NO_PROGRESS_BAR]
    if not _has_own_logging():
        options.append(f"-Dlog4j2.configurationFile={_QUIET_LOGGING.as_uri()}")
    os.environ["SPARK_SUBMIT_OPTS"] = " ".join(filter(None, [*options, before["SPARK_SUBMIT_OPTS"]]))
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = old


def _has_own_logging() -> bool:
    """Whether the folder of the user's settings says how Spark logs."""
    homes = [Path(os.environ["SPARK_HOME"], "conf")] if "SPARK_HOME" in os.environ else []
    folders = [Path(os.environ["SPARK_CONF_DIR"])] if "SPARK_CONF_DIR" in os.environ else homes
    return any((folder / _LOGGING).exists() for folder in folders)


def _is_loopback(master: str) -> bool:
    host = urlsplit(master.partition(",")[0]).hostname or ""
    return host == "localhost" or host.startswith("127.")


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


def _prepare_workers(found: Mapping[str, Any]) -> None:
    """Workers run the interpreter that runs us, unless the user named another one."""
    if "spark.pyspark.python" in found:
        os.environ.setdefault("PYSPARK_PYTHON", found["spark.pyspark.python"])
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
