"""Which links share what they may send (070, shared sets).

Rule: two links share when their lowered rules, the runtime facts that these read, the advertised fields and engine
limits are equal, and when neither a claim of a peer nor the passing of time can change what may be sent.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import thread_time
from typing import TYPE_CHECKING, overload

from lace.interlace.host import Payer
from lace.interlace.runtimefacts import RuntimeFacts
from lace.thresholds import RuleThresholds
from lace.values import dataclass

if TYPE_CHECKING:
    from lace.runtime.rules.evaluator import Evaluator
    from lace.runtime.rules.followedset import FollowedSet, SharedSet
    from lace.runtime.rules.policy import LinkPolicy, SharingKey


MakeEvaluator = Callable[["LinkPolicy", bool], "Evaluator"]
"""The evaluator of a policy, and whether it is for a set that links share."""


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

    def __init__(
        self,
        max_idle: int = 4,
        *,
        keeps_sets: bool = False,
        clock: Callable[[], float] = thread_time,
        thresholds: RuleThresholds | None = None,
    ) -> None:
        self._max_idle = max_idle
        self._thresholds = thresholds or RuleThresholds()
        self._keeps_sets = keeps_sets  # with the lace
        self._clock = clock
        self._known: dict[SharingKey, _Known] = {}
        self._lock = threading.Lock()

    @property
    def known(self) -> int:
        """How many policies are known, whether links use them or not."""
        return len(self._known)

    def take(
        self, policy: LinkPolicy, runtime: RuntimeFacts, make_evaluator: MakeEvaluator
    ) -> tuple[FollowedSet, SharingKey | None]:
        """The set under a policy, and the key under which it is to be given back; none if it is not shared."""
        from lace.runtime.rules.followedset import PrivateSet, SharedSet  # with the engine, which is slow to load

        if not policy.can_be_shared:
            return PrivateSet(make_evaluator(policy, False), self._thresholds), None
        key = policy.sharing_key(runtime)
        if (known := self._used(key)) is None:
            # Made without the lock: to recall a set takes its time, and the event loop gives sets back.
            name = key.kept_name if self._keeps_sets else ""
            made = SharedSet(make_evaluator(policy, True), name, clock=self._clock, thresholds=self._thresholds)
            known = self._used(key, _Known(made, policy.is_ours))
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
