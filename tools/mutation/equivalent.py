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
        "interlace/transfer.py",
        "if len(distinct) == len(records) and distinct <= self.outstanding:",
        "comparison: distinct <= self.outstanding -> distinct < self.outstanding",
    ): "the last that were asked for are taken one by one instead of at once",
    (
        "records/curve.py",
        "alike: list[list[Any]] = [[] for _ in range(1 << bits)]",
        "constant: 1 -> 2",
    ): "twice as many lists as there are digits: the others stay empty",
    (
        "notation/bytesource.py",
        "if len(seen) >= count:",
        "condition: len(seen) >= count -> False",
    ): "of further chunks nothing is added; it only saves looking at them",
    (
        "notation/bytesource.py",
        "if len(seen) >= count:",
        "comparison: len(seen) >= count -> len(seen) > count",
    ): "of one more chunk nothing is added",
    (
        "iltp/packed.py",
        "lines = reader.decompress(data, whole + 1)",
        "constant: 1 -> 2",
    ): "a byte more than was told is enough to see that there are more, and two are as well",
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
