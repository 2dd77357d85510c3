"""How tests have their JVMs: most of what such a one does it does once, so doing it well costs more than it saves."""

from __future__ import annotations

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
