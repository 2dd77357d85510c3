"""Which rule texts may be a shared operand."""

from __future__ import annotations

import pytest

from lace.datalog.language.canonical import lacegram_id
from lace.errors import InvalidExchangePlan, LimitExceeded
from lace.limits import EngineLimits
from lace.notation.fact import Predicate
from lace.notation.identifiers import LacegramId
from lace.policy.compile import agree
from lace.policy.operand import Facet, Module, SelectorOperand
from lace.policy.origin import Origin
from policy.world import ALL

HAVE_RULE, CLAIM_RULE = ALL.split("\n")


def codes(text: str) -> list[str]:
    with pytest.raises(InvalidExchangePlan) as refused:
        Module.author(text)
    return [finding.rule for finding in refused.value.findings]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        pytest.param("MaySend(P) :- Have(P).", "defines-may-send",
                     marks=pytest.mark.clause("040-FACET-09", "040-INV-03", "040-OPERAND-06")),
        pytest.param("MayRequest(P) :- Have(P).", "defines-may-request",
                     marks=pytest.mark.clause("040-FACET-10", "040-INV-04", "040-OPERAND-06")),
        pytest.param("CanQueryRecord(V,P) :- Field(P,'Signed-By',_,V).", "defines-can-query-record",
                     marks=pytest.mark.clause("040-EXPOSE-07", "040-INV-05", "020-GATE-02", "020-GATE-03")),
        pytest.param("AllowQueryRecord(V,P) :- Field(P,'Signed-By',_,V).", "defines-allow-query-record",
                     marks=pytest.mark.clause("040-EXPOSE-02", "040-EXPOSE-03", "040-INV-07")),
        pytest.param("o0_Helper(P) :- Have(P).", "defines-scope-prefix", marks=pytest.mark.clause("040-INV-06")),
        pytest.param("o1_Helper(P) :- Have(P).", "defines-scope-prefix", marks=pytest.mark.clause("040-INV-06")),
        pytest.param("_Debug(P) :- Have(P).", "defines-underscore", id="underscore head"),
        pytest.param("Helper(P) :- MaySend(P).", "reads-may-send", marks=pytest.mark.clause("040-FACET-11")),
        pytest.param("Helper(P) :- Have(P), not MayRequest(P).", "reads-may-request",
                     marks=pytest.mark.clause("040-FACET-11")),
        pytest.param("Helper(P) :- Have(P), Cardinality(CanQueryRecord(V,P),'>','0').", "reads-can-query-record",
                     marks=pytest.mark.clause("040-FACET-11")),
        pytest.param("Helper(P) :- AllowQueryRecord(V,P).", "reads-allow-query-record",
                     marks=pytest.mark.clause("040-FACET-11")),
        pytest.param("Helper(K) :- o1_Member(K).", "reads-scope-prefix",
                     marks=pytest.mark.clause("040-SCOPE-07", "040-SCOPE-08", "040-SCOPE-09")),
        pytest.param("Helper(K) :- Have(K), not o0_Member(K).", "reads-scope-prefix",
                     marks=pytest.mark.clause("040-FACET-11", "040-SCOPE-08")),
        pytest.param("Helper(K) :- _Local(K).", "reads-underscore", id="underscore body"),
        pytest.param("Have(P) :- Advertised(P,S).", "shadowing", id="record head",
                     marks=pytest.mark.clause("040-OPERAND-04")),
        pytest.param("Peer(V) :- Field(P,'Signed-By',_,V).", "shadowing", id="runtime head",
                     marks=pytest.mark.clause("040-OPERAND-04")),
        pytest.param("Advertised(P,S) :- Have(P), Peer(S).", "shadowing", id="advertisement head",
                     marks=pytest.mark.clause("040-OPERAND-04")),
        pytest.param("Prefix(P) :- Have(P).", "removed-builtin", id="removed builtin"),
        pytest.param("Helper(P,V) :- Have(P).", "unsafe", marks=pytest.mark.clause("040-OPERAND-04")),
        pytest.param("Helper(P) :- Have(P), not Helper(P).", "unstratified",
                     marks=pytest.mark.clause("040-OPERAND-04")),
        pytest.param("Helper(P) :- Have(P)", "rule-end", id="syntax", marks=pytest.mark.clause("040-OPERAND-04")),
    ],
)  # fmt: skip
def test_an_operand_is_refused_by_its_own_code(line: str, code: str) -> None:
    assert codes(f"{ALL}\n{line}") == [code]


