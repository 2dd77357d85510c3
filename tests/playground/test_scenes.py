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

from lace.testing.simulator.scene import LIMITS, Scene, SceneRecord, Weather
from lace.testing.simulator.simulation import simulate
from lace.testing.simulator.stage import Stage
from tries import tries

CALM = Weather()
PRESETS = presets()
PAIRS = [preset for preset in PRESETS if len(preset.scene.laces) == 2]
MORE = [preset for preset in PRESETS if len(preset.scene.laces) > 2]
RECEIVED = {"shared": (1, 2), "hidden": (2, 2), "members": (1, 3), "blocked": (0, 3), "newest": (0, 3)}
FEW = tries(15)
weathers = st.builds(Weather, st.integers(0, 999_999), st.booleans(), st.booleans(), st.booleans())


# --- exchanges ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", PAIRS, ids=lambda preset: preset.name)
def test_a_scene_to_begin_with_converges_and_moves_what_its_story_says(preset: Preset) -> None:
    stage = Stage(preset.scene)
    (played,) = stage.play(CALM).crossings
    assert all(outcome.is_converged for outcome in played.outcomes)
    assert tuple(len(outcome.result.received_hashes) for outcome in played.outcomes) == RECEIVED[preset.name]


@pytest.mark.parametrize("preset", MORE, ids=lambda preset: preset.name)
def test_a_scene_of_more_laces_passes_as_a_test_and_says_what_it_expects(preset: Preset) -> None:
    assert preset.scene.expect
    assert len(preset.scene.laces) == {"chain": 3, "hostile": 4, "split": 6}[preset.name]
    assert simulate(preset.scene).broken == []


def told(scene: Scene) -> dict[str, Any]:
    """What the page is told after one more exchange."""
    answer = json.loads(Door().answer(json.dumps({"ask": "play", "scene": scene.to_json()})))
    stage: dict[str, Any] = answer["stage"]
    return stage


def kinds(stage: dict[str, Any]) -> list[str]:
    return [moment["kind"] for one in stage["runs"][-1]["crossings"] for moment in one["moments"]]


@pytest.mark.parametrize(
    ("trouble", "kind"), [(CALM, "done"), (Weather(3, cut=True), "cut"), (Weather(2, corrupt=True), "flip")]
)
def test_the_story_of_an_exchange_has_what_the_wire_did_and_ends_once(trouble: Weather, kind: str) -> None:
    found = kinds(told(replace(PRESETS[0].scene, weather=trouble)))
    assert kind in found
    assert sum(one in ("done", "broke") for one in found) == 1
    assert found[-1] in ("done", "broke")


@FEW
@given(st.sampled_from([PRESETS[0], MORE[0]]), st.integers(0, 999_999), st.booleans(), st.booleans())
def test_the_verdict_is_converged_exactly_if_a_calm_exchange_brings_nothing(
    preset: Preset, seed: int, cut: bool, corrupt: bool
) -> None:
    scene = replace(preset.scene, weather=Weather(seed, cut, corrupt=corrupt))
    verdict = told(scene)["verdict"]
    stage = Stage(scene)
    stage.play(scene.weather)
    honest = [n for n, lace in enumerate(scene.laces) if not lace.hostile]
    before = [stage.held(number) for number in honest]
    stage.play(CALM)
    moved = [stage.held(number) for number in honest] != before
    assert verdict["title"] == ("Not finished" if moved else "Converged")
    assert (verdict["left"] > 0) is moved


def test_advice_is_followed_until_the_record_crosses() -> None:
    scene, done = PRESETS[0].scene.to_json(), []
    monday = next(one["hash"] for one in told(PRESETS[0].scene)["laces"][0]["records"] if one["name"] == "monday")
    for _ in range(4):
        asked = {"ask": "why", "scene": scene, "record": monday, "from": "Ada", "to": "Ben"}
        first = json.loads(Door().answer(json.dumps(asked)))["advice"][0]
        done.append((first["do"], first.get("lace")))
        if first["do"] == "play":
            break
        scene["laces"][first["lace"]][first["field"]] += first["text"]
    assert done == [("add", 0), ("add", 1), ("play", None)]
    last = json.loads(Door().answer(json.dumps({"ask": "play", "scene": scene})))["stage"]
    assert monday in [record["hash"] for record in last["laces"][1]["records"]]


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
