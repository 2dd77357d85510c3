"""Who a key belongs to, in words: the names of a lace and of the user's ring, and how pages show them.

Rule: a page shows a name and keeps the whole verifier on hover; a name that somebody else chose has quotation marks, as
everywhere. Names that cannot be read are no reason to show nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cached_property

from lace.errors import KeyUnavailable, LaceError
from lace.inspector.html import Markup, join, tag
from lace.inspector.widgets import link, short
from lace.notation.identifiers import Verifier
from lace.people.names import KeyName, NameBook, Whose
from lace.runtime.identity.keyring import KeyRing
from lace.store.base import RecordStore

_HASH = re.compile(r"'([A-Z])(\.[A-Za-z0-9_~-]{43})(?:\.H3)?'")
_RECORDS = frozenset("BPS")


class Names:
    """The names that are known in one lace; without a lace, those of the user's keys."""

    def __init__(self, book: NameBook) -> None:
        self._book = book

    @cached_property
    def _by_key(self) -> Mapping[str, KeyName]:
        found: dict[str, KeyName] = {}
        for one in self._book.names:  # in the order in which they are preferred
            found.setdefault(one.verifier, one)
        return found

    @classmethod
    def of(cls, store: RecordStore | None, ring: Mapping[str, str]) -> Names:
        """The names in a lace, for the owner of these keys (verifier: name)."""
        if store is not None:
            try:
                return cls(NameBook.of(store, ring))
            except LaceError:
                pass  # damaged names; those of the ring are still good
        keys = (KeyName(name, Verifier(verifier), Whose.KEY) for verifier, name in ring.items())
        return cls(NameBook(tuple(keys)))

    def name_of(self, verifier: str) -> str | None:
        """The preferred name, marked by who chose it; None if there is none."""
        one = self._by_key.get(verifier)
        if one is None:
            return None
        if one.whose in (Whose.KEY, Whose.MINE):
            return one.name
        if one.whose is Whose.OWN:
            return f'"{one.name}"'
        return f"{self.told(one.by or '')}/{one.name}"

    def told(self, verifier: str | None) -> str:
        """A name, or what is recognisable of the verifier, as plain text."""
        return "unsigned" if not verifier else self.name_of(verifier) or short(verifier)

    def verifier(self, word: str) -> Verifier:
        """The key that a word names; KeyUnavailable, with what is near, if it names none or several."""
        plain = word.strip('"')
        return self._book.verifier(plain if plain in self._book.words() else word)

    def words(self) -> list[str]:
        """Every word that names a key."""
        return self._book.words()


def ring_names() -> dict[str, str]:
    """The name of each verifier whose key is in the user's ring; empty if the ring cannot be read."""
    try:
        return {entry.verifier: entry.name for entry in KeyRing.of_user().entries()}
    except (KeyUnavailable, LaceError, OSError):
        return {}


def speller(names: Names, base: str = "", known: Mapping[str, str] | None = None) -> Callable[[str], Markup]:
    """`fact` for pages that show many."""
    return lambda text: fact(text, names, base, known)


def fact(text: str, names: Names, base: str = "", known: Mapping[str, str] | None = None) -> Markup:
    """A fact or a rule as code, with names in place of hashes and each whole hash on hover.

    `base` is the address of the lace whose records it names, `known` what is known of their names.
    """
    parts: list[object] = []
    reached = 0
    for found in _HASH.finditer(text):
        whole = found[0][1:-1]
        if found[1] == "V":
            shown = tag("span", names.told(whole), title=whole, class_="named")
        elif found[1] in _RECORDS and base:
            label = (known or {}).get(whole) or short(whole)
            shown = link(label, f"{base}/record/{whole}", title=whole, class_="named")
        else:
            shown = tag("span", short(whole), title=whole, class_="named")
        parts += [text[reached : found.start()], "'", shown, "'"]
        reached = found.end()
    return tag("code", join(*parts, text[reached:]))
