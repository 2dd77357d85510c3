"""Names of keys on the command line: which key a word means, `@bob` in rules, and how a key is shown to people.

Rule: every command that takes a verifier takes it through `verifier_named`, and every rule file is read through
`resolved`. People are shown names, and the whole verifier only with `--full`; programs always get the verifier.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lace.cli.commands.key import ring_names, user_ring
from lace.cli.options.arguments import lace_of, opened_for_rules
from lace.cli.output.words import short_hash, shown_hash, wants_full
from lace.errors import LaceError

if TYPE_CHECKING:
    from lace.notation.identifiers import Verifier
    from lace.people.names import KeyName, NameBook
    from lace.store.base import RecordStore


def verifier_named(word: str, path: Path | None = None) -> Verifier:
    """The verifier that a word spells out or names; no secret is needed. KeyUnavailable says what is near."""
    ring = user_ring()
    if path is None or word.startswith("V."):
        return ring.verifier(word)
    with opened_for_rules(path) as lace:
        book = name_book(lace.store)
    if word not in book.words() and ring.has(word):  # a key file that cannot be used says so itself
        return ring.verifier(word)
    return book.verifier(word)


def name_book(store: RecordStore) -> NameBook:
    """Every name that is known in a lace, for the user of this ring."""
    from lace.people.names import NameBook

    return NameBook.of(store, ring_names())


def resolved(text: str, name: str, place: Path | str | None = None) -> str:
    """Rules as they were authored, with `@bob` replaced by the verifier of that name; refused where it names no key."""
    if "@" not in text:
        return text
    from lace.people.names import NameBook, with_verifiers

    context = click.get_current_context(silent=True)
    path = Path(place) if place is not None and Path(place).is_file() else lace_of(context)
    if path is None:
        book = NameBook(tuple(_ring_book()))
    else:
        with opened_for_rules(path) as lace:
            book = name_book(lace.store)
    return with_verifiers(text, book, name=name)


def _ring_book() -> list[KeyName]:
    from lace.notation.identifiers import Verifier
    from lace.people.names import KeyName, Whose

    return [KeyName(name, Verifier(verifier), Whose.KEY) for verifier, name in ring_names().items()]


class Namer:
    """How keys are shown to people.

    `anna` is a key of the ring or a name of mine, `"anna"` the name that the key's owner chose, and `bob/anna` the name
    that bob uses.
    """

    def __init__(self, book: NameBook | None) -> None:
        self._book = book

    @classmethod
    def of(cls, store: RecordStore) -> Namer:
        """For the names in a lace; damaged ones are no reason to show nothing."""
        book = None
        with suppress(LaceError):
            book = name_book(store)
        return cls(book)

    @classmethod
    def here(cls) -> Namer:
        """For the lace that this command is about; without one, for the keys of the ring."""
        from lace.people.names import NameBook

        path = lace_of(click.get_current_context(silent=True))
        with suppress(LaceError, OSError):
            if path is None:
                return cls(NameBook(tuple(_ring_book())))
            with opened_for_rules(path) as lace:
                return cls.of(lace.store)
        return cls(None)

    def is_mine(self, verifier: str) -> bool:
        """Whether the user has or gave the key a name."""
        from lace.people.names import Whose

        return any(one.whose in (Whose.KEY, Whose.MINE) for one in self._names(verifier))

    def name_of(self, verifier: str | None) -> str | None:
        """The preferred name, marked by whose it is; None if there is none."""
        names = self._names(verifier or "")
        return spelled(names[0], self._book) if names else None

    def shown(self, verifier: str) -> str:
        """A key as people see it: its name, with --full the key too; without a name, the key."""
        name = self.name_of(verifier)
        if name is None:
            return shown_hash(verifier)
        return f"{name} {verifier}" if wants_full() else name

    def _names(self, verifier: str) -> list[KeyName]:
        return [] if self._book is None else self._book.of_key(verifier)


_HERE = "lace.namer"  # in what all contexts of one command line share


def name_of(verifier: str) -> str | None:
    """How a key is called in the lace of this command; its names are read when the first key is shown."""
    context = click.get_current_context(silent=True)
    if context is None:
        return None
    if _HERE not in context.meta:
        context.meta[_HERE] = Namer.here()
    namer: Namer = context.meta[_HERE]
    return namer.name_of(verifier)


def spelled(one: KeyName, book: NameBook | None) -> str:
    """A name with the mark of whose it is."""
    from lace.people.names import Whose

    if one.whose is Whose.OWN:
        return f'"{one.name}"'
    if one.whose is Whose.FRIEND:
        known = [] if book is None else book.of_key(one.by or "")
        by = next((spelled(name, None) for name in known if name.whose is not Whose.FRIEND), short_hash(one.by or ""))
        return f"{by}/{one.name}"
    return one.name
