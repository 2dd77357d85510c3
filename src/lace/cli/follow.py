"""`lace follow PATH PEER`: an open exchange, told event by event."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lace.cli.failure import ExitCode
from lace.cli.leaving import leave_at_once
from lace.cli.links import captured, make_node
from lace.cli.localpeer import follow_locally, require_lace
from lace.cli.output import json_option, print_json, say
from lace.cli.peerchoices import PeerChoices, peer_command
from lace.cli.side import Side, opened_side

if TYPE_CHECKING:
    from lace.interlace.events import Event
    from lace.interlace.terms import Terms
    from lace.runtime.node import Hooks, LinkInfo
    from lace.runtime.session import Outcome


@click.command("follow")
@peer_command
@click.option("--ticks", is_flag=True, help="Tell when the shared time moves, too.")
@json_option
def command(asked: PeerChoices, ticks: bool, as_json: bool) -> ExitCode:
    """Keep an exchange with a peer open and print what happens.

    Records move as soon as either side stores them. When the connection is lost it is made again, after growing
    pauses, and the exchange goes on where it was. PATH is a lace or an archive (`lace archive`). Ends on SIGTERM or
    Ctrl-C.
    """
    if isinstance(asked.address, Path):
        return follow_locally(require_lace(asked.path), asked.address, asked.local(), as_json=as_json, ticks=ticks)
    terms = asked.terms(is_open=True)
    with opened_side(asked.path, asked.master) as side:
        asyncio.run(_follow(side, asked, terms, as_json=as_json, ticks=ticks))
    return ExitCode.OK


async def _follow(side: Side, asked: PeerChoices, terms: Terms, *, as_json: bool, ticks: bool) -> None:
    from lace.runtime.node import Hooks
    from lace.workers.allocator import keep_freed_memory

    keep_freed_memory()
    hooks = Hooks()
    _print_events(hooks, as_json=as_json, ticks=ticks)
    with captured(asked.trace, hooks):
        node = make_node(side.store, asked.link(), hooks, side.limits(), make_host=side.make_host)
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        node.keep_in_background(asked.address, terms)
        await stop.wait()
        if not await node.shutdown():
            leave_at_once("an evaluation was still running and is given up", ExitCode.OK)


def _print_events(hooks: Hooks, *, as_json: bool, ticks: bool) -> None:
    from lace.cli.events import event_fields, event_text
    from lace.interlace.events import Ticked

    def tell(what: str, said: str, **fields: object) -> None:
        if as_json:
            print_json({"event": what, **fields})
        else:
            say(said)
        sys.stdout.flush()

    def on_event(info: LinkInfo, event: Event) -> None:
        if ticks or not isinstance(event, Ticked):
            tell("exchange", event_text(event), **event_fields(event))

    def on_open(info: LinkInfo) -> None:
        who = f" as {info.peer}" if info.peer else ""
        tell("open", f"connected to {info.address}{who}", address=info.address, peer=info.peer)

    def on_end(info: LinkInfo, outcome: Outcome) -> None:
        how = f": {outcome.abort} ({outcome.detail})" if outcome.abort else ""
        tell("end", f"disconnected{how}", abort=outcome.abort or None, detail=outcome.detail or None)

    hooks.on_open, hooks.on_event, hooks.on_end = on_open, on_event, on_end
    hooks.on_trouble = lambda text: tell("trouble", text, text=text)
