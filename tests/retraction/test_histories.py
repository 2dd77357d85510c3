"""Random histories: nothing that was forgotten comes back or stays in a file; equal records answer equally."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import lace as api
from lace.errors import InvalidInput
from lace.porcelain.exchange import interlace
from lace.records.keys import SigningKey
from lace.records.retraction import withdraws

KEYS = [None, SigningKey(bytes(31) + b"\x05"), SigningKey(bytes(31) + b"\x07")]
NAMES = "xyz"
STEPS = [*["put"] * 4, *["exchange"] * 4]
STEPS += ["retract", "one", "undo", "forget", "forget all", "backup", "restore", "import"]


@dataclass
class Holder:
    """A lace, and what it should hold."""

    path: Path
    lace: api.Lace
    held: set[str] = field(default_factory=set)
    forgotten: set[str] = field(default_factory=set)
    backups: list[tuple[Path, set[str]]] = field(default_factory=list)


class World:
    """Laces that people do things to, and a model of sets that says what each should hold."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.rng = random.Random(seed)
        self.tokens: dict[str, bytes] = {}  # of records with content
        self.known: dict[str, api.ValidRecord] = {}
        self.time = 1_700_000_000
        self.holders = [Holder(path, api.open(path, create=True)) for path in map(self._path, "abc")]

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}{self.rng.randrange(10**9)}.lace"

    def close(self) -> None:
        for one in self.holders:
            one.lace.close()

    def step(self, kind: str) -> None:
        one = self.rng.choice(self.holders)
        self.time += self.rng.choice([0, 1, 1, 2])
        tai = f"{self.time}:{self.rng.randrange(3):09}"
        name, sign = self.rng.choice(NAMES), self.rng.choice(KEYS)
        place = f"//club//notes//{name}"
        if kind == "put":
            token = f"token-{self.rng.getrandbits(96):024x}".encode()
            record = one.lace.put(token, group="club", app="notes", name=name, tai=tai, sign=sign)
            self.tokens[record] = token
            self._made(one, [record])
        elif kind in ("retract", "undo", "one"):
            target = self.rng.choice(sorted(one.held)) if kind == "one" and one.held else place
            try:
                work = one.lace.undo if kind == "undo" else one.lace.retract
                self._made(one, work(target, sign=sign, tai=tai if self.rng.random() < 0.5 else None))
            except (api.NotFound, InvalidInput):
                pass
        elif kind == "forget" and one.held:
            self._forget(one, [self.rng.choice(sorted(one.held))])
        elif kind == "forget all" and any(self.known[record].parts.name == name for record in one.held):
            self._forget(one, [place])
        elif kind == "exchange":
            other = self.rng.choice([each for each in self.holders if each is not one])
            self.exchange(one, other)
        elif kind == "backup":
            copy = self._path("copy")
            api.backup(one.path, copy)
            one.backups.append((copy, set(one.held)))
        elif kind == "restore" and one.backups:
            self._restore(one, *self.rng.choice(one.backups))
        elif kind == "import":
            bundle = self.folder / f"{self.rng.randrange(10**9)}.bundle"
            source = self.rng.choice(self.holders)
            source.lace.export(bundle)
            one.lace.import_(bundle)
            one.held |= source.held - one.forgotten

    def _made(self, one: Holder, records: list[str] | tuple[str, ...]) -> None:
        for record in records:
            self.known[record] = one.lace.record(record)
            one.held.add(record)

    def _forget(self, one: Holder, targets: list[str]) -> None:
        found = one.lace.forget(*targets)
        one.forgotten |= set(found.records)
        one.held -= set(found.records)

    def _restore(self, one: Holder, copy: Path, held: set[str]) -> None:
        """An old copy takes the place of a lace; what was forgotten since stays out."""
        one.lace.close()
        path = self._path("again")
        api.restore(copy, path, forgotten=sorted(one.forgotten))
        one.path, one.lace = path, api.open(path)
        one.held = held - one.forgotten
        one.forgotten = {*map(str, one.lace.forgotten())} | one.forgotten

    def exchange(self, one: Holder, other: Holder) -> None:
        interlace(one.lace, other.lace, expose="all")
        both = one.held | other.held
        one.held, other.held = both - one.forgotten, both - other.forgotten

    def expected_tips(self, held: set[str]) -> set[str]:
        """By the definition: the newest version that no newer version that counts withdraws."""
        tips = set()
        for name in NAMES:
            versions = [self.known[record] for record in held if self.known[record].parts.name == name]
            versions.sort(key=lambda record: (record.parts.tai, record.hash), reverse=True)
            counting: list[tuple[str, ...]] = []
            for record in versions:
                if any("all" in said or record.hash in said for said in counting):
                    continue
                if said := withdraws(record):
                    counting.append(said)
                else:
                    tips.add(record.hash)
                    break
        return tips

    def check(self) -> None:
        for one in self.holders:
            there = {str(record) for _, record in one.lace.store.records_since()}
            assert there == one.held
            assert not there & one.forgotten
            assert {row.hash for row in one.lace.list(tips=True)} == self.expected_tips(one.held)
            for name in NAMES:
                tips = list(one.lace.list(f"//club//notes//{name}", tips=True))
                assert [one.lace.tip(row.coordinate).entry.hash for row in tips] == [row.hash for row in tips]

    def check_bytes(self) -> None:
        for one in self.holders:
            one.lace.close()
            api.compact(one.path)
            files = [path for path in self.folder.iterdir() if path.name.startswith(one.path.name)]
            content = b"".join(path.read_bytes() for path in files)
            one.lace = api.open(one.path)
            for record, token in self.tokens.items():
                assert (token in content) == (record in one.held)
            assert list(one.lace.verify()) == []


def run(folder: Path, seed: int, steps: int = 30) -> World:
    world = World(folder, seed)
    for _ in range(steps):
        world.step(world.rng.choice(STEPS))
        world.check()
    for one in world.holders:  # everybody meets everybody, twice: nothing that was forgotten comes back
        for other in world.holders:
            if other is not one:
                world.exchange(one, other)
    world.check()
    world.check_bytes()
    world.check()
    return world


@pytest.mark.parametrize("seed", range(8))
def test_nothing_forgotten_comes_back_and_tips_are_what_is_defined(tmp_path: Path, seed: int) -> None:
    run(tmp_path, seed).close()


@pytest.mark.slow
@pytest.mark.parametrize("hundred", range(10))
def test_a_thousand_histories(tmp_path: Path, hundred: int) -> None:
    for seed in range(hundred * 100, hundred * 100 + 100):
        folder = tmp_path / str(seed)
        folder.mkdir()
        run(folder, 1_000 + seed).close()
        for path in folder.iterdir():
            path.unlink()
