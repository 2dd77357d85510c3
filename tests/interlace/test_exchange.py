"""Whole exchanges between two machines."""

from __future__ import annotations

import pytest

from interlace.pair import blob, hash_of, make_pair, plex


@pytest.mark.clause("050-DRV-01", "050-BOUND-01", "050-RESULT-05")
def test_two_stores_with_different_records_become_equal() -> None:
    pair = make_pair()
    first, second = pair.sides
    first.put(blob(b"a"), blob(b"b"))
    second.put(blob(b"c"), plex("links/1"))
    results = pair.exchange()
    assert first.have == second.have
    assert len(first.have) == 4
    assert set(results[0].received_hashes) == {hash_of(blob(b"c")), hash_of(plex("links/1"))}
    assert results[0].fixed_point
    assert results[1].fixed_point
