"""What may be sent and requested under one policy, for all links that agree on everything it depends on (070).

Rule: two links share when their lowered rules, the runtime facts that these read, the advertised fields and engine
limits are equal, and when neither a claim of a peer nor the passing of time can change what may be sent. A link holds a
generation; the rules, the columns and the store's changes are looked at once for all.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
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
from lace.runtime.rules.evaluator import Delta, Evaluator
from lace.runtime.rules.feeding import Feeding
from lace.runtime.rules.generation import Generation
from lace.runtime.rules.keptsets import keep, keep_roots, recall
from lace.store.base import RecordStore, StoreCursor
from lace.values import dataclass

_KEPT_ANSWERS = 64
_FEW_CLAIMS = 64  # up to so many, the answer is kept for the next peer that makes the same claims
_WORTH_SHARING_S = 0.001  # below this the asking link pays alone: sharing the bill would cost more than the bill
_LOOK_S = 0.02  # how often a thread that waits for its turn looks whether anybody still waits for it
NO_CLAIMS = PeerClaims("", 0)  # of nobody: shared sets hang on none


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

    def __init__(self, evaluator: Evaluator, max_line_bytes: int, *, is_bare: bool = False) -> None:
        self._evaluator = evaluator
        # A generation may outlive this, so it holds the evaluator and not what holds the generation.
        self._newest = Generation(0, IdSet(), partial(_advertise, evaluator), max_line_bytes, is_bare=is_bare)

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
            self._newest = self._newest.then(list(delta.send_added), list(delta.send_removed))
        return self._newest


def _advertise(evaluator: Evaluator, records: Iterable[str]) -> list[Advertisement]:
    return evaluator.advertise(dict.fromkeys(records))


class PrivateSet(_Generations):
    """Of one link: claims of its peer, or the time, decide what it may send."""

    def current(self, runtime: RuntimeFacts, claims: PeerClaims, call: Call) -> Generation:
        """What may be sent now, with all that the peer claims."""
        call.needs_time()
        with self._evaluator.turn(call):
            return self._follow(self._evaluator.evaluate(runtime, claims.take_changes(), call))

    def requestable(self, own: Generation, claims: PeerClaims, call: Call) -> Collection[str]:
        """What may be requested and is not there."""
        return self._evaluator.requestable

    def rest(self, call: Call) -> None:
        """From here on small changes are likely."""
        call.needs_time()
        with self._evaluator.turn(call), self._evaluator.looking_through(call):
            self._evaluator.get_ready()


class ForAll(Call):
    """A call on behalf of everybody who waits for its answer: given up when all of them have."""

    __slots__ = ("_asking",)

    def __init__(self, asking: dict[int, Call], caller: Call) -> None:
        super().__init__(caller.max_rows, caller.payer, may_wait=caller.may_wait)
        self.account = caller.account
        self._asking = asking

    @property
    def is_cancelled(self) -> bool:
        return all(call.is_cancelled for call in list(self._asking.values()))


class SharedSet(_Generations):
    """Of any number of links, each in its own thread.

    An evaluation that all of them use is paid by all of them in equal parts, no matter which asked first
    (docs/decisions/176). One that is broken off is paid by the link that asked for it, and it is broken off only if no
    other link waits for it.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        max_line_bytes: int,
        feeding: Feeding,
        store: RecordStore,
        name: str = "",
        *,
        is_bare: bool = False,
    ) -> None:
        super().__init__(evaluator, max_line_bytes, is_bare=is_bare)
        evaluator.forget_sets()
        self._feeding = feeding
        self._busy = threading.Lock()
        self._store = store
        self._name = name  # under which the set is kept with the lace; empty: it is not
        self._recalled: StoreCursor | None = None  # the moment of a set that was kept, until something is evaluated
        self._is_resumed = False  # whether what is evaluated next is the change since that moment
        self._kept: int | None = None  # the generation that is kept
        self._kept_as = b""  # the digest of what is kept of it
        self._kept_labels: frozenset[str] = frozenset()  # under which its roots are kept
        if name:
            self._recall()
        self._heard = -1  # of the store's news, when the newest set was worked out
        self._settled: tuple[StoreCursor, Generation] | None = None  # a moment, and the set that was worked out for it
        self._runtime: RuntimeFacts | None = None  # of the last evaluation; what the rules read of it never changes
        self.is_ready = False  # whether it was prepared to be followed
        self._answers: dict[_Asked, list[str]] = {}  # that links with like claims share
        self._long: WeakKeyDictionary[PeerClaims, _LongAnswer] = WeakKeyDictionary()  # one for each link
        self._payers: dict[int, Payer] = {}  # of the links that have a part in it
        self._asking: dict[int, Call] = {}  # calls that wait for the same answer

    def current(self, runtime: RuntimeFacts, claims: PeerClaims, call: Call) -> Generation:
        """What may be sent now, whatever anybody claims."""
        if not call.may_wait and self.is_current:
            return self._newest
        call.needs_time()
        if call.payer is not None:
            self._payers[id(call.payer)] = call.payer
        self._asking[id(call)] = call
        try:
            if (known := self._unchanged()) is not None:
                return known
            with self._undivided(call):
                return self._paid_by_all(lambda for_all: self._evaluated(runtime, for_all), call)
        finally:
            del self._asking[id(call)]
            if call.is_cancelled:  # it may have left before it was counted
                self.leave(call.payer)

    def leave(self, payer: Payer | None) -> None:
        """A link has no part in it any more, and pays for nothing that comes."""
        self._payers.pop(id(payer), None)

    def _paid_by_all(self, work: Callable[[Call], Generation], call: Call) -> Generation:
        for_all, started = ForAll(self._asking, call), thread_time()
        try:
            found = work(for_all)
        finally:
            call.cpu_s += for_all.cpu_s
            call.rows += for_all.rows
        spent, payers = thread_time() - started + for_all.cpu_s, list(self._payers.values())
        if call.payer is None or spent > _WORTH_SHARING_S:
            others = [payer for payer in payers if payer is not call.payer]
            for other in others:
                other.pay(spent / len(payers))
            call.cpu_s -= spent * len(others) / max(1, len(payers))
        return found

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
        take longer than following them does. NotNow if there is more to do, or somebody else is at it.
        """
        runtime = self._runtime
        if runtime is None:
            return
        if call.may_wait:
            self.current(runtime, NO_CLAIMS, call)
            return
        if self._recalled is not None or not self._busy.acquire(blocking=False):
            raise NotNow("the set is in other hands")
        self._asking[id(call)] = call
        try:
            self._paid_by_all(lambda for_all: self._follow_few(runtime, for_all), call)
        except NotNow:  # before anything was begun
            raise
        except BaseException:
            self._break_off()
            raise
        finally:
            del self._asking[id(call)]
            self._busy.release()

    def _follow_few(self, runtime: RuntimeFacts, call: Call) -> Generation:
        heard, before = self._store.news.count, self._evaluator.cursor
        delta = self._evaluator.follow_shortly(runtime, call)
        if delta is None:
            raise NotNow("there is more to follow than a few records")
        self._forget_answers(before)
        self._newest, self._heard = self._follow(delta), heard
        self._settled = self.cursor, self._newest
        return self._newest

    @property
    def is_current(self) -> bool:
        """Whether nothing was stored since the newest set was worked out."""
        return self._heard == self._store.news.count

    def _worked_out(self, runtime: RuntimeFacts, call: Call) -> Generation:
        if self._recalled is not None and self._recalled == self._store.cursor():
            return self._newest
        before = self._evaluator.cursor
        delta = self._evaluator.evaluate(runtime, ClaimChanges([], []), call)
        self._forget_answers(before)
        followed = self._recalled is None or self._is_resumed
        whole = delta.whole if followed or delta.whole is not None else ids_of_texts(delta.send_added)
        self._recalled = None
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

    @contextmanager
    def _undivided(self, call: Call) -> Iterator[None]:
        """One link at a time; what one of them breaks off in the middle must not be what the next one finds.

        Whoever waits for a turn locks nobody out meanwhile: it may be the last in line, and others the first.
        """
        with self._evaluator.turn(call):
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
        return self._recalled or self._evaluator.cursor

    def _recall(self) -> None:
        found = recall(self._store, self._name)
        if found is None:
            return
        self._is_resumed = self._evaluator.resume(found.at)
        if self._is_resumed or found.at == self._store.cursor():
            self._recalled = found.at
            self._newest = self._newest.holding(set_of(found.ids), roots=found.roots)
            self._kept, self._kept_as = self._newest.number, found.digest
            self._kept_labels = frozenset(found.roots)

    def keep(self) -> None:
        """Keep the newest set with the lace."""
        with self._busy:
            if self._name and self._kept != self._newest.number:
                self._kept_as = keep(self._store, self._name, self.cursor, self._newest.ids.ids())
                self._kept, self._kept_labels = self._newest.number, frozenset()
            roots = self._newest.known_roots() if self._kept_as else {}
            if not self._kept_labels.issuperset(roots):
                keep_roots(self._store, self._name, self._kept_as, roots)
                self._kept_labels = frozenset(roots)

    def requestable(self, own: Generation, claims: PeerClaims, call: Call) -> Collection[str]:
        """What may be requested of a peer, by its claims about records that we lack; by all of them, where claims about
        one record may matter to another."""
        with self._evaluator.beside(call) if len(claims) > MANY_CLAIMS else contextlib.nullcontext():
            fed = claims.beyond(own)
        if not fed:
            return ()
        if self._feeding is not Feeding.SEPARATE:
            fed = claims.listing()
        at = self.cursor  # an answer is of this moment, whatever other links do meanwhile
        found = self._answered(fed, claims, at)
        if found is None:
            found = self._evaluator.requestable_freely(fed, claims.source, call)
        if found is None:
            with self._undivided(call):
                found = self._evaluator.requestable_with(fed, claims.source, call)
        self._note_answer(fed, claims, at, found)
        return found

    def _answered(self, fed: list[Advertisement], claims: PeerClaims, at: StoreCursor) -> list[str] | None:
        """What was found for the same claims, at the same moment of the store. A long listing is not hashed for that:
        its claims are the very ones of the last time, which shows at a glance."""
        if len(fed) <= _FEW_CLAIMS:
            return self._answers.get((at, claims.source, tuple(fed)))
        kept = self._long.get(claims)
        return kept.found if kept is not None and kept.at == at and kept.fed == fed else None

    def _note_answer(self, fed: list[Advertisement], claims: PeerClaims, at: StoreCursor, found: list[str]) -> None:
        if len(fed) > _FEW_CLAIMS:
            self._long[claims] = _LongAnswer(at, fed, found)
            return
        self._answers[at, claims.source, tuple(fed)] = found
        if len(self._answers) > _KEPT_ANSWERS:
            with contextlib.suppress(StopIteration, KeyError, RuntimeError):  # another link may be at it too
                del self._answers[next(iter(self._answers))]

    def rest(self, call: Call) -> None:
        """From here on small changes are likely. Of many links that come to rest at once, one prepares for them."""
        if self.is_ready:
            return
        call.needs_time()
        with self._undivided(call), self._evaluator.looking_through(call):
            if not self.is_ready:
                self._evaluator.get_ready()
                self.is_ready = True
