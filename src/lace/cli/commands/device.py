"""`lace device add|list|rm`: the machines of one person, each with a key of its own."""

from __future__ import annotations

from pathlib import Path

import click

from lace.cli.options.arguments import lace_argument, opened
from lace.cli.options.completing import names
from lace.cli.options.groups import SummaryGroup
from lace.cli.options.people import called, own_key, person_named, print_written, signer_option
from lace.cli.output.output import json_option, print_json_lines
from lace.cli.output.tables import print_table
from lace.cli.output.text import visible_line
from lace.cli.output.words import count_of, short_hash, shown_hash


@click.group("device", cls=SummaryGroup)
def command() -> None:
    """Add, list and end the devices of a person.

    Each device has a key of its own that acts for its person, so losing one costs that device and nothing else.
    """


@command.command("add")
@lace_argument
@click.argument("name")
@click.option("--key", "key", metavar="V", help="A key that the device has; else one is made for it.")
@click.option(
    "--for",
    "who",
    metavar="NAME|KEY",
    shell_complete=names,
    help="Whose device it is, if you are an admin; by default yours.",
)
@click.option("--address", metavar="ADDRESS", help="Where the device dials; by default what invitations say.")
@click.option("--pin", metavar="PIN", help="Over wss: the pin of the certificate there.")
@click.option("--no-qr", is_flag=True, help="Print the line alone.")
@signer_option
@json_option
def add(
    path: Path,
    name: str,
    key: str | None,
    who: str | None,
    address: str | None,
    pin: str | None,
    no_qr: bool,
    sign: str | None,
    as_json: bool,
) -> None:
    """Add a device and print the line that `lace join` takes there.

    The line holds the key of the device: anybody who reads it can act as that device. Without --key it
    is made here, put into the line and kept nowhere else.
    """
    from lace.cli.options.inviting import place_of_line, print_line
    from lace.notation.identifiers import Verifier
    from lace.porcelain.invitations import device_line
    from lace.porcelain.membership import add_device, find_person, require_root, roster
    from lace.records.keys import SigningKey, SigningSecret

    with opened(path, write=True) as lace:
        everybody = roster(lace)
        if who is None:
            firsts = {key.verifier for one in everybody.people for key in one.keys if key.acts and key.kind != "device"}
            signing = own_key(sign, firsts, "the first key of a member")
            person = find_person(lace, signing.verifier)
        else:
            person = person_named(lace, who)
            signing = own_key(sign, {*everybody.admins, *person.acting}, "an admin")
        secret = SigningSecret.generate()
        verifier = Verifier.parse(key) if key else SigningKey.from_secret(secret).verifier
        where = place_of_line(lace, address, pin) if key is None else None
        written = add_device(lace, person, verifier, signing, called=name)
        line = None if where is None else device_line(lace, secret, address=where[0], pin=where[1], called=name)
        group = require_root(lace).group
    if line is None:
        print_written(written, f"{name} acts for {called(person)} now", as_json=as_json, verifier=verifier)
        return
    told = f"{name} acts for {called(person)} in //{group}. There, run:"
    print_line(line, told, qr=not no_qr, as_json=as_json, verifier=verifier, records=list(written.records))


@command.command("list")
@lace_argument
@click.argument("who", metavar="[NAME|KEY]", shell_complete=names, required=False)
@json_option
def list_(path: Path, who: str | None, as_json: bool) -> None:
    """List the keys of everybody, or of one person, and which of them act."""
    from lace.porcelain.membership import roster

    with opened(path) as lace:
        people = [person_named(lace, who)] if who else list(roster(lace).people)
    rows = [(person, key) for person in people for key in person.keys]
    if as_json:
        print_json_lines(
            {
                "person": person.verifier,
                "called": person.called or None,
                "verifier": key.verifier,
                "kind": key.kind,
                "device": key.called or None,
                "acts": key.acts,
            }
            for person, key in rows
        )
        return
    print_table(
        ("person", "device", "key", "kind", "state"),
        [
            (
                visible_line(called(person)),
                visible_line(key.called),
                shown_hash(key.verifier),
                key.kind,
                "acts" if key.acts else "ended",
            )
            for person, key in rows
        ],
        drop=("kind", "key"),
    )


@command.command("rm")
@lace_argument
@click.argument("device", metavar="NAME|V")
@click.option(
    "--for",
    "who",
    metavar="NAME|KEY",
    shell_complete=names,
    help="Whose device it is, if several have one of this name.",
)
@click.option("--since", metavar="TIME", help="What is dated at this time or later does not stand.")
@signer_option
@json_option
def rm(path: Path, device: str, who: str | None, since: str | None, sign: str | None, as_json: bool) -> None:
    """End a device that was lost or sold; what it wrote so far stands, and nothing else of it comes in.

    It is signed by the person, by an admin, or by the device. The first key of a person can be ended like a device: the
    others then go on.
    """
    from lace.errors import InvalidText, NotFound
    from lace.notation.tai import TAI
    from lace.porcelain.membership import put_out, roster

    with opened(path, write=True) as lace:
        everybody = roster(lace)
        people = [person_named(lace, who)] if who else list(everybody.people)
        found = [(one, key) for one in people for key in one.keys if device in (key.verifier, key.called) and key.acts]
        if not found:
            error = NotFound(f"there is no device {device!r} that acts")
            error.add_note(f"`lace device list {path}` shows them")
            raise error
        if len(found) > 1:
            raise InvalidText(f"{len(found)} people have a device {device!r}: say whose with --for", rule="device")
        person, key = found[0]
        signing = own_key(sign, {*everybody.admins, *person.acting}, "an admin or of this person")
        written = put_out(lace, person, signing, since=None if since is None else TAI.of_text(since), only=key.verifier)
    shown = key.called or short_hash(key.verifier)
    print_written(
        written,
        f"{shown} of {called(person)} ended; {count_of(written.stands, 'record')} of it stand",
        as_json=as_json,
        verifier=key.verifier,
    )
