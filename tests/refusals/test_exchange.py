"""Whole exchanges in which a side does not keep everything: what both say of it, and what moves the next time."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlace.pair import ALL, START_NS, blob, group_module, hash_of
from interlace.scripted import limits_with
from interop.harness import filled, hashes
from lace.interlace.events import Sent
from lace.interlace.loop.refusals import LINE_BYTES, most_requests
from lace.interlace.result import InterlaceResult
from lace.limits import RecordLimits
from lace.notation.tai import TAI
from lace.policy.operand import Module
from lace.records.model import Blob, Plex
from lace.records.validate import validate
from lace.records.write import encode_record
from lace.runtime.host.quotas import Allowance, GateRules, Quotas
from lace.store.memory import MemoryStore
from refusals.links import (
    HORIZON,
    LATE,
    at_most,
    bytes_at_most,
    end_of,
    hashes_of,
    lines,
    plex_at,
    run,
)
from runtime.memory_link import End, MemoryLink
from tries import tries

RECORDS = [blob(bytes([65 + number]) * 1000) for number in range(8)]
DATED = Module.author(
    "SelectHave(P) :- Have(P), Field(P,'TAI',_,_).\n"
    "SelectAdvertised(P,S) :- Advertised(P,S), AdvertisedField(P,S,'TAI',_,_)."
)
BOTH_WAYS = pytest.mark.parametrize("receiver", [0, 1])
COMPARED = pytest.mark.parametrize("salted", [True, False], ids=["070", "050"])


def meet(
    records: Any, other: Any, rules: GateRules, receiver: int, salted: bool = True, packs: bool = True, **options: Any
) -> list[End]:
    """`records` against a receiver with rules, which sits at a place; the sender's end comes first."""
    seat = {"differences": salted, "compression": salted and packs}
    stores = (records, other) if receiver == 1 else (other, records)
    ends = run(*stores, rules, receiver=receiver, **seat, **options)
    return [ends[1 - receiver], ends[receiver]]


def told(result: InterlaceResult) -> set[str]:
    """Records that the peer is known not to keep."""
    return {*result.refused_hashes, *result.held_back_by_peer.records}


@BOTH_WAYS
@COMPARED
@pytest.mark.clause("071-HELD-01", "071-HELD-02")
def test_a_quota_is_told_and_the_second_time_nothing_moves(receiver: int, salted: bool) -> None:
    store = MemoryStore()
    for turn in (1, 2, 3):
        sender, taker = meet(RECORDS, store, at_most(3), receiver, salted)
        ours, theirs = sender.outcome.result, taker.outcome.result
        assert sender.outcome.is_complete
        assert not sender.outcome.is_converged
        assert not taker.outcome.is_converged
        assert len(hashes(store)) == 3
        assert set(ours.sent_hashes) == (hashes(store) if turn == 1 else set())
        assert dict(ours.held_back_by_peer.counts) == dict(theirs.held_back) == {"quota": 5}
        assert told(ours) == hashes_of(RECORDS) - hashes(store)
        assert (theirs.bytes_received == 0) == (turn > 1)
    sender, taker = meet(RECORDS, store, at_most(8), receiver, salted)  # the quota is raised
    assert sender.outcome.is_converged
    assert taker.outcome.is_converged
    assert hashes(store) == hashes_of(RECORDS)


