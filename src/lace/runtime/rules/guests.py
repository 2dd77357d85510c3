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
from lace.interlace.effects import PreparePolicy
from lace.interlace.host import Call, NotNow
from lace.interlace.runtimefacts import RuntimeFacts
from lace.interlace.setup.terms import Terms
from lace.policy.lower import LoweredPolicy
from lace.runtime.rules.evaluator import Delta, Records, StoreEvaluator
from lace.runtime.rules.guesthouse import GuestHouse, GuestKilled, Room, confine
from lace.store import open_store
from lace.store.base import RecordStore, StoreCursor
from lace.values import dataclass

NO_CHANGE = Delta()


class GuestEvaluator:
    """The evaluator of a link whose peer brought rules of its own; the surface of a StoreEvaluator."""

    def __init__(self, store: RecordStore, terms: Terms, house: GuestHouse, guest: str) -> None:
        self.store = store
        self._terms = terms
        self._house = house
        self._guest = guest  # whose turn it is where a call does not say
        self._near = StoreEvaluator(store, terms)
        self._room: Room | None = None
        self._wanted: PreparePolicy | None = None
        self._is_ours = False
        self._forgets = False
        self._tells_all = False
        self._has_moved = False
        self._reset()

    def _reset(self) -> None:
        self._facts: RuntimeFacts | None = None
        self._owed = NO_CHANGE
        self._claims: dict[str, Advertisement] = {}
        self._send: Records = {}
        self._request: Records = {}
        self._cursor = StoreCursor()

    @property
    def lowered(self) -> LoweredPolicy:
        """The program that is evaluated."""
        return self._near.lowered

    @property
    def cursor(self) -> StoreCursor:
        """The moment of the store that was last evaluated."""
        return self._cursor if self._has_moved else self._near.cursor

    @property
    def requestable(self) -> Collection[str]:
        """What may be requested and is not there, no matter which peer claims to have it."""
        return self._request if self._has_moved else self._near.requestable

    def prepare(self, wanted: PreparePolicy, call: Call | None = None) -> None:
        """The local executable of a plan; for rules of peers in turn, like everything that they cost here."""
        peer = wanted.plan.operands[1 - wanted.local_index].module
        self._is_ours = wanted.are_all_ours  # our own rules cost what our own rules cost
        limits = self._house.limits
        engine = self._terms.engine_limits
        if not self._is_ours and self._house.path is not None:
            engine = replace(
                engine,
                max_peer_rows_touched=min(engine.max_peer_rows_touched, limits.first_rows),
                max_held_bytes=min(engine.max_held_bytes, limits.held_bytes(self.store.stat().records, is_first=True)),
            )
        self._near = StoreEvaluator(self.store, replace(self._terms, engine_limits=engine))
        with self._here(call or Call()):
            self._near.prepare(wanted)
        self._wanted = wanted
        self._name = (str(peer.id), str(wanted.viewer))
        self._has_moved = not self._is_ours and self._house.is_known_as_costly(self._name)
        self._leave_room()
        self._reset()

    def forget_sets(self) -> None:
        """Not for rules that may leave: then it has to be known what was told before. Rules that look at one record at
        a time tell all of it when they leave."""
        self._tells_all = not self._is_ours and self._near.is_recordwise
        if self._is_ours or self._tells_all:
            self._near.forget_sets()
            self._forgets = True

    def resume(self, at: StoreCursor) -> bool:
        """From a set of an earlier moment, as long as the rules have not left."""
        return not self._has_moved and self._near.resume(at)

    def start_over(self) -> None:
        """A call was broken off in the middle: the next one evaluates anew."""
        self._near.start_over()
        self._leave_room()

    def evaluate(self, facts: RuntimeFacts, claims: ClaimChanges, call: Call) -> Delta:
        """What changed in the two sets."""
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

    def follow_shortly(self, facts: RuntimeFacts, call: Call) -> Delta | None:
        """The same where a few records came, each is looked at by itself, and nobody is to be waited for."""
        if self._has_moved:
            return None
        try:
            with self._house.here_if_free(self._is_ours, self._turn_of(call)):
                delta = self._near.follow_shortly(facts, call)
        except (NotNow, LimitExceeded):  # the next evaluation finds out the same, and what to do about it
            return None
        return None if delta is None else self._note(delta)

    def requestable_with(self, claims: Sequence[Advertisement], source: str, call: Call) -> list[str]:
        """What could be requested of a peer that makes these claims; nothing of them is kept."""
        if not self._has_moved:
            with self._trying(call):
                return self._near.requestable_with(claims, source, call)
        return list(self._far(RequestableGuest(list(claims), source), call).requestable)

    def requestable_freely(self, claims: Sequence[Advertisement], source: str, call: Call) -> list[str] | None:
        """The same for any number of callers at once; None if it has to be asked in turn, as when a link leaves."""
        if self._has_moved:
            return None
        try:
            with self._here(call):
                return self._near.requestable_freely(claims, source, call)
        except LimitExceeded:
            return None

    def beside(self, call: Call) -> contextlib.AbstractContextManager[None]:
        """A turn to look through many claims; what rules cost is not in it."""
        return self._house.here(True, self._turn_of(call), call)

    def turn(self, call: Call) -> contextlib.AbstractContextManager[None]:
        """A turn to evaluate our own rules; those of peers take theirs where they are tried."""
        return self.beside(call) if self._is_ours else contextlib.nullcontext()

    def looking_through(self, call: Call) -> contextlib.AbstractContextManager[None]:
        """A turn to look through rules of a peer, which takes the longer the more there are."""
        return contextlib.nullcontext() if self._is_ours else self._here(call)

    def _here(self, call: Call) -> contextlib.AbstractContextManager[None]:
        """A turn to evaluate in this process."""
        return self._house.here(self._is_ours, self._turn_of(call), call)

    def _turn_of(self, call: Call) -> Hashable:
        """The account of the link that asks: links share an evaluator, and none pays for what another asked."""
        return self._guest if call.account is None else call.account

    @contextlib.contextmanager
    def _trying(self, call: Call) -> Iterator[None]:
        """Here, with little fuel; what needs more leaves for good, and its work is done elsewhere."""
        try:
            with self.looking_through(call):
                yield
        except LimitExceeded:
            if self._is_ours or self._house.path is None:
                raise
            self._has_moved = True
            self._house.note_costly(self._name)

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
        """The answer of our room; one that is fresh is told everything first."""
        with self._house.turn(self._turn_of(call), self._name, self._room, call) as room:
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
        wanted, facts = self._wanted, self._facts
        assert wanted is not None
        assert self._house.path is not None
        limits = self._house.limits
        room.ask(BeginGuest(str(self._house.path), self._terms, wanted, limits.max_rows, self._held_bytes()))
        if facts is None:  # nothing was evaluated yet
            room.is_fresh = False
            return GuestAnswer(self._cursor, 0)
        answer = room.ask(EvaluateGuest(facts, ClaimChanges(list(self._claims.values()), [])))
        room.is_fresh = False
        if self._tells_all:
            return replace(answer, delta=Delta(whole=ids_of_texts(answer.delta.send_added)))
        return replace(answer, delta=self._difference(answer.delta))

    def _held_bytes(self) -> int:
        return self._house.limits.held_bytes(self.store.stat().records)

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
class BeginGuest:
    """Open the store and prepare the plan."""

    path: str
    terms: Terms
    wanted: PreparePolicy
    max_rows: int
    max_held_bytes: int

    def run(self, _: IO[bytes]) -> None:
        global _guest
        confine(self.max_held_bytes)
        engine = replace(
            self.terms.engine_limits,
            max_peer_rows_touched=min(self.terms.engine_limits.max_peer_rows_touched, self.max_rows),
            max_held_bytes=min(self.terms.engine_limits.max_held_bytes, self.max_held_bytes),
        )
        store = open_store(Path(self.path), read_only=True)
        _guest = StoreEvaluator(store, replace(self.terms, engine_limits=engine))
        _guest.prepare(self.wanted)


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
        return _answered(lambda guest, call: {"requestable": guest.requestable_with(self.claims, self.source, call)})


def _answered(work: Callable[[StoreEvaluator, Call], dict[str, Any]]) -> GuestAnswer:
    if _guest is None:
        raise EvaluationStopped("no guest has begun here")
    call = Call()
    try:
        found = work(_guest, call)
    except MemoryError:
        raise LimitExceeded("max_held_bytes", 0, "memory of a process that evaluates a peer's rules") from None
    return GuestAnswer(_guest.cursor, call.rows, **found)
