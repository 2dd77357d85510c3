"""What people who share a lace under a policy may rely on, looked at from outside: by reading both laces.

Rule: what both policies select and show is worked out here from their texts, by one evaluation of each over all records
of its lace; nothing here asks the machine that exchanged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import lace
from interop.harness import PATIENCE_S
from lace.cli.output.failure import ExitCode
from lace.cli.output.outcome import exit_code_of, incomplete_after
from lace.errors import LaceError, NotFound
from lace.interlace.result import InterlaceResult
from lace.notation.fact import Fact
from lace.notation.identifiers import RecordHash
from lace.people.kinds import PolicyKind
from lace.people.roster import PeopleStanding
from lace.people.standing import PEOPLE_APPS
from lace.people.wording import people_rules
from lace.policy.origin import Viewer
from lace.porcelain.exchange import interlace
from lace.porcelain.lace import Lace
from lace.porcelain.policy import LacePolicy
from lace.porcelain.visibility import visible_facts, visible_records
from lace.porcelain.why import WhySide, walk
from lace.runtime.link.session import Outcome
from lace.runtime.node.node import Hooks
from product.communities import GROUP, Community, Holder

MOST_ROUNDS = 4
PEOPLE = (("Admin", 1), ("Key", 2), ("Author", 2), ("Standing", 2), ("Reader", 1), ("Invited", 1))
SEEN = (
    "Seen(P,N,V) :- Field(P,'Group',_,'club'), Field(P,'App',_,'notes'), Field(P,'Name',_,N), Field(P,'Signed-By',_,V)."
)


@dataclass
class Shared:
    """How two people's exchange ended: the last of those that newer policies called for."""

    outcomes: tuple[Outcome, Outcome]
    codes: tuple[ExitCode, ...]
    moved: int

    @property
    def results(self) -> tuple[InterlaceResult, InterlaceResult]:
        return self.outcomes[0].result, self.outcomes[1].result

    def is_named(self, record: str) -> bool:
        """Whether an outcome says that this record was not kept, or why it is not there."""
        return any(
            record in named
            for one in self.results
            for named in (
                one.rejected_hashes,
                one.not_available_hashes,
                one.refused_hashes,
                one.held_back_by_peer.records,
            )
        )


def share(made: Community) -> Shared:
    """Exchange under the policies of both until no newer policy comes, as the command does."""
    one, two = made.pair
    with made.open(one) as first, made.open(two) as second:
        moved = 0
        for _ in range(MOST_ROUNDS):
            before = [policy_of(held).in_force.hashes for held in (first, second)]
            outcomes = _exchange(made, first, second)
            moved += sum(len(one.result.received_hashes) + len(one.result.rejected_hashes) for one in outcomes)
            if before == [policy_of(held).in_force.hashes for held in (first, second)]:
                break
        # A served lace has no exit code: it holds the exchange open until the one that dialled has enough.
        codes = tuple(
            exit_code_of(outcome, incomplete_after(held, policy_of(held).module))
            for outcome, held in zip(outcomes, (first, second), strict=True)
        )[: 2 if made.way == "process" else 1]
    return Shared(outcomes, codes, moved)


def _exchange(made: Community, first: Lace, second: Lace) -> tuple[Outcome, Outcome]:
    one, two = made.pair
    if made.way == "process":
        met = interlace(first, second, here=one.key.verifier, there=two.key.verifier)
        return Outcome(met.first), Outcome(met.second)
    return asyncio.run(_by_wire(made, first, second))


async def _by_wire(made: Community, first: Lace, second: Lace) -> tuple[Outcome, Outcome]:
    one, two = made.pair
    ended: asyncio.Queue[Outcome] = asyncio.Queue()
    hooks = Hooks(on_end=lambda _, outcome: ended.put_nowait(outcome))
    address = f"unix:{made.place}/s" if made.way == "unix" else f"{made.way}:127.0.0.1:0"
    trusted = (one.key.verifier,) if made.way == "ws" else ()
    async with (
        lace.Node(second, key=two.key, hooks=hooks, clock=made.clock, trusted=trusted) as serving,
        lace.Node(first, key=one.key, clock=made.clock) as dialling,
    ):
        (bound,) = await serving.serve(address)
        outcome = await asyncio.wait_for(dialling.connect(bound), PATIENCE_S * 3)
        return outcome, await asyncio.wait_for(ended.get(), PATIENCE_S)


