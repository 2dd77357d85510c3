"""What one side brings to an exchange, and what one connection makes of it (050).

Rule: everything a machine and its host decide by is here or comes as an input. One set of terms, one set of limits:
a driver of an exchange, over a wire or in one process, hands in these and nothing else.
"""

from __future__ import annotations

from dataclasses import field, replace

from lace.differences.sketchsize import CompareLimits
from lace.interlace.setup.hello import FieldSchema
from lace.limits import MIB, SECOND_NS, EngineLimits, ExchangeLimits, RecordLimits, StreamLimits
from lace.notation.identifiers import H3, Verifier
from lace.policy.exposure import Exposure
from lace.policy.operand import Module
from lace.policy.transcript import Lowering
from lace.thresholds import ClaimThresholds, RuleThresholds, StreamThresholds
from lace.values import dataclass

HOUR_NS = 3600 * SECOND_NS


@dataclass(frozen=True, slots=True)
class Rules:
    """What our side may change while an exchange is open (050-OPEN-05): what it selects, and what it shows."""

    module: Module
    exposures: tuple[Exposure, ...] = ()  # what a peer's rules may see of our records

    def are(self, others: Rules) -> bool:
        """Whether others say the same."""
        shown, theirs = ([exposure.id for exposure in rules.exposures] for rules in (self, others))
        return self.module.id == others.module.id and shown == theirs


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What our side brings to every exchange of one kind."""

    module: Module
    exposures: tuple[Exposure, ...] = ()  # what a peer's rules may see of our records
    is_open: bool = False  # stay after the fixed point (050-OPEN-01)
    send_gate: bool = True  # P32
    trust_peer: bool = False  # 040-LOCAL-04
    shows_unfinished: bool = True  # without an exposure: the manifests of content that lacks parts
    lowering: Lowering = Lowering.STANDARD
    record_formats: frozenset[str] = frozenset({H3})
    schema: FieldSchema | None = None  # None: exactly what the plan requires
    known_modules: tuple[Module, ...] = ()  # that we need not be sent (060: a cache)
    partitions: bool = True  # P16
    differences: bool = True  # 070, where the connection brings a salt
    compression: bool = True  # 070, the same; never over an encrypted transport
    refusals: bool = True  # 071, where the connection announces it
    tick_interval_ns: int = 10 * SECOND_NS
    ticks_before_close: int = 0  # 050-TICK-15
    # the limit tables of the specifications
    limits: ExchangeLimits = field(default_factory=ExchangeLimits)
    engine_limits: EngineLimits = field(default_factory=EngineLimits)
    record_limits: RecordLimits = field(default_factory=RecordLimits)
    stream_limits: StreamLimits = field(default_factory=StreamLimits)
    # bounds of our own
    claim_thresholds: ClaimThresholds = field(default_factory=ClaimThresholds)
    rule_thresholds: RuleThresholds = field(default_factory=RuleThresholds)
    stream_thresholds: StreamThresholds = field(default_factory=StreamThresholds)
    compare_limits: CompareLimits = field(default_factory=CompareLimits)
    min_compared: int = 32  # records below which a first listing costs less than comparing
    min_asked_in_one_line: int = 16  # records; fewer cost little and stay to be read one by one (070-ALL-01)
    max_tick_interval_ns: int = 24 * HOUR_NS
    partition_threshold_bytes: int = MIB // 2  # listings above this are summarised, if agreed
    max_requests: int = 1_000_000  # of one loop (050-REQ-02)
    max_taken: int = 256  # records that come in a first loop without a request, where nothing speaks against it (070)
    max_service_records: int = 1_000_000  # of one transfer phase (050-XFER-01)
    max_service_bytes: int = 512 * MIB
    max_cursor_bytes: int = 512 * MIB
    max_result_hashes: int = 1_000_000  # that a result names, of each kind

    @property
    def rules(self) -> Rules:
        """What may change while an exchange is open."""
        return Rules(self.module, self.exposures)

    def under(self, rules: Rules) -> Terms:
        """These terms with other rules."""
        return replace(self, module=rules.module, exposures=rules.exposures)

    @property
    def max_line_bytes(self) -> int:
        """The longest fact line that we send or accept, without its LF."""
        return self.stream_limits.max_fact_line_bytes


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
    """One side of one exchange: its terms and its place."""

    index: int  # P7: 0 for the side that opened the connection
    terms: Terms
    link: Link = field(default_factory=Link)
    cursor_key: str = ""  # for links without two signers; no proof of anything (050-LINK-06)
    salt: int | None = None  # fresh and random, below 2^128; without one 070 is not offered
    is_empty: bool = False  # our store holds no record; nobody is told
    holds_nothing: bool = False  # our store is empty and would be shown: whatever the peer lists is news (070)
    takes: int = 0  # records that we lack and take without naming them, under rules that would name all of them (070)
    refusals: bool = False  # announce 071, if the terms do
    wants_lengths: bool = False  # whether we would keep a record may hang on its length (071)
    is_direct: bool = False  # both sides in one process: advertisements travel as changes (050-ENG-07)

    @property
    def is_asker(self) -> bool:
        """Whether we decode sketches and the peer makes them (070)."""
        return self.index == 0
