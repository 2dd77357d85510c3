"""What a lace takes from peers, by the receive rules of its policy (080; P37, reason `policy`).

Rule: the rules see the record that arrives and the people records that are here, and nothing else, so what they cost
does not grow with the lace. They judge the records of their group; people records always pass, or nobody could change
the policy any more, and so do the parts of large content, which no selector asks for by themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from lace.datalog.language.validate import CheckedProgram
from lace.datalog.source import MemorySource
from lace.errors import LimitExceeded
from lace.facts.derive import derive_facts
from lace.limits import EngineLimits
from lace.notation.fact import Fact
from lace.people.kinds import RECEIVE, PolicyKind, read_policy
from lace.people.policyrecords import version_in_force
from lace.people.root import Root, pinned_root
from lace.people.standing import PEOPLE_APPS, admins_in_force, people_facts, people_signature
from lace.records.manifest import is_manifest
from lace.records.model import ValidRecord
from lace.records.tip import TipPolicy
from lace.records.validate import reread
from lace.store.base import RecordStore

if TYPE_CHECKING:
    from lace.datalog.engine import Base

_LIMITS = EngineLimits()


class Receiving:
    """The receive rules of one lace, as they are in force whenever something arrives."""

    def __init__(self, store: RecordStore, tips: Callable[[], TipPolicy]) -> None:
        self._store = store
        self._tips = tips
        self._people: tuple[tuple[str, ...], Base] | None = None  # which people records, and their facts

    def refused(self, bodies: Iterable[bytes]) -> dict[str, str]:
        """Those of the records that arrive which the policy does not take, each with why."""
        root = pinned_root(self._store)
        rules = self._rules(root) if root is not None else None
        if root is None or rules is None:
            return {}
        judged = [record for record in map(reread, bodies) if _is_judged(record, root)]
        if not judged:
            return {}
        from lace.datalog.engine import evaluate

        facts: list[Fact] = [fact for record in judged for fact in derive_facts(record)]
        why = f"policy: the receive rules of //{root.group} do not take it"
        try:
            result = evaluate(rules, self._base(root), extra=facts, limits=_LIMITS)
            taken = {record for (record,) in result.rows(RECEIVE)}
        except LimitExceeded as error:
            taken, why = set(), f"policy: the receive rules of //{root.group} cannot be evaluated: {error}"
        return {str(record.hash): why for record in judged if record.hash not in taken}

    def _rules(self, root: Root) -> CheckedProgram | None:
        admins = admins_in_force(self._store, root)
        found = version_in_force(self._store, root, admins, PolicyKind.RECEIVE, self._tips())
        rules = read_policy(PolicyKind.RECEIVE, found.text) if found is not None else None
        return rules if isinstance(rules, CheckedProgram) else None

    def _base(self, root: Root) -> Base:
        from lace.datalog.engine import Base

        people = people_signature(self._store, root.group)
        if self._people is None or self._people[0] != people:
            self._people = people, Base([MemorySource(people_facts(self._store, root.group))], _LIMITS)
        return self._people[1]


def _is_judged(record: ValidRecord, root: Root) -> bool:
    if record.type == "B" or record.parts.group != root.group or record.parts.app in PEOPLE_APPS:
        return False
    is_part = record.type == "P" and is_manifest(record) and "/chunks/" in (record.parts.name or "")
    return not is_part
