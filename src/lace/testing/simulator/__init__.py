"""Laces, links and faults under a seed, in one process and virtual time: the playground's scenes, run as tests.

    from lace.testing.simulator import Scene, SceneLace, SceneRecord, simulate

    soup = SceneRecord("club", "recipes", "soup", "Leeks.")
    done = simulate(Scene((SceneLace((soup,), rules), SceneLace((), rules))))
    assert done.passed, done.broken

Rule: real stores, rules, sessions and bytes; only time and chance are the scene's own.
"""

from lace.testing.simulator.scene import (
    Expected,
    Scene,
    SceneLace,
    SceneLimits,
    SceneRecord,
    Weather,
    read_scene,
    scene_in_link,
)
from lace.testing.simulator.simulation import Broken, Simulated, simulate, still_to_come, with_seed
from lace.testing.simulator.stage import Crossing, Round, Stage

__all__ = [
    "Broken",
    "Crossing",
    "Expected",
    "Round",
    "Scene",
    "SceneLace",
    "SceneLimits",
    "SceneRecord",
    "Simulated",
    "Stage",
    "Weather",
    "read_scene",
    "scene_in_link",
    "simulate",
    "still_to_come",
    "with_seed",
]
