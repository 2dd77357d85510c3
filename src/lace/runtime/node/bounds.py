"""What one link and all links together may hold and do at a time.

Rule: every buffer, batch and phase of a driver is bounded by something here.
"""

from __future__ import annotations

import asyncio

from lace.limits import KIB, MIB
from lace.values import dataclass

MANY_CLAIMS = 1024  # that take a turn of their own to look through


@dataclass(frozen=True, slots=True, kw_only=True)
class DriveLimits:
    """What one link may hold and do at a time."""

    max_waiting_bytes: int = 24 * MIB  # received and not yet taken by a phase, or not yet stored
    max_batch_bytes: int = 5 * MIB  # of one commit
    max_batch_records: int = 100_000
    linger_s: float = 0.05  # how long a smaller batch waits for more of the records that were asked for
    max_unsent_bytes: int = MIB  # of listings and records; no more is read from the store while more is unsent
    service_ns: int = 15_000_000_000  # how long one transfer phase may take us to write; the rest is deferred
    flush_timeout_s: float = 30.0
    leftover_s: float = 0.4  # how long is worked for a peer that has hung up; twice that if it helps
    send_timeout_s: float = 120.0  # who takes none of what was written for so long is cut
    max_unsent_blocks: int = 16  # of ours; a peer in lockstep leaves fewer, one that runs ahead is not read from
    steps_a_turn: int = 16  # requests that are carried out before other links have their turn
    short_rules_bytes: int = 256  # of a peer that are read in a turn: a millisecond, and those of most peers
    one_job_records: int = 16  # up to so many, and
    one_job_bytes: int = 64 * KIB  # so long, records are judged and committed by one thread
    verify_slices: int = 2  # threads that verify one batch, and batches judged at a time


class Budget:
    """Bytes that several links together may hold; shared by all drivers of a node."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.held: int = 0
        self.holders = 0  # links that hold anything
        self.freed: asyncio.Event = asyncio.Event()

    def change(self, by: int) -> None:
        """Take or give back."""
        self.held += by
        if by < 0:
            self.freed.set()
