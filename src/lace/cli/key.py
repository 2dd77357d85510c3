"""`lace key new|list|show|import`: the key ring.

Rule: a secret is printed only by `lace key show --secret`, and read only from a file or standard input.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lace.cli.output import json_option, print_fields, print_json, print_table, say

if TYPE_CHECKING:
    from lace.runtime.keyring import KeyEntry, KeyRing

MAX_SECRET_BYTES = 1024


def _ring() -> KeyRing:
    from lace.runtime.keyring import KeyRing

    return KeyRing.of_user()


def _print_entry(entry: KeyEntry, as_json: bool) -> None:
    if as_json:
        print_json({"name": entry.name, "verifier": entry.verifier})
    else:
        print_fields([("name", entry.name), ("verifier", entry.verifier)])


@click.group("key")
def command() -> None:
    """Make, list, show and import signing keys.

    A key has a name, which only you use, and a verifier (V.….H3), which everybody sees in what you sign. Secrets stay
    in $LACE_HOME/keys, in files that only you can read.
    """


@command.command("new")
@click.argument("name")
@json_option
def new(name: str, as_json: bool) -> None:
    """Make a signing key and keep it under NAME."""
    from lace.records.keys import SigningSecret

    _print_entry(_ring().add(name, SigningSecret.generate()), as_json)


@command.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List the keys, without their secrets."""
    ring = _ring()
    entries = list(ring.entries())
    if as_json:
        for entry in entries:
            print_json({"name": entry.name, "verifier": entry.verifier})
    elif entries:
        print_table(["name", "verifier"], [[entry.name, entry.verifier] for entry in entries])
    else:
        say(f"no keys in {ring.folder} yet; `lace key new NAME` makes one", err=True)


@command.command("show")
@click.argument("name")
@click.option("--secret", is_flag=True, help="Print the secret. Whoever reads it can sign in your name.")
@json_option
def show(name: str, secret: bool, as_json: bool) -> None:
    """Show the verifier of the key NAME; its secret only with --secret."""
    ring = _ring()
    fields = {"name": name, "verifier": str(ring.load(name).verifier)}
    if secret:
        fields["secret"] = ring.load_secret(name).reveal()
    if as_json:
        print_json(fields)
    else:
        print_fields(fields.items())


@command.command("import")
@click.argument("name")
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True), default="-")
@json_option
def import_(name: str, file: str, as_json: bool) -> None:
    """Keep a given secret under NAME.

    The secret (&.….H3) is read from FILE or standard input, never from the command line.
    """
    from lace.errors import InvalidText, KeyUnavailable
    from lace.records.keys import SigningSecret

    if file == "-" and sys.stdin.isatty():
        text = str(click.prompt("secret", hide_input=True, err=True))
    elif file == "-":
        text = sys.stdin.read(MAX_SECRET_BYTES)
    else:
        with Path(file).open(encoding="ascii", errors="replace") as opened:
            text = opened.read(MAX_SECRET_BYTES)
    try:
        secret = SigningSecret.parse(text.strip())
    except InvalidText:
        raise KeyUnavailable("that is no signing secret: one is `&.`, 43 B64A characters and `.H3`") from None
    _print_entry(_ring().add(name, secret), as_json)
