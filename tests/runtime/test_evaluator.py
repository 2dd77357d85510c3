"""The store evaluator against the naive one: the same sets after every change, followed or evaluated anew."""

from __future__ import annotations

import random

import pytest

from executors import reference
from interlace.pair import ALL, VERIFIER_A, blob, group_module, plex
from lace.datalog.language.syntax import Fact
from lace.interlace import inputs as given
from lace.interlace.claims.advertisement import Advertisement, FieldClaim, advertisement_facts
from lace.interlace.claims.partitions import ClaimChanges
from lace.interlace.effects import Evaluate, PreparePolicy
from lace.interlace.host import Call, perform
from lace.interlace.runtimefacts import RuntimeFacts
from lace.interlace.setup.hello import ALL_FIELDS, NO_FIELDS, FieldSchema
from lace.interlace.setup.terms import Terms
from lace.limits import EngineLimits
from lace.notation.tai import TAI
from lace.policy.compile import ExchangePlan, agree
from lace.policy.exposure import Exposure, expose_all
from lace.policy.operand import Module
from lace.policy.origin import Source, Viewer
from lace.records.validate import validate
from lace.runtime.host.host import LocalHost
from lace.runtime.rules.evaluator import StoreEvaluator
from lace.runtime.rules.feeding import feeding_of
from lace.runtime.rules.policy import prepare
from lace.store.memory import MemoryStore
from lace.thresholds import RuleThresholds

RECORDS = [blob(bytes([n])) for n in range(5)] + [plex(f"n{n}", group="uvw"[n % 3], app="ab"[n % 2]) for n in range(12)]
MODULES = [
    ALL,
    group_module("u"),
    Module.author(
        "SelectHave(P) :- Have(P), not Blocked(P).\nBlocked(P) :- Field(P,'App',_,'a').\n"
        "SelectAdvertised(P,S) :- Advertised(P,S), Cardinality(Have(_),'<','9')."
    ),
    Module.author(
        "SelectHave(P) :- Have(P), not Theirs(P).\nTheirs(P) :- Advertised(P,_).\n"
        "SelectAdvertised(P,S) :- Advertised(P,S), TickTAI(T), LexCompare(T,'>=','1640995210:000000000')."
    ),
]
MODULES += [
    Module.author(text)
    for text in (
        "SelectHave(P) :- Have(P).\nSelectAdvertised(P,S) :- Advertised(P,S), Cardinality(Advertised(_,_),'<','4').",
        "SelectHave(P) :- Have(P).\nSelectAdvertised(P,S) :- Advertised(P,S), Twin(P).\n"
        "Twin(P) :- Advertised(P,_), Advertised(Q,_), P != Q.",
        "SelectHave(P) :- Have(P).\n"
        "SelectAdvertised(P,S) :- Advertised(P,S), not AdvertisedField(P,S,'Group','0','v').",
        "SelectHave(P) :- Have(P).\nSelectAdvertised(P,S) :- Advertised(P,S), Advertised(Q,S), Have(Q).",
    )
]
EXPOSURES = [(), (expose_all(),), (Exposure.author("AllowQueryRecord(V,P) :- Have(P), Field(P,'Group',_,'u')."),)]
SOURCE = Source("Opq_p")


def runtime(tick: int) -> RuntimeFacts:
    tai = TAI("1640995200:000000000")
    return RuntimeFacts(
        here=VERIFIER_A, peer=None, transport="", encrypted=False, start=tai, tick=tai.plus_ns(tick), skew_seconds=0
    )


def wanted(
    plan: ExchangePlan,
    schema: FieldSchema,
    index: int = 0,
    *,
    exposures: tuple[Exposure, ...] = (expose_all(),),
    send_gate: bool = True,
) -> PreparePolicy:
    return PreparePolicy(
        plan=plan,
        local_index=index,
        viewer=Viewer("Opq_x"),
        schema=schema,
        send_gate=send_gate,
        exposures=exposures,
        own_source=Source("Opq_o"),
        peer_source=SOURCE,
        record_formats=frozenset({"H3"}),
    )


