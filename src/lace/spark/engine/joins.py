"""How two frames are joined, from what is known of their lengths.

Rule: the only place where a join is chosen by size. Spark's own estimates are wrong for checkpointed frames and for
rows that came out of Python, so lengths are counted or read from commits, and the side to send is named.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user reads

from lace.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinChoice:
    """When a side of a join is short enough to be sent to every task, or to stand in the plan itself."""

    broadcast_rows: int = 200_000
    named_rows: int = 64  # of the driver; more of them take longer to say than to send
    task_rows: int = 250_000  # that one task makes a table of where a side is too long to be sent: 30 to 100 MB

    def is_short(self, rows: int | None) -> bool:
        """Whether so many rows go to every task; a length that nobody knows is not short."""
        return rows is not None and rows <= self.broadcast_rows

    def hinted(self, frame: DataFrame, rows: int | None) -> DataFrame:
        """A side of a join, marked to be sent to every task where it is short."""
        return F.broadcast(frame) if self.is_short(rows) else frame

    def met(self, many: DataFrame, few: DataFrame, on: Sequence[str]) -> DataFrame:
        """The rows among many that some others meet, which are known to be short; the many stay where they are."""
        return many.join(F.broadcast(few.select(*on)), on=list(on), how="left_semi")

    def chosen(self, many: DataFrame, hashes: DataFrame, rows: int) -> DataFrame:
        """The rows of a frame whose hash is among some; `rows` says how many of those there are.

        Few go to every task, and the frame's rows stay where they are. Otherwise both are laid apart by hash, in as
        many parts as it takes for a task to hold its hashes: no row is sorted and none is spilled, however many
        there are.
        """
        if self.is_short(rows):
            return self.met(many, hashes, ["hash"])
        # Said of the hashes: a semi-join moves below a repartition of the rows, to as many parts as the session has.
        apart = hashes.repartition(1 + rows // self.task_rows, "hash")
        return many.join(apart.hint("shuffle_hash"), on="hash", how="left_semi")
