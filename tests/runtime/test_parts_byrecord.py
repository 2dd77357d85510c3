"""Parts of content are followed record by record: the answers are those of whole evaluations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from differences.test_shared import questions
from interlace.pair import ALL, EXPOSE_ALL, blob, config_of, plex
from lace.facts.derive import derive_facts
from lace.facts.predicates import ALLOW_QUERY_RECORD, SELECT_ADVERTISED, SELECT_HAVE
from lace.interlace.claims.advertisement import Advertisement, FieldClaim
from lace.interlace.claims.partitions import ClaimChanges
from lace.interlace.host import Call
from lace.notation.tai import TAI
from lace.policy.exposure import Exposure, expose_selected
from lace.policy.operand import Module
from lace.policy.parts import advised_rules
from lace.policy.select import select, select_coordinate, select_hash
from lace.records.keys import SigningKey
from lace.records.manifest import CHUNK_LINK, TOTAL_LENGTH
from lace.records.model import Blob, Plex, ValidRecord, sorted_headers
from lace.records.validate import validate
from lace.records.write import encode_record
from lace.runtime.rules.byrecord import HEAD_BYTES, facts_of_blob
from lace.runtime.rules.evaluator import StoreEvaluator
from lace.runtime.rules.partlinks import PartLinks
from lace.runtime.rules.policy import prepare
from lace.store import open_store
from lace.store.base import RecordStore
from lace.store.memory import MemoryStore
from tries import tries


def manifest(name: str, parts: Sequence[ValidRecord], *, group: str, signed: bool = False) -> ValidRecord:
    headers = [(TOTAL_LENGTH, str(len(parts)))]
    headers += [(CHUNK_LINK, f"{at}..{at + 1} {part.hash}") for at, part in enumerate(parts)]
    tai = TAI("1640995200:000000000")
    whole = Plex(group=group, app="ding", name=name, tai=tai, headers=sorted_headers(headers), blob=Blob(b""))
    return validate(encode_record(SigningKey(bytes(31) + b"\5").seal(whole) if signed else whole))


CHUNKS = [validate(blob(b"%d" % n)) for n in range(5)]
NESTED = manifest("big/chunks/0..2", CHUNKS[3:], group="v")  # elsewhere: only its link makes it ours
OURS = manifest("film", CHUNKS[:2], group="u", signed=True)
SHARING = manifest("other", CHUNKS[1:3], group="v")
BIG = manifest("big", [NESTED, CHUNKS[0]], group="u")
PLAIN = [validate(plex(f"n/{n}", group="uv"[n % 2])) for n in range(3)]
RECORDS = [*CHUNKS, NESTED, OURS, SHARING, BIG, *PLAIN]

AUTHORED = Module.of_rules(
    [
        *Module.author(
            "SelectHave(P) :- Have(P), Field(P,'Group',_,'u').\n"
            "SelectAdvertised(P,S) :- Advertised(P,S), AdvertisedField(P,S,'Group',_,'u')."
        ).rules,
        *advised_rules(SELECT_HAVE),
        *advised_rules(SELECT_ADVERTISED),
    ]
)
MODULES = {
    "a coordinate": select_coordinate("//u//"),
    "a hash": select_hash(str(BIG.hash)),
    "two places": select(coordinates=["//u//", "//v//ding//other"]),
    "rules of one's own": AUTHORED,
}
GROUP_SHOWN = Exposure.of_rules(
    [
        *Exposure.author("AllowQueryRecord(Viewer,P) :- Have(P), Field(P,'Group',_,'u').").program.rules,
        *advised_rules(ALLOW_QUERY_RECORD),
    ]
)
EXPOSURES = {"all": lambda _: EXPOSE_ALL, "selected": lambda module: (expose_selected(module),),
             "a group": lambda _: (GROUP_SHOWN,), "none": lambda _: ()}  # fmt: skip
STEPS = st.lists(st.tuples(st.booleans(), st.sets(st.sampled_from(range(len(RECORDS))), max_size=4)), max_size=7)


def claim(record: ValidRecord) -> Advertisement:
    group = record.parts.group
    return Advertisement(str(record.hash), (FieldClaim("Group", "0", group),) if group else ())


ASKED = {name: questions(module) for name, module in MODULES.items()}


@pytest.mark.long
@pytest.mark.parametrize("shown", EXPOSURES)
@pytest.mark.parametrize("name", MODULES)
@tries(4)
@given(steps=STEPS, claimed=st.sets(st.sampled_from(range(len(RECORDS)))))
@example(  # parts after their manifest and before it, a nested one between, and manifests that go while parts stay
    steps=[(True, {1}), (True, {3, 8}), (True, {2, 5}), (True, {4, 7}), (False, {8}), (False, {6, 7}), (True, {8})],
    claimed={2, 4},
)
@example(steps=[(True, {8}), (True, {5})], claimed={1, 3, 4, 9})
def test_following_parts_gives_what_whole_evaluations_give(
    name: str, shown: str, steps: list[tuple[bool, set[int]]], claimed: set[int]
) -> None:
    module = MODULES[name]
    store, terms = MemoryStore(), replace(config_of(0, module).terms, exposures=EXPOSURES[shown](module))
    prepared, asked = ASKED[name]
    near = StoreEvaluator(store, prepare(prepared, terms), is_shared=True)
    assert near.policy.is_by_record
    held: set[str] = set()
    for is_put, which in [(True, {0, 6}), *steps]:
        if is_put:
            store.put([RECORDS[n] for n in sorted(which)])
        else:
            store.delete(*(RECORDS[n].hash for n in sorted(which)))
        delta = near.evaluate(asked.runtime, ClaimChanges([], []), Call())
        if delta.whole is not None:
            held = set(delta.whole.texts())
        assert delta.send_removed.keys().isdisjoint(delta.send_added)
        held = (held - delta.send_removed.keys()) | delta.send_added.keys()
        whole = StoreEvaluator(store, prepare(prepared, terms))
        assert held == set(whole.evaluate(asked.runtime, ClaimChanges([], []), Call()).send_added)
    claims = [claim(RECORDS[n]) for n in sorted(claimed)]
    anew = StoreEvaluator(store, prepare(prepared, terms))
    anew.evaluate(asked.runtime, ClaimChanges([], []), Call())
    whole_answer = set(anew.requestable_with(claims, prepared.peer_source, Call()) or ())
    assert set(near.requestable_with(claims, prepared.peer_source, Call(), is_alone=False) or ()) == whole_answer
    for record in RECORDS[::4]:  # the answer to each claim alone, as an open link asks it
        alone = [claim(record)]
        found = near.requestable_with(alone, prepared.peer_source, Call(), is_alone=False)
        assert found == anew.requestable_with(alone, prepared.peer_source, Call())


def test_without_an_exposure_only_unfinished_content_is_seen_and_nothing_is_sent() -> None:
    module = MODULES["a coordinate"]
    store = MemoryStore()
    store.put([OURS, CHUNKS[0]])
    prepared, asked = questions(module)
    prepared = replace(prepared, exposures=())
    terms = config_of(0, module).terms
    for shows, expected in ((True, {str(CHUNKS[1].hash)}), (False, set())):
        one = StoreEvaluator(store, prepare(prepared, replace(terms, shows_unfinished=shows)))
        assert not one.evaluate(asked.runtime, ClaimChanges([], []), Call()).send_added
        claims = [claim(CHUNKS[0]), claim(CHUNKS[1]), claim(CHUNKS[2])]
        assert set(one.requestable_with(claims, prepared.peer_source, Call()) or ()) == expected


def test_what_a_blob_says_is_read_from_its_head(tmp_path: Path) -> None:
    stores: list[RecordStore] = [MemoryStore(), open_store(tmp_path / "a.lace", create=True)]
    for store in stores:
        with store:
            for data in (b"", b"x", b"y" * 3_000_000):
                record = validate(blob(data))
                store.put([record])
                head = store.get_head(record.hash, HEAD_BYTES)
                assert head is not None
                assert len(head) <= HEAD_BYTES
                assert list(facts_of_blob(record.hash, head)) == list(derive_facts(record))
            assert store.get_head(CHUNKS[0].hash, 10) is None


def test_part_links_follow_the_store_and_know_their_limit() -> None:
    store = MemoryStore()
    links, few = PartLinks(store), PartLinks(store, max_links=3)
    assert links.follow()
    assert links.is_empty
    store.put([NESTED, BIG])
    assert links.follow()
    assert links.above([str(CHUNKS[3].hash)]) == {NESTED.hash, BIG.hash}
    assert links.below([str(BIG.hash)]) == {NESTED.hash, CHUNKS[0].hash, CHUNKS[3].hash, CHUNKS[4].hash}
    assert not few.follow()
    store.delete(BIG.hash)
    assert links.follow()
    assert few.follow()
    assert links.above([str(CHUNKS[3].hash)]) == few.above([str(CHUNKS[3].hash)]) == {NESTED.hash}


def test_more_links_than_may_be_held_are_evaluated_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    module, store = MODULES["a coordinate"], MemoryStore()
    monkeypatch.setattr("lace.runtime.rules.byrecord.part_links", lambda store: PartLinks(store, max_links=1))
    prepared, asked = questions(module)
    near = StoreEvaluator(store, prepare(prepared, config_of(0, module).terms), is_shared=True)
    near.evaluate(asked.runtime, ClaimChanges([], []), Call())
    store.put([OURS, CHUNKS[0]])
    delta = near.evaluate(asked.runtime, ClaimChanges([], []), Call())
    assert delta.whole is not None
    assert set(delta.whole.texts()) == {str(OURS.hash), str(CHUNKS[0].hash)}
    assert near.requestable_with([claim(CHUNKS[1])], prepared.peer_source, Call(), is_alone=False) is None


def test_everything_has_no_need_of_parts() -> None:
    assert select().text == ALL.text


def test_more_links_than_may_be_held_are_read_once_and_again_only_after_records_went(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, whole = MemoryStore(), list[int]()
    really = MemoryStore.snapshot

    def snapshot(one: MemoryStore) -> object:
        whole.append(1)
        return really(one)

    monkeypatch.setattr(MemoryStore, "snapshot", snapshot)
    manifests = [record for record in RECORDS if record.type != "B"]
    links = PartLinks(store, max_links=1)
    store.put(RECORDS)
    assert not links.follow()
    for number in range(5):
        store.put([validate(plex(f"later {number}"))])
        assert not links.follow()
    assert len(whole) == 1
    store.delete(*(record.hash for record in manifests))
    assert links.follow()
    assert links.is_empty
    assert len(whole) == 2
