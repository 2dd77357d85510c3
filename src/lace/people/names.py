"""Names of keys: mine, those that people give themselves, and those that friends use.

Words of this module:

- *petname*: a name that the person in front of this lace gave a key. It is kept in the settings of the lace, goes
  before the names that others chose, and is never sent.
- *own name*: what a member record that counts says its key is called (080, `Called`). Several may have the same one.
- *friend's name*: what another key calls a key, published by it as `//G//name//V` with the header `Called`. It is typed
  with whose it is: `anna/bob`.

Rule: a word means one key or is an error; a name that somebody else chose never takes the place of one of mine. Only
members of the pinned group are listened to, and a name changes nothing in any record or rule: rules are written with
verifiers before they get their identifier.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum

from lace.errors import InvalidText, KeyUnavailable, StoreError, excerpt
from lace.facts.derive import field_occurrences
from lace.notation.identifiers import Verifier
from lace.notation.tai import TAI
from lace.people.root import Root, pinned_root
from lace.people.standing import ENTRY, MEMBER, MEMBER_APP, rows_in_force
from lace.records.model import Plex
from lace.records.validate import validate
from lace.store.base import Entry, RecordStore
from lace.values import dataclass

NAMESPACE = "petnames"  # of the settings
NAME_APP = "name"
CALLED = "Called"
PETNAME = re.compile(r"[^\W_][\w-]*(?:\.[\w-]+)*")  # so that the full stop of a rule does not belong to it
MOST = 64
RESERVED = frozenset(("admin", "app", "founder", "group", "people"))  # what templates of rules are filled with
_IN_RULES = re.compile(rf"@({PETNAME.pattern}(?:/{PETNAME.pattern})?)")


class Whose(StrEnum):
    """Who chose a name."""

    KEY = "key"  # a key of the person's own ring
    MINE = "mine"
    OWN = "own"
    FRIEND = "friend"


@dataclass(frozen=True, slots=True)
class KeyName:
    """One name of a key, and who chose it."""

    name: str
    verifier: Verifier
    whose: Whose
    by: Verifier | None = None  # the friend

    def to_json(self) -> dict[str, str | None]:
        """Under names for programs."""
        return {"name": self.name, "verifier": self.verifier, "whose": self.whose, "by": self.by}


@dataclass(frozen=True, slots=True)
class NameBook:
    """Every name that is known in a lace, in the order in which they are preferred."""

    names: tuple[KeyName, ...]

    @classmethod
    def of(cls, store: RecordStore, ring: Mapping[str, str]) -> NameBook:
        """The names in a lace, for the owner of these keys (verifier: name)."""
        keys = (KeyName(name, Verifier(verifier), Whose.KEY) for verifier, name in ring.items())
        mine = (KeyName(name, verifier, Whose.MINE) for name, verifier in petnames(store).items())
        return cls((*keys, *mine, *_told(store)))

    def of_key(self, verifier: str) -> list[KeyName]:
        """The names of a key, the preferred one first."""
        return [one for one in self.names if one.verifier == verifier]

    def verifier(self, word: str) -> Verifier:
        """The key that a word names; KeyUnavailable, with what is near, if it names none or several."""
        if word.startswith("V."):
            return Verifier.parse(word)
        found = self._meant(word)
        if len(found) == 1:
            return found.pop()
        if found:
            error = KeyUnavailable(f"{excerpt(word)} may be {len(found)} keys: {', '.join(sorted(found))}")
            error.add_note("give the one you mean a name of yours: `lace name add LACE NAME V.…`")
            raise error
        from lace.policy.lint import nearest  # only who mistyped needs it

        error = KeyUnavailable(f"{excerpt(word)} is neither a verifier (V.….H3) nor a name that is known here")
        error.add_note(nearest(word, self.words()) or "`lace name list LACE` and `lace key list` show the names")
        raise error

    def words(self) -> list[str]:
        """Every word that names a key."""
        return sorted({self._spelled(one) for one in self.names} - {""})

    def _meant(self, word: str) -> set[Verifier]:
        friend, slash, name = word.partition("/")
        if slash:
            by = self._meant(friend)
            return {
                one.verifier for one in self.names if one.whose is Whose.FRIEND and one.name == name and one.by in by
            }
        mine = {one.verifier for one in self.names if one.whose in (Whose.KEY, Whose.MINE) and one.name == word}
        return mine or {one.verifier for one in self.names if one.whose is Whose.OWN and one.name == word}

    def _spelled(self, one: KeyName) -> str:
        if one.whose is not Whose.FRIEND:
            return one.name
        friend = next((name for name in self.of_key(one.by or "") if name.whose is not Whose.FRIEND), None)
        return "" if friend is None else f"{friend.name}/{one.name}"


def petnames(store: RecordStore) -> dict[str, Verifier]:
    """My names in a lace."""
    return {name: Verifier.parse(kept.decode()) for name, kept in store.settings(NAMESPACE).items()}


def add_petname(store: RecordStore, name: str, verifier: Verifier, *, replace: bool = False) -> None:
    """Give a key a name of mine."""
    checked_petname(name)
    kept = store.get_setting(NAMESPACE, name)
    if kept is not None and kept.decode() != verifier and not replace:
        error = StoreError(f"{name} is the name of {kept.decode()} already; nothing was changed")
        error.add_note("--replace gives it to the other key")
        raise error
    store.put_setting(NAMESPACE, name, verifier.encode())


def remove_petname(store: RecordStore, name: str) -> Verifier:
    """Take a name of mine away; returns whose it was. KeyUnavailable if there is none."""
    kept = store.get_setting(NAMESPACE, name)
    if kept is None:
        from lace.policy.lint import nearest  # only who mistyped needs it

        error = KeyUnavailable(f"{excerpt(name)} is not a name that you gave a key in this lace")
        error.add_note(nearest(name, petnames(store)) or "`lace name list LACE` shows yours as `mine`")
        raise error
    store.put_setting(NAMESPACE, name, None)
    return Verifier.parse(kept.decode())


def checked_petname(name: str) -> str:
    """A name as it may be given; InvalidText otherwise."""
    if len(name) > MOST or PETNAME.fullmatch(name) is None:
        what = f"a name is 1 to {MOST} letters, digits, dashes, underscores or inner dots"
        raise InvalidText(f"{what}, and begins with a letter or digit", rule="petname", found=excerpt(name))
    if name in RESERVED:
        raise InvalidText(f"@{name} has a meaning of its own in templates of rules", rule="petname", found=name)
    return name


def published_name(group: str, name: str, verifier: Verifier, at: TAI) -> Plex:
    """What I call a key, for everybody in the group to see, once it is signed."""
    return Plex(group=group, app=NAME_APP, name=verifier, tai=at, headers=((CALLED, checked_petname(name)),))


def _told(store: RecordStore) -> Iterator[KeyName]:
    """Own names and friends' names: what members of the pinned group say."""
    root = pinned_root(store)
    if root is None:
        return
    members = {row[0] for row in rows_in_force(store, root, MEMBER)}
    yield from _own_names(store, root, members)
    for entry in store.entries(root.group, NAME_APP):
        if (
            entry.signer is not None
            and entry.signer in members
            and _is_newest(store, entry)
            and (called := _called(store, entry))
        ):
            yield KeyName(called, Verifier(entry.name), Whose.FRIEND, Verifier(entry.signer))


