"""What both listings show to be lacking crosses without request lists (070, taking)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

from differences.test_exchange import CHAIN, MODULES, Liar, Make, RealSide, control, fill
from interlace.pair import ALL, EXPOSE_ALL, Pair, Side, blob, changed, config_of, group_module, hash_of, plex
from lace.facts.predicates import MAY_REQUEST
from lace.interlace import inputs as given
from lace.interlace.effects import Effect, EndBlock, SendRecords
from lace.interlace.events import Deferred, NotAvailable, Rejected, Requested, Unwanted
from lace.interlace.phases import Phase
from lace.interlace.setup import agreement
from lace.interlace.vocabulary import NOT_AVAILABLE
from lace.limits import SECOND_NS, ExchangeLimits
from lace.notation.fact import Fact
from lace.policy.operand import Module
from lace.records.validate import validate
from lace.runtime.local.local import exchange
from lace.runtime.local.party import Party, local_terms
from lace.store.memory import MemoryStore
from runtime.memory_link import End, MemoryLink
from tries import tries

COLD = 6  # blocks of a side: setup, hello, adv, the two ends of resp, adv
ASKED = 7  # and the same with a request list


def pair(
    module: Module = ALL,
    *,
    takes: Sequence[int] = (256, 256),
    salts: Sequence[int | None] = (11, 12),
    make: Make | Sequence[Make] = RealSide,
    **options: object,
) -> Pair:
    makes = make if isinstance(make, Sequence) else (make, make)
    sides = [
        makes[index](config_of(index, module, salt=salts[index], takes=takes[index], **options)) for index in (0, 1)
    ]
    return Pair(*sides)


def blocks(side: Side) -> int:
    return sum(isinstance(effect, EndBlock) for effect in side.wire)


def has_asked(both: Pair) -> list[bool]:
    return [bool({"MayRequest", "DifferenceAll"} & set(control(side))) for side in both.sides]


def lists_are_out(both: Pair) -> bool:
    """Both sides have read each other's hello, and written their first listing."""
    return all("Advertised" in control(side) for side in both.sides)


