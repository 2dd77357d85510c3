"""030: the rule language, from text to derived facts.

As a library: a `Database` of facts, `compile` for rules, `Program.run`, `explain` and `follow` (docs/datalog.md).

`language` reads and checks rules, `planning` turns them into plans, `engine` runs plans in this process, `explain` says
why a fact holds or does not. Spark runs the same plans (`lace.spark.engine`).

The words of this floor:

- **lacegram**: the text of a program, in canonical form if it has an identifier.
- **predicate**, **atom**, **literal**, **rule**, **program**: as in every Datalog; `language.syntax` has the tree.
- **base fact**, **derived fact**: given by a source; given by a rule.
- **runtime fact**: a base fact that no record holds, such as who asks.
- **goal**: an atom that says which derived facts somebody wants.
- **demand**: what a program has to derive for a goal (magic sets).
- **stratum**: predicates that are completed together, after those that they negate or count.
- **ranked** predicate: an ordering that is only counted, so a position in a sorted list stands for its facts (P31).
- **plan**: one chain of scans, joins and tests for a rule; every executor runs it.
- **source**: a fixed snapshot of base facts, by rows or by columns.
- **meter**: counts rows of work (P36), and stops an evaluation that exceeds a limit.

What never happens here: I/O, a clock other than for the figures of a report, an answer that depends on the order of
rules or facts, a program that was not checked.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lace.datalog.explain.explanation import Explanation
    from lace.datalog.language.syntax import Fact, Predicate
    from lace.datalog.library.database import Database
    from lace.datalog.library.facttexts import fact_text
    from lace.datalog.library.program import CompiledProgram as Program
    from lace.datalog.library.program import (
        DerivedRelation,
        FactChanges,
        FollowedProgram,
        RunResults,
        compile,  # noqa: A004  # as re.compile
    )
    from lace.limits import EngineLimits, ExplainLimits

__all__ = [
    "Database",
    "DerivedRelation",
    "EngineLimits",
    "ExplainLimits",
    "Explanation",
    "Fact",
    "FactChanges",
    "FollowedProgram",
    "Predicate",
    "Program",
    "RunResults",
    "compile",
    "fact_text",
]

_HOMES = {
    "lace.datalog.explain.explanation": "Explanation",
    "lace.datalog.language.syntax": "Fact Predicate",
    "lace.datalog.library.database": "Database",
    "lace.datalog.library.facttexts": "fact_text",
    "lace.datalog.library.program": "DerivedRelation RunResults FactChanges FollowedProgram CompiledProgram compile",
    "lace.limits": "EngineLimits ExplainLimits",
}
_NAMES = {name: (module, name) for module, names in _HOMES.items() for name in names.split()}
_NAMES["Program"] = _NAMES.pop("CompiledProgram")


if not TYPE_CHECKING:  # a type checker reads the imports above, so that it finds a name that is misspelt

    def __getattr__(name):
        """Import a public name from the module that defines it, and keep it here."""
        if name not in _NAMES:
            raise AttributeError(f"module 'lace.datalog' has no attribute {name!r}")
        module, own = _NAMES[name]
        value = globals()[name] = getattr(import_module(module), own)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES})
