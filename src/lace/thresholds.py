"""Sizes at which a part goes from its plain way to a faster one, or begins to tidy up.

Rule: none of them changes an answer, only what it costs; that is what makes them different from `lace.limits`. They are
handed in where a part is opened, so that a test can have both ways with a handful of records. docs/ways.md lists the
ways, what each buys, and the test that compares it with the plain one.
"""

from __future__ import annotations

from dataclasses import field

from lace.limits import KIB, MIB
from lace.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreThresholds:
    """What one open store file goes by."""

    bulk_texts: int = 4096  # of a batch: index keys by numpy, added as a run before anything is looked up (225)
    matrix_texts: int = 256  # of one length in such a batch: their keys by one product of a matrix
    looked_up_pages: int = 256  # of runs, one by one; for more the runs are read into memory
    run_page_keys: int = 337  # in a row of a run: four such rows fill a page of the file
    run_fanout: int = 8  # runs of a size: then they become one
    folded_run_keys: int = 512 * KIB  # of a run: it is not folded further, which bounds what folding holds in memory
    held_run_keys: int = 8 * MIB  # 12 bytes each; runs beyond these are read each time they are searched
    whole_dictionary_texts: int = 1000  # asked for at once, and more than there are: the dictionary is read whole
    long_body_bytes: int = MIB  # of a record: written in place, because SQLite copies a parameter twice
    small_write_bytes: int = MIB  # of a put: after shorter ones the log is copied into the file early
    caught_up_records: int = 512  # behind the writers: then a compaction holds them up and takes the rest


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleThresholds:
    """What the reader of a bundle goes by."""

    read_bytes: int = MIB  # at a time; a record longer than this is not held twice
    rejected_piece_bytes: int = MIB  # damage longer than this comes in several pieces


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
    # bodies that go round in a circle, value by value against two atoms at a time (`lace.datalog.engine.meeting`)
    meeting_growth: float = 4.0  # rows that a join makes of one of those that it starts from
    meeting_growth_followed: float = 32.0  # the same where a change is followed: rows that one row leads to
    # following a change against computing the stratum again (`lace.datalog.engine.follow`)
    follow_share: float = 0.4  # of what computing a stratum took: what following may take
    follow_rows: int = 16_384  # rows touched that are always worth trying
    # a table that changes (`lace.datalog.engine.table`)
    bulk_rows: int = 64  # from here on rows are looked up as columns
    flush_rows: int = 16_384  # rows beside the columns that are always cheap enough
    flush_part: int = 16  # one in so many rows of the columns: if more stand beside them, they become columns too
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
STOPPABLE_THRESHOLDS = EngineThresholds(batch_rows=1 << 17)  # for whoever may tell an evaluation to stop, and waits


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceThresholds:
    """070: how sets of ids are measured and hashed."""

    scalar_sums: int = 12  # ids that are summed one by one (`lace.differences.scalarsums`)
    cut_parts: int = 256  # stale parts of a tree that are cut out of a set one by one; for more it is walked once


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimThresholds:
    """050, P16: how a host holds what a peer claims."""

    column_claims: int = 64  # of one partition: from here on columns of their own take less room than objects
    guessed_roots: int = 8_192  # tried in a call for partitions that lack one record of ours
    guessed_rows: int = 1 << 21  # claims hashed for that: a root costs as much as its partition is long


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadThresholds:
    """050-XFER-01: how the records of a request are found in a store (`lace.runtime.host.storedbatches`)."""

    long_request: int = 1_024  # hashes; a shorter request is answered in its own order
    sweep_share: int = 8  # a request for more than this part of a store is a sweep through its records


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamThresholds:
    """060: how much of a stream is read or written before others have their turn."""

    read_fact_bytes: int = 32 * KIB  # of fact lines, about a millisecond of work
    read_blocks: int = 64
    packed_bytes: int = 256 * KIB  # of fact lines in one packed item


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedThresholds:
    """When a program that was compiled once answers (`lace.datalog.engine.prepared`)."""

    max_facts: int = 256  # of one question; to plan rules for more does not matter
    max_texts: int = 20_000  # values that questions brought, after which all of them are forgotten


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleThresholds:
    """How rules follow a store (`lace.runtime.rules`)."""

    max_followed_facts: int = 1_000  # of one change; after more, everything is evaluated
    max_followed_records: int = 50_000  # that came, where each is looked at by itself; after more, everything is
    max_read_records: int = 1_000  # stored records that are read one by one for what claims or parts say of them
    max_short_records: int = 16  # that the thread which stored them evaluates for everybody
    max_shared_claims: int = 64  # for which an answer is kept for the next peer that makes the same claims
    min_columns: int = 64  # records; the fields of more are read from columns instead of from each record,
    column_share: int = 32  # if they are more than this part of the store, whose columns are looked through
    again_rows: int = 4_000  # of work for each rule, half of it to plan: it is done again sooner than more is planned
    again_times: int = 3  # in a row, after which what follows changes is compiled all the same
    min_claim_columns: int = 1_024  # claims without fields; more are columns
    min_kept_ids: int = 10_000  # of a set that is kept with the lace; evaluating fewer again costs less
    kept_piece_ids: int = 1 << 17  # that are kept as one value, of which a store holds three copies for a moment
    prepared: PreparedThresholds = field(default_factory=PreparedThresholds)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveThresholds:
    """Up to where this process carries out a step of an archive (decisions 205, 275, 395), and how jobs join."""

    in_process_bytes: int = 64 << 20  # of new inputs, and of the files that a step reads through; 0: always Spark
    whole_bytes: int = 8 << 20  # of the records that rules look at all at once
    scanned_rows: int = 4_000_000  # rows of one narrow column that something is looked for in
    held_rows: int = 1_000_000  # rows of narrow columns that are held at once
    looked_up_digests: int = 16_384  # of new bytes that this process looks for in files, for jobs too
    broadcast_rows: int = 1_000_000  # hashes, digests or places that every task of a job is given
    task_rows: int = 250_000  # hashes that one task makes a table of, or rows that it sorts: 30 to 100 MB
    digesting_threads: int = 16  # of the driver, that digest inputs on its own disks side by side
    row_tests: int = 64  # rules, and values of a set, of the test that every row is asked; 0: rows are joined
