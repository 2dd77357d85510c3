"""Two laces that differ only in records hidden from a peer behave the same toward it, byte for byte (020, 040, 050).

The peer is hostile: its operands are generated to tell hidden records apart by negation, counting, helpers, recursion
and constants. What it can observe are the bytes it gets, how the exchange ends, and how it is aborted.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from interlace.pair import config_of
from lace.errors import LaceError
from lace.limits import EngineLimits, ExchangeLimits
from lace.policy.exposure import Exposure
from lace.policy.operand import Module
from lace.policy.select import select_all
from lace.records.validate import validate
from lace.runtime.host.host import LocalHost
from lace.store.memory import MemoryStore
from runtime.memory_link import End, MemoryLink
from simulation.matter import UNIVERSE

SHOWN = [item for item in UNIVERSE if item.group in ("u", "v")]
HIDDEN = [item for item in UNIVERSE if item.group not in ("u", "v")]
EXPOSE = (
    Exposure.author(
        "AllowQueryRecord(V,P) :- Have(P), Field(P,'Group',_,'u').\n"
        "AllowQueryRecord(V,P) :- Have(P), Field(P,'Group',_,'v')."
    ),
)

ATOMS = [
    "Have(Q)", "Field(Q,'Group',_,'w')", "Field(Q,'App',_,'member')", "Field(Q,N,_,_), N != 'Group'",
    "BlobHash(Q,_)", "Field(Q,'Name',_,M), Field(P,'Name',_,M)", *(f"Have('{item.hash}')" for item in HIDDEN[:3]),
    *(f"Field('{item.hash}',_,_,_)" for item in HIDDEN[:2]), "Linked(P,Q)", "Many(P)", "Cardinality(Have(_),'>','{n}')",
    "Cardinality(Field(_,'Group',_,_),'<','{n}')", "not Have('{hidden}')", "not Hidden(P)",
    "Cardinality(Linked(P,_),'>=','{n}')",
]  # fmt: skip
HELPERS = (
    "Linked(P,Q) :- Field(P,'App',_,A), Field(Q,'App',_,A).\n"
    "Linked(P,R) :- Linked(P,Q), Field(Q,'Name',_,N), Field(R,'Name',_,N).\n"
    "Many(P) :- Have(P), Cardinality(Linked(P,_),'>','2').\nHidden(P) :- Have(P), not Field(P,'Group','0','u')."
)
# Limits that a peer's pairs pass and our own rules over all of our records do not: those are no secret of the rules,
# but a lace whose own selector passes a limit says so by aborting.
PEER_ONLY = (12, 25, 40)
CONSTANT = "SelectHave('{hidden}') :- true."


def hostile_operand(rng: random.Random) -> Module | None:
    """A selector that tries to let what is hidden show in what it selects; None if 040 refuses it."""

    def fill(text: str) -> str:
        return text.format(n=rng.randrange(8), hidden=rng.choice(HIDDEN).hash)

    have = [f"SelectHave(P) :- Have(P), {fill(rng.choice(ATOMS))}." for _ in range(rng.randint(1, 3))]
    advertised = [
        f"SelectAdvertised(P,S) :- Advertised(P,S), {fill(rng.choice(ATOMS))}." for _ in range(rng.randint(1, 2))
    ]
    extra = [fill(CONSTANT)] if rng.random() < 0.5 else []
    extra += ["SelectAdvertised(P,S) :- Advertised(P,S)."] if rng.random() < 0.5 else []
    try:
        return Module.author("\n".join([*have, *advertised, *extra, HELPERS]))
    except LaceError:
        return None


@dataclass
class Observed:
    """What the peer can see."""

    stream: bytes
    abort: str
    detail: str
    received: tuple[str, ...]


def observe(
    hidden: Sequence[object], operand: Module, theirs: Sequence[object], limits: EngineLimits, exchange: ExchangeLimits
) -> Observed:
    """Run an exchange of our lace, with these hidden records, against the peer's; what the peer sees."""
    own, other = MemoryStore(), MemoryStore()
    own.put([item.record for item in (*SHOWN, *hidden)])  # type: ignore[attr-defined]
    other.put([item.record for item in theirs])  # type: ignore[attr-defined]
    config = config_of(0, select_all(), exposures=EXPOSE, engine_limits=limits, limits=exchange)
    ours = End(config, own, LocalHost)
    peer = End(config_of(1, operand, exposures=EXPOSE, limits=exchange), other, LocalHost)
    MemoryLink([ours, peer]).run()
    outcome = ours.outcome
    return Observed(bytes(ours.sent), outcome.abort, outcome.detail, tuple(outcome.result.received_hashes))


@pytest.mark.clause("050-SEND-12", "050-INVAR-07", "050-ENG-06", "050-SEND-11")
@pytest.mark.parametrize("block", [*range(3), *(pytest.param(n, marks=pytest.mark.slow) for n in range(3, 8))])
@pytest.mark.long
def test_hidden_records_change_nothing_that_the_peer_can_see(block: int) -> None:
    tried = 0
    for seed in range(block * 12, block * 12 + 12):
        rng = random.Random(seed)
        operand = hostile_operand(rng)
        if operand is None:
            continue
        tried += 1
        # The peer advertises nothing hidden: a record it has itself is no secret from it.
        theirs = rng.sample(SHOWN, rng.randrange(len(SHOWN)))
        limits = rng.choice([EngineLimits(), EngineLimits(max_derived_facts_per_predicate=rng.choice(PEER_ONLY))])
        exchange = rng.choice([ExchangeLimits(), ExchangeLimits(max_advertisement_records_listed=2)])
        worlds = [(), HIDDEN, rng.sample(HIDDEN, 3)]
        seen = [observe(world, operand, theirs, limits, exchange) for world in worlds]
        assert seen[0] == seen[1] == seen[2], f"seed {seed}: {operand.text}"
    assert tried >= 4


def test_the_same_experiment_does_find_a_leak_when_the_hidden_records_are_shown() -> None:
    """Without the view the worlds differ: the experiment can fail."""
    operand = Module.author(
        "SelectHave(P) :- Have(P), Have(Q), Field(Q,'Group',_,'w').\nSelectAdvertised(P,S) :- Advertised(P,S)."
    )
    everything = Exposure.author("AllowQueryRecord(V,P) :- Have(P).")
    streams = []
    for world in ((), HIDDEN):
        own = MemoryStore()
        own.put([item.record for item in (*SHOWN, *world)])
        ours = End(config_of(0, select_all(), exposures=(everything,)), own, LocalHost)
        peer = End(config_of(1, operand, exposures=(everything,)), MemoryStore(), LocalHost)
        MemoryLink([ours, peer]).run()
        streams.append(bytes(ours.sent))
    assert streams[0] != streams[1]
    assert validate(SHOWN[0].record.stored).hash == SHOWN[0].hash
