"""Received transcripts and advertised-field requirements."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lace.errors import InvalidExchangePlan, InvalidText
from lace.notation.identifiers import ExchangePlanId, RecordHash
from lace.policy.compile import agree
from lace.policy.operand import Module
from lace.policy.transcript import PROFILE, FieldRequirements, Lowering, plan_id, read_transcript
from policy.world import ALL, selector

PLAN = agree(Module.author(ALL), selector(claimed="Advertised(P,S), AdvertisedField(P,S,'Group',_,'X')"))
LINES = PLAN.transcript.split("\n")


def refusal(lines: list[str] | bytes) -> str:
    data = lines if isinstance(lines, bytes) else "\n".join(lines).encode()
    with pytest.raises(InvalidExchangePlan) as refused:
        read_transcript(data)
    return refused.value.rule


@pytest.mark.clause("040-TRANS-24")
@pytest.mark.parametrize("index", range(len(LINES)), ids=lambda index: LINES[index][:40])
def test_a_missing_or_repeated_line_is_refused(index: int) -> None:
    assert refusal(LINES[:index] + LINES[index + 1 :]) if "Require" not in LINES[index] else True
    assert refusal(LINES[: index + 1] + LINES[index:])


@pytest.mark.clause("040-TRANS-06", "040-TRANS-09", "040-TRANS-24")
@given(st.randoms(use_true_random=False))
def test_lines_in_any_other_order_are_refused(shuffle: random.Random) -> None:
    shuffled = list(LINES)
    shuffle.shuffle(shuffled)
    if shuffled == LINES:
        assert read_transcript("\n".join(shuffled).encode()).text == PLAN.transcript
    else:
        assert refusal(shuffled) == "transcript-canonical"


@pytest.mark.parametrize(
    ("lines", "rule"),
    [
        pytest.param([*LINES, ""], "transcript-blank-line", marks=pytest.mark.clause("040-TRANS-02", "040-TRANS-03")),
        pytest.param([LINES[0], "", *LINES[1:]], "transcript-blank-line", marks=pytest.mark.clause("040-TRANS-03")),
        pytest.param(["# plan", *LINES], "transcript-line", marks=pytest.mark.clause("040-TRANS-04")),
        pytest.param([LINES[0] + ".", *LINES[1:]], "transcript-line", marks=pytest.mark.clause("040-TRANS-05")),
        pytest.param([LINES[0] + "\r", *LINES[1:]], "transcript-line", marks=pytest.mark.clause("040-TRANS-01")),
        pytest.param([*LINES, "ExchangePlanNote('x')"], "transcript-unknown", marks=pytest.mark.clause("040-TRANS-24")),
        pytest.param([*LINES, "ExchangePlanRuntime('Clock')"], "transcript-unknown", id="arity"),
        pytest.param([*LINES, "ExchangePlanRuntime('Zone','1')"], "transcript-canonical", id="runtime"),
        pytest.param([line.replace("('0'", "('2'") for line in LINES], "transcript-operands",
                     marks=pytest.mark.clause("040-TRANS-18")),
        pytest.param([line.replace("'selector'", "'expose'") for line in LINES], "facet", id="facet"),
        pytest.param([line.replace("Opq_", "Op_") for line in LINES], "transcript-canonical",
                     marks=pytest.mark.clause("040-TRANS-19")),
        pytest.param([line.replace("R.", "Q.") for line in LINES], "transcript-canonical", id="module id"),
        pytest.param([line.replace("standard-v1", "other") for line in LINES], "transcript-lowering",
                     marks=pytest.mark.clause("040-TRANS-10")),
        pytest.param([line.replace(PROFILE, "v2") for line in LINES], "transcript-canonical",
                     marks=pytest.mark.clause("040-TRANS-09")),
        pytest.param([*LINES[:7], "ExchangePlanRequireAllAdvertisedFields()", *LINES[7:]], "transcript-canonical",
                     marks=pytest.mark.clause("040-TRANS-22")),
    ],
)  # fmt: skip
def test_a_transcript_is_canonical_or_refused(lines: list[str], rule: str) -> None:
    assert refusal(lines) == rule


@pytest.mark.clause("040-TRANS-01")
@pytest.mark.parametrize("bad", [b"\xff", "e\u0301".encode()])
def test_a_transcript_is_utf8_nfc(bad: bytes) -> None:
    assert refusal(PLAN.transcript.encode().replace(b"'Group'", b"'" + bad + b"'")) == "transcript-text"


def test_field_names_with_quotes_survive_the_transcript() -> None:
    plan = agree(Module.author(ALL), selector(claimed=r"Advertised(P,S), AdvertisedField(P,S,'it\'s \\ it',_,'X')"))
    assert plan.requirements.names == {r"it's \ it"}
    assert read_transcript(plan.transcript.encode()) == plan.contents


@pytest.mark.clause("040-EID-02")
def test_a_plan_id_is_no_record_id() -> None:
    with pytest.raises(InvalidText):
        RecordHash.parse(PLAN.id)
    assert ExchangePlanId.parse(PLAN.id) == plan_id(PLAN.transcript.encode())


@pytest.mark.parametrize(
    ("claimed", "helpers", "names", "all_fields"),
    [
        pytest.param("Advertised(P,S)", "", set(), False, marks=pytest.mark.clause("040-ADVREQ-08")),
        pytest.param("Advertised(P,S), AdvertisedField(P,S,'Group',_,'X'), AdvertisedField(P,S,'App',_,_)", "",
                     {"Group", "App"}, False, marks=pytest.mark.clause("040-ADVREQ-01", "040-TRANS-20")),
        pytest.param("Advertised(P,S), not AdvertisedField(P,S,'Bad',_,_)", "", {"Bad"}, False,
                     marks=pytest.mark.clause("040-ADVREQ-03")),
        pytest.param("Advertised(P,S), Cardinality(AdvertisedField(P,S,'Tag',_,_),'<','3')", "", {"Tag"}, False,
                     marks=pytest.mark.clause("040-ADVREQ-03")),
        pytest.param("Advertised(P,S)", "Unused(P) :- AdvertisedField(P,_,'Name',_,_).", {"Name"}, False,
                     marks=pytest.mark.clause("040-ADVREQ-03")),
        pytest.param("AdvertisedField(P,S,N,_,'X'), AdvertisedField(P,S,'App',_,N)", "", set(), True,
                     marks=pytest.mark.clause("040-ADVREQ-02", "040-TRANS-21", "040-TRANS-22")),
        pytest.param("Advertised(P,S)", "Unused(P) :- AdvertisedField(P,_,_,_,'X').", set(), True,
                     marks=pytest.mark.clause("040-ADVREQ-02", "040-ADVREQ-03")),
        pytest.param("Advertised(P,S), not AdvertisedField(P,S,_,_,'X')", "", set(), True,
                     marks=pytest.mark.clause("040-ADVREQ-02")),
    ],
)  # fmt: skip
@pytest.mark.parametrize("index", [0, 1])
def test_requirements_are_read_off_the_texts(
    claimed: str, helpers: str, names: set[str], all_fields: bool, index: int
) -> None:
    modules = [selector(claimed=claimed, helpers=helpers), Module.author(ALL)]
    plan = agree(*(modules if index == 0 else reversed(modules)))
    assert plan.requirements == FieldRequirements(frozenset(names), all_fields)
    required = [line for line in plan.transcript.split("\n") if "Require" in line]
    single = [f"ExchangePlanRequireAdvertisedField('{name}')" for name in sorted(names)]
    assert required == (["ExchangePlanRequireAllAdvertisedFields()"] if all_fields else single)


@pytest.mark.clause("040-TRANS-20")
def test_one_name_in_both_operands_is_required_once() -> None:
    module = selector(claimed="Advertised(P,S), AdvertisedField(P,S,'Group',_,'X')")
    assert agree(module, module).transcript.count("RequireAdvertisedField") == 1


@pytest.mark.clause("040-LOWER-08", "040-EID-03")
def test_each_lowering_is_another_plan() -> None:
    module = Module.author(ALL)
    plans = [agree(module, module, lowering=lowering) for lowering in Lowering]
    assert len({plan.id for plan in plans}) == 4
    for plan in plans:
        assert read_transcript(plan.transcript.encode()).lowering is plan.lowering
        assert plan.lowering is Lowering.of(
            require_encrypted=plan.lowering.require_encrypted, peer_must_be_source=plan.lowering.peer_must_be_source
        )


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [("('0'", "('2'", "'1, 2'"), ("('0'", "('1'", "'1, 1'"), ("ExchangePlanOperand(", "ExchangePlanRuntime(", None)],
)
def test_which_indexes_were_found_is_said(old: str, new: str, found: str | None) -> None:
    operands = [line.replace(old, new) if line.startswith("ExchangePlanOperand(") else line for line in LINES]
    with pytest.raises(InvalidExchangePlan) as refused:
        read_transcript("\n".join(sorted(operands)).encode())
    if found is not None:
        assert refused.value.found == found
