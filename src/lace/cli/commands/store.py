"""`lace store PATH TARGET… --to ADDRESS`: send records of a lace to a peer (110)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lace.cli.exchange.preview import why_not_sent
from lace.cli.exchange.remote import HASHES_AT_ONCE, exchange_once, with_pieces
from lace.cli.options.arguments import lace_argument, opened
from lace.cli.options.links import LinkChoices, link_options, make_terms
from lace.cli.options.remotes import RemoteType, dialled
from lace.cli.output.failure import ExitCode
from lace.cli.output.outcome import exit_code_of, print_not_kept, print_outcome
from lace.cli.output.output import json_option, print_json, say
from lace.cli.output.words import count_of

if TYPE_CHECKING:
    from lace.interlace.result import InterlaceResult
    from lace.interlace.setup.terms import Terms
    from lace.notation.identifiers import RecordHash
    from lace.porcelain.lace import Lace
    from lace.porcelain.why import Gate


_ENDED_WELL = (ExitCode.OK, ExitCode.NOTHING, ExitCode.REFUSED)


@click.command("store")
@lace_argument
@click.argument("targets", nargs=-1, required=True, metavar="HASH|PREFIX…")
@click.option("--to", "address", type=RemoteType(), required=True, metavar="PEER", help="An address or a remote.")
@link_options
@json_option
def command(path: Path, targets: Sequence[str], address: Any, as_json: bool, **links: Any) -> ExitCode:
    """Send records of a lace to a peer.

    Runs bounded exchanges whose selector names exactly these records and the chunks of large content, and shows the
    peer nothing else. The peer takes what its own rules select, what it lacks and what it has room for; you receive
    nothing. "Sent" counts what the peer kept. If it refuses any, they are listed with its reasons and the exit code is
    9.
    """
    address, choices = dialled(address, links)
    sent: set[str] = set()
    unconfirmed: set[str] = set()
    refused: dict[str, str] = {}
    held_back: Counter[str] = Counter()
    stopped: Gate | None = None
    with opened(path) as lace:
        named = list(dict.fromkeys(found for target in targets for found in _resolve(lace, target)))
        wanted = with_pieces(lace, named)
        for start in range(0, len(named), HASHES_AT_ONCE):
            code, result = _send(lace, address, named[start : start + HASHES_AT_ONCE], choices)
            sent.update(result.sent_hashes)
            unconfirmed.update(result.unconfirmed_hashes)
            refused.update(result.refused_hashes)
            refused.update(result.held_back_by_peer.records)
            held_back.update(result.held_back_by_peer.counts)
            if code not in _ENDED_WELL:
                return code
        unsent = [record for record in wanted if record not in sent and record not in unconfirmed]
        if unsent and not refused:
            whole = next(record for record in named if unsent[0] in with_pieces(lace, [record]))
            stopped = why_not_sent(lace, address, unsent[0], _terms([whole]), choices)
    if as_json:
        why = (
            None
            if stopped is None
            else {"record": unsent[0], "side": stopped.side, "gate": stopped.name, "said": stopped.said}
        )
        counted = {"named": len(wanted), "sent": len(sent), "sent_not_confirmed": len(unconfirmed)}
        print_json({**counted, "refused_by_peer": refused, "first_not_sent": why})
    else:
        loose = f", {len(unconfirmed):,} more sent, not confirmed" if unconfirmed else ""
        say(f"sent {len(sent):,} of {count_of(len(wanted), 'record')}{loose}")
        print_not_kept(refused)
    if stopped is not None and not as_json:
        say(f"{unsent[0]} stops {stopped.side}: {stopped.sentence}", err=True)
        rules = f"--select-hash {whole} --expose selected"
        say(f"`lace why {path} {unsent[0]} --address {address} {rules}` shows the rules", err=True)
    if refused or held_back:
        return ExitCode.REFUSED
    if stopped is None or stopped.name == "missing":  # what the peer has already is where it should be
        return ExitCode.OK
    if not sent and not unconfirmed:
        return ExitCode.NOTHING
    return ExitCode.OK if unsent[0] in named else ExitCode.INCOMPLETE  # content went, and a part of it did not


def _terms(records: Sequence[RecordHash]) -> Terms:
    from lace.policy.exposure import expose_selected
    from lace.policy.select import select_hash

    module = select_hash(*records)
    return make_terms(module, (expose_selected(module),), is_open=False)


def _send(
    lace: Lace, address: Any, records: Sequence[RecordHash], choices: LinkChoices
) -> tuple[ExitCode, InterlaceResult]:
    terms = _terms(records)
    outcome, seconds, moved = exchange_once(lace.store, address, terms, choices)
    code = exit_code_of(outcome)
    if code not in _ENDED_WELL:
        print_outcome(outcome, seconds, *moved, as_json=False)
    return code, outcome.result


def _resolve(lace: Lace, target: str) -> list[RecordHash]:
    """A hash or its beginning, a coordinate's tip, or everything below a prefix that ends in a slash."""
    from lace.records.coordinate import is_place

    if is_place(target) and target.endswith("/"):
        return [row.hash for row in lace.list(target)]
    return [lace.resolve(target)]
