"""What one side brings to an exchange: its module, what its binding has proven, its limits and its choices (050).

Rule: everything the machine decides by is here or comes as an input.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from lace.interlace.negotiate import FieldSchema
from lace.limits import MIB, SECOND_NS, EngineLimits, ExchangeLimits, StreamLimits
from lace.notation.identifiers import H3, Verifier
from lace.policy.operand import Module
from lace.policy.transcript import Lowering

HOUR_NS = 3600 * SECOND_NS


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """What the binding proves about this connection (P24); nothing is taken from the peer's own word."""

    transport: str = ""
    encrypted: bool = False
    here: Verifier | None = None
    peer: Verifier | None = None  # proven by the transport or by the signature of its hello
    signs_hello: bool = False  # the binding proves `here` to the peer, so HelloSigner may be sent (050-SIGN-02)
    peer_signs_hello: bool = False  # the binding proves `peer` by signature, so its HelloSigner may be accepted
    expected_peer: Verifier | None = None  # our side insists on this peer


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineConfig:
    """One side of one exchange."""

    index: int  # P7: 0 for the side that opened the connection
    module: Module
    link: Link = field(default_factory=Link)
    is_open: bool = False  # stay after the fixed point (050-OPEN-01)
    send_gate: bool = True  # P32
    lowering: Lowering = Lowering.STANDARD
    limits: ExchangeLimits = field(default_factory=ExchangeLimits)
    engine_limits: EngineLimits = field(default_factory=EngineLimits)
    max_line_bytes: int = StreamLimits().max_fact_line_bytes
    record_formats: frozenset[str] = frozenset({H3})
    schema: FieldSchema | None = None  # None: exactly what the plan requires
    tick_interval_ns: int = 10 * SECOND_NS
    max_tick_interval_ns: int = 24 * HOUR_NS
    ticks_before_close: int = 0  # 050-TICK-15
    partitions: bool = True  # P16
    partition_threshold_bytes: int = MIB // 2  # listings above this are summarised, if agreed
    max_claims_summarised_here: int = 4096  # roots over more of them are an effect
    is_direct: bool = False  # both sides in one process: advertisements travel as changes (050-ENG-07)
    cursor_key: str = ""  # for links without two signers; no proof of anything (050-LINK-06)
    max_cursor_bytes: int = 512 * MIB
    max_requests: int = 1_000_000  # of one loop (050-REQ-02)
    max_service_records: int = 1_000_000  # of one transfer phase (050-XFER-01)
    max_service_bytes: int = 64 * MIB
    max_result_hashes: int = 1_000_000  # that a result names, of each kind
    known_modules: tuple[Module, ...] = ()  # that we need not be sent (060: a cache)
