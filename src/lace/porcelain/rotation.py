"""Successors of keys (080): make one on the first day, commit to it, and put it in the place of a key one day.

Rule: the key that follows and the record that names it are kept apart from the key ring, under `successors/` of the
home of Lace; they can be moved to another medium and are needed only to rotate. A lace gets a hash on the first day.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from lace.errors import InvalidText, KeyUnavailable
from lace.notation.identifiers import RecordHash, Verifier
from lace.people import forms
from lace.people.forms import App
from lace.people.roster import PeopleStanding
from lace.porcelain.membership import PeopleWritten, orders_of, put_signed, require_root, standing_records
from lace.porcelain.remotes import add_remote, remotes_of
from lace.records.keys import SigningKey, SigningSecret
from lace.records.validate import validate
from lace.records.write import encode_record
from lace.values import dataclass

if TYPE_CHECKING:
    from lace.porcelain.lace import Lace


@dataclass(frozen=True, slots=True)
class Successor:
    """The key that is to follow another, and the records that say so, by group."""

    secret: SigningSecret
    records: dict[str, bytes]

    @property
    def key(self) -> SigningKey:
        """The key itself."""
        return SigningKey.from_secret(self.secret)


class Successors:
    """The successors that a user keeps."""

    def __init__(self, home: Path) -> None:
        self.folder = home / "successors"

    def _path(self, verifier: Verifier) -> Path:
        return self.folder / f"{verifier}.json"

    def find(self, verifier: Verifier) -> Successor | None:
        """The successor of a key; None if there is none here."""
        try:
            table = json.loads(self._path(verifier).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise KeyUnavailable(f"the successor of {verifier} cannot be read: {error}") from None
        records = {group: text.encode() for group, text in table["records"].items()}
        return Successor(SigningSecret.parse(table["secret"]), records)

    def keep(self, verifier: Verifier, successor: Successor) -> None:
        """Keep it in a file that only its owner can read, whole or not at all."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        records = {group: stored.decode() for group, stored in successor.records.items()}
        text = json.dumps({"secret": successor.secret.reveal(), "records": records})
        aside = self._path(verifier).with_suffix(".new")
        aside.unlink(missing_ok=True)
        with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(self._path(verifier))

    def drop(self, verifier: Verifier) -> None:
        """Forget the successor of a key that was rotated."""
        self._path(verifier).unlink(missing_ok=True)


def commit_successor(lace: Lace, key: SigningKey, kept: Successors) -> RecordHash | None:
    """Commit to a successor, made if there is none yet; None if this key committed to one in this lace before."""
    root = require_root(lace)
    if _committed(lace, root.group, key.verifier):
        return None
    successor = kept.find(key.verifier) or Successor(SigningSecret.generate(), {})
    if root.group not in successor.records:
        plex = forms.successor(root.group, key.verifier, successor.key.verifier, lace.clock.tai())
        stored = encode_record(successor.key.seal(plex))
        successor = Successor(successor.secret, {**successor.records, root.group: stored})
        kept.keep(key.verifier, successor)
    named = validate(successor.records[root.group]).hash
    plex = forms.commitment(root.group, key.verifier, named, lace.clock.tai())
    (record,) = put_signed(lace, key.seal, [plex])
    return record


def _committed(lace: Lace, group: str, verifier: Verifier) -> bool:
    return any(entry.signer == verifier for entry in lace.store.entries(group, App.SUCCESSOR, verifier))


def rotate(lace: Lace, verifier: Verifier, kept: Successors) -> PeopleWritten:
    """Put the successor of a key in its place: publish the record it committed to, and say what stands of the key."""
    root = require_root(lace)
    successor = kept.find(verifier)
    if successor is None or root.group not in successor.records:
        error = KeyUnavailable(f"the successor of {verifier} in //{root.group} is not in {kept.folder}")
        error.add_note("put the file back that was moved away, or ask an admin for `lace member replace`")
        raise error
    before = PeopleStanding(lace.store, root)
    was_admin = verifier in before.keys("Admin")
    stands = standing_records(lace, before, verifier, None, with_devices=True)
    orders = orders_of(lace, before, verifier)
    published = lace.put_stored(successor.records[root.group])
    if successor.key.verifier not in {row[0] for row in PeopleStanding(lace.store, root).rows("Key", 2)}:
        lace.store.delete(published)
        raise InvalidText(
            "the key committed to two successors, or is not a member any more, so nobody can follow it; an admin can "
            "replace it with `lace member replace`",
            rule="people-rotate",
            found=str(verifier),
        )
    now = lace.clock.tai()
    plexes = forms.left(root.group, verifier, now, stands)
    if was_admin:
        plexes += forms.admin_out(root.group, verifier, now, orders)
    records = put_signed(lace, successor.key.seal, plexes)
    commit_successor(lace, successor.key, kept)
    return PeopleWritten((published, *records), len(stands))


def use_key(lace: Lace, before: Verifier, after: Verifier) -> None:
    """Dial with another key wherever a remote of this lace says the old one."""
    for remote in remotes_of(lace.store):
        if remote.key == before:
            add_remote(lace.store, replace(remote, key=after), replace=True)
