"""Live errors of the rule texts, and what they come to on the records at hand.

Rule: the same checks as `lace check`, each with its line and column; a text with an error is never played.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lace.datalog.language.annotations import read_annotated_all
from lace.datalog.language.validate import Profile
from lace.errors import InvalidInput
from lace.policy.exposure import EXPOSURE_PROFILE, Exposure
from lace.policy.lint import doubts
from lace.policy.operand import SELECTOR_PROFILE, Module
from lace.testing.simulator.scene import Scene, SceneLace
from lace.testing.simulator.simulation import selected_by, shown_by
from lace.testing.simulator.stage import SCENE_LIMITS, Stage
from lace_playground.telling import Data, error_data

PARTS = "parts"  # what rules leave behind of large content: a scene has none


def findings(text: str, author: Callable[..., object], profile: Profile) -> list[Data]:
    """Every error of a rule text; if there is none, every doubt."""
    try:
        author(text, limits=SCENE_LIMITS)
    except InvalidInput as error:
        found: Sequence[InvalidInput] = getattr(error, "findings", ()) or (error,)
        return sorted(map(error_data, found), key=lambda one: (one["line"], one["column"]))
    program = read_annotated_all(text, limits=SCENE_LIMITS)[0].program
    found = [doubt for doubt in doubts(program, profile) if doubt.rule != PARTS]
    return [{**error_data(doubt), "doubt": True} for doubt in found]


def side_findings(side: SceneLace) -> Data:
    """Errors of both texts of a side."""
    shown = findings(side.expose_rules, Exposure.author, EXPOSURE_PROFILE) if side.expose == "rules" else []
    return {"select": findings(side.select, Module.author, SELECTOR_PROFILE), "expose_rules": shown}


def has_errors(found: Data) -> bool:
    """Whether a side cannot be played."""
    return any(not one["doubt"] for errors in found.values() for one in errors)


def counts(stage: Stage, number: int) -> Data:
    """How many records a lace has, selects, and shows to its neighbours (to any of them)."""
    others = [sum(pair) - number for pair in stage.links if number in pair]
    selected, shown = (
        sorted(frozenset[str]().union(*(ask(stage, number, other) for other in others)))
        for ask in (selected_by, shown_by)
    )
    return {"records": stage.laces[number].store.snapshot().record_count, "selected": selected, "shown": shown}


def check_scene(scene: Scene) -> list[Data]:
    """The findings of both sides."""
    return [side_findings(side) for side in scene.laces]
