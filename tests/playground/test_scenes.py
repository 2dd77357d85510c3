"""The playground's own part: scenes out of links, exchanges over a wire that goes wrong, answers at its door."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lace_playground.door import Door
from lace_playground.presets import Preset, presets
from lace_playground.telling import walk_data

from lace.testing.simulator.scene import LIMITS, SceneRecord, Weather
from lace.testing.simulator.stage import Stage
from tries import tries

CALM = Weather()
PRESETS = presets()
RECEIVED = {"shared": (1, 2), "hidden": (2, 2), "members": (1, 3), "blocked": (0, 3), "newest": (0, 3)}
FEW = tries(15)
weathers = st.builds(Weather, st.integers(0, 999_999), st.booleans(), st.booleans(), st.booleans())


# --- exchanges ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)
def test_a_scene_to_begin_with_converges_and_moves_what_its_story_says(preset: Preset) -> None:
    stage = Stage(preset.scene)
    (played,) = stage.play(CALM).crossings
    assert all(outcome.is_converged for outcome in played.outcomes)
    assert tuple(len(outcome.result.received_hashes) for outcome in played.outcomes) == RECEIVED[preset.name]


def test_items_of_a_conversation_cover_every_byte_of_it() -> None:
    for preset in PRESETS:
        door = Door()
        answer = json.loads(door.answer(json.dumps({"ask": "play", "scene": preset.scene.to_json()})))
        played = answer["stage"]["runs"][0]["crossings"][0]
        for number, person in enumerate(played["names"]):
            items = [item for item in played["items"] if item["who"] == person]
            assert sum(item["size"] for item in items) == played["bytes"][number]


@pytest.mark.parametrize("preset", [PRESETS[0], PRESETS[1]], ids=lambda preset: preset.name)
def test_why_says_open_for_exactly_the_records_that_go_over(preset: Preset) -> None:
    stage = Stage(preset.scene)
    walked = {
        (str(record), sender): walk_data(stage, record, sender, 1 - sender)["stops"]
        for sender in (0, 1)
        for _, record in stage.laces[sender].store.records_since()
    }
    (played,) = stage.play(CALM).crossings
    for (record, sender), stops in walked.items():
        arrived = record in {str(one) for one in played.outcomes[1 - sender].result.received_hashes}
        assert arrived is not stops


def _broken(**changes: Any) -> dict[str, Any]:
    data = PRESETS[0].scene.to_json()
    data["laces"][0].update(changes)
    return data


# --- the door -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("question", ["", "[]", "3", '{"ask": "rm"}', '{"ask": ["play"]}', "{" * 9, "x" * (1 << 21)])
def test_no_question_raises(question: str) -> None:
    assert "error" in json.loads(Door().answer(question))


KEYS = st.sampled_from(["laces", "links", "runs", "weather", "records", "select", "expose", "seed"])
SCRAPS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
)


@FEW
@given(SCRAPS)
def test_no_scene_raises(scene: object) -> None:
    for kind in ("check", "play", "why"):
        assert "error" in json.loads(Door().answer(json.dumps({"ask": kind, "scene": scene})))


def test_rules_with_errors_are_told_by_place_and_not_played() -> None:
    broken = _broken(
        select="SelectHave(P) :- Have(P)\nSelectAdvertised(P,S) :- Advertised(P,S), Feild(P,'Group',_,'x')."
    )
    answer = json.loads(Door().answer(json.dumps({"ask": "check", "scene": broken})))
    found = answer["findings"][0]["select"][0]
    assert (found["line"], found["doubt"]) == (1, False)
    assert "stage" not in answer
    doubtful = _broken(
        select="SelectHave(P) :- Have(P), Feild(P,'Group',_,'x').\nSelectAdvertised(P,S) :- Advertised(P,S)."
    )
    answer = json.loads(Door().answer(json.dumps({"ask": "check", "scene": doubtful})))
    (found,) = answer["findings"][0]["select"]
    assert (found["line"], found["column"], found["doubt"]) == (1, 27, True)
    assert answer["counts"][0]["selected"] == []


def test_what_40_asks_of_an_operand_is_told_too() -> None:
    answer = json.loads(
        Door().answer(json.dumps({"ask": "check", "scene": _broken(select="SelectHave(P) :- Have(P).")}))
    )
    assert [one["doubt"] for one in answer["findings"][0]["select"]] == [False]
    shown = _broken(expose="rules", expose_rules="AllowQueryRecord(V,P) :- MaySend(P).")
    answer = json.loads(Door().answer(json.dumps({"ask": "check", "scene": shown})))
    assert answer["findings"][0]["expose_rules"]


def test_rules_that_ask_too_much_of_a_tab_are_an_answer() -> None:
    wide = "SelectHave(P) :- Have(P), Have(A), Have(B), Have(C), Field(A,_,_,X), Field(B,_,_,Y), Field(C,_,_,Z).\n"
    records = [SceneRecord("g", "a", str(n), "t").to_json() for n in range(40)]
    scene = _broken(select=wide + "SelectAdvertised(P,S) :- Advertised(P,S).", records=records)
    answer = json.loads(Door().answer(json.dumps({"ask": "check", "scene": scene})))
    assert "error" in answer or "stage" in answer


def test_twelve_exchanges_are_the_most() -> None:
    scene = replace(PRESETS[0].scene, runs=(CALM,) * LIMITS.runs).to_json()
    assert "start over" in json.loads(Door().answer(json.dumps({"ask": "play", "scene": scene})))["error"]["message"]


def test_why_asks_for_a_record_that_one_of_them_has() -> None:
    scene = PRESETS[0].scene.to_json()
    door = Door()
    for record, sender in (("nonsense", "Ada"), ("B." + "0" * 43 + ".H3", "Ada"), ("", "Eve")):
        answer = json.loads(
            door.answer(json.dumps({"ask": "why", "scene": scene, "record": record, "from": sender, "to": "Ben"}))
        )
        assert "error" in answer
