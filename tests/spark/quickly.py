"""How tests have their JVMs: most of what such a one does it does once, so doing it well costs more than it saves."""

from __future__ import annotations

FLAGS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
IN_ENVIRONMENT = {"JAVA_TOOL_OPTIONS": FLAGS}  # of JVMs that others start
SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
