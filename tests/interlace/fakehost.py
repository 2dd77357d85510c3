"""A host by the naive evaluator over a small store: slow, and right by being small."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from executors import reference
from lace.differences.ids import ids_of_texts
from lace.differences.idset import set_of
from lace.errors import LaceError
from lace.facts.predicates import FIELD
from lace.interlace import effects as asked
from lace.interlace import inputs as given
from lace.interlace.claims.advertisement import Advertisement, FieldClaim, advertisement_facts, canonical_fields
from lace.interlace.claims.cursor import decode_cursor
from lace.interlace.claims.partitions import AdvertisementSet
from lace.interlace.claims.peerclaims import PeerClaims
from lace.interlace.host import Arrived, Call, Loaded
from lace.interlace.loop.requests import choose_requests
from lace.interlace.setup.terms import Terms
from lace.notation.fact import Fact
from lace.notation.identifiers import RecordHash
from lace.policy.lower import LoweredPolicy, LoweringOptions, lower
from lace.records.model import ValidRecord
from lace.records.validate import validate
from lace.runtime.host.setcomparer import Comparer
from lace.runtime.rules.generation import Generation
from lace.store.base import RecordStore

Sets = tuple[frozenset[str], frozenset[str]]
Judged = tuple[list[ValidRecord], dict[str, str]]


class FakeHost:
    """Everything a machine may ask for, without haste."""

    answers_now = False
    shared = None

    def __init__(self, store: RecordStore, terms: Terms) -> None:
        self.store = store
        self.terms = terms
        self.sendable: frozenset[str] = frozenset()
        self.requestable: frozenset[str] = frozenset()
        self.runtime: list[list[Fact]] = []  # of every evaluation
        self.claims = PeerClaims("", terms.max_line_bytes)
        self.earlier: dict[int, dict[str, Advertisement]] = {}

    @property
    def cursor(self) -> object:
        return self.store.cursor()

    def prepare(self, wanted: asked.PreparePolicy, call: Call) -> given.PolicyPrepared:
        self.policy = self.lowered(wanted)
        self.wanted = wanted
        self.own = AdvertisementSet(self.terms.max_line_bytes)
        self.comparer = Comparer(wanted.difference_key) if wanted.difference_key is not None else None
        if not wanted.keeps_claims:
            self.claims = PeerClaims(wanted.peer_source, self.terms.max_line_bytes)
            kept = self.store.get_setting("cursor", wanted.cursor_key) if wanted.cursor_key else None
            cursor = decode_cursor(kept, wanted.plan.id, wanted.peer_source, 1 << 30) if kept else None
            if cursor is not None:
                self.claims.restore(cursor)
        return given.PolicyPrepared(len(self.claims))

    def lowered(self, wanted: asked.PreparePolicy) -> LoweredPolicy:
        return lower(
            wanted.plan,
            local_index=wanted.local_index,
            viewer=wanted.viewer,
            exposures=wanted.exposures,
            options=LoweringOptions(send_gate=wanted.send_gate, trust_peer=self.terms.trust_peer),
        )

    def evaluate(self, wanted: asked.Evaluate, call: Call) -> given.Evaluated:
        self.runtime.append(list(wanted.runtime.facts()))
        call.charge(rows=1 + len(self.claims))
        self.sendable, self.requestable = self.sets(self.claims.listing())
        self.own.replace_all([self.advertise(record) for record in sorted(self.sendable)])
        source = self.wanted.own_source
        reads_listings = self.wanted.plan.have_reads_advertisements
        return given.Evaluated(
            own=asked.SetHandle(self.own.version, len(self.own)),
            partitions=self.own.partition_count,
            listing_bytes=self.own.size_under(source),
            requests=choose_requests(self.requestable, self.claims.among, self.wanted.record_formats, wanted),
            fingerprint=self.own.fingerprint(source) if reads_listings else b"",
            claims_fingerprint=self.claims.fingerprint() if reads_listings else b"",
            store_mark=self.store.high_water(),
        )

    def sets(self, claims: Sequence[Advertisement]) -> Sets:
        """What may be sent and requested now, given what the peer claims."""
        snapshot = self.store.snapshot()
        facts = [Fact(predicate, row) for predicate in snapshot.predicates() for row in snapshot.iterate(predicate)]
        facts += self.runtime[-1]
        for claim in claims:
            facts += advertisement_facts(claim, self.wanted.peer_source)
        derived = reference.evaluate(self.policy.program, facts)
        sendable, requestable = (frozenset(row[0] for row in derived.get(goal, ())) for goal in self.policy.goals)
        return sendable, requestable

    def advertise(self, record: str) -> Advertisement:
        fields = (FieldClaim(*row[1:]) for row in self.store.snapshot().query(FIELD, record))
        return Advertisement(record, canonical_fields(f for f in fields if self.wanted.schema.allows(f.name)))

    def rest(self, call: Call) -> None: ...

    def expect(self, claimed: int) -> None: ...

    def summarise(self, wanted: asked.Summarise, call: Call) -> given.Summarised:
        if wanted.parents is None:
            return given.Summarised(self.own.summaries(wanted.source))
        children = (self.own.children([parent], wanted.source) for parent in wanted.parents)
        return given.Summarised(sorted(child for family in children for child in family))

    def list(self, wanted: asked.SendListing, call: Call) -> Iterator[Sequence[Advertisement]]:
        for claim in self.own.listing():
            if wanted.records is not None and claim.hash not in wanted.records:
                continue
            if wanted.prefixes is None or any(claim.hash.startswith(prefix, 2) for prefix in wanted.prefixes):
                call.charge(rows=1)
                yield [claim]

    def differences(self, wanted: asked.SendChanges, call: Call) -> given.ChangesReceived:
        now = {claim.hash: claim for claim in self.own.listing()}
        self.earlier[wanted.own.number] = now
        if wanted.since is None:
            return given.ChangesReceived(list(now.values()), (), is_whole=True)
        before = self.earlier[wanted.since.number]
        added = [claim for record, claim in now.items() if before.get(record) != claim]
        return given.ChangesReceived(added, sorted(before.keys() - now.keys()))

    def take_claims(self, wanted: asked.TakeClaims, call: Call) -> given.ClaimsTaken:
        call.charge(rows=len(wanted.added))
        return self.claims.take(wanted, self.generation() if self.comparer is not None else None)

    def reconcile(self, wanted: asked.Reconcile, call: Call) -> given.Reconciled:
        return self.claims.reconcile(wanted, self.own, call)

    def generation(self) -> Generation:
        """Our set as 070 looks at it."""
        claims = {claim.hash: claim for claim in self.own.listing()}
        ids = set_of(ids_of_texts(claims))
        return Generation(self.own.version, ids, lambda records: [claims[r] for r in sorted(records)], 1 << 10)

    def measure(self, wanted: asked.Measure, call: Call) -> given.Measured:
        assert self.comparer is not None
        return self.comparer.measure(wanted, self.generation(), call)

    def sketch(self, wanted: asked.Sketch, call: Call) -> given.Sketched:
        assert self.comparer is not None
        return self.comparer.sketch(wanted, self.generation(), call)

    def decode(self, wanted: asked.Decode, call: Call) -> given.Decoded:
        assert self.comparer is not None
        return self.comparer.decode(wanted, self.generation(), call)

    def take_difference(self, wanted: asked.TakeDifference | asked.TakeChange, call: Call) -> given.DifferenceTaken:
        assert self.comparer is not None
        return self.comparer.take(wanted, self.generation(), self.claims, call)

    def keep_claims(self, wanted: asked.KeepClaims, call: Call) -> None:
        self.store.put_setting("cursor", wanted.key, self.claims.as_cursor(self.wanted.plan.id).encode())

    def load(self, wanted: asked.SendRecords, call: Call) -> Iterator[Loaded]:
        for record in sorted(wanted.hashes, key=self.own.__contains__):  # those that may not be sent come first
            call.charge(rows=1)
            yield [(record, self.stored(record) if record in self.own else None)]

    def stored(self, record: str) -> bytes | None:
        return self.store.get(RecordHash(record))

    def judge(self, records: Sequence[Arrived], call: Call) -> Judged:
        valid: list[ValidRecord] = []
        reasons: dict[str, str] = {}
        for claimed, data in records:
            call.charge(rows=1)
            try:
                valid.append(validate(data, limits=self.terms.record_limits))
                if valid[-1].hash != claimed:
                    raise LaceError(f"the record is {valid.pop().hash}")
            except LaceError as error:
                reasons[claimed] = str(error)
        return valid, reasons

    def commit(self, judged: Judged, call: Call) -> Sequence[given.RecordsStored | given.RecordsRejected]:
        valid, reasons = judged
        self.store.put(valid)
        stored = (given.RecordsStored([record.hash for record in valid]),) if valid else ()
        return stored + ((given.RecordsRejected(reasons),) if reasons else ())

    def close(self) -> None:
        self.claims = PeerClaims("", self.terms.max_line_bytes)
