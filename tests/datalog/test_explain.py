"""Explanations: every proof and every absence re-checked by a separate checker."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

import pytest
from hypothesis import given

from datalog.derived import AllDerived
from datalog.proof_checker import Checker, absent_facts
from executors import reference
from executors.cases import NAMES, read_case
from executors.programs import VALUES, Scenario, scenarios
from lace.datalog.engine import Base, evaluate
from lace.datalog.engine.on_demand import BaseFacts, FactsOnDemand
from lace.datalog.explain import Known, Proof, why, why_not
from lace.datalog.explain.data import absence_json, proof_dot, proof_json, proof_nodes
from lace.datalog.explain.text import format_absence, format_proof
from lace.datalog.language.annotations import canonicalize
from lace.datalog.language.formatting import format_fact
from lace.datalog.language.parser import parse_atom, parse_facts, parse_program
from lace.datalog.language.syntax import Fact, Predicate, Program
from lace.datalog.language.validate import RAW_PROFILE, check_program
from lace.datalog.source import MemorySource, Row
from lace.errors import LaceError, LimitExceeded, NotFound
from lace.limits import EngineLimits, ExplainLimits
from lace.porcelain.explain import explain
from tries import tries

FEWER = tries(30)


class Explained:
    """A program over facts, evaluated, with a checker beside it."""

    def __init__(self, program: Program, facts: list[Fact], *, on_demand: bool = False) -> None:
        checked = check_program(program, RAW_PROFILE)
        self.derived = reference.evaluate(checked, facts)
        self.known = Known(checked, MemorySource(facts), AllDerived(self.derived.__getitem__))
        if on_demand:
            base = Base(facts)
            self.known = Known(
                checked, BaseFacts(base), FactsOnDemand(checked, base, EngineLimits()), max_indexed_rows=0
            )
        self.checker = Checker(program, facts, self.derived)

    def why(self, text: str) -> Proof:
        proof = why(self.known, fact(text))
        self.checker.check_proof(proof)
        return proof


def fact(text: str) -> Fact:
    return next(iter(parse_facts(text)))


def explained(rules: str, facts: str) -> Explained:
    return Explained(parse_program(rules), list(parse_facts(facts)))


@pytest.mark.clause("030-CLASS-13")
@pytest.mark.parametrize("on_demand", [False, True])
@FEWER
@given(scenario=scenarios)
def test_every_derived_fact_has_a_proof_from_base_facts(on_demand: bool, scenario: Scenario) -> None:
    case = Explained(scenario.program, list(scenario.facts), on_demand=on_demand)
    for predicate, rows in case.derived.items():
        for row in sorted(rows)[:12]:
            proof = why(case.known, Fact(predicate, row))
            case.checker.check_proof(proof)
            json.dumps(proof_json(proof))
            assert format_proof(proof).count("\n") >= len(proof_nodes(proof))


@pytest.mark.clause("030-CLASS-13")
@pytest.mark.parametrize("on_demand", [False, True])
@FEWER
@given(scenario=scenarios)
def test_every_absence_is_true_and_says_where_each_rule_failed(on_demand: bool, scenario: Scenario) -> None:
    case = Explained(scenario.program, list(scenario.facts), on_demand=on_demand)
    for missing in absent_facts(case.derived, list(VALUES[:3]), 4):
        absence = why_not(case.known, missing)
        case.checker.check_absence(absence)
        json.dumps(absence_json(absence))
        assert format_absence(absence).startswith(f"{format_fact(missing)} does not hold\n")


VALID_CASES = [name for name in NAMES if not read_case(name).error and not name.startswith(("int-", "lex-", "limit-"))]


@pytest.mark.parametrize("name", VALID_CASES)
def test_every_case_is_explained(name: str) -> None:
    case = read_case(name)
    program, facts = parse_program(case.rules), case.base_facts()
    explained = Explained(program, facts, on_demand=True)
    values = sorted({value for f in facts for value in f.values})[:4]
    for predicate, rows in explained.derived.items():
        for row in sorted(rows)[:10]:
            explained.checker.check_proof(why(explained.known, Fact(predicate, row)))
    for missing in absent_facts(explained.derived, values, 3):
        explained.checker.check_absence(why_not(explained.known, missing))


def test_a_fact_on_a_circle_is_proven_from_outside_the_circle() -> None:
    rules = "R(X) :- Start(X).\nR(Y) :- R(X), E(X,Y).\nR(X) :- R(X)."
    case = explained(rules, "Start('c')\nE('a','b')\nE('b','a')\nE('c','d')\nE('d','b')")
    proof = case.why("R('a')")
    assert proof.rank == 4
    assert [f.values for f in proof_nodes(proof) if f.predicate.name == "Start"] == [("c",)]


@pytest.mark.long
def test_a_proof_may_be_thousands_deep() -> None:
    edges = "\n".join(f"E('{n}','{n + 1}')" for n in range(3000))
    case = Explained(parse_program("R(X) :- First(X).\nR(Y) :- R(X), E(X,Y)."), [])
    facts = list(parse_facts(edges + "\nFirst('0')"))
    derived = {Predicate("R", 1): {(str(n),) for n in range(3001)}}
    known = Known(case.known.checked, MemorySource(facts), AllDerived(derived.__getitem__))
    proof = why(known, Fact(Predicate("R", 1), ("3000",)))
    assert proof.rank == 3001
    Checker(case.known.checked.program, facts, derived).check_proof(proof)
    text = format_proof(proof)
    assert text.count("(shown below)") > 100
    assert max(map(len, text.split("\n"))) < 200
    assert len(proof_json(proof)["nodes"]) == 6002
    assert proof_dot(proof).count(" -> ") == 6001


def test_non_linear_recursion_is_shared_not_repeated() -> None:
    edges = "\n".join(f"E('{n:03}','{n + 1:03}')" for n in range(60))
    facts = list(parse_facts(edges))
    program = parse_program("T(X,Y) :- E(X,Y).\nT(X,Z) :- T(X,Y), T(Y,Z).")
    checked = check_program(program, RAW_PROFILE)
    rows = {(f"{x:03}", f"{y:03}") for x in range(61) for y in range(x + 1, 61)}
    derived = {Predicate("T", 2): rows}
    proof = why(
        Known(checked, MemorySource(facts), AllDerived(derived.__getitem__)), Fact(Predicate("T", 2), ("000", "060"))
    )
    Checker(program, facts, derived).check_proof(proof)
    assert len(proof_nodes(proof)) <= 60 + 60 + 59


def test_negation_and_counts_are_shown_in_a_proof() -> None:
    rules = "Ok(X) :- U(X), not Bad(X), Cardinality(E(X,_),'<','2'), X != 'z'.\nBad(X) :- E(X,'bad')."
    case = explained(rules, "U('a')\nU('b')\nU('c')\nE('a','1')\nE('b','bad')\nE('c','1')\nE('c','2')")
    text = format_proof(case.why("Ok('a')"))
    assert "not Bad('a')  (no such fact)" in text
    assert "Cardinality(E('a',_),'<','2')  (1 fact: E('a','1'))" in text
    assert "'a' != 'z'" in text
    blocked = format_absence(why_not(case.known, fact("Ok('b')")))
    assert "not Bad('b') is false, because this holds:" in blocked
    assert "E('b','bad')  (base fact)" in blocked
    counted = format_absence(why_not(case.known, fact("Ok('c')")))
    assert "Cardinality(E('c',_),'<','2')  (2 facts: E('c','1'), E('c','2')) is false" in counted
    assert "there is no U('x')" in format_absence(why_not(case.known, fact("Ok('x')")))


def test_the_nearest_miss_keeps_what_the_fact_is_about() -> None:
    case = explained(
        "S(P) :- Have(P), Field(P,'Group',_,'u').",
        "Have('1')\nHave('2')\nField('1','Group','0','v')\nField('2','Group','0','u')",
    )
    (attempt,) = why_not(case.known, fact("S('1')")).attempts
    assert attempt.reached == 1
    assert attempt.miss.nearest == fact("Field('1','Group','0','v')")  # type: ignore[union-attr]  # a missing fact
    assert attempt.miss.differs == (3,)  # type: ignore[union-attr]


def test_an_absence_goes_down_through_derived_predicates() -> None:
    rules = "A(X) :- B(X,Y), C(Y).\nC(Y) :- D(Y), IntCompare(Y,'>','5')."
    case = explained(rules, "B('a','1')\nB('a','7')\nB('b','9')\nD('1')\nD('2')")
    absence = why_not(case.known, fact("A('a')"))
    case.checker.check_absence(absence)
    assert absence.attempts[0].reached == 2
    text = format_absence(absence)
    assert "failed at C(Y): 2 bindings got there, none further" in text
    assert "IntCompare('1','>','5') is false" in text


def test_a_goal_with_variables_may_be_absent_as_a_whole() -> None:
    case = explained("A(X) :- B(X), not C(X).\nA('k') :- D().", "B('a')\nC('a')")
    absence = why_not(case.known, parse_atom("A(P)"))
    case.checker.check_absence(absence)
    assert len(absence.attempts) == 2
    absence = why_not(case.known, fact("A('a')"))
    assert absence.other_rules == 1
    cut = why_not(explained("A(X,Y) :- B(X,Y).", "B('a','b')").known, parse_atom("A(Z,Z)"))
    assert cut.cut


def test_asking_the_wrong_way_round_is_told() -> None:
    case = explained("A(X) :- B(X).", "B('a')")
    with pytest.raises(NotFound, match=r"A\('b'\) does not hold"):
        why(case.known, fact("A('b')"))
    with pytest.raises(LaceError, match=r"A\('a'\) holds: ask why"):
        why_not(case.known, fact("A('a')"))
    assert why(case.known, fact("B('a')")).rule is None
    assert why_not(case.known, fact("Nothing('b')")).attempts == ()
    assert "no rule for Nothing/1" in format_absence(why_not(case.known, fact("Nothing('b')")))


def test_annotations_speak_in_explanations() -> None:
    source = '#:json {"label":"members","why":"Only they may write."}\nA(X) :- B(X).'
    sidecar = canonicalize(source, profile=RAW_PROFILE).sidecar
    case = explained("A(X) :- B(X).", "B('a')")
    assert "members: Only they may write." in format_proof(case.why("A('a')"), sidecar)
    assert "members: Only they may write." in format_absence(why_not(case.known, fact("A('z')")), sidecar)
    assert proof_json(case.why("A('a')"), sidecar)["nodes"][0]["annotation"]["label"] == "members"
    assert "label=\"A('a')\\nmembers\"" in proof_dot(case.why("A('a')"), sidecar)


class QueriedOnly:
    """A source that answers queries with the first place bound and refuses to be read whole."""

    def __init__(self, facts: list[Fact]) -> None:
        self._inner = MemorySource(facts)

    def predicates(self) -> Iterable[Predicate]:
        return self._inner.predicates()

    def iterate(self, predicate: Predicate) -> Iterator[Row]:
        raise AssertionError(f"{predicate} was read whole")

    def query(self, predicate: Predicate, *values: str | None) -> Iterator[Row]:
        assert values[0] is not None, f"{predicate} was read without its first value"
        return self._inner.query(predicate, *values)

    def count(self, predicate: Predicate) -> int:
        return self._inner.count(predicate)


@pytest.mark.clause("030-FS-02", "030-FS-03")
def test_a_store_is_asked_for_what_is_bound_and_never_read_whole() -> None:
    case = read_case("records-newest-2")
    checked, facts = case.check(), case.base_facts()
    derived = FactsOnDemand(checked, Base(facts), EngineLimits())
    known = Known(checked, QueriedOnly(facts), derived, max_indexed_rows=0)
    complete = reference.evaluate(checked, facts)
    checker = Checker(checked.program, facts, complete)
    for row in complete[Predicate("Selected", 1)]:
        checker.check_proof(why(known, Fact(Predicate("Selected", 1), row)))
    for missing in ("Selected('P.1.H3')", "Selected('P.8.H3')", "Selected('P.404.H3')"):
        checker.check_absence(why_not(known, fact(missing)))


def test_a_limit_ends_a_search_that_looks_at_too_much() -> None:
    case = explained("T(X,Y) :- E(X,Y).\nT(X,Z) :- E(X,Y), T(Y,Z).", "\n".join(f"E('{n}','{n + 1}')" for n in range(8)))
    with pytest.raises(LimitExceeded, match="max_facts"):
        why(case.known, fact("T('0','8')"), ExplainLimits(max_facts=5))
    wide = explained("A() :- B(X), C(X).", "\n".join(f"B('{n}')\nC('c{n}')\nC('d{n}')" for n in range(30)))
    (attempt,) = why_not(wide.known, fact("A()"), ExplainLimits(max_bindings=10)).attempts
    assert (attempt.reached, attempt.complete) == (10, False)
    assert "10 or more bindings got there" in format_absence(
        why_not(wide.known, fact("A()"), ExplainLimits(max_bindings=10))
    )


CLOSURE = "T(X,Y) :- E(X,Y).\nT(X,Z) :- E(X,Y), T(Y,Z)."


def islands(count: int, length: int) -> list[Fact]:
    edge = Predicate("E", 2)
    return [Fact(edge, (f"{i}-{n}", f"{i}-{n + 1}")) for i in range(count) for n in range(length)]


def test_an_explanation_derives_only_what_its_goal_needs() -> None:
    explained = Explained(parse_program(CLOSURE), [])
    base = Base(islands(4_000, 20))
    everything = evaluate(explained.known.checked, base).stats.rows_touched
    for goal in ("T('3-0','3-9')", "T('3-0',X)", "T('3-9','3-0')", "T('3-0','4-0')", "T(X,'3-0')"):
        derived = FactsOnDemand(explained.known.checked, base, EngineLimits())
        known = Known(explained.known.checked, BaseFacts(base), derived, max_indexed_rows=0)
        atom = parse_atom(goal)
        row = known.first(atom)
        assert (row is not None) == (goal in ("T('3-0','3-9')", "T('3-0',X)")), goal
        explanation = why_not(known, atom) if row is None else why(known, Fact(atom.predicate, row))
        assert explanation is not None, goal
        assert derived.rows_touched < everything / 4, goal


def test_a_goal_with_a_repeated_variable_is_explained_by_the_first_fact_that_has_one_value_twice() -> None:
    facts = list(parse_facts("E('b','c')\nE('c','b')\nE('a','b')"))
    assert str(explain(facts, CLOSURE, "T(X,X)")).startswith("T('b','b')\n")
    assert not explain(facts[2:], CLOSURE, "T(X,X)").holds


def test_the_first_fact_of_many_is_the_first_in_text_order() -> None:
    facts = list(parse_facts("E('z','a')\nE('b','z')\nE('b','c')\nE('ab','é')"))
    assert str(explain(facts, CLOSURE, "T(X,Y)")).startswith("T('ab','é')\n")
    assert str(explain(facts, CLOSURE, "T('b',Y)")).startswith("T('b','a')\n")


@pytest.mark.long
def test_asking_for_many_patterns_one_by_one_ends_in_one_evaluation_of_all() -> None:
    checked = check_program(parse_program(CLOSURE), RAW_PROFILE)
    asked = FactsOnDemand(checked, Base(islands(4_000, 20)), EngineLimits())
    for i in range(40):
        found = list(asked.rows(Predicate("T", 2), (f"{i}-0", None)))
        assert found == sorted((f"{i}-0", f"{i}-{n}") for n in range(1, 21))
        assert asked.latest is not None
        assert asked.latest.count(Predicate("T", 2)) == (20 if i < 32 else 4_000 * 210)
