"""Reconciling anybody's ids: both sides learn the same difference, whatever the sets, and no message harms them."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lace.errors import InvalidInput, LaceError, LimitExceeded, LocalProtocolError
from lace.reconcile import ReconcileLimits, Reconciler
from tries import tries

ROOT = Path(__file__).parents[2]


def ids_of(count: int, seed: int, size: int = 32) -> list[bytes]:
    rng = random.Random(seed)
    return [rng.randbytes(size) for _ in range(count)]


def carry(first: Reconciler, second: Reconciler, most: int = 40) -> int:
    """Carry messages until both are over; how many there were."""
    message, turn, count = first.begin(), second, 0
    while message:
        count += 1
        assert count < most
        message, turn = turn.receive(message), first if turn is second else second
    return count


def sides(ours: list[bytes], theirs: list[bytes], size: int = 32) -> tuple[Reconciler, Reconciler]:
    first = Reconciler(ours, nonce=bytes(16), begins=True, id_bytes=size)
    return first, Reconciler(theirs, nonce=bytes(range(16)), begins=False, id_bytes=size)


@tries(60)
@given(
    shared=st.integers(0, 300),
    mine=st.integers(0, 60),
    other=st.integers(0, 60),
    size=st.sampled_from([16, 20, 31, 32]),
)
def test_both_sides_learn_the_difference(shared: int, mine: int, other: int, size: int) -> None:
    drawn = ids_of(shared + mine + other, shared * 7 + mine, size)
    both, ours, theirs = drawn[:shared], drawn[shared : shared + mine], drawn[shared + mine :]
    first, second = sides(both + ours, theirs + both[::-1], size)
    carry(first, second)
    assert (first.difference.lacking, first.difference.spare) == (frozenset(theirs), frozenset(ours))
    assert (second.difference.lacking, second.difference.spare) == (frozenset(ours), frozenset(theirs))


def test_equal_and_empty_sets_take_three_messages() -> None:
    for ids in ([], ids_of(1000, 1)):
        first, second = sides(ids, ids * 2)
        assert carry(first, second) == 3
        assert first.difference == second.difference
        assert not first.difference.lacking


def test_the_bytes_follow_the_difference_and_not_the_sets() -> None:
    sent = {}
    for count in (2_000, 50_000):
        shared = ids_of(count, 3)
        first, second = sides(shared + ids_of(50, 4), shared + ids_of(50, 5))
        carry(first, second)
        sent[count] = first.bytes_sent + second.bytes_sent
    # 100 ids differ: 3,200 bytes name them; some 14 bytes for each, in a sketch chosen too large, find them.
    assert max(sent.values()) < 12_000
    assert sent[50_000] < 2 * sent[2_000]


def test_ids_are_checked_and_a_side_says_when_it_is_not_over() -> None:
    with pytest.raises(InvalidInput, match="every id has 32 bytes"):
        Reconciler([b"short"], nonce=bytes(16), begins=True)
    with pytest.raises(InvalidInput, match="16 random bytes"):
        Reconciler([], nonce=b"", begins=True)
    first, second = sides([], [])
    with pytest.raises(LocalProtocolError, match="not over"):
        _ = first.difference
    with pytest.raises(LocalProtocolError):
        second.begin()
    hello = first.begin()
    with pytest.raises(InvalidInput, match="one size, here 16"):
        Reconciler([], nonce=bytes(16), begins=False, id_bytes=16).receive(hello)
    with pytest.raises(InvalidInput, match="SUMMARY is due"):
        first.receive(hello)
    small = Reconciler([], nonce=bytes(16), begins=False, limits=ReconcileLimits(max_message_bytes=5))
    with pytest.raises(LimitExceeded):
        small.receive(hello)


@tries(200)
@given(data=st.data())
def test_a_changed_message_gives_an_error_or_an_end(data: st.DataObject) -> None:
    """What a peer sends may be anything: a side ends, errs with our errors, or answers, and nothing else happens."""
    shared = ids_of(40, 8)
    first, second = sides(shared + ids_of(5, 9), shared + ids_of(6, 10))
    message, turn = first.begin(), second
    at = data.draw(st.integers(0, 4))
    for step in range(12):
        if step == at and message:
            place = data.draw(st.integers(0, len(message) - 1))
            kind = data.draw(st.sampled_from(["flip", "cut", "more"]))
            if kind == "flip":
                message = (
                    message[:place] + bytes([message[place] ^ data.draw(st.integers(1, 255))]) + message[place + 1 :]
                )
            else:
                message = message[:place] if kind == "cut" else message + message[place:]
        try:
            message, turn = turn.receive(message), first if turn is second else second
        except LaceError:
            return
        if not message:
            return


def test_two_processes_reconcile_over_a_pipe(tmp_path: Path) -> None:
    shared, ours, theirs = ids_of(500, 1), ids_of(3, 2), ids_of(4, 3)
    (tmp_path / "a").write_bytes(b"".join(shared + ours))
    (tmp_path / "b").write_bytes(b"".join(shared + theirs))
    program = str(ROOT / "demo" / "reconcile.py")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, program, str(tmp_path / "a"), str(tmp_path / "b")],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env=environment,
    )
    assert "lacks 4 ids, has 3 that the other one lacks" in done.stdout
    assert "lacks 3 ids, has 4 that the other one lacks" in done.stdout
