"""The forms of people records (080): what each kind is called, and how one is built.

Rule: a form is a Plex whose Name and headers say everything; its content is empty and nothing ever reads it. Whoever
builds one signs it with the key that the rules expect, and the rules alone decide whether it counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

from lace.errors import InvalidText
from lace.notation.identifiers import RecordHash, Verifier
from lace.notation.tai import TAI
from lace.records.link import parse_link
from lace.records.model import Header, Plex

STANDS = "Stands+Link"
COMMITS = "Commits+Link"
MAX_NAMED = 450  # records that one record names: 010 allows 512 headers
MAX_CALLED = 64
MAX_USES = 10_000


class App(StrEnum):
    """The apps under a group in which people records stand."""

    ADMIN = "admin"
    MEMBER = "member"
    DEVICE = "device"
    INVITE = "invite"
    LEFT = "left"
    SUCCESSOR = "successor"


class Role(StrEnum):
    """What a member may do: a reader reads and passes on, and what it writes does not come in."""

    MEMBER = "member"
    READER = "reader"


class WordState(StrEnum):
    """The states of admins (in, out) and of invitations (open, withdrawn)."""

    IN = "in"
    OUT = "out"
    OPEN = "open"
    WITHDRAWN = "withdrawn"


def admin_in(group: str, verifier: Verifier, at: TAI) -> Plex:
    """This key is an admin; signed by an admin."""
    return _form(group, App.ADMIN, verifier, at, [("State", WordState.IN)])


def admin_out(group: str, verifier: Verifier, at: TAI, stands: Iterable[RecordHash] = ()) -> list[Plex]:
    """This key is not an admin any more; what it signed as one counts as far as it is named here."""
    return [
        _form(
            group, App.ADMIN, verifier, at.plus_ns(number), [("State", WordState.OUT), *_links(STANDS, "record", part)]
        )
        for number, part in enumerate(_parts(stands))
    ]


def member(
    group: str, verifier: Verifier, at: TAI, *, role: Role = Role.MEMBER, called: str = "", invited: str = ""
) -> Plex:
    """This key is a member; signed by an admin, or by the one-time key of an invitation."""
    headers: list[Header] = [("Role", role)]
    if called:
        headers.append(("Called", checked_called(called)))
    if invited:
        headers.append(("Invited-By", invited))
    return _form(group, App.MEMBER, verifier, at, headers)


def device(group: str, verifier: Verifier, person: Verifier, at: TAI, *, called: str = "") -> Plex:
    """This key is another device of a person; signed by the person's key or by an admin."""
    headers: list[Header] = [("Person", person)]
    if called:
        headers.append(("Called", checked_called(called)))
    return _form(group, App.DEVICE, verifier, at, headers)


def invite(
    group: str, one_time: Verifier, at: TAI, *, until: TAI, uses: int = 1, role: Role = Role.MEMBER, called: str = ""
) -> Plex:
    """Whoever holds the secret of this one-time key may sign member records; signed by an admin."""
    if not 1 <= uses <= MAX_USES:
        raise InvalidText(f"an invitation is for 1 to {MAX_USES:,} people", rule="invite-uses", found=str(uses))
    if until <= at:
        raise InvalidText("an invitation ends after it begins", rule="invite-end", found=until)
    headers: list[Header] = [("Expires", until), ("Role", role), ("State", WordState.OPEN), ("Uses", str(uses))]
    if called:
        headers.append(("Called", checked_called(called)))
    return _form(group, App.INVITE, one_time, at, headers)


def invite_withdrawn(group: str, one_time: Verifier, at: TAI, stands: Iterable[RecordHash] = ()) -> list[Plex]:
    """Nobody comes in by this invitation any more, but for the member records named here."""
    return [
        _form(
            group,
            App.INVITE,
            one_time,
            at.plus_ns(number),
            [("State", WordState.WITHDRAWN), *_links(STANDS, "record", part)],
        )
        for number, part in enumerate(_parts(stands))
    ]


def left(group: str, verifier: Verifier, at: TAI, stands: Iterable[RecordHash] = ()) -> list[Plex]:
    """This key left: from now on only what is named here stands of what it signed.

    More than one record holds is continued under numbered names; all parts have the same time and count together.
    """
    return [
        _form(
            group,
            App.LEFT,
            verifier if number == 0 else f"{verifier}/{number + 1}",
            at,
            [("From", at), ("Of", verifier), *_links(STANDS, "record", part)],
        )
        for number, part in enumerate(_parts(stands))
    ]


def successor(group: str, verifier: Verifier, following: Verifier, at: TAI) -> Plex:
    """`following` follows this key; signed by `following` on the first day, and shown to nobody until it is needed."""
    return _form(group, App.SUCCESSOR, verifier, at, [("Next", following)])


def commitment(group: str, verifier: Verifier, record: RecordHash, at: TAI) -> Plex:
    """This key will be followed by the one that this record names; signed by the key itself, once."""
    return _form(group, App.SUCCESSOR, verifier, at, [*_links(COMMITS, "successor", [record])])


def checked_called(name: str) -> str:
    """The name that people give themselves: one short line."""
    if not name.isprintable() or not 1 <= len(name) <= MAX_CALLED or name != name.strip():
        raise InvalidText(
            f"the name of a member is 1 to {MAX_CALLED} printable characters", rule="called", found=repr(name[:80])
        )
    return name


def _form(group: str, app: App, name: str, at: TAI, headers: Sequence[Header]) -> Plex:
    ordered = tuple(sorted(headers, key=lambda header: header[0].encode()))
    return Plex(group=group, app=app, name=name, tai=at, headers=ordered)


def _links(name: str, word: str, targets: Iterable[RecordHash]) -> Iterator[Header]:
    for target in targets:
        header = (name, f"{word} {target}")
        assert parse_link(*header) is not None
        yield header


def _parts(named: Iterable[RecordHash]) -> list[list[RecordHash]]:
    """What is named, in as few records as hold it: one at least."""
    every = sorted(set(named))
    return [every[start : start + MAX_NAMED] for start in range(0, len(every), MAX_NAMED)] or [[]]
