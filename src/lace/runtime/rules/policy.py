"""A policy as one value: what an agreed plan means on this side of a link (040, 050).

Rule: a policy never changes. Together with a snapshot of the store, runtime facts and the peer's claims it decides what
may be sent and requested; an evaluation gives the same answer in this process and in another one.
"""

from __future__ import annotations

from dataclasses import replace

from lace.datalog.language.syntax import Rule
from lace.facts.predicates import TICK_TAI
from lace.interlace.effects import PreparePolicy
from lace.interlace.runtimefacts import RuntimeFacts
from lace.interlace.setup.hello import NO_FIELDS, FieldSchema
from lace.interlace.setup.terms import Terms
from lace.limits import EngineLimits
from lace.notation.digest import digest
from lace.notation.fact import Fact
from lace.policy.lower import LoweredPolicy, LoweringOptions, lower
from lace.policy.recordwise import looks_at_one_record
from lace.runtime.rules.feeding import Feeding, feeding_of
from lace.values import dataclass

RulesOfViewer = tuple[str, str]
"""A rule text by its identifier, and who looks: the same rules over the same view cost the same."""


@dataclass(frozen=True, slots=True)
class SharingKey:
    """Everything that a set of sendable records depends on, beside the store."""

    rules: tuple[Rule, ...]
    runtime: frozenset[Fact]
    schema: FieldSchema
    limits: EngineLimits

    @property
    def kept_name(self) -> str:
        """What a set is kept under with the lace, empty if it is not: only rules that read no runtime facts give the
        same set to the next process. The limits of the engine decide whether there is a set, not what it holds."""
        return "" if self.runtime else digest(repr((self.rules, self.schema)).encode()).hex()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class LinkPolicy:
    """The local executable of a plan."""

    lowered: LoweredPolicy
    feeding: Feeding  # which of the peer's claims an evaluation has to see
    schema: FieldSchema  # the fields that advertisements carry
    source: str  # the peer's label
    limits: EngineLimits
    max_line_bytes: int
    is_ours: bool  # whether the peer brought no rules but our own
    is_by_record: bool  # whether the rules look at one record at a time
    peer_rules: RulesOfViewer

    @property
    def is_bare(self) -> bool:
        """Whether no advertisement has a field."""
        return self.schema == NO_FIELDS

    @property
    def can_be_shared(self) -> bool:
        """Whether neither a claim of a peer nor the passing of time changes what may be sent."""
        return self.feeding is not Feeding.ALWAYS and TICK_TAI not in self.lowered.program.base

    def read_of(self, facts: RuntimeFacts) -> frozenset[Fact]:
        """The runtime facts that the rules read."""
        read = self.lowered.program.base
        return frozenset(fact for fact in facts.facts() if fact.predicate in read)

    def sharing_key(self, facts: RuntimeFacts) -> SharingKey:
        """What another link must agree on to share the set."""
        return SharingKey(self.lowered.program.program.rules, self.read_of(facts), self.schema, self.limits)

    def within(self, *, max_peer_rows: int, max_held_bytes: int) -> LinkPolicy:
        """The same policy, evaluated with no more than this."""
        limits = replace(
            self.limits,
            max_peer_rows_touched=min(self.limits.max_peer_rows_touched, max_peer_rows),
            max_held_bytes=min(self.limits.max_held_bytes, max_held_bytes),
        )
        return replace(self, limits=limits)


def prepare(wanted: PreparePolicy, terms: Terms) -> LinkPolicy:
    """What a plan means here. Rules that a peer wrote take the longer the more there are: callers wait their turn."""
    lowered = lower(
        wanted.plan,
        local_index=wanted.local_index,
        viewer=wanted.viewer,
        exposures=wanted.exposures,
        options=LoweringOptions(
            send_gate=wanted.send_gate, trust_peer=terms.trust_peer, shows_unfinished=terms.shows_unfinished
        ),
        limits=terms.engine_limits,
    )
    peer = wanted.plan.operands[1 - wanted.local_index].module
    return LinkPolicy(
        lowered=lowered,
        feeding=feeding_of(wanted.plan),
        schema=wanted.schema,
        source=wanted.peer_source,
        limits=terms.engine_limits,
        max_line_bytes=terms.max_line_bytes,
        is_ours=wanted.are_all_ours,
        is_by_record=looks_at_one_record(lowered.program.program.rules, lowered.goals),
        peer_rules=(str(peer.id), str(wanted.viewer)),
    )
