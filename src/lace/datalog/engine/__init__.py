"""The embedded engine: dictionary-encoded columns, semi-naive, incremental (030).

What follows changes is loaded when it is first asked for: a query that runs once has no need of it.
"""

from typing import TYPE_CHECKING, Any

from lace.datalog.engine.answering import evaluate
from lace.datalog.engine.base import Base, CombinedSource, RowSource
from lace.datalog.engine.result import Result
from lace.datalog.engine.stats import Stats
from lace.datalog.meter import Meter

if TYPE_CHECKING:
    from lace.datalog.engine.changes import LateRows, RelationChanges
    from lace.datalog.engine.maintain import Materialized, materialize
    from lace.datalog.engine.prepared import PreparedProgram

__all__ = [
    "Base",
    "CombinedSource",
    "LateRows",
    "Materialized",
    "Meter",
    "PreparedProgram",
    "RelationChanges",
    "Result",
    "RowSource",
    "Stats",
    "evaluate",
    "materialize",
]


def __getattr__(name: str) -> Any:
    if name in ("LateRows", "RelationChanges"):
        from lace.datalog.engine import changes

        return getattr(changes, name)
    if name in ("Materialized", "materialize"):
        from lace.datalog.engine import maintain

        return getattr(maintain, name)
    if name == "PreparedProgram":
        from lace.datalog.engine import prepared

        return prepared.PreparedProgram
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
