"""The file and the memory store under one random life: they must never tell different stories."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from lace.datalog.language.syntax import Fact
from lace.datalog.source import ColumnSource
from lace.facts.derive import derive_facts
from lace.facts.predicates import FIELD, RECORD_PREDICATES
from lace.limits import StoreLimits
from lace.records.validate import ValidRecord
from lace.store import MemoryStore, StoreCursor, open_store
from store.samples import assortment, blob, plex, seal
from tries import tries

POOL: tuple[ValidRecord, ...] = (
    *assortment(),
    *(plex(f"pool/{n % 5}", at=n, headers=((f"H-{n % 3}", str(n)), (f"H-{n % 3}", "0"))) for n in range(12)),
    *(seal(f"pool/{n}", key=n % 2, app=f"app{n % 2}") for n in range(6)),
    *(blob(bytes([n])) for n in range(6)),
)
BY_HASH = {record.hash: record for record in POOL}
some_records = st.lists(st.sampled_from(POOL), max_size=9)
LIMITS = StoreLimits(max_kept_removals=3)


def facts(source: ColumnSource) -> Counter[Fact]:
    return Counter(Fact(predicate, row) for predicate in RECORD_PREDICATES for row in source.iterate(predicate))


class Twins(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.file = open_store(self.folder / "a.lace", create=True, limits=LIMITS)
        self.memory = MemoryStore(max_kept_removals=LIMITS.max_kept_removals)
        self.cursors = [StoreCursor()]

    def teardown(self) -> None:
        assert self.file.check_integrity() == []
        self.file.close()
        shutil.rmtree(self.folder)

    @rule(records=some_records)
    def put(self, records: list[ValidRecord]) -> None:
        assert self.file.put(records) == self.memory.put(records)

    @rule(records=some_records)
    def put_one_by_one(self, records: list[ValidRecord]) -> None:
        for record in records:
            assert self.file.put([record]) == self.memory.put([record])

    @rule(records=some_records)
    def delete(self, records: list[ValidRecord]) -> None:
        hashes = [record.hash for record in records]
        assert self.file.delete(*hashes) == self.memory.delete(*hashes)

    @rule()
    def reopen(self) -> None:
        self.file.close()
        self.file = open_store(self.folder / "a.lace", limits=LIMITS)

    @rule()
    def remember(self) -> None:
        assert self.file.cursor() == self.memory.cursor()
        self.cursors.append(self.file.cursor())

    @rule(data=st.data())
    def follow(self, data: st.DataObject) -> None:
        since = data.draw(st.sampled_from(self.cursors))
        ours, theirs = self.file.changes(since), self.memory.changes(since)
        assert (ours is None) == (theirs is None)
        if ours is not None and theirs is not None:
            assert facts(ours.added) == facts(theirs.added)
            assert facts(ours.removed) == facts(theirs.removed)
            assert set(ours.added_records) == set(theirs.added_records)
            assert ours.cursor == theirs.cursor

    @rule(record=st.sampled_from(POOL))
    def get(self, record: ValidRecord) -> None:
        assert self.file.get(record.hash) == self.memory.get(record.hash)
        assert self.file.have(record.hash) == self.memory.have(record.hash)

    @precondition(lambda self: self.memory.high_water() > 0)
    @rule(record=st.sampled_from(POOL), position=st.integers(0, 3))
    def query(self, record: ValidRecord, position: int) -> None:
        row = next(fact.values for fact in derive_facts(record) if fact.predicate == FIELD)
        pattern = [None] * position + [row[position]]
        ours, theirs = self.file.snapshot(), self.memory.snapshot()
        assert set(ours.query(FIELD, *pattern)) == set(theirs.query(FIELD, *pattern))

    @invariant()
    def same_facts_same_lists(self) -> None:
        ours, theirs = self.file.snapshot(), self.memory.snapshot()
        assert facts(ours) == facts(theirs)
        assert list(self.file.records_since()) == list(self.memory.records_since())
        assert list(self.file.entries()) == list(self.memory.entries())
        assert self.file.stat().records == self.memory.stat().records


TestTwins = Twins.TestCase
TestTwins.settings = tries(15, stateful_step_count=25)
