"""One policy over a store that changes (040, 050): from a snapshot, runtime facts and claims to what may be sent and
requested, by the embedded engine.

Rule: an evaluation sees one explicit snapshot (050-SEND-03) and answers with what changed since the one before. How it
follows the store is a row of MOVES: small changes are followed, after large ones everything is evaluated, and the
answer is the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field
from enum import Enum, auto
from typing import Protocol

from lace.datalog.engine import Materialized, evaluate, materialize
from lace.datalog.language.syntax import Atom, Predicate, Variable
from lace.datalog.meter import Meter
from lace.datalog.source import ColumnSource, all_facts
from lace.differences.ids import Ids, ids_of_lines, ids_of_texts
from lace.facts.derive import derive_facts
from lace.facts.predicates import FIELD, HAVE
from lace.interlace.claims.advertisement import (
    Advertisement,
    FieldClaim,
    advertisement_facts,
    bare_claims,
    canonical_fields,
)
from lace.interlace.claims.partitions import ClaimChanges
from lace.interlace.host import Call
from lace.interlace.runtimefacts import RuntimeFacts
from lace.limits import MIB
from lace.notation.fact import Fact
from lace.records.validate import reread
from lace.runtime.host.storedbatches import stored_batches
from lace.runtime.rules.byrecord import ByRecord, claimed
from lace.runtime.rules.feeding import ClaimBook
from lace.runtime.rules.policy import LinkPolicy
from lace.store.base import RecordStore, StoreCursor
from lace.thresholds import LoadThresholds, RuleThresholds
from lace.values import dataclass

_READ_RECORDS = 1024  # at a time
_ONE_BY_ONE = LoadThresholds(long_request=1 << 62)  # in the order asked for
Records = dict[str, None]
"""A set that keeps its order: sorting what is nearly sorted, and reading texts in the order they were made, is fast."""


@dataclass(frozen=True, slots=True)
class Delta:
    """What an evaluation changed in the two sets."""

    send_added: Records = field(default_factory=dict)
    send_removed: Records = field(default_factory=dict)
    request_added: Records = field(default_factory=dict)
    request_removed: Records = field(default_factory=dict)
    whole: Ids | None = None  # all that may be sent, instead of what changed: in columns, for it may be millions

    def then(self, later: Delta) -> Delta:
        """Both changes, one after the other, as one."""
        if later.whole is not None:
            return later
        if self.whole is not None:
            went, came = ids_of_texts(later.send_removed), ids_of_texts(later.send_added)
            return Delta(whole=self.whole.without(went).with_(came))
        return Delta(
            _without(self.send_added, later.send_removed) | _without(later.send_added, self.send_removed),
            _without(self.send_removed, later.send_added) | _without(later.send_removed, self.send_added),
            _without(self.request_added, later.request_removed) | _without(later.request_added, self.request_removed),
            _without(self.request_removed, later.request_added) | _without(later.request_removed, self.request_added),
        )

    def change(self, send: Records, request: Records) -> None:
        """Change the two sets as told."""
        sides = (send, self.send_added, self.send_removed), (request, self.request_added, self.request_removed)
        for held, came, went in sides:
            held.update(came)
            for record in went:
                held.pop(record, None)


def _without(records: Records, others: Records) -> Records:
    return {record: None for record in records if record not in others} if others else records


class Work(Enum):
    """What a turn is taken for."""

    EVALUATION = auto()  # of our own rules
    RULES = auto()  # that a peer wrote: reading, planning and trying them
    CLAIMS = auto()  # of a peer, where there are many


class Evaluator(Protocol):
    """What evaluates one policy over a store."""

    store: RecordStore
    policy: LinkPolicy

    @property
    def cursor(self) -> StoreCursor:
        """The moment of the store that was last evaluated."""

    @property
    def requestable(self) -> Collection[str]:
        """What may be requested and is not there, no matter which peer claims to have it."""

    def resume(self, at: StoreCursor) -> bool:
        """Whether changes can be followed from a moment at which the caller knows what may be sent."""

    def start_over(self) -> None:
        """A call was broken off in the middle: the next one evaluates everything."""

    def evaluate(self, facts: RuntimeFacts, claims: ClaimChanges, call: Call) -> Delta:
        """What changed in the two sets, over the store's newest snapshot.

        A call that may not wait follows a few new records, if each is looked at by itself; else NotNow."""

    def requestable_with(
        self, claims: Sequence[Advertisement], source: str, call: Call, *, is_alone: bool
    ) -> list[str] | None:
        """What could be requested of a peer that makes these claims; nothing of them is kept.

        None if the question has to be asked again by a caller that is alone with the evaluator."""

    def turn(self, call: Call, work: Work) -> AbstractContextManager[None]:
        """A turn beside other links, for work that has to wait for one; callers take it before they lock anything."""

    def advertise(self, records: Records) -> list[Advertisement]:
        """One advertisement for each record, sorted, with the negotiated fields it has."""

    def get_ready(self) -> None:
        """From here on small changes are likely."""

    def close(self) -> None:
        """Let go of what was derived."""


class Following(Enum):
    """How an evaluator gets from the last evaluation to the next."""

    NOT_YET = auto()  # not at all: nothing was evaluated, or it was left in the middle
    BY_FACT = auto()  # the engine holds what it derived, and changes it
    READY = auto()  # the same, with what follows small changes compiled
    BY_RECORD = auto()  # nothing derived is held: what came is evaluated by itself (`lace.runtime.rules.byrecord`)


class FollowingEvent(Enum):
    """What moves an evaluator."""

    DERIVED = auto()  # everything was evaluated, and is held
    FOUND = auto()  # everything was evaluated, or is known from an earlier process; only the moment is held
    RESTED = auto()  # small changes are likely
    DROPPED = auto()  # what is held is given up: a call ended in the middle, or everything is evaluated


MOVES = {
    (Following.NOT_YET, FollowingEvent.DERIVED): Following.BY_FACT,
    (Following.NOT_YET, FollowingEvent.FOUND): Following.BY_RECORD,
    (Following.NOT_YET, FollowingEvent.RESTED): Following.NOT_YET,
    (Following.NOT_YET, FollowingEvent.DROPPED): Following.NOT_YET,
    (Following.BY_FACT, FollowingEvent.RESTED): Following.READY,
    (Following.BY_FACT, FollowingEvent.DROPPED): Following.NOT_YET,
    (Following.READY, FollowingEvent.RESTED): Following.READY,
    (Following.READY, FollowingEvent.DROPPED): Following.NOT_YET,
    (Following.BY_RECORD, FollowingEvent.RESTED): Following.BY_RECORD,
    (Following.BY_RECORD, FollowingEvent.DROPPED): Following.NOT_YET,
}


class StoreEvaluator:
    """The evaluator of one side of one link, or of all links that share a set.

    `is_shared`: the caller keeps what may be sent and feeds no claims. So it is told all of it after a whole
    evaluation, and rules that look at one record at a time need nothing remembered.
    """

    def __init__(
        self,
        store: RecordStore,
        policy: LinkPolicy,
        *,
        is_shared: bool = False,
        thresholds: RuleThresholds | None = None,
    ) -> None:
        self.store = store
        self.policy = policy
        self._thresholds = thresholds or RuleThresholds()
        self._is_shared = is_shared
        self._by_record = ByRecord(store, policy, self._thresholds) if is_shared and policy.is_by_record else None
        self._following = Following.NOT_YET
        self._derived: Materialized | None = None
        self._send: Records = {}  # what was derived last, unless the set is shared
        self._request: Records = {}
        self._cursor = StoreCursor()
        self._runtime: frozenset[Fact] = frozenset()
        self._claims = ClaimBook(policy.feeding)
        self._watch = _Watch()
        self._worked = 0  # rows that the last whole evaluation touched
        self._again = 0  # times that everything was evaluated because that is cheap

    @property
    def following(self) -> Following:
        """How the next evaluation starts."""
        return self._following

    @property
    def cursor(self) -> StoreCursor:
        """The moment of the store that was last evaluated."""
        return self._cursor

    @property
    def requestable(self) -> Collection[str]:
        """What may be requested and is not there, no matter which peer claims to have it."""
        return self._request

    def _has_little_to_follow(self) -> bool:
        return self.store.cursor().record - self._cursor.record <= self._thresholds.max_short_records

    def _move(self, event: FollowingEvent) -> None:
        self._following = MOVES[self._following, event]

    # --- the two questions of a host ---------------------------------------------------------------------------

    def resume(self, at: StoreCursor) -> bool:
        """Whether changes can be followed from a moment at which the caller knows what may be sent; its rules read no
        runtime facts."""
        if self._by_record is None:
            return False
        self._cursor, self._runtime = at, frozenset()
        self._move(FollowingEvent.FOUND)
        return True

    def start_over(self) -> None:
        """A call was broken off in the middle: the next one evaluates everything."""
        self._drop()

    def evaluate(self, facts: RuntimeFacts, claims: ClaimChanges, call: Call) -> Delta:
        """What changed in the two sets, over the store's newest snapshot: first over what changed here, then with the
        claims that this makes necessary."""
        self._watch.call = call
        runtime = self.policy.read_of(facts)
        if self._by_record is not None and (call.may_wait or self._has_little_to_follow()):
            delta = self._follow_records(self._by_record, runtime, call)
            if delta is not None:
                return delta
        call.needs_time()
        if self._by_record is not None:
            return self._start(runtime, ())
        feed, forget = self._claims.change(claims.added, claims.removed)
        delta = self._follow(runtime, feed, forget)
        if delta is None:
            delta = self._start(runtime, self._claims.start_over())
        if self._is_shared:
            return delta
        self._claims.note_sendable(delta.send_added, delta.send_removed)
        feed = self._claims.feed()
        if feed:
            delta = delta.then(self._follow(runtime, feed, []) or self._start(runtime, self._claims.fed))
        return delta

    def close(self) -> None:
        """Let go of what was derived; nobody asks again."""
        self._drop()
        if self._by_record is not None:
            self._by_record.close()

    def _drop(self) -> None:
        derived, self._derived = self._derived, None
        if derived is not None:
            derived.close()
        self._move(FollowingEvent.DROPPED)

    def get_ready(self) -> None:
        """From here on small changes are likely: prepare to follow them."""
        if self._by_record is not None:
            self._by_record.get_ready(self._runtime)
        if self._derived is not None:
            self._derived.get_ready()
        self._move(FollowingEvent.RESTED)

    def requestable_with(
        self, claims: Sequence[Advertisement], source: str, call: Call, *, is_alone: bool = True
    ) -> list[str] | None:
        """What could be requested of a peer that makes these claims; nothing of them is kept.

        Where nothing derived is held, any number of callers may ask at once; else None unless the caller is alone."""
        if self._by_record is not None:
            found = self._by_record.requestable(claims, source, self._runtime, call)
            if found is not None:
                return found
        if not is_alone:
            return None
        self._watch.call = call
        most = self._thresholds.max_followed_facts
        if self._derived is not None and self._following is Following.READY and len(claims) <= most:
            facts = [fact for claim in claims for fact in advertisement_facts(claim, source)]
            if len(facts) <= most:
                supposed = self._derived.suppose(facts).added.get(self.policy.lowered.requestable, ())
                return [record for (record,) in supposed]
        lowered, limits, meter = self.policy.lowered, self.policy.limits, self._meter()
        asked = Atom(lowered.requestable, (Variable("P"),))
        sources = [self.store.snapshot(), claimed(claims, source)]
        result = evaluate(lowered.program, sources, extra=self._runtime, goals=[asked], limits=limits, meter=meter)
        call.charge(rows=meter.rows)
        return result.text_columns(lowered.requestable)[0]

    def turn(self, call: Call, work: Work) -> AbstractContextManager[None]:
        """Nobody is waited for: what evaluates here without a guest house has no other links beside it."""
        return nullcontext()

    # --- evaluation --------------------------------------------------------------------------------------------

    def _meter(self) -> Meter:
        return Meter(self.policy.limits, interrupt=self._watch, guests=self.policy.lowered.guests)

    def _start(self, runtime: frozenset[Fact], claims: Collection[Advertisement]) -> Delta:
        """Evaluate everything over the newest snapshot, and compare with what was derived before."""
        lowered = self.policy.lowered
        snapshot = self.store.snapshot()
        extra = claimed(claims, self.policy.source, runtime)
        meter = self._meter()
        self._drop()
        derived = materialize(lowered.program, snapshot, self.policy.limits, extra=extra, ready=False, meter=meter)
        self._watch.call.charge(rows=meter.rows)
        self._cursor, self._runtime, self._worked = snapshot.cursor, runtime, meter.rows
        if self._is_shared:
            if self._by_record is None:
                self._hold(derived)
                lines = derived.value_lines(lowered.sendable)
            else:  # what was derived is not needed to follow from here
                self._move(FollowingEvent.FOUND)
                lines = _last_lines(derived, lowered.sendable)
            return Delta(whole=ids_of_lines(lines, derived.count(lowered.sendable)))
        self._hold(derived)
        send, request = self._send, self._request
        self._send, self._request = (dict.fromkeys(derived.values(found)) for found in lowered.goals)
        return Delta(
            send_added=_without(dict(self._send), send),
            send_removed=_without(send, self._send),
            request_added=_without(dict(self._request), request),
            request_removed=_without(request, self._request),
        )

    def _hold(self, derived: Materialized) -> None:
        self._derived = derived
        self._move(FollowingEvent.DERIVED)

    def _follow_records(self, by_record: ByRecord, runtime: frozenset[Fact], call: Call) -> Delta | None:
        """What changed by the records that came and went; None if everything has to be evaluated."""
        if self._following is not Following.BY_RECORD or runtime != self._runtime:
            return None
        found = by_record.follow(self._cursor, runtime, call)
        if found is None:
            return None
        self._cursor = found.cursor
        return Delta(send_added=dict.fromkeys(found.came), send_removed=dict.fromkeys(found.went))

    def _follow(
        self, runtime: frozenset[Fact], feed: Sequence[Advertisement], forget: Sequence[Advertisement]
    ) -> Delta | None:
        """Follow what changed; None if it is too much, or the store no longer knows."""
        most = self._thresholds.max_followed_facts
        if self._derived is None or len(feed) + len(forget) > most:
            return None
        removed = [*self._facts_of(forget), *(self._runtime - runtime)]
        added = [*self._facts_of(feed), *(runtime - self._runtime)]
        cursor = self.store.cursor()
        if cursor.record - self._cursor.record > most:
            return None  # a record has several facts
        if cursor != self._cursor:
            changes = self.store.changes(self._cursor)
            if changes is None or max(_count(changes.added), _count(changes.removed)) > most:
                return None
            removed += all_facts(changes.removed)
            added += all_facts(changes.added)
            cursor = changes.cursor
        self._cursor, self._runtime = cursor, runtime
        if not added and not removed:
            return Delta()
        if self._is_soon_done_again():
            return None
        derived = self._derived.apply(added, removed)
        self._watch.call.charge(rows=self._derived.meter.rows)
        sets = [
            {row[0]: None for row in side.get(predicate, ())}
            for predicate in self.policy.lowered.goals
            for side in (derived.added, derived.removed)
        ]
        delta = Delta(sets[0], sets[1], sets[2], sets[3])
        if not self._is_shared:
            delta.change(self._send, self._request)
        return delta

    def _is_soon_done_again(self) -> bool:
        """Whether to evaluate everything costs less than to compile what follows changes: many rules over few facts.

        Only until the first rest, and only a few times: who follows for long is better served by what is compiled."""
        if self._following is Following.READY or self._again >= self._thresholds.again_times:
            return False
        self._again += 1
        return self._worked <= self._thresholds.again_rows * len(self.policy.lowered.program.program.rules)

    # --- advertisements ----------------------------------------------------------------------------------------

    def advertise(self, records: Records) -> list[Advertisement]:
        """One advertisement for each record, sorted, with the negotiated fields it has (050-SEND-08); none for a record
        that is not stored any more, if there are fields to tell."""
        if not records or self.policy.is_bare:
            return bare_claims(sorted(records))
        if self._are_few(len(records)):
            return list(self._advertisements_of(sorted(records)))
        fields: dict[str, list[FieldClaim]] = {record: [] for record in sorted(records)}
        source = self.store.snapshot()
        rows: Iterable[tuple[str, ...]]
        if self.policy.schema.names is None:
            rows = source.iterate(FIELD)
        else:
            rows = (row for name in self.policy.schema.names for row in source.query(FIELD, None, name))
        for record, name, index, value in rows:
            if record in fields and self.policy.schema.allows(name):
                fields[record].append(FieldClaim(name, index, value))
        if not all(fields.values()):  # a record may have none of these fields, or be gone
            stored = {record for (record,) in source.iterate(HAVE)}
            fields = {record: found for record, found in fields.items() if found or record in stored}
        return [Advertisement(record, canonical_fields(found)) for record, found in fields.items()]

    def _are_few(self, count: int) -> bool:
        """Whether to read so many records costs less than to look through the columns of all."""
        thresholds = self._thresholds
        return count <= thresholds.min_columns or count * thresholds.column_share < self._cursor.record

    def _advertisements_of(self, records: Sequence[str]) -> Iterator[Advertisement]:
        """Of some records, by their bytes."""
        schema = self.policy.schema
        for batch in stored_batches(self.store, records, _READ_RECORDS, MIB, _ONE_BY_ONE):
            for record, stored in batch:
                if stored is not None:
                    rows = [values for predicate, values in derive_facts(reread(stored)) if predicate == FIELD]
                    fields = [FieldClaim(name, index, value) for _, name, index, value in rows if schema.allows(name)]
                    yield Advertisement(record, canonical_fields(fields))

    def _facts_of(self, claims: Iterable[Advertisement]) -> Iterator[Fact]:
        source = self.policy.source
        for claim in claims:
            yield from advertisement_facts(claim, source)


def _count(source: ColumnSource) -> int:
    return sum(source.count(predicate) for predicate in source.predicates())


def _last_lines(derived: Materialized, predicate: Predicate) -> Iterator[bytes]:
    """The values of a predicate. What was derived goes with the last of them: sorting ids takes memory of its own."""
    yield from derived.value_lines(predicate)
    derived.close()


class _Watch:
    """Whether the call that is being answered was given up: what the engine asks now and then. It does not know the
    evaluator, so nothing is a cycle."""

    def __init__(self) -> None:
        self.call = Call()

    def __call__(self) -> bool:
        return self.call.is_cancelled
