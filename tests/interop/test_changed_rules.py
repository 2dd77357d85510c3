"""Rules that change on open links, over real sockets, in both roles (050 open exchange, P20)."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import lace
from interop.harness import PATIENCE_S, serving, terms_of
from lace.errors import LaceError
from lace.interlace.events import EpochBegan, FixedPoint
from lace.limits import EngineLimits
from lace.porcelain.lace import Lace
from lace.transports.base import TransportProof


@dataclass
class Heard:
    """What the node of a test was told."""

    opened: list[lace.LinkInfo] = field(default_factory=list)
    ended: list[lace.Outcome] = field(default_factory=list)
    epochs: list[int] = field(default_factory=list)
    fixed: int = 0
    settled: int = 0  # the last epoch that came to a fixed point

    def hooks(self) -> lace.Hooks:
        def note(_: lace.LinkInfo, event: object) -> None:
            if isinstance(event, EpochBegan):
                self.epochs.append(event.epoch)
            if isinstance(event, FixedPoint):
                self.fixed += 1
                self.settled = self.epochs[-1]

        return lace.Hooks(
            on_open=self.opened.append, on_event=note, on_end=lambda _, outcome: self.ended.append(outcome)
        )


QUICK = lace.NodeLimits(store_poll_s=0.02, shutdown_grace_s=1.0, backoff_first_s=0.02, backoff_most_s=0.2)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Lace, Lace]]:
    with lace.open(tmp_path / "a.lace", create=True) as first, lace.open(tmp_path / "b.lace", create=True) as second:
        yield first, second


def put(into: Lace, group: str, name: str = "1") -> str:
    return into.put(f"{group} {name}".encode(), group=group, app="a", name=name)


def have(one: Lace) -> set[str]:
    return {str(record) for _, record in one.store.records_since()}


def address_of(scheme: str, tmp_path: Path) -> str:
    return {"unix": f"unix:{tmp_path}/s.sock", "tcp": "tcp:127.0.0.1:0", "ws": "ws:127.0.0.1:0"}[scheme]


async def eventually(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():
            await asyncio.sleep(0.01)


@dataclass
class Linked:
    """A server and a follower with one link between them, and what each heard."""

    nodes: tuple[lace.Node, lace.Node]
    heard: tuple[Heard, Heard]

    def assert_one_connection(self) -> None:
        assert [len(one.opened) for one in self.heard] == [1, 1]
        assert [one.ended for one in self.heard] == [[], []]


@asynccontextmanager
async def linked(
    laces: tuple[Lace, Lace], tmp_path: Path, scheme: str = "unix", select: str = "//u//", expose: str = "all"
) -> AsyncIterator[Linked]:
    heard = Heard(), Heard()
    served, following = (
        lace.Node(one, select=select, expose=expose, limits=QUICK, hooks=told.hooks())
        for one, told in zip(laces, heard, strict=True)
    )
    async with served as server, following as follower:
        (address,) = await server.serve(address_of(scheme, tmp_path))
        task = asyncio.create_task(follower.follow(address))
        await eventually(lambda: all(one.fixed for one in heard))
        yield Linked((server, follower), heard)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@pytest.mark.clause("050-OPEN-05", "050-OPEN-06", "050-OPEN-07", "050-OPEN-08")
@pytest.mark.parametrize("scheme", ["unix", "tcp", "ws"])
@pytest.mark.parametrize("changer", [0, 1], ids=["served", "dialling"])
def test_a_running_node_selects_something_else_over_the_same_connection(
    pair: tuple[Lace, Lace], tmp_path: Path, scheme: str, changer: int
) -> None:
    """Both select u and v at last; one record of each side crosses for each group, in both directions."""
    for group in "uvw":
        for index, one in enumerate(pair):
            put(one, group, f"of {index}")

    def groups(one: Lace) -> list[str]:
        return sorted(entry.group for entry in one.store.entries())

    async def run() -> None:
        async with linked(pair, tmp_path, scheme) as link:
            await eventually(lambda: groups(pair[0]) == groups(pair[1]) == list("uuvw"))
            assert link.nodes[1 - changer].change_rules(select=["//u//", "//v//"]) == 1
            await eventually(lambda: link.heard[changer].epochs == [1, 2])
            assert link.nodes[changer].change_rules(select="//v//") == 1
            await eventually(lambda: groups(pair[0]) == groups(pair[1]) == list("uuvvw"))
            assert link.nodes[changer].change_rules(select="//v//") == 0  # the same: no epoch
            # and back
            before = len(link.heard[changer].epochs)
            link.nodes[changer].change_rules(select="//u//")
            await eventually(lambda: len(link.heard[changer].epochs) > before)  # a loop under way keeps its rules
            put(pair[changer], "v", "late")
            late = put(pair[changer], "u", "late")
            await eventually(lambda: late in have(pair[1 - changer]))
            assert groups(pair[1 - changer]) == list("uuuvvw")
            link.assert_one_connection()
            assert link.heard[0].epochs == link.heard[1].epochs == [1, 2, 3, 4]

    asyncio.run(run())


@pytest.mark.clause("050-OPEN-05")
@pytest.mark.parametrize("changer", [0, 1], ids=["served", "dialling"])
def test_a_running_node_shows_something_else_over_the_same_connection(
    pair: tuple[Lace, Lace], tmp_path: Path, changer: int
) -> None:
    showing, other = pair[changer], pair[1 - changer]
    first, hidden = put(showing, "u"), put(showing, "u", "later hidden")
    showing.delete(hidden)

    async def run() -> None:
        async with linked(pair, tmp_path, expose="none") as link:
            assert have(other) == set()
            assert link.nodes[changer].change_rules(expose="all") == 1
            await eventually(lambda: have(other) == {first})
            link.nodes[changer].change_rules(expose="none")
            put(showing, "u", "later hidden")
            answer = put(other, "u", "from the other")
            link.nodes[1 - changer].change_rules(expose="all")
            await eventually(lambda: answer in have(showing))  # loops went by, and nothing more was shown in them
            assert hidden not in have(other)
            link.assert_one_connection()

    asyncio.run(run())


@pytest.mark.clause("050-OPEN-11")
def test_both_nodes_change_at_once_and_twice(pair: tuple[Lace, Lace], tmp_path: Path) -> None:
    for group in "uvw":
        put(pair[0], group)

    async def run() -> None:
        async with linked(pair, tmp_path) as link:
            for select in ("//v//", "//w//", "//u//", ["//v//", "//w//"]):  # in one turn of the loop: the last counts
                for node in link.nodes:
                    node.change_rules(select=select)
            await eventually(lambda: have(pair[0]) == have(pair[1]))
            link.assert_one_connection()
            assert all(len(one.epochs) <= 3 for one in link.heard)

    asyncio.run(run())


def test_rules_that_change_while_much_is_under_way_wait_for_it(pair: tuple[Lace, Lace], tmp_path: Path) -> None:
    for number in range(300):
        put(pair[0], "uv"[number % 2], str(number))

    async def run() -> None:
        heard = Heard()
        server = lace.Node(pair[0], select="//u//", expose="all", limits=QUICK)
        async with server, lace.Node(pair[1], select="//u//", limits=QUICK, hooks=heard.hooks()) as follower:
            (address,) = await server.serve(address_of("unix", tmp_path))
            task = asyncio.create_task(follower.follow(address))
            await eventually(lambda: bool(heard.epochs))
            for node in (server, follower):
                node.change_rules(select=["//u//", "//v//"])
            await eventually(lambda: have(pair[0]) == have(pair[1]))
            assert len(heard.opened) == 1
            task.cancel()

    asyncio.run(run())


def test_links_to_come_begin_with_the_changed_rules(pair: tuple[Lace, Lace], tmp_path: Path) -> None:
    wanted, other = put(pair[0], "u"), put(pair[0], "v")

    async def run() -> None:
        async with lace.Node(pair[0], select="//v//") as server, lace.Node(pair[1], select="//v//") as client:
            assert server.change_rules(select="//u//", expose="selected") == 0
            client.change_rules(select="all")
            (address,) = await server.serve(address_of("unix", tmp_path))
            server.change_rules()
            assert (await client.connect(address)).result.received_hashes == (wanted,)
            server.change_rules(select="all")  # what is shown follows what is selected
            assert (await client.connect(address)).result.received_hashes == (other,)
            own = await client.connect(address, policy=lace.Policy(select="//v//"))
            client.change_rules(select="//u//")
            assert own.is_complete

    asyncio.run(run())


def test_wrong_rules_raise_and_change_nothing(pair: tuple[Lace, Lace], tmp_path: Path) -> None:
    async def run() -> None:
        async with linked(pair, tmp_path) as link:
            for node in link.nodes:
                with pytest.raises(LaceError):
                    node.change_rules(select="SelectHave(P) :- Nonsense(.")
            late = put(pair[0], "u", "late")
            await eventually(lambda: late in have(pair[1]))
            link.assert_one_connection()
            assert link.heard[0].epochs == [1]
        with pytest.raises(LaceError, match="async with"):
            link.nodes[0].change_rules(select="all")

    asyncio.run(run())


def test_a_link_whose_new_rules_the_peer_refuses_ends_and_is_dialled_again_with_the_rules_of_then(
    pair: tuple[Lace, Lace], tmp_path: Path
) -> None:
    """Rules that are right by themselves and more than the peer takes."""
    few = terms_of(engine_limits=EngineLimits(max_rules=8))
    many = [f"Helper{n}(P) :- Have(P)." for n in range(9)]
    many += ["SelectHave(P) :- Helper0(P).", "SelectAdvertised(P,S) :- Advertised(P,S)."]

    async def run() -> None:
        heard = Heard()
        async with (
            serving(pair[0].store, tmp_path, terms=few) as server,
            lace.Node(pair[1], limits=QUICK, hooks=heard.hooks()) as follower,
        ):
            task = asyncio.create_task(follower.follow(str(server.address)))
            await eventually(lambda: heard.fixed > 0)
            follower.change_rules(select="\n".join(many))
            refused = await server.next_outcome()
            assert refused.abort
            assert "max_rules" in refused.detail
            await eventually(lambda: bool(heard.ended))
            follower.change_rules(select="//u//")
            late = put(pair[0], "u", "late")
            await eventually(lambda: late in have(pair[1]))
            assert len(heard.opened) > 1
            task.cancel()

    asyncio.run(run())


def test_a_peer_that_gets_no_terms_any_more_is_left(pair: tuple[Lace, Lace], tmp_path: Path) -> None:
    put(pair[0], "u")
    policies: list[lace.Policy | None] = [lace.Policy(select="//v//", expose="all")]

    def policy_for(_: TransportProof) -> lace.Policy | None:
        return policies[-1]

    async def run() -> None:
        heard = Heard()
        async with (
            lace.Node(pair[0], policy_for=policy_for, limits=QUICK, hooks=heard.hooks()) as server,
            lace.Node(pair[1], limits=QUICK) as follower,
        ):
            (address,) = await server.serve(address_of("unix", tmp_path))
            task = asyncio.create_task(follower.follow(address))
            await eventually(lambda: heard.fixed > 0)
            assert have(pair[1]) == set()
            policies.append(lace.Policy(expose="all"))
            assert server.change_rules() == 1
            await eventually(lambda: have(pair[1]) == have(pair[0]))
            policies.append(None)
            assert server.change_rules() == 0
            await eventually(lambda: bool(heard.ended))
            assert heard.ended[0].is_complete
            assert heard.epochs == [1, 2]
            task.cancel()

    asyncio.run(run())


CHILD = """
import asyncio, sys, lace
async def main(path, address):
    with lace.open(path) as notes:
        async with lace.Node(notes, select="//u//", expose="all") as node:
            task = asyncio.create_task(node.follow(address))
            loop = asyncio.get_running_loop()
            while line := (await loop.run_in_executor(None, sys.stdin.readline)).strip():
                print(node.change_rules(select=line), flush=True)
            task.cancel()
asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.long
def test_rules_change_between_two_processes(pair: tuple[Lace, Lace], tmp_path: Path) -> None:
    near, far = pair
    for group in "uv":
        put(near, group)
    far.close()
    heard = Heard()

    async def run() -> None:
        hooks = heard.hooks()
        async with lace.Node(near, select=["//u//", "//v//"], expose="all", limits=QUICK, hooks=hooks) as server:
            (address,) = await server.serve("tcp:127.0.0.1:0")
            child = subprocess.Popen(
                [sys.executable, "-c", CHILD, str(tmp_path / "b.lace"), address],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            assert child.stdin is not None
            try:
                await eventually(lambda: heard.fixed >= 1)
                child.stdin.write("//v//\n")
                child.stdin.flush()
                await eventually(lambda: heard.epochs == [1, 2])
                server.change_rules(select="//v//")
                await eventually(lambda: heard.settled == 3)
            finally:
                said, _ = child.communicate(timeout=PATIENCE_S)
            assert said.split() == ["1"]
            assert len(heard.opened) == 1

    asyncio.run(run())
    with lace.open(tmp_path / "b.lace") as again:
        assert have(again) == have(near)