def _own_names(store: RecordStore, root: Root, members: set[str]) -> Iterator[KeyName]:
    counting = {record: verifier for record, verifier, _ in rows_in_force(store, root, ENTRY)}
    newest: dict[str, Entry] = {}
    for entry in store.entries(root.group, MEMBER_APP):
        verifier = counting.get(entry.hash)
        if verifier in members and verifier is not None:
            before = newest.get(verifier)
            if before is None or (entry.tai, entry.hash) > (before.tai, before.hash):
                newest[verifier] = entry
    for verifier, entry in sorted(newest.items()):
        if called := _called(store, entry):
            yield KeyName(called, Verifier(verifier), Whose.OWN)


def _is_newest(store: RecordStore, entry: Entry) -> bool:
    """Whether no newer version of the same writer stands at the coordinate."""
    same = (other for other in store.newest_first(entry.group, entry.app, entry.name) if other.signer == entry.signer)
    return next(same).hash == entry.hash


def _called(store: RecordStore, entry: Entry) -> str:
    """The name that a record gives to the key in its coordinate; empty if it is none that can be typed."""
    stored = store.get(entry.hash)
    if stored is None or re.fullmatch(Verifier.PATTERN, entry.name) is None:
        return ""
    fields = field_occurrences(validate(stored, verify_signature=False))
    called = next((value for name, _, value in fields if name == CALLED), "")
    return called if called.isprintable() and called == called.strip() and len(called) <= MOST else ""


# --- in rules


def with_verifiers(text: str, resolve: Mapping[str, str] | NameBook, *, name: str = "<rules>") -> str:
    """Authored rules with each `@bob` outside quotes and comments replaced by the verifier of that name, quoted.

    >>> with_verifiers("Mine(P) :- Field(P,'Signed-By',_,@bob). # @bob", {"bob": "V.x"})
    "Mine(P) :- Field(P,'Signed-By',_,'V.x'). # @bob"
    """
    if "@" not in text:
        return text
    return "\n".join(_line(line, number, resolve, name) for number, line in enumerate(text.split("\n"), start=1))


def _line(line: str, number: int, resolve: Mapping[str, str] | NameBook, name: str) -> str:
    out, at, quoted = [], 0, False
    while at < len(line):
        character = line[at]
        if quoted and character == "\\":
            out.append(line[at : at + 2])
            at += 2
            continue
        if character == "'":
            quoted = not quoted
        elif character == "#" and not quoted:
            break
        elif character == "@" and not quoted and (found := _IN_RULES.match(line, at)) and found[1] not in RESERVED:
            out.append(f"'{_resolved(found[1], resolve, f'{name}:{number}:{at + 1}')}'")
            at = found.end()
            continue
        out.append(character)
        at += 1
    return "".join(out) + line[at:]


def _resolved(word: str, resolve: Mapping[str, str] | NameBook, place: str) -> str:
    try:
        return resolve.verifier(word) if isinstance(resolve, NameBook) else resolve[word]
    except KeyError:
        raise InvalidText(f"@{word} names no key", rule="name-in-rules", place=place) from None
    except KeyUnavailable as problem:
        error = InvalidText(str(problem), rule="name-in-rules", place=place, found=f"@{word}")
        for note in getattr(problem, "__notes__", ()):
            error.add_note(note)
        raise error from None
