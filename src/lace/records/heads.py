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
    def bases(self) -> Sequence[str]:
        """The versions that it says it takes the place of."""

    @property
    def meaning(self) -> object:
        """Equal for versions that mean the same; None for a retraction."""


F = TypeVar("F", bound=FileVersion)


def heads_of(versions: Iterable[F]) -> list[F]:
    """The heads of one coordinate, newest first; a retraction only where there is nothing else."""
    looked_at: list[F] = []
    taken: set[str] = set()
    for version in newest_first(versions):
        looked_at.append(version)
        taken.update(version.bases)  # 082-BASE-03
        if not version.bases:  # 082-BASE-02: all that are older
            break
    left = [version for version in looked_at if version.hash not in taken]
    kept = [version for version in left if version.meaning is not None] or left[:1]  # 082-HEAD-03
    first: dict[object, F] = {}
    for version in kept:
        first.setdefault(version.meaning, version)  # 082-HEAD-02
    return list(first.values())