@BOTH_WAYS
@COMPARED
@pytest.mark.clause("071-LEN-01", "071-HELD-01")
def test_lengths_are_told_where_bytes_are_counted_so_nothing_comes_in_vain(receiver: int, salted: bool) -> None:
    size = len(RECORDS[0])
    sender, taker = meet(RECORDS, [], bytes_at_most(3 * size + size // 2), receiver, salted, packs=False)
    assert len(taker.have) == 3
    assert taker.outcome.result.bytes_received == 3 * size
    assert sender.outcome.result.bytes_sent == 3 * size
    assert not lines(taker, "Refused")
    assert any("'Data-Length'" in line for line in lines(sender, "AdvertisedField"))
    free = run(RECORDS, [], GateRules(), compression=False)
    assert not lines(free[0], "AdvertisedField")


@BOTH_WAYS
@COMPARED
@pytest.mark.clause("071-RIDE-01", "071-AGAIN-01", "071-HELD-03", "071-HELD-04", "071-LIM-01")
def test_what_is_dated_too_late_is_refused_once_and_held_back_until_its_time_has_come(
    receiver: int, salted: bool
) -> None:
    late, store = plex_at("late", LATE, b"x" * 500), MemoryStore()
    records = [late, RECORDS[0]]
    sender, taker = meet(records, store, HORIZON, receiver, salted)
    ours, theirs = sender.outcome.result, taker.outcome.result
    assert dict(ours.refused_hashes) == {hash_of(late): "horizon"}
    assert list(ours.sent_hashes) == [hash_of(RECORDS[0])]
    assert not ours.held_back_by_peer  # it is not counted twice
    assert not theirs.held_back
    assert list(theirs.rejected_hashes) == [hash_of(late)]
    assert theirs.bytes_received == ours.bytes_sent == sum(map(len, records))
    sender, taker = meet(records, store, HORIZON, receiver, salted)
    assert taker.outcome.result.bytes_received == 0
    assert dict(sender.outcome.result.held_back_by_peer.records) == {hash_of(late): "horizon"}
    assert not sender.outcome.is_converged
    later = GateRules(horizon=lambda: LATE, peer="p")
    sender, taker = meet(records, store, later, receiver, salted)
    assert sender.outcome.is_converged
    assert hashes(store) == hashes_of(records)
    sender, _ = meet(records, store, HORIZON, receiver, salted)  # it is here: nothing is remembered against it
    assert sender.outcome.is_converged


@BOTH_WAYS
def test_a_date_that_is_told_keeps_the_record_from_coming(receiver: int) -> None:
    sender, taker = meet([plex_at("late", LATE), plex_at("now")], [], HORIZON, receiver, module=DATED)
    assert dict(sender.outcome.result.held_back_by_peer.counts) == {"horizon": 1}
    assert taker.outcome.result.bytes_received == len(plex_at("now"))


@BOTH_WAYS
@pytest.mark.clause("071-RIDE-01")
def test_what_comes_unnamed_and_is_not_kept_is_refused_with_its_reason(receiver: int) -> None:
    late, now = plex_at("late", LATE), plex_at("now")
    sender, taker = meet([late, now], [], HORIZON, receiver, module=DATED, takes=256)
    assert not lines(taker, "MayRequest")  # it came all the same
    assert dict(sender.outcome.result.refused_hashes) == {hash_of(late): "horizon"}
    assert list(sender.outcome.result.sent_hashes) == [hash_of(now)]
    assert not sender.outcome.is_converged
    assert not taker.outcome.is_converged


@BOTH_WAYS
@COMPARED
def test_a_record_longer_than_the_receiver_takes_is_held_back_by_policy(receiver: int, salted: bool) -> None:
    narrow = RecordLimits(max_data_bytes=900)
    records, rules = [*RECORDS[:2], blob(b"short")], GateRules(limits=narrow, peer="p")
    store = MemoryStore()
    for turn in (1, 2):
        sender, taker = meet(records, store, rules, receiver, salted)
        assert dict(sender.outcome.result.held_back_by_peer.counts) == {"policy": 2}
        assert taker.outcome.result.bytes_received == (len(blob(b"short")) if turn == 1 else 0)


@BOTH_WAYS
def test_a_limit_that_no_claim_tells_of_refuses_by_policy_and_is_remembered(receiver: int) -> None:
    headers = tuple((f"H{number}", "v") for number in range(5))
    many = encode_record(Plex(group="u", app="a", name="m", tai=TAI(START_NOW), headers=headers, blob=Blob(b"")))
    narrow, store = RecordLimits(max_extra_headers=2), MemoryStore()
    for turn in (1, 2):
        ends = [
            end_of(index, store if index == receiver else [many], GateRules(limits=narrow, peer="p"), record_limits=(
                narrow if index == receiver else RecordLimits()))
            for index in (0, 1)
        ]  # fmt: skip
        MemoryLink(ends).run()
        result = ends[1 - receiver].outcome.result
        assert dict(result.refused_hashes) == ({hash_of(many): "policy"} if turn == 1 else {})
        assert dict(result.held_back_by_peer.counts) == ({} if turn == 1 else {"policy": 1})
        assert result.bytes_sent == (len(many) if turn == 1 else 0)
    wide = run([many], store, GateRules(peer="p"), receiver=1)
    assert wide[0].outcome.is_converged  # the limit is gone, and so is what was remembered under it


START_NOW = str(TAI.from_ns(START_NS))


@BOTH_WAYS
@COMPARED
def test_bytes_that_are_not_the_record_are_refused_as_invalid_and_not_asked_of_that_peer_again(
    receiver: int, salted: bool
) -> None:
    class Lying(MemoryStore):
        """Gives other bytes under a name."""

        def get_first(self, record_hashes: Any, max_bytes: int) -> Any:
            found = super().get_first(record_hashes, max_bytes)
            return [self._spoiled(name, data) for name, data in zip(record_hashes, found, strict=False)]

        def _spoiled(self, name: str, data: bytes | None) -> bytes | None:
            return data.replace(b"AAAA", b"AAAB") if data is not None and name == hash_of(RECORDS[0]) else data

    liar, store = Lying(), MemoryStore()
    liar.put([validate(record) for record in RECORDS[:2]])
    rules = GateRules(peer="liar")
    sender, taker = meet(liar, store, rules, receiver, salted)
    assert dict(sender.outcome.result.refused_hashes) == {hash_of(RECORDS[0]): "invalid"}
    assert list(sender.outcome.result.sent_hashes) == [hash_of(RECORDS[1])]
    assert not taker.outcome.is_converged
    sender, taker = meet(liar, store, rules, receiver, salted)
    assert taker.outcome.result.bytes_received == 0
    assert dict(sender.outcome.result.held_back_by_peer.counts) == {"invalid": 1}
    sender, taker = meet(RECORDS[:2], store, replace(rules, peer="honest"), receiver, salted)
    assert taker.outcome.is_converged  # another peer has the record


@BOTH_WAYS
@pytest.mark.clause("071-RIDE-03")
def test_a_refusal_is_told_though_the_sets_are_equal_by_then(receiver: int) -> None:
    """The sender removes the record that was refused before the next loop: then nothing differs any more."""
    late = plex_at("late", LATE)
    sending, taking = filled([late, *RECORDS]), filled(RECORDS)
    ends = [end_of(index, taking if index == receiver else sending, HORIZON if index == receiver else GateRules(),
                   min_compared=1) for index in (0, 1)]  # fmt: skip
    sender = ends[1 - receiver]
    perform = sender.perform

    def perform_and_remove(now_ns: int) -> bool:
        moved = perform(now_ns)
        if any(isinstance(event, Sent) for event in sender.events) and sending.have(hash_of(late)):
            sending.delete(hash_of(late))
        return moved

    sender.perform = perform_and_remove  # type: ignore[method-assign]
    MemoryLink(ends).run()
    assert not sending.have(hash_of(late))
    assert dict(sender.outcome.result.refused_hashes) == {hash_of(late): "horizon"}
    assert all(end.outcome.is_complete for end in ends)


def test_equal_sets_after_a_transfer_still_need_no_request_lists() -> None:
    ends = [end_of(index, [*RECORDS[:6], RECORDS[6 + index]], GateRules(), min_compared=1) for index in (0, 1)]
    MemoryLink(ends).run()
    with_071 = [bytes(end.sent).count(b"\n\n") for end in ends]
    without = [
        end_of(index, [*RECORDS[:6], RECORDS[6 + index]], GateRules(), min_compared=1, refusals=False)
        for index in (0, 1)
    ]
    MemoryLink(without).run()
    assert with_071 == [bytes(end.sent).count(b"\n\n") for end in without]
    assert all(end.outcome.is_converged for end in ends)
    assert all(end.outcome.result.sent_hashes for end in ends)


@COMPARED
@pytest.mark.clause("071-RIDE-04")
def test_a_block_has_room_for_every_refusal(salted: bool) -> None:
    late = [plex_at(f"late/{number}", LATE) for number in range(400)]
    assert most_requests(40_000) < len(late)
    sender, _ = meet(late, [], HORIZON, 1, salted, limits=limits_with(max_fact_block_size=40_000))
    assert sender.outcome.is_complete
    assert set(sender.outcome.result.refused_hashes) == hashes_of(late)


@given(st.integers(200, 1 << 27))
@pytest.mark.clause("071-RIDE-04")
def test_refusals_of_all_that_was_asked_for_leave_room_for_requests(block: int) -> None:
    assert most_requests(block) * LINE_BYTES <= block - min(64 * 1024, block // 2) or most_requests(block) == 1
    assert len(f"Refused('{hash_of(RECORDS[0])}','withdrawn')\n") <= LINE_BYTES


@pytest.mark.clause("071-SEC-01")
def test_who_asks_for_nothing_tells_nothing() -> None:
    ends = [end_of(0, RECORDS, GateRules()), end_of(1, [], at_most(1), max_requests=0)]
    MemoryLink(ends).run()
    assert not lines(ends[1], "Refused", "Declined", "MayRequest")
    assert not ends[0].outcome.result.held_back_by_peer


@BOTH_WAYS
def test_a_link_that_is_cut_before_the_word_of_the_peer_leaves_what_was_sent_unconfirmed(receiver: int) -> None:
    whole = run(RECORDS[:1], [RECORDS[1]], GateRules())
    for cut in range(0, len(whole[0].sent), 97):
        ends = [end_of(0, RECORDS[:1], GateRules()), end_of(1, [RECORDS[1]], GateRules())]
        MemoryLink(ends, cut_after=cut).run()
        for end, peer in (ends, reversed(ends)):
            result = end.outcome.result
            assert set(result.sent_hashes) <= peer.have, cut
            assert end.outcome.is_complete == (result.fixed_point and not end.outcome.abort)
            if not end.outcome.is_complete:
                assert end.outcome.status == "closed_early"


SIZES = st.sampled_from([0, 1, 10, 100, 1000, 5000])
DRAWN = st.lists(st.tuples(SIZES, st.booleans(), st.sampled_from(["u", "v"])), min_size=1, max_size=12)
QUOTAS = st.builds(
    Quotas,
    known_peer=st.builds(Allowance, bytes=st.none() | st.integers(0, 9000), records=st.none() | st.integers(0, 9)),
    group=st.builds(Allowance, bytes=st.none() | st.integers(0, 9000), records=st.none() | st.integers(0, 5)),
    total=st.builds(Allowance, bytes=st.none() | st.integers(0, 20_000)),
)


@tries(30)
@given(
    drawn=DRAWN,
    theirs=DRAWN,
    quotas=QUOTAS,
    limit=st.sampled_from([50, 2000, RecordLimits().max_data_bytes]),
    receiver=st.integers(0, 1),
    salted=st.booleans(),
    grouped=st.booleans(),
)
def test_sent_is_kept_converged_is_equal_and_the_second_time_nothing_moves(
    drawn: Any, theirs: Any, quotas: Quotas, limit: int, receiver: int, salted: bool, grouped: bool
) -> None:
    def made(rows: Any, name: str) -> list[bytes]:
        return [
            encode_record(Plex(group=group, app="a", name=f"{name}/{number}", tai=LATE if late else TAI(START_NOW),
                               headers=(), blob=Blob(b"x" * size)))
            for number, (size, late, group) in enumerate(rows)
        ]  # fmt: skip

    module = group_module("u") if grouped else ALL
    records, store = made(drawn, "ours"), filled(made(theirs, "theirs"))
    selected = {name for name, (_, _, group) in zip(map(hash_of, records), drawn, strict=True)
                if group == "u" or not grouped}  # fmt: skip
    rules = GateRules(quotas=quotas, horizon=lambda: START_NOW, limits=RecordLimits(max_data_bytes=limit), peer="p")
    before, sending = None, filled(records)
    for turn in (1, 2):
        sender, taker = meet(sending, store, rules, receiver, salted, module=module)
        ours = sender.outcome.result
        assert sender.outcome.is_complete, sender.outcome
        assert set(ours.sent_hashes) <= hashes(store)
        assert not ours.unconfirmed_hashes
        missing = selected - hashes(store)
        assert told(ours) == missing
        assert Counter(ours.held_back_by_peer.records.values()) == Counter(dict(ours.held_back_by_peer.counts))
        assert bool(missing) == (not sender.outcome.is_converged)
        assert bool(missing) == (not taker.outcome.is_converged)
        if turn == 2:
            assert (ours.bytes_sent, ours.bytes_received) == (0, 0)
            assert hashes(store) == before
        before = hashes(store)
    sender, _ = meet(filled(records), store, GateRules(peer="p"), receiver, salted, module=module)  # nothing is limited
    assert sender.outcome.is_converged
    assert selected <= hashes(store)
