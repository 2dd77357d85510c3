"""Why a record goes to a peer, or at which gate it stops (040, 050): `lace why`, also with a peer that is asked.

Rule: the walk takes the gates in the order of an exchange, with the very rules that an exchange lowers, and ends at the
first that is shut. What only the other side can tell is marked unknown, even if a peer was just asked; no guess is
shown as knowledge.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING

from lace.datalog.explain.explanation import Explanation
from lace.datalog.language.formatting import format_program
from lace.datalog.language.syntax import Atom, Constant, Fact, Predicate, Program, Rule, TrueLiteral
from lace.datalog.planning.stratify import reachable
from lace.errors import InvalidInput, NotFound
from lace.facts.derive import FieldOccurrence, field_occurrences
from lace.facts.predicates import (
    ADVERTISED,
    ADVERTISED_FIELD,
    APP,
    CAN_QUERY_RECORD,
    GROUP,
    PEER,
    RECORD_PREDICATES,
    SELECT_ADVERTISED,
    SELECT_HAVE,
    SIGNED_BY,
    START_TAI,
    TICK_TAI,
)
from lace.facts.predicates import TAI as TAI_FIELD
from lace.limits import EngineLimits
from lace.notation.identifiers import RecordHash, Verifier
from lace.notation.stopping import Interrupt, never
from lace.notation.tai import TAI
from lace.policy.compile import ExchangePlan, agree
from lace.policy.exposure import Exposure, expose_all
from lace.policy.lower import LoweredPolicy, LoweringOptions, ViewKind, lower
from lace.policy.operand import SCOPE_PREFIXES, Module
from lace.policy.origin import viewer_of
from lace.policy.select import select_all
from lace.porcelain.explain import Explainer
from lace.porcelain.lace import Lace
from lace.records.coordinate import is_place
from lace.records.model import Header, Plex, Seal, ValidRecord
from lace.records.retraction import Withdraws, withdrawn_by
from lace.records.tip import TipPolicy, VersionState, choose_tip, newest_first
from lace.records.validate import validate
from lace.values import dataclass

if TYPE_CHECKING:
    from lace.interlace.claims.advertisement import Advertisement
    from lace.porcelain.listing import Row
    from lace.runtime.local.preview import Preview

_SENDER, _RECEIVER = 0, 1
_SCOPED = re.compile(r"\b(?:o[01]|m\d+)_(?=[A-Za-z])")
_VIEWED = re.compile(r"\bv_([A-Za-z]+)_\d+")


@dataclass(frozen=True, slots=True)
class Gate:
    """One gate: on whose side it is, whether the record passes (None: unknown from here), and why.

    Its name says what an open gate means. For a shut gate, `said` is the sentence that says why not.
    """

    side: str
    name: str
    passed: bool | None
    said: str
    because: str = ""  # a proof, or the nearest miss
    remedy: str = ""  # the one change that would let it pass

    @property
    def sentence(self) -> str:
        """One sentence: what holds, what does not, or what cannot be known."""
        if self.passed is False:
            return self.said
        return self.name if self.said in ("", "yes") else f"{self.name}: {self.said}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WhySide:
    """What is known about one side of the exchange in question."""

    called: str
    lace: Lace | None = None
    module: Module | None = None  # None: its rules are unknown
    exposures: tuple[Exposure, ...] = ()
    verifier: Verifier | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """Every gate up to the first that is shut."""

    record: RecordHash
    sender: WhySide
    receiver: WhySide
    gates: list[Gate] = field(default_factory=list)

    @property
    def stopped(self) -> Gate | None:
        """The gate that is shut, if one is."""
        return next((gate for gate in self.gates if gate.passed is False), None)

    @property
    def unknown(self) -> list[Gate]:
        """The gates that cannot be judged from here."""
        return [gate for gate in self.gates if gate.passed is None]


def walk(
    record: RecordHash,
    sender: WhySide,
    receiver: WhySide,
    *,
    now: TAI,
    send_gate: bool = True,
    stop: Interrupt = never,
) -> Walk:
    """Walk a record from one side to the other."""
    walked = Walk(record=record, sender=sender, receiver=receiver)
    for gate in _gates(walked, now, send_gate, stop):
        walked.gates.append(gate)
        if gate.passed is False:
            break
    return walked


def walk_offer(record: RecordHash, sender: WhySide, receiver: WhySide, *, now: TAI, offer: Offer) -> Walk:
    """Walk a record from a peer that was just asked; the peer's own gates are open if it lists the record."""
    walked = Walk(record=record, sender=sender, receiver=receiver)
    if offer is None:
        said = "the other side does not list it to us: it has no such record, or does not show it, or one of the two"
        said += " rule sets does not select it; only that side can tell which"
        remedy = f"have them run `lace why THEIR.lace {record}` with our rules as --peer"
        walked.gates.append(Gate(sender.called, "listed", False, said, remedy=remedy))
        return walked
    walked.gates.append(Gate(sender.called, "listed", True, "asked just now"))
    plan = agree(sender.module or select_all(), receiver.module or select_all())
    for gate in _receiving_gates(walked, plan, offer, now, never):
        walked.gates.append(gate)
        if gate.passed is False:
            break
    return walked


