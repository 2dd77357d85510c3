"""Operands that try to exhaust a side: refused when they come in, or stopped by a limit when they run."""

from __future__ import annotations

import pytest

from lace.datalog import engine
from lace.datalog.language.canonical import lacegram_id
from lace.datalog.language.syntax import Predicate
from lace.errors import InvalidExchangePlan, LimitExceeded
from lace.limits import EngineLimits
from lace.policy.compile import agree
from lace.policy.lower import lower
from lace.policy.operand import Module
from policy.world import ALICE, ALL, GROUP_X, exposures, record, run, selector

VISIBLE = [fact for n in range(40) for fact in record(f"x{n}", "X", tag="t", link=f"x{(n + 1) % 40}")]


def receive(text: str) -> Module:
    return Module.receive(text.encode(), announced=lacegram_id(text.encode()))


@pytest.mark.parametrize(
    ("helper", "limit"),
    [
        ("H(P) :- " + ", ".join(["Have(P)"] * 65) + ".", "max_rule_literals"),
        ("H(P) :- " + ", ".join(f"Field(P,'k{n}',_,V{n})" for n in range(5_000)) + ".", "max_rule_literals"),
        ("\n".join(f"H{n}(P) :- Have(P)." for n in range(300)), "max_rules"),
        ("H(P) :- Field(P,'Group',_,'" + "x" * 1025 + "').", "max_value_bytes"),
        ("H(A,B,C,D,E,F,G,H,I) :- Have(A), Field(B,C,D,E), Field(F,G,H,I).", "max_tuple_arity"),
    ],
)
def test_an_oversized_operand_is_refused_by_a_limit(helper: str, limit: str) -> None:
    with pytest.raises(LimitExceeded) as refused:
        receive(f"{ALL}\n{helper}")
    assert refused.value.limit == limit


@pytest.mark.parametrize(
    "helper",
    [
        "A(P) :- Have(P), not B(P).\nB(P) :- Have(P), not A(P).",
        "A(P) :- Have(P), Cardinality(A(Q),'<','100').",
        "A(P,V) :- Have(P).",
        "MaySend(P) :- Have(P).",
    ],
)
def test_a_malformed_operand_is_refused_whole(helper: str) -> None:
    with pytest.raises(InvalidExchangePlan):
        receive(f"{ALL}\n{helper}")


@pytest.mark.parametrize(
    ("have", "helpers", "limit"),
    [
        ("Have(P), Field(Q,A,_,B), Field(R,C,_,D), Field(T,E,_,F), A != C, E != A", "", "max_working_rows"),
        ("Big(P,_,_)", "Big(P,Q,R) :- Have(P), Have(Q), Have(R).", "max_derived_facts_per_predicate"),
        ("Path(P,_)", "Path(P,Q) :- RecordLink(P,_,_,_,Q).\nPath(P,R) :- Path(P,Q), Path(Q,R).",
         "max_derived_facts_per_predicate"),
        ("Path(P,_)", "Path(P,Q) :- RecordLink(P,_,_,_,Q).\nPath(P,R) :- Path(P,Q), RecordLink(Q,_,_,_,R).",
         "max_stratum_iterations"),
    ],
)  # fmt: skip
def test_a_greedy_operand_is_stopped_by_a_limit(have: str, helpers: str, limit: str) -> None:
    policy = run([], peer=selector(have, helpers=helpers), expose=[GROUP_X]).policy
    tight = EngineLimits(max_working_rows=100_000, max_derived_facts_per_predicate=1_000, max_stratum_iterations=20)
    with pytest.raises(LimitExceeded) as stopped:
        engine.evaluate(policy.program, VISIBLE, limits=tight)
    assert stopped.value.limit == limit


def test_two_hundred_and_fifty_rules_deep_is_only_deep() -> None:
    chain = "\n".join(f"H{n}(P) :- Have(P), not H{n - 1}(P)." for n in range(1, 250))
    peer = selector("Have(P), H248(P)", helpers=f"{chain}\nH0(P) :- Field(P,'Tag',_,'t').")
    policy = run([], peer=peer, expose=[GROUP_X]).policy
    result = engine.evaluate(policy.program, VISIBLE)
    assert result.count(Predicate("o1_SelectHave", 1)) == 40
    assert result.count(Predicate("o1_H249", 1)) == 0


def test_a_full_operand_lowers_to_a_program_linear_in_it() -> None:
    """Every atom of another shape: one view predicate each."""
    helpers = "\n".join(
        f"H{n}(P) :- " + ", ".join(f"Field(P,'{n}-{k}',_,_)" for k in range(30)) + "." for n in range(40)
    )
    plan = agree(Module.author(ALL), selector(helpers=helpers))
    policy = lower(plan, local_index=0, viewer=ALICE, exposures=exposures(GROUP_X))
    assert 40 * 30 < len(policy.program.program.rules) < 40 * 31 + 20
