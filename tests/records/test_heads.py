"""Which versions of a file are heads (082): compared with the sentences of the document, in any order of coming."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lace.records.heads import heads_of


@dataclass(frozen=True)
class V:
    hash: str
    tai: str
    bases: tuple[str, ...] | None = None
    meaning: object = "x"
    signer: str | None = None


def hashes(versions: list[V]) -> list[str]:
    """The newest of each group that counts."""
    together = heads_of(versions)
    counted = [group for group in together if group[0].meaning is not None] or together
    return [group[0].hash for group in counted]


@pytest.mark.clause("082-BASE-02", "082-HEAD-01")
def test_a_version_without_a_base_takes_the_place_of_all_before_it() -> None:
    old, other = V("a", "1", meaning="1"), V("b", "2", meaning="2", bases=("zz",))
    assert hashes([old, other]) == ["b", "a"]
    assert hashes([old, other, V("c", "2", meaning="3")]) == ["c"]
    assert hashes([V("c", "1"), other, old]) == ["b", "c"]


@pytest.mark.clause("082-BASE-03", "082-HEAD-04")
def test_two_who_had_the_same_version_before_them_are_in_conflict_until_somebody_names_both() -> None:
    base = V("a", "1", meaning="1")
    one, two = V("b", "2", ("a",), "2"), V("c", "3", ("a",), "3")
    assert hashes([base, one, two]) == ["c", "b"]
    assert hashes([base, one, two, V("d", "4", ("b",), "4")]) == ["d", "c"]
    assert hashes([base, one, two, V("d", "4", ("b", "c"), "4")]) == ["d"]


@pytest.mark.clause("082-HEAD-02")
def test_heads_that_mean_the_same_count_as_one() -> None:
    assert hashes([V("a", "1", ("z",), "m"), V("b", "2", ("z",), "m")]) == ["b"]


@pytest.mark.clause("082-HEAD-03")
def test_an_edit_outlives_a_deletion_that_did_not_know_it() -> None:
    base, gone = V("a", "1"), V("c", "3", ("a",), None)
    assert hashes([base, gone]) == ["c"]
    assert hashes([base, V("b", "2", ("a",), "edit"), gone]) == ["b"]
    assert hashes([base, V("b", "2", ("a",), "edit"), V("d", "4", None, None)]) == ["d"]


bases = st.none() | st.sets(st.integers(0, 9), max_size=3)
one_version = st.tuples(st.integers(0, 9), bases, st.sampled_from([None, 1, 2]))


@pytest.mark.clause("082-BASE-04")
@given(st.lists(one_version, max_size=9), st.randoms())
def test_heads_are_what_nothing_takes_the_place_of(
    rows: list[tuple[int, set[int] | None, object]], random: Random
) -> None:
    versions = [
        V(f"h{n}", f"{tai}", None if bases is None else tuple(f"h{b}" for b in bases if b < n), meaning)
        for n, (tai, bases, meaning) in enumerate(rows)
    ]

    def takes(w: V, v: V) -> bool:
        return (v.tai, v.hash) < (w.tai, w.hash) and (w.bases is None or v.hash in w.bases)

    found = heads_of(versions)
    shuffled = list(versions)
    random.shuffle(shuffled)
    assert heads_of(shuffled) == found
    left = {v for v in versions if not any(takes(w, v) for w in versions)}
    assert {v for group in found for v in group} == left
    assert bool(found) is bool(versions)
    assert all(len({v.meaning for v in group}) == 1 for group in found)
