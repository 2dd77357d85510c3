"""What has to be done so that a folder and its lace agree: a function of three trees.

Rule: pure. Each step is safe by itself, in any order, done twice or left out: a plan made afterwards finishes the work.
The invariants stand where they are kept; `tests/folder/test_planner.py` generates trees against them.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from lace.folder.trees import Disk, Item, ShownItem, Tree
from lace.records.fileform import FileKind


class Do(StrEnum):
    """What a step does."""

    AGREE = "agree"  # note that both sides are the same
    TAKE = "take"  # store what is on disk as a version
    RETRACT = "retract"  # store that it is gone
    WRITE = "write"  # bring the disk to what the lace shows
    REMOVE = "remove"  # from the disk
    BLOCKED = "blocked"  # nothing: a person has to move something


class FolderStep(NamedTuple):
    """One step. Whoever takes it makes sure first that the disk holds `found`."""

    do: Do
    name: str
    found: Item | None = None  # on disk
    shown: ShownItem | None = None  # what the lace shows, and after AGREE or WRITE what both do
    bases: tuple[str, ...] = ()  # of a version that is stored


def plan(lace: Tree, disk: Disk, agreed: Tree) -> list[FolderStep]:
    """The steps, removals first and those below before those above."""
    resolved = _resolved(lace, disk, agreed)
    steps = [
        step
        for name in sorted(lace.keys() | disk.keys() | agreed.keys())
        if (step := _step(name, lace.get(name), disk.get(name), agreed.get(name), resolved.get(name, ()))) is not None
    ]
    return sorted(_in_shape(steps, disk), key=_order)


def _step(
    name: str, shown: ShownItem | None, found: Item | None, last: ShownItem | None, also: tuple[str, ...]
) -> FolderStep | None:
    """What one path needs."""
    here = shown.item if shown else None
    before = last.item if last else None
    bases = (*(last.versions if last else ()), *also)
    if (also and found != before) or (also and here == before):  # somebody removed what was beside it: that settles it
        return FolderStep(Do.TAKE if found else Do.RETRACT, name, found, shown, bases)
    if shown is not None and shown.is_withdrawn and found == here:
        return FolderStep(Do.TAKE, name, found, shown, shown.versions)  # say once more what outlives the deletion
    if found == here:
        # Invariant: an agreement names only what both sides hold.
        return None if shown == last else FolderStep(Do.AGREE, name, found, shown)
    if found == before:
        # Invariant: what is removed or replaced on disk is what was agreed, so the lace holds it.
        return FolderStep(Do.WRITE if shown else Do.REMOVE, name, found, shown)
    if last is not None and last.beside and found is None:
        if shown is None:
            return FolderStep(Do.AGREE, name, None, None)
        # What was beside a contested file is removed: that file is resolved instead. What somebody made of it meanwhile
        # is a file of its own, whose removal nobody meant.
        return None if shown.beside else FolderStep(Do.WRITE, name, None, shown)
    if found is None and here == before:
        # Invariant: only what was agreed, and has not changed in the lace since, is retracted.
        return FolderStep(Do.RETRACT, name, None, shown, bases)
    if found is None:
        return FolderStep(Do.WRITE, name, None, shown)  # an edit outlives a deletion that did not know it
    # Invariant: bytes that only the disk has are stored before anything else; a version names what it was made from, so
    # that a change made elsewhere meanwhile stays beside it.
    is_own = last is None or bool(last.beside)
    return FolderStep(Do.TAKE, name, found, shown, () if is_own else bases)


def _resolved(lace: Tree, disk: Disk, agreed: Tree) -> dict[str, tuple[str, ...]]:
    """For each contested file the heads that somebody looked at and removed."""
    found: dict[str, tuple[str, ...]] = {}
    for name, last in agreed.items():
        shown = lace.get(name)
        if last.beside and name not in disk and shown and (shown.item, shown.beside) == (last.item, last.beside):
            found[last.beside] = (*found.get(last.beside, ()), *shown.versions)
    return found


def _in_shape(steps: list[FolderStep], disk: Disk) -> Iterator[FolderStep]:
    """The steps, those blocked that would need a file to be a folder as well."""
    gone = {step.name for step in steps if step.do is Do.REMOVE}
    files = {name for name, item in disk.items() if item.kind is not FileKind.FOLDER} - gone
    folders = {above for name in disk.keys() - gone for above in above_of(name)}
    for step in steps:
        if step.do is Do.WRITE and step.shown is not None:
            is_file = step.shown.item.kind is not FileKind.FOLDER
            if not files.isdisjoint(above_of(step.name)) or (is_file and step.name in folders):
                # Invariant: of two that cannot be beside each other, the one on disk stays.
                yield step._replace(do=Do.BLOCKED)
                continue
            folders.update(above_of(step.name))
            if is_file:
                files.add(step.name)
        yield step


def above_of(name: str) -> Iterator[str]:
    """The folders that a path leads through.

    >>> list(above_of("a/b/c"))
    ['a', 'a/b']
    """
    at = name.find("/")
    while at >= 0:
        yield name[:at]
        at = name.find("/", at + 1)


def _order(step: FolderStep) -> tuple[int, int, str]:
    return (_TURN[step.do], -step.name.count("/") if step.do is Do.REMOVE else 0, step.name)


_TURN = {Do.AGREE: 0, Do.TAKE: 1, Do.RETRACT: 2, Do.REMOVE: 3, Do.WRITE: 4, Do.BLOCKED: 5}
