"""What our own side cannot or will not take ends the same way in one process and on a wire (050, one host)."""

from __future__ import annotations

from pathlib import Path

import pytest

import lace
from interlace.pair import blob
from lace.interlace.reasons import AbortReason
from lace.interlace.result import InterlaceResult
from lace.limits import RecordLimits
from lace.porcelain.exchange import interlace
from lace.porcelain.network import connect, serve
from lace.runtime.local.local import ExchangeAborted

LONG = blob(b"a record of more than ten bytes")


def run(
    ways: str, folder: Path, *, limits: RecordLimits | None = None, read_only: bool = False
) -> tuple[str, str, InterlaceResult]:
    """How an exchange of one record ended for the receiver: abort, detail, result."""
    lace.open(folder / "b.lace", create=True).close()
    with (
        lace.open(folder / "a.lace", create=True) as giver,
        lace.open(folder / "b.lace", read_only=read_only, limits=limits) as taker,
    ):
        giver.put_stored(LONG)
        if ways == "wire":
            with serve(giver, f"unix:{folder}/s", expose="all") as bound:
                outcome = connect(taker, bound[0])
            return outcome.abort, outcome.detail, outcome.result
        try:
            return "", "", interlace(taker, giver, their_expose="all").first
        except ExchangeAborted as abort:
            return abort.reason.value, abort.detail, abort.results[0]


@pytest.mark.parametrize("ways", ["process", "wire"])
def test_a_record_over_the_limits_of_a_lace_is_not_asked_for_and_the_exchange_goes_on(
    ways: str, tmp_path: Path
) -> None:
    abort, _, result = run(ways, tmp_path, limits=RecordLimits(max_data_bytes=10))
    assert abort == ""
    assert result.held_back == {"policy": 1}
    assert not result.rejected_hashes
    assert not result.received_hashes
    assert result.bytes_received == 0


@pytest.mark.parametrize("ways", ["process", "wire"])
def test_a_store_that_cannot_be_written_is_a_local_failure(ways: str, tmp_path: Path) -> None:
    abort, detail, result = run(ways, tmp_path, read_only=True)
    assert abort == AbortReason.LOCAL_FAILURE.value
    assert "read" in detail
    assert not result.received_hashes
