"""The policy of a lace as records: `//G//policy//select` and its siblings, signed by admins.

Rule: of each kind, the newest version that an admin in force signed, that is dated within the horizon and that can be
read is in force. Nothing else is: not a version of somebody else, whatever its time, and not one that came first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from enum import StrEnum

from lace.notation.identifiers import RecordHash, Verifier
from lace.people.kinds import MAX_POLICY_BYTES, PolicyKind, is_readable
from lace.people.root import Root, pinned_root
from lace.people.standing import POLICY_APP, admins_in_force, kept_of_admins
from lace.records.tip import TipPolicy, VersionState, judged
from lace.records.validate import validate
from lace.store.base import Entry, RecordStore
from lace.values import dataclass


class PolicyStanding(StrEnum):
    """Why a version of a policy is in force, or is not."""

    IN_FORCE = "in force"
    REPLACED = "replaced"
    NOT_BY_AN_ADMIN = "not signed by an admin"
    TOO_FAR_AHEAD = "dated too far ahead"
    UNREADABLE = "cannot be read"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyVersion:
    """One version of one kind of policy."""

    kind: PolicyKind
    hash: RecordHash
    signer: Verifier | None
    tai: str
    text: str
    standing: PolicyStanding = PolicyStanding.IN_FORCE


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyInForce:
    """What a lace's policy says now."""

    root: Root
    admins: frozenset[Verifier]
    versions: Mapping[PolicyKind, PolicyVersion] = field(default_factory=dict)  # only the kinds that some admin has set

    def text(self, kind: PolicyKind) -> str | None:
        """The text of one kind; None if nobody set it."""
        found = self.versions.get(kind)
        return None if found is None else found.text

    @property
    def hashes(self) -> frozenset[RecordHash]:
        """The records that are in force: two policies with the same ones are the same."""
        return frozenset(version.hash for version in self.versions.values())

    def newer_than(self, before: PolicyInForce | None) -> list[PolicyVersion]:
        """The versions that were not in force before."""
        known = before.hashes if before is not None else frozenset()
        return [version for version in self.versions.values() if version.hash not in known]


def policy_in_force(store: RecordStore, tips: TipPolicy) -> PolicyInForce | None:
    """The policy in force in a lace; None if no root is pinned in it."""
    root = pinned_root(store)
    if root is None:
        return None
    admins = admins_in_force(store, root)
    found = {}
    for kind in PolicyKind:
        version = version_in_force(store, root, admins, kind, tips)
        if version is not None:
            found[kind] = version
    return PolicyInForce(root=root, admins=admins, versions=found)


def version_in_force(
    store: RecordStore, root: Root, admins: frozenset[Verifier], kind: PolicyKind, tips: TipPolicy
) -> PolicyVersion | None:
    """The version of one kind that is in force; None if there is none, or an admin withdrew what there was (081)."""
    withdrawn = withdrawn_versions(store, root, admins, kind, tips)
    counted = (PolicyStanding.IN_FORCE, PolicyStanding.REPLACED)
    for version in versions_of(store, root, admins, kind, tips, only_by_admins=True):
        if version.standing in counted and version.hash not in withdrawn and is_readable(kind, version.text):
            return version
    return None


def withdrawn_versions(
    store: RecordStore, root: Root, admins: frozenset[Verifier], kind: PolicyKind, tips: TipPolicy
) -> frozenset[RecordHash]:
    """The versions of one kind that admins withdrew, and the retractions that say so, if they count."""
    kept = kept_of_admins(store, root)
    ours = (
        entry
        for entry in store.newest_first(root.group, POLICY_APP, kind)
        if entry.signer in admins or (entry.hash, entry.signer) in kept
    )
    gone = (VersionState.WITHDRAWN, VersionState.RETRACTS)
    return frozenset(one.version.hash for one in judged(ours, tips) if one.state in gone)


def versions_of(
    store: RecordStore,
    root: Root,
    admins: frozenset[Verifier],
    kind: PolicyKind,
    tips: TipPolicy,
    *,
    only_by_admins: bool = False,
) -> Iterator[PolicyVersion]:
    """Every version of one kind, newest first, with why it is in force or is not."""
    is_taken = False
    kept = kept_of_admins(store, root)
    for entry in store.newest_first(root.group, POLICY_APP, kind):
        is_admins = entry.signer in admins or (entry.hash, entry.signer) in kept
        if only_by_admins and not is_admins:
            continue
        version = _version(store, kind, entry, tips, is_admins=is_admins, is_taken=is_taken)
        if version is not None:
            is_taken = is_taken or version.standing is PolicyStanding.IN_FORCE
            yield version


def _version(
    store: RecordStore,
    kind: PolicyKind,
    entry: Entry,
    tips: TipPolicy,
    *,
    is_admins: bool,
    is_taken: bool,
) -> PolicyVersion | None:
    """A version; None if it went meanwhile."""
    text = _text(store, entry)
    if text is None:
        return None
    if not is_admins:
        standing = PolicyStanding.NOT_BY_AN_ADMIN
    elif not tips.admits(entry):
        standing = PolicyStanding.TOO_FAR_AHEAD
    elif is_taken:
        standing = PolicyStanding.REPLACED
    else:
        standing = PolicyStanding.IN_FORCE if is_readable(kind, text) else PolicyStanding.UNREADABLE
    signer = None if entry.signer is None else Verifier(entry.signer)
    return PolicyVersion(kind=kind, hash=entry.hash, signer=signer, tai=entry.tai, text=text, standing=standing)


def _text(store: RecordStore, entry: Entry) -> str | None:
    """What a version says; what is no text, or too long for one, reads as a text that means nothing."""
    if entry.data_length > MAX_POLICY_BYTES:
        return "\0"
    stored = store.get(entry.hash)
    if stored is None:
        return None
    return bytes(validate(stored, verify_signature=False).data).decode(errors="replace")
