"""Hooks may be async; one that raises is reported and harms no exchange; one that decides and fails is a refusal."""

from __future__ import annotations

import asyncio
import gc
import logging
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import lace
from lace.porcelain.lace import Lace
from lace.porcelain.node import LaceNode
from lace.runtime.node.hookcalls import HookCalls

HOOKS = ("on_open", "on_event", "on_end", "on_trouble", "on_limited", "make_tap")
WITHIN_S = 20  # far below the 30 s after which a peer gives up by itself: whoever waits for those fails here


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Lace, Lace]]:
    with lace.open(tmp_path / "a.lace", create=True) as first, lace.open(tmp_path / "b.lace", create=True) as second:
        first.put(b"x", group="u", app="ding", name="1")
        yield first, second


def bounded(work: Any) -> Any:
    return asyncio.run(asyncio.wait_for(work, WITHIN_S))


@asynccontextmanager
async def meeting(pair: tuple[Lace, Lace], path: Path, **server: Any) -> AsyncIterator[tuple[LaceNode, LaceNode, str]]:
    async with lace.Node(pair[0], expose="all", **server) as serving, lace.Node(pair[1]) as client:
        (address,) = await serving.serve(f"unix:{path}/s.sock")
        yield serving, client, address


def raising(*_: object) -> None:
    raise ZeroDivisionError("of the application")


async def raising_later(*_: object) -> None:
    await asyncio.sleep(0)
    raise ZeroDivisionError("of the application")


