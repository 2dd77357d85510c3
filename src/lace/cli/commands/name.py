"""`lace name add|list|rm|publish`: names of keys in a lace."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lace.cli.commands.key import user_ring
from lace.cli.options.arguments import lace_argument, opened, opened_for_rules
from lace.cli.options.completing import keys, names
from lace.cli.options.groups import SummaryGroup
from lace.cli.options.links import VerifierType
from lace.cli.options.names import name_book, spelled
from lace.cli.output.output import json_option, print_json, print_json_lines, say
from lace.cli.output.tables import print_table
from lace.cli.output.words import short_hash, shown_hash
from lace.errors import InvalidText

if TYPE_CHECKING:
    from lace.notation.identifiers import Verifier

WHOSE = {"key": "a key of your ring", "mine": "your name", "own": "their own name", "friend": "a friend's name"}


@click.group("name", cls=SummaryGroup)
def command() -> None:
    """Give names to keys, and show what others call them.

    Your names are kept in the lace and its backups and are never sent. They are taken wherever a verifier is, and in
    rule files as @bob. Names that people gave themselves are shown in quotes, "bob"; names that a friend published are
    shown, and typed, with the friend: anna/bob.
    """


@command.command("add")
@lace_argument
@click.argument("name")
@click.argument("verifier", type=VerifierType(), metavar="KEY|V")
@click.option("--replace", is_flag=True, help="Give the name to this key even if another one has it.")
@json_option
def add(path: Path, name: str, verifier: Verifier, replace: bool, as_json: bool) -> None:
    """Call a key NAME, in this lace."""
    from lace.people.names import add_petname

    with opened(path, write=True) as lace:
        add_petname(lace.store, name, verifier, replace=replace)
    if as_json:
        print_json({"name": name, "verifier": verifier})
    else:
        say(f"{name} is {short_hash(verifier)}")


@command.command("list")
@lace_argument
@json_option
def list_(path: Path, as_json: bool) -> None:
    """List the names that are known in a lace, and whose they are."""
    with opened_for_rules(path) as lace:
        book = name_book(lace.store)
    if as_json:
        print_json_lines(one.to_json() for one in book.names)
    elif book.names:
        rows = [[spelled(one, book), WHOSE[one.whose], shown_hash(one.verifier)]
                for one in book.names]  # fmt: skip
        print_table(["name", "whose name it is", "key"], rows)
    else:
        say(f"no names are known in {path}; `lace name add {path} NAME V.…` gives one", err=True)


@command.command("rm")
@lace_argument
@click.argument("name", shell_complete=names)
@json_option
def rm(path: Path, name: str, as_json: bool) -> None:
    """Take your NAME of a key away."""
    from lace.people.names import remove_petname

    with opened(path, write=True) as lace:
        verifier = remove_petname(lace.store, name)
    if as_json:
        print_json({"removed": name, "verifier": verifier})
    else:
        say(f"{name} is no longer the name of {short_hash(verifier)}")


@command.command("publish")
@lace_argument
@click.argument("name")
@click.option(
    "--sign", "key", required=True, metavar="KEY", shell_complete=keys, help="Sign with this key of the ring."
)
@json_option
def publish(path: Path, name: str, key: str, as_json: bool) -> None:
    """Let your group see what you call a key.

    Writes a signed record //GROUP//name//V.…, which goes where the policy of the group lets it go. Your other names
    stay here.
    """
    from lace.people.names import petnames, published_name
    from lace.people.root import pinned_root
    from lace.runtime.clock import SystemClock

    with opened(path, write=True) as lace:
        root = pinned_root(lace.store)
        if root is None:
            raise InvalidText("this lace belongs to no group, so there is nobody to publish to", rule="root")
        verifier = petnames(lace.store).get(name) or name_book(lace.store).verifier(name)
        plex = published_name(root.group, name, verifier, SystemClock().tai())
        written = lace.put(b"", group=plex.group, app=plex.app, name=plex.name, headers=list(plex.headers),
                           sign=user_ring().load(key))  # fmt: skip
    if as_json:
        print_json({"hash": written, "name": name, "verifier": verifier})
    else:
        say(written)
