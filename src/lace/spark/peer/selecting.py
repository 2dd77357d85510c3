"""What an archive may send and request under agreed rules (040, 050): evaluation as a job.

Rule: what rules select is worked out once for all links that agree on everything it depends on, and kept with the
archive: a link that comes later reads only the batches that are new. Where a peer's claims or the time decide what may
be sent, it is worked out for that link alone and kept on the cluster as long as the link lives.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Protocol, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame

from lace.datalog.engine import RowSource
from lace.datalog.language.syntax import Fact, Predicate
from lace.datalog.planning.stratify import reachable
from lace.errors import LimitExceeded
from lace.facts.predicates import ADVERTISED, ADVERTISED_FIELD, RECORD_PREDICATES
from lace.interlace.claims.advertisement import Advertisement, advertisement_facts
from lace.interlace.effects import PreparePolicy
from lace.interlace.host import Call
from lace.interlace.runtimefacts import RuntimeFacts
from lace.interlace.setup.hello import FieldSchema
from lace.interlace.setup.terms import Terms
from lace.policy.lower import LoweredPolicy, LoweringOptions, lower
from lace.policy.rewrite import body_atoms
from lace.runtime.rules.bill import ForAll
from lace.runtime.rules.feeding import Feeding, feeding_of
from lace.runtime.rules.guesthouse import MAX_WAITING, Name
from lace.runtime.rules.guestprograms import GuestEngine, ProgramEngine, ProgramQuestion
from lace.spark.archive import tables
from lace.spark.archive.archive import RETRIES
from lace.spark.archive.executors import RunSettings
from lace.spark.archive.run import is_up_to_date, rules_mark, run
from lace.spark.archive.versions import Commit, DataFile, State
from lace.spark.engine.executor import OWN, SparkSettings
from lace.spark.engine.guest import ClusterGuest, GaveWay
from lace.spark.engine.relations import held_apart, relation_schema
from lace.spark.jobs.evaluate import PeerPolicy, requestable_records, sendable_hashes
from lace.spark.peer.claims import ArchiveClaims
from lace.spark.peer.peer import ArchivePeer
from lace.spark.peer.sets import ROOTS, ArchiveSet, Rows
from lace.spark.session.failure import JobFailed
from lace.values import dataclass

RESULT = "selected:"  # how the keys of results begin, before the mark of their rules
T = TypeVar("T")
_LOOK_S = 0.05  # how often a link that waits for an evaluation looks whether it is still there
PEERS = "peer:"  # how the name of a result begins that a peer's rules asked for


class ArchiveSends(Protocol):
    """What a link may send."""

    def current(self, runtime: RuntimeFacts, claims: ArchiveClaims, call: Call) -> ArchiveSet: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ArchivePolicy:
    """The local executable of a plan."""

    lowered: LoweredPolicy
    feeding: Feeding
    schema: FieldSchema
    terms: Terms
    source: str  # the peer's label
    is_ours: bool  # the peer brought no rules but those that we have
    name: Name  # of the peer's rules, for what they cost

    def runtime(self, facts: RuntimeFacts, goal: Predicate) -> tuple[Fact, ...]:
        """The runtime facts that a goal's rules read."""
        rules = self.lowered.program.program.rules
        wanted = reachable(rules, (goal,))
        read = {atom.predicate for atom in body_atoms(rule for rule in rules if rule.head.predicate in wanted)}
        return tuple(fact for fact in facts.facts() if fact.predicate in read)

    def of_peer(self, facts: Sequence[Fact], advertised: dict[Predicate, DataFrame] | None = None) -> PeerPolicy:
        """The same for the jobs of an archive."""
        peer = PeerPolicy(name="", policy=self.lowered, runtime=tuple(facts), advertised=advertised or {})
        return replace(peer, name=f"{PEERS}{rules_mark(peer)[:8]}")


def is_own(wanted: PreparePolicy, terms: Terms) -> bool:
    """Whether the peer's rules are ours, which cost what our own rules cost."""
    return wanted.plan.operands[1 - wanted.local_index].module.id == terms.module.id


def prepared(wanted: PreparePolicy, terms: Terms) -> ArchivePolicy:
    """A plan as this side evaluates it."""
    lowered = lower(
        wanted.plan,
        local_index=wanted.local_index,
        viewer=wanted.viewer,
        exposures=wanted.exposures,
        options=LoweringOptions(
            send_gate=wanted.send_gate, trust_peer=terms.trust_peer, shows_unfinished=terms.shows_unfinished
        ),
        limits=terms.engine_limits,
    )
    peer = wanted.plan.operands[1 - wanted.local_index].module
    name = (str(peer.id), str(wanted.viewer))
    feeding = feeding_of(wanted.plan)
    return ArchivePolicy(lowered, feeding, wanted.schema, terms, wanted.peer_source, is_own(wanted, terms), name)


