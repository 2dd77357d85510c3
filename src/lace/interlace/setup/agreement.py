"""What setup and hello come to (050): the plan, the proven identities, the labels, the negotiated values.

Rule: an Agreement is made once per epoch from both sides' setup and hello, and both sides make the same one but for
who is who.
"""

from __future__ import annotations

from lace.differences.keyed import DifferenceKey
from lace.errors import InvalidInput, LaceError
from lace.facts.predicates import DATA_LENGTH
from lace.interlace.effects import PreparePolicy
from lace.interlace.reasons import AbortReason, ProtocolAbort
from lace.interlace.runtimefacts import RuntimeFacts
from lace.interlace.setup.hello import (
    ALL_FIELDS,
    MOST_REFUSALS,
    FieldSchema,
    Hello,
    Negotiated,
    agree,
    link_id,
    offered_capabilities,
    offered_limits,
    says_it_holds_nothing,
)
from lace.interlace.setup.setup import Setup
from lace.interlace.setup.terms import Link, MachineConfig
from lace.notation.identifiers import LacegramId, Verifier
from lace.notation.tai import TAI
from lace.policy.compile import ExchangePlan
from lace.policy.compile import agree as compile_operands
from lace.policy.mirrored import names_parts, selects_alike
from lace.policy.operand import Module
from lace.policy.origin import Source, Viewer, require_proven, source_of, viewer_of, wire_origin
from lace.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """One epoch's shared ground."""

    plan: ExchangePlan
    negotiated: Negotiated
    peer: Verifier | None
    viewer: Viewer
    own_source: Source
    peer_source: Source
    link_id: str | None
    have_reads_advertisements: bool  # P13
    names_parts: bool = False  # an operand asks for parts of content once it has their manifest (070-TAKE-03)
    difference_key: DifferenceKey | None = None  # 070, where it is agreed
    peer_holds_nothing: bool = False  # 070: it said so, and comparing is agreed

    def preparing(self, config: MachineConfig, *, keeps_claims: bool = False, cursor_key: str = "") -> PreparePolicy:
        """What our side has to make of it."""
        terms = config.terms
        return PreparePolicy(
            plan=self.plan,
            local_index=config.index,
            viewer=self.viewer,
            schema=self.negotiated.schema,
            send_gate=terms.send_gate,
            exposures=terms.exposures,
            own_source=self.own_source,
            peer_source=self.peer_source,
            record_formats=self.negotiated.record_formats & terms.record_formats,
            keeps_claims=keeps_claims,
            cursor_key=cursor_key,
            difference_key=self.difference_key,
        )

    def runtime(self, link: Link, tick: TAI) -> RuntimeFacts:
        """The runtime facts at a tick."""
        return RuntimeFacts(
            here=link.here,
            peer=self.peer,
            transport=link.transport,
            encrypted=link.encrypted,
            start=self.negotiated.start,
            tick=tick,
            skew_seconds=self.negotiated.skew_seconds,
        )


def own_setup(config: MachineConfig, module: Module) -> Setup:
    """Our setup fact: the verifier that we will prove, else our first opaque label (P8, 050-SETF-09)."""
    signer = config.link.here if config.link.signs_hello else None
    origin = wire_origin(module.identity(config.index), signer)
    return Setup(config.index, module.id, origin, signer)


def module_of(announced: LacegramId, available: dict[str, bytes], known: tuple[Module, ...]) -> Module:
    """The peer's module, from what it sent or what we have (050-SETUP-05 to 050-SETUP-07)."""
    for module in known:
        if module.id == announced:
            return module
    text = available.get(announced)
    if text is None:
        raise ProtocolAbort(AbortReason.MALFORMED_MODULE, f"no bytes for {announced}", "050-SETUP-06")
    try:
        return Module.receive(text, announced=announced)
    except LaceError as error:
        raise no_module(error) from None


def no_module(error: LaceError) -> ProtocolAbort:
    """The peer's text is not a module (050-SETUP-07)."""
    return ProtocolAbort(AbortReason.MALFORMED_MODULE, str(error)[:500], "050-SETUP-07")


