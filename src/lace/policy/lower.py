"""An agreed plan into the one flat program that this side evaluates (040 lowering, 020 views, P9, P32).

Rule: scopes and views are rewritten away here, so no executor knows them; the peer operand's record atoms all go
through the peer's view, whatever literal and whatever helper they stand in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from enum import StrEnum

from lace.datalog.language.canonical import rule_id
from lace.datalog.language.syntax import (
    ANONYMOUS,
    Atom,
    Constant,
    Literal,
    Negated,
    Positive,
    Predicate,
    Program,
    Rule,
    Variable,
)
from lace.datalog.language.validate import CheckedProgram, Profile, check_program
from lace.facts.predicates import (
    ADVERTISED,
    ALLOW_QUERY_RECORD,
    CAN_QUERY_RECORD,
    HAVE,
    MAY_REQUEST,
    MAY_SEND,
    PEER,
    RECORD_PREDICATES,
    RUNTIME_PREDICATES,
    SELECT_ADVERTISED,
    SELECT_HAVE,
    TRANSPORT_ENCRYPTED,
)
from lace.facts.views import EmptyView, FullView, GatedView, View, constant_gate
from lace.limits import EngineLimits
from lace.policy import provenance as stage
from lace.policy.compile import ExchangePlan
from lace.policy.exposure import Exposure
from lace.policy.operand import BASE_PREDICATES, SCOPE_PREFIXES, SELECTOR_PROFILE, SelectorOperand
from lace.policy.origin import Viewer
from lace.policy.parts import UNFINISHED, follows_parts, unfinished
from lace.policy.provenance import LoweredRule, Provenance
from lace.policy.rewrite import rename, scope
from lace.values import dataclass

MERGED_SELECT_HAVE = Predicate("MergedSelectHave", 1)
MERGED_SELECT_ADVERTISED = Predicate("MergedSelectAdvertised", 2)
SENDABLE = Predicate("Sendable", 1)  # 050's EffectiveSend behind the send gate of P32
REQUESTABLE = Predicate("Requestable", 1)  # allowed, advertised, missing; formats are the machine's business
# Everything that operands and exposures bring is scoped, so the generated names are free.
LOWERED_PROFILE = Profile(name="lowered", base=BASE_PREDICATES, runtime=SELECTOR_PROFILE.runtime)
_RECORD, _SOURCE = Variable("P"), Variable("S")
_DEFAULT_LIMITS = EngineLimits()


class ViewKind(StrEnum):
    """How much of the local records the peer's rules can see."""

    NOTHING = "nothing"
    ALL = "all"
    GATED = "gated"  # what CanQueryRecord admits


@dataclass(frozen=True, slots=True, kw_only=True)
class LoweringOptions:
    """Local choices that no plan records."""

    send_gate: bool = True  # P32
    trust_peer: bool = False  # 040-LOCAL-04: the peer's rules see every local record, exposed or not
    local_view: tuple[Exposure, ...] = ()  # 020-RES-02: our own selector sees only what these allow
    shows_unfinished: bool = False  # without an exposure: manifests of content that lacks parts; none is sent


DEFAULT_OPTIONS = LoweringOptions()


@dataclass(frozen=True, slots=True, kw_only=True)
class LoweredPolicy:
    """The program that one side evaluates, and which of its predicates the runtime reads."""

    plan: ExchangePlan
    local_index: int
    viewer: Viewer | None
    view: ViewKind
    program: CheckedProgram
    provenance: Provenance
    sendable: Predicate = SENDABLE
    requestable: Predicate = REQUESTABLE

    @property
    def guests(self) -> frozenset[Predicate]:
        """The heads of the peer's own rules: what these touch is charged to the peer (P36)."""
        theirs = f"O{1 - self.local_index}"
        return frozenset(
            lowered.rule.head.predicate
            for lowered in self.provenance.rules
            if lowered.stage == stage.OPERAND_SCOPE and lowered.detail == theirs
        )

    @property
    def goals(self) -> tuple[Predicate, ...]:
        """What an exchange needs evaluated; everything else of the program only serves these."""
        return self.sendable, self.requestable


