"""Which version of a coordinate is its tip, which are withdrawn, and which are concurrent with the tip (110, 081).

Rule: the answer is a function of the versions and of a policy that both sides share. Who holds the versions, in which
order they came and which keys signed here make no difference: same versions and policy, same answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Generic, NamedTuple, Protocol, Self, TypeVar

from lace.limits import SECOND_NS
from lace.notation.tai import MAX_TAI_NS, TAI
from lace.records.retraction import ALL, Withdraws
from lace.values import dataclass

EVERYBODYS, UNSIGNED = "", "unsigned"  # where versions withdraw others whoever signed them; of those nobody signed
LOOKED_AT = 1_000  # of the newest versions, how many are searched for further writers


class OrderedVersion(Protocol):
    """What versions of one coordinate are ordered by."""

    @property
    def tai(self) -> str: ...
    @property
    def hash(self) -> str: ...


class CoordinateVersion(OrderedVersion, Protocol):
    """What is known of a record at a coordinate without reading it."""

    @property
    def group(self) -> str: ...
    @property
    def app(self) -> str: ...
    @property
    def signer(self) -> str | None: ...
    @property
    def withdraws(self) -> Withdraws: ...


V = TypeVar("V", bound=CoordinateVersion)
Ordered = TypeVar("Ordered", bound=OrderedVersion)


@dataclass(frozen=True, slots=True, kw_only=True)
class TipWriters:
    """Whose versions may be tips in a group, as its policy says: in some apps, or in all that no earlier rule names."""

    group: str
    apps: frozenset[str] | None = None
    since: Mapping[str, str] | None = None  # a key that may, and from when on; None: anybody, signed or not
    standing: frozenset[tuple[str, str]] = frozenset()  # versions, with their signers, that count whoever may write now
    retracting: TipWriters | None = None  # whose retractions count, if not those of whoever may write
    is_own_only: bool = False  # a version withdraws none but those of its own signer

    def covers(self, version: CoordinateVersion) -> bool:
        """Whether these are the writers of a version's coordinate."""
        return version.group == self.group and (self.apps is None or version.app in self.apps)

    def admit(self, version: CoordinateVersion) -> bool:
        """Whether the writer of a version may write there."""
        if version.withdraws and self.retracting is not None:
            return self.retracting.admit(version)
        signer = version.signer or ""
        if self.since is None or (version.hash, signer) in self.standing:
            return True
        since = self.since.get(signer)
        return since is not None and version.tai >= since


@dataclass(frozen=True, slots=True, kw_only=True)
class TipPolicy:
    """What both sides share about tips: the time, and who may write."""

    until: str | None = None  # the horizon: a version dated later is not a tip; None: there is no horizon
    writers: tuple[TipWriters, ...] = ()  # the first that covers a version decides; where none does, anybody may write

    @classmethod
    def at(cls, now: TAI, horizon_s: float | None) -> TipPolicy:
        """The default policy at an instant: the newest version that is dated within the horizon."""
        if horizon_s is None:
            return cls()
        return cls(until=TAI.from_ns(min(now.to_ns() + int(horizon_s * SECOND_NS), MAX_TAI_NS)))

    def admits(self, version: CoordinateVersion) -> bool:
        """Whether a version may be the tip, or withdraw one."""
        return not self.is_ahead(version) and self.may_write(version)

    def is_ahead(self, version: CoordinateVersion) -> bool:
        """Whether a version is dated beyond the horizon."""
        return self.until is not None and version.tai > self.until

    def may_write(self, version: CoordinateVersion) -> bool:
        """Whether the writer of a version may write at its coordinate."""
        return next((rule.admit(version) for rule in self.writers if rule.covers(version)), True)

    def reach(self, version: CoordinateVersion) -> str:
        """Which versions of a coordinate may withdraw each other: all with the same answer."""
        is_own_only = next((rule.is_own_only for rule in self.writers if rule.covers(version)), False)
        return (version.signer or UNSIGNED) if is_own_only else EVERYBODYS


