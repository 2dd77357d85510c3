"""A lowered policy over a store that changes: from plan, snapshot, runtime and advertisement facts to what may be sent
and requested (040, 050), by the embedded engine.

Rule: an evaluation sees one explicit snapshot (050-SEND-03) and answers with changes since the one before. Small
changes are followed incrementally; large ones are worth evaluating anew, and the answer is the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field
from typing import Protocol

from lace.datalog.engine import Materialized, evaluate, materialize
from lace.datalog.language.syntax import Atom, Variable
from lace.datalog.meter import Meter
from lace.datalog.source import ColumnSource, all_facts
from lace.differences.ids import Ids, ids_of_lines, ids_of_texts
from lace.errors import LocalProtocolError
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
from lace.interlace.effects import PreparePolicy
from lace.interlace.host import Call
from lace.interlace.runtimefacts import RuntimeFacts
from lace.interlace.setup.hello import NO_FIELDS
from lace.interlace.setup.terms import Terms
from lace.notation.fact import Fact
from lace.notation.identifiers import RecordHash
from lace.policy.lower import LoweredPolicy, LoweringOptions, lower
from lace.policy.recordwise import looks_at_one_record
from lace.records.validate import reread
from lace.runtime.rules.byrecord import ByRecord, claimed
from lace.runtime.rules.feeding import ClaimBook, feeding_of
from lace.store.base import RecordStore, StoreCursor
from lace.values import dataclass

# Facts of one change above which evaluating anew is cheaper than following.
MAX_FOLLOWED_FACTS = 1_000
FEW_RECORDS = 16  # up to so many are evaluated by the thread that stored them
_BULK_RECORDS = 64  # records above which fields are read from the columns instead of from each record

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


class Evaluator(Protocol):
    """What evaluates one policy over a store."""

    store: RecordStore

    @property
    def lowered(self) -> LoweredPolicy: ...
    @property
    def cursor(self) -> StoreCursor: ...
    @property
    def requestable(self) -> Collection[str]: ...
    def prepare(self, wanted: PreparePolicy, call: Call | None = None) -> None: ...
    def forget_sets(self) -> None: ...
    def resume(self, at: StoreCursor) -> bool: ...
    def start_over(self) -> None: ...
    def evaluate(self, facts: RuntimeFacts, claims: ClaimChanges, call: Call) -> Delta: ...
    def follow_shortly(self, facts: RuntimeFacts, call: Call) -> Delta | None: ...
    def requestable_with(self, claims: Sequence[Advertisement], source: str, call: Call) -> list[str]: ...
    def requestable_freely(self, claims: Sequence[Advertisement], source: str, call: Call) -> list[str] | None: ...
    def beside(self, call: Call) -> AbstractContextManager[None]: ...
    def turn(self, call: Call) -> AbstractContextManager[None]: ...
    def looking_through(self, call: Call) -> AbstractContextManager[None]: ...
    def advertise(self, records: Records) -> list[Advertisement]: ...
    def get_ready(self) -> None: ...
    def close(self) -> None: ...


class StoreEvaluator:
    """The evaluator of one side of one link."""

    def __init__(self, store: RecordStore, terms: Terms, *, max_followed_facts: int = MAX_FOLLOWED_FACTS) -> None:
        self.store = store
        self._terms = terms
        self._max_followed = max_followed_facts
        self._keeps_sets = True
        self._recordwise: ByRecord | None = None  # where nothing has to be remembered to follow the store
        self.policy: LoweredPolicy | None = None
        self._schema = NO_FIELDS
        self._watch = _Watch()
        self._reset()

    def _reset(self) -> None:
        self._derived: Materialized | None = None
        self._is_ready = False
        self._is_begun = False  # one record at a time: there is a moment to follow from
        self._send: Records = {}  # what was derived last
        self._request: Records = {}
        self._cursor = StoreCursor()
        self._runtime: frozenset[Fact] = frozenset()
        self._claims = ClaimBook()
        self._source = ""

    @property
    def cursor(self) -> StoreCursor:
        """The moment of the store that was last evaluated."""
        return self._cursor

    @property
    def requestable(self) -> Collection[str]:
        """What may be requested and is not there, no matter which peer claims to have it."""
        return self._request

    # --- the two questions of a host ---------------------------------------------------------------------------

    def prepare(self, wanted: PreparePolicy, call: Call | None = None) -> None:
        """The local executable of a plan; everything of the one before is forgotten."""
        self.policy = lower(
            wanted.plan,
            local_index=wanted.local_index,
            viewer=wanted.viewer,
            exposures=wanted.exposures,
            options=LoweringOptions(
                send_gate=wanted.send_gate,
                trust_peer=self._terms.trust_peer,
                shows_unfinished=self._terms.shows_unfinished,
            ),
            limits=self._terms.engine_limits,
        )
        self._schema = wanted.schema
        self.close()
        self._claims = ClaimBook(feeding_of(wanted.plan))
        self._source = wanted.peer_source

    @property
    def is_recordwise(self) -> bool:
        """Whether the rules look at one record at a time."""
        return looks_at_one_record(self.lowered.program.program.rules, self.lowered.goals)

    def forget_sets(self) -> None:
        """The caller keeps what may be sent and feeds no claims: after a new evaluation it is told all of it."""
        self._keeps_sets = False
        self._recordwise = None
        if self.is_recordwise:
            self._recordwise = ByRecord(self.store, self.lowered, self._terms.engine_limits)

    def resume(self, at: StoreCursor) -> bool:
        """Whether changes can be followed from a moment at which the caller knows what may be sent; its rules read no
        runtime facts."""
        if self._recordwise is None:
            return False
        self._cursor, self._runtime, self._is_begun = at, frozenset(), True
        return True

    def start_over(self) -> None:
        """A call was broken off in the middle: the next one evaluates anew."""
        self._derived = None
        self._is_ready = self._is_begun = False

    def evaluate(self, facts: RuntimeFacts, claims: ClaimChanges, call: Call) -> Delta:
        """What changed in the two sets, over the store's newest snapshot: first over what changed here, then with the
        claims that this makes necessary."""
        self._watch.call = call
        runtime = self._read_of(facts)
        if self._recordwise is not None:
            return self._follow_records(self._recordwise, runtime) or self._start(runtime, ())
        feed, forget = self._claims.change(claims.added, claims.removed)
        delta = self._follow(runtime, feed, forget)
        if delta is None:
            delta = self._start(runtime, self._claims.begin_anew())
        if not self._keeps_sets:
            return delta
        self._claims.note_sendable(delta.send_added, delta.send_removed)
        feed = self._claims.feed()
        if feed:
            delta = delta.then(self._follow(runtime, feed, []) or self._start(runtime, self._claims.fed))
        return delta

    def follow_shortly(self, facts: RuntimeFacts, call: Call) -> Delta | None:
        """The same where a few records came and each is looked at by itself; None if it is not so."""
        if self._recordwise is None or self.store.cursor().record - self._cursor.record > FEW_RECORDS:
            return None
        self._watch.call = call
        return self._follow_records(self._recordwise, self._read_of(facts))

    def _read_of(self, facts: RuntimeFacts) -> frozenset[Fact]:
        """Those that the rules read."""
        read = self.lowered.program.base
        return frozenset(fact for fact in facts.facts() if fact.predicate in read)

    def close(self) -> None:
        """Let go of what was derived."""
        if self._derived is not None:
            self._derived.close()
        if self._recordwise is not None:
            self._recordwise.close()
        self._reset()

    def get_ready(self) -> None:
        """From here on small changes are likely: prepare to follow them."""
        if self._recordwise is not None:
            self._recordwise.get_ready(self._runtime)
        if self._derived is not None:
            self._derived.get_ready()
            self._is_ready = True

    def requestable_with(self, claims: Sequence[Advertisement], source: str, call: Call) -> list[str]:
        """What could be requested of a peer that makes these claims; nothing of them is kept."""
        self._watch.call = call
        policy = self.lowered
        if self._derived is not None and self._is_ready and len(claims) <= self._max_followed:
            facts = [fact for claim in claims for fact in advertisement_facts(claim, source)]
            if len(facts) <= self._max_followed:
                found = self._derived.suppose(facts).added.get(policy.requestable, ())
                return [record for (record,) in found]
        limits = self._terms.engine_limits
        meter = Meter(limits, interrupt=self._watch, guests=policy.guests)
        asked = Atom(policy.requestable, (Variable("P"),))
        sources = [self.store.snapshot(), claimed(claims, source)]
        runtime = self._runtime
        result = evaluate(policy.program, sources, extra=runtime, goals=[asked], limits=limits, meter=meter)
        call.charge(rows=meter.rows)
        return result.text_columns(policy.requestable)[0]

    def requestable_freely(self, claims: Sequence[Advertisement], source: str, call: Call) -> list[str] | None:
        """The same for any number of callers at once; None if it has to be asked in turn."""
        if self._recordwise is None:
            return None
        return self._recordwise.requestable(claims, source, self._runtime, call)

    def beside(self, call: Call) -> AbstractContextManager[None]:
        """A turn beside other links, where there are any."""
        return nullcontext()

    def turn(self, call: Call) -> AbstractContextManager[None]:
        """A turn for `evaluate` and `requestable_with`; callers take it before they lock anything."""
        return nullcontext()

    def looking_through(self, call: Call) -> AbstractContextManager[None]:
        """A turn to find out what the rules are like."""
        return nullcontext()

    # --- evaluation --------------------------------------------------------------------------------------------

    def _start(self, runtime: frozenset[Fact], claims: Collection[Advertisement]) -> Delta:
        """Evaluate anew over the newest snapshot, and compare with what was derived before."""
        policy = self.lowered
        snapshot = self.store.snapshot()
        extra = claimed(claims, self._source, runtime)
        limits = self._terms.engine_limits
        meter = Meter(limits, interrupt=self._watch, guests=policy.guests)
        self._is_ready = False
        before = self._derived
        self._derived = materialize(policy.program, snapshot, limits, extra=extra, ready=False, meter=meter)
        if before is not None:
            before.close()
        self._watch.call.charge(rows=meter.rows)
        self._cursor, self._runtime = snapshot.cursor, runtime
        if not self._keeps_sets:
            whole = ids_of_lines(self._derived.value_lines(policy.sendable))
            if self._recordwise is not None:  # what was derived is not needed to follow from here
                self._derived.close()
                self._derived, self._is_begun = None, True
            return Delta(whole=whole)
        send, request = self._send, self._request
        self._send, self._request = (dict.fromkeys(self._derived.values(found)) for found in policy.goals)
        return Delta(
            send_added=_without(dict(self._send), send),
            send_removed=_without(send, self._send),
            request_added=_without(dict(self._request), request),
            request_removed=_without(request, self._request),
        )

    def _follow_records(self, recordwise: ByRecord, runtime: frozenset[Fact]) -> Delta | None:
        """The same, by the records that came and went."""
        if not self._is_begun or runtime != self._runtime:
            return None
        found = recordwise.follow(self._cursor, runtime, self._watch.call)
        if found is None:
            return None
        self._cursor = found.cursor
        return Delta(send_added=dict.fromkeys(found.came), send_removed=dict.fromkeys(found.went))

    def _follow(
        self, runtime: frozenset[Fact], feed: Sequence[Advertisement], forget: Sequence[Advertisement]
    ) -> Delta | None:
        """Follow what changed; None if it is too much, or the store no longer knows."""
        if self._derived is None or len(feed) + len(forget) > self._max_followed:
            return None
        removed = [*self._facts_of(forget), *(self._runtime - runtime)]
        added = [*self._facts_of(feed), *(runtime - self._runtime)]
        cursor = self.store.cursor()
        if cursor.record - self._cursor.record > self._max_followed:
            return None  # a record has several facts
        if cursor != self._cursor:
            changes = self.store.changes(self._cursor)
            if changes is None or not (self._is_small(changes.added) and self._is_small(changes.removed)):
                return None
            removed += all_facts(changes.removed)
            added += all_facts(changes.added)
            cursor = changes.cursor
        self._cursor, self._runtime = cursor, runtime
        if not added and not removed:
            return Delta()
        derived = self._derived.apply(added, removed)
        self._watch.call.charge(rows=self._derived.meter.rows)
        policy = self.lowered
        sets = [
            {row[0]: None for row in side.get(predicate, ())}
            for predicate in (policy.sendable, policy.requestable)
            for side in (derived.added, derived.removed)
        ]
        delta = Delta(sets[0], sets[1], sets[2], sets[3])
        if self._keeps_sets:
            delta.change(self._send, self._request)
        return delta

    def _is_small(self, source: ColumnSource) -> bool:
        return sum(source.count(predicate) for predicate in source.predicates()) <= self._max_followed

    @property
    def lowered(self) -> LoweredPolicy:
        """The program that is evaluated."""
        if self.policy is None:
            raise LocalProtocolError("nothing was prepared to evaluate")
        return self.policy

    # --- advertisements ----------------------------------------------------------------------------------------

    def advertise(self, records: Records) -> list[Advertisement]:
        """One advertisement for each record, sorted, with the negotiated fields it has (050-SEND-08); none for a record
        that is not stored any more, if there are fields to tell."""
        if not records or self._schema == NO_FIELDS:
            return bare_claims(sorted(records))
        if len(records) <= _BULK_RECORDS:
            return [claim for record in sorted(records) if (claim := self._advertisement_of(record)) is not None]
        fields: dict[str, list[FieldClaim]] = {record: [] for record in sorted(records)}
        source = self.store.snapshot()
        rows: Iterable[tuple[str, ...]]
        if self._schema.names is None:
            rows = source.iterate(FIELD)
        else:
            rows = (row for name in self._schema.names for row in source.query(FIELD, None, name))
        for record, name, index, value in rows:
            if record in fields and self._schema.allows(name):
                fields[record].append(FieldClaim(name, index, value))
        if not all(fields.values()):  # a record may have none of these fields, or be gone
            stored = {record for (record,) in source.iterate(HAVE)}
            fields = {record: found for record, found in fields.items() if found or record in stored}
        return [Advertisement(record, canonical_fields(found)) for record, found in fields.items()]

    def _advertisement_of(self, record: str) -> Advertisement | None:
        """Of one record, by its bytes: the columns of all records are long to look through for a few."""
        stored = self.store.get(RecordHash(record))
        if stored is None:
            return None
        rows = [values for predicate, values in derive_facts(reread(stored)) if predicate == FIELD]
        fields = [FieldClaim(name, index, value) for _, name, index, value in rows if self._schema.allows(name)]
        return Advertisement(record, canonical_fields(fields))

    def _facts_of(self, claims: Iterable[Advertisement]) -> Iterator[Fact]:
        source = self._source
        for claim in claims:
            yield from advertisement_facts(claim, source)


class _Watch:
    """Whether the call that is being answered was given up: what the engine asks now and then."""

    def __init__(self) -> None:
        self.call = Call()

    def __call__(self) -> bool:
        return self.call.is_cancelled
