"""`lace store PATH TARGET… --to ADDRESS`: records of a lace to a peer (110)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lace.cli.arguments import lace_argument, opened
from lace.cli.failure import ExitCode
from lace.cli.interlace import exchange_once
from lace.cli.links import AddressType, LinkChoices, link_options, make_terms
from lace.cli.outcome import exit_code_of, print_outcome
from lace.cli.output import count_of, json_option, print_json, say
from lace.cli.remote import HASHES_AT_ONCE, with_pieces

if TYPE_CHECKING:
    from lace.notation.identifiers import RecordHash
    from lace.porcelain.lace import Lace


@click.command("store")
@lace_argument
@click.argument("targets", nargs=-1, required=True, metavar="HASH|PREFIX…")
@click.option("--to", "address", type=AddressType(), required=True, metavar="ADDRESS", help="The peer.")
@link_options
@json_option
def command(path: Path, targets: Sequence[str], address: Any, as_json: bool, **links: Any) -> ExitCode:
    """Send records of a lace to a peer.

    Runs bounded exchanges whose selector names exactly these records, with the chunks of large content, and shows the
    peer nothing else. The peer takes what its own rules select and what it lacks; nothing of it is taken.
    """
    choices = LinkChoices(**links)
    sent = 0
    with opened(path) as lace:
        wanted = with_pieces(lace, [found for target in targets for found in _resolve(lace, target)])
        for start in range(0, len(wanted), HASHES_AT_ONCE):
            code, count = _send(lace, address, wanted[start : start + HASHES_AT_ONCE], choices)
            sent += count
            if code is not ExitCode.OK:
                return code
    if as_json:
        print_json({"named": len(wanted), "sent": sent})
    else:
        say(f"sent {sent:,} of {count_of(len(wanted), 'record')}; the peer had or refused the others")
    return ExitCode.OK


def _send(lace: Lace, address: Any, records: Sequence[RecordHash], choices: LinkChoices) -> tuple[ExitCode, int]:
    from lace.policy.exposure import expose_selected
    from lace.policy.select import select_hash

    module = select_hash(*records)
    terms = make_terms(module, (expose_selected(module),), is_open=False)
    outcome, seconds, moved = exchange_once(lace, address, terms, choices)
    code = exit_code_of(outcome)
    if code is not ExitCode.OK:
        print_outcome(outcome, seconds, *moved, as_json=False)
    return code, len(outcome.result.sent_hashes)


def _resolve(lace: Lace, target: str) -> list[RecordHash]:
    """A hash or its beginning, a coordinate's tip, or everything below a prefix that ends in a slash."""
    if target.startswith("//") and not target.startswith("////") and target.endswith("/"):
        return [row.hash for row in lace.list(target)]
    return [lace.resolve(target)]
