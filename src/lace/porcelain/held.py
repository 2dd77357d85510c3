"""What our own exposure holds back in an exchange (040): records that our rules select and a peer's rules cannot see.

Rule: counted with the very rules that an exchange lowers, over the store as it is; what the peer would select is not
asked, since rules that see nothing cannot tell.
"""

from __future__ import annotations

from lace.datalog.language.syntax import Predicate
from lace.facts.predicates import CAN_QUERY_RECORD, SELECT_HAVE
from lace.interlace.setup.terms import Terms
from lace.notation.identifiers import Verifier
from lace.notation.tai import TAI
from lace.policy.compile import agree
from lace.policy.lower import LoweringOptions, ViewKind, lower
from lace.policy.operand import SCOPE_PREFIXES
from lace.policy.origin import viewer_of
from lace.policy.select import select_all
from lace.porcelain.exposed import runtime_facts
from lace.store.base import RecordStore
from lace.values import dataclass

_OURS = 0
_SELECTED = Predicate(SCOPE_PREFIXES[_OURS] + SELECT_HAVE.name, SELECT_HAVE.arity)


@dataclass(frozen=True, slots=True)
class NotExposed:
    """How many records our rules select, while our exposure shows the peer's rules none of them."""

    records: int

    def __str__(self) -> str:
        counted = "1 record" if self.records == 1 else f"{self.records:,} records"
        return f"this side's rules select {counted}, and this side shows the peer's rules none of them"


def held_back(store: RecordStore, terms: Terms, peer: Verifier | None, *, at: TAI) -> NotExposed | None:
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

    found = evaluate(policy.program, [store.snapshot()], extra=runtime_facts(viewer, at), limits=limits)
    selected = {record for (record,) in found.rows(_SELECTED, ordered=False)}
    if policy.view is ViewKind.GATED:
        seen = {record for _, record in found.rows(CAN_QUERY_RECORD, ordered=False)}
        if not selected.isdisjoint(seen):
            return None
    return NotExposed(len(selected)) if selected else None
