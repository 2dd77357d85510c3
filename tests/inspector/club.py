"""A club's lace as three people have it after a while: policy, names, conflicts, a withdrawn note, content in parts.

Rule: everything is written by the verbs that people use; nothing is made up for the pages.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

import lace
from lace.limits import SECOND_NS
from lace.notation.tai import TAI
from lace.people.names import add_petname
from lace.people.root import Root
from lace.people.wording import TemplateWords
from lace.porcelain.content import ByteReader
from lace.porcelain.membership import admit
from lace.porcelain.policy import set_policy, template_policy
from lace.porcelain.remotes import Remote, add_remote, note_failure
from lace.records.keys import SigningSecret
from lace.runtime.clock import SystemClock
from lace.runtime.identity.keyring import KeyRing

DAY = 86_400
VERSIONS = 47  # of the log, so that its history has pages


@dataclass(frozen=True)
class Club:
    """The lace of a club, as anna has it, and who is in it."""

    path: Path
    anna: str
    bob: str
    carla: str
    boat: str  # the tip of //club//notes//boat, which anna and bob wrote
    plan: str  # what bob wrote and withdrew
    log: str  # the tip of a coordinate with many versions
    film: str  # content of which a part is missing


@contextmanager
def home(folder: Path) -> Iterator[None]:
    """A key ring of its own for whoever runs these tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LACE_HOME", str(folder / "home"))
        yield


def in_quarters(source: ByteReader) -> Iterator[bytes]:
    """Chunks of a thousand bytes, so that a small content has parts."""
    return iter(partial(source.read, 1024), b"")


def make_club(folder: Path) -> Club:
    """The lace of a club in a folder, for the user whose ring has anna's key."""
    anna, bob, carla = (lace.generate_key() for _ in range(3))
    secret = SigningSecret.generate()
    KeyRing.of_user().add("anna", secret)
    anna = KeyRing.of_user().load("anna")
    now = int(SystemClock().tai().to_unix_ns() / SECOND_NS)

    def days_ago(days: float) -> TAI:
        return TAI.of_unix_ns(int(now - days * DAY) * SECOND_NS)

    path = folder / "club.lace"
    root = Root("club", anna.verifier)
    with lace.open(path, create=True) as club:
        set_policy(club, template_policy("members", TemplateWords(root=root, apps=("notes", "photos"))), root, anna)
        admit(club, bob.verifier, anna, called="bobby")
        admit(club, carla.verifier, anna, called="Carla")
        add_petname(club.store, "bob", bob.verifier)
        note = {"group": "club", "app": "notes"}
        with club.batch() as batch:
            for number in range(VERSIONS):
                who = (anna, anna, carla)[number % 3]
                batch.put(f"Day {number + 1}: wind {number % 7}, nobody seasick.\n".encode(), **note, name="log",
                          tai=days_ago(60 - number), sign=who)  # fmt: skip
            for number in range(12):
                batch.put(f"# Trip {number}\n\nBring a rope.\n".encode(), **note, name=f"trips/2026/{number:02d}",
                          tai=days_ago(30 - 2 * number), sign=(anna, bob, carla)[number % 3])  # fmt: skip
        first = club.put(b"# The boat\n\nVarnish in May.\n", **note, name="boat", tai=days_ago(9), sign=anna)
        boat = club.put(b"# The boat\n\nVarnish in May.\nThe mast needs new wire.\n", **note, name="boat",
                        tai=days_ago(2), sign=bob, links=[("replaces", first)])  # fmt: skip
        plan = club.put(b"Sell the boat?\n", **note, name="plan", tai=days_ago(3), sign=bob)
        club.put(b"Keep the boat.\n", **note, name="minutes", tai=days_ago(1), sign=carla, links=[("about", boat)],
                 headers={"Content-Type": "text/markdown"})  # fmt: skip
        club.retract(plan, sign=bob)
        frames = b"".join(number.to_bytes(4) for number in range(1024))
        film = club.put(frames, group="club", app="photos", name="regatta.film", sign=carla, tai=days_ago(1),
                        cut=in_quarters)  # fmt: skip
        club.delete(next(row.hash for row in club.list_blobs()))
        newest = club.tip("//club//notes//log").entry
        add_remote(club.store, Remote("harbour", "wss:harbour.example"))
        note_failure(club.store, "harbour", "no route to host", days_ago(0.2))
        add_remote(club.store, Remote("bobs-laptop", "tcp:192.0.2.7"))
    return Club(path, anna.verifier, bob.verifier, carla.verifier, boat, plan, newest.hash, film)


def copy_of(club: Club, folder: Path) -> Path:
    """The same lace once more, to write to."""
    return Path(shutil.copy(club.path, folder / "copy.lace"))