@pytest.mark.parametrize("hook", [raising, raising_later], ids=["at-once", "async"])
@pytest.mark.parametrize("name", [name for name in HOOKS if name not in ("on_limited", "on_trouble")])
def test_a_hook_that_raises_is_reported_and_harms_nothing(
    pair: tuple[Lace, Lace], tmp_path: Path, name: str, hook: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    troubles: list[str] = []
    hooks = lace.Hooks(on_trouble=troubles.append)
    setattr(hooks, name, hook)

    async def run() -> None:
        async with meeting(pair, tmp_path, hooks=hooks) as (_, client, address):
            for _ in range(2):  # the second peer is served as the first is
                assert (await client.connect(address)).result.fixed_point

    with caplog.at_level(logging.ERROR, "lace.hooks"):
        bounded(run())
    assert any(name in text for text in troubles), troubles
    assert any(name in record.getMessage() for record in caplog.records)
    assert pair[1].get("//u//ding//1") == b"x"


def test_trouble_that_cannot_be_told_is_logged(
    pair: tuple[Lace, Lace], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        hooks = lace.Hooks(on_open=raising, on_trouble=raising)
        async with meeting(pair, tmp_path, hooks=hooks) as (_, client, address):
            assert (await client.connect(address)).result.fixed_point

    with caplog.at_level(logging.ERROR, "lace.hooks"):
        bounded(run())
    assert {record.getMessage() for record in caplog.records} == {"on_open failed", "on_trouble failed"}


def test_a_tap_that_raises_is_left_out(pair: tuple[Lace, Lace], tmp_path: Path) -> None:
    troubles: list[str] = []

    class Bad:
        received = sent = staticmethod(raising)

    class Async:
        received = sent = staticmethod(raising_later)

    async def run() -> None:
        for tap in (Bad(), Async()):
            hooks = lace.Hooks(make_tap=lambda _, tap=tap: tap, on_trouble=troubles.append)
            async with meeting(pair, tmp_path, hooks=hooks) as (_, client, address):
                assert (await client.connect(address)).result.fixed_point

    bounded(run())
    assert len(troubles) == 2
    assert all("tap failed" in text for text in troubles)


def test_async_hooks_hear_everything_in_order(pair: tuple[Lace, Lace], tmp_path: Path) -> None:
    at_once: list[str] = []
    later: list[str] = []

    def hooks(heard: list[str], *, slow: bool) -> lace.Hooks:
        async def hear(*what: object) -> None:
            await asyncio.sleep(0)
            heard.append(type(what[-1]).__name__)

        def now(*what: object) -> None:
            heard.append(type(what[-1]).__name__)

        told = hear if slow else now
        return lace.Hooks(on_open=told, on_event=told, on_end=told)

    async def run() -> None:
        for heard, slow in ((at_once, False), (later, True)):
            with lace.open(":memory:") as into:
                async with meeting((pair[0], into), tmp_path, hooks=hooks(heard, slow=slow)) as (_, client, address):
                    assert (await client.connect(address)).result.fixed_point

    bounded(run())
    assert at_once == later
    assert at_once[0] == "LinkInfo"
    assert at_once[-1] == "Outcome"


def test_calls_of_a_hook_that_is_too_slow_are_bounded() -> None:
    failures: list[tuple[str, Exception]] = []
    heard: list[int] = []

    async def run() -> None:
        calls = HookCalls(lambda name, error: failures.append((name, error)), max_waiting=10)
        go = asyncio.Event()

        async def slow(number: int) -> None:
            await go.wait()
            heard.append(number)

        for number in range(100):
            calls.call("slow", slow, number)
        go.set()
        await calls.settle(5)

    bounded(run())
    assert heard == list(range(10))
    assert [(name, type(error)) for name, error in failures] == [("slow", lace.LimitExceeded)]


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("how", ["raises", "bad-policy", "late"])
def test_a_decision_that_fails_is_a_refusal_at_once(
    pair: tuple[Lace, Lace], tmp_path: Path, how: str, is_async: bool
) -> None:
    troubles: list[str] = []
    failing = True

    def decide(_: object) -> lace.Policy:
        if failing and how != "late":
            if how == "raises":
                raising()
            return lace.Policy(expose="selectd")
        return lace.Policy(expose="all")

    async def decide_later(proof: object) -> lace.Policy:
        await asyncio.sleep(3600 if failing and how == "late" else 0)
        return decide(proof)

    if how == "late" and not is_async:
        pytest.skip("a function that blocks, blocks")

    async def run() -> None:
        nonlocal failing
        given: dict[str, Any] = {"hooks": lace.Hooks(on_trouble=troubles.append)}
        given["limits"] = lace.NodeLimits(decide_s=0.05)
        async with meeting(pair, tmp_path, policy_for=decide_later if is_async else decide, **given) as found:
            _, client, address = found
            assert (await client.connect(address)).abort
            failing = False
            assert (await client.connect(address)).result.fixed_point  # and the next one is served

    bounded(run())
    assert any("policy_for failed" in text for text in troubles), troubles


def test_a_hook_of_connect_serve_and_relay_may_be_async_and_may_raise(pair: tuple[Lace, Lace], tmp_path: Path) -> None:
    heard: list[object] = []

    async def hear(*what: object) -> None:
        heard.append(what[-1])

    for hook in (hear, raising, raising_later):
        hooks = lace.Hooks(on_event=hook)
        with lace.serve(pair[0], f"unix:{tmp_path}/s.sock", expose="all", hooks=hooks) as (address,):
            assert lace.connect(pair[1], address, hooks=hooks).result.fixed_point
            with lace.serve(pair[1], f"unix:{tmp_path}/t.sock", expose="all", hooks=hooks) as (other,):
                assert all(outcome.result.fixed_point for outcome in lace.relay(address, other, on_event=hook))
    assert heard


def test_an_exchange_in_this_process_raises_what_its_hook_raises(pair: tuple[Lace, Lace]) -> None:
    with pytest.raises(ZeroDivisionError):
        lace.exchange(*pair, expose="all", on_event=raising)
    with pytest.raises(TypeError, match="cannot be async"):
        lace.exchange(*pair, expose="all", on_event=raising_later)  # type: ignore[arg-type]
    assert lace.exchange(*pair, expose="all").moved == 1


def test_listeners_that_left_are_forgotten(pair: tuple[Lace, Lace], tmp_path: Path) -> None:
    async def run() -> None:
        async with meeting(pair, tmp_path) as (server, client, address):
            for _ in range(3):
                events = server.events()
                await client.connect(address)
                async for _ in events:
                    break
                del events
            listening = server.events()
            kept = weakref.ref(listening)
            cancelled = asyncio.create_task(anext(listening))
            del listening
            await asyncio.sleep(0)
            assert kept() is not None
            cancelled.cancel()
            await asyncio.gather(cancelled, return_exceptions=True)
            del cancelled
            await asyncio.sleep(0)  # the loop lets go of the task
            gc.collect()
            assert kept() is None
            closed = server.events()
            await closed.aclose()
            await client.connect(address)
            assert [event async for event in closed] == []

    bounded(run())
