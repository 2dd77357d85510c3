"""What every executor asks of a program's facts before it reads them (030, values and limits).

Rule: the same answer for the same snapshot, whichever executor asks and in whatever order facts come.
"""

from __future__ import annotations

from collections.abc import Iterable

from lace.datalog.language.syntax import Fact, Predicate
from lace.datalog.language.validate import CheckedProgram
from lace.datalog.limit_errors import limit_reached
from lace.datalog.source import FactSource
from lace.errors import InvalidLacegram
from lace.limits import EngineLimits
from lace.notation.text import require_nfc


def admit_source(checked: CheckedProgram, source: FactSource, limits: EngineLimits) -> None:
    """Refuse a source that holds facts for a derived predicate, or more facts than the limits allow."""
    shadowed = sorted(checked.derived.intersection(source.predicates()))
    if shadowed:  # 030-SHADOW-01
        message = f"{shadowed[0]} has base facts and cannot be derived"
        raise InvalidLacegram(message, rule="shadowing", advice="choose another head name")
    runtime = [predicate for predicate in checked.base if predicate in checked.profile.runtime]
    others = [predicate for predicate in checked.base if predicate not in checked.profile.runtime]
    _require_at_most("max_runtime_facts", limits.max_runtime_facts, source, runtime)  # 030-LIM-03
    _require_at_most("max_base_facts", limits.max_base_facts, source, others)  # 030-LIM-02


def _require_at_most(limit: str, allowed: int, source: FactSource, predicates: Iterable[Predicate]) -> None:
    if sum(map(source.count, predicates)) > allowed:
        raise limit_reached(limit, allowed, "facts of the predicates that the program reads")


def check_fact(fact: Fact, limits: EngineLimits) -> None:
    """Refuse a fact whose values are not UTF-8 NFC text or pass the tuple limits (030-VAL-01..03)."""
    predicate, values = fact
    if len(values) != predicate.arity:
        raise InvalidLacegram(f"{predicate} given {len(values)} values", rule="arity")
    if predicate.arity > limits.max_tuple_arity:
        raise limit_reached("max_tuple_arity", limits.max_tuple_arity, str(predicate))
    for value in values:
        check_value(value, limits, f"a value of {predicate}")


def check_value(value: str, limits: EngineLimits, what: str = "a fact value") -> None:
    """Refuse a value that is not UTF-8 NFC text or is too long."""
    require_nfc(value)
    allowed = limits.max_value_bytes
    if len(value.encode()) > allowed:
        raise limit_reached("max_value_bytes", allowed, what)
