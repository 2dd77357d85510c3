"""Ingest: what was read, each stored record once.

Rule: repeats are found by the digest of the whole stored bytes, so a damaged copy never stands in for a good record.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user reads

from lace.spark.schemas import CONTENT, ORIGIN, RAW, require_columns

PLACES = (CONTENT.name, *(field.name for field in ORIGIN))


def repeats(places: DataFrame, known: DataFrame | None = None, *, few: bool = False) -> DataFrame:
    """The places (content, bundle, offset) whose bytes stand earlier in this frame already, or in `known`.

    `few` says that the places can be sent to every task: they then choose among what is known, which stays where it is.
    """
    first = (
        places.groupBy("content").agg(F.min(F.struct("bundle", "offset")).alias("place")).select("content", "place.*")
    )
    if known is not None:
        met = known.select("content")
        if few:
            met = met.join(F.broadcast(first.select("content")), on="content", how="left_semi")
        first = first.join(met, on="content", how="left_anti")
    return places.join(first, on=list(PLACES), how="left_anti")


def first_copies(raw: DataFrame, known: DataFrame | None = None, repeated: DataFrame | None = None) -> DataFrame:
    """The rows whose bytes were not read before: neither earlier in this frame nor in `known`.

    Digests and places are shuffled to find the repeats; a caller who has found them already hands them over. The bytes
    stay where they are as long as the repeats are few enough to be sent to every task.
    """
    require_columns(raw, RAW, "first_copies")
    found = repeats(raw.select(*PLACES), known) if repeated is None else repeated
    return raw.join(found.select("bundle", "offset"), on=["bundle", "offset"], how="left_anti").select(*RAW.names)
