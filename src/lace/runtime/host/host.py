"""The host over a store of this machine (050): evaluation by the embedded engine, sets and claims in memory.

Rule: every way to the store and to the engine that an exchange has goes through here, under the terms it was made
with. What several links have in common (worker processes) is handed in.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, cast

from lace.errors import LaceError, LocalProtocolError
from lace.intake.judge import Verify
from lace.intake.received import JudgedBatch, judge_received, received_from
from lace.interlace import effects as asked
from lace.interlace import inputs as given
from lace.interlace.claims.advertisement import Advertisement
from lace.interlace.claims.partitions import summarise
from lace.interlace.claims.peerclaims import PeerClaims
from lace.interlace.host import Arrived, Call, Loaded, NotNow, Payer
from lace.interlace.loop.listingsize import RECORD_BYTES
from lace.interlace.loop.refusals import NOTHING_HELD_BACK
from lace.interlace.loop.requests import choose_requests
from lace.interlace.runtimefacts import RuntimeFacts
from lace.interlace.setup.hello import NO_FIELDS
from lace.interlace.setup.terms import Terms
from lace.limits import MIB
from lace.records.keys import verify_batch
from lace.runtime.host.cursors import CursorBook
from lace.runtime.host.linkhost import Agreed, LinkHost
from lace.runtime.host.quotas import GateRules, QuotaGate
from lace.runtime.host.recentbodies import RecentBodies
from lace.runtime.host.setcomparer import Comparer
from lace.runtime.host.storedbatches import stored_batches
from lace.runtime.node.bounds import MANY_CLAIMS
from lace.runtime.node.workers import Workers
from lace.runtime.rules.generation import Generation, in_pieces
from lace.runtime.rules.policybook import PolicyBook
from lace.store.base import RecordStore, StoreCursor
from lace.thresholds import LoadThresholds
from lace.values import dataclass

if TYPE_CHECKING:
    from lace.runtime.rules.evaluator import Evaluator
    from lace.runtime.rules.followedset import FollowedSet, SharedSet
    from lace.runtime.rules.guesthouse import GuestHouse
    from lace.runtime.rules.policy import LinkPolicy, SharingKey


@dataclass(frozen=True, slots=True, kw_only=True)
class HostBounds:
    """How much a host hands out at a time."""

    load_bytes: int = MIB
    load_records: int = 1024
    list_records: int = 1000
    records_now: int = 64  # that a call which may not wait looks at
    load: LoadThresholds = field(default_factory=LoadThresholds)
    min_records_for_workers: int = 5_000  # that a peer offers and we do not; below, threads are enough to judge them


class _Policy(Agreed[Generation, PeerClaims]):
    def __init__(self, wanted: asked.PreparePolicy, claims: PeerClaims) -> None:
        super().__init__(wanted, claims, Comparer(wanted.difference_key) if wanted.difference_key is not None else None)
        self.held: tuple[StoreCursor, Generation] | None = None  # all records of the store, where they were needed


class LocalHost(LinkHost[Generation, PeerClaims, _Policy]):
    """One link's side of a store."""

    def __init__(
        self,
        store: RecordStore,
        terms: Terms,
        *,
        workers: Workers | None = None,
        verify: Verify = verify_batch,
        bounds: HostBounds | None = None,
        policies: PolicyBook | None = None,
        house: GuestHouse | None = None,
        guest: str = "",
        gate: QuotaGate | None = None,
        cursors: CursorBook | None = None,
        bodies: RecentBodies | None = None,
    ) -> None:
        super().__init__(
            terms, gate or QuotaGate(store, GateRules(limits=terms.record_limits)), cursors or CursorBook(store)
        )
        self.store = store
        self._workers = workers
        self._verify = verify
        self._bounds = bounds or HostBounds()
        self._work_out = workers.summarise if workers is not None else summarise
        self._policies = policies or PolicyBook(thresholds=terms.rule_thresholds)
        self._house = house  # where rules of peers go that ask for much; without one they stay here
        self._guest = guest
        self._policy: LinkPolicy | None = None  # that was prepared last
        self._own_policies = policies is None
        self._sends: FollowedSet | None = None
        self._sharing: SharingKey | None = None
        self._payer: Payer | None = None  # of what is evaluated for this link
        self._bodies = bodies  # that links over this store share

    @property
    def answers_now(self) -> bool:
        """Where links share recent bodies: those are most of what an open link needs after one or two records."""
        return self._bodies is not None

    @property
    def cursor(self) -> StoreCursor:
        """This moment of the store."""
        return self.store.cursor()

    @property
    def evaluated_at(self) -> StoreCursor:
        """The moment of the store that was last evaluated."""
        return self._sends.cursor if self._sends is not None else StoreCursor()

    # --- policy ------------------------------------------------------------------------------------------------

    def prepare(self, wanted: asked.PreparePolicy, call: Call) -> given.PolicyPrepared:
        """The local executable of a plan."""
        call.needs_time()
        call.check()
        self._let_go()
        # Loaded here: lowering and the engine take their time, and meanwhile the peer works.
        from lace.runtime.rules import evaluator  # noqa: F401
        from lace.runtime.rules.policy import prepare

        with self._rules_turn(wanted.are_all_ours, call):
            self._policy = prepare(wanted, self._terms)
        self._agreed = _Policy(wanted, self._claims_for(wanted))
        return given.PolicyPrepared(len(self._agreed.claims))

    def get_ready(
        self, wanted: asked.PreparePolicy, runtime: RuntimeFacts, call: Call, *, is_standard: bool = False
    ) -> None:
        """Work out what links under a plan will share, if they share anything; for none of them in particular."""
        self.prepare(wanted, call)
        self._sends_under(asked.Evaluate(runtime=runtime), call)
        if self.shared is not None:
            own = self.shared.current(runtime, self._prepared().claims, call)
            own.get_ready(wanted.own_source, self._work_out, call, is_standard=is_standard)

    def _no_claims(self, source: str) -> PeerClaims:
        terms = self._terms
        return PeerClaims(source, terms.max_line_bytes, self._work_out, terms.claim_thresholds)

    def evaluate(self, wanted: asked.Evaluate, call: Call) -> given.Evaluated:
        """Over the newest snapshot and everything that the peer claims."""
        if call.may_wait:
            self._payer, call.account = call.payer, self._guest
        policy, sends = self._prepared(), self._sends_under(wanted, call)
        call.check()
        own = sends.current(wanted.runtime, policy.claims, call)
        lacks_nothing = not call.may_wait and self._asks_nothing_now(own, wanted, call)
        policy.own, under = own, policy.wanted
        policy.claims.follow(own, keeps_fields=under.schema != NO_FIELDS)
        requests: Sequence[str] = ()
        held_back = NOTHING_HELD_BACK
        if wanted.max_requests and not lacks_nothing:
            found = sends.requestable(own, policy.claims, call)
            about, has_fields = policy.claims.about, under.schema != NO_FIELDS
            with self._beside(len(found), call):
                found = self._gate.requestable(found, about, has_fields=has_fields, refused=wanted.refused)
                found = self._gate.affordable(found, about)
                requests = choose_requests(found, policy.claims.among, under.record_formats, wanted)
                held_back = self._gate.held_back
        reads_listings = under.plan.have_reads_advertisements
        return given.Evaluated(
            own=asked.SetHandle(own.number, len(own)),
            partitions=own.partition_count,
            listing_bytes=_listing_bytes(own, under, wanted.measured_bytes),
            requests=requests,
            fingerprint=own.standard.fingerprint(under.own_source) if reads_listings else b"",
            claims_fingerprint=policy.claims.fingerprint() if reads_listings else b"",
            store_mark=sends.cursor.record,
            held_back=held_back,
            claims_are_known=policy.claims.are_known,
        )

    def _asks_nothing_now(self, own: Generation, wanted: asked.Evaluate, call: Call) -> bool:
        """True where our set has hardly changed and the peer claims nothing beyond it; else NotNow, before anything
        has changed here."""
        policy = self._prepared()
        under, has_fields, few = policy.wanted, policy.wanted.schema != NO_FIELDS, self._bounds.records_now
        is_near = policy.own is not None and own.ids.is_near(policy.own.ids, few)
        if not is_near or under.plan.have_reads_advertisements:
            call.needs_time()
        # With fields every line of a short listing is measured, and what the peer claims about our own is read.
        is_measured = len(own) * (RECORD_BYTES + len(under.own_source)) <= wanted.measured_bytes
        if has_fields and (is_measured or policy.claims.is_left_by(own)):
            call.needs_time()
        if wanted.max_requests and policy.claims.has_beyond(own, few):
            call.needs_time()
        return True

    def _beside(self, rows: int, call: Call) -> contextlib.AbstractContextManager[None]:
        """A turn beside other links to look through many rows."""
        if self._house is None or rows <= MANY_CLAIMS:
            return contextlib.nullcontext()
        return self._house.here(True, self._guest, call)

    def _sends_under(self, wanted: asked.Evaluate, call: Call) -> FollowedSet:
        """What other links with this policy use too, found when the runtime facts are known."""
        if self._sends is None:
            call.needs_time()
            policy = self._policy
            if policy is None:
                raise LocalProtocolError("nothing was prepared to evaluate")
            with contextlib.nullcontext() if policy.is_ours else self._rules_turn(False, call):
                taken = self._policies.take(policy, wanted.runtime, self._evaluator)
            self._sends, self._sharing = taken
        return self._sends

    def _evaluator(self, policy: LinkPolicy, is_shared: bool) -> Evaluator:
        """What evaluates a policy: with a guest house, rules of peers can be sent away."""
        if self._house is None:
            from lace.runtime.rules.evaluator import StoreEvaluator

            return StoreEvaluator(self.store, policy, is_shared=is_shared, thresholds=self._terms.rule_thresholds)
        from lace.runtime.rules.guests import GuestEvaluator

        return GuestEvaluator(self.store, policy, self._house, self._guest, is_shared=is_shared)

    def _rules_turn(self, is_ours: bool, call: Call) -> contextlib.AbstractContextManager[None]:
        """A turn to read and plan rules."""
        if self._house is None:
            return contextlib.nullcontext()
        return self._house.here(is_ours, self._guest if call.account is None else call.account, call)

    @property
    def agreed(self) -> _Policy | None:
        """What is worked with now."""
        return self._agreed

    @property
    def shared(self) -> SharedSet | None:
        """What may be sent under the policy, once that was asked for and if other links may use it too."""
        return cast("SharedSet", self._sends) if self._sharing is not None else None

    def _let_go(self) -> None:
        if self._sharing is not None:
            self._policies.give_back(self._sharing, self._payer)
        elif self._sends is not None:
            self._sends.close()
        self._policy = self._sends = self._sharing = None

    def rest(self, call: Call) -> None:
        """Prepare to follow small changes."""
        call.check()
        call.account = self._guest
        if self._sends is None:
            call.needs_time()
        else:
            self._sends.rest(call)

    # --- our set -----------------------------------------------------------------------------------------------

    def summarise(self, wanted: asked.Summarise, call: Call) -> given.Summarised:
        """Roots are worked out where the set changed since they were last asked for."""
        call.needs_time()
        held = self._set(wanted.own)
        if wanted.parents is None:
            return given.Summarised(held.summaries(wanted.source, self._work_out, call))
        own = held.standard
        call.charge(rows=sum(map(own.count_under, wanted.parents)))
        return given.Summarised(own.children(wanted.parents, wanted.source))

    def list(self, wanted: asked.SendListing, call: Call) -> Iterator[Sequence[Advertisement]]:
        """The set or some partitions of it, sorted by P (P14)."""
        own = self._set(wanted.own)
        if not call.may_wait:
            yield self._listed_now(wanted, own, call)
            return
        at_once = self._bounds.list_records
        if wanted.records is None and wanted.prefixes is None:
            batches: Iterable[Sequence[Advertisement]] = own.listed(at_once)
        elif wanted.records is not None:
            batches = in_pieces(own.some(wanted.records), at_once)
        else:
            under = sorted(claim for prefix in wanted.prefixes or () for claim in own.standard.under(prefix))
            batches = in_pieces(under, at_once)
        for batch in batches:
            call.charge(rows=len(batch))
            yield batch

    def _listed_now(self, wanted: asked.SendListing, own: Generation, call: Call) -> Sequence[Advertisement]:
        """A few advertisements that were made a moment ago, for another link."""
        records = wanted.records
        if records is None or len(records) > self._bounds.records_now or (made := own.some_at_once(records)) is None:
            raise NotNow("the listing has to be made")
        call.charge(rows=len(made))
        return made

    def differences(self, wanted: asked.SendChanges, call: Call) -> given.ChangesReceived:
        """All of the set, or what has changed since it was last told."""
        policy, own = self._prepared(), self._set(wanted.own)
        told, policy.told = policy.told, own
        if wanted.since is None or told is None or wanted.since.number != told.number:
            call.charge(rows=len(own))
            return given.ChangesReceived(own.listing(), (), is_whole=True)
        came, went = own.ids.since(told.ids)
        call.charge(rows=len(came) + len(went))
        return given.ChangesReceived(own.some(came.texts()) if len(came) else [], went.texts())

    # --- the peer's claims -------------------------------------------------------------------------------------

    def take_claims(self, wanted: asked.TakeClaims, call: Call) -> given.ClaimsTaken:
        """A listing, or changes to what is held."""
        call.needs_time()
        call.charge(rows=len(wanted.added) + len(wanted.removed))
        self._end_comparison()
        policy = self._prepared()
        taken = policy.claims.take(wanted, policy.own if policy.comparer is not None else None)
        self.expect(taken.count)
        return taken

    def reconcile(self, wanted: asked.Reconcile, call: Call) -> given.Reconciled:
        """Summaries of the peer, against what is held and what we would list ourselves."""
        call.needs_time()
        call.charge(rows=len(wanted.offered) + len(wanted.claims))
        self._end_comparison()
        self.expect(sum([partition.count for partition in wanted.offered]))
        return self._prepared().claims.reconcile(wanted, self._known(wanted.own).standard, call)

    def _known(self, handle: asked.SetHandle) -> Generation:
        """The claims that we can name: those of our set, or, where we send nothing, of all records that we hold.

        A record's hash fixes its fields, so a peer that lists it says what our own facts say; where it does not, its
        root differs and it is asked. Nothing of this is told to anybody.
        """
        own, policy = self._set(handle), self._prepared()
        if len(own) or self._sends is None:
            return own
        now = self.cursor
        if policy.held is None or policy.held[0] != now:
            records = [record for _, record in self.store.records_since()]
            policy.held = now, self._sends.all_of(records)
        return policy.held[1]

    def expect(self, claimed: int) -> None:
        """Workers start while a long listing comes, and while it is worked out what to ask for of it."""
        own = self._agreed.own if self._agreed is not None else None
        unknown = claimed - (len(own) if own is not None else 0)
        if self._workers is not None and unknown >= self._bounds.min_records_for_workers:
            self._workers.want()

    # --- differences (070) -------------------------------------------------------------------------------------

    def measure(self, wanted: asked.Measure, call: Call) -> given.Measured:
        """Our set under the key of the epoch; now if it is close to one that was measured."""
        if not cast("Comparer", self._comparer()).is_near(wanted, self._set(wanted.own), self._bounds.records_now):
            call.needs_time()
        return super().measure(wanted, call)

    def take_difference(self, wanted: asked.TakeDifference | asked.TakeChange, call: Call) -> given.DifferenceTaken:
        """What the peer has, relative to our set; now if that is a few records."""
        if not call.may_wait and not self._is_small(wanted):
            call.needs_time()
        taken = super().take_difference(wanted, call)
        self.expect(taken.count)
        return taken

    def _is_small(self, wanted: asked.TakeDifference | asked.TakeChange) -> bool:
        few = self._bounds.records_now
        if isinstance(wanted, asked.TakeDifference):
            return wanted.is_equal and len(wanted.crossed) <= few
        rows = len(wanted.added) + len(wanted.removed) + len(wanted.sent)
        return self._prepared().claims.is_measured and rows <= few

    def _end_comparison(self) -> None:
        """The peer's claims come by the standard advertisement."""
        comparer = self._prepared().comparer
        if comparer is not None:
            comparer.forget()

    # --- records -----------------------------------------------------------------------------------------------

    def load(self, wanted: asked.SendRecords, call: Call) -> Iterator[Loaded]:
        """Stored bytes of what is in the set; what is not comes first, as None."""
        own = self._set(wanted.own)
        if not call.may_wait:
            yield self._loaded_now(wanted, own, call)
            return
        sendable = wanted.hashes if wanted.are_in_set else own.among(wanted.hashes)
        if len(sendable) != len(wanted.hashes):
            found = set(sendable)
            yield [(record, None) for record in wanted.hashes if record not in found]
        moment = self._bodies.moment if self._bodies is not None else 0
        bounds = self._bounds
        for batch in stored_batches(self.store, sendable, bounds.load_records, bounds.load_bytes, bounds.load):
            if self._bodies is not None and len(sendable) <= bounds.load_records:
                self._bodies.note(moment, batch)
            call.charge(rows=len(batch), size=sum([len(data) for _, data in batch if data is not None]))
            yield batch

    def _loaded_now(self, wanted: asked.SendRecords, own: Generation, call: Call) -> Loaded:
        """The bytes of a few records that another link was sent a moment ago."""
        names = wanted.hashes
        is_few = self._bodies is not None and len(names) <= self._bounds.load_records
        bodies = self._bodies.get(names) if self._bodies is not None and is_few else None
        if bodies is None or len(own.among(names)) != len(names):
            raise NotNow("the records have to be read")
        call.charge(rows=len(names), size=sum(map(len, bodies)))
        return list(zip(names, bodies, strict=True))

    def judge(self, records: Sequence[Arrived], call: Call) -> JudgedBatch:
        """In a worker process if there is one and enough to do, else here."""
        call.charge(rows=len(records), size=sum([len(data) for _, data in records]))
        limits, workers = self._terms.record_limits, self._workers if len(records) > self._bounds.records_now else None
        waiting = workers.submit(records, limits) if workers is not None else None
        if waiting is not None:
            with contextlib.suppress(OSError, RuntimeError, LaceError, EOFError):  # a worker that died
                return received_from(records, waiting.result(), limits)
        return judge_received(records, limits, self._verify)

    def close(self) -> None:
        """Let go of the evaluator, the set and the claims."""
        self._let_go()
        self._agreed = None
        if self._own_policies:
            self._policies.close()


def _listing_bytes(own: Generation, under: asked.PreparePolicy, measured: int) -> int:
    """How long a listing is, exact up to a bound; nearly all claims are bare, and those need no counting."""
    bare = len(own) * (RECORD_BYTES + len(under.own_source))
    return bare if bare > measured or under.schema == NO_FIELDS else own.listing_bytes(under.own_source)
