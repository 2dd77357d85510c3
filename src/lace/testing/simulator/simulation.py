"""A scene as a test: its runs, then calm, and the properties that must hold after every step and at the end.

Rule: what must hold is worked out apart from the exchange: from what a lace shows before each arrival, from the gates
of `lace why`, and from the bytes in the stores.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from random import Random

from lace.notation.identifiers import RecordHash
from lace.policy.exposure import expose_selected
from lace.policy.origin import Viewer
from lace.porcelain.visibility import visible_records
from lace.porcelain.why import WhySide, walk
from lace.testing.simulator.scene import Expected, Pair, Scene, Weather
from lace.testing.simulator.stage import SCENE_LIMITS, Round, Stage, key_of

MAX_WALKS = 200  # of records that might be left, for each direction of a link


@dataclass(frozen=True, slots=True)
class Broken:
    """Something that should hold and does not."""

    rule: str  # "kept", "known", "shown", "rest", "converged", "expected"
    sentence: str

    def __str__(self) -> str:
        return self.sentence


@dataclass(slots=True)
class Simulated:
    """What a simulation came to: its runs, what each lace has in the end, and what is broken."""

    scene: Scene
    runs: list[Round] = field(default_factory=list)
    calm: int = 0  # how many of the runs came after those of the scene
    holds: dict[str, list[str]] = field(default_factory=dict)  # by lace: coordinates
    broken: list[Broken] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether everything holds."""
        return not self.broken

    @property
    def moved(self) -> int:
        """How many records arrived anywhere, over all runs."""
        return sum(run.received for run in self.runs)


def simulate(scene: Scene) -> Simulated:
    """Play the runs of a scene, then calm ones over all links until nothing moves, and check what must hold."""
    stage, done = Stage(scene), Simulated(scene)
    watcher = Watcher(stage)
    for weather in scene.runs:
        done.runs.append(_played(stage, weather, watcher))
    is_at_rest = False
    for _ in range(4 + 2 * len(stage.laces)):  # a record crosses one link more with each run
        before = [stage.held(number) for number in range(len(stage.laces))]
        done.runs.append(_played(stage, Weather(len(done.runs) + 1), watcher))
        done.calm += 1
        is_at_rest = [stage.held(number) for number in range(len(stage.laces))] == before
        if is_at_rest:
            break
    done.broken += watcher.broken
    if not is_at_rest:
        done.broken.append(Broken("rest", f"the laces still change after {done.calm} calm runs"))
    done.broken += [*_changed(stage), *_left(stage), *_unexpected(stage, scene.expect)]
    done.holds = {name: sorted(_coordinates(stage, number)) for number, name in enumerate(stage.names)}
    return done


def with_seed(scene: Scene, seed: int) -> Scene:
    """The same scene under other weather: three runs of trouble that the seed chooses instead of the scene's own."""
    chance = Random(seed)  # noqa: S311 - a seed, not a secret
    runs = []
    for _ in range(3):
        cut, delay, corrupt = (chance.random() < 0.4 for _ in range(3))
        down = tuple(pair for pair in scene.links if chance.random() < 0.25)
        runs.append(Weather(chance.randrange(1_000_000), cut, delay, corrupt, down))
    return replace(scene, runs=tuple(runs))


def _played(stage: Stage, weather: Weather, watcher: Watcher) -> Round:
    watcher.begin()
    return stage.play(weather, watcher.look)


