"""How tests have their JVMs: most of what such a one does it does once, so doing it well costs more than it saves."""

from __future__ import annotations

from pyspark.sql import SparkSession

# Compiled once and not well; classes of Spark, which nobody has tampered with, are loaded without being proven sound.
FLAGS = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote "
    "-XX:MetaspaceSize=512m"
)
IN_ENVIRONMENT = {"JAVA_TOOL_OPTIONS": FLAGS}  # of JVMs that others start
# All of the heap from the beginning, and room for what is soon let go: a tenth of the time went into collecting.
HEAP = "1g"
HEAP_FLAGS = "-Xms1g -Xmn384m"
SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.ui.explainMode": "simple",  # of every plan, for a page that nobody opens
    "spark.sql.ui.retainedExecutions": "10",
    "spark.python.sql.dataFrameDebugging.enabled": "false",  # several calls of the JVM for each column
}


def remember_classes(session: SparkSession) -> None:
    """Each time a column is named PySpark asks which class `functions` is, and the JVM looks through hundreds of jars.

    What is an attribute of its view of the JVM is not asked for.
    """
    sql = "org.apache.spark.sql.functions"
    for name in ("functions", sql, "PythonUtils", "PythonSQLUtils", "org.apache.spark.storage.StorageLevel"):
        setattr(session._jvm, name, getattr(session._jvm, name))
