"""Accounts of what peers brought: they follow the records, whatever happens to these."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lace.store import MemoryStore, RecordStore, open_store
from lace.store.ledger import BROUGHT, Brought, Usage, account, all_usage, charge, forget, usage
from store.samples import blob, plex, seal


@pytest.fixture(params=["sqlite", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RecordStore]:
    opened: RecordStore = open_store(tmp_path / "a.lace", create=True) if request.param == "sqlite" else MemoryStore()
    with opened:
        yield opened


def bring(store: RecordStore, peer: str, *records: object, kinds: tuple[str, ...] = ("signer", "group")) -> None:
    """Store records of a peer as an intake does."""
    with store.together():
        before = store.high_water()
        store.put(records)  # type: ignore[arg-type]
        rows = [Brought(len(one.stored), one.parts.group, one.parts.signed_by) for one in records]  # type: ignore[attr-defined]
        charge(store, range(before + 1, store.high_water() + 1), rows, [account("peer", peer)], kinds)


def test_an_account_counts_records_and_bytes_and_gets_back_what_is_removed(store: RecordStore) -> None:
    plain, sealed, other = plex("n/1"), seal("n/2"), blob(b"xyz")
    store.put([blob(b"our own")])
    bring(store, "a", plain, sealed)
    bring(store, "b", other)
    assert usage(store, "peer a") == Usage(2, len(plain.stored) + len(sealed.stored))
    assert usage(store, f"signer {sealed.parts.signed_by}") == Usage(1, len(sealed.stored))
    assert usage(store, "group u").records == 2
    store.delete(sealed.hash)
    assert usage(store, "peer a") == Usage(1, len(plain.stored))
    assert f"signer {sealed.parts.signed_by}" not in all_usage(store)
    store.delete(plain.hash, other.hash)
    assert all_usage(store) == {}


def test_removing_what_nobody_brought_changes_no_account(store: RecordStore) -> None:
    ours, theirs = blob(b"ours"), blob(b"theirs")
    store.put([ours])
    bring(store, "a", theirs)
    store.delete(ours.hash)
    assert usage(store, "peer a").records == 1
    later = blob(b"later, by ourselves")
    store.put([later])
    store.delete(later.hash)
    assert usage(store, "peer a").records == 1


def test_runs_that_follow_each_other_are_kept_as_one(store: RecordStore) -> None:
    for number in range(20):
        bring(store, "a", blob(b"%d" % number))
    assert len(store.settings(BROUGHT)) == 1
    bring(store, "b", blob(b"of b"))
    bring(store, "a", blob(b"of a again"))
    assert len(store.settings(BROUGHT)) == 3


def test_a_forgotten_account_begins_anew_and_never_falls_below_nothing(store: RecordStore) -> None:
    record = blob(b"x")
    bring(store, "a", record)
    assert forget(store, "peer a")
    assert not forget(store, "peer a")
    store.delete(record.hash)
    assert usage(store, "peer a") == Usage()


def test_what_fails_half_way_is_neither_stored_nor_charged(store: RecordStore) -> None:
    record = blob(b"x")

    def fail() -> None:
        with store.together():
            store.put([record])
            charge(store, range(1, 2), [Brought(9, "", "")], ["peer a"], [])
            raise ValueError("a fault")

    with pytest.raises(ValueError, match="a fault"):
        fail()
    assert not store.have(record.hash)
    assert all_usage(store) == {}
    assert store.put([record])[0].new


@given(st.lists(st.tuples(st.sampled_from("abr"), st.integers(0, 11)), max_size=40))
def test_accounts_are_what_counting_the_records_says(moves: list[tuple[str, int]]) -> None:
    store = MemoryStore()
    held: dict[int, str] = {}
    records = [plex(f"n/{number}", group="uvw"[number % 3]) for number in range(12)]
    for move, number in moves:
        if move == "r":
            store.delete(records[number].hash)
            held.pop(number, None)
        elif number not in held:
            bring(store, move, records[number])
            held[number] = move
    expected: dict[str, Usage] = {}
    for number, peer in held.items():
        for name in (f"peer {peer}", f"group {'uvw'[number % 3]}"):
            expected[name] = expected.get(name, Usage()).plus(1, len(records[number].stored))
    assert all_usage(store) == expected
