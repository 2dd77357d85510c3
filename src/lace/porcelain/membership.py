"""Members, devices and admins in a developer's hands (080): who is in, let somebody in, let them go.

Rule: a verb writes signed people records and nothing else; what they mean is decided by the core rules. A verb that the
rules would not heed raises before it writes.

    with lace.open("club.lace") as club:
        admit(club, bob, key, called="bob")
        put_out(club, find_person(club, "bob"), key)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from lace.errors import InvalidText, NotFound
from lace.notation.identifiers import RecordHash, Verifier
from lace.notation.tai import TAI
from lace.people import forms
from lace.people.forms import App, Role
from lace.people.root import Root, pinned_root
from lace.people.roster import PeopleStanding, Person, Roster
from lace.records.keys import SigningKey
from lace.records.model import Plex
from lace.values import dataclass

if TYPE_CHECKING:
    from lace.porcelain.lace import Lace


@dataclass(frozen=True, slots=True)
class PeopleWritten:
    """People records that a verb wrote, and how many records of somebody who left stand."""

    records: tuple[RecordHash, ...]
    stands: int = 0


def require_root(lace: Lace) -> Root:
    """The root of a lace; NotFound, with what makes one, if nobody pinned one."""
    root = pinned_root(lace.store)
    if root is None:
        error = NotFound("this lace has no founder, so it has no members")
        error.add_note("`lace policy set LACE members --group NAME` founds a group; `lace join LINE` joins one")
        raise error
    return root


def roster(lace: Lace) -> Roster:
    """Everybody of the group of a lace."""
    return PeopleStanding(lace.store, require_root(lace)).roster()


def find_person(lace: Lace, word: str) -> Person:
    """Who is called this or has this key; NotFound with what is near, InvalidText if several are called so."""
    everybody = roster(lace)
    found = everybody.named(word)
    if len(found) == 1:
        return found[0]
    if found:
        keys = ", ".join(one.verifier for one in found)
        raise InvalidText(f"{len(found)} people are called {word}: name one by a key", rule="person", found=keys)
    from lace.policy.lint import nearest  # only who mistyped needs it

    names = sorted(one.called for one in everybody.people if one.called)
    error = NotFound(f"nobody in //{everybody.root.group} is called {word!r} or has this key")
    error.add_note(nearest(word, names) or "`lace member list` shows everybody")
    raise error


def admit(
    lace: Lace, verifier: Verifier, sign: SigningKey, *, called: str = "", role: Role = Role.MEMBER
) -> PeopleWritten:
    """Let a key in as a member, or in again."""
    root = _for_admin(lace, sign)
    at = _after(lace, root, verifier)
    return _sign(lace, sign, [forms.member(root.group, verifier, at, role=role, called=called)])


def put_out(
    lace: Lace, person: Person, sign: SigningKey, *, since: TAI | None = None, only: Verifier | None = None
) -> PeopleWritten:
    """End the membership of a person, or of one key of theirs: what came before stands, nothing else comes in.

    With `since`, records dated at that time or later do not stand, although they are here. Writes nothing if that was
    said before.
    """
    root = require_root(lace)
    standing = PeopleStanding(lace.store, root)
    admins = standing.keys("Admin")
    keys = [key.verifier for key in person.keys] if only is None else [only]
    own = {person.verifier, *(key.verifier for key in person.keys)}
    if sign.verifier not in admins and sign.verifier not in own:
        raise InvalidText(
            "only an admin and the person itself may end a membership", rule="people-signer", found=sign.verifier
        )
    ending = [verifier for verifier in keys if verifier in admins]
    if ending:
        error = InvalidText("an admin cannot leave", rule="people-admin", found=ending[0])
        error.add_note("first end that: `lace admin rm`")
        raise error
    said = {row[1] for row in standing.rows("PutOut", 3)}
    is_last_word = sign.verifier not in admins or said.issuperset(keys)
    if since is None and is_last_word and not {key for key, _ in standing.rows("Key", 2)} & set(keys):
        return PeopleWritten(())  # all of it is over already, and nobody has more to say about what stands
    plexes: list[Plex] = []
    stands = 0
    for verifier in keys:
        named = standing_records(lace, standing, verifier, since, with_devices=only is not None)
        stands += len(named)
        plexes += forms.left(root.group, verifier, _after(lace, root, verifier), named)
    written = _sign(lace, sign, plexes)
    return PeopleWritten(written.records, stands)


def standing_records(
    lace: Lace, standing: PeopleStanding, verifier: Verifier, since: TAI | None, *, with_devices: bool
) -> list[RecordHash]:
    """What stands of what a key signed: all that counts now and is here, up to a time."""
    kept = {record for record, signer in standing.rows("Standing", 2) if signer == verifier}
    bounds = [at for key, at in standing.rows("Since", 2) if key == verifier]
    found = []
    for entry in lace.store.entries(standing.root.group):
        if entry.signer != verifier or (since is not None and entry.tai >= since):
            continue
        if entry.app == App.DEVICE and not with_devices:
            continue
        if entry.hash in kept or any(entry.tai >= bound for bound in bounds):
            found.append(entry.hash)
    return found


def orders_of(lace: Lace, standing: PeopleStanding, verifier: Verifier) -> list[RecordHash]:
    """What an admin signed as one, as far as it counts now and is here, and what it withdrew."""
    counted = {row[0] for name, arity in (("ByAdmin", 1), ("AdminIn", 4), ("AdminOut", 4)) for row in
               standing.rows(name, arity)}  # fmt: skip
    return [
        entry.hash
        for entry in lace.store.entries(standing.root.group)
        if entry.signer == verifier and (entry.hash in counted or entry.withdraws)
    ]


def readmit(lace: Lace, person: Person, sign: SigningKey, *, role: Role | None = None) -> PeopleWritten:
    """Let somebody who left in again, with the first key; what they wrote in between stays out."""
    if person.is_member and person.verifier in person.acting:
        raise InvalidText(f"{person.called or person.verifier} is a member", rule="people-member")
    chosen = role if role is not None else Role(person.role)
    return admit(lace, person.verifier, sign, called=person.called, role=chosen)


def replace_key(lace: Lace, person: Person, old: Verifier, new: Verifier, sign: SigningKey) -> PeopleWritten:
    """A lost key goes and a new one comes in for the same person; what the old one signed so far stands."""
    root = _for_admin(lace, sign)
    gone = put_out(lace, person, sign, only=old)
    at = _after(lace, root, new)
    came = _sign(lace, sign, [forms.device(root.group, new, person.verifier, at, called="")])
    return PeopleWritten((*gone.records, *came.records), gone.stands)


def add_device(lace: Lace, person: Person, verifier: Verifier, sign: SigningKey, *, called: str = "") -> PeopleWritten:
    """Name a key as another device of a person; signed by the person's own key or by an admin."""
    root = require_root(lace)
    standing = PeopleStanding(lace.store, root)
    heirs = {after for before, after in standing.rows("Line", 2) if before == person.verifier}
    own = {person.verifier, *heirs} & {key for key, _ in standing.rows("Key", 2)}
    if sign.verifier not in own and sign.verifier not in standing.keys("Admin"):
        raise InvalidText(
            "only the first key of a person and an admin may add a device", rule="people-signer", found=sign.verifier
        )
    at = _after(lace, root, verifier)
    return _sign(lace, sign, [forms.device(root.group, verifier, person.verifier, at, called=called)])


