"""Setup and hello, as a peer on the wire sees them (050 SETF, SETUP, HELF, SIGN, PLAN, TAI, HLIM, FMT, SCHEMA)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from interlace.fakehost import FakeHost
from interlace.pair import ALL, VERIFIER_A, VERIFIER_B, changed, group_module, hash_of, make_pair, plex
from interlace.scripted import TAI_TEXT, Scripted, limits_with
from lace.interlace import inputs as given
from lace.interlace.machine import InterlaceMachine
from lace.interlace.phases import Phase
from lace.interlace.reasons import AbortReason, ProtocolAbort
from lace.interlace.setup.agreement import own_hello
from lace.interlace.setup.hello import ALL_FIELDS, FieldSchema, agree, link_id, offered_limits, read_hello
from lace.interlace.setup.terms import Link
from lace.limits import ExchangeLimits
from lace.notation.digest import digest
from lace.notation.factline import parse_fact
from lace.notation.identifiers import ExchangePlanId, Verifier
from lace.notation.tai import TAI
from lace.policy.compile import agree as compile_plan
from lace.policy.exposure import Exposure
from lace.policy.operand import Module

mark = pytest.mark
V_PLAN = ExchangePlanId.parse("E.zew87ygr8YqSix5kzMgOXgACp_hJqCdqpcS0~H_rJn0")
BAD = AbortReason.MALFORMED_FACT_BLOCK
OTHER = Module.author("SelectHave(P) :- Have(P), Field(P,'Group',_,'x').\nSelectAdvertised(P,S) :- Advertised(P,S).")


# --- setup ----------------------------------------------------------------------------------------------------------


@mark.clause("050-SETF-01", "050-SETUP-02", "050-SETF-05", "050-SETF-09", "050-MODEL-10", "050-STATE-01")
def test_our_side_opens_with_its_module_and_its_one_operand() -> None:
    wire = Scripted()
    assert wire.heard() == [
        f"<resource {ALL.id}>",
        f"ExchangeOperand('0','{ALL.id}','Opq_s','selector')",
        "",
    ]


@mark.clause("050-SETUP-08", "050-SETUP-09", "050-SETF-03", "050-PLAN-01", "050-SETF-07", "050-HELF-01")
def test_both_sides_compute_the_plan_of_the_golden_vector() -> None:
    pair = make_pair()
    first, second = pair.exchange()
    assert first.exchange_plan_id == second.exchange_plan_id == V_PLAN
    for index, side in enumerate(pair.sides):
        assert side.named("HelloExchangePlan") == [(V_PLAN,)]
        assert side.named("ExchangeOperand") == [(str(index), ALL.id, ("Opq_s", "Opq_R")[index], "selector")]


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        pytest.param([], BAD, id="no-operand", marks=mark.clause("050-SETF-02", "050-SETUP-03")),
        pytest.param(
            [
                f"ExchangeOperand('1','{ALL.id}','Opq_R','selector')",
                f"ExchangeOperand('1','{OTHER.id}','Opq_R','selector')",
            ],
            BAD,
            id="two-operands",
            marks=mark.clause("050-SETF-02", "050-SETUP-03"),
        ),
        pytest.param(
            [f"ExchangeOperand('1','{ALL.id}','Opq_R','selector')"] * 2,
            BAD,
            id="the-same-twice",
            marks=mark.clause("050-FACT-11"),
        ),
        pytest.param(
            [f"ExchangeOperand('0','{ALL.id}','Opq_R','selector')"],
            BAD,
            id="our-index",
            marks=mark.clause("050-SETF-03"),
        ),
        pytest.param(
            [f"ExchangeOperand('2','{ALL.id}','Opq_R','selector')"],
            BAD,
            id="no-such-index",
            marks=mark.clause("050-SETF-03"),
        ),
        pytest.param(
            [f"ExchangeOperand('1','{ALL.id}','Opq_R','expose')"],
            BAD,
            id="other-facet",
            marks=mark.clause("050-SETUP-11", "050-SETUP-10"),
        ),
        pytest.param(
            ["ExchangeOperand('1','R.GROUP_X','Opq_R','selector')"],
            BAD,
            id="symbolic-id",
            marks=mark.clause("050-SETF-06", "050-SETF-07"),
        ),
        pytest.param(
            [f"ExchangeOperand('1','{OTHER.id}','Opq_R','selector')"],
            AbortReason.MALFORMED_MODULE,
            id="no-bytes",
            marks=mark.clause("050-SETUP-05", "050-SETUP-06"),
        ),
        pytest.param(
            [f"HelloTAI('{TAI_TEXT}')"], BAD, id="hello-first", marks=mark.clause("050-SETUP-01", "050-FACT-10")
        ),
        pytest.param(
            [f"ExchangeOperand('1','{ALL.id}','somewhere','selector')"],
            AbortReason.PEER_VERIFIER_MISMATCH,
            id="no-origin",
            marks=mark.clause("050-SIGN-07"),
        ),
    ],
)
def test_a_bad_setup_block_aborts(lines: list[str], reason: AbortReason) -> None:
    wire = Scripted()
    wire.say(*lines)
    assert wire.reason is reason
    assert wire.heard()[-1] == ""  # 050-ERR-20: our own setup is all that was ever sent
    assert wire.phase is Phase.CLOSED


@mark.clause("050-SETUP-07", "050-ERR-07")
@pytest.mark.parametrize(
    "text",
    [
        "SelectHave(P) :- Have(P).",
        "MaySend(P) :- Have(P).\nSelectAdvertised(P,S) :- Advertised(P,S).\nSelectHave(P) :- Have(P).",
        "SelectAdvertised(P,S) :- Advertised(P,S).\nSelectHave(P) :- not Have(P).",
        "A(P) :- Have(P), not B(P).\nB(P) :- Have(P), not A(P).\n"
        "SelectAdvertised(P,S) :- Advertised(P,S).\nSelectHave(P) :- A(P).",
        "SelectAdvertised(P,S) :- Advertised(P,S).\nSelectHave(P) :- Have(P).\n",
        "SelectAdvertised(P,S) :-  Advertised(P,S).\nSelectHave(P) :- Have(P).",
    ],
    ids=["one-facet", "defines-may-send", "unsafe", "unstratified", "final-LF", "two-spaces"],
)
def test_a_module_that_is_not_a_canonical_selector_aborts(text: str) -> None:
    from lace.notation.digest import digest
    from lace.notation.identifiers import LacegramId

    wire = Scripted()
    identifier = LacegramId.of(digest(text.encode()))
    wire.give(given.ResourceReceived(identifier, "lacegram", text.encode()))
    wire.say(f"ExchangeOperand('1','{identifier}','Opq_R','selector')")
    assert wire.reason is AbortReason.MALFORMED_MODULE


@mark.clause("050-ERR-07")
def test_module_bytes_under_another_modules_id_abort() -> None:
    wire = Scripted(peer_module=OTHER)
    wire.give(given.ResourceReceived(OTHER.id, "lacegram", ALL.text.encode()))
    wire.say(wire.operand_line())
    assert wire.reason is AbortReason.MALFORMED_MODULE


@mark.clause("050-MODEL-11", "050-SETUP-05", "050-SETUP-09")
def test_a_known_module_need_not_be_sent_and_the_plan_id_is_still_compared() -> None:
    wire = Scripted(peer_module=OTHER, known_modules=(OTHER,))
    wire.say(wire.operand_line())
    assert wire.phase is Phase.HELLO
    wire.hello(HelloExchangePlan=f"HelloExchangePlan('{V_PLAN}')")
    assert wire.reason is AbortReason.EXCHANGE_PLAN_MISMATCH


STORED = plex("a")
DEPENDENT: dict[str, Callable[[Scripted], None]] = {
    "an advertisement": lambda wire: wire.say(f"Advertised('{hash_of(STORED)}','{wire.label}')"),
    "a request": lambda wire: wire.say(f"MayRequest('{hash_of(STORED)}')"),
    "a record": lambda wire: wire.send_records(plex("b")),
}


def told_before_agreement(wire: Scripted) -> list[str]:
    """What a machine said, but for the lines and resources of setup and hello."""
    return [line for line in wire.heard() if line and not line.startswith(("<resource", "ExchangeOperand", "Hello"))]


@mark.clause("040-PLAN-02")
@pytest.mark.parametrize("said", DEPENDENT.values(), ids=DEPENDENT)
@pytest.mark.parametrize("after_setup", [False, True])
@pytest.mark.parametrize("later_epoch", [False, True])
def test_nothing_that_depends_on_a_plan_is_sent_or_accepted_before_both_hellos_name_it(
    said: Callable[[Scripted], None], after_setup: bool, later_epoch: bool
) -> None:
    wire = Scripted(is_open=True, stored=(STORED,), known_modules=(OTHER,))
    if later_epoch:
        wire.open()
        wire.say()
        wire.say()
        wire.heard()
        wire.give(changed(OTHER))
        wire.say()  # an adv may cross our setup and is forgotten, a second may not
    if after_setup:
        wire.say(wire.operand_line())
    assert told_before_agreement(wire) == []
    said(wire)
    assert wire.reason in (AbortReason.MALFORMED_FACT_BLOCK, AbortReason.RECORD_NOT_REQUESTED)
    assert told_before_agreement(wire) == []


@mark.clause("040-PLAN-02")
def test_a_machine_advertises_once_the_hellos_name_one_plan_and_never_if_they_do_not() -> None:
    agreed, mismatched = Scripted(stored=(STORED,)), Scripted(stored=(STORED,))
    for wire in (agreed, mismatched):
        wire.setup()
        assert told_before_agreement(wire) == []
    mismatched.hello(HelloExchangePlan=f"HelloExchangePlan('{compile_plan(ALL, OTHER).id}')")
    assert mismatched.reason is AbortReason.EXCHANGE_PLAN_MISMATCH
    assert told_before_agreement(mismatched) == []
    agreed.hello()
    assert told_before_agreement(agreed) == [f"Advertised('{hash_of(STORED)}','{agreed.own_label}')"]


@mark.clause("050-SETF-05")
def test_module_bytes_are_left_out_when_the_peer_announced_the_same_id_first() -> None:
    pair = make_pair(is_open=True)
    pair.start()
    pair.run()
    second = pair.sides[1]
    second.wire.clear()
    pair.give(pair.sides[0], changed(OTHER))
    pair.run()
    pair.give(pair.sides[1], changed(OTHER))
    pair.run()
    assert not [effect for effect in second.wire if type(effect).__name__ == "SendResource"]


@mark.clause("050-SETUP-05", "060-AVAIL-02")
@pytest.mark.parametrize("taker", [0, 1])
def test_a_side_still_has_the_bytes_of_a_module_that_it_announced_and_left(taker: int) -> None:
    pair = make_pair(is_open=True)
    pair.start()
    pair.run()
    taking, leaving = pair.sides[taker], pair.sides[1 - taker]
    pair.give(leaving, changed(OTHER))
    pair.run()
    pair.give(leaving, changed(group_module("v")))
    pair.run()
    taking.wire.clear()
    pair.give(taking, changed(OTHER))
    pair.run()
    assert not [effect for effect in taking.wire if type(effect).__name__ == "SendResource"]
    assert [side.aborted for side in pair.sides] == [None, None]
    assert [side.machine.result().epochs for side in pair.sides] == [4, 4]
    assert taking.machine.agreement.plan.id == leaving.machine.agreement.plan.id


@mark.clause("050-SETF-04", "050-MODEL-12")
def test_exposure_policy_is_never_sent() -> None:
    pair = make_pair()
    pair.exchange()
    for side in pair.sides:
        assert "AllowQueryRecord" not in repr(side.wire)


# --- hello ----------------------------------------------------------------------------------------------------------


@mark.clause("050-HELF-10", "050-HELF-03", "050-HELF-04", "050-HELF-05", "050-HELF-06", "050-HELF-08")
def test_the_example_hello_negotiates_with_real_identifiers() -> None:
    lines = [
        f"HelloExchangePlan('{V_PLAN}')",
        f"HelloSigner('{VERIFIER_A}')",
        "HelloTAI('1640995200:000000000')",
        "HelloTickInterval('10000000000')",
        "HelloRecordFormat('H3')",
        "HelloAdvertisedField('Type')",
        "HelloAdvertisedField('Group')",
        "HelloAdvertisedField('App')",
        "HelloAdvertisedField('Signed-By')",
        "HelloLimit('max_total_transferred_bytes','1073741824')",
    ]
    hello = read_hello([parse_fact(line, 1024) for line in lines], 10**18)
    assert hello.signer == VERIFIER_A
    assert hello.schema == FieldSchema(frozenset({"Type", "Group", "App", "Signed-By"}))
    assert hello.limits == (("max_total_transferred_bytes", 1 << 30),)
    assert list(hello.facts()) == sorted(
        (parse_fact(line, 1024) for line in lines),
        key=lambda fact: [f.values for f in hello.facts()].index(fact.values),
    )
    assert agree(hello, hello, ExchangeLimits(), frozenset({"App"})).tick_interval_ns == 10**10


HELLO_FAULTS = [
    pytest.param({"HelloExchangePlan": None}, BAD, id="no-plan", marks=mark.clause("050-PLAN-03", "050-HELF-01")),
    pytest.param(
        {"HelloExchangePlan": [f"HelloExchangePlan('{V_PLAN}')"] * 2},
        BAD,
        id="plan-twice",
        marks=mark.clause("050-PLAN-03", "050-FACT-11"),
    ),
    pytest.param(
        {"HelloExchangePlan": f"HelloExchangePlan('E.{'0' * 43}')"},
        AbortReason.EXCHANGE_PLAN_MISMATCH,
        id="other-plan",
        marks=mark.clause("050-PLAN-02", "050-PLAN-01", "050-ERR-03"),
    ),
    pytest.param(
        {"HelloExchangePlan": "HelloExchangePlan('E.EXAMPLE')"},
        BAD,
        id="symbolic-plan",
        marks=mark.clause("050-SETF-07"),
    ),
    pytest.param({"HelloTAI": None}, BAD, id="no-tai", marks=mark.clause("050-TAI-01", "050-HELF-03")),
    pytest.param(
        {"HelloTAI": [f"HelloTAI('{TAI_TEXT}')"] * 2},
        BAD,
        id="tai-twice",
        marks=mark.clause("050-HELF-03", "050-FACT-11"),
    ),
    pytest.param({"HelloTAI": "HelloTAI('1640995200')"}, BAD, id="tai-form", marks=mark.clause("050-TAI-11")),
    pytest.param({"HelloTickInterval": None}, BAD, id="no-interval", marks=mark.clause("050-TAI-02", "050-HELF-04")),
    pytest.param(
        {"HelloTickInterval": ["HelloTickInterval('1')"] * 2},
        BAD,
        id="interval-twice",
        marks=mark.clause("050-HELF-04", "050-FACT-11"),
    ),
    pytest.param(
        {"HelloTickInterval": "HelloTickInterval('0')"}, BAD, id="interval-0", marks=mark.clause("050-TAI-08")
    ),
    pytest.param(
        {"HelloTickInterval": f"HelloTickInterval('{10**18}')"},
        BAD,
        id="interval-huge",
        marks=mark.clause("050-TAI-09"),
    ),
    *(
        pytest.param(
            {"HelloTickInterval": f"HelloTickInterval('{text}')"},
            BAD,
            id=f"interval-{text or 'empty'}",
            marks=mark.clause("050-TAI-10"),
        )
        for text in ("-1", "1.5", "1e9", "", "01")
    ),
    pytest.param(
        {"HelloRecordFormat": None},
        AbortReason.UNSUPPORTED_RECORD_FORMAT,
        id="no-format",
        marks=mark.clause("050-FMT-02"),
    ),
    pytest.param(
        {"HelloRecordFormat": "HelloRecordFormat('H4')"},
        AbortReason.UNSUPPORTED_RECORD_FORMAT,
        id="other-format",
        marks=mark.clause("050-FMT-02", "050-ERR-04"),
    ),
    pytest.param(
        {"HelloRecordFormat": "HelloRecordFormat('.H3')"},
        AbortReason.UNSUPPORTED_RECORD_FORMAT,
        id="dotted-format",
        marks=mark.clause("050-HELF-05"),
    ),
    pytest.param(
        {"HelloSigner": f"HelloSigner('{VERIFIER_B}')"},
        AbortReason.PEER_VERIFIER_MISMATCH,
        id="unproven-signer",
        marks=mark.clause("050-SIGN-03", "050-SIGN-06", "050-SIGN-01", "050-ERR-02"),
    ),
    pytest.param(
        {"HelloSigner": [f"HelloSigner('{VERIFIER_B}')"] * 2},
        BAD,
        id="signer-twice",
        marks=mark.clause("050-HELF-02", "050-FACT-11"),
    ),
    *(
        pytest.param(
            {"HelloLimit": f"HelloLimit('max_loop_iterations','{text}')"},
            BAD,
            id=f"limit-{text or 'empty'}",
            marks=mark.clause("050-HLIM-04"),
        )
        for text in ("-1", "1k", "", "016")
    ),
    *(
        pytest.param(
            {"HelloLimit": f"HelloLimit('{name}','0')"},
            BAD,
            id=f"{name}-0",
            marks=mark.clause("050-HLIM-05", "050-HLIM-06"),
        )
        for name in (
            "max_fact_block_size",
            "max_advertisement_records_listed",
            "max_narrowing_depth",
            "max_total_transferred_bytes",
            "max_loop_iterations",
        )
    ),
    pytest.param(
        {"MayRequest": f"MayRequest('B.{'0' * 43}.H3')"}, BAD, id="other-phase", marks=mark.clause("050-FACT-10")
    ),
    pytest.param({"HelloTAI": f"HelloTAI('{TAI_TEXT}','x')"}, BAD, id="arity", marks=mark.clause("050-FACT-10")),
    pytest.param({"Greeting": "Greeting('hi')"}, BAD, id="unknown", marks=mark.clause("050-FACT-10")),
    pytest.param({"TickReady": f"TickReady('{TAI_TEXT}')"}, BAD, id="tick", marks=mark.clause("050-FACT-10")),
]


@pytest.mark.parametrize(("changes", "reason"), HELLO_FAULTS)
def test_a_bad_hello_aborts(changes: dict[str, str | list[str] | None], reason: AbortReason) -> None:
    wire = Scripted()
    wire.setup()
    wire.heard()
    wire.hello(**changes)
    assert wire.reason is reason
    assert len([line for line in wire.heard() if line == ""]) == 0  # no byte after the fault (050-ERR-20)


HELLO_FINE = [
    pytest.param(
        {"HelloLimit": "HelloLimit('max_moon_phase','-7')"},
        id="unknown-limit",
        marks=mark.clause("050-HLIM-03", "050-HLIM-05"),
    ),
    pytest.param({"HelloLimit": None}, id="no-limits", marks=mark.clause("050-HLIM-01")),
    pytest.param(
        {"HelloLimit": "HelloLimit('max_partition_summaries','0')"},
        id="no-partitions",
        marks=mark.clause("050-HLIM-05"),
    ),
    pytest.param(
        {"HelloRecordFormat": ["HelloRecordFormat('H3')"] * 2 + ["HelloRecordFormat('H9')"]},
        id="repeats",
        marks=mark.clause("050-FACT-11"),
    ),
    pytest.param(
        {"HelloAdvertisedField": ["HelloAdvertisedField('Type')", "HelloAdvertisedField('Mood')"]},
        id="more-fields",
        marks=mark.clause("050-SCHEMA-06", "050-HELF-06"),
    ),
    pytest.param(
        {
            "HelloAllAdvertisedFields": "HelloAllAdvertisedFields()",
            "HelloAdvertisedField": "HelloAdvertisedField('Type')",
        },
        id="all-and-some",
        marks=mark.clause("050-HELF-07", "050-FACT-04"),
    ),
]


@pytest.mark.parametrize("changes", HELLO_FINE)
def test_an_unusual_but_proper_hello_is_accepted(changes: dict[str, str | list[str] | None]) -> None:
    wire = Scripted()
    wire.setup()
    wire.hello(**changes)
    assert wire.phase is Phase.LISTING


@mark.clause("050-FACT-11")
def test_the_order_of_hello_lines_does_not_count() -> None:
    wire = Scripted()
    wire.setup()
    wire.say(*reversed(wire.hello_lines()))
    assert wire.phase is Phase.LISTING


@mark.clause("050-HLIM-02", "050-HLIM-06", "050-LIM-01")
def test_a_limit_is_the_least_of_ours_and_all_announced() -> None:
    wire = Scripted(limits=limits_with(max_loop_iterations=9, max_narrowing_depth=3))
    wire.open(
        HelloLimit=[
            "HelloLimit('max_loop_iterations','7')",
            "HelloLimit('max_loop_iterations','5')",
            "HelloLimit('max_narrowing_depth','8')",
        ]
    )
    agreed = wire.side.machine.agreement.negotiated.limits
    assert (agreed.max_loop_iterations, agreed.max_narrowing_depth) == (5, 3)
    assert agreed.phase_timeout_ns == wire.side.terms.limits.phase_timeout_ns


@mark.clause("050-HLIM-06", "050-HELF-08")
def test_our_hello_announces_the_six_limits_and_no_timeout() -> None:
    wire = Scripted()
    wire.setup()
    names = [line.split("'")[1] for line in wire.heard() if line.startswith("HelloLimit(")]
    assert names == [
        "max_fact_block_size",
        "max_advertisement_records_listed",
        "max_partition_summaries",
        "max_narrowing_depth",
        "max_total_transferred_bytes",
        "max_loop_iterations",
    ]
    assert dict(offered_limits(ExchangeLimits(), partitions=False))["max_partition_summaries"] == 0


# --- time -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "start", "skew"),
    [
        pytest.param(
            "1640995200:000000001",
            "1640995201:000000000",
            "1640995201:000000000",
            0,
            id="V-11",
            marks=mark.clause("050-TAI-03", "050-TAI-04"),
        ),
        pytest.param(
            "1640995200:000000000",
            "1640995201:000000000",
            "1640995201:000000000",
            1,
            id="one-second",
            marks=mark.clause("050-TAI-04"),
        ),
        pytest.param(
            "1640995300:999999999",
            "1640995200:000000000",
            "1640995300:999999999",
            100,
            id="backwards",
            marks=mark.clause("050-TAI-05", "050-TAI-06"),
        ),
        pytest.param(
            "1640995200:000000000",
            "1640995200:000000000",
            "1640995200:000000000",
            0,
            id="equal",
            marks=mark.clause("050-TAI-05"),
        ),
    ],
)
def test_start_and_skew_are_the_same_on_both_sides(first: str, second: str, start: str, skew: int) -> None:
    pair = make_pair()
    hello = own_hello(pair.sides[0].config, _plan(), 0)
    a, b = replace(hello, tai=TAI.parse(first)), replace(hello, tai=TAI.parse(second))
    for ours, theirs in ((a, b), (b, a)):
        agreed = agree(ours, theirs, ExchangeLimits(), frozenset())
        assert (agreed.start, agreed.skew_seconds) == (start, skew)


@mark.clause("050-FMT-01", "050-FMT-02")
def test_the_agreed_formats_are_those_that_both_sides_name() -> None:
    hello = own_hello(make_pair().sides[0].config, _plan(), 0)
    ours, theirs = (
        replace(hello, record_formats=frozenset(names)) for names in (("H3", "H7", "H8"), ("H9", "H8", "H3"))
    )
    for first, second in ((ours, theirs), (theirs, ours)):
        assert agree(first, second, ExchangeLimits(), frozenset()).record_formats == {"H3", "H8"}
    alone = replace(hello, record_formats=frozenset({"H9"}))
    with pytest.raises(ProtocolAbort) as refused:
        agree(replace(hello, record_formats=frozenset({"H3"})), alone, ExchangeLimits(), frozenset())
    assert refused.value.reason is AbortReason.UNSUPPORTED_RECORD_FORMAT


def _plan() -> object:
    from lace.policy.compile import agree as compile_operands

    return compile_operands(ALL, ALL)


@mark.clause("050-TAI-07")
def test_the_tick_interval_is_the_numerically_greater() -> None:
    wire = Scripted(tick_interval_ns=9)
    wire.open(HelloTickInterval="HelloTickInterval('10')")
    assert wire.side.machine.agreement.negotiated.tick_interval_ns == 10


@mark.clause(
    "050-TAI-12",
    "050-TAI-13",
    "050-TAI-14",
    "050-RUN-05",
    "050-RUN-06",
    "050-RUN-07",
    "050-RUN-13",
    "050-RUN-16",
    "050-TAI-06",
)
def test_both_engines_get_one_start_one_tick_and_one_skew_and_the_same() -> None:
    pair = make_pair()
    pair.sides[1].offset_ns = 2_500_000_000
    pair.exchange()
    times = []
    for side in pair.sides:
        for facts in side.runtime:
            named = {predicate.name: values for predicate, values in facts}
            assert len([f for f in facts if f.predicate.name in ("StartTAI", "TickTAI", "ClockSkewSeconds")]) == 3
            times.append((named["StartTAI"], named["TickTAI"], named["ClockSkewSeconds"]))
    assert set(times) == {(("1640995202:500000000",), ("1640995202:500000000",), ("2",))}


# --- signers --------------------------------------------------------------------------------------------------------


def signed_link(**changes: object) -> Link:
    from dataclasses import replace

    link = Link(here=VERIFIER_A, peer=VERIFIER_B, signs_hello=True, peer_signs_hello=True)
    return replace(link, **changes)


@mark.clause(
    "050-SIGN-04",
    "050-RUN-02",
    "050-RUN-01",
    "050-RUN-12",
    "050-ADVF-03",
    "050-LINK-03",
    "050-RESULT-02",
    "050-RESULT-04",
    "050-SIGN-08",
    "050-RUN-09",
)
def test_two_proven_signers_are_peers_sources_and_a_link() -> None:
    pair = make_pair(signed=True)
    for side in pair.sides:
        side.put(plex("mine", group=f"g{side.config.index}"))
    first, second = pair.exchange()
    assert (first.peer_verifier, second.peer_verifier) == (VERIFIER_B, VERIFIER_A)
    assert first.link_id == second.link_id == link_id(VERIFIER_A, VERIFIER_B, V_PLAN)
    for side, own, peer in zip(pair.sides, (VERIFIER_A, VERIFIER_B), (VERIFIER_B, VERIFIER_A), strict=True):
        assert {values[1] for values in side.named("Advertised")} == {own}
        named = {predicate.name: values for predicate, values in side.runtime[-1]}
        assert named["Here"] == (own,)
        assert named["Peer"] == (peer,)
        assert side.named("ExchangeOperand")[0][2] == own


@mark.clause("050-SIGN-02", "050-SIGN-05", "050-RUN-11", "050-ADVF-04", "050-RESULT-02", "050-RESULT-04", "050-LINK-05")
def test_without_proof_there_is_no_signer_no_peer_and_no_link() -> None:
    pair = make_pair(link=Link(here=VERIFIER_A))
    pair.sides[0].put(plex("x"))
    first, _ = pair.exchange()
    for side in pair.sides:
        assert side.named("HelloSigner") == []
        assert all(predicate.name != "Peer" for predicate, _ in side.runtime[-1])
    assert first.peer_verifier is None
    assert first.link_id is None
    assert {values[1] for values in pair.sides[0].named("Advertised")} == {"Opq_s"}


@mark.clause("050-SIGN-05", "050-ADVF-03", "050-RUN-02")
def test_a_transport_proof_alone_sets_the_peer_but_not_the_source_label() -> None:
    wire = Scripted(link=Link(peer=VERIFIER_B)).open()
    assert wire.side.machine.agreement.peer == VERIFIER_B
    assert wire.side.machine.agreement.peer_source == wire.label
    assert wire.side.machine.agreement.viewer == VERIFIER_B
    assert wire.side.machine.agreement.link_id is None


@pytest.mark.parametrize(
    ("link", "origin", "signer"),
    [
        pytest.param(signed_link(), VERIFIER_A, VERIFIER_B, id="claims-ours", marks=mark.clause("050-SIGN-09")),
        pytest.param(signed_link(), VERIFIER_B, None, id="claim-without-proof", marks=mark.clause("050-SIGN-10")),
        pytest.param(Link(), VERIFIER_B, None, id="claim-on-a-bare-link", marks=mark.clause("050-SIGN-10")),
        pytest.param(
            signed_link(),
            Verifier.of(b"\x08" * 32),
            VERIFIER_B,
            id="another-than-proven",
            marks=mark.clause("050-SIGN-11"),
        ),
        pytest.param(
            signed_link(),
            VERIFIER_B,
            Verifier.of(b"\x08" * 32),
            id="signer-is-not-the-proven",
            marks=mark.clause("050-SIGN-06", "050-ERR-02"),
        ),
        pytest.param(
            signed_link(peer_signs_hello=False),
            VERIFIER_B,
            VERIFIER_B,
            id="binding-proves-no-signature",
            marks=mark.clause("050-SIGN-03"),
        ),
        pytest.param(
            signed_link(expected_peer=Verifier.of(b"\x08" * 32)),
            VERIFIER_B,
            VERIFIER_B,
            id="not-whom-we-expect",
            marks=mark.clause("050-ERR-02"),
        ),
    ],
)
def test_an_identity_that_is_not_proven_aborts(link: Link, origin: str, signer: str | None) -> None:
    wire = Scripted(link=link)
    wire.say(wire.operand_line(origin=origin))
    if not wire.side.is_over:
        wire.hello(HelloSigner=f"HelloSigner('{signer}')" if signer else None)
    assert wire.reason is AbortReason.PEER_VERIFIER_MISMATCH


@mark.clause("050-SIGN-07", "050-SIGN-09")
def test_an_opaque_origin_is_relabelled_and_never_compared() -> None:
    wire = Scripted()
    wire.say(wire.operand_line(origin="Opq_s"))  # the label that we wrote ourselves
    wire.hello()
    assert wire.phase is Phase.LISTING
    assert wire.side.machine.agreement.peer_source == "Opq_R"


@mark.clause("050-LINK-01", "050-LINK-02")
def test_the_link_id_is_that_of_the_golden_vector() -> None:
    first, second = Verifier.parse("V." + "0" * 43 + ".H3"), Verifier.parse("V.1" + "0" * 42 + ".H3")
    expected = "11329cd8c2a9883dc8541bee45fdddf9ea37510f16c0e81a5e6260c0c492d206"
    assert link_id(first, second, V_PLAN) == link_id(second, first, V_PLAN) == expected


@mark.clause("050-ADVF-05", "050-LINK-06")
def test_a_local_cursor_key_makes_no_identity() -> None:
    """Not even one that is written like a verifier, or like the Link-Id of two."""
    for key in (str(VERIFIER_B), link_id(VERIFIER_A, VERIFIER_B, V_PLAN), "tcp:example.com:4790"):
        shown = (Exposure.author(f"AllowQueryRecord('{VERIFIER_B}',P) :- Have(P)."),)
        pair = make_pair(cursor_key=key, expose=shown)
        near, far = pair.sides
        near.put(plex("for B alone"))
        far.put(plex("of the other"))
        first, _ = pair.exchange()
        assert (first.link_id, first.peer_verifier) == (None, None)
        assert far.have == {hash_of(plex("of the other"))}  # nobody is B
        assert near.machine.agreement.peer_source.startswith("Opq_")
        assert near.machine.agreement.viewer.startswith("Opq_")
        assert not [fact for facts in near.runtime for fact in facts if fact.predicate.name in ("Peer", "Here")]


@mark.clause("050-LINK-04", "050-LINK-06")
def test_what_is_kept_under_a_local_key_is_not_taken_for_the_state_of_a_link_of_two_signers() -> None:
    pair = make_pair(cursor_key="here")
    pair.sides[1].put(plex("a"))
    pair.exchange()
    kept = pair.sides[0].store.settings("cursor")
    assert kept
    signed = make_pair(cursor_key="here", signed=True)
    side = signed.sides[0]
    side.store = pair.sides[0].store
    side.host = FakeHost(side.store, side.terms)
    signed.start()
    signed.run(until=lambda: side.machine.phase is Phase.LISTING)
    assert side.machine.epoch.claims == 0


# --- schema ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        pytest.param(None, None, None, id="all-all", marks=mark.clause("050-SCHEMA-03")),
        pytest.param(None, {"Type"}, {"Type"}, id="all-some", marks=mark.clause("050-SCHEMA-02")),
        pytest.param(
            {"Type", "App"},
            {"App", "TAI"},
            {"App"},
            id="some-some",
            marks=mark.clause("050-SCHEMA-01", "050-SCHEMA-04"),
        ),
        pytest.param({"Type"}, {"type"}, set(), id="case", marks=mark.clause("050-SCHEMA-04", "050-SCHEMA-06")),
    ],
)
def test_the_schema_is_what_both_can(ours: set[str] | None, theirs: set[str] | None, expected: set[str] | None) -> None:
    def schema(names: set[str] | None) -> FieldSchema:
        return FieldSchema(None if names is None else frozenset(names))

    assert schema(ours).meet(schema(theirs)) == schema(theirs).meet(schema(ours)) == schema(expected)


@mark.clause("040-ADVREQ-04")
@pytest.mark.parametrize(
    ("module", "fields", "passes"),
    [
        pytest.param(group_module("u"), {"HelloAdvertisedField": "HelloAdvertisedField('Group')"}, True, id="met"),
        pytest.param(
            group_module("u"),
            {"HelloAdvertisedField": None},
            False,
            id="missing",
            marks=mark.clause("050-ADVF-11", "050-SCHEMA-07", "050-ERR-05", "050-ADVF-10", "040-ADVREQ-05"),
        ),
        pytest.param(
            group_module("u"),
            {"HelloAdvertisedField": None, "HelloAllAdvertisedFields": "HelloAllAdvertisedFields()"},
            True,
            id="met-by-all",
            marks=mark.clause("040-ADVREQ-05"),
        ),
        pytest.param(
            Module.author("SelectHave(P) :- Have(P).\nSelectAdvertised(P,S) :- AdvertisedField(P,S,_,_,'x')."),
            {"HelloAllAdvertisedFields": None, "HelloAdvertisedField": "HelloAdvertisedField('Group')"},
            False,
            id="all-needed",
            marks=mark.clause("050-ADVF-12", "050-SCHEMA-08", "050-ERR-05", "040-ADVREQ-06"),
        ),
        pytest.param(
            Module.author("SelectHave(P) :- Have(P).\nSelectAdvertised(P,S) :- AdvertisedField(P,S,_,_,'x')."),
            {},
            True,
            id="all-given",
            marks=mark.clause("050-SCHEMA-08"),
        ),
    ],
)
def test_the_schema_must_meet_the_plan(module: Module, fields: dict[str, str | None], passes: bool) -> None:
    wire = Scripted(module=module)
    wire.setup()
    wire.hello(**fields)
    assert wire.reason is (None if passes else AbortReason.UNSUPPORTED_FIELD_SCHEMA)


@mark.clause("050-SCHEMA-05", "050-SCHEMA-09", "050-SCHEMA-04")
def test_with_an_empty_schema_only_the_bare_record_is_advertised() -> None:
    wire = Scripted(stored=(plex("x"),), schema=ALL_FIELDS).open()
    listed = [line for line in wire.heard() if line.startswith("Advertis")]
    assert len(listed) == 1
    assert listed[0].startswith("Advertised(")


@mark.clause("050-SCHEMA-09", "050-SCHEMA-06", "050-ADVREC-01", "050-ADVREC-02")
def test_exactly_the_negotiated_fields_are_advertised() -> None:
    wire = Scripted(stored=(plex("x", headers=[("Mood", "fine")]),), schema=ALL_FIELDS)
    wire.open(
        HelloAdvertisedField=[
            "HelloAdvertisedField('Mood')",
            "HelloAdvertisedField('Data-Length')",
            "HelloAdvertisedField('Signed-By')",
        ]
    )
    names = [line.split("'")[5] for line in wire.heard() if line.startswith("AdvertisedField(")]
    assert names == ["Data-Length", "Mood"]


def test_hello_is_refused_before_anything_is_agreed() -> None:
    with pytest.raises(ProtocolAbort, match="stands 0 times"):
        read_hello([], 1)


def capability_id(machine: InterlaceMachine) -> bytes:
    """An identifier as a binding may derive it, from nothing but what an agreement offers."""
    negotiated = machine.agreement.negotiated
    names = negotiated.schema.names
    capabilities = (
        sorted(negotiated.record_formats),
        names and sorted(names),
        negotiated.limits,
        negotiated.partitions,
    )
    return digest(f"{machine.agreement.plan.id} {capabilities}".encode())


@mark.clause("040-PLAN-07", "040-PLAN-06")
@pytest.mark.parametrize("other", [{"limits": limits_with(max_narrowing_depth=3)}, {"schema": ALL_FIELDS}])
def test_a_binding_can_derive_an_id_of_plan_and_capabilities_that_both_sides_share(other: dict[str, object]) -> None:
    usual, unusual = make_pair(), make_pair(**other)
    for pair in (usual, unusual):
        pair.exchange()
        first, second = (capability_id(side.machine) for side in pair.sides)
        assert first == second
    machines = [pair.sides[0].machine for pair in (usual, unusual)]
    assert machines[0].agreement.plan.id == machines[1].agreement.plan.id
    assert capability_id(machines[0]) != capability_id(machines[1])


# --- capabilities that a peer announces (P33, 070) ------------------------------------------------------------------

SALTED = ["HelloLimit('x_differences','1')", "HelloLimit('x_differences_salt','12')"]


@mark.clause("070-CAP-01")
@pytest.mark.parametrize(
    "name", ["x_differences", "x_differences_salt", "x_differences_take", "x_compression", "x_new"]
)
@pytest.mark.parametrize("value", ["x", "01", "-1", ""])
def test_a_malformed_capability_is_ignored_where_we_do_not_offer_it_and_fails_where_we_do(
    name: str, value: str
) -> None:
    lines = [f"HelloLimit('{name}','{value}')", *SALTED]
    assert Scripted().open(HelloLimit=lines).reason is None
    offering = Scripted(salt=11).open(HelloLimit=lines)
    assert offering.reason is (None if name == "x_new" else AbortReason.MALFORMED_FACT_BLOCK)
    without = Scripted(salt=11, compression=False).open(HelloLimit=lines)
    assert without.reason is (None if name in ("x_new", "x_compression") else AbortReason.MALFORMED_FACT_BLOCK)


@mark.clause("070-CAP-04")
@pytest.mark.parametrize(
    ("version", "salts", "is_taken"),
    [
        ("1", ["12"], True),
        ("1", ["0"], True),
        ("1", [str(2**128 - 1)], True),
        ("1", ["12", "12"], True),  # P18: an identical repeat is one fact
        ("1", [], False),
        ("1", ["12", "13"], False),
        ("1", [str(2**128)], False),
        ("2", [], False),
        ("0", [], True),
        ("0", [str(2**128)], False),
    ],
)
def test_differences_are_announced_with_one_salt(version: str, salts: list[str], is_taken: bool) -> None:
    lines = [f"HelloLimit('x_differences','{version}')", *(f"HelloLimit('x_differences_salt','{s}')" for s in salts)]
    wire = Scripted(salt=11).open(HelloLimit=lines)
    assert wire.reason is (None if is_taken else AbortReason.MALFORMED_FACT_BLOCK)
    assert Scripted().open(HelloLimit=lines).reason is None  # where we do not offer it nobody looks
    if is_taken:
        assert wire.side.machine.agreement.negotiated.differences is (version != "0")
