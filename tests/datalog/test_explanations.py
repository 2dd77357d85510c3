"""Every explanation of explanations.txt, to the letter; the facts come from all that is derived and from demand.

A section of that file is `== why FACT` or `== why-not GOAL`, perhaps with limits, then rules, `?` and facts, `--`, and
what a person reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from datalog.derived import AllDerived
from datalog.test_explain import Explained, explained
from lace.datalog.engine import Base
from lace.datalog.engine.on_demand import BaseFacts, FactsOnDemand, first_row, found_rows
from lace.datalog.explain import Known, why, why_not
from lace.datalog.explain.data import proof_nodes
from lace.datalog.explain.known import RowIndex, bind_head, pattern_of, supports
from lace.datalog.explain.text import format_absence, format_proof
from lace.datalog.language.parser import parse_atom, parse_facts, parse_program
from lace.datalog.language.syntax import Fact, Predicate
from lace.datalog.language.validate import RAW_PROFILE, check_program
from lace.datalog.source import MemorySource, Row
from lace.errors import EvaluationStopped, LaceError, LimitExceeded
from lace.limits import EngineLimits, ExplainLimits
from lace.thresholds import ENGINE_THRESHOLDS, EngineThresholds

TEXT = Path(__file__).parent / "explanations.txt"


def told(title: str, given: str, *, on_demand: bool) -> str:
    rules, _, facts = given.partition("\n?\n")
    kind, _, rest = title.partition(" ")
    limits = ExplainLimits(**{name: int(value) for name, value in re.findall(r" (max_\w+)=(\d+)", rest)})
    goal = parse_atom(rest.partition(" max_")[0])
    case = Explained(parse_program(rules), list(parse_facts(facts)), on_demand=on_demand)
    if kind == "why":
        fact = Fact(goal.predicate, tuple(term.value for term in goal.terms))  # type: ignore[union-attr]
        return format_proof(why(case.known, fact, limits))
    return format_absence(why_not(case.known, goal, limits))


def sections() -> Iterator[tuple[str, str, str]]:
    for section in TEXT.read_text(encoding="utf-8").split("== ")[1:]:
        title, _, rest = section.partition("\n")
        given, _, made = rest.partition("\n--\n")
        yield title, given, made.rstrip("\n") + "\n"


SECTIONS = list(sections())


@pytest.mark.parametrize("on_demand", [False, True])
@pytest.mark.parametrize(("title", "given", "made"), SECTIONS, ids=[title for title, _, _ in SECTIONS])
def test_an_explanation_reads_as_written(title: str, given: str, made: str, on_demand: bool) -> None:
    assert told(title, given, on_demand=on_demand) == made


CHAIN = "Path(X,Y) :- Edge(X,Y).\nPath(X,Z) :- Edge(X,Y), Path(Y,Z)."


def test_deep_proofs_start_again_at_the_margin() -> None:
    case = explained(CHAIN, "\n".join(f"Edge('{n}','{n + 1}')" for n in range(60)))
    lines = format_proof(case.why("Path('0','60')")).splitlines()
    assert max(len(line) - len(line.lstrip(" │├└─")) for line in lines if line.endswith(")")) == 24 * 3
    assert [line.lstrip(" │├└─") for line in lines if "shown below" in line] == [
        f"Path('{n}','60')  (shown below)" for n in (24, 48)
    ]
    starts = [line for before, line in pairwise(lines) if before == ""]
    assert starts == ["Path('24','60')", "Path('48','60')"]
    assert sum("base fact" in line for line in lines) == 60


# what an explanation reads


class Counting(MemorySource):
    """A source that remembers how it was read."""

    def __init__(self, facts: list[Fact]) -> None:
        super().__init__(facts)
        self.asked: list[str] = []

    def query(self, predicate: Predicate, *values: str | None) -> Iterator[Row]:
        self.asked.append("query")
        return super().query(predicate, *values)

    def iterate(self, predicate: Predicate) -> Iterator[Row]:
        self.asked.append("all")
        return super().iterate(predicate)


EDGE, PATH = Predicate("Edge", 2), Predicate("Path", 2)
EDGES = [("a", "b"), ("b", "c"), ("b", "d"), ("x", "x")]


@pytest.mark.parametrize(("most", "read"), [(4, ["query", "query", "all"]), (3, ["query"] * 4)])
def test_a_small_predicate_that_is_asked_often_is_read_once(most: int, read: list[str]) -> None:
    source = Counting([Fact(EDGE, edge) for edge in EDGES])
    checked = check_program(parse_program(CHAIN), RAW_PROFILE)
    known = Known(checked, source, AllDerived(lambda predicate: []), index_after=2, max_indexed_rows=most)
    for _ in range(4):
        assert sorted(known.rows(EDGE, ("b", None))) == [("b", "c"), ("b", "d")]
    assert source.asked[: len(read)] == read
    assert (len(source.asked) == 3) is (most == 4)
    assert known.size(EDGE) == 4
    assert known.size(PATH) == 2**31
    assert (known.glance(EDGE, ("x", None)), known.glance(EDGE, ("y", None))) == (("x", "x"), None)
    assert (known.holds(Fact(EDGE, ("a", "b"))), known.holds(Fact(EDGE, ("a", "c")))) == (True, False)
    assert (known.is_derived(PATH), known.is_derived(EDGE)) == (True, False)
    assert (known.first(parse_atom("Edge(X,X)")), known.first(parse_atom("Edge(X,'e')"))) == (("x", "x"), None)


def test_whoever_no_longer_waits_ends_an_explanation() -> None:
    checked = check_program(parse_program(CHAIN), RAW_PROFILE)
    known = Known(checked, MemorySource([]), AllDerived(lambda predicate: []), interrupt=lambda: True)
    with pytest.raises(EvaluationStopped, match=r"explaining, at Edge/2"):
        known.rows(EDGE, (None, None))


def test_rows_are_found_by_the_values_at_any_places() -> None:
    index = RowIndex([("b", "d"), ("a", "b"), ("b", "c")])
    assert list(index.find((None, None))) == [("a", "b"), ("b", "c"), ("b", "d")]
    assert list(index.find(("b", None))) == [("b", "c"), ("b", "d")]
    assert list(index.find((None, "c"))) == [("b", "c")]
    assert list(index.find(("b", "d"))) == [("b", "d")]
    assert list(index.find(("", "d"))) == []


@pytest.mark.parametrize(
    ("head", "pattern", "binding"),
    [
        ("H(X,Y)", ("1", None), {"X": "1"}),
        ("H(X,X)", ("1", "1"), {"X": "1"}),
        ("H(X,X)", ("1", "2"), None),
        ("H('1',Y)", ("1", "2"), {"Y": "2"}),
        ("H('1',Y)", ("2", "2"), None),
        ("H('1',Y)", (None, "2"), {"Y": "2"}),
    ],
)
def test_a_head_is_bound_by_the_values_that_are_known(
    head: str, pattern: tuple[str | None, ...], binding: object
) -> None:
    (rule,) = parse_program(f"{head} :- B(X,Y).").rules
    assert bind_head(rule, pattern) == binding
    assert pattern_of(parse_atom("A(X,'k',_,Y)").terms, {"X": "1"}) == ("1", "k", None, None)


ORDERS = [
    # body, bound variables, the order of places
    ("A(X), B(X,Y), X != Y", "", [0, 1, 2]),
    ("B(X,Y), A(X), X != 'k'", "", [1, 2, 0]),
    ("not A(X), B(X,Y), IntCompare(X,'<','3')", "X", [2, 1, 0]),
    ("B(X,Y), B('k',X), A(Z)", "", [1, 0, 2]),
    ("Cardinality(B(X,_),'<','2'), true, B(X,Y), Derived(Y)", "", [1, 3, 2, 0]),
    ("Derived(X), A(X)", "X", [1, 0]),
    ("B(X,Y), B(Y,Z), A(Z)", "Z", [2, 1, 0]),
    ("not A('k'), B(X,Y)", "", [1, 0]),  # what only denies comes last, even where it could be asked at once
]


@pytest.mark.parametrize(("body", "bound", "order"), ORDERS)
def test_a_rule_is_followed_in_an_order_that_reads_little(body: str, bound: str, order: list[int]) -> None:
    checked = check_program(parse_program(f"H() :- {body}.\nDerived(X) :- A(X)."), RAW_PROFILE)
    facts = list(parse_facts("A('1')\nB('1','2')\nB('2','3')\nB('k','1')"))
    known = Known(checked, MemorySource(facts), AllDerived(lambda predicate: [("1",)]))
    rule = checked.program.rules[0]
    assert known.order(rule, dict.fromkeys(bound, "1")) == order
    assert known.order(rule, dict.fromkeys(bound, "9")) is known.order(rule, dict.fromkeys(bound, "1"))


def test_supports_come_with_the_rows_they_took() -> None:
    facts = list(parse_facts("A('1')\nA('2')\nB('1','2')\nB('2','3')"))
    checked = check_program(parse_program("H(X,Y) :- A(X), X != '9', B(X,Y)."), RAW_PROFILE)
    known = Known(checked, MemorySource(facts), AllDerived(lambda predicate: []))
    found = list(supports(known, checked.program.rules[0].body, {}))
    assert found == [
        ({"X": "1", "Y": "2"}, (("1",), None, ("1", "2"))),
        ({"X": "2", "Y": "3"}, (("2",), None, ("2", "3"))),
    ]
    assert list(supports(known, [], {"X": "1"})) == [({"X": "1"}, ())]


# facts that are derived when asked for


def asked_facts(
    rules: str, facts: str, thresholds: EngineThresholds = ENGINE_THRESHOLDS, limits: EngineLimits | None = None
) -> FactsOnDemand:
    checked, base = check_program(parse_program(rules), RAW_PROFILE), Base(list(parse_facts(facts)))
    return FactsOnDemand(checked, base, limits or EngineLimits(), thresholds=thresholds)


FACTS = "Edge('a','b')\nEdge('b','c')\nEdge('c','d')\nEdge('x','y')\nEdge('y','y')"


def test_what_was_derived_for_one_pattern_answers_all_that_it_covers() -> None:
    asked = asked_facts(CHAIN, FACTS)
    assert list(asked.rows(PATH, ("b", None))) == [("b", "c"), ("b", "d")]
    first = asked.latest
    assert list(asked.rows(PATH, ("c", "d"))) == [("c", "d")]  # asked for on the way
    assert list(asked.rows(PATH, ("c", "e"))) == []
    assert asked.latest is first
    assert list(asked.found(PATH, (None, "d"))) == [("b", "d"), ("c", "d")]
    assert list(asked.rows(PATH, (None, "y"))) == [("x", "y"), ("y", "y")]
    assert asked.latest is not first
    assert asked.glance(PATH, ("a", None)) == ("a", "b")
    assert asked.glance(PATH, ("d", None)) is None
    assert list(asked.rows(PATH, (None, None))) == [
        *(("a", end) for end in "bcd"), ("b", "c"), ("b", "d"), ("c", "d"), ("x", "y"), ("y", "y"),
    ]  # fmt: skip
    whole = asked.latest
    assert list(asked.rows(PATH, ("q", None))) == []
    assert asked.latest is whole


def test_the_first_fact_of_a_goal_is_remembered() -> None:
    asked = asked_facts(CHAIN, FACTS)
    assert asked.first(parse_atom("Path('b',Y)")) == ("b", "c")
    touched = asked.rows_touched
    assert asked.first(parse_atom("Path('b',Y)")) == ("b", "c")
    assert (asked.rows_touched, touched > 0) == (touched, True)
    assert asked.first(parse_atom("Path('q',Y)")) is None
    assert asked.first(parse_atom("Path(X,'d')")) == ("a", "d")
    assert asked.rows_touched > touched
    assert asked.first(parse_atom("Path(X,X)")) == ("y", "y")


def test_after_many_patterns_all_facts_are_derived_and_old_results_are_let_go() -> None:
    asked = asked_facts(CHAIN, FACTS, EngineThresholds(patterns_apart=2, kept_results=1))
    for start, count in (("d", 1), ("y", 2), ("c", 3), ("a", 3)):
        list(asked.rows(PATH, (start, None)))
        assert asked.kept_results == count
    asked.forget_oldest()
    assert asked.kept_results == 1
    assert list(asked.rows(PATH, ("c", None))) == [("c", "d")]
    assert asked.kept_results == 1


def test_a_fact_that_is_only_nice_to_have_costs_little() -> None:
    asked = asked_facts(CHAIN, FACTS, EngineThresholds(glance_rows=2))
    assert asked.glance(PATH, ("c", None)) == ("c", "d")
    assert asked.glance(PATH, ("a", None)) is None
    assert list(asked.rows(PATH, ("a", None))) == [("a", "b"), ("a", "c"), ("a", "d")]


def test_base_facts_are_found_by_their_values() -> None:
    base = Base(list(parse_facts(FACTS + "\nOn()\nWide('a','b','c')")))
    facts = BaseFacts(base)
    assert sorted(facts.predicates()) == [EDGE, Predicate("On", 0), Predicate("Wide", 3)]
    assert list(facts.query(EDGE, None, "y")) == [("x", "y"), ("y", "y")]
    assert list(facts.query(EDGE, "x")) == [("x", "y")]
    assert list(facts.query(EDGE, "nobody")) == []
    assert list(facts.iterate(Predicate("On", 0))) == [()]
    assert list(facts.query(Predicate("Off", 0))) == []
    assert (facts.count(EDGE), facts.count(Predicate("Off", 0))) == (5, 0)
    (run,) = base.runs(EDGE)
    assert found_rows(run, ("x", "z"), base.dictionary) == []
    assert found_rows(run, (None, "c"), base.dictionary) == [("b", "c")]
    assert first_row(run, 2, base.dictionary) == ("a", "b")
    assert first_row(run.select((((0, -1),), ())), 2, base.dictionary) is None


def test_limits_of_an_explanation_are_reached_and_not_passed() -> None:
    case = explained(CHAIN, "\n".join(f"Edge('{n}','{n + 1}')" for n in range(5)))
    fact = Fact(PATH, ("0", "5"))
    assert len(proof_nodes(why(case.known, fact, ExplainLimits(max_facts=5)))) == 10
    with pytest.raises(LimitExceeded) as passed:
        why(case.known, fact, ExplainLimits(max_facts=4))
    assert (passed.value.limit, passed.value.allowed) == ("max_facts", 4)
    with pytest.raises(LaceError, match=r"Path\('0','5'\) holds: ask why"):
        why_not(case.known, fact)
