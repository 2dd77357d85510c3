"""Records hidden from a peer change nothing that its rules derive, whatever it writes, limits included."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from random import Random

import pytest

from executors.reference import evaluate
from lace.datalog import engine
from lace.datalog.language.syntax import Fact, Predicate
from lace.datalog.language.validate import CheckedProgram, check_program
from lace.datalog.source import MemorySource
from lace.errors import LimitExceeded
from lace.facts.predicates import SELECT_ADVERTISED, SELECT_HAVE
from lace.facts.views import ViewSource
from lace.limits import EngineLimits
from lace.policy.compile import agree
from lace.policy.lower import REQUESTABLE, LoweredPolicy, LoweringOptions, lower
from lace.policy.operand import SELECTOR_PROFILE, Module
from policy.hostile import hostile_module, worlds
from policy.world import ALICE, EVERYTHING, GROUP_X, exposures, record, run, selector

SEEDS = range(int(os.environ.get("LACE_POLICY_SEEDS", "50")))  # more of them for a long run
# Our own selector looks at visible records only, so that whatever differs would be the peer's doing.
OWN = selector("Have(P), Field(P,'Group',_,'X')")
Relations = dict[Predicate, set[tuple[str, ...]]]
Executor = Callable[[CheckedProgram, Sequence[Fact], EngineLimits], Relations]
Observation = Relations | tuple[str, int, str]


def reference(program: CheckedProgram, facts: Sequence[Fact], limits: EngineLimits) -> Relations:
    return evaluate(program, facts, limits)


def embedded(program: CheckedProgram, facts: Sequence[Fact], limits: EngineLimits) -> Relations:
    result = engine.evaluate(program, facts, limits=limits)
    return {predicate: set(result.rows(predicate)) for predicate in result.derived}


EXECUTORS = [pytest.param(reference, id="reference"), pytest.param(embedded, id="embedded")]


def gated(peer: Module, *, expose: Sequence[str] = (GROUP_X,), send_gate: bool = True) -> LoweredPolicy:
    return lower(
        agree(OWN, peer),
        local_index=0,
        viewer=ALICE,
        exposures=exposures(*expose),
        options=LoweringOptions(send_gate=send_gate),
    )


def observed(execute: Executor, policy: LoweredPolicy, facts: Sequence[Fact], limits: EngineLimits) -> Observation:
    """Everything derived except what possession of a known hash decides (020-DISC-06), or the limit that was hit."""
    try:
        derived = execute(policy.program, facts, limits)
    except LimitExceeded as error:
        return error.limit, error.allowed, error.detail
    return {predicate: rows for predicate, rows in derived.items() if predicate != REQUESTABLE and rows}


@pytest.mark.long
@pytest.mark.clause("020-DISC-05", "040-DISC-01", "020-RES-10", "020-RES-11", "020-RES-14")
@pytest.mark.parametrize("execute", EXECUTORS)
def test_hidden_records_change_nothing(execute: Executor) -> None:
    roomy = EngineLimits()
    for seed in SEEDS:
        policy, pair = gated(hostile_module(seed), send_gate=seed % 2 == 0), worlds(seed)
        first, second = (observed(execute, policy, facts, roomy) for facts in (pair.first, pair.second))
        assert first == second, f"seed {seed}"


@pytest.mark.long
@pytest.mark.clause("020-DISC-05")
@pytest.mark.parametrize("execute", EXECUTORS)
def test_hidden_records_change_no_limit(execute: Executor) -> None:
    hit = 0
    for seed in SEEDS:
        policy, pair = gated(hostile_module(seed)), worlds(seed)
        draw = Random(seed)
        tight = EngineLimits(
            max_derived_facts_per_predicate=draw.randint(3, 8),
            max_stratum_iterations=4,
            max_working_rows=draw.randint(6, 60),
        )
        first, second = (observed(execute, policy, facts, tight) for facts in (pair.first, pair.second))
        assert first == second, f"seed {seed}"
        hit += isinstance(first, tuple)
    assert hit >= len(SEEDS) // 10


CROSS_PRODUCTS = [
    "Have(P), Field(Q,'Group',_,G), Field(R,'Group',_,H), Field(S,'Group',_,I)",
    "Have(P), Field(Q,N,_,V), Field(R,N,_,W)",
    "Have(P), Field(P,'Group',_,G), Have(Q), Have(R)",
    "Have(P), Field(Q,'Tag',_,V), Field(R,'Tag',_,V), Field(S,'Tag',_,V)",
]


@pytest.mark.clause("020-DISC-05", "020-DISC-01")
@pytest.mark.parametrize("body", CROSS_PRODUCTS)
def test_a_cross_product_runs_into_its_limit_by_visible_records_alone(body: str) -> None:
    """A peer sees an abort; it must not be able to aim one at records that it cannot see."""
    policy = gated(selector(body))
    visible = [fact for n in range(4) for fact in record(f"x{n}", "X", tag="t")]
    hidden = [fact for n in range(40) for fact in record(f"y{n}", "Y", tag="t")]
    for allowed in (3, 16, 200, 300):
        limits = EngineLimits(max_working_rows=allowed)
        few, many = (observed(embedded, policy, facts, limits) for facts in (visible, [*visible, *hidden]))
        assert few == many, f"{allowed} rows"
    assert isinstance(observed(embedded, policy, visible, EngineLimits(max_working_rows=3)), tuple)


@pytest.mark.clause("020-VIEW-06", "040-COMP-05", "020-DISC-05")
def test_with_nothing_exposed_no_record_at_all_matters_to_the_peer() -> None:
    for seed in SEEDS:
        policy = gated(hostile_module(seed), expose=())
        theirs = [predicate for predicate in policy.program.derived if predicate.name.startswith("o1_")]
        # Not even the visible group of one world against the empty store of another.
        claims = [fact for fact in worlds(seed).first if fact.predicate.name.startswith(("Advertised", "Peer"))]
        full, empty = (evaluate(policy.program, facts) for facts in (worlds(seed).first, claims))
        assert {name: full[name] for name in theirs} == {name: empty[name] for name in theirs}, f"seed {seed}"


@pytest.mark.clause("020-RES-09", "040-LOWER-07", "040-SCOPE-04")
@pytest.mark.parametrize("expose", [(GROUP_X,), (EVERYTHING,), ()], ids=["gated", "all", "nothing"])
def test_rewriting_rules_and_filtering_facts_give_the_same(expose: tuple[str, ...]) -> None:
    """The peer's module alone over a filtered source derives what its scoped, rewritten copy derives."""
    for seed in SEEDS[:40]:
        peer, facts = hostile_module(seed), worlds(seed).second
        outcome = run(facts, local=OWN, peer=peer, expose=expose)
        alone = check_program(peer.lacegram.program, SELECTOR_PROFILE)
        derived = evaluate(alone, ViewSource(MemorySource(facts), outcome.visible))
        assert outcome.selected(1) == {row[0] for row in derived[SELECT_HAVE]}, f"seed {seed}"
        assert outcome.claims(1) == derived[SELECT_ADVERTISED], f"seed {seed}"


