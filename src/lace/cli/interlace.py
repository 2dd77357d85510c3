"""`lace interlace PATH PEER`: one bounded exchange, with a peer at an address or with another lace here."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lace.cli.arguments import opened
from lace.cli.failure import ExitCode
from lace.cli.leaving import run_until_interrupted
from lace.cli.links import LinkChoices, captured, link_options, make_node, make_terms, trace_option
from lace.cli.localpeer import (
    LocalChoices,
    PeerType,
    exchange_locally,
    preview_here,
    refuse_link_choices,
    require_lace,
    their_options,
)
from lace.cli.outcome import exit_code_of, print_outcome
from lace.cli.output import ProgressMeter, json_option, metered
from lace.cli.policies import chosen_exposures, chosen_selector, expose_option, select_options
from lace.cli.relaying import address_of, hold_option, relay_between
from lace.cli.side import opened_side, side_argument

if TYPE_CHECKING:
    from lace.interlace.events import Event
    from lace.interlace.host import Host
    from lace.interlace.terms import Terms
    from lace.runtime.node import Hooks, LinkInfo
    from lace.runtime.quotas import QuotaGate
    from lace.runtime.session import Outcome
    from lace.store.base import RecordStore


@click.command("interlace")
@side_argument()
@click.argument("address", metavar="PEER", type=PeerType())
@click.argument("child", nargs=-1, metavar="[-- CHILD…]")
@select_options
@expose_option
@their_options
@link_options
@trace_option
@hold_option
@click.option("--dry-run", is_flag=True, help="Ask what would come and go, by group and app; nothing is moved.")
@json_option
def command(
    path: Path | str,
    master: str | None,
    address: Any,
    child: Sequence[str],
    sources: Sequence[str],
    coordinates: Sequence[str],
    hashes: Sequence[str],
    expose: Sequence[str],
    their_select: str | None,
    their_expose: Sequence[str],
    trace: Path | None,
    hold: int,
    dry_run: bool,
    as_json: bool,
    **links: Any,
) -> ExitCode:
    """Exchange records with a peer until neither wants more.

    Both sides agree on a plan made of their two selectors, list what they may send, ask for what they lack, and stop
    at the fixed point. Without --select… everything is selected; without --expose nothing of yours is shown, and so
    nothing is sent. PATH is a lace or an archive (`lace archive`). PEER is an address, or the path of another lace on
    this machine. With the address stdio, CHILD is a command to start and speak with.

    If PATH is an address too, the two peers exchange through this command: each gets what the other shows and its own
    rules take, and nothing is kept here.
    """
    module = chosen_selector(sources, coordinates, hashes)
    if (first := address_of(path)) is not None:
        refused = {"expose": expose, "trace": trace, "dry-run": dry_run, "their-select": their_select,
                   "their-expose": their_expose, "master": master}  # fmt: skip
        choices = LinkChoices(command=child, **links)
        return relay_between(first, address, module, choices, hold, refused, as_json=as_json)
    exposed = chosen_exposures(expose, module)
    if isinstance(address, Path):
        path = require_lace(path)
        refuse_link_choices({**links, "trace": trace})
        chosen = LocalChoices(module, exposed, their_select, their_expose)
        if dry_run:
            return preview_here(path, address, chosen, as_json=as_json)
        return exchange_locally(path, address, chosen, as_json=as_json)
    terms = make_terms(module, exposed, is_open=False)
    choices = LinkChoices(command=child, **links)
    terms = choices.patient(terms)
    choices.require_use_of_key([address])
    if dry_run:
        return _ask(require_lace(path), address, terms, choices, trace, as_json=as_json)
    with opened_side(path, master) as side:
        outcome, seconds, moved = exchange_once(side.store, address, terms, choices, trace, side.make_host)
    print_outcome(outcome, seconds, *moved, as_json=as_json)
    return exit_code_of(outcome)


def _ask(
    path: Path, address: Any, terms: Terms, choices: LinkChoices, trace: Path | None, *, as_json: bool
) -> ExitCode:
    from lace.cli.asking import ask, print_preview
    from lace.runtime.preview import Preview

    preview = Preview()
    with opened(path) as lace:
        ask(lace.store, address, terms, choices, preview, trace)
    print_preview(preview, as_json=as_json)
    return ExitCode.OK


def exchange_once(
    store: RecordStore,
    address: Any,
    terms: Terms,
    choices: LinkChoices,
    trace: Path | None = None,
    make_host: Callable[[Terms, QuotaGate], Host[Any]] | None = None,
) -> tuple[Outcome, float, tuple[int, int]]:
    """One exchange with progress on a terminal; its outcome, how long it took, stream bytes in and out."""
    from lace.runtime.node import Hooks

    started = time.monotonic()
    hooks = Hooks()

    async def run() -> tuple[Outcome, tuple[int, int]]:
        node = make_node(store, choices, hooks, make_host=make_host)
        try:
            outcome = await node.exchange(address, terms)
        finally:
            await node.shutdown()
        return outcome, (node.metrics.get("bytes_received_total"), node.metrics.get("bytes_sent_total"))

    with captured(trace, hooks), metered(f"exchanging with {address}", in_bytes=True) as meter:
        _show_progress(hooks, meter)
        outcome, moved = run_until_interrupted(run())
    return outcome, time.monotonic() - started, moved


def _show_progress(hooks: Hooks, meter: ProgressMeter) -> None:
    from lace.interlace.events import Received, Sent

    moved = {"in": 0, "out": 0}

    def show(_: LinkInfo, event: Event) -> None:
        if isinstance(event, Received):
            moved["in"] = event.bytes_received
        elif isinstance(event, Sent):
            moved["out"] = event.bytes_sent
        meter.advance(moved["in"] + moved["out"] - meter.done)

    hooks.on_event = show
