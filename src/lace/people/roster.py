"""The roster of a group: its admins, members, devices and invitations as the core rules see them, for people to read.

Rule: nothing is decided here. Each line is a fact that the core rules derived, with what its record says beside it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from lace.datalog.language.syntax import Predicate
from lace.datalog.source import MemorySource
from lace.notation.decimal import natural
from lace.notation.identifiers import RecordHash, Verifier
from lace.people.root import Root
from lace.people.standing import checked_core_rules, people_facts
from lace.store.base import RecordStore
from lace.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonKey:
    """One key of a person."""

    verifier: Verifier
    kind: str  # first, device or successor
    acts: bool  # it may sign now
    called: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Somebody who is or was a member, by the first key."""

    verifier: Verifier
    called: str
    role: str
    is_member: bool
    is_admin: bool
    since: str  # TAI of the newest member record that counts, or counted
    by: Verifier | None  # who signed it: an admin, or the one-time key of an invitation
    invited_by: Verifier | None  # the admin behind that invitation
    left: str  # TAI of the newest record that says so; empty if there is none
    keys: tuple[PersonKey, ...]

    @property
    def acting(self) -> list[Verifier]:
        """The keys that may sign now."""
        return [key.verifier for key in self.keys if key.acts]


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    """An invitation and what became of it."""

    one_time: Verifier
    called: str
    role: str
    uses: int
    issued: str
    expires: str
    by: Verifier
    is_withdrawn: bool
    admitted: tuple[tuple[Verifier, RecordHash], ...]  # the keys it let in, with their member records


@dataclass(frozen=True, slots=True)
class Roster:
    """Everybody of one group."""

    root: Root
    admins: frozenset[Verifier]
    people: tuple[Person, ...]
    invitations: tuple[Invitation, ...]
    person_of: Mapping[Verifier, Verifier] = field(default_factory=dict)  # a key that acts: whose it is

    def of_key(self, verifier: str) -> Person | None:
        """The person that a key belongs to, or belonged to."""
        return next((one for one in self.people if any(key.verifier == verifier for key in one.keys)), None)

    def named(self, word: str) -> list[Person]:
        """The people who are called this, or one of whose keys this is."""
        if word.startswith("V."):
            found = self.of_key(word)
            return [] if found is None else [found]
        return [one for one in self.people if one.called == word]


class PeopleStanding:
    """One evaluation of the core rules over the people records of a lace."""

    def __init__(self, store: RecordStore, root: Root) -> None:
        self.root = root
        facts = list(people_facts(store, root.group))
        from lace.datalog.engine import evaluate

        self._result = evaluate(checked_core_rules(root), [MemorySource(facts)])
        self.headers: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for fact in facts:
            if fact.predicate.name == "Field":
                record, name, _, value = fact.values
                self.headers[record][name].append(value)

    def rows(self, name: str, arity: int) -> Sequence[tuple[str, ...]]:
        """The rows of a derived predicate."""
        return self._result.rows(Predicate(name, arity))

    def keys(self, name: str) -> set[str]:
        """The one column of a derived predicate."""
        return {row[0] for row in self.rows(name, 1)}

    def header(self, record: str, name: str) -> str:
        """The first header of this name; empty if there is none."""
        return next(iter(self.headers[record][name]), "")

    def roster(self) -> Roster:
        """Everybody, for people to read."""
        acting: dict[str, str] = {row[0]: row[1] for row in self.rows("Key", 2)}
        admins = frozenset(map(Verifier, self.keys("Admin")))
        invitations = tuple(self._invitations())
        inviter = {one.one_time: one.by for one in invitations}
        people = tuple(sorted(self._people(acting, admins, inviter), key=lambda one: (one.since, one.verifier)))
        return Roster(
            self.root,
            admins,
            people,
            invitations,
            {Verifier(key): Verifier(person) for key, person in acting.items()},
        )

    def _people(
        self, acting: Mapping[str, str], admins: frozenset[Verifier], inviter: Mapping[Verifier, Verifier]
    ) -> Iterator[Person]:
        entries: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for record, verifier, at in self.rows("Entry", 3):
            entries[verifier].append((at, record))
        lines: dict[str, list[str]] = defaultdict(list)
        for before, after in self.rows("Line", 2):
            lines[before].append(after)
        lefts: dict[str, str] = {}
        for _, verifier, at in (*self.rows("PutOut", 3), *self.rows("WentOut", 3)):
            lefts[verifier] = max(at, lefts.get(verifier, ""))
        devices: dict[str, dict[str, str]] = defaultdict(dict)
        for record, key, person, _ in self.rows("DeviceIn", 4):
            devices[person][key] = self.header(record, "Called")
        for first in sorted({*entries, *acting.values(), self.root.founder}):
            newest = max(entries[first], default=("", ""))
            record = newest[1]
            signer = self.header(record, "Signed-By")
            keys = [PersonKey(verifier=Verifier(first), kind="first", acts=first in acting)]
            keys += [PersonKey(verifier=Verifier(k), kind="successor", acts=k in acting) for k in sorted(lines[first])]
            for device, called in sorted(devices[first].items()):
                keys.append(PersonKey(verifier=Verifier(device), kind="device", acts=device in acting, called=called))
                for heir in sorted(lines[device]):
                    keys.append(PersonKey(verifier=Verifier(heir), kind="successor", acts=heir in acting))
            is_admin = any(key.verifier in admins for key in keys)
            yield Person(
                verifier=Verifier(first),
                called=self.header(record, "Called"),
                role=self.header(record, "Role") or "member",
                is_member=any(key.acts for key in keys),
                is_admin=is_admin,
                since=self.header(record, "TAI"),
                by=Verifier(signer) if signer else None,
                invited_by=inviter.get(Verifier(signer)) if signer else None,
                left=lefts.get(first, ""),
                keys=tuple(keys),
            )

    def _invitations(self) -> Iterator[Invitation]:
        counted = self.keys("Invited")
        withdrawn = self.keys("Withdrawn")
        admitted: dict[str, list[tuple[Verifier, RecordHash]]] = defaultdict(list)
        for record, verifier, signer, _ in self.rows("MemberWord", 4):
            if record in counted:
                admitted[signer].append((Verifier(verifier), RecordHash(record)))
        for record, key, at in sorted(self.rows("InviteWord", 3), key=lambda row: (row[2], row[0])):
            if self.header(record, "State") == "open":
                yield Invitation(
                    one_time=Verifier(key),
                    called=self.header(record, "Called"),
                    role=self.header(record, "Role"),
                    uses=natural(self.header(record, "Uses")) or 0,
                    issued=at,
                    expires=self.header(record, "Expires"),
                    by=Verifier(self.header(record, "Signed-By")),
                    is_withdrawn=key in withdrawn,
                    admitted=tuple(sorted(admitted[key])),
                )
