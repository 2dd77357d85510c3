"""`lace follow PATH PEER`: an open exchange, printed event by event."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lace.cli.exchange.local import follow_locally
from lace.cli.options.links import captured, make_node
from lace.cli.options.names import name_of
from lace.cli.options.peerchoices import PeerChoices, peer_command, require_lace
from lace.cli.options.remotes import keep_outcome
from lace.cli.options.side import Side, opened_side, watching_policy
from lace.cli.output.failure import ExitCode, leave_quietly
from lace.cli.output.interrupts import first_of, leave_at_once
from lace.cli.output.output import json_option, print_json, say_labelled
from lace.cli.output.words import clock

if TYPE_CHECKING:
    from lace.interlace.events import Event
    from lace.porcelain.lace import Lace
    from lace.runtime.link.session import Outcome
    from lace.runtime.node.links import OnEnd
    from lace.runtime.node.node import Hooks, LinkInfo


@click.command("follow")
@peer_command
@click.option("--ticks", is_flag=True, help="Also print when the shared time moves.")
@json_option
def command(asked: PeerChoices, ticks: bool, as_json: bool) -> ExitCode:
    """Keep an exchange with a peer open and print what happens.

    Each line has the time, the peer and what happened. Records move as soon as either side stores them. A lace that
    carries a policy goes by it; when a newer one arrives, the exchange continues under that. If the connection is lost,
    lace dials again after growing pauses and resumes the exchange. PATH is a lace or an archive (`lace archive`). Ends
    on SIGTERM, Ctrl-C or when its terminal closes.
    """
    if isinstance(asked.address, Path):
        return follow_locally(require_lace(asked.path), asked.address, asked.local(), as_json=as_json, ticks=ticks)
    asked.require_sense()
    printer = _EventPrinter(as_json=as_json, ticks=ticks, remote=asked.remote)
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
    printer.named = partial(record_name, side.lace)
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

    def __init__(self, *, as_json: bool, ticks: bool, remote: str | None) -> None:
        self._as_json, self._ticks, self._remote = as_json, ticks, remote
        self.named: Callable[[str], str] = str  # what people call a record
        self.has_no_reader = False
        self.on_no_reader: Callable[[], None] = lambda: None

    def hooks(self) -> Hooks:
        from lace.runtime.node.node import Hooks

        return Hooks(on_open=self._opened, on_event=self._event, on_end=self._ended, on_trouble=self._trouble)

    def _tell(self, what: str, who: str, said: str, **fields: object) -> None:
        if self.has_no_reader:
            return
        try:
            if self._as_json:
                print_json({"event": what, **fields})
            else:
                say_labelled(f"{clock()}  {who}", said)
            sys.stdout.flush()
        except BrokenPipeError:  # `lace follow … | head`
            self.has_no_reader = True
            leave_quietly()
            self.on_no_reader()

    def _event(self, info: LinkInfo, event: Event) -> None:
        from lace.cli.output.events import event_fields, event_text
        from lace.interlace.events import Ticked

        if self._ticks or not isinstance(event, Ticked):
            said = "" if self._as_json else event_text(event, self.named)
            self._tell("exchange", self._who(info), said, **event_fields(event))

    def _opened(self, info: LinkInfo) -> None:
        who = f" as {info.peer}" if info.peer else ""
        said = f"connected to {info.address}{who}"
        self._tell("open", self._who(info), said, address=info.address, peer=info.peer)

    def _ended(self, info: LinkInfo, outcome: Outcome) -> None:
        how = f": {outcome.abort} ({outcome.detail})" if outcome.abort else ""
        fields = {"abort": outcome.abort or None, "detail": outcome.detail or None}
        self._tell("end", self._who(info), f"disconnected{how}", **fields)

    def policy(self, lines: Sequence[str]) -> None:
        """A newer policy is in force."""
        for line in lines:
            self._tell("policy", "policy", line, text=line)

    def _trouble(self, text: str) -> None:
        self._tell("trouble", "trouble", text, text=text)

    def _who(self, info: LinkInfo) -> str:
        """The other side as people know it: the remote's name, the name of its key, else its address."""
        return self._remote or (info.peer and name_of(info.peer)) or info.address


def record_name(lace: Lace | None, record: str) -> str:
    """A record as people know it: its coordinate and who signed it; its hash if it has none or is not here."""
    from lace.errors import LaceError
    from lace.facts import predicates as names
    from lace.notation.identifiers import RecordHash
    from lace.porcelain.listing import Row, record_fields

    if lace is None:
        return record
    with suppress(LaceError):
        known = RecordHash(record)
        wanted = (names.GROUP, names.APP, names.NAME, names.SIGNED_BY)
        row = Row(known, record_fields(lace.load(known), wanted))
        if row.coordinate:
            signer = row[names.SIGNED_BY]
            return f"{row.coordinate} by {name_of(signer) or signer}" if signer else row.coordinate
    return record
