"""A scene played: its laces with their records, and every run of exchanges between them in its order.

Rule: the same scene gives the same records, bytes and ends, in a browser tab as on a server. Whatever is played was
played by the parts that a real node has: stores, hosts, sessions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from random import Random

from lace.interlace import effects as asked
from lace.interlace.host import Call, Loaded
from lace.interlace.setup.terms import Link, MachineConfig, Terms
from lace.limits import SECOND_NS, EngineLimits
from lace.notation.digest import domain_digest
from lace.notation.identifiers import RecordHash
from lace.notation.tai import TAI
from lace.policy.exposure import Exposure, expose_all, expose_selected
from lace.policy.operand import Module
from lace.policy.select import select_all
from lace.porcelain.lace import IN_MEMORY, Lace, open_lace
from lace.records.keys import SigningKey, SigningSecret
from lace.records.model import Blob, Plex, Record
from lace.runtime.host.host import LocalHost
from lace.runtime.host.quotas import GateRules, QuotaGate
from lace.runtime.link.session import Outcome, Session
from lace.testing.simulator.scene import Pair, Scene, SceneLace, SceneRecord, Weather
from lace.testing.simulator.wire import MS, Crossed, Wire, WireEnd, WirePlan, outcome_of, plan_for, run_together

_MINUTE_NS = 60 * SECOND_NS
_HOUR_NS = 60 * _MINUTE_NS
_DAY_NS = 1_767_225_600 * SECOND_NS  # the scene's day: 2026-01-01 UTC
_FIRST_RUN_NS = _DAY_NS + 24 * _HOUR_NS
_BETWEEN_RUNS_NS = 25 * _HOUR_NS  # what a lace remembers of spoiled records it remembers for a day
# Rules are evaluated while somebody types, and a link may bring any: a slip must not take the machine.
SCENE_LIMITS = EngineLimits(
    max_derived_facts_per_predicate=20_000, max_working_rows=200_000, max_stratum_iterations=1_000
)


@cache
def key_of(person: str) -> SigningKey:
    """The key of somebody in a scene: made of the name, so no secret at all."""
    return SigningKey.from_secret(SigningSecret(domain_digest("lace playground key ", person.encode())))


def moment(minute: int) -> TAI:
    """A minute of the scene's day."""
    return TAI.of_unix_ns(_DAY_NS + minute * _MINUTE_NS)


def record_of(given: SceneRecord) -> Record:
    """A record of a scene: the same bytes each time, so even a signature's randomness is made of what is signed."""
    blob = Blob(given.text.encode())
    plex = Plex(group=given.group, app=given.app, name=given.name, tai=moment(given.minute), blob=blob)
    if not given.signer:
        return plex
    aux = domain_digest(f"lace playground aux {given.signer} ", plex.hash.digest)
    return key_of(given.signer).seal(plex, aux)


