"""`lace invite LACE [NAME]`: a line that lets somebody in."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lace.cli.commands.member import ROLES
from lace.cli.options.arguments import lace_argument, opened
from lace.cli.options.people import admin_key, print_written, signer_option, successors, told
from lace.cli.output.output import json_option, print_json_lines, say
from lace.cli.output.tables import print_table
from lace.cli.output.text import visible_line
from lace.cli.output.words import count_of

if TYPE_CHECKING:
    from lace.people.roster import Invitation, Roster
    from lace.porcelain.lace import Lace

_UNITS = {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}
MAX_DAYS = 366


class SpanType(click.ParamType[int]):
    """A span of time: `7d`, `12h`, `30m` or `2w`, as seconds."""

    name = "span"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        match = re.fullmatch(r"([0-9]{1,5})([mhdw])", str(value).strip())
        seconds = int(match[1]) * _UNITS[match[2]] if match else 0
        if not 0 < seconds <= MAX_DAYS * 86_400:
            self.fail(f"{value!r} is not a span of time such as 7d, 12h, 30m or 2w, up to a year", param, ctx)
        return seconds


@click.command("invite")
@lace_argument
@click.argument("name", required=False)
@click.option("--role", type=click.Choice(ROLES), default="member", show_default=True, help="What they may do.")
@click.option("--uses", type=click.IntRange(1, 10_000), default=1, show_default=True, help="How many it lets in.")
@click.option("--expires", "lasts", type=SpanType(), default="7d", show_default=True, help="How long it holds.")
@click.option("--address", metavar="ADDRESS", help="Where they dial; remembered for later invitations.")
@click.option("--pin", metavar="PIN", help="Over wss: the pin of the certificate there, as `lace cert` prints it.")
@click.option("--no-qr", is_flag=True, help="Print the line alone, without a QR code.")
@click.option("--as", "own_name", metavar="NAME", help="Publish this as your name, which the others see.")
@click.option("--list", "listing", is_flag=True, help="List the invitations and what became of them.")
@click.option("--withdraw", is_flag=True, help="Withdraw the invitation for NAME; whom it let in stays.")
@signer_option
@json_option
def command(
    path: Path,
    name: str | None,
    role: str,
    uses: int,
    lasts: int,
    address: str | None,
    pin: str | None,
    no_qr: bool,
    own_name: str | None,
    listing: bool,
    withdraw: bool,
    sign: str | None,
    as_json: bool,
) -> None:
    """Print a line that lets somebody in.

    The line goes to whom you invite, by any safe way; they run `lace join LINE`. It holds the secret of a one-time key
    that an admin's record names, with its role, uses and end; anybody who has the secret signs their own member record
    with it. So a server that carries the records cannot invite anybody. Withdraw a line that went astray.

    NAME travels with the invitation: it is what the others call the newcomer, unless they choose otherwise. Your own
    name, as your ring of keys knows it, goes nowhere; --as publishes one.
    """
    if listing:
        with opened(path) as lace:
            _print_list(lace, as_json)
        return
    if withdraw:
        _withdraw(path, name, sign, as_json)
        return
    from lace.cli.options.inviting import place_of_line, print_line
    from lace.people.forms import Role
    from lace.porcelain.invitations import invite
    from lace.porcelain.membership import admit, find_person
    from lace.porcelain.rotation import commit_successor

    with opened(path, write=True) as lace:
        key = admin_key(lace, sign)
        where, pinned = place_of_line(lace, address, pin)
        found = invite(
            lace, key, address=where, pin=pinned, lasts_s=lasts, called=name or "", role=Role(role), uses=uses
        )
        commit_successor(lace, key, successors())
        mine = find_person(lace, key.verifier)
        if own_name is not None and own_name != mine.called:
            admit(lace, key.verifier, key, called=own_name)
        is_nameless = not (own_name or mine.called)
    who = visible_line(name or (f"{uses} people" if uses > 1 else "the person who gets it"))
    sentence = f"for {who}, until {_day(found.until)}; it lets in {count_of(uses, 'person', 'people')} as {role}:"
    print_line(
        found.line, sentence, qr=not no_qr, as_json=as_json, called=name, role=role, uses=uses, expires=found.until,
        record=found.record,
    )  # fmt: skip
    if is_nameless:
        say("the others see your key and no name of yours; --as NAME publishes one", err=True)


def _withdraw(path: Path, name: str | None, sign: str | None, as_json: bool) -> None:
    from lace.porcelain.invitations import find_invitation, withdraw

    if name is None:
        raise click.UsageError("name the invitation to withdraw; --list shows them")
    with opened(path, write=True) as lace:
        found = find_invitation(lace, name)
        written = withdraw(lace, found, admin_key(lace, sign))
    let_in = count_of(written.stands, "member")
    print_written(
        written,
        f"the invitation for {visible_line(name)} is withdrawn; {let_in} came in by it",
        as_json=as_json,
        one_time=found.one_time,
    )


def _print_list(lace: Lace, as_json: bool) -> None:
    from lace.porcelain.membership import roster

    everybody = roster(lace)
    now = lace.clock.tai()
    if as_json:
        print_json_lines(
            {
                "called": one.called or None,
                "one_time": one.one_time,
                "role": one.role,
                "uses": one.uses,
                "issued": one.issued,
                "expires": one.expires,
                "by": one.by,
                "is_withdrawn": one.is_withdrawn,
                "is_over": one.expires <= now,
                "admitted": [verifier for verifier, _ in one.admitted],
            }
            for one in everybody.invitations
        )
        return
    print_table(
        ("for", "by", "role", "until", "state", "came in"),
        [_row(one, everybody, now) for one in everybody.invitations],
        drop=("came in", "role", "by"),
    )


def _row(one: Invitation, everybody: Roster, now: str) -> list[str]:
    used = len(one.admitted) >= one.uses
    state = "withdrawn" if one.is_withdrawn else "used" if used else "over" if one.expires <= now else "open"
    return [
        visible_line(one.called or "anybody"),
        visible_line(told(one.by, everybody.people)),
        one.role,
        _day(one.expires),
        f"{state} ({len(one.admitted)} of {one.uses})",
        visible_line(", ".join(told(verifier, everybody.people) for verifier, _ in one.admitted)),
    ]


def _day(tai: str) -> str:
    from lace.cli.output.words import shown_time

    return shown_time(tai)
