"""The plan: what its identifier depends on, and on nothing else."""

from __future__ import annotations

import inspect

import pytest

import lace.policy.compile
from lace.errors import InvalidExchangePlan
from lace.policy.compile import agree, compile_plan
from lace.policy.lower import LoweringOptions, lower
from lace.policy.operand import Module, SelectorOperand
from lace.policy.origin import Origin, Viewer
from policy.world import ALL, GROUP_X, GROUP_Y, exposures, selector

FIRST = SelectorOperand(0, Module.author(ALL), Origin("Opq_A"))
SECOND = SelectorOperand(1, selector("Have(P), Field(P,'Group',_,'X')"), Origin("Opq_B"))


@pytest.mark.clause("040-OPERAND-01", "040-TERM-04")
@pytest.mark.parametrize("indexes", [(0, 0), (1, 1), (1, 0), (0, 2)])
def test_a_plan_takes_operand_0_and_operand_1(indexes: tuple[int, int]) -> None:
    first = SelectorOperand(indexes[0], FIRST.module, FIRST.origin)
    second = SelectorOperand(indexes[1], SECOND.module, SECOND.origin)
    with pytest.raises(InvalidExchangePlan) as refused:
        compile_plan(first, second)
    assert refused.value.rule == "operand-index"


@pytest.mark.clause("040-TERM-04")
@pytest.mark.parametrize("operands", [(), (FIRST,), (FIRST, SECOND, SECOND)])
def test_no_other_number_of_operands_compiles(operands: tuple[SelectorOperand, ...]) -> None:
    with pytest.raises(TypeError):
        compile_plan(*operands)  # type: ignore[call-arg, arg-type]  # the point of the test


@pytest.mark.clause("040-OPQ-05")
def test_two_operands_never_share_an_origin() -> None:
    with pytest.raises(InvalidExchangePlan) as refused:
        compile_plan(FIRST, SelectorOperand(1, SECOND.module, FIRST.origin))
    assert refused.value.rule == "origin-equal"


@pytest.mark.clause("040-EID-03", "040-MERGE-05")
def test_module_origin_and_index_change_the_identifier() -> None:
    other = SelectorOperand(1, selector("Have(P), Field(P,'Group',_,'Y')"), SECOND.origin)
    relabelled = SelectorOperand(1, SECOND.module, Origin("Opq_C"))
    swapped = (SelectorOperand(0, SECOND.module, SECOND.origin), SelectorOperand(1, FIRST.module, FIRST.origin))
    plans = [
        compile_plan(FIRST, SECOND),
        compile_plan(FIRST, other),
        compile_plan(FIRST, relabelled),
        compile_plan(*swapped),
    ]
    assert len({plan.id for plan in plans}) == 4


@pytest.mark.clause("040-TERM-09", "040-TERM-10", "040-LOCAL-02", "040-PLAN-06", "040-SCOPE-05", "040-LOWER-13")
def test_nothing_local_reaches_the_plan() -> None:
    plan = compile_plan(FIRST, SECOND)
    parameters = inspect.signature(lace.policy.compile.compile_plan).parameters
    assert set(parameters) == {"first", "second", "lowering"}  # no schema, formats, limits, exposure or gate
    for exposure in ((), exposures(GROUP_X), exposures(GROUP_X, GROUP_Y)):
        for gate in (True, False):
            options = LoweringOptions(send_gate=gate)
            policy = lower(plan, local_index=0, viewer=Viewer("V"), exposures=exposure, options=options)
            assert (policy.plan.id, policy.plan.transcript) == (plan.id, plan.transcript)
            assert not any(rule.line in plan.transcript for rule in policy.provenance.rules)
    assert "o0_" not in plan.transcript
    assert "AllowQueryRecord" not in plan.transcript


@pytest.mark.clause("040-EXEC-01", "040-EXEC-03", "040-EXEC-04")
def test_the_two_sides_run_different_programs_of_one_plan() -> None:
    plan = agree(FIRST.module, SECOND.module)
    mine = lower(plan, local_index=0, viewer=Viewer("V.b"), exposures=exposures(GROUP_X))
    theirs = lower(plan, local_index=1, viewer=Viewer("V.a"), exposures=exposures(GROUP_Y))
    assert mine.plan.id == theirs.plan.id == plan.id
    assert mine.program.program != theirs.program.program
    assert lower(plan, local_index=0, viewer=Viewer("V.b"), exposures=exposures(GROUP_X)) == mine


@pytest.mark.clause("040-TRANS-23", "040-EXEC-06", "040-LOWER-12")
def test_no_public_door_takes_flat_rules() -> None:
    """Every way into a plan is an operand with facet and origin; MaySend in a rule text is refused there."""
    assert inspect.signature(lower).parameters["plan"].annotation == "ExchangePlan"
    with pytest.raises(InvalidExchangePlan):
        Module.author("MaySend(P) :- Have(P).\nMayRequest(P) :- Advertised(P,S).")
