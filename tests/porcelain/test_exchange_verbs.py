"""Exchanging between two laces in a developer's words: interlace, follow, fetch, publish."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import lace
from lace.interlace.events import EpochBegan, Event, FixedPoint, Received
from lace.porcelain.exchange import exposures, follow, interlace, selector
from lace.porcelain.lace import Lace
from lace.porcelain.network import connect, serve

mark = pytest.mark


@pytest.fixture
def pair(tmp_path: Path):  # type: ignore[no-untyped-def]
    with lace.open(tmp_path / "a.lace", create=True) as first, lace.open(tmp_path / "b.lace", create=True) as second:
        yield first, second


def put(into: Lace, name: str, group: str = "u") -> str:
    return into.put(name.encode(), group=group, app="ding", name=name)


def have(one: Lace) -> set[str]:
    return {record for _, record in one.store.records_since()}


@mark.clause("050-MODEL-03", "050-OPS-01")
def test_two_laces_exchange_what_both_select(pair: tuple[Lace, Lace]) -> None:
    first, second = pair
    wanted, other = put(first, "links/1"), put(first, "other", group="v")
    done = interlace(first, second, select="//u//ding//links/", expose="all")
    assert have(second) == {wanted}
    assert done.moved == 1
    assert done.second.received_hashes == (wanted,)
    assert done.notices == ((), ())
    assert lace.exchange(first, second, expose="all").moved == 1
    assert have(second) == {wanted, other}


@mark.clause("050-SEND-11")
def test_without_exposure_nothing_is_sent_and_the_result_says_why(pair: tuple[Lace, Lace]) -> None:
    first, second = pair
    put(first, "links/1")
    done = interlace(first, second)
    assert done.moved == 0
    assert done.notices[0][0].code == "peer-selects-nothing"
    assert "expose=" in done.notices[0][0].remedy


@mark.clause("050-OPS-01", "050-OPS-03", "110-RUN-02")
def test_fetch_gets_what_a_name_means_and_publish_stores_what_is_given(pair: tuple[Lace, Lace]) -> None:
    mine, theirs = pair
    note = put(theirs, "notes/1")
    put(theirs, "private/1", group="v")
    lace.fetch(mine, theirs, "//u//ding//notes/")
    assert have(mine) == {note}
    assert mine.get("//u//ding//notes/1") == b"notes/1"
    own = put(mine, "notes/2")
    put(mine, "notes/3")
    lace.publish(mine, theirs, [own])
    assert own in have(theirs)
    assert len(have(theirs)) == 3


@mark.clause("050-OPEN-01", "050-OPEN-02", "050-OPEN-03", "050-OPEN-05", "050-OPS-04", "110-RUN-01")
def test_follow_tells_of_records_as_they_travel(pair: tuple[Lace, Lace]) -> None:
    first, second = pair
    put(first, "links/1")
    heard: list[tuple[int, Event]] = []

    async def run() -> None:
        async with follow(first, second, expose="all") as events:
            fixed = 0
            async for side, event in events:
                heard.append((side, event))
                fixed += isinstance(event, FixedPoint) and side == 0
                if fixed == 1 and len(have(second)) == 1 and len(have(first)) == 1:
                    put(first, "links/2")
                elif len(have(second)) == 2 and not any(isinstance(e, EpochBegan) and e.epoch == 2 for _, e in heard):
                    events.change_rules(0, lace.Policy(select="//u//ding//", expose="all").rules)
                elif sum(isinstance(e, EpochBegan) and e.epoch == 2 for _, e in heard) == 2:
                    return

    asyncio.run(asyncio.wait_for(run(), 30))
    assert have(first) == have(second)
    received = [record for side, event in heard if isinstance(event, Received) and side == 1 for record in event.hashes]
    assert len(received) == 2


def test_selectors_and_exposures_by_words() -> None:
    everything = selector(None)
    assert selector("all") == everything == selector([])
    record = "B." + "0" * 43 + ".H3"
    assert selector(record) == selector(f"////{record}")
    assert selector(["//u//", record]).id not in (selector("//u//").id, selector(record).id)
    assert exposures("none", everything) == ()
    assert len(exposures(["all", "selected"], everything)) == 2
    assert exposures("AllowQueryRecord(V,P) :- Have(P).", everything)[0].text


FLAT = "MaySend(P) :- Have(P).\nMayRequest(P) :- Advertised(P,S)."
UNSCOPED = "AllowQueryRecord(V,P) :- Have(P), o0_SelectHave(P)."


@mark.clause("040-EXEC-05")
def test_every_verb_takes_operands_and_exposure_and_refuses_flat_rules(pair: tuple[Lace, Lace]) -> None:
    first, second = pair
    put(first, "links/1")
    doors = [
        lambda **rules: interlace(first, second, **rules),
        lambda **rules: follow(first, second, **rules),
        lambda **rules: connect(first, "tcp:127.0.0.1:9", **rules),
        lambda **rules: serve(first, "tcp:127.0.0.1:9", **rules).__enter__(),
    ]
    for door in doors:
        for rules in ({"select": FLAT}, {"expose": FLAT}, {"expose": UNSCOPED}, {"select": UNSCOPED}):
            with pytest.raises(lace.InvalidExchangePlan):
                door(**rules)
    assert have(second) == set()
