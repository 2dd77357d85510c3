"""Ended exchanges leave nothing for the cycle collector: a server's memory must not wait for it to look (050)."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from interlace.pair import ALL, EXPOSE_ALL, group_module, plex
from interop.harness import filled, make_node, terms_of
from lace.policy.operand import Module
from lace.runtime.local.local import exchange
from lace.runtime.local.party import Party, local_terms
from transports.endpoints import any_port

RECORDS = [plex(f"n{number}", group="uv"[number % 2]) for number in range(40)]
MODULES = [
    ALL,
    group_module("u"),
    Module.author(
        "SelectHave(P) :- Have(P), not Blocked(P).\n"
        "Blocked(P) :- Field(P,'Name',_,'n3'), Cardinality(Have(_),'>','2').\n"
        "SelectAdvertised(P,S) :- Advertised(P,S), not AdvertisedField(P,S,'Group','0','v')."
    ),
]


@contextmanager
def uncollected(found: list[object]) -> Iterator[None]:
    """Run without the collector; what it would have found of ours is in the list afterwards.

    What was there before is set aside, and stays there: a search through all that other tests left takes longer than
    the exchange, and each later search would take as long again.
    """
    gc.disable()
    gc.freeze()
    try:
        yield
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        found += [item for item in gc.garbage if type(item).__module__.startswith("lace")]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


@pytest.mark.parametrize("is_direct", [True, False])
@pytest.mark.parametrize("module", range(len(MODULES)))
def test_an_exchange_in_one_process_leaves_no_cycles(module: int, is_direct: bool) -> None:
    def once() -> None:
        stores = filled(RECORDS[:25]), filled(RECORDS[15:])
        terms = local_terms(MODULES[module], EXPOSE_ALL, partition_threshold_bytes=100)
        exchange(*(Party(store=store, terms=terms) for store in stores), is_direct=is_direct)

    once()  # what is made once for all exchanges is made here
    found: list[object] = []
    with uncollected(found):
        once()
    assert not found


def test_links_that_ended_leave_no_cycles(tmp_path: Path) -> None:
    async def run() -> list[object]:
        found: list[object] = []
        server, peer = make_node(filled(RECORDS[:25])), make_node(filled(RECORDS[15:]))
        address = await server.listen(any_port("unix", tmp_path), terms_of())
        try:
            for turn in range(2):
                kept: list[object] = []
                with uncollected(kept):
                    assert (await peer.exchange(address, terms_of(is_open=False))).is_complete
                    while server.metrics.get("connections_active"):
                        await asyncio.sleep(0.01)
                found += kept if turn else []
        finally:
            await peer.shutdown()
            await server.shutdown()
        return found

    assert not asyncio.run(run())
