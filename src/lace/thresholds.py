"""Sizes from which on one way to do a thing is better than another: one frozen dataclass per area.

Rule: a threshold changes what something costs and never what comes out. Whoever chooses between two ways takes the
value from here or from the caller, so a test that compares both ways hands in its own. docs/ways.md lists the ways.
"""

from __future__ import annotations

from lace.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineThresholds:
    """030: how the embedded engine evaluates and follows changes."""

    # a goal: demand against evaluation without it (`lace.datalog.engine.answering`)
    head_start_rows: int = 600_000  # rows of work, some milliseconds, that no demand is questioned for
    demand_share: float = 0.15  # of the work without demand that demand may add to it
    open_demand_share: float = 0.05  # the same for goals without constants, of which less is expected
    # rows one by one against columns (`lace.datalog.engine.turned_rules`)
    single_rows: int = 12  # rows that are followed one by one
    single_rows_reached: int = 96  # rows that these may lead to, before columns are the better way
    # following a change against computing the stratum again (`lace.datalog.engine.follow`)
    follow_share: float = 0.4  # of what computing a stratum took: what following may take
    follow_rows: int = 16_384  # rows touched that are always worth trying
    # a table that changes (`lace.datalog.engine.table`)
    bulk_rows: int = 64  # from here on rows are looked up as columns
    flush_rows: int = 16_384  # rows beside the columns that are always cheap enough
    flush_part: int = 16  # one in so many rows of the columns: if more stand beside them, they become columns too
    same_part: int = 64  # one in so many: if fewer rows of a recomputed table differ, its columns and indexes stay
    # rows that left a run (`lace.datalog.engine.tombstones`)
    compared_rows: int = 64  # from here on rows are compared as columns
    compared_rows_indexed: int = 6  # and from here on if there is an index of whole rows
    marks_part: int = 256  # one row in so many: from here on marks are worth their memory
    # an index against comparing all rows (`lace.datalog.engine.runs`)
    compared_run_rows: int = 4_096  # a run of fewer is ordered in no time
    # answers for explanations (`lace.datalog.engine.on_demand`)
    patterns_apart: int = 32  # evaluations for patterns of one predicate, after which it is derived in full
    glance_rows: int = 10_000  # what a fact that is only nice to have may cost
    kept_results: int = 64
    # how much is taken at a time
    batch_rows: int = 1 << 21  # of a join
    page_rows: int = 1 << 14  # of JSON lines
    halved_rows: int = 1 << 18  # from here on two threads sort: some milliseconds of work, a thread starts in a tenth
    words_texts: int = 20_000  # from here on texts are sorted as machine words
    kept_texts: int = 1 << 16  # single texts of a source


ENGINE_THRESHOLDS = EngineThresholds()
