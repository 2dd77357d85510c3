"""Writing records (010): the stored form that streams, bundles and stores carry.

Rule: one record has one stored form; large data is passed on, not copied, until someone joins it.
"""

from __future__ import annotations

from lace.records.model import Record


def encode_record(record: Record) -> bytes:
    """The stored form: markline and payload."""
    return b"".join(record.stored_chunks())
