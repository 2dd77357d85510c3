"""What evaluation may look at, what it must leave alone, and where it stops (030), on every executor."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path

import pytest

import lace.datalog
from executors import reference
from executors.executors import EXECUTORS, Executor, run_embedded
from lace.datalog import engine
from lace.datalog.admission import check_fact, check_value
from lace.datalog.language.canonical import canonical_text
from lace.datalog.language.formatting import format_program
from lace.datalog.language.parser import parse_facts, parse_program
from lace.datalog.language.syntax import Fact, Predicate, Program
from lace.datalog.language.validate import LOCAL_PROFILE, RAW_PROFILE, CheckedProgram, Profile, check_all, check_program
from lace.datalog.source import MemorySource, Row
from lace.errors import InvalidLacegram, InvalidText, LaceError, LimitExceeded
from lace.facts.predicates import CAN_QUERY_RECORD
from lace.facts.views import GatedView, ViewSource, constant_gate
from lace.limits import EngineLimits
from lace.policy.exposure import EXPOSURE_PROFILE
from lace.policy.operand import SELECTOR_PROFILE, Module

LIMITS = EngineLimits()
on_every_executor = pytest.mark.parametrize("run", EXECUTORS)


def checked(text: str, profile: Profile = RAW_PROFILE) -> CheckedProgram:
    return check_program(parse_program(text), profile)


def facts(text: str) -> list[Fact]:
    return list(parse_facts(text))


# values


@pytest.mark.clause("030-VAL-01", "030-VAL-02", "030-VAL-03")
@pytest.mark.parametrize(
    ("value", "error"),
    [
        ("e\u0301", InvalidText),
        ("\u212b", InvalidText),
        ("a\ud800", InvalidText),
        ("x" * 1025, LimitExceeded),
        ("é" * 513, LimitExceeded),
    ],
)
@on_every_executor
def test_a_fact_value_outside_the_rules_is_refused_not_repaired(
    run: Executor, value: str, error: type[LaceError]
) -> None:
    with pytest.raises(error):
        check_value(value, LIMITS)
    with pytest.raises((error, InvalidLacegram)):
        run(checked("A(X) :- B(X)."), [Fact(Predicate("B", 1), (value,))], LIMITS)


@pytest.mark.clause("030-VAL-03", "030-LIM-07", "030-LIM-08")
def test_values_and_tuples_may_reach_their_limits() -> None:
    check_value("x" * 1024, LIMITS)
    check_value("é" * 512, LIMITS)
    check_value("\U000e0fff", LIMITS)  # unassigned code points count as themselves
    check_fact(Fact(Predicate("T", 8), tuple("abcdefgh")), LIMITS)
    with pytest.raises(LimitExceeded, match="max_tuple_arity"):
        check_fact(Fact(Predicate("T", 9), tuple("abcdefghi")), LIMITS)
    with pytest.raises(InvalidLacegram, match="given 1 values"):
        check_fact(Fact(Predicate("T", 2), ("a",)), LIMITS)


# sources and purity


@pytest.mark.clause("030-CLASS-01", "030-CLASS-03", "030-CLASS-09", "030-CLASS-11")
@on_every_executor
def test_facts_of_every_kind_are_base_facts_and_the_source_decides(run: Executor) -> None:
    rules = "A(P,S,T) :- Have(P), Advertised(P,S), StartTAI(T), not Muted(S)."
    given = "Have('1')\nHave('2')\nAdvertised('1','s')\nAdvertised('2','m')\nStartTAI('t')\nMuted('m')"
    predicate = Predicate("A", 3)
    assert run(checked(rules), facts(given), LIMITS) == {predicate: {("1", "s", "t")}}
    assert run(checked(rules), facts(given.replace("Muted('m')", "Muted('s')")), LIMITS) == {
        predicate: {("2", "m", "t")}
    }
    assert run(checked(rules), [], LIMITS) == {predicate: set()}


@pytest.mark.clause("030-CLASS-10", "030-CARD-11", "030-EX-02", "030-STRAT-09")
def test_a_view_hides_records_from_positive_negated_and_counted_atoms_alike() -> None:
    rules = (
        "Seen(P) :- Have(P), Field(P,'Group',_,'u').\n"
        "Missing(P) :- Asked(P), not Have(P).\n"
        "Few() :- Cardinality(Field(_,'Group',_,_),'<','2')."
    )
    given = facts(
        "Have('1')\nHave('2')\nField('1','Group','0','u')\nField('2','Group','0','u')\nAsked('1')\nAsked('2')"
    )
    view = ViewSource(MemorySource(given), {"1"})
    expected = {Predicate("Few", 0): {()}, Predicate("Missing", 1): {("2",)}, Predicate("Seen", 1): {("1",)}}
    assert reference.evaluate(checked(rules), view) == expected
    result = engine.evaluate(checked(rules), view)
    assert {predicate: set(result.rows(predicate)) for predicate in result.derived} == expected


@pytest.mark.clause("030-CLASS-12", "030-CLASS-14")
@on_every_executor
def test_a_claim_never_becomes_a_record_fact(run: Executor) -> None:
    rules = "Known(P) :- Have(P).\nNamed(P) :- Field(P,_,_,_).\nClaimed(P) :- Advertised(P,_)."
    derived = run(checked(rules), facts("Advertised('p','s')\nAdvertisedField('p','s','Name','0','n')"), LIMITS)
    assert derived == {Predicate("Known", 1): set(), Predicate("Named", 1): set(), Predicate("Claimed", 1): {("p",)}}


class LazySource:
    """Facts that come one by one, from a generator that is made anew for every reading."""

    def __init__(self, given: list[Fact]) -> None:
        self._given = given

    def predicates(self) -> Iterable[Predicate]:
        return {fact.predicate for fact in self._given}

    def iterate(self, predicate: Predicate) -> Iterator[Row]:
        return (fact.values for fact in self._given if fact.predicate == predicate)

    def query(self, predicate: Predicate, *values: str | None) -> Iterator[Row]:
        wanted = [(place, value) for place, value in enumerate(values) if value is not None]
        return (row for row in self.iterate(predicate) if all(row[place] == value for place, value in wanted))

    def count(self, predicate: Predicate) -> int:
        return sum(1 for _ in self.iterate(predicate))


@pytest.mark.clause("030-CLASS-15", "030-CLASS-16", "030-FS-06")
def test_lazy_and_eager_sources_give_the_same_and_stay_as_they_were() -> None:
    rules = "T(X,Y) :- E(X,Y).\nT(X,Z) :- T(X,Y), E(Y,Z).\nN(X) :- E(X,_), not T(X,X), Cardinality(T(X,_),'>','1')."
    given = facts("E('a','b')\nE('b','c')\nE('c','b')\nE('d','a')")
    program = checked(rules)
    before = (list(given), format_program(program.program))
    lazy, eager = LazySource(given), MemorySource(given)
    expected = reference.evaluate(program, eager)
    assert reference.evaluate(program, lazy) == expected
    for source in (lazy, eager):
        result = engine.evaluate(program, source)
        assert {predicate: set(result.rows(predicate)) for predicate in result.derived} == expected
    assert (list(given), format_program(program.program)) == before
    assert {Fact(p, row) for p in eager.predicates() for row in eager.iterate(p)} == set(given)


HARMLESS_CLOCK = {"perf_counter"}  # measures how long a run took; no fact ever comes of it
FORBIDDEN = {
    "asyncio", "datetime", "getpass", "http", "locale", "multiprocessing", "os", "pathlib", "platform", "random",
    "secrets", "shutil", "signal", "socket", "sqlite3", "ssl", "subprocess", "sys", "tempfile", "threading", "urllib",
    "uuid", "zoneinfo",
}  # fmt: skip


# What Python callers meet, outside the rules: values that become texts, a deadline, a lock. It ends or delays a run.
DOOR = {"datetime", "threading", "time", "uuid"}


@pytest.mark.clause("030-CLASS-04", "030-CLASS-05", "030-CLASS-06")
def test_the_rule_language_can_reach_no_clock_file_socket_or_chance() -> None:
    for path in Path(lace.datalog.__file__).parent.rglob("*.py"):
        forbidden = (FORBIDDEN | {"time"}) - (DOOR if path.parent.name == "library" else set())
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                names = {alias.name.split(".")[0] for alias in node.names}
                assert not names & forbidden, path
            elif isinstance(node, ast.ImportFrom) and node.module:
                assert node.module.split(".")[0] not in forbidden - {"time"}, path
                if node.module == "time":
                    assert {alias.name for alias in node.names} <= HARMLESS_CLOCK, path
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("open", "input", "__import__", "eval", "exec"), path


# limits


@pytest.mark.clause("030-LIM-02", "030-LIM-03", "030-LIM-04", "030-LIM-05", "030-LIM-06", "030-LIM-07", "030-LIM-08")
def test_the_defaults_are_at_least_the_minimums_of_the_table() -> None:
    minimums = EngineLimits(
        max_base_facts=1 << 20,
        max_runtime_facts=1 << 20,
        max_derived_facts_per_predicate=1 << 18,
        max_rules=256,
        max_stratum_iterations=1000,
        max_tuple_arity=8,
        max_value_bytes=1024,
        max_working_rows=1 << 18,
    )
    for limit in fields(EngineLimits):
        assert getattr(EngineLimits(), limit.name) >= getattr(minimums, limit.name)


@pytest.mark.clause("030-LIM-03", "030-LIM-09")
@on_every_executor
def test_runtime_facts_are_counted_apart(run: Executor) -> None:
    profile = Profile(name="test", runtime=frozenset({Predicate("Tick", 1)}))
    program = checked("A(X,T) :- B(X), Tick(T).", profile)
    given = facts("B('1')\nB('2')\nB('3')\nTick('a')\nTick('b')")
    assert len(run(program, given, EngineLimits(max_base_facts=3, max_runtime_facts=2))[Predicate("A", 2)]) == 6
    for limits, limit in (
        (EngineLimits(max_base_facts=3, max_runtime_facts=1), "max_runtime_facts"),
        (EngineLimits(max_base_facts=2, max_runtime_facts=2), "max_base_facts"),
    ):
        with pytest.raises(LimitExceeded) as passed:
            run(program, given, limits)
        assert passed.value.limit == limit


@pytest.mark.clause("030-LIM-06")
def test_a_chain_of_a_thousand_rounds_succeeds() -> None:
    given = [Fact(Predicate("E", 2), (f"{n:04}", f"{n + 1:04}")) for n in range(1000)]
    program = checked("R('0000') :- true.\nR(Y) :- R(X), E(X,Y).")
    predicate = Predicate("R", 1)
    assert len(run_embedded(program, given, EngineLimits(max_stratum_iterations=1001))[predicate]) == 1001
    with pytest.raises(LimitExceeded, match="max_stratum_iterations"):
        run_embedded(program, given, EngineLimits(max_stratum_iterations=1000))
    assert len(run_embedded(program, given[:-1], EngineLimits(max_stratum_iterations=1000))[predicate]) == 1000


@pytest.mark.slow  # engine/test_limits.py derives a million facts of a million in the short run
@pytest.mark.clause("030-LIM-02", "030-EVAL-08")
def test_a_million_base_facts_are_evaluated() -> None:
    number = Predicate("N", 1)
    given = [Fact(number, (str(n),)) for n in range(1 << 20)]
    derived = run_embedded(checked("A(X) :- N(X), Pick(X)."), [*given, Fact(Predicate("Pick", 1), ("77",))], LIMITS)
    assert derived == {Predicate("A", 1): {("77",)}}


# the exchange profile


@pytest.mark.clause("030-SHADOW-12", "030-SHADOW-13")
@pytest.mark.parametrize(
    "head",
    [
        "Here('0')",
        "Peer('0')",
        "Transport('0')",
        "TransportEncrypted()",
        "StartTAI('0')",
        "TickTAI('0')",
        "ClockSkewSeconds('0')",
        "Advertised('0','1')",
        "AdvertisedField('0','1','2','3','4')",
    ],
)
def test_the_exchange_profile_supplies_runtime_and_advertisement_facts(head: str) -> None:
    program = parse_program(f"{head} :- true.")
    for profile in (SELECTOR_PROFILE, EXPOSURE_PROFILE):
        assert [error.rule for error in check_all(program, profile)] == ["shadowing"]
    assert check_all(program, LOCAL_PROFILE) == []


SELECTORS = "SelectHave(P) :- Have(P).\nSelectAdvertised(P,S) :- Advertised(P,S)."
RESERVED = [
    pytest.param("MaySend(P) :- Have(P).", marks=pytest.mark.clause("030-SHADOW-14")),
    pytest.param("MayRequest(P) :- Have(P).", marks=pytest.mark.clause("030-SHADOW-14")),
    pytest.param("CanQueryRecord(P,P) :- Have(P).", marks=pytest.mark.clause("030-SHADOW-16")),
    pytest.param("X(P) :- Have(P), not CanQueryRecord(P,P).", marks=pytest.mark.clause("030-SHADOW-16")),
    pytest.param("o0_X(P) :- Have(P).", marks=pytest.mark.clause("030-SHADOW-17")),
    pytest.param("X(P) :- Have(P), not o1_X(P).", marks=pytest.mark.clause("030-SHADOW-17")),
    pytest.param("AllowQueryRecord(P,P) :- Have(P).", marks=pytest.mark.clause("030-SHADOW-18")),
    pytest.param("_X(P) :- Have(P).", marks=pytest.mark.clause("030-SHADOW-06", "030-SHADOW-05")),
    pytest.param("X(P) :- Have(P), Cardinality(_X(P),'<','1').", marks=pytest.mark.clause("030-SHADOW-06")),
]


@pytest.mark.parametrize("line", RESERVED)
def test_a_shared_module_may_not_use_what_the_exchange_reserves(line: str) -> None:
    assert check_all(parse_program(line), SELECTOR_PROFILE)
    with pytest.raises(LaceError):
        Module.author(f"{SELECTORS}\n{line}")


@pytest.mark.clause("030-SHADOW-18")
def test_a_selector_defines_its_outputs_and_an_exposure_module_its_own() -> None:
    assert Module.author(SELECTORS).lacegram.text == canonical_text(parse_program(SELECTORS))
    assert check_all(parse_program("AllowQueryRecord(V,P) :- Have(P), Peer(V)."), EXPOSURE_PROFILE) == []
    assert check_all(parse_program("AllowOther(P) :- Have(P)."), SELECTOR_PROFILE) == []


@pytest.mark.clause("030-INCR-06", "030-CLASS-10")
def test_a_change_of_exposure_changes_what_a_peers_rules_derive() -> None:
    """The gate's facts come and go; what is maintained equals full evaluation over the filtered source each time."""
    peers = parse_program(
        "Seen(P) :- Have(P), Field(P,'Group',_,'u').\n"
        "Missing(P) :- Asked(P), not Have(P).\n"
        "Few() :- Cardinality(Field(_,'Group',_,_),'<','2').\n"
        "Next(P,Q) :- Seen(P), RecordLink(P,_,_,_,Q).\nNext(P,R) :- Next(P,Q), RecordLink(Q,_,_,_,R)."
    )
    view = GatedView("view_", constant_gate(CAN_QUERY_RECORD, "V.peer"))
    rules = [rule for rule in map(view.resolve, peers.rules) if rule is not None]
    rules += [rule for _, rule in view.definitions()]
    rules += parse_program("CanQueryRecord('V.peer',P) :- Exposed(P).").rules
    given = facts(
        "".join(f"Have('{n}')\nField('{n}','Group','0','u')\nAsked('{n}')\n" for n in "1234")
        + "".join(f"RecordLink('{a}','+Link','0','t','{b}')\n" for a, b in ("12", "23", "31"))
    )
    kept = engine.materialize(check_program(Program(tuple(rules)), RAW_PROFILE), given)
    exposed: set[str] = set()
    for record in ("1", "2", "3", "2", "4", "1", "2", "3", "4", "1"):
        change = [Fact(Predicate("Exposed", 1), (record,))]
        kept.apply(removed=change) if record in exposed else kept.apply(added=change)
        exposed ^= {record}
        full = reference.evaluate(check_program(peers, RAW_PROFILE), ViewSource(MemorySource(given), exposed))
        assert {predicate: set(kept.rows(predicate)) for predicate in full} == full