def appoint(lace: Lace, verifier: Verifier, sign: SigningKey) -> PeopleWritten:
    """Make somebody an admin; writes nothing if the same admin did so before and it counts."""
    root = _for_admin(lace, sign)
    standing = PeopleStanding(lace.store, root)
    over = {*standing.keys("TakenBack"), *standing.keys("Ended")}
    said = {(key, giver) for record, key, giver, _ in standing.rows("AdminIn", 4) if record not in over}
    if (verifier, sign.verifier) in said:
        return PeopleWritten(())
    return _sign(lace, sign, [forms.admin_in(root.group, verifier, _after(lace, root, verifier))])


def dismiss(lace: Lace, verifier: Verifier, sign: SigningKey) -> PeopleWritten:
    """End that somebody is an admin; what they signed as one stands as far as it counts now and is here.

    It takes the founder, the admin who appointed them, or themselves.
    """
    root = require_root(lace)
    standing = PeopleStanding(lace.store, root)
    if verifier not in standing.keys("Admin"):
        raise NotFound(f"{verifier} is not an admin of //{root.group}")
    givers = {giver for _, key, giver, _ in standing.rows("InOffice", 4) if key == verifier}
    if sign.verifier not in {*standing.keys("Root"), *givers, verifier}:
        raise InvalidText(
            "only the founder, who appointed an admin, and the admin itself may end that",
            rule="people-signer",
            found=sign.verifier,
        )
    stands = orders_of(lace, standing, verifier)
    at = _after(lace, root, verifier)
    written = _sign(lace, sign, forms.admin_out(root.group, verifier, at, stands))
    return PeopleWritten(written.records, len(stands))


def _for_admin(lace: Lace, sign: SigningKey) -> Root:
    root = require_root(lace)
    if sign.verifier not in PeopleStanding(lace.store, root).keys("Admin"):
        raise InvalidText(f"only an admin of //{root.group} may do this", rule="people-signer", found=sign.verifier)
    return root


def _after(lace: Lace, root: Root, verifier: str) -> TAI:
    """Now, or just after the newest people record about a key, if our clock is behind it."""
    newest = TAI("0000000000:000000000")
    for app in (App.MEMBER, App.DEVICE, App.LEFT, App.ADMIN, App.INVITE):
        for entry in lace.store.entries(root.group, app, verifier):
            newest = max(newest, TAI(entry.tai).plus_ns(1))
    return max(lace.clock.tai(), newest)


def _sign(lace: Lace, sign: SigningKey, plexes: Sequence[Plex]) -> PeopleWritten:
    return PeopleWritten(tuple(put_signed(lace, sign.seal, plexes)))


def put_signed(lace: Lace, seal: Callable[[Plex], object], plexes: Iterable[Plex]) -> list[RecordHash]:
    """Store people records under a signature, all of them or none."""
    with lace.batch() as batch:
        return [batch.put_record(seal(plex)) for plex in plexes]  # type: ignore[arg-type]
