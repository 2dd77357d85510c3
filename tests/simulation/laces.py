"""A simulated lace: a store whose disk forgets what was not synced, and the host of its side of a link."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from executors import reference
from interlace.fakehost import FakeHost
from lace.datalog.language.syntax import Constant
from lace.facts.derive import derive_facts
from lace.facts.predicates import ADVERTISED_FIELD, CLOCK_SKEW_SECONDS, FIELD, HERE, PEER, START_TAI, TICK_TAI
from lace.interlace import inputs as given
from lace.interlace.claims.advertisement import Advertisement, FieldClaim, advertisement_facts, canonical_fields
from lace.interlace.effects import PreparePolicy
from lace.interlace.host import Call
from lace.interlace.setup.terms import Terms
from lace.notation.fact import Fact
from lace.notation.identifiers import RecordHash
from lace.policy.compile import ExchangePlan
from lace.policy.lower import LoweredPolicy
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

    def put_setting(self, _: str, key: str, value: bytes) -> None:
        self._settings[key] = value

    def get_setting(self, _: str, key: str) -> bytes | None:
        return self._settings.get(key)

    def get(self, record: RecordHash) -> bytes | None:
        return self.records[record].stored if record in self.records else None

    def high_water(self) -> int:
        return self.version

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


class SimHost(FakeHost):
    """The naive evaluator with a memory: many worlds ask for the same few sets."""

    store: Disk  # type: ignore[assignment]  # as much of a store as a host needs

    def __init__(self, disk: Disk, terms: Terms) -> None:
        super().__init__(disk, terms)  # type: ignore[arg-type]
        self.have: frozenset[RecordHash] = frozenset()

    def prepare(self, wanted: PreparePolicy, call: Call) -> given.PolicyPrepared:
        exposures = tuple(exposure.id for exposure in wanted.exposures)
        self._key = (wanted.plan.id, wanted.local_index, wanted.viewer, exposures, wanted.send_gate)
        self._reads_runtime = _reads_runtime(wanted.plan)
        return super().prepare(wanted, call)

    def lowered(self, wanted: PreparePolicy) -> LoweredPolicy:
        if self._key not in _policies:
            _policies[self._key] = super().lowered(wanted)
        return _policies[self._key]

    def sets(self, claims: Sequence[Advertisement]) -> Sets:
        self.have = frozenset(self.store.records)
        runtime = frozenset(self.runtime[-1]) if self._reads_runtime else _NO_TIME
        return evaluate(self._key, self.have, frozenset(map(number_of, claims)), self.wanted.peer_source, runtime)

    def listing(self, claims: Iterable[Advertisement]) -> frozenset[Advertisement]:
        """What it would list at this moment to a peer that lists these claims."""
        return frozenset(map(self.advertise, self.sets(list(claims))[0]))

    def current(self) -> Sets:
        """What would hold if it were evaluated now, with the claims and times of the last evaluation."""
        return self.sets(self.claims.listing())

    def advertise(self, record: str) -> Advertisement:
        rows = (fact.values for fact in _facts(RecordHash(record)) if fact.predicate == FIELD)
        claims = (FieldClaim(name, index, value) for _, name, index, value in rows if self.wanted.schema.allows(name))
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
