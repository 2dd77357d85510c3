"""Random histories of five peers: nobody comes back, and in the end all agree.

Rule: what should hold is worked out beside the rules, from the order in which things were done.
"""

from __future__ import annotations

import pytest

from lace.records.tip import VersionState
from people.histories import PEERS, World, counting, defined_tip, tips
from people.world import Seen, v

SHORT, LONG = range(8), range(8, 1000)


def answers(world: World, name: str) -> dict[str, object]:
    seen = Seen(world.held[name].values())
    found: dict[str, object] = {
        predicate: seen.rows(predicate, arity)
        for predicate, arity in (("Admin", 1), ("Member", 1), ("Key", 2), ("Author", 2), ("Reader", 1), ("Invited", 1))
    }
    found["notes"] = {r.hash for r in world.held[name].values() if r.plex.app == "notes" and seen.counts(r)}
    read = {name: counting(versions) for name, versions in tips(world.held[name].values(), seen).items()}
    found["tips"] = {name: versions for name, versions in read.items() if versions}
    return found


def check(seed: int) -> None:
    world = World(seed)
    world.go(22)
    world.settle()
    everywhere = {name: answers(world, name) for name in PEERS}
    for name in PEERS[1:]:
        for question, answer in everywhere["anna"].items():
            assert everywhere[name][question] == answer, (seed, name, question)
    counted = everywhere["anna"]["notes"]
    assert isinstance(counted, set)
    assert not counted & {record.hash for record in world.forged}, seed
    held = {one for records in world.held.values() for one in records}
    assert {record.hash for record in world.stood if record.hash in held} <= counted, seed
    tips_of = everywhere["anna"]["tips"]
    assert isinstance(tips_of, dict)
    for versions in tips_of.values():
        assert not {one[0] for one in versions} & {record.hash for record in world.forged}, seed
        assert [one[0] for one in versions if one[1] == VersionState.STANDS][:1] == defined_tip(world, versions), seed
    acting = {row[0] for row in everywhere["anna"]["Key"]}  # type: ignore[attr-defined]
    assert not acting & {v(one) for one in world.out}, seed
    members = {row[0] for row in everywhere["anna"]["Member"]}  # type: ignore[attr-defined]
    assert not members & {v(one) for one in world.usurped}, seed
    for one_time, uses in world.invitations.items():
        begun = int(one_time.removeprefix("once")) + 1
        assert sum(v(f"guest{begun}-{number}") in members for number in range(4)) <= uses, seed


@pytest.mark.long
@pytest.mark.parametrize("seed", SHORT)
def test_nobody_comes_back_and_all_agree(seed: int) -> None:
    check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(LONG.start, LONG.stop, 8))
def test_nobody_comes_back_and_all_agree_in_a_thousand_histories(first: int) -> None:
    for seed in range(first, first + 8):
        check(seed)
