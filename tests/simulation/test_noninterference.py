"""Two laces that differ only in records hidden from a peer behave the same toward it, byte for byte (020, 040, 050).

The peer is hostile: its operands are generated to tell hidden records apart by negation, counting, helpers, recursion
and constants. What it can observe are the bytes it gets, how the exchange ends, and how it is aborted.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import pytest

from interlace.pair import START_NS
from lace.errors import LaceError
from lace.iltp.resources import fault_of
from lace.intake.received import judge_received
from lace.interlace import effects as asked
from lace.interlace import inputs as given
from lace.interlace.config import MachineConfig
from lace.limits import EngineLimits, ExchangeLimits, RecordLimits
from lace.policy.exposure import Exposure
from lace.policy.operand import Module
from lace.policy.select import select_all
from lace.records.validate import validate
from lace.runtime.evaluate import StoreEvaluator
from lace.runtime.judging import commit_safely
from lace.runtime.session import CheckResource, ReceivedRecords, Session
from lace.runtime.side import LocalSide
from lace.store.memory import MemoryStore
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


class End:
    """One session with its own side, run to the end."""

    def __init__(self, config: MachineConfig, store: MemoryStore, expose: Sequence[Exposure]) -> None:
        self.session = Session(config)
        self.side = LocalSide(store, lambda: StoreEvaluator(store, expose, limits=config.engine_limits))
        self.written = bytearray()
        self.taken = 0
        self.eof = False

    def turn(self, peer: End) -> bool:
        moved = False
        for request in self.session.requests():
            moved = True
            for answer in self._answers(request):
                self.session.answer(answer, START_NS)
        while data := self.session.data_to_send():
            self.written += data
            moved = True
        fresh = bytes(peer.written[self.taken :])
        if fresh and self.session.outcome is None:
            self.taken += len(fresh)
            self.session.receive_data(fresh, START_NS)
            moved = True
        elif peer.session.outcome is not None and self.session.outcome is None and not self.eof:
            self.eof = moved = True
            self.session.receive_eof(START_NS)
        return moved

    def _answers(self, request: object) -> list[given.LocalInput]:
        match request:
            case asked.PreparePolicy():
                return [self.side.prepare(request)]
            case asked.Evaluate():
                return [self.side.evaluate(request)]
            case asked.Summarise():
                return [self.side.summarise(request)]
            case asked.SendRecords(hashes=hashes):
                sent, missing = [], []
                for record, stored in chain.from_iterable(self.side.load(hashes, 100, 1 << 30)):
                    if stored is None:
                        missing.append(record)
                    else:
                        self.session.put_records([stored])
                        sent.append((record, len(stored)))
                return [given.RecordsSent(sent, missing)]
            case ReceivedRecords(records):
                return commit_safely(judge_received(records, RecordLimits()), self.side.store)
            case CheckResource(resource):
                self.session.resource_checked(resource, fault_of(resource), START_NS)
                return []
            case _:
                return []


def observe(
    hidden: Sequence[object], operand: Module, theirs: Sequence[object], limits: EngineLimits, exchange: ExchangeLimits
) -> Observed:
    """Run an exchange of our lace, with these hidden records, against the peer's; what the peer sees."""
    own, other = MemoryStore(), MemoryStore()
    own.put([item.record for item in (*SHOWN, *hidden)])  # type: ignore[attr-defined]
    other.put([item.record for item in theirs])  # type: ignore[attr-defined]
    ours = End(MachineConfig(index=0, module=select_all(), engine_limits=limits, limits=exchange), own, EXPOSE)
    peer = End(MachineConfig(index=1, module=operand, limits=exchange), other, EXPOSE)
    for end in (ours, peer):
        end.session.start(START_NS)
    for _ in range(5_000):
        if not any([ours.turn(peer), peer.turn(ours)]):
            break
    outcome = ours.session.outcome
    assert outcome is not None
    return Observed(bytes(ours.written), outcome.abort, outcome.detail, tuple(outcome.result.received_hashes))


@pytest.mark.clause("050-SEND-12", "050-INVAR-07", "050-ENG-06", "050-SEND-11")
@pytest.mark.parametrize("block", range(8))
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
        ours = End(MachineConfig(index=0, module=select_all()), own, (everything,))
        peer = End(MachineConfig(index=1, module=operand), MemoryStore(), (everything,))
        for end in (ours, peer):
            end.session.start(START_NS)
        while any([ours.turn(peer), peer.turn(ours)]):
            pass
        streams.append(bytes(ours.written))
    assert streams[0] != streams[1]
    assert validate(SHOWN[0].record.stored).hash == SHOWN[0].hash
