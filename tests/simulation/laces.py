"""A simulated lace: a store whose disk forgets what was not synced, and the evaluator of its side of a link."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from lace.datalog import reference
from lace.datalog.syntax import Constant
from lace.facts.derive import derive_facts
from lace.facts.predicates import ADVERTISED_FIELD, CLOCK_SKEW_SECONDS, FIELD, HERE, PEER, START_TAI, TICK_TAI
from lace.interlace import inputs as given
from lace.interlace.advertisement import Advertisement, FieldClaim, advertisement_facts, canonical_fields
from lace.interlace.effects import Evaluate, PreparePolicy
from lace.interlace.negotiate import FieldSchema
from lace.notation.fact import Fact
from lace.notation.identifiers import RecordHash
from lace.policy.compile import ExchangePlan
from lace.policy.lower import LoweredPolicy, LoweringOptions, lower
from lace.policy.origin import Viewer
from lace.policy.rewrite import body_atoms
from lace.records.model import ValidRecord
from simulation.matter import BY_HASH, Selector, Showing

_RUNTIME = (START_TAI, TICK_TAI, CLOCK_SKEW_SECONDS, HERE, PEER)


class Disk:
    """Records are there once synced; settings are written at once and synced later."""

    def __init__(self) -> None:
        self.records: dict[RecordHash, ValidRecord] = {}
        self._settings: dict[str, bytes] = {}
        self._synced_settings: dict[str, bytes] = {}
        self.version = 0

    def put(self, records: Iterable[ValidRecord]) -> None:
        """One synced transaction."""
        for record in records:
            self.records.setdefault(record.hash, record)
        self.version += 1

    def delete(self, record: RecordHash) -> None:
        del self.records[record]
        self.version += 1

    def keep(self, key: str, value: bytes) -> None:
        self._settings[key] = value

    def kept(self, key: str) -> bytes | None:
        return self._settings.get(key)

    def sync(self) -> None:
        self._synced_settings = dict(self._settings)

    def crash(self) -> None:
        """Power fails: what was not synced is gone."""
        self._settings = dict(self._synced_settings)


@lru_cache(maxsize=4096)
def _facts(record: RecordHash) -> tuple[Fact, ...]:
    return tuple(derive_facts(BY_HASH[record].record))


PolicyKey = tuple[str, int, Viewer, tuple[str, ...], bool]
_policies: dict[PolicyKey, LoweredPolicy] = {}


def prepare(effect: PreparePolicy, showing: Showing) -> PolicyKey:
    """The key of a lowered policy; each is made once, whatever world needs it."""
    exposures = tuple(exposure.id for exposure in showing.exposures)
    key = (effect.plan.id, effect.local_index, effect.viewer, exposures, effect.send_gate)
    if key not in _policies:
        _policies[key] = lower(
            effect.plan,
            local_index=effect.local_index,
            viewer=effect.viewer,
            exposures=showing.exposures,
            options=LoweringOptions(send_gate=effect.send_gate),
        )
    return key


Sets = tuple[frozenset[str], frozenset[str]]
_claim_numbers: dict[Advertisement, int] = {}
_claims: list[Advertisement] = []


def number_of(claim: Advertisement) -> int:
    """A small number for a claim: many worlds make the same few, and their sets are keys below."""
    number = _claim_numbers.setdefault(claim, len(_claims))
    if number == len(_claims):
        _claims.append(claim)
    return number


@lru_cache(maxsize=100_000)
def evaluate(
    key: PolicyKey,
    have: frozenset[RecordHash],
    claims: frozenset[int],
    source: str,
    runtime: frozenset[Fact],
) -> Sets:
    """Sendable and requestable by the naive evaluator; `key` names the policy."""
    policy = _policies[key]
    names = _names_read(key)
    facts = [*runtime]
    for record in have:
        facts += _record_facts_read(record, names)
    for claim in claims:
        facts += _claim_facts_read(claim, source, names)
    derived = reference.evaluate(policy.program, facts)
    sendable, requestable = (
        frozenset(row[0] for row in derived.get(predicate, ())) for predicate in (policy.sendable, policy.requestable)
    )
    return sendable, requestable


@lru_cache(maxsize=4096)
def _record_facts_read(record: RecordHash, names: frozenset[str] | None) -> tuple[Fact, ...]:
    return tuple(fact for fact in _facts(record) if _is_read(fact, 1, names))


@lru_cache(maxsize=16_384)
def _claim_facts_read(claim: int, source: str, names: frozenset[str] | None) -> tuple[Fact, ...]:
    return tuple(fact for fact in advertisement_facts(_claims[claim], source) if _is_read(fact, 2, names))


@lru_cache(maxsize=4096)
def _names_read(key: PolicyKey) -> frozenset[str] | None:
    """The field names that a program can tell from others; None for all. Facts of other names change nothing."""
    names: set[str] = set()
    for atom in body_atoms(_policies[key].program.program.rules):
        if atom.predicate in (FIELD, ADVERTISED_FIELD):
            name = atom.terms[1 if atom.predicate == FIELD else 2]
            if not isinstance(name, Constant):
                return None
            names.add(name.value)
    return frozenset(names)


def _is_read(fact: Fact, position: int, names: frozenset[str] | None) -> bool:
    return names is None or fact.predicate not in (FIELD, ADVERTISED_FIELD) or fact.values[position] in names


_runtime_readers: dict[str, bool] = {}


def _reads_runtime(plan: ExchangePlan) -> bool:
    if plan.id not in _runtime_readers:
        _runtime_readers[plan.id] = plan.reads(*_RUNTIME)
    return _runtime_readers[plan.id]


class SimEvaluator:
    """Answers of one side of one link, and what they were at the last evaluation."""

    def __init__(self, disk: Disk, showing: Showing) -> None:
        self._disk = disk
        self._showing = showing
        self._claims: dict[str, int] = {}
        self._schema = FieldSchema(None)
        self._key: PolicyKey = ("", 0, Viewer(""), (), True)
        self._reads_runtime = True
        self.sendable: frozenset[str] = frozenset()
        self.requestable: frozenset[str] = frozenset()
        self.have: frozenset[RecordHash] = frozenset()

    def prepare(self, effect: PreparePolicy) -> given.PolicyPrepared:
        self._key = prepare(effect, self._showing)
        self._schema = effect.schema
        self._reads_runtime = _reads_runtime(effect.plan)
        self._claims = {}
        self.sendable = self.requestable = frozenset()
        return given.PolicyPrepared()

    def evaluate(self, effect: Evaluate) -> given.Evaluated:
        for claim in effect.advertised_removed:
            assert self._claims.pop(claim.hash) == number_of(claim), "a claim was removed that was never there"
        for claim in effect.advertised_added:
            assert claim.hash not in self._claims, "a claim was added twice"
            self._claims[claim.hash] = number_of(claim)
        sendable, requestable = self.oracle(effect)
        answer = given.Evaluated(
            send_added=[self._advertise(record) for record in sorted(sendable - self.sendable)],
            send_removed=sorted(self.sendable - sendable),
            request_added=sorted(requestable - self.requestable),
            request_removed=sorted(self.requestable - requestable),
        )
        self.sendable, self.requestable = sendable, requestable
        return answer

    def oracle(self, effect: Evaluate) -> Sets:
        """What holds at this moment."""
        self._effect = effect
        return self._sets(frozenset(self._claims.values()))

    def listing(self, claims: Iterable[Advertisement]) -> frozenset[Advertisement]:
        """What it would list at this moment to a peer that lists these claims."""
        sendable, _ = self._sets(frozenset(map(number_of, claims)))
        return frozenset(map(self._advertise, sendable))

    def _sets(self, claims: frozenset[int]) -> Sets:
        effect = self._effect
        self.have = frozenset(self._disk.records)
        runtime = frozenset(effect.runtime.facts()) if self._reads_runtime else _NO_TIME
        return evaluate(self._key, self.have, claims, effect.source, runtime)

    def current(self) -> Sets:
        """What would hold if it were evaluated now, with the claims and times of the last evaluation."""
        return self.oracle(self._effect)

    def _advertise(self, record: str) -> Advertisement:
        rows = (fact.values for fact in _facts(RecordHash(record)) if fact.predicate == FIELD)
        claims = (FieldClaim(name, index, value) for _, name, index, value in rows if self._schema.allows(name))
        return Advertisement(record, canonical_fields(claims))


_NO_TIME: frozenset[Fact] = frozenset()


class SimLace:
    """One lace of the world."""

    def __init__(self, number: int, selector: Selector, showing: Showing, records: Iterable[ValidRecord]) -> None:
        self.number = number
        self.selector = selector
        self.showing = showing
        self.disk = Disk()
        self.disk.put(records)
        self.acknowledged: set[RecordHash] = set(self.disk.records)
        self.checked = (-1, 0, 0)  # the state of the store when it was last found whole

    @property
    def have(self) -> set[RecordHash]:
        return set(self.disk.records)
