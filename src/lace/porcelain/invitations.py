"""Invitations (080): a line that lets somebody in, made on one machine and used on another.

Rule: the line holds the secret of a one-time key and what a newcomer has to pin: where to dial, whose certificate that
is, and who founded the group. Whoever reads the line may use it, so it is shown once and stored nowhere.

    lace1.<B64A of the bytes below>

    1 byte of kind, 32 of the secret, 32 of the founder, 4 of the time of issue, 32 of the pin or none, then the group,
    the name and the address, each with a byte of length before it, and 4 bytes of the BLAKE3 hash of all of that.
"""

from __future__ import annotations

import json
import struct
from enum import IntEnum
from typing import TYPE_CHECKING

from lace.errors import InvalidInput, InvalidText, NotFound
from lace.iltp.address import parse_address
from lace.notation import b64a
from lace.notation.digest import digest
from lace.notation.identifiers import RecordHash, Verifier
from lace.notation.tai import TAI
from lace.people import forms
from lace.people.forms import Role
from lace.people.root import NAMESPACE, Root, pin_root
from lace.people.roster import Invitation, PeopleStanding
from lace.porcelain.membership import PeopleWritten, put_signed, require_root, roster
from lace.records.grammar import check_path
from lace.records.keys import SigningKey, SigningSecret
from lace.values import dataclass

if TYPE_CHECKING:
    from lace.porcelain.lace import Lace

PREFIX = "lace1."
_SUM_BYTES = 4
_MAX_LINE = 1200


class LineKind(IntEnum):
    """What the secret of a line is."""

    MEMBER = 1  # the one-time key of an invitation
    DEVICE = 2  # the key of the device itself
    READER = 3  # the one-time key of an invitation for a reader

    @classmethod
    def for_role(cls, role: Role) -> LineKind:
        """The kind of a line that lets somebody in with this role."""
        return cls.READER if role is Role.READER else cls.MEMBER

    @property
    def role(self) -> Role:
        """The role that a member record made with this line has to have."""
        return Role.READER if self is LineKind.READER else Role.MEMBER


@dataclass(frozen=True, slots=True, kw_only=True)
class InviteLine:
    """What a line says."""

    kind: LineKind
    secret: SigningSecret
    root: Root
    issued: TAI
    address: str  # where to dial; empty if nobody said
    pin: bytes | None = None  # the SHA-256 of the certificate there
    called: str = ""

    def __str__(self) -> str:
        pin = self.pin or b""
        seconds = int(self.issued[:10])
        data = bytes([self.kind | (0x80 if pin else 0)]) + self.secret.material() + self.root.founder.digest
        data += struct.pack(">Q", seconds)[2:] + pin
        for text in (self.root.group, self.called, self.address):
            encoded = text.encode()
            data += bytes([len(encoded)]) + encoded
        return PREFIX + b64a.encode(data + digest(data)[:_SUM_BYTES])

    @classmethod
    def parse(cls, text: str) -> InviteLine:
        """What a line says; InvalidText if it was cut, mistyped, or is something else."""
        line = "".join(text.split())
        if not line.startswith(PREFIX) or len(line) > _MAX_LINE:
            raise InvalidText(f"an invitation begins with {PREFIX}", rule="invite-line", found=repr(text[:12]))
        try:
            data = b64a.decode(line.removeprefix(PREFIX))
        except InvalidText:
            raise _damaged() from None
        body, check = data[:-_SUM_BYTES], data[-_SUM_BYTES:]
        if len(data) < _SUM_BYTES or digest(body)[:_SUM_BYTES] != check:
            raise _damaged()
        try:
            return cls._read(body)
        except (IndexError, ValueError, InvalidInput, struct.error):
            raise _damaged() from None

    @classmethod
    def _read(cls, body: bytes) -> InviteLine:
        kind, has_pin = LineKind(body[0] & 0x7F), bool(body[0] & 0x80)
        secret, founder = SigningSecret(body[1:33]), Verifier.of(body[33:65])
        (seconds,) = struct.unpack(">Q", b"\0\0" + body[65:71])
        place = 71
        pin = body[place : place + 32] if has_pin else None
        place += 32 if has_pin else 0
        texts = []
        for _ in range(3):
            length = body[place]
            texts.append(body[place + 1 : place + 1 + length].decode())
            place += 1 + length
        group, called, address = texts
        if place != len(body) or (pin is not None and len(pin) != 32):
            raise ValueError("length")
        check_path("Group", group)
        if called:
            forms.checked_called(called)
        if address:
            parse_address(address)
        return cls(
            kind=kind,
            secret=secret,
            root=Root(group, founder),
            issued=TAI.parse(f"{seconds:010d}:000000000"),
            address=address,
            pin=pin,
            called=called,
        )


