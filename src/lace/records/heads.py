"""The versions of a file whose place no other takes (082, Versions).

Rule: a function of the versions alone. Who has them, in which order they came and when makes no difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from lace.records.tip import newest_first


class FileVersion(Protocol):
    """What decides whether a version is a head."""

    @property
    def tai(self) -> str: ...
    @property
    def hash(self) -> str: ...
    @property
    def signer(self) -> str | None: ...
    @property
    def bases(self) -> Sequence[str] | None:
        """The versions whose place it says it takes; None if it says nothing."""

    @property
    def meaning(self) -> object:
        """Equal for versions that mean the same; None for a retraction."""


F = TypeVar("F", bound=FileVersion)


def heads_of(versions: Iterable[F]) -> list[list[F]]:
    """The heads of one coordinate: those that mean the same together, newest first, and the newest of them first.

    Retractions come last; they count only where there is nothing else.
    """
    looked_at: list[F] = []
    taken: set[str] = set()
    newer: set[str] = set()
    for version in newest_first(versions):
        looked_at.append(version)
        newer.add(version.hash)
        taken.update(set(version.bases or ()) - newer)  # 082-BASE-03, 082-BASE-04
        if version.bases is None:  # 082-BASE-02: all that are older
            break
    together: dict[object, list[F]] = {}
    for version in looked_at:
        if version.hash not in taken:
            together.setdefault(version.meaning, []).append(version)  # 082-HEAD-02
    return sorted(together.values(), key=lambda heads: heads[0].meaning is None)  # 082-HEAD-03
