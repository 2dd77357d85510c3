"""Refusals between two laces of one process, at the gate of a store, and what Python is told of an early end."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lace as api
from interlace.pair import ALL, EXPOSE_ALL, blob, hash_of, plex
from interop.harness import exchange_once, filled, hashes, honest_stream, send_raw, serving
from lace.errors import StoreFull
from lace.intake.received import judge_received
from lace.interlace.loop.refusals import Reason
from lace.interlace.result import InterlaceResult
from lace.limits import RecordLimits
from lace.runtime.host.quotas import GateRules, QuotaGate
from lace.runtime.host.refusedbefore import FORGOTTEN_AFTER_S, MAX_REMEMBERED, RefusedBefore, RefusedRecord
from lace.runtime.local.local import exchange
from lace.runtime.local.party import Party, local_terms
from lace.store.columns.segments.encode import EncodedBatch
from lace.store.memory import MemoryStore
from refusals.links import HORIZON, LATE, at_most, bytes_at_most, hashes_of, plex_at

RECORDS = [blob(bytes([65 + number]) * 1000) for number in range(6)]
NARROW = RecordLimits(max_data_bytes=900)
LATE_ONE = plex_at("late", LATE)


class Small(MemoryStore):
    """A store with room for so many bytes, which nobody can ask for beforehand."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self.free = room

    def put_encoded(self, batch: EncodedBatch) -> int:
        size = sum(map(len, batch.bodies))
        if size > self.free:
            raise StoreFull("no room")
        self.free -= size
        return super().put_encoded(batch)


def both(
    sending: MemoryStore, taking: MemoryStore, rules: GateRules | None, receiver: int, *, is_direct: bool
) -> tuple[InterlaceResult, InterlaceResult]:
    """The sender's result and the receiver's."""
    limits = rules.limits if rules is not None else RecordLimits()
    parties = [Party(store=sending, terms=local_terms(ALL, EXPOSE_ALL))]
    parties.insert(receiver, Party(store=taking, terms=local_terms(ALL, EXPOSE_ALL, record_limits=limits), rules=rules))
    results = exchange(*parties, is_direct=is_direct)
    return results[1 - receiver], results[receiver]


@pytest.mark.parametrize("is_direct", [True, False])
@pytest.mark.parametrize("receiver", [0, 1])
@pytest.mark.parametrize(
    ("records", "rules", "reason", "lost"),
    [
        (RECORDS, at_most(2), "quota", 4),
        (RECORDS, bytes_at_most(2500), "quota", 4),
        ([LATE_ONE, RECORDS[0]], HORIZON, "horizon", 1),
        ([*RECORDS[:3], blob(b"short")], GateRules(limits=NARROW, peer="p"), "policy", 3),
    ],
)
def test_two_laces_of_one_process_say_what_is_not_kept(
    records: Sequence[bytes], rules: GateRules, reason: str, lost: int, receiver: int, is_direct: bool
) -> None:
    sending, taking = filled(records), MemoryStore()
    for turn in (1, 2):
        ours, theirs = both(sending, taking, rules, receiver, is_direct=is_direct)
        assert ours.is_complete
        assert theirs.is_complete
        assert not ours.is_converged
        assert not theirs.is_converged
        told = {**ours.refused_hashes, **ours.held_back_by_peer.records}
        assert told == dict.fromkeys(hashes_of(records) - hashes(taking), reason)
        assert len(told) == lost
        assert set(ours.sent_hashes) == (hashes(taking) if turn == 1 else set())
        if turn == 2:
            assert ours.bytes_sent == 0


@pytest.mark.parametrize("receiver", [0, 1])
def test_a_disk_that_turns_out_to_be_full_keeps_what_fits(receiver: int) -> None:
    taking = Small(3500)
    ours, theirs = both(filled(RECORDS), taking, None, receiver, is_direct=True)
    assert len(hashes(taking)) == 3
    assert set(ours.sent_hashes) == hashes(taking)
    assert dict(ours.refused_hashes) == dict.fromkeys(hashes_of(RECORDS) - hashes(taking), "full")
    assert all("full disk" in why for why in theirs.rejected_hashes.values())