def compile_modules(config: MachineConfig, own: Module, peer: Module) -> ExchangePlan:
    """The plan of operand 0 and operand 1 (050-SETUP-08)."""
    pair = (own, peer) if config.index == 0 else (peer, own)
    try:
        return compile_operands(*pair, lowering=config.terms.lowering)
    except LaceError as error:
        raise ProtocolAbort(AbortReason.PLAN_COMPILATION_FAILED, str(error)[:500], "050-ERR-08") from None


def own_hello(config: MachineConfig, plan: ExchangePlan, now_ns: int) -> Hello:
    """Our hello; it offers exactly the fields that the plan requires unless configured otherwise."""
    required = ALL_FIELDS if plan.requirements.all_fields else FieldSchema(plan.requirements.names)
    refusals = MOST_REFUSALS if config.refusals and config.terms.refusals else 0
    if refusals and required.names is not None:  # 071-LEN-02: left out again where nobody wants it
        required = FieldSchema(required.names | {DATA_LENGTH})
    return Hello(
        plan=plan.id,
        tai=TAI.from_ns(now_ns),
        tick_interval_ns=config.terms.tick_interval_ns,
        record_formats=config.terms.record_formats,
        schema=required if config.terms.schema is None else config.terms.schema,
        signer=config.link.here if config.link.signs_hello else None,
        limits=offered_limits(config.terms.limits, config.terms.partitions),
        capabilities=offered_capabilities(
            differences=config.terms.differences,
            compression=config.terms.compression and not config.link.encrypted,  # 070-ZIP-06
            salt=config.salt,
            holds_nothing=config.holds_nothing,
            takes=_offered_takes(config, plan),
            refusals=refusals,
            wants_lengths=config.wants_lengths,
        ),
    )


def _offered_takes(config: MachineConfig, plan: ExchangePlan) -> int:
    """How many records we take unnamed: none where our rules might not want what the peer lists (070-TAKE-02)."""
    most = min(config.takes, config.terms.max_requests)
    return most if most and selects_alike(plan) else 0


def settle(
    config: MachineConfig, plan: ExchangePlan, ours: Hello, theirs: Hello, claimed: Verifier | None
) -> Agreement:
    """The agreement of two hellos; `claimed` is the verifier that the peer's setup named as its origin."""
    signer = _accept_signer(config.link, theirs)
    try:
        require_proven(claimed, signer)  # 050-SIGN-10, 050-SIGN-11
    except InvalidInput as error:
        raise ProtocolAbort(AbortReason.PEER_VERIFIER_MISMATCH, str(error), "050-SIGN-10") from None
    negotiated = agree(
        ours, theirs, config.terms.limits, None if plan.requirements.all_fields else plan.requirements.names
    )
    own, peer = plan.operands[config.index], plan.operands[1 - config.index]
    proven = signer if signer is not None else config.link.peer  # P24: a transport proof alone sets Peer(V)
    return Agreement(
        plan=plan,
        negotiated=negotiated,
        peer=proven,
        viewer=viewer_of(peer.origin, proven),
        own_source=source_of(own.origin, ours.signer),
        peer_source=source_of(peer.origin, signer),
        link_id=link_id(ours.signer, signer, plan.id) if ours.signer and signer else None,
        have_reads_advertisements=plan.have_reads_advertisements,
        names_parts=negotiated.takes > 0 and names_parts(plan),
        peer_holds_nothing=negotiated.differences and says_it_holds_nothing(theirs),
    )


def _accept_signer(link: Link, theirs: Hello) -> Verifier | None:
    """HelloSigner counts only under the binding's proof (050-SIGN-03, 050-SIGN-06)."""
    if theirs.signer is not None and not (link.peer_signs_hello and theirs.signer == link.peer):
        raise ProtocolAbort(AbortReason.PEER_VERIFIER_MISMATCH, f"{theirs.signer} is not proven", "050-SIGN-06")
    if link.expected_peer is not None and link.expected_peer != (theirs.signer or link.peer):
        raise ProtocolAbort(
            AbortReason.PEER_VERIFIER_MISMATCH, f"expected {link.expected_peer}, found {link.peer}", "050-ERR-02"
        )
    return theirs.signer