def policy_of(held: Lace) -> LacePolicy:
    """The policy of a lace that has one."""
    policy = held.policy()
    assert policy is not None
    return policy


# --- what is promised ----------------------------------------------------------------------------------------------


@dataclass
class Known:
    """One side as its own records show it."""

    who: Holder
    lace: Lace
    policy: LacePolicy
    held: frozenset[str]

    @classmethod
    def of(cls, who: Holder, opened: Lace) -> Known:
        return cls(who, opened, policy_of(opened), frozenset(str(record) for _, record in opened.store.records_since()))

    def selects(self, rules: str, viewer: Holder | None = None, more: Sequence[Fact] = ()) -> set[str]:
        """What rules select of its records, or of those that it shows to the owner of the rules, and of some more."""
        if viewer is None:
            return _rows(self.lace, rules, "SelectHave(P)", more)
        seen = visible_facts(self.lace.store.snapshot(), self.shows(viewer))
        return {row[0] for row in lace.query([*seen, *more], rules, "SelectHave(P)").rows()}

    @property
    def rules(self) -> str:
        """The selector of its policy, as its author wrote it."""
        return self.policy.in_force.text(PolicyKind.SELECT) or people_rules(self.policy.in_force.root, "select")

    def shows(self, viewer: Holder) -> frozenset[str]:
        """What its policy shows to somebody who proved the key that they use."""
        seen = self.lace.store.snapshot(), Viewer(viewer.key.verifier), self.policy.exposures
        return visible_records(*seen, at=self.lace.clock.tai())


def broken_sharing(made: Community, met: Shared) -> Iterator[str]:
    """Every sentence of the promise that does not hold after an exchange that says it converged."""
    one, two = made.pair
    with made.open(one) as first, made.open(two) as second:
        sides = Known.of(one, first), Known.of(two, second)
        for side in sides:
            yield from _own(side)
        yield from _lacking(made, met, *sides)
        yield from _lacking(made, met, *reversed(sides))
        yield from _differing(*sides)


def _own(side: Known) -> Iterator[str]:
    """What must hold in every lace: it is sound, holds nothing forgotten, and names one policy everywhere."""
    for damage in side.lace.verify():
        yield f"{side.who.called}: {damage}"
    if back := side.held & side.who.forgotten:
        yield f"{side.who.called} holds {sorted(back)} again, which were forgotten"
    for kind, version in side.policy.in_force.versions.items():
        coordinate = f"//{GROUP}//policy//{kind}"
        tip = _tip(side.lace, coordinate)
        if tip != version.hash:
            yield f"{side.who.called}: {coordinate} is {tip}, and in force is {version.hash} of {version.tai}"
    for kind in PolicyKind:
        if kind not in side.policy.in_force.versions and (tip := _tip(side.lace, f"//{GROUP}//policy//{kind}")):
            yield f"{side.who.called}: //{GROUP}//policy//{kind} has the tip {tip}, and nothing of it is in force"


def _tip(held: Lace, coordinate: str) -> str | None:
    with suppress(NotFound):
        return str(held.resolve(coordinate))
    return None


