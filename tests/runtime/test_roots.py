"""Remembered roots are those that would be worked out, and are worked out again only for what changed."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlace.pair import EXPOSE_ALL, START_NS, blob
from lace.interlace.advertisement import Advertisement, FieldClaim
from lace.interlace.config import MachineConfig
from lace.interlace.effects import Summarise
from lace.interlace.inputs import Summarised
from lace.interlace.partitions import Parts, summarise
from lace.notation.digest import digest
from lace.notation.identifiers import RecordHash
from lace.policy.select import select_all
from lace.records.validate import validate
from lace.runtime.evaluate import StoreEvaluator
from lace.runtime.rehearsal import rehearse
from lace.runtime.roots import RememberedRoots
from lace.store.memory import MemoryStore
from runtime.memory_link import End, MemoryLink

LONGEST = 1024
CLAIMS = [
    Advertisement(RecordHash.of("S", digest(bytes([number]))), (FieldClaim("Name", "0", "x"),) if number % 2 else ())
    for number in range(12)
]


class Counted:
    """Works roots out, and remembers for whom."""

    def __init__(self, pause_s: float = 0) -> None:
        self.asked: list[Summarise] = []
        self._pause_s = pause_s

    def __call__(self, effect: Summarise) -> Summarised:
        self.asked.append(effect)
        time.sleep(self._pause_s)
        return Summarised(summarise(effect.parts, effect.source, effect.max_line_bytes))

    @property
    def claims(self) -> int:
        return sum(len(claims) for effect in self.asked for claims in effect.parts.values())


def ask(roots: RememberedRoots, parts: Parts, source: str = "Opq_a", longest: int = LONGEST) -> None:
    found = roots.summarise(Summarise(source=source, parts=parts, max_line_bytes=longest))
    assert list(found.partitions) == summarise(parts, source, longest)


PARTS = st.dictionaries(st.sampled_from(["aa", "bb", "cc"]), st.lists(st.sampled_from(CLAIMS), max_size=4, unique=True))


@given(
    st.lists(st.tuples(PARTS, st.sampled_from(["Opq_a", "Opq_b"]), st.sampled_from([80, LONGEST])), max_size=8),
    st.integers(0, 12),
)
def test_the_same_roots_whatever_was_asked_before(asked: list[tuple[Parts, str, int]], most: int) -> None:
    roots = RememberedRoots(Counted(), most)
    for parts, source, longest in asked:
        ask(roots, parts, source, longest)


def test_only_what_changed_is_worked_out_again() -> None:
    counted = Counted()
    roots = RememberedRoots(counted, max_claims=100)
    parts = {"aa": CLAIMS[:3], "bb": CLAIMS[3:6]}
    ask(roots, parts)
    ask(roots, {prefix: list(claims) for prefix, claims in parts.items()})
    assert len(counted.asked) == 1
    ask(roots, {**parts, "bb": CLAIMS[3:7]})
    assert dict(counted.asked[1].parts) == {"bb": CLAIMS[3:7]}
    ask(roots, parts, source="Opq_b")  # the label is inside every digest
    ask(roots, parts, longest=80)
    assert counted.claims == 6 + 4 + 6 + 6


def test_the_label_that_was_not_asked_for_longest_is_forgotten_first() -> None:
    counted = Counted()
    roots = RememberedRoots(counted, max_claims=8)
    for source in ("Opq_a", "Opq_b", "Opq_a", "Opq_c"):
        ask(roots, {"aa": CLAIMS[:4]}, source)
    asked = len(counted.asked)
    ask(roots, {"aa": CLAIMS[:4]}, "Opq_a")
    assert len(counted.asked) == asked
    ask(roots, {"aa": CLAIMS[:4]}, "Opq_b")
    assert len(counted.asked) == asked + 1
    ask(roots, {"aa": CLAIMS[:9]}, "Opq_d")  # more than all that may be kept
    ask(roots, {"aa": CLAIMS[:9]}, "Opq_d")
    assert len(counted.asked) == asked + 3


def test_who_asks_for_the_same_meanwhile_waits_for_it() -> None:
    counted = Counted(pause_s=0.1)
    roots = RememberedRoots(counted, max_claims=100)
    begin = threading.Barrier(4)

    def one(_: int) -> None:
        begin.wait()
        ask(roots, {"aa": CLAIMS})

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(one, range(4)))
    assert len(counted.asked) == 1


@pytest.mark.parametrize("records", [0, 30])
def test_after_a_rehearsal_the_first_peer_waits_for_no_roots(records: int) -> None:
    counted = Counted()
    roots = RememberedRoots(counted, max_claims=100)
    options: dict[str, Any] = {"partition_threshold_bytes": 1, "max_claims_summarised_here": 0}
    ours = MachineConfig(index=1, module=select_all(), **options)
    store = MemoryStore()
    store.put([validate(blob(bytes([number]))) for number in range(records)])
    rehearse(ours, StoreEvaluator(store, EXPOSE_ALL), roots.summarise, START_NS, lambda: False)
    rehearsed = counted.claims
    assert rehearsed == 2 * records  # what we list, and what a peer lists that has it all
    near = End(MachineConfig(index=0, module=select_all(), **options), MemoryStore())
    far = End(ours, store)
    far.side.summarise = roots.summarise  # type: ignore[method-assign]
    MemoryLink([near, far]).run()
    assert near.outcome.is_complete
    assert len(near.have) == records
    assert counted.claims == rehearsed


def test_a_rehearsal_ends_when_it_is_told_to() -> None:
    counted = Counted()
    store = MemoryStore()
    store.put([validate(blob(b"one"))])
    config = MachineConfig(index=1, module=select_all(), max_claims_summarised_here=0)
    rehearse(config, StoreEvaluator(store, EXPOSE_ALL), counted, START_NS, lambda: True)
    assert counted.asked == []
