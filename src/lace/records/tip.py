"""Which version of a coordinate is its tip, and which other versions are concurrent with it (110).

Rule: the answer is a function of the versions and of a policy that both sides share. Who holds the versions, in which
order they came and which keys signed here make no difference: same versions and policy, same answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Protocol, TypeVar

from lace.limits import SECOND_NS
from lace.notation.tai import MAX_TAI_NS, TAI
from lace.values import dataclass

LOOKED_AT = 1_000  # of the newest versions, how many are searched for further writers


class CoordinateVersion(Protocol):
    """What is known of a record at a coordinate without reading it."""

    @property
    def tai(self) -> str: ...
    @property
    def hash(self) -> str: ...
    @property
    def signer(self) -> str | None: ...


V = TypeVar("V", bound=CoordinateVersion)


@dataclass(frozen=True, slots=True, kw_only=True)
class TipPolicy:
    """What both sides share about tips. A policy of members and admins adds its field here and its test to `admits`."""

    until: str | None = None  # the horizon: a version dated later is not a tip; None: there is no horizon

    @classmethod
    def at(cls, now: TAI, horizon_s: float | None) -> TipPolicy:
        """The default policy at an instant: the newest version that is dated within the horizon."""
        if horizon_s is None:
            return cls()
        return cls(until=TAI.from_ns(min(now.to_ns() + int(horizon_s * SECOND_NS), MAX_TAI_NS)))

    def admits(self, version: CoordinateVersion) -> bool:
        """Whether a version may be the tip."""
        return self.until is None or version.tai <= self.until


def tip_order(version: CoordinateVersion) -> tuple[str, str]:
    """What versions of one coordinate are ordered by: their time, then their hash (110-VER-09)."""
    return version.tai, version.hash


def newest_first(versions: Iterable[V]) -> list[V]:
    """The versions of one coordinate as `choose_tip` takes them."""
    return sorted(versions, key=tip_order, reverse=True)


def choose_tip(versions: Iterable[V], policy: TipPolicy) -> V | None:
    """The tip of versions that come newest first; None if no version may be it. Nothing else decides a tip."""
    return next((version for version in versions if policy.admits(version)), None)


def newest_by_writer(versions: Iterable[V], policy: TipPolicy, within: int = LOOKED_AT) -> list[V]:
    """The newest version of each writer, of versions that come newest first: the tip, then what is concurrent with it.

    A writer is a signer; all who did not sign count as one. A record does not say which versions its writer had seen,
    so versions of several writers count as concurrent. Of the versions that may be the tip the newest `within` are
    looked at.
    """
    found: dict[str | None, V] = {}
    for version in islice(filter(policy.admits, versions), within):
        found.setdefault(version.signer, version)
    return list(found.values())
