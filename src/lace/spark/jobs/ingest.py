"""Ingest: what was read, each stored record once.

Rule: repeats are found by the digest of the whole stored bytes, so a damaged copy never stands in for a good record.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user reads

from lace.spark.schemas import RAW, require_columns


def first_copies(raw: DataFrame, known: DataFrame | None = None) -> DataFrame:
    """The rows whose bytes were not read before: neither earlier in this frame nor in `known`.

    Only digests and places are shuffled; the bytes stay where they are.
    """
    require_columns(raw, RAW, "first_copies")
    place = F.struct("bundle", "offset")
    chosen = raw.groupBy("content").agg(F.min(place).alias("place")).select("content", "place.*")
    if known is not None:
        chosen = chosen.join(known.select("content"), on="content", how="left_anti")
    return raw.join(chosen, on=["content", "bundle", "offset"], how="left_semi")
