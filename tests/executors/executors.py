"""The executors that the case suite and the differential tests run on.

An executor is `run(checked, facts, limits)` and gives every derived predicate with its rows. To add one, add a line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from executors import reference
from lace.datalog import engine
from lace.datalog.language.syntax import Fact, Predicate
from lace.datalog.language.validate import CheckedProgram
from lace.datalog.source import Row
from lace.limits import EngineLimits

Relations = dict[Predicate, set[Row]]
Executor = Callable[[CheckedProgram, Sequence[Fact], EngineLimits], Relations]


def run_reference(checked: CheckedProgram, facts: Sequence[Fact], limits: EngineLimits) -> Relations:
    """The naive evaluator."""
    return reference.evaluate(checked, facts, limits)


def run_embedded(checked: CheckedProgram, facts: Sequence[Fact], limits: EngineLimits) -> Relations:
    """The engine over columns."""
    result = engine.evaluate(checked, facts, limits=limits)
    return {predicate: set(result.rows(predicate)) for predicate in result.derived}


def run_incremental(checked: CheckedProgram, facts: Sequence[Fact], limits: EngineLimits) -> Relations:
    """The engine over every other fact, the rest added afterwards, and one fact taken away and given back."""
    kept = engine.materialize(checked, facts[::2], limits)
    kept.apply(added=facts[1::2])
    kept.apply(removed=facts[:1])
    kept.apply(added=facts[:1])
    return {predicate: set(kept.rows(predicate)) for predicate in checked.derived}


EXECUTORS = [
    pytest.param(run_reference, id="reference"),
    pytest.param(run_embedded, id="embedded"),
    pytest.param(run_incremental, id="incremental"),
]