class World:
    """A store, a peer's claims, and both evaluators."""

    def __init__(self, seed: int, max_followed: int) -> None:
        self.rng = random.Random(seed)
        self.store = MemoryStore()
        pick = self.rng.choice
        terms = Terms(module=ALL, exposures=pick(EXPOSURES))
        plan = agree(pick(MODULES), pick(MODULES))
        index, gate = self.rng.randrange(2), self.rng.random() < 0.7
        schema = FieldSchema(frozenset({"Group"}))
        policy = prepare(wanted(plan, schema, index, exposures=terms.exposures, send_gate=gate), terms)
        thresholds = RuleThresholds(max_followed_facts=max_followed)
        self.evaluator = StoreEvaluator(self.store, policy, thresholds=thresholds)
        self.claims: dict[str, Advertisement] = {}
        self.sendable: dict[str, Advertisement] = {}
        self.requestable: set[str] = set()
        self.tick = 0

    def step(self) -> None:
        added: list[Advertisement] = []
        removed: list[Advertisement] = []
        for _ in range(self.rng.randrange(4)):
            valid = validate(self.rng.choice(RECORDS))
            match self.rng.randrange(4):
                case 0:
                    self.store.delete(valid.hash)
                case 1:
                    self.store.put([valid])
                case _:
                    if valid.hash in self.claims and self.claims[valid.hash] not in added:
                        removed.append(self.claims.pop(valid.hash))
                    elif valid.hash not in self.claims and all(claim.hash != valid.hash for claim in removed):
                        group = (FieldClaim("Group", "0", self.rng.choice("uv")),) if self.rng.random() < 0.8 else ()
                        self.claims[valid.hash] = Advertisement(valid.hash, group)
                        added.append(self.claims[valid.hash])
        self.tick += self.rng.choice([0, 0, 10**10])
        self.check(added, removed)

    def check(self, added: list[Advertisement], removed: list[Advertisement]) -> None:
        delta = self.evaluator.evaluate(runtime(self.tick), ClaimChanges(added, removed), Call())
        for record in delta.send_removed:
            del self.sendable[record]
        for claim in self.evaluator.advertise(delta.send_added):
            assert claim.hash not in self.sendable
            self.sendable[claim.hash] = claim
        assert delta.request_removed.keys() <= self.requestable
        assert self.requestable.isdisjoint(delta.request_added)
        self.requestable = (self.requestable - delta.request_removed.keys()) | delta.request_added.keys()
        assert self.requestable == set(self.evaluator.requestable)
        self.compare()

    def compare(self) -> None:
        policy = self.evaluator.policy.lowered
        snapshot = self.store.snapshot()
        facts = [Fact(p, row) for p in snapshot.predicates() for row in snapshot.iterate(p)]
        facts += runtime(self.tick).facts()
        for claim in self.claims.values():
            facts += advertisement_facts(claim, SOURCE)
        derived = reference.evaluate(policy.program, facts)
        assert set(self.sendable) == {row[0] for row in derived.get(policy.sendable, ())}
        assert self.requestable == {row[0] for row in derived.get(policy.requestable, ())}
        for record, claim in self.sendable.items():
            groups = [row[3] for row in snapshot.iterate(next(p for p in snapshot.predicates() if p.name == "Field"))
                      if row[:2] == (record, "Group")]  # fmt: skip
            assert [field.value for field in claim.fields] == groups


@pytest.mark.clause("050-SEND-03", "050-EVAL-01", "050-ENG-05", "050-ENG-06", "050-SEND-08")
@pytest.mark.parametrize("max_followed", [0, 10**6])
@pytest.mark.parametrize("seed", range(40))
def test_followed_and_evaluated_anew_are_the_sets_of_the_naive_evaluator(seed: int, max_followed: int) -> None:
    world = World(seed, max_followed)
    for _ in range(12):
        world.step()


EXISTENCE = [
    Module.author(f"SelectHave(P) :- Have(P).\n{rule}")
    for rule in (
        "SelectAdvertised(P,S) :- Claim(P,S,G), Claim(_,_,H), LexCompare(H,'<',G).\n"
        "Claim(P,S,G) :- AdvertisedField(P,S,'Group',_,G).",
        "SelectAdvertised(P,S) :- AdvertisedField(P,S,'Group',_,G), AdvertisedField(Q,S,'Group',_,H), "
        "LexCompare(H,'>',G).",
        "SelectAdvertised(P,S) :- Advertised(P,S), Advertised(Q,S), LexCompare(Q,'<=',P), Field(_,'Group',_,G), "
        "AdvertisedField(P,S,'Group',_,G).",
        "SelectAdvertised(X,S) :- AdvertisedField(P,S,'Group','0','u'), Near(P,X).\n"
        "Near(P,P) :- Advertised(P,_), Advertised(Q,_), LexCompare(Q,'<=',P).",
        "SelectAdvertised(X,S) :- AdvertisedField(P,S,'Group','0','u'), Near(X,P).\n"
        "Also(P) :- Near(P,P).\nNear(P,P) :- Advertised(P,_), Advertised(Q,_), LexCompare(Q,'>=',P).",
    )
]