Offer = Sequence[FieldOccurrence] | None
"""What a peer lists of a record; None if it does not list it."""


def _gates(walked: Walk, now: TAI, send_gate: bool, stop: Interrupt) -> Iterator[Gate]:
    sender, receiver = walked.sender, walked.receiver
    yield _is_here(walked.record, sender)
    assert sender.lace is not None
    stored = sender.lace.stored(str(walked.record))
    yield _is_valid(stored, sender)
    record = validate(stored, limits=sender.lace.limits, verify_signature=False)
    tip = _tip_gate(record, sender, walked.record)
    if tip is not None:
        yield tip
    # Assume that unknown rules select everything: a gate of ours that is shut then is shut whatever they are.
    plan = agree(sender.module or select_all(), receiver.module or select_all())
    yield from _sending_gates(walked, plan, now, send_gate, stop)
    yield from _receiving_gates(walked, plan, field_occurrences(record), now, stop)


def _is_here(record: RecordHash, side: WhySide) -> Gate:
    if side.lace is not None and side.lace.store.have(record):
        return Gate(side.called, "stored", True, "yes")
    remedy = "name the lace that has it with --with PATH, or ask a peer with `lace interlace --dry-run`"
    return Gate(side.called, "stored", False, "no record with that hash is stored", remedy=remedy)


def _is_valid(stored: bytes, side: WhySide) -> Gate:
    try:
        validate(stored)
    except InvalidInput as error:
        return Gate(
            side.called, "valid", False, f"its bytes are damaged: {error}", remedy="`lace repair` salvages the rest"
        )
    return Gate(side.called, "valid", True, "its hash is right and so is its signature, if it has one")


def _tip_gate(record: ValidRecord, side: WhySide, wanted: RecordHash) -> Gate | None:
    """Not a gate of the exchange, since every version moves; but readers of the coordinate may see another record."""
    plex = record.record.plex if isinstance(record.record, Seal) else record.record
    if not isinstance(plex, Plex) or side.lace is None:
        return None
    coordinate = f"//{plex.group}//{plex.app}//{plex.name}"
    said, remedy = _as_version(side.lace, coordinate, wanted)
    return Gate(side.called, "tip", True, said, remedy=remedy)


