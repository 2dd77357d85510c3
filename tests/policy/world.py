"""A small world for policy tests: records as facts, two modules, one side's evaluation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from executors.reference import evaluate
from lace.datalog.language.syntax import Fact, Predicate
from lace.facts.predicates import (
    ADVERTISED,
    ADVERTISED_FIELD,
    BLOB_HASH,
    CAN_QUERY_RECORD,
    FIELD,
    HAVE,
    MAY_REQUEST,
    MAY_SEND,
    PLEX_HASH,
    RECORD_LINK,
    SELECT_ADVERTISED,
    SELECT_HAVE,
)
from lace.policy.compile import agree
from lace.policy.exposure import Exposure
from lace.policy.lower import DEFAULT_OPTIONS, LoweredPolicy, LoweringOptions, lower
from lace.policy.operand import SCOPE_PREFIXES, Module
from lace.policy.origin import Viewer
from lace.policy.transcript import Lowering

ALL = "SelectHave(P) :- Have(P).\nSelectAdvertised(P,S) :- Advertised(P,S)."
ALICE = Viewer("V.alice.H3")
EVERYTHING = "AllowQueryRecord(Viewer,P) :- Have(P)."
GROUP_X = "AllowQueryRecord(Viewer,P) :- Have(P), Field(P,'Group',_,'X')."
GROUP_Y = "AllowQueryRecord(Viewer,P) :- Have(P), Field(P,'Group',_,'Y')."


def record(name: str, group: str = "X", *, link: str = "", tag: str = "") -> list[Fact]:
    """The facts of one stored record, reduced to what the tests ask about."""
    facts = [Fact(HAVE, (name,)), Fact(FIELD, (name, "Group", "0", group)), Fact(BLOB_HASH, (name, f"B.{name}"))]
    facts.append(Fact(PLEX_HASH, (name, f"P.{name}")))
    if link:
        facts.append(Fact(RECORD_LINK, (name, "+Link", "0", "evidence", link)))
    if tag:
        facts.append(Fact(FIELD, (name, "Tag", "0", tag)))
    return facts


def advertised(name: str, source: str = "S", **fields: str) -> list[Fact]:
    """An advertisement record."""
    facts = [Fact(ADVERTISED, (name, source))]
    return facts + [Fact(ADVERTISED_FIELD, (name, source, key, "0", value)) for key, value in fields.items()]


def selector(have: str = "", claimed: str = "", helpers: str = "") -> Module:
    """A module of two bodies (`Have(P)` and `Advertised(P,S)` are added) and helper rules."""
    lines = [f"SelectHave(P) :- {have or 'Have(P)'}.", f"SelectAdvertised(P,S) :- {claimed or 'Advertised(P,S)'}."]
    return Module.author("\n".join([*lines, helpers]))


@dataclass(frozen=True)
class Outcome:
    """What one side's evaluation gives."""

    policy: LoweredPolicy
    relations: dict[Predicate, set[tuple[str, ...]]]

    def of(self, predicate: Predicate) -> set[tuple[str, ...]]:
        return self.relations.get(predicate, set())

    def ones(self, predicate: Predicate) -> set[str]:
        return {row[0] for row in self.of(predicate)}

    @property
    def may_send(self) -> set[str]:
        return self.ones(MAY_SEND)

    @property
    def may_request(self) -> set[str]:
        return self.ones(MAY_REQUEST)

    @property
    def sendable(self) -> set[str]:
        return self.ones(self.policy.sendable)

    @property
    def requestable(self) -> set[str]:
        return self.ones(self.policy.requestable)

    @property
    def visible(self) -> set[str]:
        """The records that the peer's rules may query."""
        return {record for viewer, record in self.of(CAN_QUERY_RECORD) if viewer == self.policy.viewer}

    def selected(self, index: int) -> set[str]:
        """SelectHave of one operand."""
        return self.ones(Predicate(SCOPE_PREFIXES[index] + SELECT_HAVE.name, 1))

    def claims(self, index: int) -> set[tuple[str, ...]]:
        """SelectAdvertised of one operand."""
        return self.of(Predicate(SCOPE_PREFIXES[index] + SELECT_ADVERTISED.name, 2))


def exposures(*texts: str) -> tuple[Exposure, ...]:
    return tuple(map(Exposure.author, texts))


def run(
    facts: Iterable[Fact],
    *,
    peer: Module,
    local: Module | None = None,
    expose: Sequence[str] = (),
    viewer: Viewer | None = ALICE,
    options: LoweringOptions = DEFAULT_OPTIONS,
    lowering: Lowering = Lowering.STANDARD,
    local_index: int = 0,
) -> Outcome:
    """Evaluate on this side: `local` is our module (everything, if none is given), `peer` the other side's."""
    own = local or Module.author(ALL)
    first, second = (own, peer) if local_index == 0 else (peer, own)
    policy = lower(
        agree(first, second, lowering=lowering),
        local_index=local_index,
        viewer=viewer,
        exposures=exposures(*expose),
        options=options,
    )
    return Outcome(policy, evaluate(policy.program, list(facts)))
