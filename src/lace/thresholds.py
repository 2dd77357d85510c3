"""Sizes at which a part goes from its plain way to a faster one, or begins to tidy up.

Rule: none of them changes an answer, only what it costs; that is what makes them different from `lace.limits`. They are
handed in where a part is opened, so that a test can have both ways with a handful of records. docs/ways.md lists the
ways, what each buys, and the test that compares it with the plain one.
"""

from __future__ import annotations

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