def tip_order(version: OrderedVersion) -> tuple[str, str]:
    """What versions of one coordinate are ordered by: their time, then their hash (110-VER-09)."""
    return version.tai, version.hash


def newest_first(versions: Iterable[Ordered]) -> list[Ordered]:
    """The versions of one coordinate as `choose_tip` takes them."""
    return sorted(versions, key=tip_order, reverse=True)


class VersionState(StrEnum):
    """What a version counts for at its coordinate."""

    STANDS = "stands"  # it may be the tip
    RETRACTS = "retracts"  # it withdraws others and is nothing to read
    WITHDRAWN = "withdrawn"  # a newer version withdraws it
    AHEAD = "ahead"  # dated beyond the horizon: it is not a tip and withdraws nothing
    BARRED = "barred"  # by somebody who may not write there: it is not a tip and withdraws nothing


class JudgedVersion(NamedTuple, Generic[V]):
    """A version, what it counts for, and the version that withdraws it."""

    version: V
    state: VersionState
    by: V | None = None


class Withdrawals(Generic[V]):
    """What the versions of one coordinate withdraw, as far as they were met; they are met newest first.

    A retraction counts unless a newer one withdraws it, and it withdraws older versions only, so one pass decides.
    """

    def __init__(self, policy: TipPolicy) -> None:
        self._policy = policy
        self._single: dict[tuple[str, str], V] = {}
        self._all: dict[str, V] = {}  # the newest that count and withdraw everything before them, by their reach

    @property
    def leave_nothing(self) -> bool:
        """Whether every older version is withdrawn."""
        return EVERYBODYS in self._all

    @classmethod
    def of(cls, versions: Iterable[V], policy: TipPolicy) -> Self:
        """What versions that come newest first withdraw; memory holds retractions alone."""
        found = cls(policy)
        for version in versions:
            if version.withdraws:
                found.meet(version)
        return found

    def meet(self, version: V) -> JudgedVersion[V]:
        """Judge the next older version, and take in what it withdraws."""
        judged = self.judge(version)
        if judged.state is VersionState.RETRACTS:
            reach = self._policy.reach(version)
            if ALL in version.withdraws:
                self._all.setdefault(reach, version)
            for record in version.withdraws:
                self._single.setdefault((record, reach), version)
        return judged

    def judge(self, version: V) -> JudgedVersion[V]:
        """What a version counts for, given all newer ones."""
        if self._policy.is_ahead(version):
            return JudgedVersion(version, VersionState.AHEAD)
        if not self._policy.may_write(version):
            return JudgedVersion(version, VersionState.BARRED)
        reach = self._policy.reach(version)
        for by in (self._single.get((version.hash, reach)), self._all.get(reach)):
            if by is not None and tip_order(by) > tip_order(version):  # 081-MEAN-02
                return JudgedVersion(version, VersionState.WITHDRAWN, by)
        return JudgedVersion(version, VersionState.RETRACTS if version.withdraws else VersionState.STANDS)


def judged(versions: Iterable[V], policy: TipPolicy) -> Iterator[JudgedVersion[V]]:
    """Each of the versions that come newest first, with what it counts for."""
    return map(Withdrawals[V](policy).meet, versions)


def standing(versions: Iterable[V], policy: TipPolicy) -> Iterator[V]:
    """The versions that may be the tip, of versions that come newest first. Nothing else decides that."""
    withdrawals = Withdrawals[V](policy)
    for version in versions:
        if withdrawals.meet(version).state is VersionState.STANDS:
            yield version
        elif withdrawals.leave_nothing:
            return


def choose_tip(versions: Iterable[V], policy: TipPolicy) -> V | None:
    """The tip of versions that come newest first; None if no version may be it."""
    return next(standing(versions, policy), None)


def newest_by_writer(versions: Iterable[V]) -> list[V]:
    """The newest version of each writer, of versions that stand, newest first: the tip, then what is concurrent.

    A writer is a signer; all who did not sign count as one. A record does not say which versions its writer had seen,
    so versions of several writers count as concurrent.
    """
    found: dict[str | None, V] = {}
    for version in versions:
        found.setdefault(version.signer, version)
    return list(found.values())
