"""The one door of the playground: a question as JSON, an answer as JSON.

Rule: no question raises. What is wrong with it is an answer too, with the rule, the place and what was found.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from lace.errors import InvalidInput, InvalidText, LaceError
from lace.notation.identifiers import RecordHash
from lace.testing.simulator.scene import LIMITS, Scene, read_scene
from lace.testing.simulator.simulation import simulate
from lace.testing.simulator.stage import Theatre
from lace_playground.checking import check_scene, counts, has_errors
from lace_playground.presets import presets
from lace_playground.rulebook import run_rules, why_fact
from lace_playground.telling import Data, people, simulated_data, stage_data, walk_data

MAX_QUESTION = 1 << 20


class Door:
    """Answers questions; remembers nothing that a question could not bring along."""

    def __init__(self) -> None:
        self._theatre = Theatre()
        self._questions: Mapping[str, Callable[[Mapping[str, Any]], Data]] = {
            "begin": self._begin,
            "check": self._check,
            "play": self._play,
            "why": self._why,
            "simulate": self._simulate,
            "run": lambda asked: run_rules(asked.get("rules"), asked.get("facts")),
            "why_fact": lambda asked: why_fact(asked.get("rules"), asked.get("goal"), asked.get("facts")),
        }

    def answer(self, question: str) -> str:
        """The answer to a question."""
        try:
            if len(question) > MAX_QUESTION:
                raise InvalidText("the question is too long", rule="question", found=f"{len(question)} characters")
            asked = json.loads(question)
            kind = asked.get("ask") if isinstance(asked, dict) else None
            if not isinstance(kind, str) or kind not in self._questions:
                raise InvalidText(f"ask one of {', '.join(self._questions)}", rule="question", found=repr(kind)[:80])
            return json.dumps(self._questions[kind](asked))
        except InvalidInput as error:
            return json.dumps({"error": {"message": str(error), "rule": error.rule, "place": error.place}})
        except (LaceError, ValueError) as error:
            return json.dumps({"error": {"message": str(error), "rule": "", "place": ""}})

    def _begin(self, _: Mapping[str, Any]) -> Data:
        """What the page needs before anything was asked: people and scenes."""
        listed = [
            {"name": one.name, "title": one.title, "story": one.story, "scene": one.scene.to_json(),
             "guide": [{"words": step.words, "when": step.when} for step in one.guide]}
            for one in presets()
        ]  # fmt: skip
        return {"people": people(), "presets": listed, "most_runs": LIMITS.runs, "most_laces": LIMITS.laces}

    def _check(self, asked: Mapping[str, Any]) -> Data:
        """Findings about the rules, and if they can be played: laces and exchanges as they stand."""
        scene = read_scene(asked.get("scene"))
        found = check_scene(scene)
        answer: Data = {"findings": found, "scene": scene.to_json()}
        if any(map(has_errors, found)):
            return answer
        stage = self._theatre.stage_for(scene)
        return {
            **answer,
            "stage": stage_data(stage),
            "counts": [counts(stage, number) for number in range(len(scene.laces))],
        }

    def _play(self, asked: Mapping[str, Any]) -> Data:
        """One more exchange, under the weather of the scene."""
        scene = read_scene(asked.get("scene"))
        if len(scene.runs) >= LIMITS.runs:
            raise InvalidText(f"a scene has {LIMITS.runs} exchanges at most: start over", rule="scene", place="runs")
        return self._check({"scene": replace(scene, runs=(*scene.runs, scene.weather)).to_json()})

    def _simulate(self, asked: Mapping[str, Any]) -> Data:
        """The scene run as a test, as `lace simulate` runs it."""
        return simulated_data(simulate(_playable(asked)))

    def _why(self, asked: Mapping[str, Any]) -> Data:
        """The way of a record from one side to the other."""
        scene = _playable(asked)
        names = [lace.name for lace in scene.laces]
        sender, receiver = asked.get("from"), asked.get("to")
        if sender not in names or receiver not in names or sender == receiver:
            found = repr((sender, receiver))[:80]
            raise InvalidText(f"from and to are two of {', '.join(names)}", rule="question", found=found)
        stage = self._theatre.stage_for(scene)
        record = RecordHash.parse(str(asked.get("record", "")))
        if not any(lace.store.have(record) for lace in stage.laces):
            raise InvalidText("no lace has that record", rule="question", found=str(record))
        return walk_data(stage, record, names.index(sender), names.index(receiver))


def _playable(asked: Mapping[str, Any]) -> Scene:
    """A scene whose rules have no errors."""
    scene = read_scene(asked.get("scene"))
    for lace, found in zip(scene.laces, check_scene(scene), strict=True):
        if has_errors(found):
            raise InvalidText(f"mend the rules of {lace.name} first", rule="scene", place=f"lace {lace.name}")
    return scene
