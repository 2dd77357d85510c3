"""The embedded engine: dictionary-encoded columns, semi-naive, incremental (030)."""

from lace.datalog.engine.answering import evaluate
from lace.datalog.engine.base import Base, CombinedSource, RowSource
from lace.datalog.engine.changes import Changes, LateRows
from lace.datalog.engine.maintain import Materialized, materialize
from lace.datalog.engine.result import Result
from lace.datalog.engine.stats import Stats
from lace.datalog.meter import Meter

__all__ = [
    "Base",
    "Changes",
    "CombinedSource",
    "LateRows",
    "Materialized",
    "Meter",
    "Result",
    "RowSource",
    "Stats",
    "evaluate",
    "materialize",
]
