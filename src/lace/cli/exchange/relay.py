"""`lace interlace ADDRESS ADDRESS`: relay between two peers elsewhere.

Rule: nothing is kept here. What one side shows and the rules select is offered to the other; --hold bounds how much is
on its way. There are two exchanges, and the outcome of both is printed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lace.cli.options.links import LinkChoices, make_terms
from lace.cli.output.failure import ExitCode, print_failure
from lace.cli.output.interrupts import run_until_interrupted
from lace.cli.output.outcome import exit_code_of, outcome_fields, print_rejected, sent_text
from lace.cli.output.output import print_fields, print_json, say
from lace.cli.output.progress import metered
from lace.errors import InvalidInput

if TYPE_CHECKING:
    from lace.iltp.address import Address
    from lace.interlace.events import Event
    from lace.policy.operand import Module
    from lace.runtime.link.session import Outcome

F = TypeVar("F", bound=Callable[..., Any])
_MIB = 1 << 20


def hold_option(function: F) -> F:
    """`--hold MIB`."""
    return click.option(
        "--hold",
        type=click.IntRange(min=1),
        default=64,
        show_default=True,
        metavar="MIB",
        help="Between two addresses: how many MiB of records may be on their way at a time.",
    )(function)


def address_of(place: Path | str) -> Address | None:
    """The address given in place of a lace; None if it is a path."""
    from lace.iltp.address import StdioAddress, parse_address

    text = str(place)
    if text == "stdio":
        raise click.UsageError("stdio cannot be one of two addresses: both are dialled")
    if not text.startswith(("tcp:", "unix:", "ws:", "wss:")) or Path(text).exists():
        return None
    try:
        found = parse_address(text)
    except InvalidInput as error:
        raise click.UsageError(f"{error}. `lace help addresses` lists the forms.") from error
    return None if isinstance(found, StdioAddress) else found


def relay_between(
    first: Address,
    second: Any,
    module: Module,
    choices: LinkChoices,
    hold: int,
    refused: Mapping[str, object],
    *,
    as_json: bool,
) -> ExitCode:
    """Relay between two peers until neither can get more."""
    from lace.iltp.address import StdioAddress
    from lace.runtime.clock import SystemClock
    from lace.runtime.local.relay import RelayLimits, relay

    for name, value in refused.items():
        if value:
            raise click.UsageError(f"--{name} has no meaning between two addresses: no lace of yours takes part")
    if isinstance(second, Path | StdioAddress):
        raise click.UsageError(f"from {first} to {second}: name the lace first, and the address as the PEER")
    choices.require_use_of_key([first, second])
    transport, here = choices.transport()
    terms = choices.patient(make_terms(module, (), is_open=True))
    started = time.monotonic()
    moved: dict[str, int] = {}
    with metered(f"between {first} and {second}", in_bytes=True) as meter:

        def show(address: Address, event: Event) -> None:
            from lace.interlace.events import Received

            if isinstance(event, Received):
                moved[str(address)] = event.bytes_received
                meter.advance(sum(moved.values()) - meter.done)

        work = relay(
            first,
            second,
            terms,
            transport,
            SystemClock(),
            limits=RelayLimits(max_held_bytes=hold * _MIB),
            here=here,
            standard=choices.standard,
            on_event=show,
        )
        outcomes = run_until_interrupted(work)
    _print((first, second), outcomes, time.monotonic() - started, as_json=as_json)
    return worst_of(outcomes)


def worst_of(outcomes: Sequence[Outcome]) -> ExitCode:
    """The exit code of both: that of the first that failed; NOTHING only if neither side showed anything."""
    codes = [exit_code_of(outcome, needs_confirmation=False) for outcome in outcomes]
    failures = [code for code in codes if code not in (ExitCode.OK, ExitCode.NOTHING)]
    if failures:
        return failures[0]
    return ExitCode.OK if ExitCode.OK in codes else ExitCode.NOTHING


def _print(addresses: Sequence[Address], outcomes: Sequence[Outcome], seconds: float, *, as_json: bool) -> None:
    if as_json:
        ends = [
            {"address": str(address), **outcome_fields(outcome, seconds, 0, 0)}
            for address, outcome in zip(addresses, outcomes, strict=True)
        ]
        for end in ends:
            for unknown in ("bytes_received", "bytes_sent", "nothing_moved", "held_back_here"):
                del end[unknown]
        print_json({"fixed_point": all(one.result.fixed_point for one in outcomes), "ends": ends})
    else:
        print_fields(
            [
                (f"to {address}", sent_text(outcome.result))
                for address, outcome in zip(addresses, outcomes, strict=True)
            ]
        )  # fmt: skip
    for address, outcome in zip(addresses, outcomes, strict=True):
        if outcome.abort:
            print_failure(f"{address}: the exchange was aborted: {outcome.abort}", [("why", outcome.detail)])
        if outcome.result.rejected_hashes and not as_json:
            say(f"of {address}", err=True)
            print_rejected(dict(outcome.result.rejected_hashes))
