"""Calls into an application's hooks, which may be plain functions or `async def`.

Rule: a hook that only listens never changes what it listens to. What it raises is reported; what it awaits is awaited
beside the exchange, one after the other, in the order in which things happened.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from inspect import isawaitable, iscoroutine
from typing import Any

from lace.errors import LimitExceeded
from lace.runtime.trace.tap import Tap

Failed = Callable[[str, Exception], None]
"""Which hook failed, and how."""

MAX_WAITING = 10_000  # calls of async hooks that wait for their turn


class HookCalls:
    """The hooks of one node or relay, called on its event loop."""

    def __init__(self, on_failure: Failed, max_waiting: int = MAX_WAITING) -> None:
        self._on_failure = on_failure
        self._max_waiting = max_waiting
        self._waiting: deque[tuple[str, Awaitable[object]]] = deque()
        self._runner: asyncio.Task[None] | None = None
        self._is_behind = False

    def call(self, name: str, hook: Callable[..., Awaitable[None] | None] | None, *what: Any) -> None:
        """Tell a hook, if there is one."""
        if hook is None:
            return
        try:
            coming = hook(*what)
        except Exception as error:  # noqa: BLE001 - of the application: reported, and no concern of the exchange
            self._on_failure(name, error)
            return
        if isawaitable(coming):
            self._queue(name, coming)

    def _queue(self, name: str, coming: Awaitable[object]) -> None:
        if len(self._waiting) >= self._max_waiting:
            drop(coming)
            if not self._is_behind:
                self._is_behind = True
                detail = "the hook is slower than what happens; until it has caught up it is told of nothing more"
                self._on_failure(name, LimitExceeded("max_waiting", self._max_waiting, detail))
            return
        self._waiting.append((name, coming))
        if self._runner is None or self._runner.done():
            self._runner = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        while self._waiting:
            name, coming = self._waiting.popleft()
            try:
                await coming
            except Exception as error:  # noqa: BLE001 - as above
                self._on_failure(name, error)
        self._is_behind = False

    async def settle(self, seconds: float) -> None:
        """Let what waits run for so long; what is left is given up."""
        if self._runner is not None and not self._runner.done():
            await asyncio.wait([self._runner], timeout=seconds)
            self._runner.cancel()
            await asyncio.gather(self._runner, return_exceptions=True)
        while self._waiting:
            drop(self._waiting.popleft()[1])


class HarmlessTap:
    """A tap of the application: the first time that it fails is reported, and then it is left out."""

    def __init__(self, tap: Tap, on_failure: Failed) -> None:
        self._tap: Tap | None = tap
        self._on_failure = on_failure

    def received(self, data: bytes) -> None:
        if self._tap is not None:
            self._show(self._tap.received, data)

    def sent(self, data: bytes) -> None:
        if self._tap is not None:
            self._show(self._tap.sent, data)

    def _show(self, method: Callable[[bytes], object], data: bytes) -> None:
        try:
            refuse_awaitable(method(data), "a tap is called with bytes as they pass and cannot be async")
        except Exception as error:  # noqa: BLE001 - as above
            self._tap = None
            self._on_failure("tap", error)


def refuse_awaitable(answer: object, why: str) -> None:
    """TypeError for the answer of an `async def` where nobody can wait."""
    if isawaitable(answer):
        drop(answer)
        raise TypeError(why)


def drop(coming: Awaitable[object]) -> None:
    """Let go of what will not be awaited, without Python's warning about that."""
    if iscoroutine(coming):
        coming.close()
    elif isinstance(coming, asyncio.Future):
        coming.cancel()
