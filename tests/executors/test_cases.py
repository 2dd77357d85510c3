"""Every program of tests/cases on every executor."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

from executors.cases import CASES, NAMES, read_case
from executors.executors import EXECUTORS, Executor
from lace.datalog.language.formatting import format_fact
from lace.datalog.language.syntax import Fact
from lace.errors import InvalidLacegram, LaceError, LimitExceeded

mark = pytest.mark

# The clauses that single cases prove; the others are families around them.
CLAUSES = {
    "join-two-atoms": mark.clause("030-SYN-22", "030-TERM-06"),
    "join-anonymous-independent": mark.clause("030-TERM-03", "030-TERM-04"),
    "join-repeated-variable": mark.clause("030-TERM-06"),
    "join-name-with-two-arities": mark.clause("030-SYN-25"),
    "join-names-of-every-kind": mark.clause("030-SYN-09", "030-SYN-11"),
    "join-eight-columns": mark.clause("030-LIM-07"),
    "join-zero-arity-guard": mark.clause("030-SYN-06"),
    "union-two-rules": mark.clause("030-SYN-23"),
    "union-duplicate-rule": mark.clause("030-SYN-23"),
    "body-true-alone": mark.clause("030-SYN-08", "030-SYN-20", "030-CLASS-02"),
    "body-true-beside-others": mark.clause("030-SYN-20"),
    "body-undefined-predicate": mark.clause("030-SYN-24"),
    "program-empty": mark.clause("030-SYN-26", "030-CLASS-02"),
    "program-rules-in-any-order": mark.clause("030-EVAL-02", "030-EVAL-07"),
    "values-odd-texts": mark.clause("030-VAL-04", "030-VAL-05", "030-TERM-13"),
    "values-odd-constants": mark.clause("030-TERM-09", "030-TERM-14"),
    "values-are-exact-bytes": mark.clause("030-VAL-04", "030-VAL-06"),
    "values-numbers-are-texts": mark.clause("030-VAL-04"),
    "values-long": mark.clause("030-LIM-08", "030-VAL-03"),
    "not-undefined": mark.clause("030-SYN-24", "030-STRAT-09"),
    "not-zero-arity": mark.clause("030-SYN-15"),
    "not-four-strata": mark.clause("030-EVAL-02", "030-EVAL-03"),
    "not-closure": mark.clause("030-EVAL-03", "030-STRAT-09"),
    "not-unreachable": mark.clause("030-STRAT-10"),
    "recursion-mutual-even-odd": mark.clause("030-STRAT-06", "030-EVAL-01"),
    "recursion-no-new-values": mark.clause("030-EVAL-06"),
    "recursion-counted-above": mark.clause("030-STRAT-08"),
    "closure-non-linear-dense": mark.clause("030-EVAL-01", "030-EVAL-05"),
    "int-lt-small": mark.clause("030-INT-01", "030-INT-02"),
    "int-le-zeros": mark.clause("030-INT-07"),
    "int-lt-int64": mark.clause("030-INT-05"),
    "int-ge-long": mark.clause("030-INT-05"),
    "int-ge-not-integers": mark.clause("030-INT-06"),
    "lex-lt-planes": mark.clause("030-LEX-03"),
    "lex-lt-prefix": mark.clause("030-LEX-01", "030-LEX-06"),
    "lex-gt-tai": mark.clause("030-LEX-04"),
    "lex-lt-b64a": mark.clause("030-LEX-05"),
    "unequal-two-variables": mark.clause("030-EQ-07"),
    "unequal-constant-left": mark.clause("030-EQ-08"),
    "unequal-equals-sign-in-constant": mark.clause("030-EQ-06"),
    "shape-variable-parts-slash": mark.clause("030-SHAPE-03", "030-SHAPE-27"),
    "shape-00": mark.clause("030-SHAPE-10"),
    "cardinality-lt-1": mark.clause("030-CARD-01", "030-CARD-02", "030-CARD-03", "030-CARD-08"),
    "cardinality-ge-word": mark.clause("030-CARD-06"),
    "cardinality-le-variable-bound": mark.clause("030-CARD-06"),
    "cardinality-undefined-predicate": mark.clause("030-CARD-08", "030-SYN-24"),
    "cardinality-zero-arity": mark.clause("030-CARD-09"),
    "cardinality-repeated-local": mark.clause("030-SAFETY-11"),
    "cardinality-anonymous-counts-facts": mark.clause("030-CARD-04"),
    "cardinality-of-union": mark.clause("030-CARD-01", "030-STRAT-08"),
    "cardinality-nothing-bound": mark.clause("030-CARD-07"),
    "records-group-app-name": mark.clause("030-EX-01"),
    "records-evidence-target": mark.clause("030-EX-03"),
    "records-newest-2": mark.clause("030-EX-04", "030-CARD-12"),
    "records-not-blocked": mark.clause("030-EX-05"),
    "records-claims-are-no-records": mark.clause("030-CLASS-11", "030-CLASS-12"),
    "invalid-unbound-head-variable": mark.clause("030-INV-01", "030-SAFETY-15"),
    "invalid-anonymous-head": mark.clause("030-INV-02"),
    "invalid-anonymous-in-builtin": mark.clause("030-INV-03"),
    "invalid-underscore-name-as-term": mark.clause("030-INV-04"),
    "invalid-shadows-have": mark.clause("030-INV-05"),
    "invalid-shadows-have-ground": mark.clause("030-INV-05"),
    "invalid-negative-cycle": mark.clause("030-INV-06"),
    "invalid-negative-cycle-unguarded": mark.clause("030-INV-06"),
    "invalid-cardinality-cycle": mark.clause("030-INV-07"),
    "invalid-prefix": mark.clause("030-INV-08"),
    "invalid-equality": mark.clause("030-INV-09"),
    "invalid-facts-for-a-head": mark.clause("030-SHADOW-01"),
    "limit-iterations-reached": mark.clause("030-LIM-06", "030-LIM-11"),
    "limit-iterations-passed": mark.clause("030-LIM-06", "030-LIM-09", "030-LIM-10"),
    "limit-derived-reached": mark.clause("030-LIM-04", "030-LIM-11"),
    "limit-derived-passed": mark.clause("030-LIM-04", "030-LIM-09", "030-LIM-10"),
    "limit-base-reached": mark.clause("030-LIM-02", "030-LIM-11"),
    "limit-base-passed": mark.clause("030-LIM-02", "030-LIM-09"),
    "limit-256-rules": mark.clause("030-LIM-05"),
    "limit-fact-value-passed": mark.clause("030-VAL-03", "030-LIM-09"),
}


@pytest.mark.parametrize("run", EXECUTORS)
@pytest.mark.parametrize("name", [pytest.param(name, marks=CLAUSES.get(name, ())) for name in NAMES])
def test_case_gives_its_expected_facts_or_error(name: str, run: Executor) -> None:
    case = read_case(name)
    if case.error:
        with pytest.raises(LaceError) as refused:
            run(case.check(), case.base_facts(), case.limits)
        assert told(refused.value) == case.error
    else:
        derived = run(case.check(), case.base_facts(), case.limits)
        assert {format_fact(Fact(p, row)) for p, rows in derived.items() for row in rows} == case.expected


def told(error: LaceError) -> str:
    """An error as error.txt names it."""
    match error:
        case InvalidLacegram():
            return f"InvalidLacegram {error.rule}"
        case LimitExceeded():
            return f"LimitExceeded {error.limit}"
        case _:
            return type(error).__name__


def test_every_named_case_exists() -> None:
    assert set(NAMES) >= CLAUSES.keys()
    assert len(NAMES) >= 250


def test_the_cases_are_what_their_generator_writes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = Path(CASES).parent.parent / "tools" / "make_cases.py"
    monkeypatch.setattr(sys, "argv", [str(tool), "--check"])
    monkeypatch.setattr(sys, "path", list(sys.path))
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(tool), run_name="__main__")
    assert ended.value.code == 0, capsys.readouterr().out