def _as_version(lace: Lace, coordinate: str, wanted: RecordHash) -> tuple[str, str]:
    """What a stored version counts for at its coordinate, and how to read it if its coordinate names another."""
    tip = None
    for version, state, by in lace.history(coordinate):
        if version.hash != wanted:
            tip = tip or (version if state is VersionState.STANDS else None)
        elif state is VersionState.AHEAD:
            return f"it is dated too far ahead to be the tip of {coordinate}", ""
        elif state is VersionState.BARRED:
            return f"its writer may not move the tip of {coordinate}: the policy lets others write there", ""
        elif state is VersionState.RETRACTS:
            return f"it withdraws versions of {coordinate}; an exchange moves it like any record", ""
        elif by is not None:
            return f"{by.hash} withdrew it; an exchange moves it all the same", f"`lace get {wanted}` shows it"
        elif tip is None:
            return f"it is the tip of {coordinate}", ""
    said = f"a newer record, {tip.hash if tip else ''}, hides it at {coordinate}; an exchange moves it all the same"
    return said, f"`lace get {wanted}` shows it"


# what the sender decides


def _sending_gates(walked: Walk, plan: ExchangePlan, now: TAI, send_gate: bool, stop: Interrupt) -> Iterator[Gate]:
    sender, receiver, record = walked.sender, walked.receiver, walked.record
    viewer = viewer_of(plan.operands[_RECEIVER].origin, receiver.verifier)
    options = LoweringOptions(send_gate=send_gate)
    policy = lower(plan, local_index=_SENDER, viewer=viewer, exposures=sender.exposures, options=options)
    asking = _Asking(sender.lace, policy, _runtime_facts(now, receiver.verifier), stop)
    yield asking.gate(
        sender.called,
        "selected by its own rules",
        _scoped(SELECT_HAVE, _SENDER),
        (str(record),),
        no="this side's own rules do not select it",
        known=sender.module is not None,
        remedy=f"add `--select-hash {record}`, or a rule for SelectHave that holds for it",
    )
    yield _exposed(sender, policy, asking, (viewer, str(record)), send_gate)
    remedy = f"they need a rule for SelectHave over what they can see that selects it, or `--select-hash {record}`"
    selects = _scoped(SELECT_HAVE, _RECEIVER)
    gate = asking.gate(
        sender.called,
        "selected by the other side's rules, over what they may see",
        selects,
        (str(record),),
        no="the other side's rules do not select it, over what they may see",
        known=receiver.module is not None,
        remedy=remedy,
    )
    if gate.passed is False and policy.view is not ViewKind.ALL:
        seeing = lower(plan, local_index=_SENDER, viewer=viewer, exposures=(expose_all(),), options=options)
        asking = _Asking(sender.lace, seeing, _runtime_facts(now, receiver.verifier), stop)
        gate = _held_by_exposure(gate, asking, selects, (str(record),), "select it")
    yield gate
    if receiver.module is not None and sender.module is not None:
        yield asking.gate(
            sender.called,
            "advertised",
            policy.sendable,
            (str(record),),
            no="it is not advertised: both rule sets and the exposure together leave it out",
            remedy="see the gates above",
        )


def _exposed(side: WhySide, policy: LoweredPolicy, asking: _Asking, values: tuple[str, str], send_gate: bool) -> Gate:
    name = "exposed to the other side" if send_gate else "exposed (the send gate is off: shown for its rules only)"
    if policy.view is ViewKind.ALL:
        return Gate(side.called, name, True, "every record is exposed")
    if policy.view is ViewKind.NOTHING:
        said = "nothing is exposed, so the other side's rules see an empty lace"
        remedy = "`--expose selected` shows what your own selector selects, `--expose FILE` what its rules allow"
        return Gate(side.called, name, False if send_gate else None, said, remedy=remedy)
    remedy = "a rule for AllowQueryRecord(Viewer,P) that holds for it"
    no = "it is not exposed to the other side"
    gate = asking.gate(side.called, name, CAN_QUERY_RECORD, values, no=no, remedy=remedy)
    return gate if send_gate or gate.passed else Gate(gate.side, name, None, gate.said, gate.because, gate.remedy)


# what the receiver decides


