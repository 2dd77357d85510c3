"""What a store must hold after its process was killed, by what that process said."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from functools import cache
from pathlib import Path

from kills.plays import NUMBERS
from lace import backup, compact, repair, restore
from lace.datalog.language.syntax import Predicate
from lace.datalog.source import Row
from lace.errors import LaceError
from lace.facts.derive import derive_facts
from lace.facts.predicates import RECORD_PREDICATES
from lace.records.validate import validate
from lace.store import SQLiteStore, open_store
from lace.store.base import RecordStore


class Ledger:
    """What is known of a store's content over any number of kills."""

    def __init__(self) -> None:
        self._stored: set[int] = set()
        self.acknowledged = 0

    def hear(self, said: bytes) -> tuple[set[int], str]:
        """Take over what a process said; the change that was under way when it died, if it had begun one."""
        pending: set[int] = set()
        sign = ""
        for line in said.decode().split("\n")[:-1]:  # the last line is whole: a write to a pipe is
            word, numbers = line.rstrip("0123456789,"), line.lstrip("?+-")
            named = set(map(int, numbers.split(",")))
            if word.startswith("?"):
                pending, sign = named, word[1:]
                continue
            self.acknowledged += len(named)
            self._stored = self._stored | named if word == "+" else self._stored - named
            pending, sign = set(), ""
        return pending, sign

    def judge(self, path: Path, pending: set[int], sign: str, *, announces: bool) -> list[str]:
        """Everything that is wrong with a store; where stores are not announced, one batch may have come unsaid."""
        if not path.exists() and announces:
            with suppress(LaceError):
                repair(path)  # killed while it was put aside
        if not path.exists():
            return ["there is no store, and something was acknowledged"] if self.acknowledged else []
        try:
            with open_store(path, create=not self.acknowledged) as store:  # killed while it was made
                problems = _whole(store)
                held = {NUMBERS[record] for _, record in store.records_since()}
        except LaceError as error:
            return [str(error)]
        lost = self._stored - held - (pending if sign == "-" else set())
        came = held - self._stored - (pending if sign == "+" else set())
        if lost:
            problems.append(f"acknowledged and lost: {sorted(lost)[:5]}")
        if came and announces:
            problems.append(f"there, and nobody put them or they were removed: {sorted(came)[:5]}")
        if 0 < len(pending & held) < len(pending):
            problems.append(f"half of a change: {len(pending & held)} of {len(pending)}")
        self._stored = held
        return problems


def judge_upkeep(folder: Path) -> list[str]:
    """What is wrong with the copies beside a.lace, and with what is left there once upkeep was done again."""
    problems = []
    for path in (*folder.glob("b.lace"), *folder.glob("c*.lace")):
        try:
            with open_store(path) as store:
                problems += [f"{path.name}: {problem}" for problem in _whole(store)]
        except LaceError as error:
            problems.append(str(error))
        if path.name != "b.lace":
            for file in folder.glob(f"{path.name}*"):
                file.unlink()
    if (folder / "a.lace").exists():
        try:
            compact(folder / "a.lace")
            backup(folder / "a.lace", folder / "b.lace", replace=True)
            restore(folder / "b.lace", folder / "c.lace")
            (folder / "c.lace").unlink()
        except LaceError as error:
            problems.append(f"upkeep cannot be done again: {error}")
        left = [file.name for file in folder.iterdir() if file.name.startswith((".a.lace", ".b.lace", ".c.lace"))]
        problems += [f"left behind: {name}" for name in left]
    for file in folder.glob("*.damaged*"):
        file.unlink()
    return problems


def _whole(store: RecordStore) -> list[str]:
    """020-FACT-01: every visible record is valid, and its facts are those of its bytes."""
    assert isinstance(store, SQLiteStore)
    problems = store.check_integrity()
    snapshot = store.snapshot()
    facts = Counter((predicate, row) for predicate in RECORD_PREDICATES for row in snapshot.iterate(predicate))
    if facts != Counter(fact for _, body in store.bodies_since() for fact in _facts_of(bytes(body))):
        problems.append("facts are not those of the records")
    return problems


@cache
def _facts_of(body: bytes) -> tuple[tuple[Predicate, Row], ...]:
    """By the bytes alone: the same few hundred are looked at after each kill."""
    return tuple((fact.predicate, fact.values) for fact in derive_facts(validate(body)))
