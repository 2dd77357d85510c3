"""Mutants that were read and mean the same as the original, each with the reason.

What a rule can say stands in `changes._means_nothing`; here stands what only a reader can. A test sees that each is
still there: whoever changes the line decides anew.
"""

from __future__ import annotations

SAME: dict[tuple[str, str, str], str] = {  # (path under src/lace, line, change) -> why no run can tell them apart
    (
        "interlace/transfer.py",
        "if len(found) > wanted.max_requests:",
        "comparison: len(found) > wanted.max_requests -> len(found) >= wanted.max_requests",
    ): "the smallest n of n, sorted afterwards, are all of them",
    (
        "datalog/engine/sorting.py",
        "middle = len(keys) // 2",
        "constant: 2 -> 3",
    ): "keys are searched for by themselves: any two parts of them give the same places",
    (
        "datalog/engine/verdicts.py",
        "if domain <= 16 * len(column) + 65_536:",
        "comparison: domain <= 16 * len(column) + 65536 -> domain < 16 * len(column) + 65536",
    ): "both ways give the same codes; which costs less changes nowhere near there",
    (
        "datalog/engine/scalar.py",
        "bound_slot = slot(bound.name) if isinstance(bound, Variable) else -1",
        "constant: 1 -> 2",
    ): "only whether it is negative is asked",
    (
        "datalog/engine/table.py",
        "return ColumnRun([], self.rows, 0)",
        "constant: 0 -> 1",
    ): "a run without columns has no code that a domain could bound",
}
