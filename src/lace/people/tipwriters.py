"""Who may move tips in a lace, as its policy says (080, 110).

Rule: in the group of a policy the apps of people records keep their own rules: anybody may write there, and the core
rules decide what counts; but only an admin moves the tip of a policy. Other apps go by the tip policy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lace.people.kinds import PolicyKind, Retracting, TipRules, Writers, read_policy
from lace.people.policyrecords import policy_in_force
from lace.people.root import Root, pinned_root
from lace.people.standing import (
    AUTHOR,
    PEOPLE_APPS,
    POLICY_APP,
    STANDING,
    admins_in_force,
    kept_of_admins,
    rows_in_force,
)
from lace.records.tip import TipPolicy, TipWriters
from lace.store.base import RecordStore

EVER = ""  # before every time


def tip_writers(store: RecordStore, tips: TipPolicy) -> tuple[TipWriters, ...]:
    """Who may move tips under the policy in force; nothing for a lace without one."""
    root = pinned_root(store)
    if root is None:
        return ()
    policy = policy_in_force(store, tips)
    text = policy.text(PolicyKind.TIP) if policy is not None else None
    admins = {str(admin): EVER for admin in admins_in_force(store, root)}
    found = [
        TipWriters(group=root.group, apps=frozenset((POLICY_APP,)), since=admins, standing=kept_of_admins(store, root)),
        TipWriters(group=root.group, apps=frozenset(PEOPLE_APPS)),
    ]
    if text is None:
        return tuple(found)
    rules = read_policy(PolicyKind.TIP, text)
    assert isinstance(rules, TipRules)
    asked = {rules.writers, rules.retract, *(writers for _, writers in rules.apps)}
    authors, stands = _authors(store, root) if "members" in asked else ({}, Stands())
    members = TipWriters(group=root.group, since=authors, standing=stands)
    by_admins = TipWriters(group=root.group, since=admins, standing=kept_of_admins(store, root))
    retracting = {Retracting.MEMBERS: members, Retracting.ADMINS: by_admins}.get(rules.retract or Retracting.AUTHOR)
    is_own_only = rules.retract is Retracting.AUTHOR
    for app, writers in (*rules.apps, (None, rules.writers)):
        of = {Writers.ANYBODY: TipWriters(group=root.group), Writers.ADMINS: by_admins, Writers.MEMBERS: members}
        apps = None if app is None else frozenset((app,))
        found.append(replace(of[writers], apps=apps, retracting=retracting, is_own_only=is_own_only))
    return tuple(found)


Stands = frozenset[tuple[str, str]]


def _authors(store: RecordStore, root: Root) -> tuple[Mapping[str, str], Stands]:
    """The keys that may write, each from when on, and the records that stand although their writers left."""
    since: dict[str, str] = {}
    for key, tai in rows_in_force(store, root, AUTHOR):
        since[key] = min(since.get(key, tai), tai)
    return since, frozenset((record, signer) for record, signer in rows_in_force(store, root, STANDING))
