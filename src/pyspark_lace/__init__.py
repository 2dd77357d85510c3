"""What Spark looks for: `spark.read.format("lace")` and `USING lace` in any session, without a line of setup.

Rule: Spark imports every top-level module named `pyspark_*` in the Python of its workers and registers its
`DefaultSource`. There is nothing else here.
"""

from __future__ import annotations

from lace.spark.source.source import LaceDataSource as DefaultSource

__all__ = ["DefaultSource"]
