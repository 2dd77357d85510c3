"""Which links share what they may send (070, shared sets).

Rule: two links share when their lowered rules, the runtime facts that these read, the advertised fields and engine
limits are equal, and when neither a claim of a peer nor the passing of time can change what may be sent.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, overload

from lace.datalog.language.syntax import Rule
from lace.facts.predicates import TICK_TAI
from lace.interlace.effects import PreparePolicy
from lace.interlace.host import Payer
from lace.interlace.runtimefacts import RuntimeFacts
from lace.interlace.setup.hello import NO_FIELDS, FieldSchema
from lace.interlace.setup.terms import Terms
from lace.limits import EngineLimits
from lace.notation.digest import digest
from lace.notation.fact import Fact
from lace.runtime.rules.feeding import Feeding, feeding_of
from lace.values import dataclass

if TYPE_CHECKING:
    from lace.runtime.rules.evaluator import Evaluator
    from lace.runtime.rules.followedset import FollowedSet, SharedSet


@dataclass(frozen=True, slots=True)
class SharingKey:
    """Everything that a set of sendable records depends on, beside the store."""

    rules: tuple[Rule, ...]
    runtime: frozenset[Fact]
    schema: FieldSchema
    limits: EngineLimits


@dataclass(slots=True)
class _Known:
    sends: SharedSet
    is_ours: bool  # whether the peer brought no rules but our own
    users: int = 0
    taken: int = 0  # how often it was of use


class PolicyBook:
    """The policies of all links over a store; some that nobody uses now are kept for links to come.

    Those that were of use most often are, of our own rules and of rules of peers as many each: else a crowd that comes
    with ever other rules and keys would have those forgotten that good peers come with again and again.
    """

    def __init__(self, max_idle: int = 4, *, keeps_sets: bool = False) -> None:
        self._max_idle = max_idle
        self._keeps_sets = keeps_sets  # with the lace
        self._known: dict[SharingKey, _Known] = {}
        self._lock = threading.Lock()

    def take(
        self, evaluator: Evaluator, terms: Terms, wanted: PreparePolicy, runtime: RuntimeFacts
    ) -> tuple[FollowedSet, SharingKey | None]:
        """The sends of a policy that an evaluator was prepared for, and under which key they are to be given back."""
        from lace.runtime.rules.followedset import (  # with the engine, which takes its time to load
            PrivateSet,
            SharedSet,
        )

        feeding, program = feeding_of(wanted.plan), evaluator.lowered.program
        is_bare = wanted.schema == NO_FIELDS
        if feeding is Feeding.ALWAYS or TICK_TAI in program.base:
            return PrivateSet(evaluator, terms.max_line_bytes, is_bare=is_bare), None
        facts = frozenset(fact for fact in runtime.facts() if fact.predicate in program.base)
        key = SharingKey(program.program.rules, facts, wanted.schema, terms.engine_limits)
        if (known := self._used(key)) is None:
            # Made where nobody waits for it: a peer's rules may take long to look through, and the event loop asks too.
            name = _name_of(key) if self._keeps_sets and not key.runtime else ""
            is_ours = wanted.are_all_ours
            store, longest = evaluator.store, terms.max_line_bytes
            sends = SharedSet(evaluator, longest, feeding, store, name, is_bare=is_bare)
            known = self._used(key, _Known(sends, is_ours))
        return known.sends, key

    @overload
    def _used(self, key: SharingKey) -> _Known | None: ...
    @overload
    def _used(self, key: SharingKey, made: _Known) -> _Known: ...
    def _used(self, key: SharingKey, made: _Known | None = None) -> _Known | None:
        """One link more uses what is known under a key, or what was made for it if nobody was faster."""
        with self._lock:
            known = self._known.pop(key, made)
            if known is not None:
                known.users += 1
                known.taken += 1
                self._known[key] = known  # the one used last stands last
            return known

    def keep(self) -> None:
        """Keep every set with the lace."""
        with self._lock:
            known = list(self._known.values())
        for one in known:
            one.sends.keep()

    def give_back(self, key: SharingKey, payer: Payer | None = None) -> None:
        """One link less."""
        with self._lock:
            given = self._known[key]
            given.sends.leave(payer)
            given.users -= 1
            alike = [(key, one) for key, one in self._known.items() if not one.users and one.is_ours is given.is_ours]
            idle = sorted(alike, key=lambda one: one[1].taken)  # of equals the one used longest ago first
            for found, _ in idle[: max(0, len(idle) - self._max_idle)]:
                self._known.pop(found).sends.close()

    def close(self) -> None:
        """Let go of what is kept for links to come."""
        with self._lock:
            for found in [found for found, known in self._known.items() if not known.users]:
                self._known.pop(found).sends.close()


def _name_of(key: SharingKey) -> str:
    """What a set is kept under; the limits of the engine decide whether there is one, not what it holds."""
    return digest(repr((key.rules, key.schema)).encode()).hex()
