"""What may be sent and requested under one policy, as the store changes: for one link, or for all that share it (070).

Rule: a link holds a generation, which never changes. Where a set comes from is a row of MOVES; the rules, the columns
and the store's changes are looked at once for all links that share it, and `SharedBill` has all of them pay.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum, auto
from functools import partial
from time import thread_time
from typing import Protocol
from weakref import WeakKeyDictionary

from lace.differences.ids import ids_of_texts
from lace.differences.idset import IdSet, set_of
from lace.interlace.claims.advertisement import Advertisement
from lace.interlace.claims.partitions import ClaimChanges
from lace.interlace.claims.peerclaims import PeerClaims
from lace.interlace.host import Call, NotNow, Payer
from lace.interlace.runtimefacts import RuntimeFacts
from lace.runtime.node.bounds import MANY_CLAIMS
from lace.runtime.rules.bill import SharedBill
from lace.runtime.rules.evaluator import Delta, Evaluator, Work
from lace.runtime.rules.feeding import Feeding
from lace.runtime.rules.generation import Generation
from lace.runtime.rules.keptsets import keep, keep_roots, recall
from lace.store.base import StoreCursor
from lace.thresholds import RuleThresholds
from lace.values import dataclass

_KEPT_ANSWERS = 64
_LOOK_S = 0.02  # how often a thread that waits for its turn looks whether anybody still waits for it
NO_CLAIMS = PeerClaims("", 0)  # of nobody: no shared set depends on any


_Asked = tuple[StoreCursor, str, tuple[Advertisement, ...]]


@dataclass(frozen=True, slots=True)
class _LongAnswer:
    """What may be requested, given many claims."""

    at: StoreCursor
    fed: list[Advertisement]
    found: list[str]


class FollowedSet(Protocol):
    """What a link may send and request."""

    @property
    def cursor(self) -> StoreCursor: ...
    def current(self, runtime: RuntimeFacts, claims: PeerClaims, call: Call) -> Generation: ...
    def requestable(self, own: Generation, claims: PeerClaims, call: Call) -> Collection[str]: ...
    def rest(self, call: Call) -> None: ...
    def all_of(self, records: Sequence[str]) -> Generation: ...
    def leave(self, payer: Payer | None) -> None: ...
    def close(self) -> None: ...


class _Generations:
    """An evaluator, and its newest set."""

    def __init__(self, evaluator: Evaluator, thresholds: RuleThresholds | None = None) -> None:
        self._evaluator = evaluator
        self._thresholds = thresholds or RuleThresholds()
        # A generation may outlive this, so it holds the evaluator and not what holds the generation.
        advertise, policy = partial(_advertise, evaluator), evaluator.policy
        self._newest = Generation(
            0,
            IdSet(),
            advertise,
            policy.max_line_bytes,
            is_bare=policy.is_bare,
            min_columns=self._thresholds.min_claim_columns,
        )

    @property
    def cursor(self) -> StoreCursor:
        """The moment of the store that was last evaluated."""
        return self._evaluator.cursor

    def all_of(self, records: Sequence[str]) -> Generation:
        """Any records of the store, advertised as those that may be sent are."""
        return self._newest.anew(ids_of_texts(records))

    def leave(self, payer: Payer | None) -> None:
        """A link has no part in it any more."""

    def close(self) -> None:
        """Nobody uses this any more."""
        self._evaluator.close()

    def _follow(self, delta: Delta) -> Generation:
        if delta.send_added or delta.send_removed:
            came = list(delta.send_added)
            self._newest = self._newest.then(came, list(delta.send_removed))
            self._newest.foresee(came)
        return self._newest


def _advertise(evaluator: Evaluator, records: Iterable[str]) -> list[Advertisement]:
    return evaluator.advertise(dict.fromkeys(records))


class PrivateSet(_Generations):
    """Of one link: claims of its peer, or the time, decide what it may send."""

    def current(self, runtime: RuntimeFacts, claims: PeerClaims, call: Call) -> Generation:
        """What may be sent now, with all that the peer claims."""
        call.needs_time()
        with self._evaluator.turn(call, Work.EVALUATION):
            return self._follow(self._evaluator.evaluate(runtime, claims.take_changes(), call))

    def requestable(self, own: Generation, claims: PeerClaims, call: Call) -> Collection[str]:
        """What may be requested and is not there."""
        return self._evaluator.requestable

    def rest(self, call: Call) -> None:
        """From here on small changes are likely."""
        call.needs_time()
        with self._evaluator.turn(call, Work.EVALUATION), self._evaluator.turn(call, Work.RULES):
            self._evaluator.get_ready()


class SetOrigin(Enum):
    """Where the newest set comes from."""

    NOWHERE = auto()  # it is empty, and nothing was evaluated
    KEPT = auto()  # an earlier process kept it; what comes next is evaluated from nothing
    RESUMED = auto()  # an earlier process kept it; what comes next is what changed since
    EVALUATED = auto()  # this process evaluated it; what comes next is what changed since


class SetEvent(Enum):
    """What moves a shared set."""

    RECALLED = auto()  # it was kept, and the store has not changed since
    RESUMED = auto()  # it was kept, and the evaluator can follow the store from there
    EVALUATED = auto()
    BROKEN_OFF = auto()  # the evaluator was stopped in the middle, and starts from nothing


MOVES = {
    (SetOrigin.NOWHERE, SetEvent.RECALLED): SetOrigin.KEPT,
    (SetOrigin.NOWHERE, SetEvent.RESUMED): SetOrigin.RESUMED,
    (SetOrigin.NOWHERE, SetEvent.EVALUATED): SetOrigin.EVALUATED,
    (SetOrigin.NOWHERE, SetEvent.BROKEN_OFF): SetOrigin.NOWHERE,
    (SetOrigin.KEPT, SetEvent.EVALUATED): SetOrigin.EVALUATED,
    (SetOrigin.KEPT, SetEvent.BROKEN_OFF): SetOrigin.KEPT,
    (SetOrigin.RESUMED, SetEvent.EVALUATED): SetOrigin.EVALUATED,
    (SetOrigin.RESUMED, SetEvent.BROKEN_OFF): SetOrigin.KEPT,
    (SetOrigin.EVALUATED, SetEvent.EVALUATED): SetOrigin.EVALUATED,
    # The evaluator tells all of it then, or knows what it told before.
    (SetOrigin.EVALUATED, SetEvent.BROKEN_OFF): SetOrigin.EVALUATED,
}
STANDS_BY_ITSELF = frozenset({SetOrigin.KEPT, SetOrigin.RESUMED})  # at its moment it needs no evaluation


class SharedSet(_Generations):
    """Of any number of links, each in its own thread."""

    def __init__(
        self,
        evaluator: Evaluator,
        name: str = "",
        *,
        clock: Callable[[], float] = thread_time,
        thresholds: RuleThresholds | None = None,
    ) -> None:
        super().__init__(evaluator, thresholds)
        self._store = evaluator.store
        self._bill = SharedBill(clock)
        self._busy = threading.Lock()
        self._name = name  # under which the set is kept with the lace; empty: it is not
        self._origin = SetOrigin.NOWHERE
        self._kept_at = StoreCursor()  # the moment of the set that was kept, where it stands by itself
        self._kept: int | None = None  # the generation that is kept
        self._kept_as = b""  # the digest of what is kept of it
        self._kept_labels: frozenset[str] = frozenset()  # under which its roots are kept
        if name:
            self._recall()
        self._heard = -1  # of the store's news, when the newest set was worked out
        self._settled: tuple[StoreCursor, Generation] | None = None  # a moment, and the set that was worked out for it
        self._runtime: RuntimeFacts | None = None  # of the last evaluation; what the rules read of it never changes
        self.is_ready: bool = False  # whether it was prepared to be followed
        self._answers: dict[_Asked, list[str]] = {}  # that links with like claims share
        self._long: WeakKeyDictionary[PeerClaims, _LongAnswer] = WeakKeyDictionary()  # one for each link

    @property
    def origin(self) -> SetOrigin:
        """Where the newest set comes from."""
        return self._origin

    @property
    def asking(self) -> int:
        """How many calls wait for the newest set."""
        return self._bill.asking

    def _move(self, event: SetEvent) -> None:
        self._origin = MOVES[self._origin, event]

    def current(self, runtime: RuntimeFacts, claims: PeerClaims, call: Call) -> Generation:
        """What may be sent now, whatever anybody claims."""
        if not call.may_wait and self.is_current:
            return self._newest
        call.needs_time()
        self._bill.join(call.payer)
        try:
            with self._bill.waiting(call):
                if (known := self._unchanged()) is not None:
                    return known
                with self.alone(call), self._bill.split(call) as for_all:
                    return self._evaluated(runtime, for_all)
        finally:
            if call.is_cancelled:  # it may have left before it was counted
                self.leave(call.payer)

    def leave(self, payer: Payer | None) -> None:
        """A link has no part in it any more, and pays for nothing that comes."""
        self._bill.leave(payer)

    def _unchanged(self) -> Generation | None:
        """The newest set, if the store is as it was when that was worked out: nobody is waited for to find that."""
        heard, settled = self._store.news.count, self._settled
        if settled is None or settled[0] != self._store.cursor():
            return None
        self._heard = heard
        return settled[1]

    def _evaluated(self, runtime: RuntimeFacts, call: Call) -> Generation:
        heard, self._runtime = self._store.news.count, runtime
        self._newest = self._worked_out(runtime, call)
        self._settled = self.cursor, self._newest
        self._heard = heard
        return self._newest

    def refresh(self, call: Call) -> None:
        """Follow the store, for all links that will ask.

        A call that may not wait comes from a thread that has just stored a few records: waking another thread would
        take longer than following them does. NotNow if there is more to do, or another thread is doing it.
        """
        runtime = self._runtime
        if runtime is None:
            return
        if call.may_wait:
            self.current(runtime, NO_CLAIMS, call)
            return
        if self._origin is not SetOrigin.EVALUATED or not self._busy.acquire(blocking=False):
            raise NotNow("the set is in other hands")
        try:
            with self._bill.waiting(call), self._bill.split(call) as for_all:
                self._evaluated(runtime, for_all)
        except NotNow:  # before anything was begun
            raise
        except BaseException:
            self._break_off()
            raise
        finally:
            self._busy.release()

    @property
    def is_current(self) -> bool:
        """Whether nothing was stored since the newest set was worked out."""
        return self._heard == self._store.news.count

    def _worked_out(self, runtime: RuntimeFacts, call: Call) -> Generation:
        if self._origin in STANDS_BY_ITSELF and self._kept_at == self._store.cursor():
            return self._newest
        before = self._evaluator.cursor
        delta = self._evaluator.evaluate(runtime, ClaimChanges([], []), call)
        self._forget_answers(before)
        whole = delta.whole
        if whole is None and self._origin is SetOrigin.KEPT:  # the evaluator does not know what is kept
            whole = ids_of_texts(delta.send_added)
        self._move(SetEvent.EVALUATED)
        if whole is not None:
            self.is_ready = False
            return self._newest.anew(whole)
        return self._follow(delta)

    def _forget_answers(self, before: StoreCursor) -> None:
        """Answers are of one moment of the store."""
        if self._evaluator.cursor != before:
            self._answers.clear()
            self._long.clear()

    def _break_off(self) -> None:
        """What was left in the middle must not be what the next one finds."""
        self._heard, self.is_ready = -1, False
        self._evaluator.start_over()
        self._move(SetEvent.BROKEN_OFF)

    @contextmanager
    def alone(self, call: Call) -> Iterator[None]:
        """One link at a time; what one of them breaks off in the middle must not be what the next one finds.

        A link that waits for its turn locks nobody out meanwhile: it may be the last in line, and others the first.
        """
        with self._evaluator.turn(call, Work.EVALUATION):
            while not self._busy.acquire(timeout=_LOOK_S):
                call.check()
            try:
                call.check()  # nothing was begun
                try:
                    yield
                except BaseException:
                    self._break_off()
                    raise
            finally:
                self._busy.release()

    @property
    def cursor(self) -> StoreCursor:
        """The moment of the store that the newest set is of."""
        return self._kept_at if self._origin in STANDS_BY_ITSELF else self._evaluator.cursor

    def _recall(self) -> None:
        found = recall(self._store, self._name)
        if found is None:
            return
        is_resumed = self._evaluator.resume(found.at)
        if is_resumed or found.at == self._store.cursor():
            self._kept_at = found.at
            self._move(SetEvent.RESUMED if is_resumed else SetEvent.RECALLED)
            self._newest = self._newest.holding(set_of(found.ids), roots=found.roots)
            self._kept, self._kept_as = self._newest.number, found.digest
            self._kept_labels = frozenset(found.roots)

    def keep(self) -> None:
        """Keep the newest set with the lace."""
        with self._busy:
            if self._name and self._kept != self._newest.number:
                self._kept_as = keep(self._store, self._name, self.cursor, self._newest.ids, self._thresholds)
                self._kept, self._kept_labels = self._newest.number, frozenset()
            roots = self._newest.known_roots() if self._kept_as else {}
            if not self._kept_labels.issuperset(roots):
                keep_roots(self._store, self._name, self._kept_as, roots)
                self._kept_labels = frozenset(roots)

    def requestable(self, own: Generation, claims: PeerClaims, call: Call) -> Collection[str]:
        """What may be requested of a peer, by its claims about records that we lack; by all of them, where claims about
        one record may matter to another."""
        with self._evaluator.turn(call, Work.CLAIMS) if len(claims) > MANY_CLAIMS else contextlib.nullcontext():
            fed = claims.beyond(own)
        if not fed:
            return ()
        if self._evaluator.policy.feeding is not Feeding.SEPARATE:
            fed = claims.listing()
        at = self.cursor  # an answer is of this moment, whatever other links do meanwhile
        found = self._answered(fed, claims, at)
        if found is None:
            found = self._evaluator.requestable_with(fed, claims.source, call, is_alone=False)
        if found is None:
            with self.alone(call):
                found = self._evaluator.requestable_with(fed, claims.source, call, is_alone=True)
            assert found is not None  # who is alone is answered
        self._note_answer(fed, claims, at, found)
        return found

    def _answered(self, fed: list[Advertisement], claims: PeerClaims, at: StoreCursor) -> list[str] | None:
        """What was found for the same claims, at the same moment of the store. A long listing is not hashed for that:
        its claims are the very ones of the last time, which shows at a glance."""
        if len(fed) <= self._thresholds.max_shared_claims:
            return self._answers.get((at, claims.source, tuple(fed)))
        kept = self._long.get(claims)
        return kept.found if kept is not None and kept.at == at and kept.fed == fed else None

    def _note_answer(self, fed: list[Advertisement], claims: PeerClaims, at: StoreCursor, found: list[str]) -> None:
        if len(fed) > self._thresholds.max_shared_claims:
            self._long[claims] = _LongAnswer(at, fed, found)
            return
        self._answers[at, claims.source, tuple(fed)] = found
        if len(self._answers) > _KEPT_ANSWERS:
            with contextlib.suppress(StopIteration, KeyError, RuntimeError):  # another link may be doing it too
                del self._answers[next(iter(self._answers))]

    def rest(self, call: Call) -> None:
        """From here on small changes are likely. Of many links that come to rest at once, one prepares for them."""
        if self.is_ready:
            return
        call.needs_time()
        with self.alone(call), self._evaluator.turn(call, Work.RULES):
            if not self.is_ready:
                self._evaluator.get_ready()
                self.is_ready = True
