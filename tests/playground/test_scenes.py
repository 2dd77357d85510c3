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
from lace_playground.scene import MAX_RECORDS, MAX_RUNS, PEOPLE, Note, Scene, Weather, read_scene
from lace_playground.stage import Stage, Theatre, record_of
from lace_playground.telling import walk_data

from lace.errors import InvalidText
from tries import tries

CALM = Weather()
PRESETS = presets()
RECEIVED = {"shared": (1, 2), "hidden": (2, 2), "members": (1, 3), "blocked": (0, 3), "newest": (0, 3)}
FEW = tries(15)
weathers = st.builds(Weather, st.integers(0, 999_999), st.booleans(), st.booleans(), st.booleans())


def held(stage: Stage) -> list[set[str]]:
    return [{str(record) for _, record in lace.store.records_since()} for lace in stage.laces]


def settled(stage: Stage) -> list[set[str]]:
    """What both have once calm exchanges bring nothing more."""
    while True:
        before = held(stage)
        stage.play(CALM)
        if held(stage) == before:
            return before


# --- exchanges ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)
def test_a_scene_to_begin_with_converges_and_moves_what_its_story_says(preset: Preset) -> None:
    stage = Stage(preset.scene.sides)
    played = stage.play(CALM)
    assert all(outcome.is_complete and outcome.result.fixed_point for outcome in played.outcomes)
    assert tuple(len(outcome.result.received_hashes) for outcome in played.outcomes) == RECEIVED[preset.name]


@pytest.mark.long
@FEW
@given(st.sampled_from(PRESETS), st.lists(weathers, min_size=1, max_size=3))
def test_whatever_the_wire_does_nothing_is_lost_and_calm_brings_the_same_end(
    preset: Preset, troubles: list[Weather]
) -> None:
    wanted = settled(Stage(preset.scene.sides))
    stage = Stage(preset.scene.sides)
    for weather in troubles:
        before = held(stage)
        stage.play(weather)
        assert all(now >= then for now, then in zip(held(stage), before, strict=True))
        for lace in stage.laces:
            assert not list(lace.verify())
    assert settled(stage) == wanted


@pytest.mark.long
@FEW
@given(st.sampled_from(PRESETS), st.integers(0, 999_999))
def test_delay_costs_time_and_nothing_else(preset: Preset, seed: int) -> None:
    calm, slow = (Stage(preset.scene.sides).play(weather) for weather in (CALM, Weather(seed, delay=True)))
    assert slow.ns > calm.ns
    assert slow.written == calm.written
    assert [o.result.received_hashes for o in slow.outcomes] == [o.result.received_hashes for o in calm.outcomes]


@pytest.mark.long
@FEW
@given(st.sampled_from(PRESETS), weathers)
def test_the_same_scene_gives_the_same_bytes(preset: Preset, weather: Weather) -> None:
    first, second = (Stage(preset.scene.sides).play(weather) for _ in range(2))
    assert first.passed == second.passed
    assert first.outcomes == second.outcomes


def test_a_cut_and_a_flip_happen_where_the_seed_says() -> None:
    wires = []
    for seed in range(6):
        played = Stage(PRESETS[0].scene.sides).play(Weather(seed, cut=True))
        assert played.is_cut
        source, after = played.plan.cut or (0, -1)
        assert played.written[source] == after
        assert not all(outcome.is_complete for outcome in played.outcomes)
        wires.append(played.plan.cut)
    assert len(set(wires)) > 3
    flips = [Stage(PRESETS[0].scene.sides).play(Weather(seed, corrupt=True)) for seed in range(3)]
    assert all(played.flipped_at is not None for played in flips)


def test_items_of_a_conversation_cover_every_byte_of_it() -> None:
    for preset in PRESETS:
        door = Door()
        answer = json.loads(door.answer(json.dumps({"ask": "play", "scene": preset.scene.to_json()})))
        played = answer["stage"]["exchanges"][0]
        for number, person in enumerate(PEOPLE[:2]):
            items = [item for item in played["items"] if item["who"] == person]
            assert sum(item["size"] for item in items) == played["bytes"][number]


@pytest.mark.parametrize("preset", [PRESETS[0], PRESETS[1]], ids=lambda preset: preset.name)
def test_why_says_open_for_exactly_the_records_that_go_over(preset: Preset) -> None:
    stage = Stage(preset.scene.sides)
    walked = {
        (str(record), sender): walk_data(stage, record, sender)["stops"]
        for sender in (0, 1)
        for _, record in stage.laces[sender].store.records_since()
    }
    played = stage.play(CALM)
    for (record, sender), stops in walked.items():
        arrived = record in {str(one) for one in played.outcomes[1 - sender].result.received_hashes}
        assert arrived is not stops


