"""Rules that look at one record at a time are followed record by record: the answers are those of whole evaluations."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from differences.test_shared import questions
from interlace.pair import ALL, blob, config_of, group_module, plex
from lace.differences.ids import ids_of_texts
from lace.interlace.claims.advertisement import Advertisement, FieldClaim
from lace.interlace.claims.partitions import ClaimChanges
from lace.interlace.host import Call
from lace.policy.operand import Module
from lace.records.validate import validate
from lace.runtime.rules.evaluator import Delta, Following, StoreEvaluator
from lace.runtime.rules.policy import prepare
from lace.store.memory import MemoryStore
from tries import tries

NOT_BOTH = Module.author(
    "SelectHave(P) :- Have(P), not Field(P,'Group',_,'v'), Cardinality(Field(P,'Name',I,N),'<','2').\n"
    "SelectAdvertised(P,S) :- Advertised(P,S), not AdvertisedField(P,S,'Group',_,'v'), not Field(P,'App',_,'ding')."
)
MODULES = {"all": ALL, "a group": group_module("u"), "negated and counted": NOT_BOTH}
RECORDS = [validate(plex(f"n/{n}", group="u" if n % 2 else "v")) for n in range(8)]
RECORDS += [validate(blob(b"%d" % n)) for n in range(4)]
STEPS = st.lists(st.tuples(st.booleans(), st.sets(st.sampled_from(range(len(RECORDS))), max_size=4)), max_size=6)


@pytest.mark.long
@pytest.mark.parametrize("name", MODULES)
@tries(15)
@given(steps=STEPS, claimed=st.sets(st.sampled_from(range(len(RECORDS)))))
def test_following_records_gives_what_whole_evaluations_give(
    name: str, steps: list[tuple[bool, set[int]]], claimed: set[int]
) -> None:
    store, terms = MemoryStore(), config_of(0, MODULES[name]).terms
    prepared, asked = questions(MODULES[name])
    near = StoreEvaluator(store, prepare(prepared, terms), is_shared=True)
    assert near.policy.is_by_record
    held: set[str] = set()
    for is_put, which in [(True, {0, 1, 8}), *steps]:
        if is_put:
            store.put([RECORDS[n] for n in sorted(which)])
        else:
            store.delete(*(RECORDS[n].hash for n in sorted(which)))
        delta = near.evaluate(asked.runtime, ClaimChanges([], []), Call())
        if delta.whole is not None:
            held = set(delta.whole.texts())
        held = (held - delta.send_removed.keys()) | delta.send_added.keys()
        whole = StoreEvaluator(store, prepare(prepared, terms))
        assert held == set(whole.evaluate(asked.runtime, ClaimChanges([], []), Call()).send_added)
        assert near.cursor == store.cursor()
    claims = [
        Advertisement(str(RECORDS[n].hash), (FieldClaim("Group", "0", "u"),) if n % 2 else ()) for n in sorted(claimed)
    ]
    anew = StoreEvaluator(store, prepare(prepared, terms))
    anew.evaluate(asked.runtime, ClaimChanges([], []), Call())
    source = prepared.peer_source
    whole_answer = set(anew.requestable_with(claims, source, Call()) or ())
    assert set(near.requestable_with(claims, source, Call(), is_alone=False) or ()) == whole_answer
    assert set(near.requestable_with(claims, source, Call()) or ()) == whole_answer


def test_nothing_derived_is_held() -> None:
    store = MemoryStore()
    store.put(RECORDS)
    prepared, asked = questions(ALL)
    near = StoreEvaluator(store, prepare(prepared, config_of(0, ALL).terms), is_shared=True)
    assert near.evaluate(asked.runtime, ClaimChanges([], []), Call()).whole is not None
    assert near.following is Following.BY_RECORD
    assert near.evaluate(asked.runtime, ClaimChanges([], []), Call()) == Delta()


def test_other_runtime_facts_are_evaluated_anew() -> None:
    rules = "SelectHave(P) :- Have(P), Transport('unix:/a').\nSelectAdvertised(P,S) :- Advertised(P,S)."
    module, store = Module.author(rules), MemoryStore()
    store.put(RECORDS[:3])
    prepared, asked = questions(module)
    near = StoreEvaluator(store, prepare(prepared, config_of(0, module).terms), is_shared=True)
    for transport, count in (("unix:/b", 0), ("unix:/a", 3), ("unix:/b", 0)):
        delta = near.evaluate(replace(asked.runtime, transport=transport), ClaimChanges([], []), Call())
        assert delta.whole is not None
        assert len(delta.whole) == count


def test_changes_after_a_whole_set_are_one_whole_set() -> None:
    a, b, c = (str(record.hash) for record in RECORDS[:3])
    whole = Delta(whole=ids_of_texts([a, b]))
    later = whole.then(Delta(send_added={c: None}, send_removed={a: None})).whole
    assert later is not None
    assert set(later.texts()) == {b, c}
    assert Delta(send_added={c: None}).then(whole) is whole
