"""Who is what in a group, by the core rules over the people records that a lace holds.

Rule: the core rules decide, over facts of people records alone. What that costs grows with the people of a group, not
with what they wrote.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from weakref import WeakKeyDictionary

from lace.datalog.language.annotations import read_annotated
from lace.datalog.language.syntax import Predicate
from lace.datalog.language.validate import LOCAL_PROFILE, CheckedProgram, check_program
from lace.datalog.source import MemorySource
from lace.facts.derive import derive_facts
from lace.notation.fact import Fact
from lace.notation.identifiers import Verifier
from lace.people.root import Root
from lace.people.wording import core_rules
from lace.records.validate import validate
from lace.store.base import RecordStore, StoreCursor

ADMIN_APP, MEMBER_APP, DEVICE_APP, INVITE_APP = "admin", "member", "device", "invite"
LEFT_APP, SUCCESSOR_APP, POLICY_APP = "left", "successor", "policy"
PEOPLE_APPS = (ADMIN_APP, MEMBER_APP, DEVICE_APP, INVITE_APP, LEFT_APP, SUCCESSOR_APP, POLICY_APP)
ADMIN, MEMBER, KEPT = Predicate("Admin", 1), Predicate("Member", 1), Predicate("KeptNamed", 2)
AUTHOR, STANDING, ENTRY = Predicate("Author", 2), Predicate("Standing", 2), Predicate("Entry", 3)
_ASKED = (ADMIN, MEMBER, KEPT, AUTHOR, STANDING, ENTRY)
_Answered = tuple[Root, StoreCursor, tuple[str, ...], dict[Predicate, list[tuple[str, ...]]]]
_ANSWERED: WeakKeyDictionary[RecordStore, _Answered] = WeakKeyDictionary()


@lru_cache(maxsize=8)
def checked_core_rules(root: Root) -> CheckedProgram:
    """The core rules of a group and its founder, ready to be evaluated."""
    return check_program(read_annotated(core_rules(root), name="core.lace").program, LOCAL_PROFILE)


def people_facts(store: RecordStore, group: str, apps: Iterable[str] = PEOPLE_APPS) -> Iterator[Fact]:
    """The facts of the people records of a group, app by app."""
    for app in apps:
        for entry in store.entries(group, app):
            stored = store.get(entry.hash)
            if stored is not None:
                yield from derive_facts(validate(stored, verify_signature=False))


def rows_in_force(store: RecordStore, root: Root, predicate: Predicate) -> list[tuple[str, ...]]:
    """The facts of one of a few predicates of the core rules, sorted.

    They are worked out together, and again only when people records change.
    """
    from lace.datalog.engine import evaluate  # loads numpy: a command that asks nobody does without

    cursor, kept = store.cursor(), _ANSWERED.get(store)
    if kept is None or kept[:2] != (root, cursor):
        records = people_signature(store, root.group)
        if kept is not None and (kept[0], kept[2]) == (root, records):
            rows = kept[3]
        else:
            found = evaluate(checked_core_rules(root), [MemorySource(people_facts(store, root.group))])
            rows = {asked: list(found.rows(asked)) for asked in _ASKED}
        kept = _ANSWERED[store] = (root, cursor, records, rows)
    return kept[3][predicate]


def admins_in_force(store: RecordStore, root: Root) -> frozenset[Verifier]:
    """The admins of a group now."""
    return people_named(store, root, ADMIN)


def members_in_force(store: RecordStore, root: Root) -> frozenset[Verifier]:
    """The members of a group now, admins among them."""
    return people_named(store, root, MEMBER)


def people_named(store: RecordStore, root: Root, predicate: Predicate) -> frozenset[Verifier]:
    """The people for whom a predicate of the core rules holds."""
    return frozenset(Verifier(verifier) for (verifier,) in rows_in_force(store, root, predicate))


def kept_of_admins(store: RecordStore, root: Root) -> frozenset[tuple[str, str]]:
    """The records of former admins that count although they are not admins any more: each with who signed it."""
    return frozenset((record, signer) for record, signer in rows_in_force(store, root, KEPT))


def people_signature(store: RecordStore, group: str) -> tuple[str, ...]:
    """The people records that decide who is who, by their hashes."""
    return tuple(str(entry.hash) for app in PEOPLE_APPS if app != POLICY_APP for entry in store.entries(group, app))
