"""Publish: bundles with exactly the records a peer may have, and a store ready to serve.

Rule: what is published was selected for this peer and is validated once more as it enters the store.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame

from lace.intake.bundles import import_bundles
from lace.spark.source.source import FORMAT
from lace.spark.source.writer import BUNDLE_SUFFIX
from lace.store import open_store


def publish_peer(stored: DataFrame, target: Path) -> dict[str, int]:
    """Write `target/bundles` and `target/store.lace` from rows with a column `stored`."""
    target.mkdir(parents=True, exist_ok=True)
    bundles = target / "bundles"
    stored.select("stored").write.format(FORMAT).mode("overwrite").save(str(bundles))
    files = sorted(bundles.glob(f"*{BUNDLE_SUFFIX}"))
    with open_store(target / "store.lace", create=True) as store:
        report = import_bundles(store, files)
    return {"bundles": len(files), "records": report.stored}
