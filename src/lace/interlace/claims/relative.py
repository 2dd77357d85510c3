"""The peer's claims as ours but for what differs (070, P35).

Rule: while two sides compare their sets, what a peer claims about records that we hold is what our own validated facts
say, so it is not kept: only the records of ours that it lacks, and its claims about records that are not in our set.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from lace.differences.ids import Ids, ids_of_texts
from lace.differences.keyed import U64, DifferenceKey
from lace.differences.setview import measured
from lace.differences.sums import agrees
from lace.errors import InvalidText
from lace.interlace.claims.advertisement import Advertisement, Claims, sendable_fields
from lace.interlace.claims.partitions import AdvertisementSet


class OwnSet(Protocol):
    """What we may send at one moment."""

    @property
    def number(self) -> int: ...
    @property
    def spelled_out(self) -> AdvertisementSet | None: ...
    @property
    def gone(self) -> Collection[str]: ...
    def __len__(self) -> int: ...
    def among(self, records: Sequence[str]) -> list[str]: ...
    def some(self, records: Iterable[str]) -> list[Advertisement]: ...
    def since(self, earlier: Any) -> tuple[Ids, Ids] | None: ...
    def listing(self) -> list[Advertisement]: ...
    def measure(self, key: DifferenceKey) -> U64: ...


class OwnMoved(NamedTuple):
    """How our set became another one."""

    came: list[str]
    went: list[str]
    left: list[str]  # those of them that went and that the peer claims


class RelativeClaims:
    """A peer's claims relative to our set."""

    def __init__(self, own: OwnSet, absent: Iterable[str], claims: Claims) -> None:
        self.own: OwnSet = own
        self.absent: set[str] = set(absent)
        self.foreign: dict[str, Advertisement] = {claim.hash: claim for claim in claims}

    def __len__(self) -> int:
        return len(self.own) - len(self.absent) + len(self.foreign)

    def among(self, records: Iterable[str]) -> list[str]:
        """Those of some records that the peer claims to have."""
        given = list(records)
        if not given or not len(self.own):
            return [record for record in given if record in self.foreign]
        ours = set(self.own.among(given)) - self.absent
        return [record for record in given if record in self.foreign or record in ours]

    def moved(self, own: OwnSet) -> OwnMoved | None:
        """How our set became this one; None if by more than is followed."""
        changed = own.since(self.own)
        if changed is None:
            return None
        came, went = (ids.texts() for ids in changed)
        return OwnMoved(came, went, [record for record in went if record not in self.absent])

    def follow(self, own: OwnSet, moved: OwnMoved, left: Claims) -> None:
        """Our set is another one now; `left` is what the peer claims about records that it still has and we do not."""
        coming = moved.came
        if coming == list(self.foreign):  # a first copy, and all of it has come
            self.foreign, coming = {}, []
        for record in coming:  # ours from now on: the peer either claimed it before, or lacks it
            if self.foreign.pop(record, None) is None:
                self.absent.add(record)
        self.absent.difference_update(moved.went)
        self.foreign.update((claim.hash, claim) for claim in left)
        self.own = own

    def measure(self, key: DifferenceKey) -> U64 | None:
        """The measure of what the peer claims; None if something in it has none."""
        absent, foreign = measure_of(self.absent, key), measure_of(self.foreign, key)
        return None if absent is None or foreign is None else self.own.measure(key) - absent + foreign

    def shared(self) -> list[Advertisement]:
        """Our claims about the records that both have."""
        return [claim for claim in self.own.listing() if claim.hash not in self.absent]


def holds(own: OwnSet, records: Collection[str]) -> bool:
    """Whether a set has all of some records."""
    return not records or len(own.among(list(records))) == len(records)


def as_theirs(claims: Iterable[Advertisement], source: str, max_line_bytes: int) -> list[Advertisement]:
    """Our claims as a peer with this label would make them: under its label a longer line may pass the limit (P14)."""
    return [
        Advertisement(claim.hash, sendable_fields(claim, source, max_line_bytes)) if claim.fields else claim
        for claim in claims
    ]


def measure_of(records: Iterable[str], key: DifferenceKey) -> U64 | None:
    """The measure of some records; None if one of them is of a format that has none."""
    try:
        return measured(ids_of_texts(records), key)
    except InvalidText:
        return None


def adds_up(start: U64, less: Iterable[str], more: Iterable[str], told: U64, key: DifferenceKey) -> bool:
    """Whether a measured set, without some of its records and with others, is what was told (070-END-01)."""
    going, coming = measure_of(less, key), measure_of(more, key)
    return going is not None and coming is not None and agrees(start - going + coming, told)
