"""Ending a command whose threads have work left that nobody waits for any more.

Rule: nothing that was acknowledged hangs on such a thread: a commit is durable before it is told, and one that is cut
short is rolled back by the next who opens the lace.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, NoReturn, TypeVar

from lace.cli.output import say

T = TypeVar("T")
SIGNALLED = 128  # a shell's exit code for a signal begins here


def leave_at_once(why: str, code: int) -> NoReturn:
    """End the process without waiting for its threads, which Python would do."""
    say(why, err=True)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


async def first_of(*events: asyncio.Event) -> None:
    """Wait until one of some things has happened."""
    waiting = [asyncio.ensure_future(event.wait()) for event in events]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for waiter in waiting:
        waiter.cancel()


def run_until_interrupted(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end; Ctrl-C or SIGTERM ends the command there and then, whatever is under way."""

    async def guarded() -> T:
        loop = asyncio.get_running_loop()
        # Only the main thread of a program can be told of signals; elsewhere they are somebody else's.
        with suppress(ValueError, RuntimeError, NotImplementedError):
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, leave_at_once, "interrupted", SIGNALLED + number)
        return await work

    return asyncio.run(guarded())
