"""Rules of peers, where they can be killed (P36; docs/threat-model.md).

Rule: rules that a peer wrote are first tried here with little fuel, which is all that honest rules need. What asks for
more goes to a process of its own: its memory is limited, its processor time is counted for the peer, it gives way to
everything else on the machine, and it is killed when it is over its limits or when nobody waits for it any more.

What is counted of a peer's rules depends on its view alone (see `lace.datalog.meter`). Which of the two ways an
evaluation took changes its time and nothing else.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from lace.differences.ids import ids_of_texts
from lace.errors import EvaluationStopped, LimitExceeded
from lace.interlace.claims.advertisement import Advertisement
from lace.interlace.claims.partitions import ClaimChanges
from lace.interlace.host import Call, NotNow
from lace.interlace.runtimefacts import RuntimeFacts
from lace.runtime.rules.evaluator import Delta, Records, StoreEvaluator, Work
from lace.runtime.rules.guesthouse import GuestHouse, GuestKilled, Room, confine
from lace.runtime.rules.policy import LinkPolicy
from lace.store import open_store
from lace.store.base import RecordStore, StoreCursor
from lace.values import dataclass

NO_CHANGE = Delta()


class GuestEvaluator:
    """The evaluator of a policy whose rules a peer may have written: an `Evaluator` here, and elsewhere once the rules
    asked for more than a little. They never come back."""

    def __init__(
        self, store: RecordStore, policy: LinkPolicy, house: GuestHouse, guest: str, *, is_shared: bool = False
    ) -> None:
        self.store = store
        self.policy = policy
        self._house = house
        self._guest = guest  # whose turn it is where a call does not say
        # Our own rules cost what our own rules cost.
        self._may_leave = not policy.is_ours and house.path is not None
        near = policy
        if self._may_leave:
            limits = house.limits
            most = limits.held_bytes(store.stat().records, is_first=True)
            near = policy.within(max_peer_rows=limits.first_rows, max_held_bytes=most)
        # Rules that leave start from nothing elsewhere, so it has to be known what was told before; those that look at
        # one record at a time tell all of it when they leave.
        self._forgets = is_shared and (policy.is_ours or policy.is_by_record)
        self._tells_all = self._forgets and not policy.is_ours
        self._near = StoreEvaluator(store, near, is_shared=self._forgets)
        self._has_moved = self._may_leave and house.is_known_as_costly(policy.peer_rules)
        self._room: Room | None = None
        self._facts: RuntimeFacts | None = None
        self._owed = NO_CHANGE
        self._claims: dict[str, Advertisement] = {}
        self._send: Records = {}
        self._request: Records = {}
        self._cursor = StoreCursor()

    @property
    def cursor(self) -> StoreCursor:
        """The moment of the store that was last evaluated."""
        return self._cursor if self._has_moved else self._near.cursor

    @property
    def requestable(self) -> Collection[str]:
        """What may be requested and is not there, no matter which peer claims to have it."""
        return self._request if self._has_moved else self._near.requestable

    def resume(self, at: StoreCursor) -> bool:
        """From a set of an earlier moment, as long as the rules have not left."""
        return not self._has_moved and self._near.resume(at)

    def start_over(self) -> None:
        """A call was broken off in the middle: the next one evaluates everything."""
        self._near.start_over()
        self._leave_room()

    def evaluate(self, facts: RuntimeFacts, claims: ClaimChanges, call: Call) -> Delta:
        """What changed in the two sets. NotNow if the call may not wait, and would have to."""
        if not call.may_wait:
            return self._followed(facts, claims, call)
        self._facts = facts
        for claim in claims.removed:
            self._claims.pop(claim.hash, None)
        self._claims.update((claim.hash, claim) for claim in claims.added)
        if not self._has_moved:
            with self._trying(call):
                return self._note(self._near.evaluate(facts, claims, call))
        delta = self._note(self._far(EvaluateGuest(facts, claims), call).delta)
        owed, self._owed = self._owed, NO_CHANGE
        return owed.then(delta)

    def _followed(self, facts: RuntimeFacts, claims: ClaimChanges, call: Call) -> Delta:
        if self._has_moved:
            raise NotNow("the rules are evaluated elsewhere")
        try:
            with self._house.here_if_free(self.policy.is_ours, self._turn_of(call)):
                return self._note(self._near.evaluate(facts, claims, call))
        except LimitExceeded:  # the next evaluation finds out the same, and what to do about it
            raise NotNow("there is more to do than a little") from None

    def requestable_with(
        self, claims: Sequence[Advertisement], source: str, call: Call, *, is_alone: bool = True
    ) -> list[str] | None:
        """What could be requested of a peer that makes these claims; nothing of them is kept.

        None if a caller that is not alone has to be: as when rules leave, or have left."""
        if not is_alone:
            return None if self._has_moved else self._tried_beside(claims, source, call)
        if not self._has_moved:
            with self._trying(call):
                return self._near.requestable_with(claims, source, call)
        return list(self._far(RequestableGuest(list(claims), source), call).requestable)

    def _tried_beside(self, claims: Sequence[Advertisement], source: str, call: Call) -> list[str] | None:
        try:
            with self._house.here(self.policy.is_ours, self._turn_of(call), call):
                return self._near.requestable_with(claims, source, call, is_alone=False)
        except LimitExceeded:
            return None

    def turn(self, call: Call, work: Work) -> contextlib.AbstractContextManager[None]:
        """A turn beside other links. Rules of peers take their turn where they are tried, and our own rules before
        anything is locked; looking through claims takes one in either case."""
        is_waited_for = work is Work.CLAIMS or (work is Work.EVALUATION) is self.policy.is_ours
        if not is_waited_for:
            return contextlib.nullcontext()
        return self._house.here(work is not Work.RULES, self._turn_of(call), call)

    def _turn_of(self, call: Call) -> Hashable:
        """The account of the link that asks: links share an evaluator, and none pays for what another asked."""
        return self._guest if call.account is None else call.account

    @contextlib.contextmanager
    def _trying(self, call: Call) -> Iterator[None]:
        """Evaluate here, with little fuel; rules that need more move to a process and stay there."""
        try:
            with self.turn(call, Work.RULES):
                yield
        except LimitExceeded:
            if not self._may_leave:
                raise
            self._has_moved = True
            self._house.note_costly(self.policy.peer_rules)

    def advertise(self, records: Records) -> list[Advertisement]:
        """One advertisement for each record, with the negotiated fields."""
        return self._near.advertise(records)

    def get_ready(self) -> None:
        """From here on small changes are likely."""
        if not self._has_moved:
            self._near.get_ready()

    def close(self) -> None:
        """Let go of what was derived, here and in a room."""
        self._leave_room()
        self._near.close()

    def _leave_room(self) -> None:
        if self._room is not None:
            self._house.leave(self._room)
            self._room = None

    def _note(self, delta: Delta) -> Delta:
        if not self._forgets:
            delta.change(self._send, self._request)
        return delta

    # --- elsewhere ---------------------------------------------------------------------------------------------

    def _far(self, job: EvaluateGuest | RequestableGuest, call: Call) -> GuestAnswer:
        """The answer of our room; if somebody else ended its process, that of another one, once."""
        try:
            return self._ask_far(job, call)
        except GuestKilled:
            self._room = None
            call.check()
        try:
            return self._ask_far(job, call)
        except GuestKilled as error:
            raise EvaluationStopped(f"{error}, twice") from None

    def _ask_far(self, job: EvaluateGuest | RequestableGuest, call: Call) -> GuestAnswer:
        """The answer of our room; a new room first receives everything."""
        with self._house.turn(
            self._turn_of(call), self.policy.peer_rules, self._room, call, self._memory().process_bytes
        ) as room:
            self._room = room
            if not room.is_fresh:
                answer = room.ask(job)
            else:
                answer = self._begin(room)
                if isinstance(job, RequestableGuest):
                    self._owed = self._owed.then(self._note(answer.delta))  # told with the next evaluation
                    answer = room.ask(job)
        call.charge(rows=answer.rows)
        self._cursor = answer.cursor
        return answer

    def _begin(self, room: Room) -> GuestAnswer:
        facts, memory = self._facts, self._memory()
        policy = self.policy.within(max_peer_rows=self._house.limits.max_rows, max_held_bytes=memory.held_bytes)
        assert self._house.path is not None
        room.ask(BeginGuest(str(self._house.path), policy, memory.process_bytes))
        if facts is None:  # nothing was evaluated yet
            room.is_fresh = False
            return GuestAnswer(self._cursor, 0)
        answer = room.ask(EvaluateGuest(facts, ClaimChanges(list(self._claims.values()), [])))
        room.is_fresh = False
        if self._tells_all:
            return replace(answer, delta=Delta(whole=ids_of_texts(answer.delta.send_added)))
        return replace(answer, delta=self._difference(answer.delta))

    def _memory(self) -> GuestMemory:
        records, limits = self.store.stat().records, self._house.limits
        held = limits.held_bytes(records)
        return GuestMemory(held, limits.process_bytes(held, records))

    def _difference(self, whole: Delta) -> Delta:
        """From what was told before to what a process found that began from nothing."""
        return Delta(
            send_added={record: None for record in whole.send_added if record not in self._send},
            send_removed={record: None for record in self._send if record not in whole.send_added},
            request_added={record: None for record in whole.request_added if record not in self._request},
            request_removed={record: None for record in self._request if record not in whole.request_added},
        )


# --- the other process -----------------------------------------------------------------------------------------------

_guest: StoreEvaluator | None = None  # of this process, which has one guest


@dataclass(frozen=True, slots=True)
class GuestAnswer:
    """What an evaluation changed, at which moment of the store, and the rows it touched."""

    cursor: StoreCursor
    rows: int
    delta: Delta = NO_CHANGE
    requestable: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class GuestMemory:
    """What an evaluation may hold, and by how much its process may grow."""

    held_bytes: int
    process_bytes: int


@dataclass(frozen=True, slots=True)
class BeginGuest:
    """Open the store to evaluate a policy over it."""

    path: str
    policy: LinkPolicy
    process_bytes: int

    def run(self, _: IO[bytes]) -> None:
        global _guest
        confine(self.process_bytes)
        _guest = StoreEvaluator(open_store(Path(self.path), read_only=True), self.policy)


@dataclass(frozen=True, slots=True)
class EvaluateGuest:
    """One evaluation."""

    facts: RuntimeFacts
    claims: ClaimChanges

    def run(self, _: IO[bytes]) -> GuestAnswer:
        return _answered(lambda guest, call: {"delta": guest.evaluate(self.facts, self.claims, call)})


@dataclass(frozen=True, slots=True)
class RequestableGuest:
    """What could be requested, given these claims."""

    claims: Sequence[Advertisement]
    source: str

    def run(self, _: IO[bytes]) -> GuestAnswer:
        claims, source = self.claims, self.source
        return _answered(lambda guest, call: {"requestable": guest.requestable_with(claims, source, call) or ()})


def _answered(work: Callable[[StoreEvaluator, Call], dict[str, Any]]) -> GuestAnswer:
    if _guest is None:
        raise EvaluationStopped("no guest has begun here")
    call = Call()
    try:
        found = work(_guest, call)
    except MemoryError:
        raise LimitExceeded("max_held_bytes", 0, "memory of a process that evaluates a peer's rules") from None
    return GuestAnswer(_guest.cursor, call.rows, **found)
