"""What the commands about people share: whose key signs, who is meant, and what a record of them prints.

Rule: a name on the command line is looked up among the people of the lace first, then in the key ring; what cannot be
found is an error with what is near, before anything is written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lace.cli.commands.key import ring_names, user_ring
from lace.cli.options.completing import keys
from lace.cli.options.names import name_book
from lace.cli.output.output import print_json, say
from lace.errors import KeyUnavailable, NotFound

if TYPE_CHECKING:
    from lace.notation.identifiers import Verifier
    from lace.people.roster import Person
    from lace.porcelain.lace import Lace
    from lace.porcelain.membership import PeopleWritten
    from lace.porcelain.rotation import Successors
    from lace.records.keys import SigningKey

F = TypeVar("F", bound=Callable[..., Any])


def signer_option(function: F) -> F:
    """`--sign KEY`."""
    return click.option(
        "--sign",
        metavar="KEY",
        shell_complete=keys,
        help="Sign with this key of the ring. Default: the one key of the ring that may.",
    )(function)


def admin_key(lace: Lace, word: str | None) -> SigningKey:
    """The key of an admin that signs: the one named, else the only one of the ring that may."""
    from lace.people.standing import admins_in_force
    from lace.porcelain.membership import require_root

    root = require_root(lace)
    return own_key(word, admins_in_force(lace.store, root), f"an admin of //{root.group}")


def own_key(word: str | None, may: Collection[str], who: str) -> SigningKey:
    """The key of the ring that is one of these."""
    ring = user_ring()
    if word is not None:
        return ring.load(word)
    mine = {name: verifier for verifier, name in ring_names().items() if verifier in may}
    if not mine:
        error = KeyUnavailable(f"no key of your ring is {who}")
        error.add_note("`lace member list` shows who is; --sign names the key to sign with")
        raise error
    if len(mine) > 1:
        raise click.UsageError(f"several of your keys are {who}: choose with --sign {' or '.join(sorted(mine))}")
    return ring.load(next(iter(mine)))


def verifier_of(lace: Lace, word: str) -> Verifier:
    """The verifier that a word means: a verifier, a key of the ring or a name of mine, or somebody of the group."""
    from lace.porcelain.membership import roster

    if (named := _named(lace, word)) is not None:
        person = roster(lace).of_key(named)
        return named if person is None else person.verifier
    try:
        return person_named(lace, word).verifier
    except NotFound:
        return user_ring().verifier(word)


def person_named(lace: Lace, word: str) -> Person:
    """Somebody of the group, by a key or by any name known here; mine go before those that people give themselves."""
    from lace.porcelain.membership import find_person, roster

    named = _named(lace, word)
    person = None if named is None else roster(lace).of_key(named)
    return find_person(lace, word) if person is None else person


def _named(lace: Lace, word: str) -> Verifier | None:
    """The key that a name stands for; None if the word is a verifier, or a name that nobody uses."""
    book = name_book(lace.store)
    return None if word.startswith("V.") or word not in book.words() else book.verifier(word)


def called(person: Person) -> str:
    """How to name somebody: the name they gave themselves, else that of a key of the ring, else their key cut short."""
    from lace.cli.output.words import short_hash

    return person.called or ring_names().get(person.verifier) or short_hash(person.verifier)


def told(verifier: str, people: Collection[Person]) -> str:
    """How to name the owner of a key."""
    from lace.cli.output.words import short_hash

    for person in people:
        if any(key.verifier == verifier for key in person.keys):
            return called(person)
    return ring_names().get(verifier) or short_hash(verifier)


def successors() -> Successors:
    """The successors of the keys of this user."""
    from lace.porcelain.rotation import Successors

    return Successors(user_ring().folder.parent)


def print_written(written: PeopleWritten, sentence: str, *, as_json: bool, **fields: object) -> None:
    """What a command about people did."""
    if as_json:
        print_json({**fields, "records": list(written.records), "stands": written.stands})
    else:
        say(sentence)