@given(st.lists(st.integers(0, 400), min_size=1, max_size=30), st.integers(0, 4000))
def test_a_batch_is_refused_only_where_a_record_finds_no_room(sizes: list[int], room: int) -> None:
    records = [blob(f"{place} ".encode() + b"x" * size) for place, size in enumerate(sizes)]
    store = Small(room)
    judged = judge_received([(str(hash_of(record)), record) for record in records], RecordLimits())
    passed = QuotaGate(store, GateRules()).commit(judged)
    assert set(passed.stored) == hashes(store)
    assert set(passed.refused) == hashes_of(records) - hashes(store)
    assert set(passed.words.values()) <= {Reason.FULL}
    left_out = [len(record) for record in records if hash_of(record) not in hashes(store)]
    assert not left_out or min(left_out) > store.free


# --- what is remembered ----------------------------------------------------------------------------------------


def test_a_verdict_is_about_a_peer_and_its_time_and_our_limits() -> None:
    store, now = MemoryStore(), [1000.0]
    name = str(hash_of(RECORDS[0]))
    RefusedBefore(store, "p", "l", lambda: now[0]).note({name: RefusedRecord("invalid")})
    assert RefusedBefore(store, "p", "l", lambda: now[0]).verdict(name) == "invalid"
    assert not RefusedBefore(store, "q", "l", lambda: now[0]).verdict(name)
    assert not RefusedBefore(store, "p", "other limits", lambda: now[0]).verdict(name)
    now[0] += FORGOTTEN_AFTER_S + 1
    assert not RefusedBefore(store, "p", "l", lambda: now[0]).verdict(name)


def test_two_links_remember_together_and_the_table_has_an_end() -> None:
    store = MemoryStore()
    first, second = (RefusedBefore(store, peer, "") for peer in "pq")
    assert len(first) == len(second) == 0
    first.note({"a": RefusedRecord("quota", 5)})
    second.note({"b": RefusedRecord("quota", 6)})
    assert len(RefusedBefore(store, "r", "")) == 2
    second.note({}, kept=["b"])
    assert len(RefusedBefore(store, "r", "")) == 1
    first.note({str(number): RefusedRecord("quota") for number in range(MAX_REMEMBERED + 10)})
    assert len(RefusedBefore(store, "r", "")) == MAX_REMEMBERED


@pytest.mark.parametrize("kept", [b"", b"x", b"[]", b'{"a":5}', b'{"a":[1,2,3,4,5,6,7,8,9]}'])
def test_a_table_that_cannot_be_read_is_an_empty_one(kept: bytes) -> None:
    store = MemoryStore()
    store.put_setting("refused", "records", kept)
    assert len(RefusedBefore(store, "p", "")) == 0


# --- an early end ----------------------------------------------------------------------------------------------


def test_a_peer_that_hangs_up_early_is_no_complete_exchange(tmp_path: Path) -> None:
    """Cut the honest stream of a dialler after each of its blocks: only the last cut is a complete exchange."""
    ours, theirs = [plex("a"), plex("b")], [plex("c")]
    stream = honest_stream(ours, theirs)
    cuts = [place + 2 for place in range(len(stream)) if stream[place : place + 2] == b"\n\n"]

    async def run() -> None:
        for cut in cuts:
            async with serving(theirs, tmp_path) as server:
                await send_raw(server.address, stream[:cut])
                outcome = await server.next_outcome()
                assert outcome.is_complete == outcome.result.fixed_point == (cut == cuts[-1]), (cut, outcome)
                assert outcome.status == "closed_early" or cut == cuts[-1]

    asyncio.run(run())


def test_connect_and_interlace_say_how_it_ended(tmp_path: Path) -> None:
    async def run() -> Any:
        async with serving([plex("c")], tmp_path) as server:
            return (await exchange_once(server.address, [plex("a")]))[0]

    outcome = asyncio.run(run())
    assert (outcome.is_complete, outcome.is_converged, outcome.status) == (True, True, "converged")
    with api.open(tmp_path / "a.lace", create=True) as first, api.open(tmp_path / "b.lace", create=True) as second:
        first.put_stored(RECORDS[0])
        exchanged = api.exchange(first, second, expose="all")
        assert exchanged.is_complete
        assert exchanged.is_converged
        assert list(exchanged.first.sent_hashes) == [hash_of(RECORDS[0])]
