"""What the two sides of a local exchange bring (050, in-process engine).

Rule: plain values; nothing here opens or changes a store.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from lace.limits import EngineLimits, ExchangeLimits, RecordLimits
from lace.notation.identifiers import Verifier
from lace.policy.exposure import Exposure
from lace.policy.operand import Module
from lace.policy.transcript import Lowering
from lace.records.keys import SigningKey
from lace.store.base import RecordStore

UNBOUNDED = 1 << 62  # no sender budget and no transfer limit: both sides are here


@dataclass(frozen=True, slots=True, kw_only=True)
class Party:
    """What one side brings: its store, its selector, what it exposes, who it is."""

    store: RecordStore
    module: Module
    exposures: tuple[Exposure, ...] = ()
    here: Verifier | None = None
    send_gate: bool = True
    trust_peer: bool = False
    cursor_key: str = ""
    record_limits: RecordLimits = field(default_factory=RecordLimits)  # of what it takes in
    receipts: SigningKey | None = None  # publish a receipt for each record stored (050-RCPT-01)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What holds for both sides of a local exchange."""

    is_open: bool = False
    is_direct: bool = True  # False: advertisements travel as listings or partitions, as on a wire
    lowering: Lowering = Lowering.STANDARD
    limits: ExchangeLimits = field(default_factory=lambda: ExchangeLimits(max_total_transferred_bytes=UNBOUNDED))
    engine_limits: EngineLimits = field(default_factory=EngineLimits)
    tick_interval_ns: int = 10_000_000_000
    partition_threshold_bytes: int = 1 << 19
