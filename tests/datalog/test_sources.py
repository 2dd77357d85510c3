"""Fact sources: one contract for facts in memory, in a store, filtered by a view, and combined (030)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from lace.datalog.engine import CombinedSource
from lace.datalog.language.syntax import Fact, Predicate
from lace.datalog.source import FactSource, MemorySource
from lace.errors import InvalidLacegram
from lace.facts.predicates import FIELD, HAVE, RECORD_PREDICATES
from lace.facts.views import ViewSource
from lace.porcelain.lace import open_lace

KINDS = ["memory", "store in memory", "store on disk", "view", "combined"]


@pytest.fixture(params=KINDS)
def source_and_facts(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[FactSource, set[Fact]]]:
    path = tmp_path / "notes.lace" if request.param == "store on disk" else ":memory:"
    with open_lace(path, create=True) as lace:
        for name in ("links/1", "links/2", "notes/3"):
            lace.put(name.encode(), group="u", app="ding", name=name, links=[("self", "B." + "0" * 43 + ".H3")])
        facts = set(lace.facts())
        match request.param:
            case "memory":
                yield MemorySource(facts), facts
            case "view":
                hidden = min(fact.values[0] for fact in facts if fact.predicate == HAVE)
                seen = {fact.values[0] for fact in facts} - {hidden}
                visible = {fact for fact in facts if fact.values[0] != hidden}
                yield ViewSource(lace.store.snapshot(), seen), visible
            case "combined":
                fields = {fact for fact in facts if fact.predicate == FIELD}
                yield CombinedSource([MemorySource(fields), MemorySource(facts)]), facts
            case _:
                yield lace.store.snapshot(), facts


def rows_of(facts: set[Fact], predicate: Predicate) -> list[tuple[str, ...]]:
    return sorted(fact.values for fact in facts if fact.predicate == predicate)


@pytest.mark.clause("030-FS-01", "030-FS-05", "030-FS-06", "030-FS-07", "030-CLASS-15")
def test_iterating_gives_every_fact_once_and_the_count_agrees(source_and_facts: tuple[FactSource, set[Fact]]) -> None:
    source, facts = source_and_facts
    for predicate in RECORD_PREDICATES:
        expected = rows_of(facts, predicate)
        assert sorted(source.iterate(predicate)) == expected
        assert sorted(source.iterate(predicate)) == expected, "a second reading shows the same snapshot"
        assert source.count(predicate) == len(expected)
    assert {fact.predicate for fact in facts} <= set(source.predicates())


@pytest.mark.clause("030-FS-02", "030-FS-03")
def test_a_query_gives_the_facts_with_the_values_asked_for(source_and_facts: tuple[FactSource, set[Fact]]) -> None:
    source, facts = source_and_facts
    rows = rows_of(facts, FIELD)
    assert sorted(source.query(FIELD)) == rows
    for row in rows[:6]:
        for length in range(1, 5):
            for bound in product((False, True), repeat=length):
                asked = [value if fixed else None for value, fixed in zip(row[:length], bound, strict=True)]
                expected = [r for r in rows if all(v is None or v == r[i] for i, v in enumerate(asked))]
                assert sorted(source.query(FIELD, *asked)) == expected
    assert list(source.query(FIELD, "no such value")) == []


@pytest.mark.clause("030-FS-04")
def test_a_query_with_too_many_values_is_an_error(source_and_facts: tuple[FactSource, set[Fact]]) -> None:
    source, _ = source_and_facts
    with pytest.raises(InvalidLacegram, match="2 values"):
        list(source.query(HAVE, "a", "b"))
    with pytest.raises(InvalidLacegram, match="5 values"):
        source.query(FIELD, None, None, None, None, None)


@pytest.mark.clause("030-FS-08")
def test_an_unknown_predicate_is_empty(source_and_facts: tuple[FactSource, set[Fact]]) -> None:
    source, _ = source_and_facts
    for unknown in (Predicate("Nobody", 2), Predicate("Have", 2), Predicate("TransportEncrypted", 0)):
        assert list(source.iterate(unknown)) == []
        assert list(source.query(unknown)) == []
        assert source.count(unknown) == 0
