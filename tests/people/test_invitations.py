"""Ten thousand ways to come in by invitations: replayed, expired, too early, guessed, raced and withdrawn ones."""

from __future__ import annotations

from random import Random

import pytest

from lace.records.model import Seal
from people.world import Seen, invite, key, member, v, withdrawn

ATTEMPTS = 10_000
INVITATIONS = 50
PEOPLE = 300


@pytest.mark.long
def test_ten_thousand_attempts_let_in_nobody_too_many() -> None:
    random = Random(5)
    people = [f"guest{number}" for number in range(PEOPLE)]
    records: list[Seal] = []
    opened: dict[str, tuple[int, int, int]] = {}
    for number in range(INVITATIONS):
        begun, uses = random.randrange(100), random.randrange(1, 6)
        opened[f"once{number}"] = (begun, begun + 100, uses)
        records.append(invite(f"once{number}", "anna", begun, until=begun + 100, uses=uses))
    tried: list[Seal] = []
    for _ in range(ATTEMPTS):
        if tried and random.random() < 0.2:
            tried.append(random.choice(tried))  # replayed as it was
            continue
        one_time = f"once{random.randrange(INVITATIONS)}"
        signer = one_time if random.random() < 0.8 else random.choice((f"guess{random.randrange(9)}", "guest1"))
        tried.append(member(random.choice(people), signer, random.randrange(250), invited=v(one_time)))
    wanted: dict[str, set[str]] = {}
    for one_time, (begun, until, uses) in opened.items():
        mine = {one for one in tried if one.signed_by == v(one_time)}
        mine = {one for one in mine if begun <= _second(one) < until}
        first: dict[str, Seal] = {}
        for one in sorted(mine, key=lambda one: (one.plex.tai, one.hash)):
            first.setdefault(one.plex.name, one)
        counted = sorted(first.values(), key=lambda one: (one.plex.tai, one.hash))[:uses]
        if random.random() < 0.3:  # withdrawn: who came in before stays, and nobody else comes
            counted = counted[:1]
            records.append(withdrawn(one_time, "anna", 240, *counted))
        wanted[one_time] = {one.hash for one in counted}
    seen = Seen([*records, *dict.fromkeys(tried)])
    found = {row[0] for row in seen.rows("Invited", 1)}
    assert found == set().union(*wanted.values())
    assert all(
        len(found & {one.hash for one in tried if one.signed_by == v(once)}) <= opened[once][2] for once in opened
    )
    let_in = {one.plex.name for one in tried if one.hash in found}
    assert {row[0] for row in seen.rows("Member", 1)} == {*let_in, key("anna").verifier}
    assert len(found) > 50


def _second(record: Seal) -> int:
    return int(record.plex.tai[:10]) - 2_000_000_000
