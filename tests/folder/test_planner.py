"""The planner over generated trees: two folders over two laces that exchange, each perturbed twice, steps in any order.

What must hold: both folders end equal in few rounds, except for what is blocked by name; and nothing that was ever in
one of them is lost: each content that somebody wrote is a version in both laces.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from random import Random

import pytest

from lace.folder.contested import KnownVersion, shown_of
from lace.folder.planner import Do, FolderStep, above_of, plan
from lace.folder.trees import Item, ShownItem
from lace.records.fileform import FileKind

NAMES = ("a", "b", "d/x", "d/y", "d/e/z", "d", "b/q")
ROUNDS = 12


@dataclass
class Site:
    """A folder, its lace and what was agreed between them."""

    number: int
    random: Random
    history: dict[str, dict[str, KnownVersion]] = field(default_factory=dict)
    disk: dict[str, Item] = field(default_factory=dict)
    agreed: dict[str, ShownItem] = field(default_factory=dict)
    time: int = 1_640_995_200
    written: int = 0

    def lace(self) -> dict[str, ShownItem]:
        shown: dict[str, ShownItem] = {}
        for name, versions in self.history.items():
            found = shown_of(name, versions.values())
            shown |= {at: one for at, one in found.items() if not one.beside or at not in self.history}
        return shown

    def store(self, name: str, item: Item | None, bases: tuple[str, ...]) -> str:
        self.written += 1
        known = self.history.setdefault(name, {})
        self.time = max([self.time, *(int(known[base].tai[:10]) for base in bases if base in known)]) + 1
        made = KnownVersion(
            f"P.{self.number}{self.written:06}", f"{self.time}:000000000", f"V.{self.number}" + "x" * 8, bases, item
        )
        known[made.hash] = made
        return made.hash

    def take(self, step: FolderStep) -> None:
        """As the engine does: each step makes sure first that the disk holds what the plan saw."""
        name = step.name
        if self.disk.get(name) != step.found and step.do is not Do.BLOCKED:
            return
        if step.do is Do.AGREE:
            self.agree(name, step.shown)
        elif step.do is Do.TAKE:
            assert step.found is not None
            self.agree(name, ShownItem(step.found, (self.store(name, step.found, step.bases),)))
        elif step.do is Do.RETRACT:
            self.store(name, None, step.bases)
            self.agree(name, None)
        elif step.do is Do.REMOVE:
            self.discard(name)
            self.agree(name, None)
        elif step.do is Do.WRITE:
            assert step.shown is not None
            if step.found is not None:
                self.discard(name)
            if any(above in self.disk and self.disk[above].kind is not FileKind.FOLDER for above in above_of(name)):
                return
            if any(other.startswith(f"{name}/") for other in self.disk) and step.shown.item.kind is not FileKind.FOLDER:
                return
            self.disk[name] = step.shown.item
            self.agree(name, step.shown)

    def discard(self, name: str) -> None:
        """No byte leaves the disk that the lace does not hold."""
        item = self.disk.pop(name)
        assert any(item == version.meaning for all_of in self.history.values() for version in all_of.values())

    def agree(self, name: str, shown: ShownItem | None) -> None:
        if shown is None:
            self.agreed.pop(name, None)
        else:
            self.agreed[name] = shown

    def scan(self) -> dict[str, Item]:
        """A folder is listed only while it is empty, as a scan finds it."""
        full = {above for name in self.disk for above in above_of(name)}
        return {name: item for name, item in self.disk.items() if not (item.kind is FileKind.FOLDER and name in full)}

    def edit(self) -> None:
        """Somebody does something in the folder."""
        random = self.random
        if self.disk and random.random() < 0.45:
            gone = random.choice(sorted(self.disk))
            item = self.disk.pop(gone)
            if random.random() < 0.3:
                self.create(random.choice(NAMES), item)
            return
        number = random.randrange(4)
        kind = FileKind.FOLDER if number == 3 and random.random() < 0.5 else FileKind.FILE
        self.create(random.choice([*NAMES, *self.disk]), Item("" if kind is FileKind.FOLDER else f"c{number}", kind))

    def create(self, name: str, item: Item) -> None:
        for other, there in list(self.disk.items()):
            is_below = other.startswith(f"{name}/") and item.kind is not FileKind.FOLDER
            if is_below or (name.startswith(f"{other}/") and there.kind is not FileKind.FOLDER):
                del self.disk[other]
        self.disk[name] = item

    def round(self) -> list[FolderStep]:
        disk = self.scan()
        self.disk = dict(disk)
        steps = plan(self.lace(), disk, self.agreed)
        done = list(steps)
        if self.random.random() < 0.3:
            self.random.shuffle(done)
        if self.random.random() < 0.2:
            done = done[: self.random.randrange(len(done) + 1)]  # a crash
        for step in done:
            self.take(step)
            if self.random.random() < 0.1:
                self.take(step)
        return [step for step in steps if step.do is not Do.BLOCKED] + [step for step in steps if step.do is Do.BLOCKED]


def exchange(one: Site, other: Site) -> None:
    for name in one.history.keys() | other.history.keys():
        both = one.history.get(name, {}) | other.history.get(name, {})
        one.history[name], other.history[name] = dict(both), dict(both)


def run(seed: int) -> None:
    random = Random(seed)
    sites = [Site(number, random) for number in (1, 2)]
    for _ in range(2):
        for site in sites:
            for _ in range(random.randrange(4)):
                site.edit()
            if random.random() < 0.7:
                site.round()
        if random.random() < 0.8:
            exchange(*sites)
    seen = {item for site in sites for item in site.scan().values() if item.kind is FileKind.FILE}
    quiet, rounds = 0, 0
    while quiet < 2:
        rounds += 1
        assert rounds < ROUNDS * 3, f"seed {seed}: not at rest"
        worked = [step for site in sites for step in site.round() if step.do is not Do.BLOCKED]
        before = [len(versions) for versions in sites[0].history.values()]
        exchange(*sites)
        moved = before != [len(versions) for versions in sites[0].history.values()]
        quiet = quiet + 1 if not worked and not moved else 0
    blocked = {step.name for site in sites for step in plan(site.lace(), site.scan(), site.agreed)}
    one, other = (site.scan() for site in sites)
    differ = {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)}
    assert all(
        name in blocked
        or any(above in blocked for above in above_of(name))
        or any(b.startswith(f"{name}/") for b in blocked)
        for name in differ
    ), f"seed {seed}: {differ}, {blocked}"
    held = {version.meaning for site in sites for all_of in site.history.values() for version in all_of.values()}
    assert seen <= held | {None}, f"seed {seed}"
    for site in sites:
        for name, shown in site.lace().items():
            at = site.disk.get(name)
            assert at == shown.item or name in blocked or shown.item.kind is FileKind.FOLDER, f"seed {seed}: {name}"


SHARE = 4_000  # seeds of one test
FIRST = int(os.environ.get("LACE_SEED", "0"))


@pytest.mark.parametrize("share", range(5))
def test_two_folders_end_equal_and_lose_nothing(share: int) -> None:
    for seed in range(FIRST + share * SHARE, FIRST + (share + 1) * SHARE):
        run(seed)


def rest(*sites: Site) -> None:
    for _ in range(6):
        for site in sites:
            site.disk = site.scan()
            for step in plan(site.lace(), site.disk, site.agreed):
                site.take(step)
        if len(sites) == 2:
            exchange(*sites)


def test_where_one_side_alone_works_the_other_becomes_the_same_without_a_conflict() -> None:
    for seed in range(2_000):
        worker, follower = (Site(number, Random(seed)) for number in (1, 2))
        for _ in range(3):
            for _ in range(3):
                worker.edit()
            expected = worker.scan()
            rest(worker, follower)
            assert worker.scan() == follower.scan() == expected, f"seed {seed}"


def contest() -> tuple[Site, Site, str]:
    """Two who changed one file at once, and the name of what is beside it."""
    one, other = (Site(number, Random(number)) for number in (1, 2))
    one.disk["a"] = Item("base")
    rest(one, other)
    one.disk["a"], other.disk["a"] = Item("mine"), Item("theirs")
    rest(one, other)
    assert one.disk == other.disk
    assert set(one.disk.values()) == {Item("mine"), Item("theirs")}
    (beside,) = one.disk.keys() - {"a"}
    return one, other, beside


@pytest.mark.clause("082-HEAD-04")
@pytest.mark.parametrize("also_edits", [False, True])
def test_removing_what_is_beside_a_file_settles_the_conflict_everywhere(also_edits: bool) -> None:
    one, other, beside = contest()
    del other.disk[beside]
    if also_edits:
        other.disk["a"] = Item("both")
    expected = {"a": other.disk["a"]}
    rest(one, other)
    assert one.disk == other.disk == expected
    assert [shown.beside for shown in one.lace().values()] == [""]


def test_editing_a_contested_file_keeps_the_other_version_in_sight() -> None:
    one, other, beside = contest()
    hidden = one.disk[beside]
    one.disk["a"] = Item("more")
    rest(one, other)
    assert one.disk == other.disk
    assert set(one.disk.values()) == {Item("more"), hidden}


def test_removing_both_versions_removes_the_file() -> None:
    one, other, beside = contest()
    del one.disk["a"], one.disk[beside]
    rest(one, other)
    assert one.disk == other.disk == {}


def test_what_somebody_makes_of_the_file_beside_is_a_file_of_its_own() -> None:
    one, other, beside = contest()
    one.disk[beside] = Item("notes on it")
    rest(one, other)
    assert one.disk == other.disk
    assert one.disk[beside] == Item("notes on it")


def test_what_somebody_makes_of_the_file_beside_outlives_its_removal_elsewhere() -> None:
    one, other, beside = contest()
    one.disk[beside] = Item("notes on it")
    del other.disk[beside]
    rest(one, other)
    assert one.disk == other.disk
    assert one.disk[beside] == Item("notes on it")


@pytest.mark.clause("082-HEAD-03")
def test_an_edit_outlives_a_deletion_and_is_the_newest_version_again() -> None:
    one, other = (Site(number, Random(number)) for number in (1, 2))
    one.disk["a"] = Item("base")
    rest(one, other)
    one.disk["a"] = Item("edit")
    one.take(plan(one.lace(), one.disk, one.agreed)[0])
    other.time += 100
    del other.disk["a"]
    other.take(plan(other.lace(), other.disk, other.agreed)[0])
    exchange(one, other)
    rest(one, other)
    assert one.disk == other.disk == {"a": Item("edit")}
    assert max(one.history["a"].values(), key=lambda version: version.tai).meaning == Item("edit")