@pytest.mark.parametrize(
    "line",
    ["MaySend(P,Q) :- Have(P), Have(Q).", "Have(P,Q) :- Have(P), Have(Q).", "SelectHave(P,Q) :- Have(P), Have(Q)."],
)
def test_a_reserved_name_of_another_arity_is_an_ordinary_helper(line: str) -> None:
    assert line in Module.author(f"{ALL}\n{line}").text


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        pytest.param(HAVE_RULE, "missing-select-advertised", marks=pytest.mark.clause("040-INV-01", "040-OPERAND-05")),
        pytest.param(CLAIM_RULE, "missing-select-have", marks=pytest.mark.clause("040-INV-02", "040-OPERAND-05")),
    ],
)
def test_a_selector_defines_both_exports(text: str, missing: str) -> None:
    assert codes(text) == [missing]


def test_every_reason_is_told_at_once() -> None:
    assert sorted(codes("MaySend(P) :- Have(P).\nHelper(P,V) :- o1_X(P).\nnonsense")) == [
        "defines-may-send", "missing-select-advertised", "missing-select-have", "parentheses", "reads-scope-prefix",
        "unsafe",
    ]  # fmt: skip


def test_a_refusal_reads_as_text_with_every_place() -> None:
    with pytest.raises(InvalidExchangePlan) as refused:
        Module.author(f"{HAVE_RULE}\nMaySend(P) :- Have(P).", name="mine.rules")
    told = str(refused.value)
    assert "mine.rules: the module is refused for 2 reasons" in told
    assert "mine.rules:2:1: a shared operand defines MaySend/1, which is reserved" in told
    assert "a selector module has to define SelectAdvertised/2" in told


@pytest.mark.clause("040-OPERAND-03", "040-OPERAND-02")
def test_received_bytes_are_canonical_and_hash_to_the_announced_id() -> None:
    data = ALL.encode()
    module = Module.receive(data, announced=lacegram_id(data))
    assert (module.text, module.id, module.facet) == (ALL, lacegram_id(data), Facet.SELECTOR)
    with pytest.raises(InvalidExchangePlan) as other:
        Module.receive(data, announced=lacegram_id(b"other"))
    assert other.value.rule == "module-id"


@pytest.mark.clause("040-OPERAND-03")
@pytest.mark.parametrize(
    ("data", "rule"),
    [
        (ALL.encode() + b"\n", "canonical"),
        (ALL.replace(" :- ", ":-").encode(), "canonical"),
        (b"# a comment\n" + ALL.encode(), "comment"),
        (ALL.encode() + b"\xff", "text-utf8"),
        (ALL.replace("Have(P).", "Have(P), Field(P,'N',_,'e\u0301').").encode(), "text-nfc"),
    ],
)
def test_received_text_is_never_repaired(data: bytes, rule: str) -> None:
    with pytest.raises(InvalidExchangePlan) as refused:
        Module.receive(data, announced=lacegram_id(data))
    assert refused.value.rule == rule


@pytest.mark.clause("040-TERM-08", "040-OPERAND-07")
def test_the_only_facet_is_selector() -> None:
    data = ALL.encode()
    with pytest.raises(InvalidExchangePlan) as refused:
        Module.receive(data, announced=lacegram_id(data), facet="expose")
    assert refused.value.rule == "facet"


@pytest.mark.clause("040-TERM-02", "040-PROV-01")
def test_authored_annotations_and_comments_reach_neither_text_nor_id() -> None:
    source = f'# everything\n#:json {{"label": "all"}}\n{HAVE_RULE}\n{CLAIM_RULE}'
    assert Module.author(source) == Module.author(ALL)
    assert "#" not in Module.author(source).text


