"""`lace follow PATH PEER`: an open exchange, printed event by event."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lace.cli.exchange.local import follow_locally
from lace.cli.options.links import captured, make_node
from lace.cli.options.peerchoices import PeerChoices, peer_command, require_lace
from lace.cli.options.remotes import keep_outcome
from lace.cli.options.side import Side, opened_side, watching_policy
from lace.cli.output.failure import ExitCode, leave_quietly
from lace.cli.output.interrupts import first_of, leave_at_once
from lace.cli.output.output import json_option, print_json, say

if TYPE_CHECKING:
    from lace.interlace.events import Event
    from lace.runtime.link.session import Outcome
    from lace.runtime.node.links import OnEnd
    from lace.runtime.node.node import Hooks, LinkInfo


@click.command("follow")
@peer_command
@click.option("--ticks", is_flag=True, help="Also print when the shared time moves.")
@json_option
def command(asked: PeerChoices, ticks: bool, as_json: bool) -> ExitCode:
    """Keep an exchange with a peer open and print what happens.

    Records move as soon as either side stores them. A lace that carries a policy goes by it; when a newer one arrives,
    the exchange continues under that. If the connection is lost, lace dials again after growing pauses and resumes the
    exchange. PATH is a lace or an archive (`lace archive`). Ends on SIGTERM, Ctrl-C or when its terminal closes.
    """
    if isinstance(asked.address, Path):
        return follow_locally(require_lace(asked.path), asked.address, asked.local(), as_json=as_json, ticks=ticks)
    asked.require_sense()
    printer = _EventPrinter(as_json=as_json, ticks=ticks)
    hooks = printer.hooks()
    with ExitStack() as opened_first:  # a missing lace is reported before anything else is created
        side = opened_first.enter_context(opened_side(asked.path, asked.master))
        with captured(asked.trace, hooks):
            goes_on = asyncio.run(_follow(side, asked, hooks, printer))
            opened_first.close()
            while goes_on:
                with opened_side(asked.path, asked.master) as side:
                    goes_on = asyncio.run(_follow(side, asked, hooks, printer))
    return ExitCode.BROKEN_PIPE if printer.has_no_reader else ExitCode.OK


async def _follow(side: Side, asked: PeerChoices, hooks: Hooks, printer: _EventPrinter) -> bool:
    """Follow until somebody ends it, or the lace was rewritten and must be reopened; returns whether it must."""
    from lace.workers.allocator import keep_freed_memory

    keep_freed_memory()
    if asked.remote is not None:
        hooks.on_end = partial(_ended, side, asked.remote, printer.hooks().on_end)
    node = make_node(side.store, side.with_quotas(asked.link()), hooks, side.limits(), make_host=side.make_host)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    printer.on_no_reader = stop.set
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    terms = asked.terms(side.lace, is_open=True)
    with watching_policy(side, asked.rules, node, printer.policy):
        node.keep_in_background(asked.address, terms)
        await first_of(stop, node.outdated)
    if not await node.shutdown():
        leave_at_once("abandoned an evaluation that was still running", ExitCode.OK)
    return not stop.is_set()


def _ended(side: Side, remote: str, tell: OnEnd | None, info: LinkInfo, outcome: Outcome) -> None:
    keep_outcome(side.store, remote, outcome)
    if tell is not None:
        tell(info, outcome)


class _EventPrinter:
    """Prints what happens on a link, until nobody reads it any more."""

    def __init__(self, *, as_json: bool, ticks: bool) -> None:
        self._as_json, self._ticks = as_json, ticks
        self.has_no_reader = False
        self.on_no_reader: Callable[[], None] = lambda: None

    def hooks(self) -> Hooks:
        from lace.runtime.node.node import Hooks

        return Hooks(on_open=self._opened, on_event=self._event, on_end=self._ended, on_trouble=self._trouble)

    def _tell(self, what: str, said: str, **fields: object) -> None:
        if self.has_no_reader:
            return
        try:
            if self._as_json:
                print_json({"event": what, **fields})
            else:
                say(said)
            sys.stdout.flush()
        except BrokenPipeError:  # `lace follow … | head`
            self.has_no_reader = True
            leave_quietly()
            self.on_no_reader()

    def _event(self, info: LinkInfo, event: Event) -> None:
        from lace.cli.output.events import event_fields, event_text
        from lace.interlace.events import Ticked

        if self._ticks or not isinstance(event, Ticked):
            self._tell("exchange", event_text(event), **event_fields(event))

    def _opened(self, info: LinkInfo) -> None:
        who = f" as {info.peer}" if info.peer else ""
        self._tell("open", f"connected to {info.address}{who}", address=info.address, peer=info.peer)

    def _ended(self, info: LinkInfo, outcome: Outcome) -> None:
        how = f": {outcome.abort} ({outcome.detail})" if outcome.abort else ""
        self._tell("end", f"disconnected{how}", abort=outcome.abort or None, detail=outcome.detail or None)

    def policy(self, lines: Sequence[str]) -> None:
        """A newer policy is in force."""
        for line in lines:
            self._tell("policy", line, text=line)

    def _trouble(self, text: str) -> None:
        self._tell("trouble", text, text=text)
