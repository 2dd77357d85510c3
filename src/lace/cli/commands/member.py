"""`lace member list|add|leave|rejoin|replace`: who is in the group of a lace."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lace.cli.options.arguments import lace_argument, opened
from lace.cli.options.completing import names
from lace.cli.options.groups import SummaryGroup
from lace.cli.options.people import (
    admin_key,
    called,
    own_key,
    person_named,
    print_written,
    signer_option,
    told,
    verifier_of,
)
from lace.cli.output.output import json_option, print_json_lines, say
from lace.cli.output.tables import print_table
from lace.cli.output.text import visible_line
from lace.cli.output.words import count_of, short_hash, shown_hash

if TYPE_CHECKING:
    from lace.people.roster import Person, Roster

ROLES = ("member", "reader")


@click.group("member", cls=SummaryGroup)
def command() -> None:
    """List, add and end memberships, and let people come back.

    A membership is a signed record of an admin, or of somebody who was invited (`lace invite`). It travels like every
    other record, so everybody who holds the same records agrees on who is a member.
    """


@command.command("list")
@lace_argument
@click.option("--all", "everybody", is_flag=True, help="Also those who left.")
@json_option
def list_(path: Path, everybody: bool, as_json: bool) -> None:
    """List the members: role, since when, who let them in, and how many devices they have."""
    from lace.porcelain.membership import roster

    with opened(path) as lace:
        found = roster(lace)
    people = [one for one in found.people if one.is_member or everybody]
    if as_json:
        print_json_lines(_fields(one, found) for one in people)
        return
    print_table(
        ("member", "key", "role", "since", "let in by", "devices"),
        [_row(one, found) for one in people],
        right=frozenset(("devices",)),
        drop=("devices", "let in by", "key", "since"),
    )


def _row(person: Person, found: Roster) -> list[str]:
    by = person.invited_by or person.by
    state = ("founder" if person.verifier == found.root.founder else "admin") if person.is_admin else person.role
    devices = [key for key in person.keys if key.kind == "device" and key.acts]
    return [
        visible_line(called(person)),
        shown_hash(person.verifier),
        state if person.is_member else f"left {_day(person.left)}".strip(),
        _day(person.since),
        visible_line(told(by, found.people)) if by else "",
        str(len(devices)) if devices else "",
    ]


def _fields(person: Person, found: Roster) -> dict[str, object]:
    return {
        "called": person.called or None,
        "verifier": person.verifier,
        "role": person.role,
        "is_member": person.is_member,
        "is_admin": person.is_admin,
        "is_founder": person.verifier == found.root.founder,
        "since": person.since or None,
        "by": person.by,
        "invited_by": person.invited_by,
        "left": person.left or None,
        "keys": [
            {"verifier": key.verifier, "kind": key.kind, "acts": key.acts, "called": key.called or None}
            for key in person.keys
        ],
    }


def _day(tai: str) -> str:
    from lace.cli.output.words import shown_time

    return shown_time(tai) if tai else ""


@command.command("add")
@lace_argument
@click.argument("key", metavar="KEY|V", shell_complete=names)
@click.argument("name", required=False)
@click.option("--role", type=click.Choice(ROLES), default="member", show_default=True, help="What the member may do.")
@signer_option
@json_option
def add(path: Path, key: str, name: str | None, role: str, sign: str | None, as_json: bool) -> None:
    """Let a key in that you know; `lace invite` lets somebody in whose key you do not know yet.

    NAME is what the others see; by default, that of the key.
    """
    from lace.people.forms import Role
    from lace.porcelain.membership import admit

    with opened(path, write=True) as lace:
        verifier = verifier_of(lace, key)
        shown = name or ("" if key.startswith("V.") else key)
        written = admit(lace, verifier, admin_key(lace, sign), called=shown, role=Role(role))
    print_written(
        written, f"{shown or short_hash(verifier)} is a {role} now", as_json=as_json, verifier=verifier, role=role
    )


@command.command("leave")
@lace_argument
@click.argument("who", metavar="NAME|KEY", shell_complete=names)
@click.option("--since", metavar="TIME", help="What is dated at this time or later does not stand.")
@signer_option
@json_option
def leave(path: Path, who: str, since: str | None, sign: str | None, as_json: bool) -> None:
    """End a membership: what somebody wrote so far stands, and nothing else of theirs comes in.

    The record names what stands, because a key that is out of the group may still write any date it likes. It is signed
    by an admin, or by the member who leaves. Their open links end; what they have, they keep.
    """
    from lace.notation.tai import TAI
    from lace.porcelain.membership import put_out, roster

    with opened(path, write=True) as lace:
        person = person_named(lace, who)
        may = {*roster(lace).admins, *person.acting}
        written = put_out(
            lace,
            person,
            own_key(sign, may, "an admin or the one who leaves"),
            since=None if since is None else TAI.of_text(since),
        )
        invitations = [one for one in roster(lace).invitations if not one.is_withdrawn and len(one.admitted) < one.uses]
    stands = count_of(written.stands, "record")
    sentence = f"{called(person)} left; {stands} of theirs stand{'s' if written.stands == 1 else ''}"
    if not written.records:
        sentence = f"{called(person)} left already; nothing was written"
    print_written(written, sentence, as_json=as_json, verifier=person.verifier)
    if invitations:
        still = count_of(len(invitations), "open invitation")
        say(f"{still} could still let somebody in: `lace invite {path} --list`", err=True)


@command.command("rejoin")
@lace_argument
@click.argument("who", metavar="NAME|KEY", shell_complete=names)
@click.option("--role", type=click.Choice(ROLES), help="What they may do; by default as before.")
@signer_option
@json_option
def rejoin(path: Path, who: str, role: str | None, sign: str | None, as_json: bool) -> None:
    """Let somebody who left in again: they may write from now on; what they wrote in between stays out."""
    from lace.people.forms import Role
    from lace.porcelain.membership import readmit

    with opened(path, write=True) as lace:
        person = person_named(lace, who)
        written = readmit(lace, person, admin_key(lace, sign), role=None if role is None else Role(role))
    print_written(written, f"{called(person)} is a member again", as_json=as_json, verifier=person.verifier)


@command.command("replace")
@lace_argument
@click.argument("who", metavar="NAME|KEY", shell_complete=names)
@click.argument("new", metavar="KEY|V", shell_complete=names)
@click.option("--key", "old", metavar="V", help="Which of their keys is lost; by default the first one.")
@signer_option
@json_option
def replace(path: Path, who: str, new: str, old: str | None, sign: str | None, as_json: bool) -> None:
    """Put a new key in the place of one that somebody lost; what the old one wrote so far stands.

    The new key is NEW, made on their new machine with `lace key new`. It takes an admin.
    """
    from lace.cli.commands.key import user_ring
    from lace.notation.identifiers import Verifier
    from lace.porcelain.membership import replace_key

    with opened(path, write=True) as lace:
        person = person_named(lace, who)
        lost = person.verifier if old is None else Verifier.parse(old)
        fresh = user_ring().verifier(new)
        written = replace_key(lace, person, lost, fresh, admin_key(lace, sign))
    print_written(
        written,
        f"{short_hash(fresh)} acts for {called(person)}; {count_of(written.stands, 'record')} of the lost key stand",
        as_json=as_json,
        verifier=fresh,
        person=person.verifier,
    )
