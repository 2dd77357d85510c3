"""`lace interlace PATH PEER`: one bounded exchange, with a peer at an address or with another lace here."""

from __future__ import annotations

from pathlib import Path

import click

from lace.cli.exchange.local import exchange_locally, preview_here
from lace.cli.exchange.relay import address_of, hold_option, relay_between
from lace.cli.exchange.remote import exchange_once
from lace.cli.options.arguments import opened
from lace.cli.options.peerchoices import PeerChoices, peer_command, require_lace
from lace.cli.options.remotes import failure_kept, keep_outcome
from lace.cli.options.side import ENDED_WELL, MOST_POLICIES, Side, opened_side
from lace.cli.output.failure import ExitCode
from lace.cli.output.outcome import KEPT_OUT, exit_code_of, held_back_here, incomplete_after, print_outcome
from lace.cli.output.output import json_option, say


@click.command("interlace")
@peer_command
@hold_option
@click.option("--dry-run", is_flag=True, help="Show what would come and go, by group and app; no records move.")
@json_option
def command(asked: PeerChoices, hold: int, dry_run: bool, as_json: bool) -> ExitCode:
    """Exchange records with a peer until neither wants more.

    Both sides agree on a plan made of their two selectors, list what they may send, ask for what they lack, and stop
    at the fixed point. A lace that carries a policy goes by it, and if a newer one arrives, exchanges once more under
    that; --select… and --expose override it for once. Without a policy and --select… everything is selected; without
    --expose nothing of yours is shown, so nothing is sent. PATH is a lace or an archive (`lace archive`). PEER is an
    address, a remote of this lace (`lace remote`), or the path of another lace on this machine. With the address stdio,
    CHILD is a command to start and exchange with.

    If PATH is also an address, the two peers exchange through this command: each gets what the other shows and its own
    rules take, and nothing is kept here.
    """
    if (first := address_of(asked.path)) is not None:
        refused = {"expose": asked.expose, "trace": asked.trace, "dry-run": dry_run, "their-select": asked.their_select,
                   "their-expose": asked.their_expose, "master": asked.master}  # fmt: skip
        module = asked.rules.without_policy().module
        return relay_between(first, asked.address, module, asked.link(), hold, refused, as_json=as_json)
    if isinstance(asked.address, Path):
        path, chosen = require_lace(asked.path), asked.local()
        if dry_run:
            return preview_here(path, asked.address, chosen, as_json=as_json)
        return exchange_locally(path, asked.address, chosen, remote=asked.remote, as_json=as_json)
    asked.require_sense()
    if dry_run:
        return _ask(require_lace(asked.path), asked, as_json=as_json)
    with opened_side(asked.path, asked.master) as side:
        code = _exchange(side, asked, as_json=as_json)
        for _ in range(MOST_POLICIES):
            if code not in ENDED_WELL or not side.has_newer_policy(asked.rules):
                break
            code = _exchange(side, asked, as_json=as_json)
    return code


def _exchange(side: Side, asked: PeerChoices, *, as_json: bool) -> ExitCode:
    from lace.porcelain.status import goes_by_policy, is_kept_out

    terms, choices = asked.terms(side.lace, is_open=False), side.with_quotas(asked.link())
    with failure_kept(side.store, asked.remote):
        done = exchange_once(side.store, asked.address, terms, choices, asked.trace, side.make_host)
    outcome, seconds, moved = done
    held = held_back_here(side.store, terms, outcome) if side.make_host is None else None
    incomplete = [] if side.lace is None else incomplete_after(side.lace, terms.module)
    keep_outcome(side.store, asked.remote, outcome, len(incomplete))
    print_outcome(outcome, seconds, *moved, held=held, incomplete=incomplete, as_json=as_json)
    if side.lace is not None and is_kept_out(outcome) and goes_by_policy(side.lace) and not as_json:
        say(KEPT_OUT, err=True)
    return exit_code_of(outcome, incomplete)


def _ask(path: Path, asked: PeerChoices, *, as_json: bool) -> ExitCode:
    from lace.cli.exchange.preview import ask, print_preview
    from lace.runtime.local.preview import Preview

    preview = Preview()
    with opened(path) as lace:
        terms = asked.terms(lace, is_open=False)
        outcome = ask(lace.store, asked.address, terms, asked.link(), preview, asked.trace)
        held = held_back_here(lace.store, terms, outcome)
    print_preview(preview, held, as_json=as_json)
    return ExitCode.OK
