"""What every host promises: the naive one of the tests and the local one over both stores keep the same contract.

A host of another kind (evaluation in a process of its own, an archive) is added to HOSTS and has to pass as it is.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from interlace.fakehost import FakeHost
from interlace.pair import ALL, EXPOSE_ALL, VERIFIER_A, blob, group_module, hash_of, plex
from lace.differences.keyed import derive_key
from lace.errors import LimitExceeded
from lace.interlace import effects as asked
from lace.interlace import inputs as given
from lace.interlace.claims.advertisement import Advertisement, FieldClaim, bare_claims
from lace.interlace.claims.partitions import AdvertisementSet, Partition
from lace.interlace.host import Call, Cancelled, Host, ListingMismatch, perform, store
from lace.interlace.runtimefacts import RuntimeFacts
from lace.interlace.setup.hello import NO_FIELDS, FieldSchema
from lace.interlace.setup.terms import Terms
from lace.limits import RecordLimits
from lace.notation.tai import TAI
from lace.policy.compile import agree
from lace.policy.operand import Module
from lace.policy.origin import Source, Viewer
from lace.records.validate import validate
from lace.runtime.host.host import HostBounds, LocalHost
from lace.store import open_store
from lace.store.base import RecordStore
from lace.store.memory import MemoryStore

OURS, THEIRS = Source("Opq_ours"), Source("Opq_theirs")
RECORDS = [plex(f"n{number}", group="uv"[number % 2]) for number in range(30)] + [blob(bytes([n])) for n in range(10)]
HASHES = sorted(hash_of(record) for record in RECORDS)
BY_HASH = {hash_of(record): record for record in RECORDS}
START = TAI("1640995200:000000000")
RUNTIME = RuntimeFacts(
    here=VERIFIER_A, peer=None, transport="", encrypted=False, start=START, tick=START, skew_seconds=0
)  # fmt: skip
READS_CLAIMS = Module.author("SelectHave(P) :- Have(P), Advertised(_,_).\nSelectAdvertised(P,S) :- Advertised(P,S).")

AnyHost = Host[Any]
MakeHost = Callable[..., AnyHost]


def fake(records: RecordStore, terms: Terms) -> AnyHost:
    return FakeHost(records, terms)


def local(records: RecordStore, terms: Terms) -> AnyHost:
    return LocalHost(records, terms, bounds=HostBounds(load_records=3, list_records=4))


HOSTS = {"fake": (fake, False), "local": (local, False), "local on disk": (local, True)}


@pytest.fixture(params=list(HOSTS))
def make_host(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MakeHost]:
    """Makes hosts of one kind, over a store of its own unless one is given."""
    make, on_disk = HOSTS[request.param]
    opened: list[RecordStore] = []

    def fresh(over: RecordStore | None = None, module: Module = ALL, **terms: Any) -> AnyHost:
        if over is None:
            path = tmp_path / f"{len(opened)}.lace"
            over = open_store(path, create=True) if on_disk else MemoryStore()
            opened.append(over)
        return make(over, Terms(module=module, **{"exposures": EXPOSE_ALL, **terms}))

    yield fresh
    for made in opened:
        made.close()


def put(host: AnyHost, *records: bytes) -> None:
    host.store.put([validate(record) for record in records])  # type: ignore[attr-defined]


def prepare(host: AnyHost, ours: Module = ALL, theirs: Module = ALL, **changes: Any) -> given.PolicyPrepared:
    wanted: dict[str, Any] = {
        "plan": agree(ours, theirs),
        "local_index": 0,
        "viewer": Viewer("Opq_x"),
        "schema": NO_FIELDS,
        "send_gate": True,
        "exposures": EXPOSE_ALL,
        "own_source": OURS,
        "peer_source": THEIRS,
        "record_formats": frozenset({"H3"}),
    }
    return host.prepare(asked.PreparePolicy(**{**wanted, **changes}), Call())


def evaluate(host: AnyHost, **wanted: Any) -> given.Evaluated:
    return host.evaluate(asked.Evaluate(runtime=RUNTIME, **wanted), Call())


def ready(host: AnyHost, *records: bytes, **changes: Any) -> given.Evaluated:
    """A host that was prepared and evaluated over some records."""
    put(host, *records)
    prepare(host, **changes)
    return evaluate(host)


def listed(host: AnyHost, own: asked.SetHandle, prefixes: list[str] | None = None) -> list[Advertisement]:
    batches = list(host.list(asked.SendListing(own=own, source=OURS, prefixes=prefixes), Call()))
    assert all(batches), "a batch is never empty"
    return [claim for batch in batches for claim in batch]


def as_set(claims: list[Advertisement]) -> AdvertisementSet:
    whole = AdvertisementSet(1024)
    whole.put_all(claims)
    return whole


# --- our set --------------------------------------------------------------------------------------------------------


def test_a_set_keeps_its_number_until_it_changes(make_host: MakeHost) -> None:
    host = make_host()
    first = ready(host, *RECORDS[:5])
    assert first.own.count == 5
    assert evaluate(host).own == first.own
    put(host, RECORDS[5])
    second = evaluate(host)
    assert second.own.count == 6
    assert second.own.number != first.own.number


def test_the_cursor_is_another_one_when_the_store_has_changed(make_host: MakeHost) -> None:
    host = make_host()
    before = host.cursor
    assert host.cursor == before
    put(host, RECORDS[0])
    assert host.cursor != before


@pytest.mark.clause("050-LIST-05", "050-SEND-08")
def test_a_listing_is_sorted_and_carries_the_fields_of_the_schema(make_host: MakeHost) -> None:
    host = make_host()
    found = ready(host, *RECORDS, schema=FieldSchema(frozenset({"Group"})))
    claims = listed(host, found.own)
    assert [claim.hash for claim in claims] == HASHES
    grouped = {claim.hash for claim in claims if claim.fields}
    assert grouped == {hash_of(record) for record in RECORDS[:30]}
    exact = evaluate(host, measured_bytes=1 << 20)
    assert exact.listing_bytes == as_set(claims).size_under(OURS)
    assert evaluate(host, measured_bytes=10).listing_bytes > 10


@pytest.mark.clause("050-LIST-04", "050-PART-05")
def test_summaries_are_those_of_the_listing(make_host: MakeHost) -> None:
    host = make_host()
    found = ready(host, *RECORDS)
    whole = as_set(listed(host, found.own))
    top = host.summarise(asked.Summarise(own=found.own, source=OURS), Call()).partitions
    assert list(top) == whole.summaries(OURS)
    assert len(top) == found.partitions
    parents = [partition.prefix for partition in top[:7]]
    children = host.summarise(asked.Summarise(own=found.own, source=OURS, parents=parents), Call()).partitions
    assert list(children) == sorted(child for parent in parents for child in whole.children([parent], OURS))
    assert sum(child.count for child in children) == sum(partition.count for partition in top[:7])
    assert listed(host, found.own, parents) == sorted(c for parent in parents for c in whole.under(parent))


@pytest.mark.clause("050-ENG-07")
def test_differences_add_up_to_the_listing(make_host: MakeHost) -> None:
    host = make_host()
    found = ready(host, *RECORDS[:20])
    told = host.differences(asked.SendChanges(found.own, None), Call())
    assert told.is_whole
    known = {claim.hash: claim for claim in told.added}
    since = found.own
    rng = random.Random(3)
    for _ in range(6):
        host.store.delete(*rng.sample(HASHES, 4))  # type: ignore[attr-defined]
        put(host, *rng.sample(RECORDS, 4))
        found = evaluate(host)
        evaluate(host)  # for a request, between two listings
        told = host.differences(asked.SendChanges(found.own, since), Call())
        since = found.own
        for record in told.removed:
            del known[record]
        known.update((claim.hash, claim) for claim in told.added)
        assert sorted(known.values()) == listed(host, found.own)


@pytest.mark.clause("050-XFER-01", "050-XFER-03")
def test_every_hash_is_loaded_once_and_only_out_of_the_set(make_host: MakeHost) -> None:
    host = make_host(module=group_module("u"))
    found = ready(host, *RECORDS[:30], ours=group_module("u"))
    asked_for = [*HASHES, hash_of(blob(b"never stored"))]
    wanted = asked.SendRecords(own=found.own, hashes=asked_for, budget_bytes=0, limit_bytes=0)
    loaded = [pair for batch in host.load(wanted, Call()) for pair in batch]
    assert sorted(record for record, _ in loaded) == sorted(asked_for)
    sendable = {hash_of(record) for record in RECORDS[:30:2]}
    assert dict(loaded) == {record: BY_HASH[record] if record in sendable else None for record in asked_for}
    missing = [data is None for _, data in loaded]
    assert missing == sorted(missing, reverse=True), "what may not be sent comes first"


# --- the peer's claims ----------------------------------------------------------------------------------------------


@pytest.mark.clause("050-RECON-04", "050-REQ-02", "050-REQ-03", "050-REQ-04", "050-REQ-05", "050-REQ-06")
def test_requests_are_what_the_peer_claims_and_we_lack_within_the_bounds(make_host: MakeHost) -> None:
    host = make_host()
    ready(host, *RECORDS[:5])
    foreign = "B.00.X"
    taken = host.take_claims(asked.TakeClaims(added=bare_claims([*HASHES, foreign]), is_whole=True), Call())
    assert taken == given.ClaimsTaken(len(HASHES) + 1, changed=True)
    lacking = [record for record in HASHES if record not in {hash_of(stored) for stored in RECORDS[:5]}]
    assert list(evaluate(host, max_requests=1000, max_request_bytes=1 << 20).requests) == lacking
    assert list(evaluate(host, max_requests=3, max_request_bytes=1 << 20).requests) == lacking[:3]
    line = len(f"MayRequest('{lacking[0]}')\n")
    assert list(evaluate(host, max_requests=9, max_request_bytes=2 * line + 1).requests) == lacking[:2]
    refused = frozenset(lacking[:2])
    assert list(evaluate(host, max_requests=1, max_request_bytes=999, refused=refused).requests) == lacking[2:3]
    assert not evaluate(host).requests
    gone = host.take_claims(asked.TakeClaims(added=(), removed=lacking[:1]), Call())
    assert gone == given.ClaimsTaken(len(HASHES), changed=True)
    assert list(evaluate(host, max_requests=1, max_request_bytes=999).requests) == lacking[1:2]
    again = host.take_claims(asked.TakeClaims(added=bare_claims([*HASHES[:1]]), is_whole=True), Call())
    assert again == given.ClaimsTaken(1, changed=True)
    same = host.take_claims(asked.TakeClaims(added=bare_claims([*HASHES[:1]]), is_whole=True), Call())
    assert not same.changed


@pytest.mark.clause("070-EQUAL-03")
def test_a_listing_of_exactly_our_records_is_recognised_where_sets_are_compared(make_host: MakeHost) -> None:
    for key in (None, derive_key(b"near", b"far")):
        host = make_host()
        ready(host, *RECORDS[:5], difference_key=key)
        own = sorted(map(hash_of, RECORDS[:5]))
        others = [record for record in HASHES if record not in own]
        for listed in (own, [], own[:4], [*own[:4], others[0]], [*own, others[0]], own):
            claims = bare_claims(sorted(listed))
            taken = host.take_claims(asked.TakeClaims(added=claims, is_whole=True), Call())
            assert taken.is_own == (key is not None and listed == own)
            assert taken.count == len(listed)


@pytest.mark.clause("070-TAKE-03")
def test_what_two_listings_lack_of_each_other_is_named_where_sets_are_compared(make_host: MakeHost) -> None:
    for key in (None, derive_key(b"near", b"far")):
        host = make_host(module=group_module("u"))
        ready(host, *RECORDS[:8], ours=group_module("u"), difference_key=key)
        own = sorted(map(hash_of, RECORDS[:8:2]))
        hidden = sorted(map(hash_of, RECORDS[1:8:2]))  # that we hold and do not list
        others = [record for record in HASHES if record not in own and record not in hidden]
        for listed, most in (
            ([], 4), ([], 3), (own, 9), (own[1:], 1), (own[1:], 0), ([*own, *others[:3]], 3), ([*own, *others[:3]], 2),
            ([*own[2:], *others[:3]], 3), ([*own[2:], *others[:3]], 2), (sorted([*own, hidden[0]]), 1),
        ):  # fmt: skip
            claims = [Advertisement(record, (FieldClaim("Group", "0", "u"),)) for record in sorted(listed)]
            taken = host.take_claims(asked.TakeClaims(added=claims, is_whole=True, max_named=most), Call())
            absent = [record for record in own if record not in listed]
            foreign = sorted(set(listed) - set(own))
            is_named = key is not None and listed != own and max(len(absent), len(foreign)) <= most
            assert (taken.lacking is not None) == is_named
            if taken.lacking is not None:
                assert (list(taken.lacking.peer), list(taken.lacking.ours)) == (absent, foreign)
            assert taken.count == len(listed)


@pytest.mark.clause("050-PART-14", "050-PART-15", "050-PART-16", "050-LIST-09")
def test_partitions_are_taken_over_where_they_can_be_named_and_checked_where_not(make_host: MakeHost) -> None:
    host = make_host()
    found = ready(host, *RECORDS[:20])
    theirs = as_set(bare_claims([*HASHES[5:], "B.zz9.X"]))
    top = theirs.summaries(THEIRS)
    wanted = asked.Reconcile(own=found.own, offered=top)
    answer = host.reconcile(wanted, Call())
    assert answer.changed
    ours = as_set(listed(host, found.own))
    for partition, known in answer.unknown.items():
        assert known == ours.count_under(partition.prefix)
        assert ours.summary(partition.prefix, THEIRS) != partition
    unknown = sorted(answer.unknown)
    claims = [claim for partition in unknown for claim in theirs.under(partition.prefix)]
    parents: list[str] = []

    def listing(given_claims: list[Advertisement]) -> asked.Reconcile:
        return asked.Reconcile(own=found.own, offered=(), parents=parents, listed=unknown, claims=given_claims)

    with pytest.raises(ListingMismatch) as wrong:
        host.reconcile(listing(claims[1:]), Call())
    assert wrong.value.clause == "050-PART-15"
    stranger = next(record for record in HASHES if all(not record.startswith(p.prefix, 2) for p in unknown))
    with pytest.raises(ListingMismatch) as wrong:
        host.reconcile(listing(bare_claims([stranger])), Call())
    assert wrong.value.clause == "050-PART-16"
    assert isinstance(perform(host, listing(claims[1:]), Call()), given.ListingRefused)
    done = host.reconcile(listing(claims), Call())
    assert (dict(done.unknown), done.count) == ({}, len(theirs))
    again = host.reconcile(wanted, Call())
    assert (dict(again.unknown), again.changed) == ({}, False)
    fewer = host.reconcile(asked.Reconcile(own=found.own, offered=top[:3]), Call())
    assert fewer.count == sum(partition.count for partition in top[:3]), "an absent prefix has count 0"


@pytest.mark.clause("050-PART-18")
def test_children_that_are_absent_are_forgotten(make_host: MakeHost) -> None:
    host = make_host()
    found = ready(host)
    held = as_set(bare_claims(HASHES))
    host.take_claims(asked.TakeClaims(added=held.listing(), is_whole=True), Call())
    parent = max(held.summaries(THEIRS), key=lambda partition: partition.count).prefix
    kept: list[Partition] = held.children([parent], THEIRS)[:1]
    answer = host.reconcile(asked.Reconcile(own=found.own, offered=kept, parents=[parent]), Call())
    assert dict(answer.unknown) == {}
    assert answer.count == len(held) - held.count_under(parent) + kept[0].count


@pytest.mark.clause("050-LINK-04", "050-RECON-05", "050-SEND-02", "050-OPEN-13")
def test_claims_are_kept_under_a_key_for_the_same_plan_and_label(make_host: MakeHost) -> None:
    host = make_host()
    ready(host, *RECORDS[:5])
    claims = [Advertisement(record, (FieldClaim("Group", "0", "u"),)) for record in HASHES]
    host.take_claims(asked.TakeClaims(added=claims, is_whole=True), Call())
    host.keep_claims(asked.KeepClaims("door"), Call())
    later = make_host(host.store)  # type: ignore[attr-defined]
    assert prepare(later, cursor_key="door").claims == len(HASHES)
    assert len(evaluate(later, max_requests=99, max_request_bytes=1 << 20).requests) == len(HASHES) - 5
    assert prepare(later, keeps_claims=True).claims == len(HASHES)
    assert len(evaluate(later, max_requests=99, max_request_bytes=1 << 20).requests) == len(HASHES) - 5
    for changes in ({"cursor_key": ""}, {"cursor_key": "other"}, {"peer_source": Source("Opq_z")}):
        assert prepare(later, **{"cursor_key": "door", **changes}).claims == 0
    assert prepare(later, theirs=group_module("u"), cursor_key="door").claims == 0


@pytest.mark.clause("050-BOUND-09")
def test_equal_listings_have_equal_fingerprints_where_listings_depend_on_listings(make_host: MakeHost) -> None:
    host = make_host(module=READS_CLAIMS)
    empty = ready(host, *RECORDS[:5], ours=READS_CLAIMS)
    host.take_claims(asked.TakeClaims(added=bare_claims(HASHES[:1]), is_whole=True), Call())
    full = evaluate(host)
    assert (empty.own.count, full.own.count) == (0, 5)
    assert full.fingerprint != empty.fingerprint
    assert full.claims_fingerprint != empty.claims_fingerprint
    host.take_claims(asked.TakeClaims(added=(), is_whole=True), Call())
    back = evaluate(host)
    assert (back.fingerprint, back.claims_fingerprint) == (empty.fingerprint, empty.claims_fingerprint)


# --- records --------------------------------------------------------------------------------------------------------


@pytest.mark.clause("050-VALID-05", "050-VALID-06")
def test_what_is_not_the_record_it_came_as_is_a_reason_and_the_rest_is_stored(make_host: MakeHost) -> None:
    host = make_host(record_limits=RecordLimits(max_data_bytes=10))
    ready(host)
    good, wrong, long = blob(b"good"), blob(b"wrong"), blob(b"longer than ten bytes")
    arrived = [
        (hash_of(good), good),
        (hash_of(wrong), wrong[:-1] + b"!"),
        (hash_of(RECORDS[0]), good),
        (hash_of(long), long),
    ]
    answers = host.commit(host.judge(arrived, Call()), Call())
    stored = [record for answer in answers if isinstance(answer, given.RecordsStored) for record in answer.hashes]
    refused = [record for answer in answers if isinstance(answer, given.RecordsRejected) for record in answer.reasons]
    assert stored == [hash_of(good)]
    assert refused == [hash_of(wrong), hash_of(RECORDS[0]), hash_of(long)]
    assert [record for _, record in host.store.records_since()] == [hash_of(good)]  # type: ignore[attr-defined]


def test_a_store_that_cannot_be_written_is_an_answer(tmp_path: Path) -> None:
    open_store(tmp_path / "a.lace", create=True).close()
    with open_store(tmp_path / "a.lace", read_only=True) as sealed:
        host = local(sealed, Terms(module=ALL))
        prepare(host)
        evaluate(host)
        (answer,) = store(host, host.judge([(hash_of(RECORDS[0]), RECORDS[0])], Call()), Call())
        assert isinstance(answer, given.LocalFailed)
        assert perform(host, asked.KeepClaims("door"), Call()) is None, "losing a cursor is no failure"


# --- calls ----------------------------------------------------------------------------------------------------------


def calls(host: AnyHost, own: asked.SetHandle) -> dict[str, Callable[[Call], object]]:
    """Every call that works through something, by name."""
    return {
        "evaluate": lambda call: host.evaluate(asked.Evaluate(runtime=RUNTIME), call),
        "take_claims": lambda call: host.take_claims(asked.TakeClaims(added=bare_claims(HASHES), is_whole=True), call),
        "list": lambda call: list(host.list(asked.SendListing(own=own, source=OURS), call)),
        "load": lambda call: list(
            host.load(asked.SendRecords(own=own, hashes=HASHES, budget_bytes=1, limit_bytes=1), call)
        ),
        "judge": lambda call: host.judge([(hash_of(RECORDS[0]), RECORDS[0])], call),
    }


@pytest.mark.parametrize("name", ["evaluate", "take_claims", "list", "load", "judge"])
def test_a_call_that_was_given_up_ends_and_one_that_was_not_is_counted(make_host: MakeHost, name: str) -> None:
    host = make_host()
    found = ready(host, *RECORDS)
    host.take_claims(asked.TakeClaims(added=bare_claims(HASHES[:3]), is_whole=True), Call())
    given_up = Call()
    given_up.cancel()
    with pytest.raises(Cancelled):
        calls(host, found.own)[name](given_up)
    granted, bounded = Call(), Call(max_rows=0)
    if name == "evaluate":
        put(host, blob(b"something to look at"))
    calls(host, found.own)[name](granted)
    assert granted.rows > 0
    if name == "evaluate":
        put(host, blob(b"something else"))
    with pytest.raises(LimitExceeded):
        calls(host, found.own)[name](bounded)


def test_equal_calls_over_equal_views_cost_the_same(make_host: MakeHost) -> None:
    costs = []
    for order in (RECORDS, list(reversed(RECORDS))):
        host = make_host()
        own = ready(host, *order).own
        host.take_claims(asked.TakeClaims(added=bare_claims(HASHES[:3]), is_whole=True), Call())
        spent = {}
        for name, make in calls(host, own).items():
            call = Call()
            make(call)
            spent[name] = (call.rows, call.bytes)
        costs.append(spent)
    assert costs[0] == costs[1]


def test_failures_become_the_same_answers_whatever_host_fails(make_host: MakeHost) -> None:
    host = make_host()
    ready(host, *RECORDS)
    put(host, blob(b"more"))
    answer = perform(host, asked.Evaluate(runtime=RUNTIME), Call(max_rows=0))
    assert isinstance(answer, given.EvaluationFailed)
    assert "max_rows" in answer.detail


# --- one against the other ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_the_local_host_answers_as_the_naive_one(seed: int) -> None:
    require_alike(seed, lambda terms: local(MemoryStore(), terms))


def require_alike(seed: int, make: Callable[[Terms], AnyHost], rounds: int = 8) -> None:
    """A host gives the answers of the naive one to the same random calls."""
    rng = random.Random(seed)
    modules = [ALL, group_module("u"), READS_CLAIMS]
    ours, theirs = rng.choice(modules), rng.choice(modules)
    terms = Terms(module=ours, exposures=EXPOSE_ALL)
    hosts = [fake(MemoryStore(), terms), make(terms)]
    for host in hosts:
        prepare(host, ours, theirs, schema=FieldSchema(frozenset({"Group"})))
    for _ in range(rounds):
        stored, removed = rng.sample(RECORDS, rng.randrange(6)), rng.sample(HASHES, rng.randrange(4))
        claims = [
            Advertisement(record, (FieldClaim("Group", "0", rng.choice("uv")),))
            for record in sorted(rng.sample(HASHES, rng.randrange(len(HASHES))))
        ]
        by_summary, most = rng.random() < 0.5, rng.choice([0, 2, 100])
        seen = []
        recognised: list[set[Partition]] = []
        for host in hosts:
            host.store.delete(*removed)  # type: ignore[attr-defined]
            put(host, *stored)
            found = evaluate(host)
            answers: list[object] = []
            if by_summary:
                offered = as_set(claims).summaries(THEIRS)
                first = host.reconcile(asked.Reconcile(own=found.own, offered=offered), Call())
                unknown = sorted(first.unknown)
                listing = [claim for claim in claims if any(claim.hash.startswith(p.prefix, 2) for p in unknown)]
                second = host.reconcile(
                    asked.Reconcile(own=found.own, offered=(), parents=(), listed=unknown, claims=listing), Call()
                )
                recognised.append(set(offered) - set(first.unknown))
                answers.append(second.count)
            else:
                answers.append(host.take_claims(asked.TakeClaims(added=claims, is_whole=True), Call()))
            asking = evaluate(host, max_requests=most, max_request_bytes=1 << 20)
            answers += [list(asking.requests), asking.fingerprint, asking.claims_fingerprint, asking.partitions]
            seen.append([*answers, listed(host, asking.own)])
        # A host may know more partitions by their roots than the naive one does; what they come to is the same.
        assert not recognised or recognised[0] <= recognised[1]
        assert seen[0] == seen[1]
