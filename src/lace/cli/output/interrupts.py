"""Interrupting a command whose threads still have work that nobody waits for any more.

Rule: nothing that was acknowledged depends on such a thread: a commit is durable before it is reported, and one that is
cut short is rolled back the next time the lace is opened.
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
SIGNALLED = 128  # a shell adds the number of the signal to this


def leave_at_once(why: str, code: int) -> NoReturn:
    """End the process without waiting for its threads, as Python otherwise would."""
    say(why, err=True)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


async def first_of(*events: asyncio.Event) -> None:
    """Wait until one of the events is set."""
    waiting = [asyncio.ensure_future(event.wait()) for event in events]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for waiter in waiting:
        waiter.cancel()


async def done_or_stopped(work: Callable[[], None], stop: asyncio.Event) -> None:
    """Run slow work in a thread, and wait until it is done or `stop` is set."""
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    failed: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - raised again by the waiting side
            failed.append(error)
        with suppress(RuntimeError):  # of a loop that has ended
            loop.call_soon_threadsafe(over.set)

    threading.Thread(target=run, name="lace-ready", daemon=True).start()
    await first_of(over, stop)
    if failed:
        raise failed[0]


def run_until_interrupted(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end; Ctrl-C or SIGTERM ends the command immediately, whatever it is doing."""

    async def guarded() -> T:
        loop = asyncio.get_running_loop()
        # Only the main thread of a program receives signals; in any other they are somebody else's business.
        with suppress(ValueError, RuntimeError, NotImplementedError):
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, leave_at_once, "interrupted", SIGNALLED + number)
        return await work

    return asyncio.run(guarded())


def leave_when_interrupted() -> None:
    """From now until this command ends, Ctrl-C ends the process, whatever it waits for.

    For a command that waits for a JVM: PySpark's own handler calls the JVM in the middle of another call, and all that
    the user would see is how that fails. The JVM ends when nobody holds the other end of its pipe.
    """
    with suppress(ValueError):  # only the main thread may set handlers
        before = signal.signal(signal.SIGINT, _leave)
        context = click.get_current_context(silent=True)
        if context is not None:
            context.call_on_close(partial(signal.signal, signal.SIGINT, before))


def _leave(number: int, _: object) -> NoReturn:
    with suppress(RuntimeError, OSError):  # the main thread may be in the middle of a write
        sys.stdout.flush()
    os.write(2, b"interrupted\n")
    os._exit(SIGNALLED + number)
