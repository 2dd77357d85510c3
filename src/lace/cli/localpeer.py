"""The other end of an exchange when it is a lace on this machine: `lace interlace A.lace B.lace`.

Rule: the same choices hold for both laces unless `--their-…` says otherwise; no byte goes over a connection.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from lace.cli.options.arguments import LacePath, opened
from lace.cli.options.links import AddressType
from lace.cli.options.policies import chosen_exposures, named_selector
from lace.cli.output.failure import ExitCode
from lace.cli.output.outcome import exit_code_of, held_back_here, incomplete_after, print_outcome
from lace.cli.output.output import metered, print_json, say

if TYPE_CHECKING:
    from lace.interlace.events import Event
    from lace.policy.exposure import Exposure
    from lace.policy.operand import Module
    from lace.porcelain.lace import Lace
    from lace.runtime.local.party import Party

F = TypeVar("F", bound=Callable[..., Any])


class PeerType(AddressType):
    """An address, or the path of a lace on this machine."""

    name = "peer"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        text = str(value)
        if Path(text).is_file() or text.endswith(".lace") or ":memory:" in text:
            return LacePath().convert(value, param, ctx)
        return super().convert(value, param, ctx)


def require_lace(place: Path | str) -> Path:
    """A place that has to be a lace: two that exchange in one process both are."""
    if isinstance(place, str):
        raise click.UsageError(f"{place} is an archive: serve it (`lace serve`) and name its address as the PEER")
    return place


def their_options(function: F) -> F:
    """What the other lace brings, when it is on this machine."""
    for option in (
        click.option(
            "--their-expose",
            metavar="all|selected|none|FILE",
            multiple=True,
            help="With a lace as the peer: what it shows; as --expose without this.",
        ),
        click.option(
            "--their-select", metavar="WHAT", help="With a lace as the peer: all, a PREFIX, a HASH or a FILE."
        ),
    ):
        function = option(function)
    return function


class LocalChoices(NamedTuple):
    """What was chosen for both laces: for the other one as for ours, unless it was said apart."""

    module: Module
    exposed: tuple[Exposure, ...]
    their_select: str | None
    their_expose: Sequence[str]


def exchange_locally(
    path: Path,
    peer: Path,
    chosen: LocalChoices,
    *,
    as_json: bool,
) -> ExitCode:
    """A bounded exchange between two laces, with its notices, its progress and its summary."""
    from lace.porcelain.exchange import notices
    from lace.runtime.link.session import Outcome
    from lace.runtime.local.local import ExchangeAborted, exchange

    with opened(path, write=True) as first, opened(peer, write=True) as second:
        parties = make_parties(first, second, chosen)
        tell_notices(path, peer, notices(*parties))
        started = time.monotonic()
        with metered(f"exchanging with {peer}", in_bytes=True) as meter:

            def show(side: int, event: Event) -> None:
                from lace.interlace.events import Received

                if isinstance(event, Received):
                    meter.advance(max(0, event.bytes_received - counted[side]))
                    counted[side] = event.bytes_received

            counted = [0, 0]
            try:
                result, _ = exchange(*parties, on_event=show)
                are_empty = all(party.store.stat().records == 0 for party in parties)
                outcome = Outcome(replace(result, both_hold_nothing=are_empty))
            except ExchangeAborted as error:
                outcome = Outcome(error.results[0], abort=error.reason.value, detail=error.detail)
        seconds = time.monotonic() - started
        held = held_back_here(first.store, parties[0].terms, outcome)
        laces = zip((first, second), parties, strict=True)
        incomplete = [one for lace, party in laces for one in incomplete_after(lace, party.terms.module)]
    print_outcome(outcome, seconds, 0, 0, held=held, incomplete=incomplete, as_json=as_json)
    return exit_code_of(outcome, incomplete)


def preview_here(
    path: Path,
    peer: Path,
    chosen: LocalChoices,
    *,
    as_json: bool,
) -> ExitCode:
    """What an exchange between two laces would move; neither is written to."""
    from lace.cli.asking import print_preview
    from lace.porcelain.held import held_back
    from lace.porcelain.preview import preview_locally
    from lace.runtime.clock import SystemClock

    with opened(path) as first, opened(peer) as second:
        parties = make_parties(first, second, chosen)
        found = preview_locally(*parties)
        held = (
            None
            if found.sendable
            else held_back(first.store, parties[0].terms, parties[1].here, at=SystemClock().tai())
        )
        print_preview(found, held, as_json=as_json)
    return ExitCode.OK


def make_parties(
    first: Lace,
    second: Lace,
    chosen: LocalChoices,
    *,
    is_open: bool = False,
) -> tuple[Party, Party]:
    """Both sides of a local exchange."""
    from lace.porcelain.exchange import local_parties

    module, exposed, their_select, their_expose = chosen
    their_module = module if their_select is None else named_selector(their_select)
    their_exposed = chosen_exposures(their_expose, their_module) if their_expose else exposed
    return local_parties(first, second, (module, exposed), (their_module, their_exposed), is_open=is_open)


def tell_notices(path: Path, peer: Path, found: tuple[Sequence[object], Sequence[object]]) -> None:
    """What should be known before the exchange, on stderr."""
    for name, notices in zip((path, peer), found, strict=True):
        for notice in notices:
            say(f"{name}: {notice}", err=True)


def follow_locally(
    path: Path,
    peer: Path,
    chosen: LocalChoices,
    *,
    as_json: bool,
    ticks: bool,
) -> ExitCode:
    """An open exchange between two laces, event by event, until SIGTERM or Ctrl-C."""
    from lace.porcelain.exchange import notices
    from lace.runtime.local.follow import LocalFollow

    with opened(path, write=True) as first, opened(peer, write=True) as second:
        parties = make_parties(first, second, chosen, is_open=True)
        tell_notices(path, peer, notices(*parties))

        async def run() -> None:
            loop = asyncio.get_running_loop()
            async with LocalFollow(*parties) as events:
                telling = asyncio.create_task(_tell(events, (path, peer), as_json=as_json, ticks=ticks))
                for number in (signal.SIGTERM, signal.SIGINT):
                    loop.add_signal_handler(number, telling.cancel)
                await asyncio.gather(telling, return_exceptions=True)

        asyncio.run(run())
    return ExitCode.OK


async def _tell(events: Any, names: tuple[Path, Path], *, as_json: bool, ticks: bool) -> None:
    from lace.cli.output.events import event_fields, event_text
    from lace.interlace.events import Ticked

    async for side, event in events:
        if isinstance(event, Ticked) and not ticks:
            continue
        if as_json:
            print_json({"event": "exchange", "lace": str(names[side]), **event_fields(event)})
        else:
            say(f"{names[side]}: {event_text(event)}")
        sys.stdout.flush()


def refuse_link_choices(links: dict[str, Any]) -> None:
    """Connection options mean nothing between two laces on one machine."""
    given = sorted(name for name, value in links.items() if value)
    if given:
        raise click.UsageError(f"--{given[0]} needs an address, and the peer is a lace on this machine")
