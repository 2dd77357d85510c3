"""The embedded engine: dictionary-encoded columns, semi-naive, incremental (030).

What follows changes is loaded when it is first asked for: a query that runs once has no need of it.

The words of this floor:

- **code**: a value as a number below the size of the `Dictionary`; equal texts have equal codes.
- **run**: an immutable batch of distinct rows, as columns of codes; **index**: row numbers by key, for one run.
- **relation**: the runs of a predicate while a program is evaluated: old rows, those of the last round, new ones.
- **base**: the relations of a snapshot, loaded once and shared by evaluations.
- **verdict**: what a built-in says of a code or of two, found once.
- **table**: a relation that changes: a run, rows added since, rows removed since.
- **tombstones**: the numbers of rows of a run that are no longer facts.
- **visibility**: which rows of a table a rule sees while a change is worked through: the new state, what stood before
  and still stands, or the new state and what is going.
- **ghost**: a row that a recomputed table no longer has, and that rules looking for its dependents still see.
- **trigger**: a place of a rule body where a change sets the rule off; **turned rule**: the rule that starts there.
- **rank**: of a fact of a recursive stratum, a number above those of the facts that one derivation of it rests on.
- **doubtful**: a fact that may have lost a derivation; it is proven from lower ranks, or goes.
- **level**: the values of a column below each beginning of rows; **meeting**: the values that several atoms share.
- **grid**: rows as columns on their way from rule to rule; a few rows are tuples instead.

What never happens here: a run changes, a code is given twice, a change is half done (it is committed or rolled back), a
threshold (`lace.thresholds`) changes an answer.
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
