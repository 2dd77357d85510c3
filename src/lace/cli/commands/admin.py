"""`lace admin add|rm`: who may let people in and set the policy."""

from __future__ import annotations

from pathlib import Path

import click

from lace.cli.options.arguments import lace_argument, opened
from lace.cli.options.completing import names
from lace.cli.options.groups import SummaryGroup
from lace.cli.options.people import admin_key, own_key, print_written, signer_option, verifier_of
from lace.cli.output.output import json_option
from lace.cli.output.words import count_of, short_hash


@click.group("admin", cls=SummaryGroup)
def command() -> None:
    """Let members be admins, and end that.

    An admin invites, lets people in and out, and sets the policy. Several admins are good: the loss of one key, even of
    the founder's, then ends nothing. `lace member list` shows who is an admin.
    """


@command.command("add")
@lace_argument
@click.argument("who", metavar="NAME|KEY|V", shell_complete=names)
@signer_option
@json_option
def add(path: Path, who: str, sign: str | None, as_json: bool) -> None:
    """Make somebody an admin."""
    from lace.porcelain.membership import appoint

    with opened(path, write=True) as lace:
        verifier = verifier_of(lace, who)
        written = appoint(lace, verifier, admin_key(lace, sign))
    shown = short_hash(who) if who.startswith("V.") else who
    since = "now" if written.records else "already"
    print_written(written, f"{shown} is an admin {since}", as_json=as_json, verifier=verifier)


@command.command("rm")
@lace_argument
@click.argument("who", metavar="NAME|KEY|V", shell_complete=names)
@signer_option
@json_option
def rm(path: Path, who: str, sign: str | None, as_json: bool) -> None:
    """End that somebody is an admin; what they decided so far stands.

    It is signed by the founder, by the admin who made them one, or by themselves.
    """
    from lace.people.standing import admins_in_force
    from lace.porcelain.membership import dismiss, require_root, roster

    with opened(path, write=True) as lace:
        root = require_root(lace)
        admins = admins_in_force(lace.store, root)
        verifier = verifier_of(lace, who)
        person = roster(lace).of_key(verifier)
        if person is not None:  # who rotated is an admin by the successor of the key that was appointed
            verifier = next((key for key in person.acting if key in admins), verifier)
        written = dismiss(lace, verifier, own_key(sign, admins, "an admin"))
    shown = short_hash(who) if who.startswith("V.") else who
    print_written(
        written,
        f"{shown} is not an admin any more; {count_of(written.stands, 'decision')} of theirs stand",
        as_json=as_json,
        verifier=verifier,
    )
