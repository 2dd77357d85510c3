"""The policy of a lace as records: `//G//policy//select` and its siblings, signed by admins.

Rule: of each kind, the newest version that an admin in force signed and that is dated within the horizon is in force.
Nothing else is: not a version of somebody else, whatever its time, and not one whose bytes came first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum

from lace.notation.identifiers import RecordHash, Verifier
from lace.people.root import Root, pinned_root
from lace.people.standing import POLICY_APP, admins_in_force
from lace.records.tip import TipPolicy
from lace.records.validate import validate
from lace.store.base import Entry, RecordStore
from lace.values import dataclass


class PolicyKind(StrEnum):
    """The records of a policy; the value is the Name of the record."""

    SELECT = "select"
    EXPOSE = "expose"
    RECEIVE = "receive"
    TIP = "tip"
    KEEP = "keep"
    QUOTA = "quota"


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyVersion:
    """One version of one kind of policy."""

    kind: PolicyKind
    hash: RecordHash
    signer: Verifier
    tai: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyInForce:
    """What a lace's policy says now."""

    root: Root
    admins: frozenset[Verifier]
    versions: Mapping[PolicyKind, PolicyVersion]  # only the kinds that some admin has set

    def text(self, kind: PolicyKind) -> str | None:
        """The text of one kind; None if nobody set it."""
        found = self.versions.get(kind)
        return None if found is None else found.text


def policy_in_force(store: RecordStore, tips: TipPolicy) -> PolicyInForce | None:
    """The policy in force in a lace; None if no root is pinned in it."""
    root = pinned_root(store)
    if root is None:
        return None
    admins = admins_in_force(store, root)
    found = {}
    for kind in PolicyKind:
        version = next(versions_in_force(store, root, admins, kind, tips), None)
        if version is not None:
            found[kind] = version
    return PolicyInForce(root=root, admins=admins, versions=found)


def versions_in_force(
    store: RecordStore, root: Root, admins: frozenset[Verifier], kind: PolicyKind, tips: TipPolicy
) -> Iterator[PolicyVersion]:
    """The versions of one kind that admins signed, newest first: the first is in force, the others were replaced."""
    for entry in store.newest_first(root.group, POLICY_APP, kind, until=tips.until):
        if entry.signer in admins and (version := _read(store, kind, entry)) is not None:
            yield version


def _read(store: RecordStore, kind: PolicyKind, entry: Entry) -> PolicyVersion | None:
    """A version with its text; None if it went meanwhile or is not text."""
    stored = store.get(entry.hash)
    if stored is None or entry.signer is None:
        return None
    try:
        text = bytes(validate(stored, verify_signature=False).data).decode()
    except UnicodeDecodeError:
        return None
    return PolicyVersion(kind=kind, hash=entry.hash, signer=Verifier(entry.signer), tai=entry.tai, text=text)