@pytest.mark.long
def test_the_generator_reaches_what_it_is_for() -> None:
    """Operands that never negate, count, recurse or select, or that hidden records could not sway, prove nothing."""
    texts = {seed: hostile_module(seed).text for seed in range(80)}
    for part in ("not Field(", "not Have(", "Cardinality(Have(", "Cardinality(Field(", "Cardinality(H", "not H"):
        assert sum(part in text for text in texts.values()) >= 4, part
    assert sum(bool(re.search(r"^(H\d)\(.*:-.* \1\(", text, re.MULTILINE)) for text in texts.values()) >= 4
    selecting = swayed = 0
    for seed in range(40):
        pair, peer = worlds(seed), hostile_module(seed)
        outcome = run(pair.first, local=OWN, peer=peer, expose=[GROUP_X])
        selecting += bool(outcome.selected(1) or outcome.claims(1))
        full = [run(facts, local=OWN, peer=peer, expose=[EVERYTHING]) for facts in (pair.first, pair.second)]
        swayed += (full[0].selected(1), full[0].claims(1)) != (full[1].selected(1), full[1].claims(1))
    assert selecting >= 12, selecting
    assert swayed >= 8, swayed  # without the view these would have told the two stores apart


@pytest.mark.clause("020-DISC-05", "040-DISC-01")
@pytest.mark.parametrize("seeds", [SEEDS[:16], pytest.param(SEEDS[16:], marks=pytest.mark.slow)], ids=["few", "all"])
@pytest.mark.long
def test_hidden_records_change_nothing_of_what_a_peer_is_charged(seeds: range) -> None:
    """P36: in full evaluation, and while records and claims come and go."""
    for seed in seeds:
        policy, pair = gated(hostile_module(seed), send_gate=seed % 2 == 0), worlds(seed)
        first, second = list(pair.first), list(pair.second)
        shared = sorted(set(first) & set(second))
        leaving = Random(seed).sample(shared, min(len(shared), 3))

        def charges(facts: Sequence[Fact], policy: LoweredPolicy = policy, leaving: list[Fact] = leaving) -> list[int]:
            meter = engine.Meter(EngineLimits(), guests=policy.guests)
            kept = engine.materialize(policy.program, facts, meter=meter)
            found = [meter.guest_rows]
            for fact in leaving:
                kept.apply(removed=[fact])
                found.append(meter.guest_rows)
            kept.apply(added=leaving)
            return [*found, meter.guest_rows]

        assert charges(first) == charges(second), f"seed {seed}"
