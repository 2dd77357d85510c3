"""A dependency graph shaped like a distribution's package index, made of a seed.

Rule: the same sizes give the same edges anywhere. Debian's index has 63,436 packages, 264,000 dependencies and about
four million pairs in its closure: a few base packages that nearly everything needs, libraries in families, small
circles inside a family, and some metapackages that pull in hundreds.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

PACKAGES = 63_436
DEPENDENCIES = 264_000
_ROOTS = 60  # packages that need nothing, as the C library does
_PULL = 9.0  # how much more the popular packages are needed than the rest
_FAMILY = 5  # packages made of one source
_CIRCLE = 0.02  # of the families have a circle
_COLLECTIONS = 60  # metapackages
_COLLECTED = 60  # what each of them needs


def package_name(number: int) -> str:
    """The name of a package; `collection-…` are the metapackages."""
    return f"package-{number:05}"


def dependencies(packages: int = PACKAGES, edges: int = DEPENDENCIES, seed: int = 7) -> list[tuple[str, str]]:
    """Who needs whom, directly; sorted."""
    draw = random.Random(seed)
    found = set(_families(packages, draw)) | set(_collections(packages, draw))
    while len(found) < edges:
        needing = draw.randrange(_ROOTS, packages)
        found.add((needing, int(needing * draw.random() ** _PULL)))
    return sorted((package_name(a), package_name(b)) for a, b in found if a != b)


def collections(packages: int = PACKAGES) -> list[str]:
    """The metapackages, as GNOME's is one."""
    return [package_name(packages - 1 - n) for n in range(min(_COLLECTIONS, packages // 100))]


def _families(packages: int, draw: random.Random) -> Iterator[tuple[int, int]]:
    for first in range(_ROOTS, packages - _FAMILY, _FAMILY):
        for member in range(1, draw.randrange(1, _FAMILY)):
            yield first + member, first
        if draw.random() < _CIRCLE:
            yield first, first + 1
            yield first + 1, first


def _collections(packages: int, draw: random.Random) -> Iterator[tuple[int, int]]:
    for n in range(min(_COLLECTIONS, packages // 100)):
        for _ in range(_COLLECTED):
            yield packages - 1 - n, draw.randrange(packages - _COLLECTIONS)
