"""Ingest: what was read, each stored record once.

Rule: repeats are found by the digest of the whole stored bytes, so a damaged copy never stands in for a good record.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user reads

from lace.spark.source.schemas import CONTENT, ORIGIN, RAW, require_columns

PLACES: tuple[str, ...] = (CONTENT.name, *(field.name for field in ORIGIN))


def repeats(places: DataFrame, known: DataFrame | None = None, *, few: bool = False) -> DataFrame:
    """The places (content, bundle, offset) whose bytes stand earlier in this frame already, or in `known`.

    `few` says that the places can be sent to every task: they then choose among what is known, which stays where it is.
    """
    copies = Window.partitionBy("content").orderBy("bundle", "offset")
    ranked = places.select(*PLACES, F.row_number().over(copies).alias("copy"))
    if known is None:
        return ranked.where("copy > 1").select(*PLACES)
    met = known.select("content")
    if few:
        met = met.join(F.broadcast(places.select("content")), on="content", how="left_semi")
    met = met.distinct().select("content", F.lit(True).alias("is_known"))
    # Both sides lie apart by content already: neither is moved for this.
    return ranked.join(met, on="content", how="left").where("copy > 1 or is_known").select(*PLACES)


def first_copies(raw: DataFrame, known: DataFrame | None = None, repeated: DataFrame | None = None) -> DataFrame:
    """The rows whose bytes were not read before: neither earlier in this frame nor in `known`.

    Digests and places are shuffled to find the repeats; a caller who has found them already hands them over. The bytes
    stay where they are as long as the repeats are few enough to be sent to every task.
    """
    require_columns(raw, RAW, "first_copies")
    found = repeats(raw.select(*PLACES), known) if repeated is None else repeated
    return raw.join(found.select("bundle", "offset"), on=["bundle", "offset"], how="left_anti").select(*RAW.names)
