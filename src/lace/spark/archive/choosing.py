"""The records that a peer may have, as rows with all that the archive says of them.

Rule: no row moves to learn whether it is wanted, where its peer's rules can be asked of the row itself. What they then
choose is what was stored as selected: they are asked of the batches that the selection has seen, and of no others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import DataFrame

from lace.errors import LimitExceeded
from lace.limits import EngineLimits
from lace.spark.archive import tables
from lace.spark.archive.log import DataFile, State
from lace.spark.archive.recordtest import RecordTest, record_test
from lace.spark.jobs.evaluate import PeerPolicy
from lace.values import dataclass

if TYPE_CHECKING:
    from lace.spark.archive.archive import Archive


class Ends(NamedTuple):
    """The least and the greatest of some hashes, and how many there are."""

    low: str | None
    high: str | None
    rows: int


def ends_of(files: Sequence[DataFile]) -> Ends:
    """Those of all hashes in some files, as their commits say."""
    low = min((file.low["hash"] for file in files), default=None)
    return Ends(low, max((file.high["hash"] for file in files), default=None), sum(file.rows for file in files))


@dataclass(frozen=True, slots=True)
class WantedRecords:
    """Records that were selected for a peer."""

    hashes: DataFrame
    ends: Ends
    batches: Sequence[str]  # that brought them, if its rules look at one record at a time
    is_all: bool = True  # of what its rules select of these batches


def records_for(archive: Archive, state: State, peer: PeerPolicy, wanted: WantedRecords) -> DataFrame:
    """Some of the records that a peer may have, headers as rules read them."""
    test = _test(peer)
    if test is not None and test.is_exact:
        rows = tables.readable(archive.records_of(state, wanted.batches)).where(test.holds)
        if wanted.is_all:
            return rows
    else:
        files = tables.between(state.table("records"), "hash", wanted.ends.low, wanted.ends.high)
        rows = tables.readable(tables.read(archive.spark, archive.files, "records", files))
        rows = rows if test is None else rows.where(test.holds)
    return tables.chosen(rows, wanted.hashes, wanted.ends.rows, archive.few.sent_to_tasks)


def _test(peer: PeerPolicy) -> RecordTest | None:
    """What a peer's rules ask of one record; None where they cannot be asked."""
    if peer.advertised:
        return None
    try:
        return record_test(peer.policy.program.program, peer.policy.sendable, peer.runtime, EngineLimits())
    except LimitExceeded:  # whoever selected may have been allowed more
        return None