@pytest.mark.clause("040-TERM-06", "020-VIEW-10", "040-ORIGIN-02")
def test_text_that_names_an_origin_changes_nothing_but_the_text() -> None:
    claims = Module.author(f"{ALL}\nExchangePlanOperandOrigin('1','Opq_A') :- true.\nOrigin('V.bob.H3') :- true.")
    operands = agree(Module.author(ALL), claims).operands
    assert operands[1].origin == f"Opq_{claims.identity(1).digest_text()[_first_difference(claims)]}"


def _first_difference(module: Module) -> int:
    pair = zip(Module.author(ALL).identity(0).digest_text(), module.identity(1).digest_text(), strict=True)
    return next(index for index, (left, right) in enumerate(pair) if left != right)


@pytest.mark.clause("040-TERM-03")
def test_an_operand_is_a_module_with_an_assigned_origin() -> None:
    operand = SelectorOperand(0, Module.author(ALL), Origin("Opq_A"))
    assert (operand.facet, operand.origin, operand.module.id) == ("selector", "Opq_A", Module.author(ALL).id)
    assert not hasattr(operand.module, "origin")


@pytest.mark.clause("040-FACET-06")
def test_private_helpers_are_allowed() -> None:
    text = f"{ALL}\nMember(K) :- Have(P), Field(P,'Name',_,K)."
    assert "Member(K)" in Module.author(text).text


def test_limits_bound_a_hostile_module() -> None:
    rules = "\n".join(f"H{n}(P) :- Have(P)." for n in range(300))
    with pytest.raises(LimitExceeded):
        Module.author(f"{ALL}\n{rules}")
    with pytest.raises(LimitExceeded):
        Module.receive(ALL.encode(), announced=LacegramId("R.x"), limits=EngineLimits(max_rules=1))


@pytest.mark.parametrize(
    ("have", "helpers", "expected"),
    [
        ("Have(P)", "", False),
        ("Have(P), Advertised(P,_)", "", True),
        ("Have(P), Seen(P)", "Seen(P) :- AdvertisedField(P,_,'Group',_,'X').", True),
        ("Have(P), not Seen(P)", "Seen(P) :- Advertised(P,_).", True),
        ("Have(P)", "Unused(P) :- Advertised(P,_).", False),
    ],
)
def test_a_module_knows_whether_selection_follows_advertisements(have: str, helpers: str, expected: bool) -> None:
    module = Module.author(f"SelectHave(P) :- {have}.\n{CLAIM_RULE}\n{helpers}")
    assert module.have_reads_advertisements is expected


def test_a_text_that_passed_once_is_judged_again_under_other_limits() -> None:
    data = ALL.encode()
    announced = lacegram_id(data)
    for _ in range(2):
        assert Module.receive(data, announced=announced).text == ALL
        with pytest.raises(LimitExceeded):
            Module.receive(data, announced=announced, limits=EngineLimits(max_rules=1))


@pytest.mark.parametrize(
    ("body", "reads"),
    [
        ("Have(P)", {"Have"}),
        ("Have(P), not Peer(P)", {"Have", "Peer"}),
        ("Have(P), Cardinality(TickTAI(_),'>','0')", {"Have", "TickTAI"}),
        ("Help(P)", {"Have", "Help", "StartTAI"}),
    ],
)
def test_what_a_module_reads_is_what_stands_in_its_bodies(body: str, reads: set[str]) -> None:
    helper = "Help(P) :- Have(P), StartTAI(P).\n" if "Help" in body else ""
    module = Module.author(f"{helper}SelectAdvertised(P,S) :- Advertised(P,S).\nSelectHave(P) :- {body}.")
    arities = {"Have": 1, "Peer": 1, "TickTAI": 1, "StartTAI": 1, "Help": 1, "SelectHave": 1}
    for name, arity in arities.items():
        assert module.reads([Predicate(name, arity)]) is (name in reads), name
    assert module.reads([Predicate("Peer", 1), Predicate("Have", 1)])
    assert not module.reads([])