class TamperingHost(LocalHost):
    """The host of a hostile lace: a bit of every record that it sends is changed."""

    def load(self, wanted: asked.SendRecords, call: Call) -> Iterator[Loaded]:
        """What is stored, with its last bit flipped."""
        for loaded in super().load(wanted, call):
            yield [(record, stored and stored[:-1] + bytes([stored[-1] ^ 1])) for record, stored in loaded]


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """One exchange over one link as it went."""

    pair: Pair
    plan: WirePlan
    ns: int
    passed: Sequence[Crossed]
    written: tuple[int, int]
    outcomes: tuple[Outcome, Outcome]
    cut_at: int | None  # nanoseconds after the start, as is the other
    flipped_at: int | None

    @property
    def is_cut(self) -> bool:
        """Whether the wire broke."""
        return self.cut_at is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One run: an exchange over every link that was up, all at the same time."""

    weather: Weather
    crossings: Sequence[Crossing]

    @property
    def received(self) -> int:
        """How many records arrived anywhere."""
        return sum(len(outcome.result.received_hashes) for one in self.crossings for outcome in one.outcomes)


Watch = Callable[["Stage", Pair], None]


class Stage:
    """The laces of a scene and what has happened between them so far."""

    def __init__(self, scene: Scene) -> None:
        self.given = scene.laces
        self.links = scene.links
        self.names = [lace.name for lace in scene.laces]
        self.modules = [Module.author(lace.select) for lace in scene.laces]
        self.exposures = [exposures_of(lace, module) for lace, module in zip(scene.laces, self.modules, strict=True)]
        self.laces = [_lace_of(lace) for lace in scene.laces]
        self.runs: list[Round] = []
        self.came: list[dict[RecordHash, tuple[int, int]]] = [{} for _ in scene.laces]  # record → (run, from whom)

    @property
    def now(self) -> TAI:
        """When the next run would begin."""
        return TAI.of_unix_ns(_FIRST_RUN_NS + len(self.runs) * _BETWEEN_RUNS_NS)

    def play(self, weather: Weather, watch: Watch | None = None) -> Round:
        """One more run; what arrives stays, however it ends. `watch` is called after every step of a link."""
        pairs = [pair for pair in self.links if pair not in weather.down]
        plans = self._plans(weather, pairs)
        before = [self.held(number) for number in range(len(self.laces))]
        wires = self._exchange(self.laces, plans, watch)
        run = Round(weather=weather, crossings=[_crossing(pair, plans[pair], wire) for pair, wire in wires.items()])
        for crossing in run.crossings:
            for end, outcome in enumerate(crossing.outcomes):
                here, there = crossing.pair[end], crossing.pair[1 - end]
                fresh = [record for record in outcome.result.received_hashes if record not in before[here]]
                for record in fresh:
                    self.came[here].setdefault(record, (len(self.runs), there))
        self.runs.append(run)
        return run

    def held(self, number: int) -> set[RecordHash]:
        """The records of one lace."""
        return {record for _, record in self.laces[number].store.records_since()}

    def _plans(self, weather: Weather, pairs: Sequence[Pair]) -> dict[Pair, WirePlan]:
        """What the seed does to each link: it chooses one to cut and one to flip a bit on; all are slow, or none."""
        chance = Random(weather.seed)  # noqa: S311 - a seed, not a secret
        is_alone = len(self.links) == 1
        cut, flipped = (chance.choice(pairs), chance.choice(pairs)) if pairs and not is_alone else (None, None)
        plans = {}
        for number, pair in enumerate(pairs):
            is_cut = weather.cut and (is_alone or pair == cut)
            is_flipped = weather.corrupt and (is_alone or pair == flipped)
            mine = Weather(weather.seed if is_alone else weather.seed + number, is_cut, weather.delay, is_flipped)
            plan = plan_for(mine, self._rehearse(pair) if is_cut or is_flipped else (0, 0))
            silent = self._is(pair[0], "silent"), self._is(pair[1], "silent")
            usual_ns = plan.usual_ns if is_alone else chance.randint(10, 60) * MS
            plans[pair] = replace(plan, silent=silent, usual_ns=usual_ns)
        return plans

    def _is(self, number: int, hostile: str) -> bool:
        return self.given[number].hostile == hostile

    def _rehearse(self, pair: Pair) -> tuple[int, int]:
        """How many bytes each end of a link would write if nothing went wrong, found out on copies."""
        copies = [_copy(lace) if number in pair else lace for number, lace in enumerate(self.laces)]
        wire = self._exchange(copies, {pair: WirePlan()}, None)[pair]
        return wire.ends[0].written, wire.ends[1].written

    def _exchange(self, laces: Sequence[Lace], plans: dict[Pair, WirePlan], watch: Watch | None) -> dict[Pair, Wire]:
        wires = {
            pair: Wire((self._end(laces, pair, 0), self._end(laces, pair, 1)), plan, self.now.to_ns())
            for pair, plan in plans.items()
        }
        pairs = {id(wire): pair for pair, wire in wires.items()}
        try:
            run_together(list(wires.values()), lambda wire: watch(self, pairs[id(wire)]) if watch else None)
        finally:
            for wire in wires.values():
                for end in wire.ends:
                    end.session.close()
                    end.host.close()
        return wires

    def _end(self, laces: Sequence[Lace], pair: Pair, index: int) -> WireEnd:
        number, other = pair[index], pair[1 - index]
        is_greedy = self._is(number, "greedy")
        module = select_all() if is_greedy else self.modules[number]
        exposures = () if is_greedy else self.exposures[number]
        terms = Terms(module=module, exposures=exposures, engine_limits=SCENE_LIMITS)
        here, peer = (key_of(self.names[one]).verifier for one in (number, other))
        link = Link(here=here, peer=peer, signs_hello=True, peer_signs_hello=True)
        session = Session(MachineConfig(index=index, terms=terms, link=link, refusals=True))
        host = TamperingHost if self._is(number, "tampers") else LocalHost
        store, now_s = laces[number].store, self.now.to_ns() / SECOND_NS
        gate = QuotaGate(store, GateRules(limits=terms.record_limits, peer=str(peer)), now=lambda: now_s)
        return WireEnd(session, host(store, terms, gate=gate))


def _crossing(pair: Pair, plan: WirePlan, wire: Wire) -> Crossing:
    first, second = wire.ends
    return Crossing(
        pair=pair,
        plan=plan,
        ns=wire.elapsed_ns,
        passed=wire.passed,
        written=(first.written, second.written),
        outcomes=(outcome_of(first), outcome_of(second)),
        cut_at=wire.cut_at,
        flipped_at=wire.flipped_at,
    )


def exposures_of(lace: SceneLace, module: Module) -> tuple[Exposure, ...]:
    """What a lace shows to the rules of others."""
    match lace.expose:
        case "all":
            return (expose_all(),)
        case "selected":
            return (expose_selected(module),)
        case "rules":
            return (Exposure.author(lace.expose_rules),)
        case _:
            return ()


def _lace_of(given: SceneLace) -> Lace:
    lace = open_lace(IN_MEMORY)
    with lace.batch() as batch:
        for record in given.records:
            batch.put_record(record_of(record))
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
        """The scene with all of its runs played."""
        stage = self._stage
        is_another = stage is None or (stage.given, stage.links) != (scene.laces, scene.links)
        if stage is None or is_another or not _goes_on(stage.runs, scene.runs):
            stage = self._stage = Stage(scene)
        for weather in scene.runs[len(stage.runs) :]:
            stage.play(weather)
        return stage


def _goes_on(played: Sequence[Round], runs: Sequence[Weather]) -> bool:
    return [one.weather for one in played] == list(runs[: len(played)])
