"""The runtime facts of one evaluation (050, exchange runtime facts).

Rule: these seven and no others; what is absent is not proven (050-RUN-11).
"""

from __future__ import annotations

from collections.abc import Iterator

from lace.facts.predicates import (
    CLOCK_SKEW_SECONDS,
    HERE,
    PEER,
    START_TAI,
    TICK_TAI,
    TRANSPORT,
    TRANSPORT_ENCRYPTED,
)
from lace.notation.fact import Fact
from lace.notation.identifiers import Verifier
from lace.notation.tai import TAI
from lace.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeFacts:
    """Exactly one start, tick and skew (050-RUN-16); the rest as the binding proves it."""

    here: Verifier | None
    peer: Verifier | None
    transport: str
    encrypted: bool
    start: TAI
    tick: TAI
    skew_seconds: int

    def facts(self) -> Iterator[Fact]:
        """The facts for the engine."""
        if self.here is not None:
            yield Fact(HERE, (self.here,))  # 050-RUN-01
        if self.peer is not None:
            yield Fact(PEER, (self.peer,))  # 050-RUN-02, 050-RUN-09
        if self.transport:
            yield Fact(TRANSPORT, (self.transport,))
        if self.encrypted:
            yield Fact(TRANSPORT_ENCRYPTED, ())  # 050-RUN-04, 050-RUN-10
        yield Fact(START_TAI, (self.start,))
        yield Fact(TICK_TAI, (self.tick,))
        yield Fact(CLOCK_SKEW_SECONDS, (str(self.skew_seconds),))
