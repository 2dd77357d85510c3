"""Small worlds as people have them: two laces with histories, rules, keys, quotas, clocks and a way between them.

Rule: a world is a function of its seed. Nothing here looks at how an exchange works; a world says what was done, and
`promises.py` what must then be true.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from random import Random
from time import monotonic_ns
from typing import Any

import lace
from lace.differences.sketchsize import CompareLimits
from lace.interlace.setup.terms import Terms
from lace.limits import HORIZON_S, KIB, MIB, SECOND_NS, RecordLimits
from lace.notation.tai import TAI
from lace.policy.exposure import Exposure
from lace.policy.operand import Module
from lace.porcelain.exchange import exposures, selector
from lace.porcelain.lace import Lace
from lace.records.keys import SigningKey
from lace.runtime.host.quotas import Allowance, Quotas

GROUPS = ("club", "club/boats", "attic")
APPS = ("notes", "photos")
NAMES = ("a", "b", "b/c", "log")
NOW_S = 1_790_000_000  # what every clock of a world shows
CHUNK = 256  # bytes of one record in worlds with small records, so that content of some hundred bytes has parts

Selects = Callable[[Mapping[str, str]], bool]
"""Whether rules that look at one record at a time select it, by its fields."""


@dataclass(frozen=True)
class RuleChoice:
    """What one side selects, in the words of a person, and the same as a function where one record decides."""

    select: Any
    selects: Selects | None = None
    is_everything: bool = False


@dataclass
class SideOfWorld:
    """One lace: where it is, what it brings, and what it lets in."""

    path: Path
    rules: RuleChoice
    expose: str
    quotas: Quotas | None = None
    limits: RecordLimits = field(default_factory=RecordLimits)

    def open(self, clock: FixedClock) -> Lace:
        """A new handle, as another process would have."""
        return lace.open(self.path, clock=clock, limits=self.limits)

    @cached_property
    def module(self) -> Module:
        """What this side selects."""
        return selector(self.rules.select)

    @cached_property
    def exposures(self) -> tuple[Exposure, ...]:
        """What it shows."""
        return exposures(self.expose, self.module)

    def terms(self, thresholds: Mapping[str, Any]) -> Terms:
        """What this side brings to an exchange."""
        return Terms(module=self.module, exposures=self.exposures, record_limits=self.limits, **dict(thresholds))


@dataclass(frozen=True)
class FixedClock:
    """A clock that shows one instant for records, and counts on for timers."""

    instant: TAI

    def tai(self) -> TAI:
        return self.instant

    def monotonic_ns(self) -> int:
        return monotonic_ns()


@dataclass
class World:
    """Two laces that are about to meet."""

    seed: int
    sides: tuple[SideOfWorld, SideOfWorld]
    clock: FixedClock
    way: str  # process, tcp, unix, ws
    thresholds: dict[str, Any]
    keys: list[SigningKey]

    def __str__(self) -> str:
        one, two = self.sides
        return (
            f"world {self.seed}: {self.way}, {one.rules.select!r} shows {one.expose!r} to {two.rules.select!r},"
            f" which shows {two.expose!r}; thresholds {self.thresholds}; quotas {one.quotas} and {two.quotas}"
        )


def make_world(seed: int, folder: Path, *, sizes: tuple[int, ...] | None = None, records: int = 12) -> World:
    """The world of a seed, its laces filled; with `sizes` contents of just these lengths, under default limits."""
    draw = Random(seed)
    clock = FixedClock(TAI.of_unix_ns(NOW_S * SECOND_NS))
    keys = [SigningKey.generate(draw.randbytes) for _ in range(draw.randint(1, 3))]
    limits = RecordLimits() if sizes is not None else draw.choice((RecordLimits(), RecordLimits(max_data_bytes=CHUNK)))
    is_alike = draw.random() < 0.6  # most communities have one set of rules
    first = _rules(draw, keys)
    second = first if is_alike else _rules(draw, keys)
    shown = ("selected", "selected", "selected", "all", "none")
    one = SideOfWorld(folder / f"{seed}-one.lace", first, draw.choice(shown), limits=limits)
    two = SideOfWorld(folder / f"{seed}-two.lace", second, draw.choice(shown), limits=limits)
    way = draw.choice(("process", "process", "tcp", "unix", "ws"))
    if way != "process" and draw.random() < 0.25:
        side = draw.choice((one, two))
        side.quotas = _quotas(draw)
    world = World(seed, (one, two), clock, way, _thresholds(draw), keys)
    _fill(draw, world, sizes, records)
    return world


def _rules(draw: Random, keys: list[SigningKey]) -> RuleChoice:
    group, app = draw.choice(GROUPS), draw.choice(APPS)
    admin = str(keys[0].verifier)
    choices: list[Callable[[], RuleChoice]] = [
        lambda: RuleChoice(None, lambda _: True, is_everything=True),
        lambda: RuleChoice(f"//{group}//", lambda row: row["Group"] == group),
        lambda: RuleChoice(f"//{group}//{app}//", lambda row: (row["Group"], row["App"]) == (group, app)),
        lambda: RuleChoice([f"//{group}//{app}", f"//{group}//{APPS[0]}//b"], None),
        lambda: RuleChoice(_by_field("App", app), lambda row: row["App"] == app),
        lambda: RuleChoice(_by_field("Signed-By", admin), lambda row: row["Signed-By"] == admin),
        lambda: RuleChoice(_members(group, app, admin)),
        lambda: RuleChoice(_newest(app, draw.randint(1, 4))),
        lambda: RuleChoice(_unless_marked(app)),
        lambda: RuleChoice(_generated(draw)),
    ]
    return draw.choice(choices)()


def _mirrored(*bodies: str, more: str = "") -> str:
    """Rules that say of stored records and of claims the same: FIELD(N,V) is a field of the record at hand."""
    rules = []
    for body in bodies:
        stored = body.replace("FIELD(", "Field(P,")
        claimed = body.replace("FIELD(", "AdvertisedField(P,S,")
        rules.append(f"SelectHave(P) :- Have(P), {stored}.")
        rules.append(f"SelectAdvertised(P,S) :- Advertised(P,S), {claimed}.")
    return "\n".join([*rules, more])


def _by_field(name: str, value: str) -> str:
    return _mirrored(f"FIELD('{name}',_,'{value}')")


def _members(group: str, app: str, admin: str) -> str:
    member = f"Field(P,'Group',_,'{group}'), Field(P,'App',_,'member'), Field(P,'Signed-By',_,'{admin}')"
    return _mirrored(
        f"FIELD('Group',_,'{group}'), FIELD('App',_,'member'), FIELD('Signed-By',_,'{admin}')",
        f"FIELD('Group',_,'{group}'), FIELD('App',_,'{app}'), FIELD('Signed-By',_,V), Member(V)",
        more=f"Member('{admin}') :- true.\nMember(V) :- Have(P), {member}, Field(P,'Name',_,V).",
    )


def _newest(app: str, count: int) -> str:
    return f"""
