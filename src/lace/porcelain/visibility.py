"""What a peer's rules can see of a store (020), and what our own exposure holds back from them (040).

Rule: the gate rules that an exchange lowers decide here too, over one snapshot.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

from lace.datalog.language.syntax import Fact, Predicate
from lace.datalog.meter import Meter
from lace.errors import InvalidText
from lace.facts.predicates import CAN_QUERY_RECORD, PEER, RECORD_PREDICATES, SELECT_HAVE, START_TAI, TICK_TAI
from lace.facts.views import ViewSource
from lace.interlace.setup.terms import Terms
from lace.limits import EngineLimits
from lace.notation.identifiers import Verifier
from lace.notation.stopping import Interrupt, never
from lace.notation.tai import TAI
from lace.policy.compile import agree
from lace.policy.exposure import Exposure
from lace.policy.lower import LoweringOptions, ViewKind, lower, lower_view
from lace.policy.operand import SCOPE_PREFIXES
from lace.policy.origin import Viewer, viewer_of
from lace.policy.select import select_all
from lace.store.base import RecordStore, Snapshot
from lace.values import dataclass

_DEFAULT_LIMITS = EngineLimits()


def visible_records(
    snapshot: Snapshot,
    viewer: Viewer,
    exposures: Sequence[Exposure],
    *,
    at: TAI,
    limits: EngineLimits = _DEFAULT_LIMITS,
    stop: Interrupt = never,
) -> frozenset[str]:
    """The stored records that a viewer's rules may query at a moment; a verifier counts as proven."""
    if not exposures:
        return frozenset()
    from lace.datalog.engine import evaluate  # numpy, only where something is evaluated

    program, meter = lower_view(viewer, exposures, limits=limits), Meter(limits, interrupt=stop)
    result = evaluate(program, [snapshot], extra=runtime_facts(viewer, at), limits=limits, meter=meter)
    return frozenset(record for _, record in result.rows(CAN_QUERY_RECORD, ordered=False))


def visible_facts(snapshot: Snapshot, admitted: frozenset[str]) -> Iterator[Fact]:
    """The record facts of the admitted records, predicate by predicate."""
    view = ViewSource(snapshot, admitted)
    for predicate in RECORD_PREDICATES:
        for row in view.iterate(predicate):
            yield Fact(predicate, row)


def runtime_facts(viewer: Viewer, at: TAI) -> list[Fact]:
    """What a node knows about a moment and a viewer; a verifier counts as proven."""
    facts = [Fact(START_TAI, (at,)), Fact(TICK_TAI, (at,))]
    with suppress(InvalidText):  # an opaque label proves no identity
        facts.append(Fact(PEER, (Verifier.parse(viewer),)))
    return facts


_OURS = 0
_SELECTED = Predicate(SCOPE_PREFIXES[_OURS] + SELECT_HAVE.name, SELECT_HAVE.arity)


@dataclass(frozen=True, slots=True)
class NotExposed:
    """How many records our rules select, while our exposure shows the peer's rules none of them."""

    records: int

    def __str__(self) -> str:
        counted = "1 record" if self.records == 1 else f"{self.records:,} records"
        return f"this side's rules select {counted}, and this side shows the peer's rules none of them"


def held_back(
    store: RecordStore, terms: Terms, peer: Verifier | None, *, at: TAI, stop: Interrupt = never
) -> NotExposed | None:
    """What is held back from a peer, which proved this verifier or none; None if it may see something of it."""
    plan = agree(terms.module, select_all())
    options = LoweringOptions(send_gate=terms.send_gate, trust_peer=terms.trust_peer)
    viewer = viewer_of(plan.operands[1 - _OURS].origin, peer)
    limits = terms.engine_limits
    policy = lower(plan, local_index=_OURS, viewer=viewer, exposures=terms.exposures, options=options, limits=limits)
    if policy.view is ViewKind.ALL:
        return None
    if policy.view is ViewKind.NOTHING and terms.module.id == select_all().id:  # then counting needs no rules
        records = store.stat().records
        return NotExposed(records) if records else None
    from lace.datalog.engine import evaluate  # numpy, only where something is evaluated

    given, meter = runtime_facts(viewer, at), Meter(limits, interrupt=stop)
    found = evaluate(policy.program, [store.snapshot()], extra=given, limits=limits, meter=meter)
    selected = {record for (record,) in found.rows(_SELECTED, ordered=False)}
    if policy.view is ViewKind.GATED:
        seen = {record for _, record in found.rows(CAN_QUERY_RECORD, ordered=False)}
        if not selected.isdisjoint(seen):
            return None
    return NotExposed(len(selected)) if selected else None