def _receiving_gates(
    walked: Walk, plan: ExchangePlan, claimed: Iterable[FieldOccurrence], now: TAI, stop: Interrupt
) -> Iterator[Gate]:
    sender, receiver = walked.sender, walked.receiver
    if receiver.lace is not None and receiver.lace.store.have(walked.record):
        yield Gate(receiver.called, "missing", False, "it is already stored there, so it is not asked for")
        return
    if receiver.lace is not None:
        yield Gate(receiver.called, "missing", True, "yes")
    source = str(plan.operands[_SENDER].origin if sender.verifier is None else sender.verifier)
    claims = [Fact(ADVERTISED, (str(walked.record), source))]
    claims += [
        Fact(ADVERTISED_FIELD, (str(walked.record), source, name, str(index), value))
        for name, index, value in claimed
        if plan.requirements.all_fields or name in plan.requirements.names
    ]
    viewer = viewer_of(plan.operands[_SENDER].origin, sender.verifier)
    policy = lower(plan, local_index=_RECEIVER, viewer=viewer, exposures=receiver.exposures)
    given = [*_runtime_facts(now, sender.verifier), *claims]
    asking = _Asking(receiver.lace, policy, given, stop)
    values = (str(walked.record), source)
    asked = (
        (_RECEIVER, "its own rules", "this side's own rules do not ask for it"),
        (_SENDER, "the other side's rules", "the other side's rules do not let this side ask for it"),
    )
    for index, whose, no in asked:
        side = receiver if index == _RECEIVER else sender
        knows = receiver.lace is not None or not _reads_records(side.module)
        remedy = f"a rule for SelectAdvertised that holds for it, or `--select-hash {walked.record}`"
        name = f"wanted by {whose}"
        wants = _scoped(SELECT_ADVERTISED, index)
        known = side.module is not None and knows
        gate = asking.gate(receiver.called, name, wants, values, no=no, known=known, remedy=remedy)
        if gate.passed is False and index == _SENDER and policy.view is not ViewKind.ALL:
            seeing = lower(plan, local_index=_RECEIVER, viewer=viewer, exposures=(expose_all(),))
            asking = _Asking(receiver.lace, seeing, given, stop)
            gate = _held_by_exposure(gate, asking, wants, values, "let this side ask for it")
        yield gate
    if receiver.lace is None:
        said = "only that side can tell whether it has it already or has refused it"
        yield Gate(receiver.called, "requested and stored", None, said)
    else:
        yield Gate(receiver.called, "requested and stored", True, "it would be asked for, checked and stored")


def _held_by_exposure(gate: Gate, seeing: _Asking, predicate: Predicate, values: tuple[str, ...], does: str) -> Gate:
    """A shut gate of the other side's rules, which says so if it would open once they could see everything."""
    if not seeing.gate(gate.side, gate.name, predicate, values, no=gate.said).passed:
        return gate
    said = f"this side does not show the other side's rules what they need: shown every record here, they would {does}"
    remedy = "`--expose all`, or `--expose FILE` with rules that show them the records they read"
    return Gate(gate.side, gate.name, False, said, gate.because, remedy)


def _reads_records(module: Module | None) -> bool:
    """Whether a module's requests depend on the records of the asking side."""
    if module is None:
        return True
    return not reachable(module.rules, (SELECT_ADVERTISED,)).isdisjoint(RECORD_PREDICATES)


# asking the lowered program


class _Asking:
    """One side's lowered program over its lace, which answers for one fact at a time."""

    def __init__(self, lace: Lace | None, policy: LoweredPolicy, given: Iterable[Fact], stop: Interrupt) -> None:
        rules = [*policy.program.program.rules, *(_as_rule(fact) for fact in given)]
        # As in lowering itself, the limit on rules is for each module, and not for what two of them and a view become.
        limits = EngineLimits()
        limits = replace(limits, max_rules=max(limits.max_rules, len(rules)))
        text = format_program(Program(tuple(rules)))
        self._explainer = Explainer(lace if lace is not None else [], text, limits=limits, interrupt=stop)

    def gate(
        self,
        side: str,
        name: str,
        predicate: Predicate,
        values: tuple[str, ...],
        *,
        no: str,
        known: bool = True,
        remedy: str = "",
    ) -> Gate:
        """Whether a fact holds, as a gate with its proof, or with `no` and its nearest miss."""
        if not known:
            return Gate(side, name, None, "this depends on rules or records that only the other side knows")
        found = self._explainer.explain(Atom(predicate, tuple(Constant(value) for value in values)))
        if found.holds:
            return Gate(side, name, True, "yes", _plain(found))
        return Gate(side, name, False, no, _plain(found), remedy)