def _lacking(made: Community, met: Shared, here: Known, there: Known) -> Iterator[str]:
    """What one side has, both select and its holder shows, the other has too, or the outcome names it."""
    missing = set(here.held - there.held) - set(map(str, there.lace.forgotten()))
    missing = {record for record in missing & here.shows(there.who) if not met.is_named(record)}
    missing &= here.selects(here.rules)
    if not missing:
        return
    missing &= here.selects(there.rules, there.who)
    more = [fact for record in missing for fact in here.lace.facts(record)]
    wanted = missing & there.selects(there.rules, None, more)
    if wanted:
        wanted &= there.selects(here.rules, here.who, more)
    horizon = there.lace.tip_policy().until
    for record in sorted(wanted):
        fields = {fact.values[1]: fact.values[3] for fact in here.lace.facts(record) if fact.predicate.name == "Field"}
        if horizon is None or fields.get("TAI", "") <= horizon:
            what = f"{record} ({fields.get('App')}, {fields.get('Name')})"
            yield f"{what} of {here.who.called} did not arrive at {there.who.called}"
    if PolicyKind.RECEIVE in there.policy.parts:
        return
    walked_sides = [
        WhySide(called=s.who.called, lace=s.lace, module=s.policy.module, exposures=s.policy.exposures,
                verifier=s.who.key.verifier)
        for s in (here, there)
    ]  # fmt: skip
    for record in sorted(missing)[:1]:
        walked = walk(RecordHash(record), *walked_sides, now=made.clock.tai())
        if walked.stopped is None and not walked.unknown:
            yield f"{record} passes every gate from {here.who.called} to {there.who.called}, but did not arrive"


def _differing(here: Known, there: Known) -> Iterator[str]:
    """Who holds the same people records sees the same people; what is held on both sides reads the same."""
    people = [
        {str(entry.hash) for app in PEOPLE_APPS for entry in one.lace.store.entries(GROUP, app)} & one.held
        for one in (here, there)
    ]
    selected = [one.selects(one.rules) & records for one, records in zip((here, there), people, strict=True)]
    agree = selected[0] == selected[1]
    standings = [PeopleStanding(one.lace.store, one.policy.in_force.root) for one in (here, there)]
    rows = [{name: sorted(standing.rows(name, arity)) for name, arity in PEOPLE} for standing in standings]
    if agree and rows[0] != rows[1]:
        different = [name for name in rows[0] if rows[0][name] != rows[1][name]]
        yield f"both hold the same people records that count and differ about {different}"
    if agree and here.policy.in_force.hashes != there.policy.in_force.hashes:
        yield f"different policies are in force: {here.policy.in_force.hashes ^ there.policy.in_force.hashes}"
    if not agree or here.policy.in_force.hashes != there.policy.in_force.hashes:
        return
    gone = set(map(str, here.lace.forgotten())) | set(map(str, there.lace.forgotten()))
    versions = [_versions(one.lace) for one in (here, there)]
    for coordinate in sorted(versions[0].keys() | versions[1].keys()):
        held = [one.get(coordinate, frozenset()) for one in versions]
        if held[0] != held[1]:
            continue
        read = [_read(one.lace, coordinate) for one in (here, there)]
        if read[0] != read[1] and not (gone and "content" in str(read)):
            yield f"{coordinate} has the same versions and reads {read[0]} here and {read[1]} there"
    both = here.held & there.held
    seen = [{row for row in one.lace.query(SEEN).rows() if row[0] in both} for one in (here, there)]
    if seen[0] != seen[1]:
        yield f"the same question about records of both sides has different answers: {seen[0] ^ seen[1]}"


def _versions(held: Lace) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for row in held.list(f"//{GROUP}//", withdrawn=True):
        found.setdefault(row.coordinate, set()).add(str(row.hash))
    return {coordinate: frozenset(hashes) for coordinate, hashes in found.items()}


def _read(held: Lace, coordinate: str) -> tuple[object, ...]:
    """A coordinate as `get`, `ls` and `log` show it."""
    judged = tuple((str(one.version.hash), one.state) for one in held.history(coordinate))
    withdrawn = held.withdrawal(coordinate)
    shown = tuple(str(row.hash) for row in held.list(coordinate, tips=True) if row.coordinate == coordinate)
    try:
        content = held.get(coordinate).hex()
    except LaceError as error:
        content = f"no content: {type(error).__name__}"
    return (_tip(held, coordinate), shown, judged, withdrawn and str(withdrawn.hash), content)


def _rows(held: Lace, rules: str, goal: str, more: Sequence[Fact] = ()) -> set[str]:
    return {row[0] for row in held.query(rules, goal, extra=more).rows()}
