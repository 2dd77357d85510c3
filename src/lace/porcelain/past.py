"""A lace as it was at a time, and taking a coordinate back to what it was then.

Rule: what counts is the time that versions tell themselves, not when they came here. So two laces with the same records
have the same past, and a record that is dated back changes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from lace.errors import InvalidInput, StoreError
from lace.notation.fact import Fact
from lace.notation.identifiers import RecordHash
from lace.notation.stopping import Interrupt, until
from lace.notation.tai import TAI
from lace.porcelain.lace import Lace
from lace.porcelain.listing import COLUMNS, Row
from lace.porcelain.tips import Tip
from lace.records.coordinate import Coordinate
from lace.records.model import NO_LIMITS, Header, Plex, Seal, ValidRecord, sorted_headers
from lace.records.tip import VersionState
from lace.records.validate import reread
from lace.store.memory import MemoryStore
from lace.values import dataclass

if TYPE_CHECKING:
    from lace.limits import EngineLimits
    from lace.porcelain.putting import PutBatch
    from lace.porcelain.query import Answer
    from lace.records.keys import Signer

REPLACES = "Base+Link"  # 082: what a version of a file takes the place of


@dataclass(frozen=True, slots=True)
class StoppedClock:
    """A clock that always says one moment."""

    moment: TAI

    def tai(self) -> TAI:
        """That moment."""
        return self.moment

    def monotonic_ns(self) -> int:
        """Nothing passes."""
        return 0


class PastLace(Lace):
    """A lace as it was at a moment, over the same store: it reads, and takes no records. `Lace.at` creates it."""

    def __init__(self, lace: Lace, moment: TAI) -> None:
        super().__init__(lace.store, clock=StoppedClock(moment), limits=lace.limits, horizon_s=0)

    def batch(self) -> PutBatch:
        """StoreError: the past takes no records."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise StoreError("this is a lace as it was: it takes no records and gives none away")

    def delete(self, *hashes: str) -> int:
        """StoreError: nothing is removed from the past."""
        self._refuse()

    def list(
        self, prefix: str = "//", *, columns: Sequence[str] = COLUMNS, tips: bool = False, withdrawn: bool = False
    ) -> Iterator[Row]:
        """A row per Plex and Seal that was there under a prefix."""
        rows = super().list(prefix, columns=columns, tips=tips, withdrawn=withdrawn)
        return (row for row in rows if row.state is not VersionState.AHEAD)

    def tip(self, target: str | Coordinate) -> Tip:
        """The record that a coordinate named; what is newer was not there."""
        return replace(super().tip(target), passed_over=())

    def query(
        self,
        rules: str,
        goal: str | None = None,
        *,
        extra: Iterable[Fact] = (),
        limits: EngineLimits | None = None,
        deadline_s: float | None = None,
        interrupt: Interrupt | None = None,
    ) -> Answer:
        """The facts that rules derive from the records that were there, and all Blobs, which have no time."""
        from lace.porcelain.query import answer_to, warned

        with MemoryStore() as then:
            then.put(self._records())
            snapshot = then.snapshot()
        stop = until(deadline_s, interrupt)
        return warned(answer_to(snapshot, rules, goal, extra=extra, limits=limits, stop=stop))

    def _records(self) -> Iterator[ValidRecord]:
        moment = self.clock.tai()
        for _, stored in self.store.bodies_since():
            record = reread(stored)
            if record.parts.tai <= moment:  # empty for a Blob
                yield record

    def close(self) -> None:
        """Nothing: the store belongs to the lace."""


def revert(lace: Lace, target: str, to: str, *, sign: Signer | str | None) -> RecordHash:
    """Put the version that a hash or a time names once more, as the newest of its coordinate."""
    tip_policy = lace.tip_policy()
    wanted = lace.record(to) if to[:2] in ("P.", "S.", "//") else lace.at(to).record(target)
    parts = wanted.parts
    coordinate = f"//{parts.group}//{parts.app}//{parts.name}"
    if wanted.type == "B" or coordinate != target:
        raise InvalidInput(f"{wanted.hash} is not a version of {target}", rule="revert", found=coordinate)
    if [row.hash for row in lace.list(target, columns=(), tips=True)] == [wanted.hash]:
        raise InvalidInput(f"{wanted.hash} is the tip of {target} already", rule="revert")
    value = wanted.record
    plex = value.plex if isinstance(value, Seal) else value
    assert isinstance(plex, Plex)
    newest = next((one.version for one in lace.history(target) if tip_policy.admits(one.version)), None)
    now = lace.clock.tai()
    tai = now if newest is None else max(now, TAI(newest.tai).plus_ns(1))
    again = replace(plex, tai=tai, headers=_kept(parts.headers), limits=NO_LIMITS)
    return lace.put_plex(again, sign=sign)


def _kept(headers: Iterable[Header]) -> tuple[Header, ...]:
    """All headers but those about other versions."""
    return sorted_headers(header for header in headers if header[0] != REPLACES)
