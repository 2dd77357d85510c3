"""Live errors of the rule texts, and what they come to on the records at hand.

Rule: the same checks as `lace check`, each with its line and column; a text with an error is never played.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lace.datalog.language.annotations import read_annotated_all
from lace.datalog.language.validate import Profile
from lace.errors import InvalidInput
from lace.policy.exposure import EXPOSURE_PROFILE, Exposure, expose_selected
from lace.policy.lint import doubts
from lace.policy.operand import SELECTOR_PROFILE, Module
from lace.policy.origin import Viewer
from lace.porcelain.visibility import visible_records
from lace_playground.scene import PEOPLE, Scene, Side
from lace_playground.stage import TAB_LIMITS, Stage, key_of
from lace_playground.telling import Data, error_data


def findings(text: str, author: Callable[..., object], profile: Profile) -> list[Data]:
    """Every error of a rule text; if there is none, every doubt."""
    try:
        author(text, limits=TAB_LIMITS)
    except InvalidInput as error:
        found: Sequence[InvalidInput] = getattr(error, "findings", ()) or (error,)
        return sorted(map(error_data, found), key=lambda one: (one["line"], one["column"]))
    program = read_annotated_all(text, limits=TAB_LIMITS)[0].program
    return [{**error_data(doubt), "doubt": True} for doubt in doubts(program, profile)]


def side_findings(side: Side) -> Data:
    """Errors of both texts of a side."""
    shown = findings(side.expose_rules, Exposure.author, EXPOSURE_PROFILE) if side.expose == "rules" else []
    return {"select": findings(side.select, Module.author, SELECTOR_PROFILE), "expose_rules": shown}


def has_errors(found: Data) -> bool:
    """Whether a side cannot be played."""
    return any(not one["doubt"] for errors in found.values() for one in errors)


def counts(stage: Stage, number: int) -> Data:
    """How many records a side has, selects, and shows to the other."""
    snapshot = stage.laces[number].store.snapshot()
    viewer = Viewer(str(key_of(PEOPLE[1 - number]).verifier))
    selected = visible_records(
        snapshot, viewer, [expose_selected(stage.modules[number])], at=stage.now, limits=TAB_LIMITS
    )
    shown = visible_records(snapshot, viewer, stage.exposures[number], at=stage.now, limits=TAB_LIMITS)
    return {"records": snapshot.record_count, "selected": sorted(selected), "shown": sorted(shown)}


def check_scene(scene: Scene) -> list[Data]:
    """The findings of both sides."""
    return [side_findings(side) for side in scene.sides]
