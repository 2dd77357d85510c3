"""Roots are the same wherever they are worked out: here, in shares, in real worker processes, after one died."""

from __future__ import annotations

import os
import pickle
import signal
import time
from collections.abc import Iterator
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lace.interlace.claims.advertisement import Advertisement, FieldClaim
from lace.interlace.claims.partitions import AdvertisementSet, Partition, Parts, summarise
from lace.interlace.claims.sharedroots import pack, split, unpack
from lace.notation.digest import digest
from lace.notation.identifiers import RecordHash
from lace.runtime.node.workers import Workers

SOURCE, LONGEST = "Opq_s", 1024


def parts_of(count: int) -> Parts:
    """Claims as an own set holds them, every third with a field."""
    claims = [
        Advertisement(
            RecordHash.of("BPS"[number % 3], digest(str(number).encode())),
            (FieldClaim("Name", "0", f"it's {number}"),) if number % 3 == 0 else (),
        )
        for number in range(count)
    ]
    whole = AdvertisementSet(LONGEST)
    whole.put_all(claims)
    return whole.unsummarised(SOURCE, whole.prefixes())


def work(count: int) -> tuple[Parts, list[Partition]]:
    """Something to work out, and what it comes to."""
    parts = parts_of(count)
    return parts, summarise(parts, SOURCE, LONGEST)


@given(st.integers(0, 60), st.integers(1, 5))
def test_shares_hold_every_part_once_and_packed_ones_give_the_same_roots(count: int, most: int) -> None:
    parts, expected = work(count)
    shares = split(parts, most)
    assert 1 <= len(shares) <= most
    assert [prefix for share in shares for prefix in share] == list(parts)
    jobs = [pickle.loads(pickle.dumps(pack(share, SOURCE, LONGEST))) for share in shares]
    assert [root for job in jobs for root in unpack(job.run(BytesIO()))] == expected


@pytest.mark.parametrize(
    ("sizes", "count", "shares"),
    [
        ((2, 2, 2), 3, ["a", "b", "c"]),  # a share that has its third is full
        ((2, 2, 2), 2, ["ab", "c"]),  # one that lacks a claim is not
        ((1, 1, 1, 1, 1), 2, ["abc", "de"]),
        ((5, 1), 2, ["a", "b"]),
        ((1, 5), 2, ["ab"]),
        ((3, 3), 1, ["ab"]),
    ],
)
def test_a_share_takes_parts_until_it_has_its_part_of_the_claims(
    sizes: tuple[int, ...], count: int, shares: list[str]
) -> None:
    [claim] = [claim for part in parts_of(1).values() for claim in part]
    parts = {prefix: [claim] * size for prefix, size in zip("abcde", sizes, strict=False)}
    assert ["".join(share) for share in split(parts, count)] == shares


@pytest.fixture
def workers() -> Iterator[Workers]:
    running = Workers(3)
    running.want()
    deadline = time.monotonic() + 60
    while not running.is_ready:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    yield running
    running.close()


def test_worker_processes_work_out_their_shares(workers: Workers) -> None:
    parts, expected = work(5_000)
    assert workers.summarise(parts, SOURCE, LONGEST) == expected
    workers.close()
    assert workers.summarise(parts, SOURCE, LONGEST) == expected


def test_workers_that_died_cost_no_root(workers: Workers) -> None:
    assert workers.pids()
    for pid in workers.pids():
        os.kill(pid, signal.SIGKILL)
    parts, expected = work(4_500)
    assert workers.summarise(parts, SOURCE, LONGEST) == expected
