"""Ending a command whose threads have work left that nobody waits for any more.

Rule: nothing that was acknowledged hangs on such a thread: a commit is durable before it is told, and one that is cut
short is rolled back by the next who opens the lace.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, NoReturn, TypeVar

import click

from lace.cli.output.output import say

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


async def done_or_stopped(work: Callable[[], None], stop: asyncio.Event) -> None:
    """Have something done aside, which may take long, and wait until it is, or nobody wants it any more."""
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    failed: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - it belongs to whoever waits
            failed.append(error)
        with suppress(RuntimeError):  # of a loop that has ended
            loop.call_soon_threadsafe(over.set)

    threading.Thread(target=run, name="lace-ready", daemon=True).start()
    await first_of(over, stop)
    if failed:
        raise failed[0]


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


def leave_when_interrupted() -> None:
    """From now until this command is over Ctrl-C ends the process, whatever it waits for.

    For a command that waits for a JVM: PySpark's own handler speaks to it in the middle of what was being said, and all
    that a user would see is how that goes wrong. The JVM ends when nobody holds the other end of its pipe.
    """
    with suppress(ValueError):  # only the main thread is told of signals
        before = signal.signal(signal.SIGINT, _leave)
        context = click.get_current_context(silent=True)
        if context is not None:
            context.call_on_close(partial(signal.signal, signal.SIGINT, before))


def _leave(number: int, _: object) -> NoReturn:
    with suppress(RuntimeError, OSError):  # it may be in the middle of a write
        sys.stdout.flush()
    os.write(2, b"interrupted\n")
    os._exit(SIGNALLED + number)