def evaluated(
    peer: ArchivePeer,
    policy: ArchivePolicy,
    what: str,
    files: Sequence[DataFile],
    call: Call,
    work: Callable[[SparkSettings], T],
) -> T:
    """Evaluate rules for a call: our own as they are, those of a peer within what a guest may use.

    Rules of a peer that were stopped for their cost are refused for a while, whichever peer brings them.
    """
    if policy.is_ours:
        with peer.jobs.job(what, files, call):
            return work(SparkSettings())
    used_s, slice_s = 0.0, peer.bounds.guest_slice_s
    while True:
        guest = _guest(peer, policy, call, used_s, slice_s)
        try:
            with peer.jobs.job(what, files, call, guest):
                return work(SparkSettings(guest=guest))
        except GaveWay:
            used_s, slice_s = guest.used_s, 2 * slice_s
        except (LimitExceeded, JobFailed) as error:
            if not call.is_cancelled and not (isinstance(error, LimitExceeded) and error.limit == MAX_WAITING):
                peer.house.note_stopped(policy.name)
            raise


def _guest(peer: ArchivePeer, policy: ArchivePolicy, call: Call, used_s: float, slice_s: float) -> ClusterGuest:
    bounds = peer.bounds
    return ClusterGuest(
        engine=GuestEngine(peer.house, policy.name, call.account, call),
        door=peer.cluster,
        account=call.account,
        call=call,
        present=peer.jobs.guest,
        others_wait=peer.jobs.others_wait,
        slice_s=slice_s,
        max_seconds=bounds.max_guest_seconds,
        max_rows=bounds.base_guest_rows + bounds.record_guest_rows * peer.state().rows("records"),
        max_rounds=bounds.max_guest_rounds,
        used_s=used_s,
    )


class Selections:
    """The sets of all links over an archive."""

    def __init__(self, peer: ArchivePeer) -> None:
        self._peer = peer
        self._known: dict[tuple[str, FieldSchema, int], SharedArchiveSends] = {}
        self._lock = threading.Lock()

    def take(self, policy: ArchivePolicy, runtime: RuntimeFacts) -> ArchiveSends:
        """The sends of a policy, shared if nothing but the archive decides what they are."""
        facts = policy.runtime(runtime, policy.lowered.sendable)
        if policy.feeding is Feeding.ALWAYS or facts:
            return PrivateArchiveSends(self._peer, policy)
        of_peer = policy.of_peer(())
        key = rules_mark(of_peer), policy.schema, policy.terms.max_line_bytes
        with self._lock:
            found = self._known.pop(key, None) or SharedArchiveSends(self._peer, policy, of_peer)
            self._known[key] = found  # the one used last stands last
            while len(self._known) > self._peer.bounds.max_rule_sets:
                del self._known[next(iter(self._known))]
        return found

    def tidy(self) -> None:
        """Let go of results of rules that no link asks for, where peers have brought more rules than are kept."""
        with self._lock:
            in_use = {mark for mark, _, _ in self._known}
        most = self._peer.bounds.max_rule_sets
        gone = forgettable(self._peer.state(), in_use, most)
        if gone:
            self._peer.archive.commit(partial(_forgetting, in_use, most))
        for key in gone:
            self._peer.put_setting(ROOTS, key.removeprefix(RESULT), None)


def forgettable(state: State, in_use: Collection[str], most: int) -> list[str]:
    """The results that peers' rules asked for, beyond so many, of rules that are not in use; the oldest first."""
    held = [key for key, result in state.results.items() if any(f" {PEERS}" in name for name in result.counts)]
    idle = [key for key in held if key.removeprefix(RESULT) not in in_use]
    return idle[: max(0, len(held) - most)]


def _forgetting(in_use: Collection[str], most: int, state: State) -> Commit | None:
    gone = forgettable(state, in_use, most)
    if not gone:
        return None
    marks = {key.removeprefix(RESULT) for key in gone}
    dropped = tuple(file.path for file in state.files if file.low.get("rules") in marks)
    counts = {"rule sets": len(gone), "files": len(dropped)}
    return Commit(operation="forget", counts=counts, dropped=dropped, forgotten=tuple(gone))