def _damaged() -> InvalidText:
    return InvalidText("this invitation was cut off or changed; copy the whole line", rule="invite-line")


@dataclass(frozen=True, slots=True)
class Invited:
    """An invitation that was just signed."""

    line: InviteLine
    record: RecordHash
    until: TAI


def invite(
    lace: Lace,
    sign: SigningKey,
    *,
    address: str,
    lasts_s: int,
    called: str = "",
    role: Role = Role.MEMBER,
    uses: int = 1,
    pin: bytes | None = None,
) -> Invited:
    """Sign an invitation; the result holds the line for whom it is for."""
    root = require_root(lace)
    if sign.verifier not in PeopleStanding(lace.store, root).keys("Admin"):
        raise InvalidText(f"only an admin of //{root.group} may invite", rule="people-signer", found=sign.verifier)
    if address:
        parse_address(address)
    secret = SigningSecret.generate()
    one_time = SigningKey.from_secret(secret).verifier
    now = lace.clock.tai()
    at = TAI(f"{now[:10]}:000000000")  # the line has whole seconds; a member record is dated at this time or later
    until = at.plus_ns(lasts_s * 1_000_000_000)
    plex = forms.invite(root.group, one_time, at, until=until, uses=uses, role=role, called=called)
    (record,) = put_signed(lace, sign.seal, [plex])
    kind = LineKind.for_role(role)
    line = InviteLine(kind=kind, secret=secret, root=root, issued=at, address=address, pin=pin, called=called)
    return Invited(line, record, until)


def device_line(lace: Lace, secret: SigningSecret, *, address: str, pin: bytes | None, called: str) -> InviteLine:
    """The line that carries the key of a device of one's own to that device."""
    root = require_root(lace)
    at = TAI(f"{lace.clock.tai()[:10]}:000000000")
    return InviteLine(
        kind=LineKind.DEVICE, secret=secret, root=root, issued=at, address=address, pin=pin, called=called
    )


def find_invitation(lace: Lace, word: str) -> Invitation:
    """The invitation for this name or of this one-time key, the newest first; NotFound if there is none."""
    found = [one for one in roster(lace).invitations if word in (one.called, one.one_time)]
    open_ones = [one for one in found if not one.is_withdrawn]
    if not found:
        raise NotFound(f"there is no invitation for {word!r}")
    return max(open_ones or found, key=lambda one: one.issued)


def withdraw(lace: Lace, invitation: Invitation, sign: SigningKey) -> PeopleWritten:
    """Nobody comes in by this invitation any more; whom it let in stays."""
    root = require_root(lace)
    if sign.verifier not in PeopleStanding(lace.store, root).keys("Admin"):
        raise InvalidText(
            f"only an admin of //{root.group} may withdraw an invitation", rule="people-signer", found=sign.verifier
        )
    stands = [record for _, record in invitation.admitted]
    at = max(lace.clock.tai(), TAI(invitation.issued).plus_ns(1))
    plexes = forms.invite_withdrawn(root.group, invitation.one_time, at, stands)
    return PeopleWritten(tuple(put_signed(lace, sign.seal, plexes)), len(stands))


def accept(lace: Lace, line: InviteLine, key: SigningKey, *, called: str = "") -> None:
    """Pin what a line says, and sign our own member record with its one-time key, unless we did before."""
    pin_root(lace.store, line.root)
    if line.kind is LineKind.DEVICE:
        return
    one_time = SigningKey.from_secret(line.secret)
    for entry in lace.store.entries(line.root.group, forms.App.MEMBER, key.verifier):
        if entry.signer == one_time.verifier:
            return
    at = max(lace.clock.tai(), line.issued.plus_ns(1))
    plex = forms.member(
        line.root.group,
        key.verifier,
        at,
        role=line.kind.role,
        called=called or line.called,
        invited=one_time.verifier,
    )
    put_signed(lace, one_time.seal, [plex])


_PLACE = "place"  # the setting that remembers where newcomers dial


def remember_place(lace: Lace, address: str, pin: bytes | None) -> None:
    """Remember where newcomers dial, for the next invitation."""
    parse_address(address)
    text = json.dumps({"address": address, "pin": None if pin is None else b64a.encode(pin)})
    lace.store.put_setting(NAMESPACE, _PLACE, text.encode())


def last_place(lace: Lace) -> tuple[str, bytes | None] | None:
    """Where the newcomers of the last invitation dial, and the pin there."""
    kept = lace.store.get_setting(NAMESPACE, _PLACE)
    if kept is None:
        return None
    table = json.loads(kept)
    return str(table["address"]), b64a.decode(table["pin"]) if table["pin"] else None
