"""The golden vectors of modules, origins and plans."""

from __future__ import annotations

import pytest

from lace.notation.identifiers import LacegramId
from lace.policy.compile import ExchangePlan, agree, compile_plan
from lace.policy.operand import Module, SelectorOperand
from lace.policy.origin import Origin, wire_origin
from lace.policy.transcript import plan_id, read_transcript

HAVE_RULE = "SelectHave(P) :- Have(P)."
ADVERTISED_RULE = "SelectAdvertised(P,S) :- Advertised(P,S)."
M = f"{ADVERTISED_RULE}\n{HAVE_RULE}"
T = f"{HAVE_RULE}\n{ADVERTISED_RULE}"
N = f"{ADVERTISED_RULE}\nSelectHave(P) :- Have(P), Field(P,'Group',_,'g143')."
A = """\
SelectHave(P) :- Have(P), Field(P,'Group',_,'u'), Field(P,'App',_,'member').
SelectHave(P) :- Have(P), Field(P,'Group',_,'u'), Field(P,'App',_,'ding'), Field(P,'Signed-By',_,V), ActiveMember(V).
SelectAdvertised(P,S) :- Advertised(P,S), AdvertisedField(P,S,'Group',_,'u'), AdvertisedField(P,S,'App',_,'member').
SelectAdvertised(P,S) :- Advertised(P,S), AdvertisedField(P,S,'Group',_,'u'), AdvertisedField(P,S,'App',_,'ding'), \
AdvertisedField(P,S,'Signed-By',_,V), ActiveMember(V).
ActiveMember(V) :- Have(P), Field(P,'Group',_,'u'), Field(P,'App',_,'member'), Field(P,'Name',_,V)."""
IDS = {
    M: "R.lbJvPaWYF6WIGOhLim1FSg7nPPZ4acVE7oyvWH5gjj0",
    T: "R.V3wv7Ug32jVLxA5Q6An85cW~HQfME12J4bJK7MpVBHS",
    N: "R.WlXY2_E5_swzXiV2xo~ArmqQAnJuK8tfLH1vPh1Dlhp",
}
TRANSCRIPT_V4 = """\
ExchangePlanProfile('lace-040-exchange-plan-v1')
ExchangePlanLowering('standard-v1')
ExchangePlanOperand('0','selector','R.lbJvPaWYF6WIGOhLim1FSg7nPPZ4acVE7oyvWH5gjj0')
ExchangePlanOperand('1','selector','R.lbJvPaWYF6WIGOhLim1FSg7nPPZ4acVE7oyvWH5gjj0')
ExchangePlanOperandOrigin('0','Opq_s')
ExchangePlanOperandOrigin('1','Opq_R')
ExchangePlanRuntime('ClockSkewSeconds','1')
ExchangePlanRuntime('Here','1')
ExchangePlanRuntime('Peer','1')
ExchangePlanRuntime('StartTAI','1')
ExchangePlanRuntime('TickTAI','1')
ExchangePlanRuntime('Transport','1')
ExchangePlanRuntime('TransportEncrypted','0')"""


def received(text: str) -> Module:
    return Module.receive(text.encode(), announced=LacegramId(IDS[text]))


@pytest.mark.clause("040-EID-01")
def test_the_anchor_plan_has_its_identifier() -> None:
    module = received(T)
    plan = compile_plan(SelectorOperand(0, module, Origin("Opq_A")), SelectorOperand(1, module, Origin("Opq_B")))
    assert plan.id == "E.MH3x2BMyUsWvXeZVAo3c7pSAiTz9gqvnST3mVweSspG"