class SharedArchiveSends:
    """Of any number of links: what the archive keeps for these rules.

    Links wait for one evaluation together, each for as long as it is there; other rules wait for none of it. It is
    given up when nobody waits for it any more, unless the rules are ours, or have a result here that follows what is
    new: these are finished for the links to come.
    """

    def __init__(self, peer: ArchivePeer, policy: ArchivePolicy, of_peer: PeerPolicy) -> None:
        self._peer = peer
        self._policy = policy
        self._of_peer = of_peer
        self._newest: ArchiveSet | None = None
        self._evaluating = threading.Lock()
        self._making = threading.Lock()  # the set, of what is there
        self._asking: dict[int, Call] = {}  # calls that wait for the same answer

    def current(self, runtime: RuntimeFacts, claims: ArchiveClaims, call: Call) -> ArchiveSet:
        """What may be sent now, whatever anybody claims."""
        peer = self._peer
        with peer.jobs.others():
            peer.landing.take_in()
        self._asking[id(call)] = call
        try:
            state = peer.state()
            if not self._is_current(state):
                with self._alone(call):
                    state = self._evaluated(call)
        finally:
            del self._asking[id(call)]
        with self._making:
            return self._set(state)

    def _is_current(self, state: State) -> bool:
        return is_up_to_date(state, [self._of_peer], listings=False)

    @contextmanager
    def _alone(self, call: Call) -> Iterator[None]:
        """A turn to evaluate these rules, for as long as somebody waits for it."""
        while not self._evaluating.acquire(timeout=_LOOK_S):
            call.check()
        try:
            yield
        finally:
            self._evaluating.release()

    def _evaluated(self, call: Call) -> State:
        """Bring the result up to the newest batch: the archive knows whether that needs more than what is new."""
        peer = self._peer
        for _ in range(RETRIES):  # batches may come all the time
            state = peer.state()
            if self._is_current(state):
                break
            call.check()
            self._evaluate(state, call)
        return peer.state()

    def _evaluate(self, state: State, call: Call) -> None:
        peer, policy = self._peer, self._policy
        before = state.results.get(RESULT + rules_mark(self._of_peer))
        unseen = state.since(before)
        new = [file for file in state.table("records") if unseen.meets(file)]
        call.charge(rows=max(1, sum(file.rows for file in new)))
        is_finished = policy.is_ours or before is not None
        for_all = ForAll({0: peer.ending} if is_finished else self._asking, call)
        try:
            evaluated(peer, policy, "evaluate", new, for_all, self._run)
        finally:
            call.cpu_s += for_all.cpu_s
            call.rows += for_all.rows

    def _run(self, settings: SparkSettings) -> None:
        peer, limits = self._peer, self._policy.terms.engine_limits
        run(peer.archive, [self._of_peer], RunSettings(limits=limits, executor=settings), listings=False)
        peer.selections.tidy()

    def _set(self, state: State) -> ArchiveSet:
        mark = rules_mark(self._of_peer)
        files = tuple(file for file in state.table("selected") if file.low.get("rules") == mark)
        rows = Rows(sum(file.rows for file in files), files)
        before = self._newest
        if before is not None and before.rows.paths == rows.paths:
            before.moved(rows, state)
            return before
        policy = self._policy
        number = 1 if before is None else before.number + 1
        found = ArchiveSet(self._peer, number, rows, state, policy.schema, policy.terms.max_line_bytes, before)
        if before is not None and len(before) == len(found) and _is_same(found, before):
            before.moved(rows, state)
            return before
        self._newest = found
        return found

    def close(self) -> None:
        """Others may use it."""


