"""Exchanges in which no records move, for `--dry-run`, `browse` and `why --address`.

Rule: the connection is made as for a real exchange, and an abort ends the command as it would there.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import click

from lace.cli.exchange.remote import exchange_once, selector_of
from lace.cli.options.links import LinkChoices, make_terms
from lace.cli.output.failure import ExitCode
from lace.cli.output.outcome import exit_code_of, held_back_line, print_outcome
from lace.cli.output.output import print_json, say
from lace.cli.output.tables import print_table
from lace.cli.output.words import count_of, human_size
from lace.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from lace.interlace.claims.advertisement import Advertisement
    from lace.interlace.setup.terms import Terms
    from lace.notation.identifiers import RecordHash
    from lace.porcelain.lace import Lace
    from lace.porcelain.visibility import NotExposed
    from lace.porcelain.why import Gate, Walk, WhySide
    from lace.runtime.link.session import Outcome
    from lace.runtime.local.preview import Preview
    from lace.store.base import RecordStore


def ask(
    store: RecordStore,
    address: Any,
    terms: Terms,
    choices: LinkChoices,
    preview: Preview,
    trace: Path | None = None,
) -> Outcome:
    """Run an exchange in which no records move; it fills the preview."""
    from lace.porcelain.preview import preview_hosts, preview_terms

    hosts = preview_hosts(store, preview)
    outcome, seconds, moved = exchange_once(store, address, preview_terms(terms), choices, trace, hosts)
    code = exit_code_of(outcome)
    if code not in (ExitCode.OK, ExitCode.NOTHING):
        print_outcome(outcome, seconds, *moved, as_json=False)
        raise click.exceptions.Exit(code)
    return outcome


def print_preview(preview: Preview, held: NotExposed | None = None, *, as_json: bool) -> None:
    """Print what would come and go, by group and app, and what our own exposure would hold back."""
    ways = (("come", preview.wanted), ("go", list(preview.asked_for.values())))
    if as_json:
        counted = {way: _way_json(claims) for way, claims in ways}
        print_json({"dry_run": True, **counted, "held_back_here": None if held is None else held.records})
        return
    for way, claims in ways:
        _print_way(way, claims)
    if held is not None:
        say(held_back_line(held), err=True)
    if any(len(claims) >= preview.max_records for _, claims in ways):
        say(f"only the first {preview.max_records:,} are counted", err=True)
    say("no records moved; what these would make the rules select in turn is not counted", err=True)


def _print_way(way: str, claims: Iterable[Advertisement]) -> None:
    from lace.porcelain.preview import shares

    found = shares(claims)
    records, size = sum(share.records for share in found), sum(share.content_bytes for share in found)
    say(f"{count_of(records, 'record')} would {way}" + (f", {human_size(size)} of content" if records else ""))
    if found:
        cells = (
            [share.group or "-", share.app or "-", f"{share.records:,}", human_size(share.content_bytes)]
            for share in found
        )
        print_table(["group", "app", "records", "content"], cells, right=frozenset({"records", "content"}))


def _way_json(claims: Iterable[Advertisement]) -> dict[str, object]:
    from lace.porcelain.preview import shares

    found = shares(claims)
    return {
        "records": sum(share.records for share in found),
        "content_bytes": sum(share.content_bytes for share in found),
        "shares": [
            {
                "group": share.group or None,
                "app": share.app or None,
                "records": share.records,
                "content_bytes": share.content_bytes,
            }
            for share in found
        ],
    }


def walk_to_peer(here: WhySide, target: str, address: Any, choices: LinkChoices) -> Walk:
    """Ask a peer, under our rules and exposure, why a record does or does not move between our lace and it."""
    from lace.notation.identifiers import RecordHash
    from lace.policy.select import select_all
    from lace.porcelain.why import known_target, tip_listed, walk_asked
    from lace.runtime.clock import SystemClock
    from lace.runtime.local.preview import Preview

    assert here.lace is not None
    terms = make_terms(here.module or select_all(), here.exposures, is_open=False)
    preview, record = Preview(), None
    with contextlib.suppress(NotFound):
        record = known_target(here.lace, target)
        preview.watched = record
    outcome = ask(here.lace.store, address, terms, choices, preview)
    if record is None or not here.lace.store.have(record):
        listed = tip_listed(target, preview.offered, here.lace.tip_policy()) if record is None else record
        if listed not in {claim.hash for claim in preview.offered}:
            # Our own rules may be what hides it: ask once more, for nothing but this record.
            preview = Preview()
            ask(here.lace.store, address, make_terms(selector_of(target), (), is_open=False), choices, preview)
            listed = tip_listed(target, preview.offered, here.lace.tip_policy()) if record is None else record
        if listed is None:
            raise NotFound(f"there is no record at {target}, and {address} lists none there to you")
        record = RecordHash(listed)
    return walk_asked(record, here, preview, outcome.result.peer_verifier, now=SystemClock().tai())


def why_not_sent(lace: Lace, address: Any, record: RecordHash, terms: Terms, choices: LinkChoices) -> Gate | None:
    """The gate at which a record of ours stops on its way to a peer; None if nothing stops it any more."""
    from lace.porcelain.why import WhySide

    here = WhySide(called="here", lace=lace, module=terms.module, exposures=terms.exposures)
    return walk_to_peer(here, record, address, choices).stopped


def why_not_fetched(lace: Lace, address: Any, choices: LinkChoices, target: str) -> str:
    """Why a record that we wanted from a peer did not come, in one line."""
    from lace.porcelain.why import WhySide

    try:
        walked = walk_to_peer(WhySide(called="here", lace=lace, module=selector_of(target)), target, address, choices)
    except NotFound as error:
        return f"{error}: it has no such record, does not show it to you, or its rules do not select it"
    gate, about = walked.stopped, f"`lace why … {walked.record} --address {address}` shows why"
    if gate is None:
        return f"{address} would send it now"
    return f"{address} was asked: it stops {gate.side}: {gate.sentence}; {about}"
