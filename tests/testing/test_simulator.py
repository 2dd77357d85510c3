"""Scenes out of files, laces over links that go wrong, and what `simulate` says of them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lace.errors import InvalidText
from lace.testing.simulator import (
    Expected,
    Scene,
    SceneLace,
    SceneRecord,
    Stage,
    Weather,
    read_scene,
    simulate,
    with_seed,
)
from lace.testing.simulator.scene import LIMITS
from lace.testing.simulator.simulation import Watcher
from lace.testing.simulator.stage import Theatre, record_of
from tries import tries

CALM = Weather()
CLUB = """SelectHave(P) :- Have(P), Field(P,'Group',_,'club').
SelectAdvertised(P,S) :- Advertised(P,S), AdvertisedField(P,S,'Group',_,'club').
"""
SOUP, BREAD = (SceneRecord("club", "recipes", name, f"How to make {name}.", "Ada", 480) for name in ("soup", "bread"))
DIARY = SceneRecord("ada", "diary", "monday", "Nobody else's business.", "Ada", 510)
DUMPLINGS = SceneRecord("club", "recipes", "dumplings", "Steam them.", "Ben", 490)
TWO = Scene((SceneLace((SOUP, BREAD, DIARY), CLUB), SceneLace((DUMPLINGS,), CLUB)))
CHAIN = Scene((*TWO.laces, SceneLace((), CLUB)), links=((0, 1), (1, 2)))
FEW = tries(15)
weathers = st.builds(
    Weather, st.integers(0, LIMITS.seed), st.booleans(), st.booleans(), st.booleans(), st.sampled_from([(), ((0, 1),)])
)


def held(stage: Stage) -> list[set[str]]:
    return [set(map(str, stage.held(number))) for number in range(len(stage.laces))]


def settled(stage: Stage) -> list[set[str]]:
    """What all have once calm runs bring nothing more."""
    while True:
        before = held(stage)
        stage.play(CALM)
        if held(stage) == before:
            return before


def changed(scene: Scene, number: int, **how: Any) -> Scene:
    laces = list(scene.laces)
    laces[number] = replace(laces[number], **how)
    return replace(scene, laces=tuple(laces))


# --- what the wire does ---------------------------------------------------------------------------------------------


@pytest.mark.long
@FEW
@given(st.sampled_from([TWO, CHAIN]), st.lists(weathers, min_size=1, max_size=3))
def test_whatever_the_wire_does_nothing_is_lost_and_calm_brings_the_same_end(
    scene: Scene, troubles: list[Weather]
) -> None:
    wanted = settled(Stage(scene))
    stage = Stage(scene)
    for weather in troubles:
        before = held(stage)
        stage.play(weather)
        assert all(now >= then for now, then in zip(held(stage), before, strict=True))
    assert settled(stage) == wanted
    assert not [problem for lace in stage.laces for problem in lace.verify()]


@FEW
@given(st.integers(0, LIMITS.seed))
def test_delay_costs_time_and_nothing_else(seed: int) -> None:
    (calm,), (slow,) = (Stage(TWO).play(weather).crossings for weather in (CALM, Weather(seed, delay=True)))
    assert slow.ns > calm.ns
    assert slow.written == calm.written
    assert [o.result.received_hashes for o in slow.outcomes] == [o.result.received_hashes for o in calm.outcomes]


@FEW
@given(st.sampled_from([TWO, CHAIN]), weathers)
def test_the_same_scene_gives_the_same_bytes(scene: Scene, weather: Weather) -> None:
    first, second = (Stage(scene).play(weather).crossings for _ in range(2))
    assert [one.passed for one in first] == [one.passed for one in second]
    assert [one.outcomes for one in first] == [one.outcomes for one in second]


def test_a_cut_and_a_flip_happen_where_the_seed_says() -> None:
    wires = []
    for seed in range(6):
        (played,) = Stage(TWO).play(Weather(seed, cut=True)).crossings
        assert played.is_cut
        source, after = played.plan.cut or (0, -1)
        assert played.written[source] == after
        assert not all(outcome.is_complete for outcome in played.outcomes)
        wires.append(played.plan.cut)
    assert len(set(wires)) > 3
    flips = [Stage(TWO).play(Weather(seed, corrupt=True)).crossings[0] for seed in range(3)]
    assert all(played.flipped_at is not None for played in flips)


def test_of_several_links_the_seed_cuts_one() -> None:
    cut = {
        tuple(one.pair for one in Stage(CHAIN).play(Weather(seed, cut=True)).crossings if one.is_cut)
        for seed in range(8)
    }
    assert cut == {((0, 1),), ((1, 2),)}


def test_a_link_that_is_down_carries_nothing_until_it_is_up() -> None:
    stage = Stage(CHAIN)
    stage.play(Weather(down=((1, 2),)))
    assert [len(one) for one in held(stage)] == [4, 3, 0]
    settled(stage)
    assert [len(one) for one in held(stage)] == [4, 3, 3]
    assert {who for _, who in stage.came[2].values()} == {1}


def test_a_stage_goes_on_where_the_scene_goes_on_and_starts_over_where_it_differs() -> None:
    theatre = Theatre()
    first = theatre.stage_for(replace(TWO, runs=(CALM,)))
    assert theatre.stage_for(replace(TWO, runs=(CALM, Weather(7)))) is first
    assert len(first.runs) == 2
    assert theatre.stage_for(replace(TWO, runs=(Weather(7),))) is not first


def test_a_record_of_a_scene_is_the_same_record_each_time() -> None:
    assert record_of(SOUP).hash == record_of(replace(SOUP)).hash
    assert record_of(SOUP).hash != record_of(replace(SOUP, signer="Ben")).hash


# --- hostile laces --------------------------------------------------------------------------------------------------


def test_a_greedy_lace_gets_what_it_is_shown_and_no_more() -> None:
    done = simulate(changed(changed(TWO, 1, hostile="greedy"), 0, expose="selected"))
    assert done.passed
    assert "//ada//diary//monday" not in done.holds["Ben"]
    assert done.holds["Ada"] == ["//ada//diary//monday", "//club//recipes//bread", "//club//recipes//soup"]


def test_records_that_were_tampered_with_are_not_stored_and_come_by_another_link() -> None:
    square = Scene((*TWO.laces, *(SceneLace((), CLUB) for _ in range(2))), links=((0, 1), (0, 2), (1, 3), (2, 3)))
    done = simulate(changed(square, 1, hostile="tampers"))
    assert done.passed, done.broken
    assert done.holds["Dora"] == ["//club//recipes//bread", "//club//recipes//soup"]  # by Cleo; Ben's own never come


def test_a_silent_lace_costs_its_neighbour_a_timeout_and_nothing_else() -> None:
    done = simulate(changed(CHAIN, 2, hostile="silent"))
    assert done.passed, done.broken
    assert len(done.holds["Ada"]) == 4
    assert "timeout" in done.runs[0].crossings[1].outcomes[0].abort


# --- as a test ------------------------------------------------------------------------------------------------------


def test_a_simulation_says_what_each_lace_has_in_the_end() -> None:
    done = simulate(CHAIN)
    assert done.passed
    assert done.calm == len(done.runs)
    assert done.holds["Cleo"] == ["//club//recipes//bread", "//club//recipes//dumplings", "//club//recipes//soup"]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(6))
def test_a_chain_of_laces_holds_under_the_weather_of_a_seed(seed: int) -> None:
    done = simulate(with_seed(CHAIN, seed))
    assert done.passed, done.broken


def test_what_a_scene_expects_and_does_not_get_is_said() -> None:
    wanted = Expected("Ben", "//club//recipes//soup"), Expected("Ben", "//ada//diary//monday", has=False)
    assert simulate(replace(TWO, expect=wanted)).passed
    turned = tuple(replace(one, has=not one.has) for one in wanted)
    assert [one.rule for one in simulate(replace(TWO, expect=turned)).broken] == ["expected", "expected"]


def test_a_record_that_goes_where_it_is_not_shown_is_said() -> None:
    shut = Stage(changed(changed(TWO, 0, expose="none"), 1, expose="none"))  # what the check goes by
    watcher = Watcher(shut)
    watcher.begin()
    Stage(TWO).play(CALM, watcher.look)
    assert {one.rule for one in watcher.broken} == {"shown"}


# --- files ----------------------------------------------------------------------------------------------------------


def test_a_scene_is_read_back_as_it_was_written() -> None:
    scene = replace(CHAIN, runs=(Weather(3, cut=True, down=((0, 1),)),), weather=Weather(9, delay=True))
    scene = replace(changed(scene, 1, hostile="tampers"), expect=(Expected("Ada", "//club//recipes//soup"),))
    assert read_scene(json.loads(json.dumps(scene.to_json()))) == scene


def broken(**changes: Any) -> dict[str, Any]:
    data = TWO.to_json()
    data["laces"][0].update(changes)
    return data


HOSTILE = [
    (None, "scene"),
    ([], "scene"),
    ({}, "laces"),
    ({"laces": [{}] * (LIMITS.laces + 1)}, "laces"),
    ({"laces": {}}, "laces"),
    ({"laces": [{}, 3]}, "lace Ben"),
    ({"laces": [{"name": "x"}, {"name": "x"}]}, "laces"),
    ({"laces": [{}, {}], "links": [[0, 2]]}, "links"),
    ({"laces": [{}, {}], "links": [[1, 1]]}, "links"),
    ({"laces": [{}, {}], "links": [[0, True]]}, "links"),
    ({"laces": [{}, {}], "expect": [{"lace": "Eve"}]}, "expect, lace"),
    ({"laces": [{}, {}], "expect": [{"has": "yes"}]}, "expect, has"),
    (broken(records=[{}] * (LIMITS.records + 1)), "records"),
    (broken(records=[{"group": 3}]), "lace Ada, record 1, group"),
    (broken(records=[{"signer": 7}]), "lace Ada, record 1, signer"),
    (broken(records=[{"minute": -1}]), "lace Ada, record 1, minute"),
    (broken(records=[{"minute": True}]), "lace Ada, record 1, minute"),
    (broken(select="#" * 20_001), "lace Ada, select"),
    (broken(expose="everything"), "lace Ada, expose"),
    (broken(hostile="very"), "lace Ada, hostile"),
    ({**TWO.to_json(), "runs": [{}] * (LIMITS.runs + 1)}, "runs"),
    ({**TWO.to_json(), "weather": {"seed": 1 << 70}}, "weather, seed"),
]


@pytest.mark.parametrize(("data", "place"), HOSTILE, ids=lambda value: value if isinstance(value, str) else "data")
def test_what_is_not_a_scene_is_refused_with_its_place(data: object, place: str) -> None:
    with pytest.raises(InvalidText) as refused:
        read_scene(data)
    assert refused.value.place == place
