"""The root of a lace: the group that its policy rules, and the founder whose key everything in it rests on.

Rule: a root is pinned by the person in front of this lace, once; no record and no peer can set or change it.
"""

from __future__ import annotations

import json

from lace.errors import InvalidText, StoreDamaged
from lace.notation.identifiers import Verifier
from lace.records.grammar import check_path
from lace.store.base import RecordStore
from lace.values import dataclass

NAMESPACE = "people"  # of the settings
_KEY = "root"


@dataclass(frozen=True, slots=True)
class Root:
    """A group and the verifier of its founder."""

    group: str
    founder: Verifier


def pinned_root(store: RecordStore) -> Root | None:
    """The root that is pinned in a lace; None if nobody pinned one."""
    value = store.get_setting(NAMESPACE, _KEY)
    if value is None:
        return None
    try:
        table = json.loads(value)
        return Root(str(table["group"]), Verifier.parse(table["founder"]))
    except (ValueError, KeyError, TypeError, InvalidText) as error:
        raise StoreDamaged(f"the pinned root of this lace cannot be read: {error}") from error


def pin_root(store: RecordStore, root: Root) -> None:
    """Pin the root of a lace; does nothing if it is pinned, and refuses to replace another one."""
    check_path("Group", root.group)
    if any(character in root.group for character in "'\"\\@"):  # it is written into rules as it is
        raise InvalidText("a group with a policy has no quotes, backslashes or @", rule="root", found=root.group[:60])
    pinned = pinned_root(store)
    if pinned is not None and pinned != root:
        raise InvalidText(
            f"this lace is pinned to the group {pinned.group}, founded by {pinned.founder}",
            rule="root",
            found=f"{root.group}, founded by {root.founder}",
        )
    if pinned is None:
        text = json.dumps({"founder": root.founder, "group": root.group}, sort_keys=True)
        store.put_setting(NAMESPACE, _KEY, text.encode())
