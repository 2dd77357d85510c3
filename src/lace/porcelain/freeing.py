"""Giving space back: the parts of content that others hold, while the versions that name them stay.

Rule: a part goes only if every peer that was asked says now that it has it, if no rule keeps its content, and if
nothing outside the place needs it. What a version says stays here, so its file stays in sight and is fetched again when
somebody wants it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from lace.errors import InvalidInput
from lace.facts.predicates import RECORD_LINK
from lace.notation.identifiers import RecordHash
from lace.records.manifest import CHUNK_LINK
from lace.values import dataclass

if TYPE_CHECKING:
    from lace.porcelain.lace import Lace


@dataclass(frozen=True, slots=True)
class Freeable:
    """What may go."""

    parts: tuple[RecordHash, ...]
    bytes: int  # that they take
    versions: int  # whose content would lie elsewhere then
    kept: int  # parts below the place that a rule or something else keeps
    elsewhere: int  # parts that not every peer says it has, and which stay for that


def freeable(
    lace: Lace, place: tuple[str, str, str], held: Sequence[Collection[str]], keep: Collection[str] = ()
) -> Freeable:
    """The parts of a group, app and beginning of a Name that every peer holds; the content of `keep` stays."""
    from lace.porcelain.keeping import parts_of

    links: dict[str, list[str]] = {}
    sizes: dict[str, int] = {}
    for whole, _, _, stretch, target in lace.store.snapshot().query(RECORD_LINK, None, CHUNK_LINK):
        links.setdefault(whole, []).append(target)
        start, _, end = stretch.partition("..")
        sizes[target] = int(end) - int(start) if start.isdigit() and end.isdigit() else 0
    below = {str(entry.hash) for entry in lace.store.entries(*place)}
    nested = {part for parts in links.values() for part in parts if part in links}
    staying = (links.keys() - below - nested) | set(keep)
    needed = parts_of(staying, links)
    wanted = [RecordHash(part) for part in sorted(parts_of(below, links)) if part[0] == "B"]
    here = sorted(lace.store.present(wanted))
    free = [part for part in here if part not in needed]
    going = [part for part in free if all(part in one for one in held)]
    gone = {*map(str, going)}
    lost = [whole for whole in below - nested if not gone.isdisjoint(parts_of([whole], links))]
    size = sum(sizes[part] for part in going)
    return Freeable(tuple(going), size, len(lost), len(here) - len(free), len(free) - len(going))


def free(lace: Lace, found: Freeable, ask: Callable[[], Sequence[Collection[str]]]) -> int:
    """Remove what may go; how many parts went. The bytes leave the file with `lace compact`.

    One part goes first, and every peer is asked again. A peer that lacks it now serves this very lace, so what it says
    that it has is nowhere else: the part comes back, and nothing is freed.
    """
    if not found.parts:
        return 0
    probe = found.parts[0]
    stored = lace.store.get(probe)
    is_elsewhere = False
    lace.store.delete(probe)
    try:
        is_elsewhere = all(probe in one for one in ask())
    finally:
        if not is_elsewhere and stored is not None:
            lace.put_stored(stored)
    if not is_elsewhere:
        message = "a peer that was asked holds this very lace: freeing would remove the only copy"
        raise InvalidInput(message, rule="free-itself", found=probe)
    return lace.store.delete(*found.parts[1:]) + 1