class PrivateArchiveSends:
    """Of one link: claims of its peer, or facts of the link, decide what it may send."""

    def __init__(self, peer: ArchivePeer, policy: ArchivePolicy) -> None:
        self._peer = peer
        self._policy = policy
        self._newest: ArchiveSet | None = None
        self._seen: object = None
        self._kept: list[DataFrame] = []

    def current(self, runtime: RuntimeFacts, claims: ArchiveClaims, call: Call) -> ArchiveSet:
        """What may be sent now, with all that the peer claims."""
        peer, policy = self._peer, self._policy
        with peer.jobs.others():
            peer.landing.take_in()
        state, facts = peer.state(), policy.runtime(runtime, policy.lowered.sendable)
        claimed = claims.listing() if policy.feeding is Feeding.ALWAYS else []
        seen = state.last_batch, state.removals, facts, claimed
        if self._newest is not None and self._seen == seen:
            return self._newest
        call.charge(rows=max(1, state.rows("records") + len(claimed)))
        of_peer = policy.of_peer(facts, claim_relations(peer, claimed, policy.source))

        def work(settings: SparkSettings) -> Rows:
            records = tables.as_wide(peer.rows("records", state.table("records")))
            frame = held_apart(sendable_hashes(records, of_peer, policy.terms.engine_limits, settings))
            return Rows(frame.count(), frame=frame)

        found = evaluated(peer, policy, "evaluate", state.table("records"), call, work)
        self._seen = seen
        return self._set(found, state)

    def _set(self, rows: Rows, state: State) -> ArchiveSet:
        assert rows.frame is not None
        before, policy = self._newest, self._policy
        number = 1 if before is None else before.number + 1
        found = ArchiveSet(self._peer, number, rows, state, policy.schema, policy.terms.max_line_bytes)
        if before is not None and len(before) == len(found) and _is_same(found, before):
            rows.frame.unpersist()
            return before
        self._kept.append(rows.frame)
        while len(self._kept) > 2:  # the one before may still be asked what came since
            self._kept.pop(0).unpersist()
        self._newest = found
        return found

    def close(self) -> None:
        """Let go of the rows on the cluster."""
        for frame in self._kept:
            frame.unpersist()
        self._kept = []


def _is_same(found: ArchiveSet, before: ArchiveSet) -> bool:
    """Whether two sets of one size hold the same: then nothing of the one is missing in the other."""
    came, _ = found.changes(before)
    if came.hashes is None:
        return True
    with found.job("compare with the set before", Call(), came.files):
        return came.hashes.isEmpty()


def claim_relations(peer: ArchivePeer, claims: Sequence[Advertisement], source: str) -> dict[Predicate, DataFrame]:
    """Claims as the facts that rules read."""
    spark = peer.jobs.spark
    rows: dict[Predicate, list[tuple[str, ...]]] = {ADVERTISED: [], ADVERTISED_FIELD: []}
    for claim in claims:
        for predicate, values in advertisement_facts(claim, source):
            rows[predicate].append(values)
    found = {}
    for predicate, held in rows.items():
        names = relation_schema(predicate.arity).names
        columns = list(zip(*held, strict=True)) if held else [()] * predicate.arity
        table = pa.table([pa.array(column, pa.string()) for column in columns], names=names)
        found[predicate] = spark.createDataFrame(table)
    return found


def requestable(
    peer: ArchivePeer, policy: ArchivePolicy, own: ArchiveSet, claims: ArchiveClaims, runtime: RuntimeFacts, call: Call
) -> Collection[str]:
    """What may be requested of the peer and is not in the archive."""
    fed = claims.beyond(own)
    if not fed:
        return ()
    if policy.feeding is not Feeding.SEPARATE:
        fed = claims.listing()
    call.charge(rows=len(fed))
    facts = policy.runtime(runtime, policy.lowered.requestable)
    if reads_records(policy.lowered):
        of_peer = policy.of_peer(facts, claim_relations(peer, fed, policy.source))
        limits = policy.terms.engine_limits

        def work(settings: SparkSettings) -> list[str]:
            records = tables.as_wide(peer.rows("records", own.state.table("records")))
            return [row["hash"] for row in requestable_records(records, [of_peer], limits, settings).collect()]

        return evaluated(peer, policy, "evaluate what to request", own.state.table("records"), call, work)
    given = RowSource(fact for claim in fed for fact in advertisement_facts(claim, policy.source))
    goal = policy.lowered.requestable
    question = ProgramQuestion(policy.lowered.program, given, (goal,), extra=facts, is_goal=True)
    engine: ProgramEngine = OWN if policy.is_ours else GuestEngine(peer.house, policy.name, call.account, call)
    found = engine.ask(question, policy.terms.engine_limits).columns[goal][0]
    if len(own) == own.state.rows("records"):  # all that we have may be sent, and these are beyond it
        return found
    held = peer.held(own.state, found, call)
    return [record for record in found if record not in held]


def reads_records(policy: LoweredPolicy) -> bool:
    """Whether what may be requested hangs on our records, but for those that are there already."""
    rules = policy.program.program.rules
    read = reachable(rules, (policy.requestable,)) - {policy.requestable}
    atoms = body_atoms(rule for rule in rules if rule.head.predicate in read)
    return any(atom.predicate in RECORD_PREDICATES for atom in atoms)