def lower(
    plan: ExchangePlan,
    *,
    local_index: int,
    viewer: Viewer | None,
    exposures: Sequence[Exposure] = (),
    options: LoweringOptions = DEFAULT_OPTIONS,
    limits: EngineLimits = _DEFAULT_LIMITS,
) -> LoweredPolicy:
    """The policy of the side with operand `local_index`; `viewer` is None until the peer's identity is settled (P9)."""
    local, peer = plan.operands[local_index], plan.operands[1 - local_index]
    kind = view_kind(viewer, exposures, options)
    own_view = _own_view(local, options)
    shows_unfinished = _shows_unfinished(peer, viewer, exposures, options)
    peer_view = _peer_view(ViewKind.GATED if shows_unfinished else kind, viewer)
    rules = [*_operand_rules(local, own_view), *_operand_rules(peer, peer_view)]
    rules += [*_view_rules(own_view, local.origin), *_view_rules(peer_view, peer.origin)]
    if options.local_view:
        rules += _gate_rules(Viewer(local.origin), options.local_view, "n", local.origin)
    if viewer is not None and kind is not ViewKind.NOTHING:
        rules += _peer_gate(viewer, exposures, options, local.origin)
    elif viewer is not None and shows_unfinished:
        rules += _unfinished_gate(viewer, local)
    rules += [*_merge_rules(), *_enforcement_rules(plan), *_sending_rules(kind, viewer, options)]
    return LoweredPolicy(
        plan=plan,
        local_index=local_index,
        viewer=viewer,
        view=kind,
        program=_check(rules, limits),
        provenance=Provenance(tuple(rules)),
    )


def lower_view(
    viewer: Viewer, exposures: Sequence[Exposure], *, limits: EngineLimits = _DEFAULT_LIMITS
) -> CheckedProgram:
    """The gate alone: a program whose CanQueryRecord facts are the records that a viewer's rules may query."""
    return _check(_gate_rules(viewer, exposures, "m", "") if exposures else (), limits)


def view_kind(viewer: Viewer | None, exposures: Sequence[Exposure], options: LoweringOptions) -> ViewKind:
    """How much a viewer's rules can see, as far as the texts tell."""
    if viewer is None:
        return ViewKind.NOTHING  # P9: before proof the view is empty
    if options.trust_peer:
        return ViewKind.ALL
    if not exposures:
        return ViewKind.NOTHING  # 040-COMP-05
    return ViewKind.ALL if all(exposure.shows_all(viewer) for exposure in exposures) else ViewKind.GATED


def _own_view(local: SelectorOperand, options: LoweringOptions) -> View:
    if not options.local_view:
        return FullView()  # 040-LOWER-03
    return GatedView("w_", constant_gate(CAN_QUERY_RECORD, local.origin))


def _peer_view(kind: ViewKind, viewer: Viewer | None) -> View:
    if kind is ViewKind.ALL:
        return FullView()
    if kind is ViewKind.NOTHING or viewer is None:
        return EmptyView("v_")
    return GatedView("v_", constant_gate(CAN_QUERY_RECORD, viewer))  # 040-LOWER-04


def _shows_unfinished(
    peer: SelectorOperand, viewer: Viewer | None, exposures: Sequence[Exposure], options: LoweringOptions
) -> bool:
    """Whether the peer's rules are to see manifests whose parts we lack: they ask for parts by what we hold of them."""
    is_closed = viewer is not None and not exposures and not options.trust_peer
    return options.shows_unfinished and is_closed and follows_parts(peer.module.rules, SELECT_ADVERTISED)


def _unfinished_gate(viewer: Viewer, local: SelectorOperand) -> Iterator[LoweredRule]:
    """Content that our own rules select and that is still on its way, and nothing else (decision 336)."""
    ours = Predicate(SCOPE_PREFIXES[local.index] + SELECT_HAVE.name, SELECT_HAVE.arity)
    for rule in unfinished(ours):
        yield LoweredRule(rule=rule, stage=stage.QUERY_GATE, detail="unfinished")
    body = [Positive(Atom(UNFINISHED, (_RECORD,)))]
    yield _generated(CAN_QUERY_RECORD, (Constant(viewer), _RECORD), body, stage.QUERY_GATE, str(CAN_QUERY_RECORD))


def _operand_rules(operand: SelectorOperand, view: View) -> Iterator[LoweredRule]:
    """An operand's rules in its own scope, resolved in its view (040-SCOPE-01, 040-SCOPE-10)."""
    scoped = scope(SCOPE_PREFIXES[operand.index], shared=BASE_PREDICATES)
    for rule in operand.module.rules:
        resolved = view.resolve(rename(rule, scoped))
        if resolved is not None:
            yield LoweredRule(
                rule=resolved,
                stage=stage.OPERAND_SCOPE,
                detail=f"O{operand.index}",
                origin=operand.origin,
                source=(operand.module.id, rule_id(rule)),
            )


def _view_rules(view: View, origin: str) -> Iterator[LoweredRule]:
    for predicate, rule in view.definitions():
        yield LoweredRule(rule=rule, stage=stage.QUERY_VIEW, detail=str(predicate), origin=origin)


def _peer_gate(
    viewer: Viewer, exposures: Sequence[Exposure], options: LoweringOptions, origin: str
) -> Iterator[LoweredRule]:
    if options.trust_peer:
        return iter((_generated(CAN_QUERY_RECORD, (Constant(viewer), _RECORD), [_have()], stage.QUERY_GATE, "trust"),))
    return _gate_rules(viewer, exposures, "m", origin)