@pytest.mark.clause("040-OPQ-02", "040-OPQ-03", "040-OPQ-08", "040-TERM-03")
@pytest.mark.parametrize(
    ("module", "digests"),
    [
        (M, ("sxs3muNTjgtUz10QS8SZNYaUh0iWzJJrWQxZuMT7SWC", "RL~zX~lPx4vXme97mOanxU2z8YPRuM_eos6_Kdwrvm4")),
        (T, ("h8qkTGvksxxK49og83E0hNBGXDkUzLscMNRbCDScI_S", "dxXBzbd3dk5QFWFkGdrwSs3DSR~9Xuh3rIZNd0fe1JG")),
    ],
)
def test_one_module_on_both_sides_has_two_origin_digests(module: str, digests: tuple[str, str]) -> None:
    operands = [received(module).identity(index) for index in (0, 1)]
    assert tuple(operand.digest_text() for operand in operands) == digests
    assert [wire_origin(operand, None) for operand in operands] == ["Opq_" + text[0] for text in digests]
    plan = agree(received(module), received(module))
    assert [operand.origin for operand in plan.operands] == ["Opq_" + text[0] for text in digests]


@pytest.mark.clause("040-OPQ-04", "040-OPQ-11")
def test_labels_are_the_characters_where_the_digests_first_differ() -> None:
    plan = agree(received(M), received(N))
    second = received(N).identity(1)
    assert second.digest_text() == "siqzf1PZKu0Xdzs_b0pyT3ICRMyCvoi0p~bSqC0zF2d"
    assert [operand.origin for operand in plan.operands] == ["Opq_x", "Opq_i"]
    assert wire_origin(received(M).identity(0), None) == wire_origin(second, None) == "Opq_s"


@pytest.mark.clause(
    "040-TRANS-01", "040-TRANS-02", "040-TRANS-03", "040-TRANS-04", "040-TRANS-05", "040-TRANS-06", "040-TRANS-07",
    "040-TRANS-08", "040-TRANS-09", "040-TRANS-10", "040-TRANS-11", "040-TRANS-12", "040-TRANS-13", "040-TRANS-14",
    "040-TRANS-15", "040-TRANS-16", "040-TRANS-17", "040-TRANS-18", "040-TRANS-19", "040-PLAN-01", "040-PLAN-03",
    "040-PLAN-04", "040-PLAN-05",
)  # fmt: skip
def test_the_transcript_is_this_text_and_no_other() -> None:
    plan = agree(received(M), received(M))
    assert plan.transcript == TRANSCRIPT_V4
    assert len(plan.transcript.encode()) == 592
    assert plan.id == "E.zew87ygr8YqSix5kzMgOXgACp_hJqCdqpcS0~H_rJn0"
    assert plan_id(TRANSCRIPT_V4.encode() + b"\n") == "E.sS_pT_RQZF86YdZFabTaoD~eHzMUGDI~Mo8AtvYqUsh"


@pytest.mark.clause("040-EID-01", "040-EID-03")
@pytest.mark.parametrize(
    ("first", "second", "identifier"),
    [
        (T, T, "E.95XVhEVXxHjdhzJnk5Ub~p_1k92LG6vosDr_N607es_"),
        (M, N, "E.rDVD_81cGPiAuHpOilYOphMO_yH0Fzi7VdU1LD~1sxG"),
    ],
)
def test_plans_have_their_identifiers(first: str, second: str, identifier: str) -> None:
    plan = agree(received(first), received(second))
    assert (plan.id, len(plan.transcript.encode())) == (identifier, 592)


def plan_with_fields() -> ExchangePlan:
    return agree(Module.author(A), received(M))


@pytest.mark.clause("040-TRANS-07", "040-TRANS-20", "040-ADVREQ-01")
def test_required_fields_stand_after_the_origins() -> None:
    plan = plan_with_fields()
    assert plan.operands[0].module.id == "R.t402x259RViS_52DllGZtMvUkbqJERs7RmMM0jBVD3l"
    assert [operand.origin for operand in plan.operands] == ["Opq_j", "Opq_R"]
    assert plan.transcript.split("\n")[6:9] == [
        "ExchangePlanRequireAdvertisedField('App')",
        "ExchangePlanRequireAdvertisedField('Group')",
        "ExchangePlanRequireAdvertisedField('Signed-By')",
    ]
    assert len(plan.transcript.encode()) == 726
    assert plan.id == "E.MKjbmo7YennakTCEIpYvjsZ0ge65BDCSfR7IEncXXrp"


def test_a_transcript_reads_back_as_what_it_says() -> None:
    for plan in (agree(received(M), received(N)), plan_with_fields()):
        assert read_transcript(plan.transcript.encode()) == plan.contents