SelectHave(P) :- Candidate(P,T), Cardinality(Before(P,Q),'<','{count}').
SelectAdvertised(P,S) :- Offer(P,S,T), Cardinality(OfferBefore(P,S,Q),'<','{count}').
Candidate(P,T) :- Have(P), Field(P,'App',_,'{app}'), Field(P,'TAI',_,T).
Before(P,Q) :- Candidate(P,TP), Candidate(Q,TQ), LexCompare(TQ,'>',TP).
Before(P,Q) :- Candidate(P,T), Candidate(Q,T), LexCompare(Q,'>',P).
Offer(P,S,T) :- Advertised(P,S), AdvertisedField(P,S,'App',_,'{app}'), AdvertisedField(P,S,'TAI',_,T).
OfferBefore(P,S,Q) :- Offer(P,S,TP), Offer(Q,S,TQ), LexCompare(TQ,'>',TP).
OfferBefore(P,S,Q) :- Offer(P,S,T), Offer(Q,S,T), LexCompare(Q,'>',P).
"""


def _unless_marked(app: str) -> str:
    return _mirrored(
        f"FIELD('App',_,'{app}'), FIELD('Name',_,N), not Marked(N)",
        "FIELD('App',_,'mark')",
        more="Marked(N) :- Have(P), Field(P,'App',_,'mark'), Field(P,'Name',_,N).",
    )


def _generated(draw: Random) -> str:
    """Rules of several atoms over one record, with comparisons, and perhaps a join with another."""
    bodies = []
    for _ in range(draw.randint(1, 3)):
        atoms = []
        if draw.random() < 0.7:
            atoms.append(f"FIELD('Group',_,'{draw.choice(GROUPS)}')")
        if draw.random() < 0.5:
            atoms.append(f"FIELD('App',_,A), A != '{draw.choice(APPS)}'")
        if draw.random() < 0.5:
            atoms.append(f"FIELD('Name',_,N), LexCompare(N,'{draw.choice(('<=', '>', '<'))}','{draw.choice(NAMES)}')")
        if draw.random() < 0.3:
            atoms.append("FIELD('Name',_,M), Noted(M)")
        bodies.append(", ".join(atoms or ["FIELD('Group',_,_)"]))
    return _mirrored(*bodies, more="Noted(M) :- Have(Q), Field(Q,'Name',_,M), Field(Q,'App',_,'notes').")


def _quotas(draw: Random) -> Quotas:
    allowance = draw.choice((Allowance(records=draw.randint(0, 4)), Allowance(bytes=draw.randint(100, 2000))))
    kind = draw.choice(("peer", "known_peer", "signer", "group", "total"))
    given = {kind: allowance}
    if kind == "peer":
        given["known_peer"] = allowance
    return Quotas(**given)


def _thresholds(draw: Random) -> dict[str, Any]:
    """Where the road changes, drawn anew for each world; half of them are as shipped."""
    if draw.random() < 0.5:
        return {"differences": draw.random() < 0.7}
    return {
        "differences": draw.random() < 0.7,
        "partitions": draw.random() < 0.8,
        "compression": draw.random() < 0.8,
        "min_compared": draw.choice((0, 1, 4, 32)),
        "partition_threshold_bytes": draw.choice((0, 200, 2 * KIB, MIB // 2)),
        "max_taken": draw.choice((0, 1, 3, 256)),
        "max_requests": draw.choice((1, 3, 1_000_000)),
        "max_service_records": draw.choice((1, 2, 1_000_000)),
        "compare_limits": draw.choice((CompareLimits(), CompareLimits())),
    }


def _fill(draw: Random, world: World, sizes: tuple[int, ...] | None, most: int) -> None:
    """Histories: common records, own ones, versions of one name at one instant, deletions, times far ahead."""
    one, two = (lace.open(side.path, create=True, clock=world.clock, limits=side.limits) for side in world.sides)
    with one, two:
        for number in range(draw.randint(0, most) if sizes is None else len(sizes)):
            chosen = draw.choice(("one", "one", "two", "two", "both"))
            owners = {"one": (one,), "two": (two,), "both": (one, two)}[chosen]
            written = _write(draw, world, owners[0], number, None if sizes is None else sizes[number])
            if len(owners) == 2:
                for record in written:
                    two.put_stored(one.stored(record))
            if draw.random() < 0.12:
                draw.choice(owners).delete(draw.choice(written))


def _write(draw: Random, world: World, into: Lace, number: int, size: int | None) -> list[str]:
    before = {str(record) for _, record in into.store.records_since()}
    app = draw.choice((*APPS, *APPS, "member", "mark"))
    name = draw.choice(NAMES) if app != "member" else str(draw.choice(world.keys).verifier)
    ahead_s = draw.choice((0, 0, 0, -5, -5, -3600, 2, HORIZON_S - 60, HORIZON_S * 3))
    length = draw.choice((0, 1, 20, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK)) if size is None else size
    key = draw.choice((None, *world.keys))
    into.put(
        draw.randbytes(min(length, KIB)) + bytes(max(length - KIB, 0)),
        group=draw.choice(GROUPS),
        app=app,
        name=name,
        tai=world.clock.instant.plus_ns(ahead_s * SECOND_NS),
        sign=key,
    )
    return [str(record) for _, record in into.store.records_since() if str(record) not in before]
