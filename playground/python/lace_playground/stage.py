"""The scene played: two laces with their records, and every exchange between them in its order.

Rule: the same scene gives the same records, bytes and ends, in a tab as on a server. Whatever is played was played by
the parts that a real node has: stores, hosts, sessions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from lace.interlace.setup.terms import Link, MachineConfig, Terms
from lace.limits import SECOND_NS, EngineLimits
from lace.notation.digest import domain_digest
from lace.notation.identifiers import RecordHash
from lace.notation.tai import TAI
from lace.policy.exposure import Exposure, expose_all, expose_selected
from lace.policy.operand import Module
from lace.porcelain.lace import IN_MEMORY, Lace, open_lace
from lace.records.keys import SigningKey, SigningSecret
from lace.records.model import Blob, Plex, Record
from lace.runtime.host.host import LocalHost
from lace.runtime.link.session import Outcome, Session
from lace_playground.scene import PEOPLE, Note, Scene, Side, Weather
from lace_playground.wire import End, Passed, Plan, Wire, outcome_of, plan_for

_MINUTE_NS = 60 * SECOND_NS
_HOUR_NS = 60 * _MINUTE_NS
_DAY_NS = 1_767_225_600 * SECOND_NS  # the scene's day: 2026-01-01 UTC
_FIRST_EXCHANGE_NS = _DAY_NS + 24 * _HOUR_NS
# Rules are evaluated while somebody types, and a link may bring any: a slip must not take the tab.
TAB_LIMITS = EngineLimits(
    max_derived_facts_per_predicate=20_000, max_working_rows=200_000, max_stratum_iterations=1_000
)


@cache
def key_of(person: str) -> SigningKey:
    """The key of somebody in the playground: made of the name, so no secret at all."""
    return SigningKey.from_secret(SigningSecret(domain_digest("lace playground key ", person.encode())))


def moment(minute: int) -> TAI:
    """A minute of the scene's day."""
    return TAI.of_unix_ns(_DAY_NS + minute * _MINUTE_NS)


def record_of(note: Note) -> Record:
    """The record of a note: the same bytes each time, so even a signature's randomness is made of what is signed."""
    plex = Plex(group=note.group, app=note.app, name=note.name, tai=moment(note.minute), blob=Blob(note.text.encode()))
    if not note.signer:
        return plex
    aux = domain_digest(f"lace playground aux {note.signer} ", plex.hash.digest)
    return key_of(note.signer).seal(plex, aux)


@dataclass(frozen=True, slots=True)
class Played:
    """One exchange as it went."""

    weather: Weather
    plan: Plan
    ns: int
    passed: Sequence[Passed]
    written: tuple[int, int]
    outcomes: tuple[Outcome, Outcome]
    is_cut: bool
    flipped_at: int | None


class Stage:
    """Two laces and what has happened between them so far."""

    def __init__(self, sides: tuple[Side, Side]) -> None:
        self.sides = sides
        self.modules = (Module.author(sides[0].select), Module.author(sides[1].select))
        self.exposures = (exposures_of(sides[0], self.modules[0]), exposures_of(sides[1], self.modules[1]))
        self.laces = (_lace_of(sides[0]), _lace_of(sides[1]))
        self.played: list[Played] = []
        self.came: tuple[dict[RecordHash, int], dict[RecordHash, int]] = ({}, {})  # record → which exchange brought it

    @property
    def now(self) -> TAI:
        """When the next exchange would begin."""
        return TAI.of_unix_ns(_FIRST_EXCHANGE_NS + len(self.played) * _HOUR_NS)

    def play(self, weather: Weather) -> Played:
        """One more exchange; what arrives stays, however it ends."""
        undisturbed = self._rehearse() if weather.cut or weather.corrupt else (0, 0)
        plan = plan_for(weather, undisturbed)
        before = [self._held(number) for number in (0, 1)]
        wire = self._exchange(self.laces, plan)
        number = len(self.played)
        for side in (0, 1):
            self.came[side].update(dict.fromkeys(self._held(side) - before[side], number))
        outcomes = outcome_of(wire.ends[0]), outcome_of(wire.ends[1])
        written = wire.ends[0].written, wire.ends[1].written
        played = Played(weather, plan, wire.elapsed_ns, wire.passed, written, outcomes, wire.is_cut, wire.flipped_at)
        self.played.append(played)
        return played

    def _held(self, number: int) -> set[RecordHash]:
        return {record for _, record in self.laces[number].store.records_since()}

    def _rehearse(self) -> tuple[int, int]:
        """How many bytes each side would write if nothing went wrong, found out on copies."""
        copies = _copy(self.laces[0]), _copy(self.laces[1])
        wire = self._exchange(copies, Plan())
        return wire.ends[0].written, wire.ends[1].written

    def _exchange(self, laces: tuple[Lace, Lace], plan: Plan) -> Wire:
        verifiers = [key_of(person).verifier for person in PEOPLE[:2]]
        ends = []
        for number in (0, 1):
            terms = Terms(module=self.modules[number], exposures=self.exposures[number], engine_limits=TAB_LIMITS)
            here, peer = verifiers[number], verifiers[1 - number]
            link = Link(here=here, peer=peer, signs_hello=True, peer_signs_hello=True)
            config = MachineConfig(index=number, terms=terms, link=link)
            ends.append(End(Session(config), LocalHost(laces[number].store, terms)))
        wire = Wire((ends[0], ends[1]), plan, self.now.to_ns())
        try:
            wire.run()
        finally:
            for end in wire.ends:
                end.session.close()
                end.host.close()
        return wire


def exposures_of(side: Side, module: Module) -> tuple[Exposure, ...]:
    """What a side shows the other's rules."""
    match side.expose:
        case "all":
            return (expose_all(),)
        case "selected":
            return (expose_selected(module),)
        case "rules":
            return (Exposure.author(side.expose_rules),)
        case _:
            return ()


def _lace_of(side: Side) -> Lace:
    lace = open_lace(IN_MEMORY)
    with lace.batch() as batch:
        for note in side.notes:
            batch.put_record(record_of(note))
    return lace


def _copy(lace: Lace) -> Lace:
    copied = open_lace(IN_MEMORY)
    with copied.batch() as batch:
        for _, stored in lace.store.bodies_since():
            batch.put_stored(stored)
    return copied


class Theatre:
    """Keeps the last stage: a scene that goes on where another stood is played on, not again."""

    def __init__(self) -> None:
        self._stage: Stage | None = None

    def stage_for(self, scene: Scene) -> Stage:
        """The scene with all of its exchanges played."""
        stage = self._stage
        if stage is None or stage.sides != scene.sides or not _goes_on(stage.played, scene.runs):
            stage = self._stage = Stage(scene.sides)
        for weather in scene.runs[len(stage.played) :]:
            stage.play(weather)
        return stage


def _goes_on(played: Sequence[Played], runs: Sequence[Weather]) -> bool:
    return [one.weather for one in played] == list(runs[: len(played)])