def _gate_rules(viewer: Viewer, exposures: Sequence[Exposure], letter: str, origin: str) -> Iterator[LoweredRule]:
    """Every exposure module in a scope of its own, and the gate as their conjunction (040-COMP-01..04)."""
    conjunction: list[Literal] = []
    # P9: advertisement predicates are not shared with exposures, so there they are private and empty.
    shared = (*RECORD_PREDICATES, *RUNTIME_PREDICATES)
    for number, exposure in enumerate(exposures, start=1):
        scoped = scope(f"{letter}{number}_", shared=shared)
        for written, bound in exposure.rules_for(viewer):
            yield LoweredRule(
                rule=rename(bound, scoped),
                stage=stage.EXPOSURE_SCOPE,
                detail=f"{letter}{number}",
                origin=origin,
                source=(exposure.id, rule_id(written)),
            )
        conjunction.append(Positive(Atom(scoped(ALLOW_QUERY_RECORD), (Constant(viewer), _RECORD))))
    yield _generated(
        CAN_QUERY_RECORD, (Constant(viewer), _RECORD), conjunction, stage.QUERY_GATE, str(CAN_QUERY_RECORD)
    )


def _merge_rules() -> Iterator[LoweredRule]:
    """The shared selection: both operands, the same pair (040-MERGE-02, 040-MERGE-03)."""
    for merged, selected, terms in (
        (MERGED_SELECT_HAVE, SELECT_HAVE, (_RECORD,)),
        (MERGED_SELECT_ADVERTISED, SELECT_ADVERTISED, (_RECORD, _SOURCE)),
    ):
        both = [Positive(Atom(Predicate(prefix + selected.name, selected.arity), terms)) for prefix in SCOPE_PREFIXES]
        yield _generated(merged, terms, both, stage.INTERSECTION, str(selected))


def _enforcement_rules(plan: ExchangePlan) -> Iterator[LoweredRule]:
    """MaySend and MayRequest as the plan's lowering says (040-LOWER-01, 040-LOWER-02, 040-LOWER-09, 040-LOWER-10)."""
    send: list[Literal] = [Positive(Atom(MERGED_SELECT_HAVE, (_RECORD,)))]
    request: list[Literal] = [Positive(Atom(MERGED_SELECT_ADVERTISED, (_RECORD, _SOURCE)))]
    if plan.lowering.require_encrypted:
        send.append(Positive(Atom(TRANSPORT_ENCRYPTED, ())))
    if plan.lowering.peer_must_be_source:
        request.append(Positive(Atom(PEER, (_SOURCE,))))
    yield _generated(MAY_SEND, (_RECORD,), send, stage.LOWERING, str(MAY_SEND))
    yield _generated(MAY_REQUEST, (_RECORD,), request, stage.LOWERING, str(MAY_REQUEST))
    wanted: list[Literal] = [
        Positive(Atom(MAY_REQUEST, (_RECORD,))),
        Positive(Atom(ADVERTISED, (_RECORD, ANONYMOUS))),
        Negated(Atom(HAVE, (_RECORD,))),
    ]
    yield _generated(REQUESTABLE, (_RECORD,), wanted, stage.LOWERING, str(REQUESTABLE))


def _sending_rules(kind: ViewKind, viewer: Viewer | None, options: LoweringOptions) -> Iterator[LoweredRule]:
    """What may leave: MaySend and Have, and by default what the peer may also query (P32)."""
    body: list[Literal] = [Positive(Atom(MAY_SEND, (_RECORD,))), _have()]
    if options.send_gate:
        if kind is ViewKind.NOTHING or viewer is None:
            return
        if kind is ViewKind.GATED:
            body.append(Positive(Atom(CAN_QUERY_RECORD, (Constant(viewer), _RECORD))))
    yield _generated(SENDABLE, (_RECORD,), body, stage.SEND_GATE, str(SENDABLE))


def _have() -> Positive:
    return Positive(Atom(HAVE, (_RECORD,)))


def _generated(
    head: Predicate, terms: tuple[Variable | Constant, ...], body: Sequence[Literal], made_by: str, detail: str
) -> LoweredRule:
    return LoweredRule(rule=Rule(Atom(head, terms), tuple(body)), stage=made_by, detail=detail)


def _check(rules: Iterable[LoweredRule], limits: EngineLimits) -> CheckedProgram:
    program = Program(tuple(dict.fromkeys(lowered.rule for lowered in rules)))
    # Each module kept the rule limit by itself; what lowering adds is linear in their atoms.
    return check_program(program, LOWERED_PROFILE, replace(limits, max_rules=max(limits.max_rules, len(program.rules))))
