"""A policy whose rules look at one record at a time, over a store that changes (070, shared sets).

Rule: no fact is remembered between two calls. New records are evaluated by themselves and removed ones drop out, which
gives the answer of an evaluation over the whole store; `lace.policy.recordwise` says for which rules that is true. A
set under such rules costs its ids and no derived facts, and following it does not cost more as the store grows.

Whether a part of content is selected depends on the manifests above it: they are read with it, and when a manifest
comes or goes, its stored parts are looked at again (`lace.runtime.rules.partlinks`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import repeat
from operator import itemgetter

from lace.datalog.engine import PreparedProgram, RowSource
from lace.datalog.language.syntax import Predicate
from lace.datalog.source import FactSource
from lace.facts.derive import derive_facts
from lace.facts.predicates import ADVERTISED, ADVERTISED_FIELD, DATA_LENGTH, FIELD, HAVE, RECORD_LINK, TYPE
from lace.interlace.claims.advertisement import Advertisement
from lace.interlace.host import Call
from lace.notation.fact import Fact
from lace.notation.identifiers import RecordHash, is_record_hash
from lace.records.frame import blob_length
from lace.records.manifest import CHUNK_LINK
from lace.records.validate import reread
from lace.runtime.rules.partlinks import part_links
from lace.runtime.rules.policy import LinkPolicy
from lace.store.base import Changes, RecordStore, StoreCursor
from lace.thresholds import RuleThresholds
from lace.values import dataclass

HEAD_BYTES = 1_024  # of a Blob: more than all that precedes its data


@dataclass(frozen=True, slots=True)
class Moved:
    """What became sendable, what no longer is (or never was), and the moment of the store this describes."""

    came: Sequence[str]
    went: Sequence[str]
    cursor: StoreCursor


class ByRecord:
    """The two questions, asked of a few records."""

    def __init__(self, store: RecordStore, policy: LinkPolicy, thresholds: RuleThresholds) -> None:
        self._store = store
        self._policy = policy.lowered
        self._thresholds = thresholds
        self._prepared = PreparedProgram(
            policy.lowered.program,
            policy.lowered.goals,
            policy.limits,
            guests=policy.lowered.guests,
            thresholds=thresholds.prepared,
        )
        self._links = part_links(store)

    def follow(self, since: StoreCursor, runtime: Collection[Fact], call: Call) -> Moved | None:
        """How what may be sent changed; None if that was too much, or the store no longer knows."""
        now = self._store.cursor()
        if now == since:
            return Moved((), (), since)
        if now.record - since.record > self._thresholds.max_followed_records:
            return None
        changes = self._store.changes(since)
        if changes is None or not self._links.follow():
            return None
        went = [record for (record,) in changes.removed.iterate(HAVE)]
        if self._links.is_empty and not changes.removed_records:
            return Moved(self._asked(self._policy.sendable, [changes.added], runtime, call), went, changes.cursor)
        return self._follow_content(changes, went, runtime, call)

    def _follow_content(self, changes: Changes, went: list[str], runtime: Collection[Fact], call: Call) -> Moved | None:
        """What `follow` gives if a new record may be part of content, or content with parts here came or went."""
        links, added = self._links, {*changes.added_records}
        gone = {target for _, _, _, _, target in changes.removed.query(RECORD_LINK, None, CHUNK_LINK)}
        touched = links.below(added) | links.below(gone) | {RecordHash(part) for part in gone if is_record_hash(part)}
        stored = self._store.present(sorted(touched - added))
        context = links.above((*added, *stored)) - added - stored
        if len(stored) + len(context) > self._thresholds.max_read_records:
            return None
        sources: list[FactSource] = [changes.added]
        if stored or context:
            sources.append(RowSource(self._facts_of((*stored, *context))))
        asked = {*map(str, added), *map(str, stored)}  # manifests above them were looked at when they came
        found = [record for record in self._asked(self._policy.sendable, sources, runtime, call) if record in asked]
        return Moved(found, [*went, *(stored.difference(found))], changes.cursor)

    def requestable(
        self, claims: Sequence[Advertisement], source: str, runtime: Collection[Fact], call: Call
    ) -> list[str] | None:
        """What could be requested of a peer that makes these claims; None if too many are of records that we hold."""
        is_empty = self._store.cursor() == StoreCursor()  # a first copy: looking up every claim would find nothing
        held = set() if is_empty else self._store.present([RecordHash(claim.hash) for claim in claims])
        if len(held) > self._thresholds.max_read_records or not (is_empty or self._links.follow()):
            return None
        context = held if is_empty else held | self._links.above(claim.hash for claim in claims)
        if len(context) > 2 * self._thresholds.max_read_records:
            return None
        sources = [RowSource(self._facts_of(context)), claimed(claims, source)]
        return self._asked(self._policy.requestable, sources, runtime, call)

    def get_ready(self, runtime: Collection[Fact]) -> None:
        """From here on few records are likely to come at a time."""
        self._prepared.get_ready(runtime)

    def close(self) -> None:
        """Let go of what is kept to look at few records."""
        self._prepared.close()

    def _facts_of(self, records: Iterable[RecordHash]) -> Iterator[Fact]:
        for record in records:
            if record.type == "B":  # its facts are its head: what may be 32 MiB is not read for them
                yield from facts_of_blob(record, self._store.get_head(record, HEAD_BYTES))
            elif (stored := self._store.get(record)) is not None:
                yield from derive_facts(reread(stored))

    def _asked(
        self, goal: Predicate, sources: Sequence[FactSource], runtime: Collection[Fact], call: Call
    ) -> list[str]:
        found = self._prepared.ask(goal, sources, runtime, lambda: call.is_cancelled)
        call.charge(rows=found.rows)
        return found.values


def facts_of_blob(record: RecordHash, head: bytes | None) -> Iterator[Fact]:
    """What `derive_facts` gives of a whole Blob (020-FIELD-01, 020-FIELD-02)."""
    if head is None:
        return
    yield Fact(HAVE, (record,))
    yield Fact(FIELD, (record, TYPE, "0", "B"))
    yield Fact(FIELD, (record, DATA_LENGTH, "0", str(blob_length(head))))


def claimed(claims: Collection[Advertisement], source: str, facts: Iterable[Fact] = ()) -> RowSource:
    """Claims as rows, without a value for each of the facts that very many of them are."""
    rows = RowSource(facts)
    rows.add(ADVERTISED, zip(map(itemgetter(0), claims), repeat(source)))
    if any(map(itemgetter(1), claims)):  # nearly all listings are bare, and long ones are not gone through for nothing
        rows.add(ADVERTISED_FIELD, [(record, source, *field) for record, fields in claims for field in fields])
    return rows