@pytest.fixture
def rash(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sides announce it whatever their rules want of what is listed."""
    monkeypatch.setattr(agreement, "selects_alike", lambda _: True)


# --- the loop without requests ---------------------------------------------------------------------------------------


@pytest.mark.clause("070-TAKE-01", "070-TAKE-03", "070-TAKE-04")
@pytest.mark.parametrize("make", [Side, RealSide])
@pytest.mark.parametrize(("common", "first", "second"), [(0, 5, 5), (0, 5, 0), (0, 0, 1), (9, 3, 4), (20, 1, 0)])
def test_a_first_contact_names_no_record_twice(make: Make, common: int, first: int, second: int) -> None:
    both = pair(make=make)
    fill(both, common, first, second)
    results = both.exchange()
    near, far = both.sides
    assert near.have == far.have
    assert len(near.have) == common + first + second
    assert [blocks(side) for side in both.sides] == [COLD, COLD]
    assert has_asked(both) == [False, False]
    assert [len(result.received_hashes) for result in results] == [second, first]
    assert [len(result.unconfirmed_hashes) for result in results] == [first, second]
    assert [claim.hash for claim in near.held] == [claim.hash for claim in far.held] == sorted(near.have)
    for side, mine, theirs in ((near, second, first), (far, first, second)):
        assert next(event for event in side.events if isinstance(event, Requested)) == Requested(mine, theirs)
        assert not [event for event in side.events if isinstance(event, Unwanted | Deferred | Rejected)]


@pytest.mark.clause("070-TAKE-02", "070-TAKE-03")
@pytest.mark.parametrize("module", [group_module("u"), group_module("w")], ids=["some", "none"])
def test_rules_that_say_the_same_of_claims_take_what_they_select(module: Module) -> None:
    both = pair(module)
    for index, side in enumerate(both.sides):
        side.put(*[plex(f"{index}/{n}", group="uv"[n % 2]) for n in range(6)])
    both.exchange()
    assert has_asked(both) == [False, False]
    assert not [event for side in both.sides for event in side.events if isinstance(event, Unwanted)]
    assert [len(side.have) for side in both.sides] == [9 if module == group_module("u") else 6] * 2


@pytest.mark.clause("070-TAKE-03")
@pytest.mark.parametrize(
    ("takes", "first", "second", "asks"),
    [
        ((4, 4), 4, 4, False),
        ((4, 4), 5, 0, True),
        ((4, 4), 0, 5, True),
        ((5, 4), 5, 5, True),
        ((4, 5), 5, 1, True),
        ((1, 1), 1, 1, False),
        ((1, 1 << 40), 1, 1, False),
    ],
)
def test_either_side_that_lacks_too_many_makes_both_ask(
    takes: Sequence[int], first: int, second: int, asks: bool
) -> None:
    both = pair(takes=takes)
    fill(both, 3, first, second)
    both.exchange()
    assert both.sides[0].have == both.sides[1].have
    assert [blocks(side) for side in both.sides] == [ASKED if asks else COLD] * 2
    assert has_asked(both) == [asks and bool(second), asks and bool(first)]


@pytest.mark.clause("070-TAKE-01", "070-CAP-01", "070-CAP-03")
@pytest.mark.parametrize(
    ("takes", "salts"),
    [((256, 0), (11, 12)), ((0, 256), (11, 12)), ((256, 256), (11, None)), ((256, 256), (None, 12))],
)
def test_one_side_alone_changes_no_line(takes: Sequence[int], salts: Sequence[int | None]) -> None:
    one, off = pair(takes=takes, salts=salts), pair(takes=(0, 0), salts=salts)
    for both in (one, off):
        fill(both, 5, 4, 3)
        both.exchange()
    for mine, other in zip(one.sides, off.sides, strict=True):
        assert mine.have == other.have
        said = [fact for fact in mine.facts_sent() if fact.values[:1] != ("x_differences_take",)]
        assert [str(fact) for fact in said if not fact.predicate.name.startswith("DifferenceSummary")] == [
            str(fact) for fact in other.facts_sent() if not fact.predicate.name.startswith("DifferenceSummary")
        ]  # sums are keyed by hello
        assert blocks(mine) == blocks(other)


@pytest.mark.clause("070-TAKE-01", "070-TAKE-02")
def test_a_hello_says_how_many_under_these_rules() -> None:
    asks_less = Module.author(
        "SelectHave(P) :- Have(P).\nSelectAdvertised(P,S) :- Advertised(P,S), AdvertisedField(P,S,'Group',_,'u')."
    )
    for modules, most, said in (
        ((ALL, ALL), 3, ["7", "3"]),
        ((ALL, ALL), 0, ["7"]),  # who asks for nothing takes nothing
        ((ALL, asks_less), 3, []),
        ((asks_less, ALL), 3, []),
    ):
        sides = [
            RealSide(
                config_of(index, modules[index], salt=index + 5, takes=(7, 99)[index], max_requests=(99, most)[index])
            )
            for index in (0, 1)
        ]
        both = Pair(*sides)
        both.exchange()
        told = [values for side in both.sides for values in side.named("HelloLimit")]
        assert [value for name, value in told if name == "x_differences_take"] == said


@pytest.mark.clause("070-TAKE-03", "070-FIX-01")
def test_where_a_listing_may_follow_from_a_listing_requests_follow(rash: None) -> None:
    both = pair(CHAIN)
    fill(both, 5, 2, 2)
    both.exchange()
    assert both.sides[0].have == both.sides[1].have
    assert has_asked(both) == [True, True]


@pytest.mark.clause("070-TAKE-03")
def test_where_a_side_summarised_requests_follow() -> None:
    both = pair(partition_threshold_bytes=300)
    fill(both, 5, 9, 0)
    both.exchange()
    assert both.sides[0].have == both.sides[1].have
    assert "AdvertisementPartition" in control(both.sides[0])
    assert has_asked(both) == [False, True]


@pytest.mark.clause("070-TAKE-03", "070-ADV-02")
@pytest.mark.parametrize("summing", [0, 1])
def test_a_summary_that_was_caught_up_by_a_listing_is_one(summing: int) -> None:
    """One side compares from five records on, the other lists its nine at once."""
    sides = [
        RealSide(config_of(index, salt=index + 5, takes=256, min_compared=5 if index == summing else 99))
        for index in (0, 1)
    ]
    both = Pair(*sides)
    fill(both, 7, 2, 1)
    both.exchange()
    assert both.sides[0].have == both.sides[1].have
    assert len(both.sides[0].have) == 10
    assert control(both.sides[summing])[: control(both.sides[summing]).index("Advertised")].count("DifferenceRoot") == 1
    assert has_asked(both) == [False, False]


@pytest.mark.clause("070-TAKE-03")
def test_later_loops_ask_and_a_new_epoch_does_not() -> None:
    both = pair(is_open=True)
    fill(both, 2, 3, 0)
    both.start()
    both.run()
    near, far = both.sides
    assert near.have == far.have
    assert has_asked(both) == [False, False]
    near.put(plex("late"))
    both.give(near, given.LocalChanged())
    both.run()
    assert has_asked(both) == [False, True]
    before = [control(side).count("MayRequest") for side in both.sides]
    other = group_module("w")
    near.put(plex("of another group", group="w"))
    far.put(plex("of another group too", group="w"))
    for side in both.sides:
        both.give(side, changed(other))
    both.run()
    assert near.machine.epoch.number > 1
    assert len(near.have) == len(far.have) == 2 + 3 + 1 + 2
    assert [control(side).count("MayRequest") for side in both.sides] == before


@pytest.mark.clause("070-TAKE-03", "070-DROP-02")
def test_listings_of_a_later_loop_are_asked_for() -> None:
    """A comparison that does not come out is dropped, and both list again: what is not wanted would cross each time."""
    both = pair(make=(Liar, RealSide), is_open=True)
    fill(both, 40, 2, 0)
    both.start()
    both.run()
    near, far = both.sides
    assert near.have == far.have
    before = control(far).count("Advertised")
    assert isinstance(near, Liar)
    near.lie = lambda fact: (  # type: ignore[method-assign]
        Fact(fact.predicate, (fact.values[0], "0" * 22, fact.values[2]))
        if fact.predicate.name == "DifferenceSummary"
        else fact
    )
    far.put(plex("late"))
    both.give(far, given.LocalChanged())
    both.run()
    assert near.have == far.have
    assert control(far).count("Advertised") > before + 40
    # The first request crossed a doubt and was forgotten; the second answers the listing.
    assert near.named("MayRequest") == [(hash_of(plex("late")),)] * 2


@pytest.mark.clause("070-TAKE-04", "050-TICK-04")
def test_ticks_ride_with_what_was_not_available() -> None:
    both = pair(is_open=True, tick_interval_ns=SECOND_NS)
    fill(both, 0, 2, 2)
    both.start()
    both.run(until=lambda: lists_are_out(both))
    both.now_ns += 3 * SECOND_NS
    both.run()
    near, far = both.sides
    assert near.have == far.have
    assert has_asked(both) == [False, False]
    for side in both.sides:
        assert "TickReady" in control(side)
        assert side.machine.epoch.ticks.tick > side.machine.epoch.ticks.start


# --- vectors ---------------------------------------------------------------------------------------------------------

VECTORS = json.loads((Path(__file__).parent.parent / "vectors" / "differences.json").read_text(encoding="utf-8"))[
    "take"
]
CONTENTS = (b"both", b"own 0", b"own 1", b"more 0", b"more 1")


@pytest.mark.clause("070-TAKE-01", "070-TAKE-03", "070-TAKE-04", "070-VEC-01")
@pytest.mark.parametrize("vector", VECTORS["listings"], ids=lambda vector: vector["name"])
def test_what_two_listings_make_each_side_send(vector: dict[str, Any]) -> None:
    """What another implementation must do; null: request lists follow, or nothing is lacking."""
    by_hash = {str(hash_of(blob(content))): blob(content) for content in CONTENTS}
    both = pair(takes=[int(text) if text is not None else 0 for text in vector["takes"]])
    for index, side in enumerate(both.sides):
        side.put(*[by_hash[record] for record in vector[f"listed_{index}"]])
    both.exchange()
    asked = [record for side in both.sides for (record,) in side.named("MayRequest")]
    if vector["sent"] is not None:
        assert not asked
        sent = [[record for effect in side.wire if isinstance(effect, SendRecords) for record in effect.hashes]
                for side in both.sides]  # fmt: skip
        assert [sorted(records) for records in sent] == vector["sent"]
    else:
        assert sorted(asked) == sorted(set(vector["listed_0"]) ^ set(vector["listed_1"]))


@pytest.mark.clause("070-TAKE-04", "070-VEC-01")
def test_every_byte_of_a_first_contact_without_requests() -> None:
    ends = []
    for index in (0, 1):
        store = MemoryStore()
        store.put([validate(one) for one in (blob(b"both"), blob(b"own %d" % index))])
        ends.append(End(config_of(index, salt=index + 1, takes=256, compression=False), store))
    MemoryLink(ends, piece=7).run()
    assert [end.sent.decode() for end in ends] == [VECTORS["exchange"][f"wrote_{index}"] for index in (0, 1)]


# --- stores that change meanwhile ------------------------------------------------------------------------------------


@pytest.mark.clause("070-TAKE-04")
@pytest.mark.parametrize("make", [Side, RealSide])
def test_what_is_gone_when_it_would_be_sent_is_not_available(make: Make) -> None:
    both = pair(make=make)
    fill(both, 1, 3, 2)
    near, far = both.sides
    gone = hash_of(plex("own/0/1"))
    both.start()
    both.run(until=lambda: lists_are_out(both))
    near.store.delete(gone)
    both.run()
    assert far.finished is not None
    assert near.finished is not None
    assert far.finished.not_available_hashes == (gone,)
    assert [event.hashes for event in far.events if isinstance(event, NotAvailable)] == [[gone]]
    assert near.have == far.have
    assert len(far.have) == 1 + 2 + 2


@pytest.mark.clause("070-TAKE-05")
@pytest.mark.parametrize("make", [Side, RealSide])
def test_what_came_another_way_meanwhile_is_not_stored_again(make: Make) -> None:
    both = pair(make=make)
    fill(both, 1, 3, 2)
    near, far = both.sides
    both.start()
    both.run(until=lambda: lists_are_out(both))
    far.put(plex("own/0/1"))
    both.run()
    assert near.finished is not None
    assert far.finished is not None
    assert near.have == far.have
    assert len(far.finished.received_hashes) == 2
    assert not far.finished.rejected_hashes
    assert [event.count for event in far.events if isinstance(event, Unwanted)] == [1]


@pytest.mark.clause("070-TAKE-03", "070-TAKE-05")
def test_what_both_listed_and_one_has_lost_is_asked_for_in_the_next_loop() -> None:
    both = pair()
    fill(both, 4, 2, 2)
    near, far = both.sides
    lost = sorted(near.have & far.have)[0]
    both.start()
    both.run(until=lambda: lists_are_out(both))
    near.store.delete(lost)  # type: ignore[arg-type]
    both.run()
    assert near.have == far.have
    assert len(near.have) == 8
    assert set(near.named("MayRequest")) == {(lost,)}


@pytest.mark.clause("070-TAKE-05")
def test_of_records_that_come_together_those_that_came_another_way_are_counted() -> None:
    both = pair()
    fill(both, 1, 3, 2)
    near, far = both.sides
    both.start()
    both.run(until=lambda: lists_are_out(both))
    far.put(plex("own/0/1"), plex("own/0/2"))
    both.run(until=lambda: any(isinstance(item, given.RecordsReceived) for item in far.inbox) and not far.results)
    coming = [item for item in far.inbox if isinstance(item, given.RecordsReceived)]
    others = [item for item in far.inbox if not isinstance(item, given.RecordsReceived)]
    assert len(coming) == 3
    far.inbox.clear()
    far.inbox.append(given.RecordsReceived([record for item in coming for record in item.records]))
    far.inbox.extend(others)
    both.run()
    assert [event.count for event in far.events if isinstance(event, Unwanted)] == [2]
    assert near.have == far.have


# --- what our rules do not want --------------------------------------------------------------------------------------

PICKY = Module.author(
    "SelectHave(P) :- Have(P).\nSelectAdvertised(P,S) :- Advertised(P,S), AdvertisedField(P,S,'Group',_,'u')."
)
NOTHING = Module.author("SelectHave(P) :- Have(P).\nSelectAdvertised(P,S) :- Advertised(P,S), Missing(P).")


@pytest.mark.clause("070-TAKE-02", "070-TAKE-05")
@pytest.mark.parametrize("make", [Side, RealSide])
@pytest.mark.parametrize(("module", "kept"), [(PICKY, 3), (NOTHING, 0)], ids=["some", "none"])
def test_what_our_rules_would_not_have_asked_for_is_not_kept(rash: None, make: Make, module: Module, kept: int) -> None:
    both = pair(module, make=make)
    for index, side in enumerate(both.sides):
        side.put(*[plex(f"{index}/{n}", group="uv"[n % 2]) for n in range(6)])
    results = both.exchange()
    for side, result in zip(both.sides, results, strict=True):
        assert len(side.have) == 6 + kept
        assert len(result.received_hashes) == kept
        assert not result.rejected_hashes
        assert result.fixed_point
        assert sum(event.count for event in side.events if isinstance(event, Unwanted)) == 6 - kept
        assert result.bytes_received == sum(len(plex(f"0/{n}", group="uv"[n % 2])) for n in range(6))  # P21
        assert len(side.held) == 6 + kept
        assert "MayRequest" not in control(side)  # the second loop asks for nothing that the first refused


@pytest.mark.clause("070-TAKE-05")
def test_of_what_is_refused_and_not_available_nothing_is_told(rash: None) -> None:
    both = pair(NOTHING)
    fill(both, 1, 3, 0)
    near, far = both.sides
    gone = hash_of(plex("own/0/1"))
    both.start()
    both.run(until=lambda: "Advertised" in control(near))
    near.store.delete(gone)
    both.run()
    assert far.finished is not None
    assert far.finished.not_available_hashes == ()
    assert far.machine.refused == frozenset()
    assert not [event for event in far.events if isinstance(event, NotAvailable | Deferred)]


@pytest.mark.clause("070-TAKE-04", "050-XFER-01")
@pytest.mark.parametrize("most", [1, 2])
def test_a_side_may_send_some_and_is_asked_for_the_rest(most: int) -> None:
    both = pair(max_service_records=most)
    fill(both, 2, 5, 4)
    results = both.exchange()
    near, far = both.sides
    assert near.have == far.have
    assert len(near.have) == 11
    assert has_asked(both) == [True, True]
    assert all(result.fixed_point for result in results)


@pytest.mark.clause("070-TAKE-04", "050-LIM-06")
def test_the_limit_of_a_round_counts_what_comes_unasked() -> None:
    size = len(plex("own/0/0", data=bytes(500)))
    limits = ExchangeLimits(max_total_transferred_bytes=2 * size + 10)
    both = pair(limits=limits)
    both.sides[0].put(*[plex(f"own/0/{n}", data=bytes(500)) for n in range(5)])
    both.start()
    both.run()
    far = both.sides[1]
    assert len(far.have) == 2
    assert both.sides[0].aborted is not None or far.aborted is not None


# --- lies ------------------------------------------------------------------------------------------------------------


class Pushing(RealSide):
    """Sends something beside what it should, or in its place."""

    extra: Sequence[bytes] = ()
    facts: Sequence[Fact] = ()
    is_spoiling = False

    def _send_records(self, effect: SendRecords, peer: Side) -> given.RecordsSent:
        if self.facts and self.facts[0].predicate == MAY_REQUEST:
            peer.inbox.append(given.FactsReceived(self.facts, 64))
        sent = super()._send_records(effect, peer)
        if self.is_spoiling:
            for record, data in peer.arrived.items():
                peer.arrived[record] = [one[:-1] + b"!" for one in data]
        for data in self.extra:
            peer.inbox.append(given.RecordsReceived([(hash_of(data), len(data))]))
            peer.arrived.setdefault(hash_of(data), []).append(data)
        return sent

    def _perform(self, effect: Effect, peer: Side) -> None:
        is_last = isinstance(effect, EndBlock) and self.machine.phase in (Phase.TRANSFER, Phase.LISTING)
        if is_last and self.facts and isinstance(self.wire[-1], EndBlock) and isinstance(self.wire[-2], SendRecords):
            peer.inbox.append(given.FactsReceived(self.facts, 64))
        super()._perform(effect, peer)


def lied_to(index: int, **lies: object) -> tuple[Pushing, Side]:
    makes: list[Make] = [RealSide, RealSide]
    makes[index] = Pushing
    both = pair(make=makes)
    fill(both, 3, 4, 4)
    liar, victim = both.sides[index], both.sides[1 - index]
    assert isinstance(liar, Pushing)
    for name, value in lies.items():
        setattr(liar, name, value)
    both.start()
    both.run()
    return liar, victim


@pytest.mark.clause("070-TAKE-06", "050-ERR-15")
@pytest.mark.parametrize("index", [0, 1])
@pytest.mark.parametrize("what", ["never listed", "ours alone", "common", "twice"])
def test_a_record_that_does_not_follow_from_the_listings_ends_the_exchange(index: int, what: str) -> None:
    ours, theirs = plex(f"own/{1 - index}/0"), plex(f"own/{index}/0")
    extra = {"never listed": plex("x"), "ours alone": ours, "common": blob(b"0"), "twice": theirs}[what]
    _, victim = lied_to(index, extra=[extra])
    assert victim.aborted is not None
    assert victim.aborted.reason.value == "record response with no current outstanding requested hash"
    assert hash_of(plex("x")) not in victim.have
    assert hash_of(theirs) in victim.have  # what came before it is stored (050-ERR-18)


@pytest.mark.clause("070-TAKE-06", "050-REQF-10")
@pytest.mark.parametrize("index", [0, 1])
@pytest.mark.parametrize("name", ["x", "own"])
def test_nothing_else_is_not_available(index: int, name: str) -> None:
    record = hash_of(plex("x" if name == "x" else f"own/{1 - index}/0"))
    _, victim = lied_to(index, facts=[Fact(NOT_AVAILABLE, (record,))])
    assert victim.aborted is not None
    assert victim.aborted.reason.value == "malformed fact block"


@pytest.mark.clause("070-TAKE-06")
@pytest.mark.parametrize("index", [0, 1])
def test_a_request_list_where_none_stands_ends_the_exchange(index: int) -> None:
    _, victim = lied_to(index, facts=[Fact(MAY_REQUEST, (hash_of(plex(f"own/{1 - index}/0")),))])
    assert victim.aborted is not None
    assert victim.aborted.reason.value == "malformed fact block"


@pytest.mark.clause("070-TAKE-05", "050-VALID-05")
@pytest.mark.parametrize("index", [0, 1])
def test_bytes_that_are_not_the_record_are_rejected_and_the_round_goes_on(index: int) -> None:
    liar, victim = lied_to(index, is_spoiling=True)
    assert victim.finished is not None
    assert len(victim.finished.rejected_hashes) == 4
    assert len(victim.have) == 7
    assert len(liar.have) == 11


# --- the outcome -----------------------------------------------------------------------------------------------------

Ends = list[tuple[set[str], list[str]]]


def in_process(module: Module, common: int, first: int, second: int) -> list[set[str]]:
    both = pair(module)
    fill(both, common, first, second)
    near, far = (Party(store=side.store, terms=local_terms(module, EXPOSE_ALL)) for side in both.sides)
    exchange(near, far)
    return [side.have for side in both.sides]


@pytest.mark.clause("070-FIX-01", "070-TAKE-03", "070-TAKE-05")
@pytest.mark.parametrize("name", [*MODULES, "picky"])
@pytest.mark.parametrize("is_rash", [False, True])
@tries(6)
@examples(
    st.integers(0, 20), st.integers(0, 9), st.integers(0, 9), st.sampled_from([(256, 256), (4, 6), (1, 1)]),
    st.sampled_from([0, 12, 99]),
)  # fmt: skip
@pytest.mark.long
def test_the_outcome_is_that_of_requests(
    name: str, is_rash: bool, common: int, first: int, second: int, takes: tuple[int, int], least: int
) -> None:
    """Full listing = partitions = differences = taking = in process, whatever the sets and whatever the rules."""
    module = {**MODULES, "picky": PICKY}[name]
    ends: list[Ends] = []
    for options in (
        {"salts": (None, None)},
        {"salts": (None, None), "partition_threshold_bytes": 0},
        {"takes": (0, 0), "min_compared": least},
        {"takes": takes, "min_compared": least},
    ):
        with pytest.MonkeyPatch.context() as patch:
            if is_rash:
                patch.setattr(agreement, "selects_alike", lambda _: True)
            both = pair(module, **options)  # type: ignore[arg-type]
            fill(both, common, first, second)
            both.exchange()
        ends.append([(side.have, [claim.hash for claim in side.held]) for side in both.sides])
    assert ends[1] == ends[0]
    assert ends[2] == ends[0]
    assert ends[3] == ends[0]
    assert in_process(module, common, first, second) == [have for have, _ in ends[0]]
