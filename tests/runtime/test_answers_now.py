"""Answers without waiting are the answers: a link whose host gives them sends the bytes of one that always waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlace.pair import ALL, blob, config_of, group_module, plex
from lace.interlace import effects as asked
from lace.interlace import inputs
from lace.interlace.claims.advertisement import Advertisement
from lace.interlace.host import Call, Loaded, NotNow
from lace.interlace.inputs import LocalChanged
from lace.interlace.setup.terms import Terms
from lace.policy.operand import Module
from lace.policy.select import telling
from lace.records.validate import validate
from lace.runtime.host.host import LocalHost
from lace.runtime.host.recentbodies import RecentBodies
from lace.runtime.rules.followedset import NO_CLAIMS, SharedSet
from lace.runtime.rules.policybook import PolicyBook
from lace.store.base import RecordStore, StoreCursor
from lace.store.memory import MemoryStore
from runtime.memory_link import End, MemoryLink
from runtime.test_host_contract import RUNTIME
from tries import tries

RECORDS = [validate(plex(f"n/{n}", group="u" if n % 3 else "v")) for n in range(9)]
RECORDS += [validate(blob(b"%d" % n)) for n in range(3)]
MODULES = {"all": ALL, "a group": group_module("u"), "all, told with a field": telling(ALL, ["Name"])}
STEP = st.tuples(st.sampled_from([0, 1]), st.booleans(), st.sets(st.sampled_from(range(len(RECORDS))), max_size=3))


class Watched(LocalHost):
    """A host that counts what it answered without waiting, or that is never asked so."""

    def __init__(self, *given: Any, bodies: RecentBodies, seen: Counter[str] | None, **options: Any) -> None:
        super().__init__(*given, bodies=bodies, **options)
        self._seen = seen

    @property
    def answers_now(self) -> bool:
        return self._seen is not None

    def _count(self, effect: object, call: Call) -> None:
        if self._seen is not None and not call.may_wait:
            self._seen[type(effect).__name__] += 1

    def evaluate(self, wanted: asked.Evaluate, call: Call) -> inputs.Evaluated:
        found = super().evaluate(wanted, call)
        self._count(wanted, call)
        return found

    def measure(self, wanted: asked.Measure, call: Call) -> inputs.Measured:
        found = super().measure(wanted, call)
        self._count(wanted, call)
        return found

    def take_difference(self, wanted: asked.TakeDifference | asked.TakeChange, call: Call) -> inputs.DifferenceTaken:
        found = super().take_difference(wanted, call)
        self._count(wanted, call)
        return found

    def list(self, wanted: asked.SendListing, call: Call) -> Iterator[Sequence[Advertisement]]:
        yield from super().list(wanted, call)
        self._count(wanted, call)

    def load(self, wanted: asked.SendRecords, call: Call) -> Iterator[Loaded]:
        yield from super().load(wanted, call)
        self._count(wanted, call)


class Hub:
    """A server of some links over one store, and what was sent on each of them."""

    def __init__(self, module: Module, held: list[set[int]], *, quick: bool, links: int = 2) -> None:
        self.seen: Counter[str] = Counter()
        self.server = MemoryStore()
        self.server.put([RECORDS[n] for n in sorted(held[0])])
        policies, bodies = PolicyBook(), RecentBodies(self.server)

        def make(store: RecordStore, terms: Terms) -> LocalHost:
            return Watched(store, terms, policies=policies, bodies=bodies, seen=self.seen if quick else None)

        self.links = []
        for number in range(links):
            near = MemoryStore()
            near.put([RECORDS[n] for n in sorted(held[1])])
            options: dict[str, Any] = {"is_open": True, "min_compared": 1}
            ends = [
                End(config_of(0, module, salt=10 + number, **options), near, LocalHost),
                End(config_of(1, salt=20 + number, **options), self.server, make),
            ]
            self.links.append(MemoryLink(ends))
            self.links[-1].run()

    def step(self, side: int, is_put: bool, which: set[int]) -> None:
        store = self.server if side else self.links[0].ends[0].store
        records = [RECORDS[n] for n in sorted(which)]
        if is_put:
            store.put(records)
        else:
            store.delete(*(record.hash for record in records))
        self.settle()

    def settle(self) -> None:
        """Tell everybody until nobody sends any more."""
        before = -1
        while before != (before := sum(len(end.sent) for link in self.links for end in link.ends)):
            for link in self.links:
                for end in link.ends:
                    end.session.answer(LocalChanged(), link.now_ns)
                while [True for index, end in enumerate(link.ends) if link.step(end, link.ends[1 - index])]:
                    pass

    @property
    def sent(self) -> list[bytes]:
        return [bytes(end.sent) for link in self.links for end in link.ends]

    @property
    def held(self) -> list[set[str]]:
        return [end.have for link in self.links for end in link.ends]


@pytest.mark.long
@pytest.mark.parametrize("name", MODULES)
@tries(12)
@given(
    held=st.lists(st.sets(st.sampled_from(range(len(RECORDS)))), min_size=2, max_size=2),
    steps=st.lists(STEP, max_size=4),
)
def test_a_link_with_quick_answers_sends_the_same_bytes(
    name: str, held: list[set[int]], steps: list[tuple[int, bool, set[int]]]
) -> None:
    quick, plain = (Hub(MODULES[name], held, quick=is_quick) for is_quick in (True, False))
    for step in steps:
        quick.step(*step)
        plain.step(*step)
    assert quick.sent == plain.sent
    assert quick.held == plain.held


def test_one_new_record_asks_the_second_link_nothing_that_takes_long() -> None:
    hub = Hub(ALL, [{0, 1, 2}, {0, 1, 2}], quick=True, links=3)
    hub.seen.clear()
    hub.step(1, True, {5})
    assert all(str(RECORDS[5].hash) in held for held in hub.held)
    assert hub.seen["SendListing"] == 3  # nothing has to be read to say the ids of records
    assert hub.seen["SendRecords"] == 2  # all but the first link
    assert min(hub.seen[one] for one in ("Evaluate", "Measure", "TakeChange", "TakeDifference")) >= 2


def test_bytes_that_were_sent_are_forgotten_when_the_store_changes() -> None:
    store = MemoryStore()
    store.put(RECORDS[:2])
    bodies, first = RecentBodies(store, max_records=2), str(RECORDS[0].hash)
    moment = bodies.moment
    bodies.note(moment, [(first, RECORDS[0].stored), ("gone", None)])
    assert bodies.get([first]) == [RECORDS[0].stored]
    assert bodies.get([first, "gone"]) is None
    store.delete(RECORDS[0].hash)
    assert bodies.get([first]) is None
    bodies.note(moment, [(first, RECORDS[0].stored)])  # read before it went
    assert bodies.get([first]) is None


def test_bytes_that_were_sent_are_few() -> None:
    store = MemoryStore()
    bodies = RecentBodies(store, max_records=2, max_bytes=10)
    bodies.note(bodies.moment, [("a", b"12345"), ("b", b"123456"), ("c", b"1")])
    assert bodies.get(["a"]) is None  # it came first, and both are too long
    assert bodies.get(["b", "c"]) == [b"123456", b"1"]
    bodies.note(bodies.moment, [("d", b"1"), ("e", bytes(11))])
    assert bodies.get(["b"]) is None
    assert bodies.get(["c", "d"]) == [b"1", b"1"]
    assert bodies.get(["e"]) is None


def test_bytes_that_were_sent_stay_while_others_come() -> None:
    store = MemoryStore()
    store.put(RECORDS[:1])
    bodies, first = RecentBodies(store), str(RECORDS[0].hash)
    bodies.note(bodies.moment, [(first, RECORDS[0].stored)])
    store.put(RECORDS[1:3])
    assert bodies.get([first]) == [RECORDS[0].stored]
    store.news.notice(StoreCursor(9, 0))  # by another process: it may have removed something too
    assert bodies.get([first]) is None


def test_a_set_that_the_store_has_left_behind_is_not_told_now() -> None:
    hub = Hub(ALL, [{0, 1, 2}, {0, 1, 2}], quick=True, links=1)
    sends = hub.links[0].ends[1].host.shared
    assert isinstance(sends, SharedSet)

    def now() -> int:
        return len(sends.current(RUNTIME, NO_CLAIMS, Call(may_wait=False)))

    known = now()
    hub.server.put([RECORDS[7]])
    with pytest.raises(NotNow):
        now()
    sends.refresh(Call())
    assert now() == known + 1
