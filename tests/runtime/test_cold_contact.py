"""How often two nodes that have never met wait for each other (070, taking), and which of them take unasked."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from interlace.pair import ALL, EXPOSE_ALL, group_module, plex
from lace.iltp.address import UnixAddress, parse_address
from lace.interlace.setup.terms import Terms
from lace.policy.exposure import Exposure
from lace.records.validate import validate
from lace.runtime.clock import SystemClock
from lace.runtime.host.quotas import Allowance, Quotas
from lace.runtime.link.session import Outcome
from lace.runtime.local.preview import Preview, PreviewHost
from lace.runtime.node.links import Hooks, LinkInfo
from lace.runtime.node.node import Node
from lace.runtime.trace.trace import Passed, Told, TraceReader
from lace.store.memory import MemoryStore
from lace.transports.base import TransportProof
from lace.transports.dial import TransportOptions

SOME = (Exposure.author("AllowQueryRecord(V,P) :- Have(P), Field(P,'Group',_,'u')."),)


@dataclass
class Heard:
    """A tap that tells what came."""

    told: list[Told] = field(default_factory=list)
    reader: TraceReader = field(default_factory=TraceReader)

    def received(self, data: bytes) -> None:
        self.told += self.reader.feed(Passed(0, "in", data))

    def sent(self, data: bytes) -> None: ...

    @property
    def blocks(self) -> int:
        return sum(one.kind == "end" for one in self.told)

    @property
    def text(self) -> str:
        return "\n".join(line for one in self.told for line in one.facts)


def node(store: MemoryStore, heard: Heard | None = None, **options: Any) -> Node:
    def tap(_: LinkInfo) -> Heard:
        assert heard is not None
        return heard

    clock = SystemClock()
    hooks = Hooks(make_tap=tap if heard is not None else None)
    return Node(store, TransportOptions(clock=clock.tai), clock, hooks=hooks, **options)


def stores(near: int = 5, far: int = 5) -> list[MemoryStore]:
    found = [MemoryStore(), MemoryStore()]
    for store, name, many in zip(found, ("near", "far"), (near, far), strict=True):
        store.put([validate(plex(f"{name}/{n}")) for n in range(many)])
    return found


def have(store: MemoryStore) -> set[str]:
    return {str(record) for _, record in store.records_since()}


def meet(folder: Path, both: list[MemoryStore], near: dict[str, Any], far: dict[str, Any]) -> tuple[Outcome, Heard]:
    """One exchange over a socket: how it ended for the side that dialled, and what that one heard."""
    heard = Heard()

    async def run() -> Outcome:
        terms = [
            Terms(module=side.pop("module", ALL), exposures=side.pop("exposures", EXPOSE_ALL)) for side in (near, far)
        ]
        client, server = node(both[0], heard, **near), node(both[1], **far)
        try:
            address = await server.listen(UnixAddress(str(folder / "s.sock")), terms[1])
            return await asyncio.wait_for(client.exchange(address, terms[0]), 60)
        finally:
            await client.shutdown()
            await server.shutdown()

    return asyncio.run(run()), heard


@pytest.mark.clause("070-TAKE-03", "070-TAKE-04")
def test_two_nodes_that_never_met_are_done_in_four_turns(tmp_path: Path) -> None:
    """Setup crosses ours; then hello, listing, records with what was not available, and the last listing."""
    both = stores()
    outcome, heard = meet(tmp_path, both, {}, {})
    assert outcome.is_complete
    assert outcome.result.fixed_point
    assert have(both[0]) == have(both[1])
    assert len(have(both[0])) == 10
    assert heard.blocks == 1 + 4 + 1
    assert "MayRequest" not in heard.text
    assert heard.text.count("HelloLimit('x_differences_take','256')") == 1
    kinds = [one.kind for one in heard.told]
    assert kinds.count("record") == 5
    again, heard = meet(tmp_path, both, {}, {})
    assert again.result.fixed_point
    assert heard.blocks == 1 + 2  # nothing new: hello, and one line


@pytest.mark.clause("070-TAKE-02")
@pytest.mark.parametrize("which", ["near", "far"])
@pytest.mark.parametrize(
    "unlike",
    [
        {"exposures": SOME},
        {"exposures": ()},
        {"quotas": Quotas(total=Allowance(records=1000))},
        {"quotas": Quotas(known_peer=Allowance(bytes=1 << 30))},
        {"standard": True},
        {"module": group_module("u"), "exposures": SOME},
    ],
    ids=["some are shown", "none is shown", "records are counted", "bytes are counted", "standard", "selected"],
)
def test_a_node_that_may_not_want_what_it_does_not_list_asks(
    tmp_path: Path, which: str, unlike: dict[str, Any]
) -> None:
    both = stores()
    sides: dict[str, dict[str, Any]] = {"near": {}, "far": {}, which: dict(unlike)}
    outcome, heard = meet(tmp_path, both, sides["near"], sides["far"])
    assert outcome.result.fixed_point
    assert ("x_differences_take" in heard.text) == (which == "near")
    assert len(outcome.result.received_hashes) == (0 if which == "far" and unlike == {"exposures": ()} else 5)
    if outcome.result.sent_hashes or outcome.result.unconfirmed_hashes:
        assert "MayRequest" in heard.text


def test_who_only_looks_moves_nothing_whatever_the_other_would_take(tmp_path: Path) -> None:
    both, found = stores(), Preview()
    terms = Terms(module=ALL, exposures=EXPOSE_ALL)
    near = {"make_host": lambda *_: PreviewHost(both[0], terms, found)}
    outcome, heard = meet(tmp_path, both, near, {})
    assert outcome.result.fixed_point
    assert "x_differences_take" in heard.text
    assert [len(have(store)) for store in both] == [5, 5]
    assert not [one for one in heard.told if one.kind == "record"]
    assert len(found.wanted) == 5
    assert len(found.asked_for) == 5


@pytest.mark.clause("070-TAKE-02")
def test_from_strangers_that_others_let_in_nothing_is_taken_unasked() -> None:
    async def run() -> list[int]:
        one = node(MemoryStore())
        terms = Terms(module=ALL, exposures=EXPOSE_ALL, max_taken=9)
        try:
            return [
                one._hosting.takes(terms, TransportProof(address=parse_address(address)), known)
                for address in ("tcp:192.0.2.1:9", "tcp:127.0.0.1:9", "unix:/run/s")
                for known in (False, True)
            ]
        finally:
            await one.shutdown()

    assert asyncio.run(run()) == [0, 9, 9, 9, 9, 9]
