"""What a peer's rules could see of a store (020): the view of one viewer, evaluated.

Rule: the same gate rules that an exchange lowers decide here, over one snapshot.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

from lace.datalog.language.syntax import Fact
from lace.errors import InvalidText
from lace.facts.predicates import CAN_QUERY_RECORD, PEER, RECORD_PREDICATES, START_TAI, TICK_TAI
from lace.facts.views import ViewSource
from lace.limits import EngineLimits
from lace.notation.identifiers import Verifier
from lace.notation.tai import TAI
from lace.policy.exposure import Exposure
from lace.policy.lower import lower_view
from lace.policy.origin import Viewer
from lace.store.base import Snapshot

_DEFAULT_LIMITS = EngineLimits()


def visible_records(
    snapshot: Snapshot,
    viewer: Viewer,
    exposures: Sequence[Exposure],
    *,
    at: TAI,
    limits: EngineLimits = _DEFAULT_LIMITS,
) -> frozenset[str]:
    """The stored records that a viewer's rules may query at a moment; a verifier counts as proven."""
    if not exposures:
        return frozenset()
    from lace.datalog.engine import evaluate  # numpy, only where something is evaluated

    program = lower_view(viewer, exposures, limits=limits)
    result = evaluate(program, [snapshot], extra=runtime_facts(viewer, at), limits=limits)
    return frozenset(record for _, record in result.rows(CAN_QUERY_RECORD, ordered=False))


def visible_facts(snapshot: Snapshot, admitted: frozenset[str]) -> Iterator[Fact]:
    """The record facts of the admitted records, predicate by predicate."""
    view = ViewSource(snapshot, admitted)
    for predicate in RECORD_PREDICATES:
        for row in view.iterate(predicate):
            yield Fact(predicate, row)


def runtime_facts(viewer: Viewer, at: TAI) -> list[Fact]:
    """What a node knows of a moment and of a viewer; a verifier counts as proven."""
    facts = [Fact(START_TAI, (at,)), Fact(TICK_TAI, (at,))]
    with suppress(InvalidText):  # an opaque label proves nobody
        facts.append(Fact(PEER, (Verifier.parse(viewer),)))
    return facts
