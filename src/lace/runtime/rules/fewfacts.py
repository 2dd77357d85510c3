"""A policy over nothing, to which a few facts come for one question and go again (070, shared sets).

Rule: the answer is that of an evaluation over these facts alone. An evaluation plans its rules each time, which takes
longer than to look at one record; here they are compiled once. What is remembered between two questions is texts, and
after a number of those everything is begun anew.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence

from lace.datalog.engine import RowSource, materialize
from lace.datalog.engine.maintain import Materialized
from lace.datalog.language.syntax import Predicate
from lace.datalog.meter import Meter
from lace.datalog.source import FactSource, all_facts
from lace.interlace.host import Call
from lace.limits import EngineLimits
from lace.notation.fact import Fact
from lace.policy.lower import LoweredPolicy

_MOST = 256  # facts of one question; beyond, planning anew does not matter
_MOST_TEXTS = 20_000  # places of facts that came, after which what they were is forgotten


class FewFacts:
    """The questions of one policy; any thread may ask, one at a time, and who would have to wait asks elsewhere."""

    def __init__(self, policy: LoweredPolicy, limits: EngineLimits) -> None:
        self._policy = policy
        self._limits = limits
        self._busy = threading.Lock()
        self._derived: Materialized | None = None
        self._runtime: frozenset[Fact] = frozenset()
        self._without: dict[Predicate, dict[str, None]] = {}  # the records of each goal where there are no facts
        self._texts = 0
        self._call = Call()

    def ask(
        self, goal: Predicate, sources: Sequence[FactSource], runtime: Collection[Fact], call: Call
    ) -> list[str] | None:
        """The records of a goal; None if there is much to look at, or another is asking."""
        if sum(_at_most(source, predicate) for source in sources for predicate in source.predicates()) > _MOST:
            return None
        if not self._busy.acquire(blocking=False):
            return None
        try:
            self._call = call
            return self._ask(goal, list(all_facts(*sources)), frozenset(runtime))
        except BaseException:
            self._forget()  # what was left behind must not be what the next one finds
            raise
        finally:
            self._busy.release()

    def get_ready(self, runtime: Collection[Fact]) -> None:
        """Compile the rules, if nobody is at them."""
        if self._busy.acquire(blocking=False):
            try:
                self._begun(frozenset(runtime))
            finally:
                self._busy.release()

    def _ask(self, goal: Predicate, facts: Sequence[Fact], runtime: frozenset[Fact]) -> list[str]:
        derived = self._begun(runtime)
        self._texts += sum(len(fact.values) for fact in facts)
        changes = derived.suppose(facts)
        self._call.charge(rows=derived.meter.rows)
        went = {record for (record,) in changes.removed.get(goal, ())}
        came = [record for (record,) in changes.added.get(goal, ())]
        return [record for record in self._without[goal] if record not in went] + came

    def _begun(self, runtime: frozenset[Fact]) -> Materialized:
        """The policy over runtime facts alone."""
        if runtime != self._runtime or self._texts > _MOST_TEXTS:
            self._forget()
        if self._derived is None:
            meter = Meter(self._limits, interrupt=lambda: self._call.is_cancelled, guests=self._policy.guests)
            self._derived = materialize(self._policy.program, [], self._limits, extra=runtime, meter=meter)
            self._runtime, self._texts = runtime, 0
            self._without = {goal: dict.fromkeys(self._derived.values(goal)) for goal in self._policy.goals}
        return self._derived

    def _forget(self) -> None:
        derived, self._derived = self._derived, None
        if derived is not None:
            derived.close()

    def close(self) -> None:
        """Let go of what was compiled."""
        with self._busy:
            self._forget()


def _at_most(source: FactSource, predicate: Predicate) -> int:
    """How many facts there are; where some repeat it may be more, which takes long to find out of many."""
    return source.at_most(predicate) if isinstance(source, RowSource) else source.count(predicate)
