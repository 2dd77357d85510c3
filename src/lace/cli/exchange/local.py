"""Exchanges between two laces on this machine: `lace interlace A.lace B.lace`.

Rule: the options hold for both laces unless `--their-…` says otherwise; no byte goes over a connection.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from lace.cli.exchange.remote import count_moved
from lace.cli.options.arguments import opened
from lace.cli.options.peerchoices import LocalChoices
from lace.cli.options.policies import RuleChoices, named_selector, read_exposures
from lace.cli.options.remotes import keep_outcome
from lace.cli.options.side import ENDED_WELL, MOST_POLICIES, Side
from lace.cli.output.failure import ExitCode
from lace.cli.output.outcome import exit_code_of, held_back_here, incomplete_after, print_outcome
from lace.cli.output.output import print_json, say, say_labelled
from lace.cli.output.progress import metered
from lace.cli.output.words import clock

if TYPE_CHECKING:
    from lace.interlace.events import Event
    from lace.interlace.setup.terms import Rules
    from lace.notation.identifiers import Verifier
    from lace.policy.exposure import Exposure
    from lace.porcelain.lace import Lace
    from lace.runtime.local.party import Party

F = TypeVar("F", bound=Callable[..., Any])


def exchange_locally(
    path: Path,
    peer: Path,
    chosen: LocalChoices,
    *,
    remote: str | None = None,
    as_json: bool,
) -> ExitCode:
    """Run a bounded exchange between two laces, and print its notices, progress and summary.

    If a newer policy came to either, they exchange once more under it.
    """
    with opened(path, write=True) as first, opened(peer, write=True) as second:
        sides = [Side(lace.store, lace=lace, policy=[lace.policy()]) for lace in (first, second)]
        for _ in range(1 + MOST_POLICIES):
            code = _exchange_once(first, second, (path, peer), chosen, remote, as_json=as_json)
            newer = [side.has_newer_policy(chosen.rules) for side in sides]
            if code not in ENDED_WELL or not any(newer):
                break
    return code


def _exchange_once(
    first: Lace, second: Lace, paths: tuple[Path, Path], chosen: LocalChoices, remote: str | None, *, as_json: bool
) -> ExitCode:
    from lace.porcelain.exchange import notices
    from lace.runtime.link.session import Outcome
    from lace.runtime.local.local import ExchangeAborted, exchange

    path, peer = paths
    parties = make_parties(first, second, chosen)
    tell_notices(path, peer, notices(*parties))
    started = time.monotonic()
    with metered(f"exchanging with {peer}") as meter:

        def show(side: int, event: Event) -> None:
            if side == 0:  # the other side tells of the same records
                count_moved(meter, event)

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
    keep_outcome(first.store, remote, outcome, len(incomplete))
    print_outcome(outcome, seconds, 0, 0, held=held, incomplete=incomplete, as_json=as_json)
    return exit_code_of(outcome, incomplete)


def preview_here(
    path: Path,
    peer: Path,
    chosen: LocalChoices,
    *,
    as_json: bool,
) -> ExitCode:
    """Print what an exchange between two laces would move; neither is written to."""
    from lace.cli.exchange.preview import print_preview
    from lace.porcelain.preview import preview_locally
    from lace.porcelain.visibility import held_back
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

    ours = chosen.rules.rules(first, place_of(first))
    given = chosen.rules.module if chosen.their_select is None else named_selector(chosen.their_select)
    theirs = RuleChoices(module=given, expose=read_exposures(chosen.their_expose) or chosen.rules.expose)
    said = theirs.rules(second, place_of(second))
    choices = [(rules.module, _shown_to_us(lace, rules)) for lace, rules in ((first, ours), (second, said))]
    return local_parties(first, second, choices[0], choices[1], is_open=is_open)


def _shown_to_us(lace: Lace, rules: Rules) -> tuple[Exposure, ...]:
    """What a lace shows the other one: whoever runs this could prove any key of the ring to it, so a member's."""
    from lace.policy.exposure import shown_as_to
    from lace.policy.origin import Viewer

    key = _own_member_key(lace)
    return rules.exposures if key is None else tuple(shown_as_to(one, Viewer(key)) for one in rules.exposures)


def _own_member_key(lace: Lace) -> Verifier | None:
    """A key of the user's ring that is a member of a lace's group."""
    from lace.cli.commands.key import ring_names
    from lace.notation.identifiers import Verifier
    from lace.people.standing import members_in_force

    policy = lace.policy()
    if policy is None:
        return None
    members = members_in_force(lace.store, policy.in_force.root)
    return next((Verifier(key) for key in sorted(ring_names()) if key in members), None)


def place_of(lace: Lace) -> str:
    """The path of a lace, as text."""
    return str(getattr(lace.store, "path", "the lace"))


def tell_notices(path: Path, peer: Path, found: tuple[Sequence[object], Sequence[object]]) -> None:
    """Print the notices of both sides on stderr, before the exchange."""
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
    """Run an open exchange between two laces, printing each event, until SIGTERM or Ctrl-C."""
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
            say_labelled(f"{clock()}  {names[side]}", event_text(event))
        sys.stdout.flush()
