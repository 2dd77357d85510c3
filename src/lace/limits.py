"""One frozen dataclass per limit table of the specifications, with the defaults printed there.

Rule: code that obeys a limit takes it as an argument of one of these types; by default the values printed here hold,
and no module has limits of its own that cannot be passed in.
"""

from __future__ import annotations

from lace.values import dataclass

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB
SECOND_NS = 1_000_000_000
HORIZON_S = 24 * 3600  # how far ahead a record may be dated: clocks are wrong, but not by a day


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordLimits:
    """010: what one record may hold."""

    max_header_line_bytes: int = 1024  # without its LF
    max_data_bytes: int = 32 * MIB  # content beyond it is stored as chunks under a manifest
    max_extra_headers: int = 512  # beside those that 010 names
    max_group_segment_bytes: int = 56  # P27: when building only
    max_name_segment_bytes: int = 128  # P27: when building only
    max_manifest_depth: int = 8  # manifests below manifests, for very large content


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgingLimits(RecordLimits):
    """What one record may hold, and how many records a Spark task judges at a time."""

    records_at_once: int = 4096  # what one sum of signatures takes
    bytes_at_once: int = 64 * MIB  # records may be large: what a task holds, and one record more


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLimits:
    """030: what one evaluation may hold (the table gives minimums; these are its values or above)."""

    max_base_facts: int = 1 << 27
    max_runtime_facts: int = 1 << 24
    max_derived_facts_per_predicate: int = 1 << 26
    max_rules: int = 256
    max_stratum_iterations: int = 1_000_000
    max_tuple_arity: int = 8
    max_value_bytes: int = 1024
    max_rule_literals: int = 64  # of one body; choosing a join order is quadratic in it, and operands come from peers
    max_working_rows: int = 1 << 27  # rows that one join step may hold before projection
    max_rows_touched: int = 1 << 37  # P36: by one evaluation, one change or one explanation
    max_peer_rows_touched: int = 1 << 29  # those of them that rules written by a peer touch
    max_held_bytes: int = 32 * GIB  # derived facts and the rows of the step at work


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainLimits:
    """What one explanation may look at."""

    max_facts: int = 1_000_000  # derived facts looked at for one proof
    max_bindings: int = 10_000  # bindings followed at one atom of a rule that failed
    max_depth: int = 4  # absences explained below an absence
    max_examples: int = 3  # facts shown beside a count


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeLimits:
    """050: what one exchange may use."""

    max_fact_block_size: int = 64 * MIB  # of one block between two blank lines, unpacked
    max_advertisement_records_listed: int = 100_000  # in one listing; more are compared by partitions
    max_partition_summaries: int = 16_384  # P16: per loop and direction
    max_narrowing_depth: int = 12  # characters of a hash that name a partition
    max_total_transferred_bytes: int = GIB  # of records, in either direction
    max_loop_iterations: int = 16  # of one round: up to a fixed point, whether records move or not
    phase_timeout_ns: int = 30 * SECOND_NS  # of silence while something is due


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamLimits:
    """060: what one stream direction may carry."""

    max_fact_line_bytes: int = 1024  # without LF
    max_comment_line_bytes: int = 128  # with LF
    max_resource_marker_bytes: int = 1024  # without LF
    max_resource_bytes: int = MIB  # of one rule text
    max_resource_lines: int = 4096  # of one rule text
    max_resources: int = 256  # rule texts of one stream


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreLimits:
    """What one open store may use and how long it waits."""

    busy_timeout_ms: int = 10_000  # for another process's write to end
    page_cache_bytes: int = 48 * MIB  # of the database, for each connection
    checkpoint_bytes: int = 192 * MIB  # of the write-ahead log: hot index pages reach the file once, not once a batch
    small_checkpoint_bytes: int = 8 * MIB  # of the log after writes of few records, which leave a page or more each
    min_free_bytes: int = 16 * MIB  # on the disk: with less nothing is stored, so that something can still be removed
    min_reserve_bytes: int = MIB  # of the file that is given up for removing; it grows with the store
    max_reserve_bytes: int = 32 * MIB  # 0: none is kept
    max_kept_removals: int = 4096  # delete transactions that a follower may lag behind


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestLimits:
    """What an import of bundles may hold in memory."""

    max_chunk_records: int = 4096  # one chunk is one durable transaction
    max_chunk_bytes: int = 6 * MIB
    max_waiting_bytes: int = 24 * MIB  # read and not yet stored
    min_bytes_for_workers: int = 4 * MIB  # below this, starting processes costs more than it saves