@pytest.mark.clause("030-EVAL-04", "050-EVAL-01")
@pytest.mark.parametrize("ready", [False, True])
@pytest.mark.parametrize("theirs", [ALL, EXISTENCE[1]])
@pytest.mark.parametrize("ours", EXISTENCE)
@pytest.mark.parametrize("index", [0, 1])
def test_what_could_be_requested_is_what_the_naive_evaluator_says(
    index: int, ours: Module, theirs: Module, ready: bool
) -> None:
    """Whether the claims are supposed or a goal asks for them: rules that test for existence are rewritten in both."""
    valid = [validate(record) for record in RECORDS]
    store = MemoryStore()
    store.put(valid[::3])
    asked = wanted(agree(ours, theirs), FieldSchema(frozenset({"Group"})), index)
    evaluator = StoreEvaluator(store, prepare(asked, Terms(module=ALL, exposures=(expose_all(),))))
    evaluator.evaluate(runtime(0), ClaimChanges([], []), Call())
    if ready:
        evaluator.get_ready()
    claims = [
        Advertisement(
            record.hash, (FieldClaim("Group", "0", "u" if place in (5, 13) else "vw"[place % 2]),) if place % 4 else ()
        )
        for place, record in enumerate(valid)
    ]
    policy = evaluator.policy.lowered
    snapshot = store.snapshot()
    facts = [Fact(p, row) for p in snapshot.predicates() for row in snapshot.iterate(p)]
    facts += [*runtime(0).facts(), *(fact for claim in claims for fact in advertisement_facts(claim, SOURCE))]
    expected = {row[0] for row in reference.evaluate(policy.program, facts)[policy.requestable]}
    assert set(evaluator.requestable_with(claims, SOURCE, Call()) or ()) == expected != set()


@pytest.mark.clause("050-EVAL-04")
def test_a_limit_is_an_answer_and_no_exception() -> None:
    store = MemoryStore()
    store.put([validate(record) for record in RECORDS])
    cross = Module.author(
        "SelectHave(P) :- Have(P), Pair(P,_).\nPair(P,Q) :- Have(P), Have(Q).\n"
        "SelectAdvertised(P,S) :- Advertised(P,S)."
    )
    limits = EngineLimits(max_derived_facts_per_predicate=20)
    host = LocalHost(store, Terms(module=cross, exposures=(expose_all(),), engine_limits=limits))
    perform(host, wanted(agree(cross, ALL), NO_FIELDS), Call())
    answer = perform(host, Evaluate(runtime=runtime(0)), Call())
    assert isinstance(answer, given.EvaluationFailed)
    assert "max_derived_facts_per_predicate" in answer.detail


@pytest.mark.parametrize(("count", "share"), [(3, 16), (100, 16), (100, 0)], ids=["few", "columns", "one by one"])
def test_advertisements_carry_the_fields_of_the_schema_however_many_there_are(count: int, share: int) -> None:
    store = MemoryStore()
    store.put([validate(plex(f"n{n}", headers=[("Mood", "b"), ("Mood", "a")])) for n in range(count)])
    for schema in (ALL_FIELDS, FieldSchema(frozenset({"Mood", "Absent"}))):
        policy = prepare(wanted(agree(ALL, ALL), schema), Terms(module=ALL, exposures=(expose_all(),)))
        evaluator = StoreEvaluator(store, policy, thresholds=RuleThresholds(column_share=share))
        gone = validate(plex("gone"))
        store.put([gone])
        sendable = evaluator.evaluate(runtime(0), ClaimChanges([], []), Call()).send_added
        store.delete(gone.hash)
        listed = evaluator.advertise(sendable)
        assert len(sendable) == count + 1
        assert len(listed) == count
        for claim in listed:
            mood = [(field.position, field.value) for field in claim.fields if field.name == "Mood"]
            assert mood == [("0", "b"), ("1", "a")]
            assert ("Type" in [field.name for field in claim.fields]) is (schema == ALL_FIELDS)


@pytest.mark.parametrize(
    ("index", "feeding"),
    list(enumerate(["SEPARATE"] * 3 + ["ALWAYS", "TOGETHER", "TOGETHER", "SEPARATE", "TOGETHER"])),
)
def test_which_claims_an_engine_must_see_is_read_off_the_rules(index: int, feeding: str) -> None:
    assert feeding_of(agree(MODULES[index], ALL)).name == feeding
    assert feeding_of(agree(ALL, MODULES[index])).name == feeding
