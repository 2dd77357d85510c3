"""Mutants that were read and mean the same as the original, each with the reason.

What a rule can say stands in `changes._means_nothing`; here stands what only a reader can. A test sees that each is
still there: whoever changes the line decides anew.
"""

from __future__ import annotations

SAME: dict[tuple[str, str], str] = {  # (path under src/lace, change) -> why no run can tell them apart
    (
        "interlace/transfer.py",
        "comparison: len(found) > wanted.max_requests -> len(found) >= wanted.max_requests",
    ): "the smallest n of n, sorted afterwards, are all of them",
}
