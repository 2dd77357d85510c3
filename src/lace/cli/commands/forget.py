"""`lace forget PATH TARGET…`: remove records for good."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lace.cli.commands.compact import compacted
from lace.cli.options.arguments import Target, lace_argument, opened
from lace.cli.output.output import json_option, print_json, say, say_data
from lace.cli.output.words import count_of

if TYPE_CHECKING:
    from lace.porcelain.forgetting import ForgottenJournal


@click.command("forget")
@lace_argument
@click.argument("targets", type=Target(), metavar="[COORDINATE|HASH]...", nargs=-1)
@click.option("--list", "listed", is_flag=True, help="Print the hashes that never come in again.")
@click.option("--allow", is_flag=True, help="Let these hashes come in again; others may still have them.")
@json_option
def command(path: Path, targets: tuple[str, ...], listed: bool, allow: bool, as_json: bool) -> None:
    """Remove records for good: they never come in again.

    A coordinate means all its versions; a hash need not be stored here. The bytes leave the file, its log and its
    dictionary: the lace is compacted, which needs disk space for two more copies. Only the hashes stay, and keep the
    records from coming back with an exchange, an import, or a backup that you restore on this machine. The parts of
    large content go with it. Nobody else notices: to withdraw a record for everyone, use `lace retract` first. Backups,
    bundles and copies keep what they hold.
    """
    if listed == bool(targets):
        raise click.UsageError("name what to forget, or give --list alone")
    if listed:
        _print_list(path, as_json)
    elif allow:
        _allow(path, targets, as_json)
    else:
        _forget(path, targets, as_json)


def user_journal() -> ForgottenJournal:
    """What this user forgot, in any lace."""
    from lace.porcelain.forgetting import ForgottenJournal
    from lace.runtime.identity.keyring import default_home

    return ForgottenJournal(default_home(os.environ, Path.home()))


def _forget(path: Path, targets: tuple[str, ...], as_json: bool) -> None:
    with opened(path, write=True) as lace:
        before = set(lace.forgotten())
        found = lace.forget(*targets)
        user_journal().add(sorted({*lace.forgotten()} - before))
        left = lace.stat().records
    if found.removed:
        compacted(path, left)
    if as_json:
        print_json({"forgotten": found.records, "removed": found.removed, "parts": found.parts})
        return
    parts = f" and {count_of(found.parts, 'part')} that nothing else needs" if found.parts else ""
    say(f"forgot {count_of(len(found.records), 'record')}{parts}; removed {found.removed:,} from {path}")


def _allow(path: Path, targets: tuple[str, ...], as_json: bool) -> None:
    with opened(path, write=True) as lace:
        allowed = lace.take_again(*targets)
    user_journal().remove(targets)
    if as_json:
        print_json({"allowed": allowed})
    else:
        say(f"{count_of(allowed, 'record')} may come in again")


def _print_list(path: Path, as_json: bool) -> None:
    with opened(path) as lace:
        for record in lace.forgotten():
            if as_json:
                print_json({"hash": record})
            else:
                say_data(record)
