"""`lace tap` between two peers: everything passes, everything is told."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from interlace.pair import blob
from interop.harness import exchange_once, serving
from interop.test_node import eventually
from lace.cli.commands.tap import Printer, relay
from lace.iltp.address import UnixAddress


def test_a_tap_passes_an_exchange_on_and_tells_both_directions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def run() -> None:
        async with serving([blob(b"far")], tmp_path) as server:
            address = UnixAddress(str(tmp_path / "tap.sock"))
            printer = Printer(show_facts=True, as_json=False)
            relaying = asyncio.create_task(relay(address, server.address, printer))
            await eventually(Path(address.path).exists)
            outcome, store = await exchange_once(address, [blob(b"near")])
            assert outcome.is_complete
            assert len(outcome.result.received_hashes) == len(outcome.result.sent_hashes) == 1
            assert store.stat().records == 2
            await eventually(lambda: printer.faults == 0)
            relaying.cancel()
            await asyncio.gather(relaying, return_exceptions=True)

    asyncio.run(run())
    said = capsys.readouterr().out
    for text in (" > ", " < ", "preface", "1 ExchangeOperand", "Advertised('B.", "record", "close"):
        assert text in said
    assert "HelloLimit('x_differences_take','256')" in said
    assert "MayRequest" not in said  # both take what they lack unnamed (070)


def test_a_tap_before_nobody_drops_the_caller(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def run() -> None:
        address = UnixAddress(str(tmp_path / "tap.sock"))
        printer = Printer(show_facts=False, as_json=True)
        relaying = asyncio.create_task(relay(address, UnixAddress(str(tmp_path / "nobody")), printer))
        await eventually(Path(address.path).exists)
        outcome, _ = await exchange_once(address, [])
        assert outcome.abort
        relaying.cancel()
        await asyncio.gather(relaying, return_exceptions=True)

    asyncio.run(run())
    assert "cannot reach" in capsys.readouterr().err