def _as_rule(fact: Fact) -> Rule:
    return Rule(Atom(fact.predicate, tuple(map(Constant, fact.values))), (TrueLiteral(),))


def _plain(found: Explanation) -> str:
    """An explanation in the words of the rules as written: without the prefixes that keep two operands apart."""
    return _VIEWED.sub(r"visible_\1", _SCOPED.sub("", str(found)))


def _scoped(predicate: Predicate, index: int) -> Predicate:
    return Predicate(SCOPE_PREFIXES[index] + predicate.name, predicate.arity)


def _runtime_facts(now: TAI, peer: Verifier | None) -> list[Fact]:
    facts = [Fact(START_TAI, (str(now),)), Fact(TICK_TAI, (str(now),))]
    return facts if peer is None else [*facts, Fact(PEER, (str(peer),))]


def known_target(lace: Lace, target: str) -> RecordHash:
    """The record in question: a stored one by any of its names, or a hash that need not be stored."""
    try:
        return lace.resolve(target)
    except NotFound:
        if is_place(target):
            raise
        return RecordHash.parse(target.removeprefix("////"))


def walk_asked(record: RecordHash, here: WhySide, preview: Preview, peer: Verifier | None, *, now: TAI) -> Walk:
    """Walk a record to the peer that a preview asked about it, or from there to us if we lack it."""
    there = WhySide(called="there", module=preview.their_module, verifier=peer)
    if here.lace is None or not here.lace.store.have(record):
        return walk_offer(record, there, here, now=now, offer=_listed(record, preview))
    walked = walk(record, here, there, now=now)
    if walked.stopped is not None:
        return walked
    return replace(walked, gates=[*(gate for gate in walked.gates if gate.passed), _answer(record, preview)])


@dataclass(frozen=True, slots=True)
class _Listed:
    tai: str
    hash: str
    signer: str | None
    withdraws: Withdraws
    group: str
    app: str


def tip_listed(coordinate: str, offered: Iterable[Advertisement], policy: TipPolicy) -> str | None:
    """The tip of a coordinate among the records that a peer lists."""
    from lace.porcelain.preview import content_bytes, rows  # only here: it loads everything that dials

    there = [
        _Listed(
            row[TAI_FIELD],
            row.hash,
            row[SIGNED_BY] or None,
            withdrawn_by(_headers(row), content_bytes(row)),
            row[GROUP],
            row[APP],
        )
        for row in rows(offered)
        if row.coordinate == coordinate
    ]
    tip = choose_tip(newest_first(there), policy)
    return None if tip is None else tip.hash


def _headers(row: Row) -> Iterator[Header]:
    return ((name, value) for name, values in row.fields.items() for value in values)


def _listed(record: RecordHash, preview: Preview) -> list[tuple[str, int, str]] | None:
    found = next((claim for claim in preview.offered if claim.hash == record), None)
    return None if found is None else [(name, int(position), value) for name, position, value in found.fields]


def _answer(record: RecordHash, preview: Preview) -> Gate:
    """The gate that shows what the peer did when we listed the record."""
    if record in preview.asked_for:
        return Gate("there", "asked for", True, "we listed it just now, and the peer asked for it")
    if preview.has_watched:
        return Gate("there", "missing", False, "it is already stored there, so it is not asked for")
    said = "we listed it, and the peer did not ask for it: it has the record without showing it to us, or a condition"
    said += " of its rules does not hold over its records, or it takes nothing from us"
    remedy = "prove a key it knows (--key over ws or wss), or ask its owner: `lace why` there shows the rest"
    return Gate("there", "asked for", False, said, remedy=remedy)