def test_a_stage_goes_on_where_the_scene_goes_on_and_begins_anew_where_it_differs() -> None:
    theatre, scene = Theatre(), PRESETS[0].scene
    first = theatre.stage_for(replace(scene, runs=(CALM,)))
    assert theatre.stage_for(replace(scene, runs=(CALM, Weather(7)))) is first
    assert len(first.played) == 2
    assert theatre.stage_for(replace(scene, runs=(Weather(7),))) is not first


def test_a_note_is_the_same_record_each_time() -> None:
    note = Note("g", "a", "n", "text", "Ada", 3)
    assert record_of(note).hash == record_of(note).hash
    assert record_of(note).hash != record_of(replace(note, signer="Ben")).hash


# --- scenes ---------------------------------------------------------------------------------------------------------


def test_a_scene_is_read_back_as_it_was_written() -> None:
    for preset in PRESETS:
        scene = replace(preset.scene, runs=(Weather(3, cut=True),), weather=Weather(9, delay=True))
        assert read_scene(json.loads(json.dumps(scene.to_json()))) == scene


def _broken(**changes: Any) -> dict[str, Any]:
    data = PRESETS[0].scene.to_json()
    data["sides"][0].update(changes)
    return data


HOSTILE = [
    (None, "scene"),
    ([], "scene"),
    ({}, "sides"),
    ({"sides": [{}, {}, {}]}, "sides"),
    ({"sides": {}}, "sides"),
    ({"sides": [{}, 3]}, "side Ben"),
    (_broken(notes=[{}] * (MAX_RECORDS + 1)), "notes"),
    (_broken(notes=[{"group": 3}]), "side Ada, record 1, group"),
    (_broken(notes=[{"signer": "Mallory"}]), "side Ada, record 1, signer"),
    (_broken(notes=[{"minute": -1}]), "side Ada, record 1, minute"),
    (_broken(notes=[{"minute": True}]), "side Ada, record 1, minute"),
    (_broken(select="#" * 20_001), "side Ada, select"),
    (_broken(expose="everything"), "side Ada, expose"),
    ({**PRESETS[0].scene.to_json(), "runs": [{}] * (MAX_RUNS + 1)}, "runs"),
    ({**PRESETS[0].scene.to_json(), "weather": {"seed": 1 << 70}}, "weather, seed"),
]


@pytest.mark.parametrize(("data", "place"), HOSTILE, ids=lambda value: value if isinstance(value, str) else "data")
def test_what_is_no_scene_is_refused_with_its_place(data: object, place: str) -> None:
    with pytest.raises(InvalidText) as refused:
        read_scene(data)
    assert refused.value.place == place
    answer = json.loads(Door().answer(json.dumps({"ask": "check", "scene": data})))
    assert answer["error"]["place"] == place


# --- the door -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("question", ["", "[]", "3", '{"ask": "rm"}', '{"ask": ["play"]}', "{" * 9, "x" * (1 << 21)])
def test_no_question_raises(question: str) -> None:
    assert "error" in json.loads(Door().answer(question))


KEYS = st.sampled_from(["sides", "runs", "weather", "notes", "select", "expose", "seed"])
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
    notes = [Note("g", "a", str(n), "t").to_json() for n in range(40)]
    scene = _broken(select=wide + "SelectAdvertised(P,S) :- Advertised(P,S).", notes=notes)
    answer = json.loads(Door().answer(json.dumps({"ask": "check", "scene": scene})))
    assert "error" in answer or "stage" in answer


def test_twelve_exchanges_are_the_most() -> None:
    scene = Scene(PRESETS[0].scene.sides, (CALM,) * MAX_RUNS).to_json()
    assert "start over" in json.loads(Door().answer(json.dumps({"ask": "play", "scene": scene})))["error"]["message"]


def test_why_asks_for_a_record_that_one_of_them_has() -> None:
    scene = PRESETS[0].scene.to_json()
    door = Door()
    for record, sender in (("nonsense", "Ada"), ("B." + "0" * 43 + ".H3", "Ada"), ("", "Eve")):
        answer = json.loads(door.answer(json.dumps({"ask": "why", "scene": scene, "record": record, "from": sender})))
        assert "error" in answer