class Watcher:
    """Looks at both laces of a link after each of its steps: nothing lost, forged, or had without being shown."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._held = [stage.held(number) for number in range(len(stage.laces))]
        self._known = set[RecordHash]().union(*self._held)
        self._shown: dict[tuple[int, int], frozenset[str]] = {}  # to whom a lace shows what, at any time of this run
        self.broken: list[Broken] = []

    def begin(self) -> None:
        """A run begins: what is shown is what the laces show now."""
        self._shown = {}
        for number in range(len(self._held)):
            self._show(number)

    def _show(self, number: int) -> None:
        for pair in self._stage.links:
            if number in pair:
                viewer = pair[1 - pair.index(number)]
                earlier = self._shown.get((number, viewer), frozenset())
                self._shown[number, viewer] = earlier | shown_by(self._stage, number, viewer)

    def look(self, stage: Stage, pair: Pair) -> None:
        """After a step of a link: nothing is lost, forged, or had without having been shown."""
        for here, there in (pair, pair[::-1]):
            held, name = stage.held(here), stage.names[here]
            if held == self._held[here]:
                continue
            lost, came = self._held[here] - held, held - self._held[here]
            self._held[here] = held
            if lost:
                self.broken.append(Broken("kept", f"{name} lost {_some(lost)}"))
            if came - self._known:
                self.broken.append(Broken("known", f"{name} took {_some(came - self._known)}, which nobody wrote"))
            unshown = {record for record in came if str(record) not in self._shown[there, here]}
            if unshown:
                said = f"{name} has {_some(unshown)}, which {stage.names[there]} does not show to {name}"
                self.broken.append(Broken("shown", said))
            self._show(here)


def shown_by(stage: Stage, number: int, viewer: int) -> frozenset[str]:
    """The records that a lace shows to the rules of another."""
    snapshot = stage.laces[number].store.snapshot()
    whose = Viewer(str(key_of(stage.names[viewer]).verifier))
    return visible_records(snapshot, whose, stage.exposures[number], at=stage.now, limits=SCENE_LIMITS)


def selected_by(stage: Stage, number: int, viewer: int) -> frozenset[str]:
    """The records that a lace's own rules select, towards another."""
    snapshot = stage.laces[number].store.snapshot()
    whose = Viewer(str(key_of(stage.names[viewer]).verifier))
    return visible_records(snapshot, whose, [expose_selected(stage.modules[number])], at=stage.now, limits=SCENE_LIMITS)


def side_of(stage: Stage, number: int) -> WhySide:
    """A lace as `lace why` looks at it."""
    return WhySide(
        called=stage.names[number],
        lace=stage.laces[number],
        module=stage.modules[number],
        exposures=tuple(stage.exposures[number]),
        verifier=key_of(stage.names[number]).verifier,
    )


def _changed(stage: Stage) -> Iterator[Broken]:
    """Every stored record is still what its hash says."""
    for name, lace in zip(stage.names, stage.laces, strict=True):
        for problem in lace.verify():
            yield Broken("kept", f"{name}: {problem}")


def _left(stage: Stage) -> Iterator[Broken]:
    """At rest no record is left that every gate would let pass, between laces that are not hostile."""
    for sender, receiver, record in still_to_come(stage):
        said = f"{stage.names[receiver]} does not have {record}, which {stage.names[sender]} would give"
        yield Broken("converged", said)


def still_to_come(stage: Stage) -> Iterator[tuple[int, int, RecordHash]]:
    """What the next calm run would bring: sender, receiver and record, between laces that are not hostile."""
    for pair in stage.links:
        if any(stage.given[number].hostile for number in pair):
            continue
        for sender, receiver in (pair, pair[::-1]):
            candidates = selected_by(stage, sender, receiver) & shown_by(stage, sender, receiver)
            missing = sorted(candidates - {str(record) for record in stage.held(receiver)})
            for record in islice(missing, MAX_WALKS):
                sides = side_of(stage, sender), side_of(stage, receiver)
                if walk(RecordHash(record), *sides, now=stage.now).stopped is None:
                    yield sender, receiver, RecordHash(record)


def _unexpected(stage: Stage, wanted: Sequence[Expected]) -> Iterator[Broken]:
    """What the scene expects of its end and does not get."""
    for one in wanted:
        if (one.record in _coordinates(stage, stage.names.index(one.lace))) != one.has:
            yield Broken("expected", f"{one.lace} {'does not have' if one.has else 'has'} {one.record}")


def _coordinates(stage: Stage, number: int) -> set[str]:
    return {f"//{row['Group']}//{row['App']}//{row['Name']}" for row in stage.laces[number].list()}


def _some(records: set[RecordHash]) -> str:
    first, *others = sorted(map(str, records))
    return f"{first} and {len(others)} more" if others else first
