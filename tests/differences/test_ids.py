"""Ids as columns, and sets of them that change."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from differences.sets import KEY, random_ids
from lace.differences.ids import (
    EMPTY,
    Ids,
    ids_of_bytes,
    ids_of_digests,
    ids_of_lines,
    ids_of_texts,
    in_text_order,
    sort_ids,
    unsorted_ids,
)
from lace.differences.idset import IdSet, set_of
from lace.differences.keyed import keyed_ids
from lace.differences.scalarsums import measure_few
from lace.differences.setview import measured
from lace.differences.sums import measure
from lace.errors import InvalidText
from lace.notation import b64a

ALL = random_ids(64, seed=1)
TEXTS = ALL.texts()
LETTER = np.frombuffer(b"P", np.uint8)


def test_texts_become_columns_and_texts_again() -> None:
    assert ids_of_texts(TEXTS).texts() == TEXTS
    assert ids_of_texts(reversed(TEXTS + TEXTS[:5])).texts() == TEXTS
    assert ids_of_texts([]).texts() == []


@pytest.mark.parametrize("at_a_time", [1, 7, 64])
def test_lines_become_the_columns_that_texts_become(at_a_time: int) -> None:
    shuffled = TEXTS[::-3] + TEXTS
    pieces = ["".join(f"{text}\n" for text in shuffled[at : at + at_a_time]) for at in range(0, 86, at_a_time)]
    assert ids_of_lines((piece.encode() for piece in [*pieces, ""]), len(shuffled)).texts() == TEXTS
    with pytest.raises(InvalidText, match=r"not an H3 record id"):
        ids_of_lines([pieces[0].encode(), b"P.short.H3\n"], at_a_time + 1)


def test_columns_stand_in_the_order_of_digest_bytes_then_letters() -> None:
    same = [f"{letter}.{b64a.encode(bytes(32))}.H3" for letter in "SBP"]
    texts = ids_of_texts([*same, *TEXTS]).texts()
    assert texts == sorted(texts, key=lambda text: (b64a.decode(text[2:45]), text[0]))
    assert texts[:3] == [same[1], same[2], same[0]]


@pytest.mark.parametrize(
    "text",
    [
        "P.short.H3",
        TEXTS[0][:-1] + "4",
        "X" + TEXTS[0][1:],
        TEXTS[0][:44] + "1" + TEXTS[0][45:],
        TEXTS[0] + "\n",
        TEXTS[0][:20] + "+" + TEXTS[0][21:],  # a symbol of the standard alphabet
        TEXTS[0][:20] + "=" + TEXTS[0][21:],
        TEXTS[0][:20] + "é" + TEXTS[0][21:],
        TEXTS[0][:1] + "-" + TEXTS[0][2:],
        TEXTS[0][:20] + "\n" + TEXTS[0][21:],
        "",
    ],
)
def test_what_is_no_exact_h3_id_is_refused(text: str) -> None:
    with pytest.raises(InvalidText):
        ids_of_texts([*TEXTS[:3], text])


def test_kept_bytes_are_read_back_and_broken_ones_refused() -> None:
    assert ids_of_bytes(ALL.to_bytes()).texts() == TEXTS
    kept = ALL.to_bytes()
    backwards = b"".join(kept[at : at + 33] for at in range(len(kept) - 33, -1, -33))
    assert ids_of_bytes(memoryview(backwards)).texts() == TEXTS
    assert len(ids_of_bytes(kept + kept)) == len(TEXTS)
    assert len(ids_of_bytes(b"")) == 0
    with pytest.raises(InvalidText):
        ids_of_bytes(ALL.to_bytes()[:-1])
    with pytest.raises(InvalidText):
        ids_of_bytes(ALL.to_bytes()[:-1] + b"X")


def test_ids_that_share_their_first_words_are_found_one_by_one() -> None:
    """Somebody who grinds digests can make their beginnings alike."""
    words = random_ids(6, seed=2).words.copy()
    words[:3] = words[:3, :1]
    twins = sort_ids(words, random_ids(6, seed=2).letters)
    assert len(twins) == 6
    assert list(twins.positions(twins)) == list(range(6))
    assert not twins.take(slice(0, 3)).among(twins.take(slice(3, 6))).any()


some = st.sets(st.integers(0, 63))


def chosen(which: set[int]) -> Ids:
    return ids_of_texts(TEXTS[i] for i in which)


@given(st.lists(st.tuples(some, some), max_size=8))
def test_a_set_that_changes_is_the_set_python_would_have(changes: list[tuple[set[int], set[int]]]) -> None:
    held, expected = IdSet(), set[int]()
    generations = [(held, set(expected))]
    for added, removed in changes:
        held = held.change(chosen(added), chosen(removed))
        expected = (expected - removed) | added
        generations.append((held, set(expected)))
    for generation, members in generations:  # a snapshot is the set itself: later changes do not reach it
        assert generation.ids().texts() == chosen(members).texts()
        assert len(generation) == len(members)
        assert [bool(found) for found in generation.among(ALL)] == [i in members for i in range(64)]


@given(some, some, some, some)
def test_what_came_and_went_between_two_generations(
    first: set[int], second: set[int], c: set[int], d: set[int]
) -> None:
    earlier = set_of(chosen(first)).change(chosen(c), chosen(d))
    later = earlier.change(chosen(second), chosen(first - second))
    merged = set_of(later.ids())
    for now in (later, merged):
        came, went = now.since(earlier)
        before, after = set(earlier.ids().texts()), set(now.ids().texts())
        assert set(came.texts()) == after - before
        assert set(went.texts()) == before - after


def test_many_changes_are_merged_and_few_are_not() -> None:
    base = random_ids(100_000, seed=3)
    held = set_of(base)
    few = held.change(random_ids(10, seed=4), base.take(slice(0, 5)))
    assert few.base is base
    assert len(few) == 100_005
    many = held.change(random_ids(10_000, seed=5), EMPTY)
    assert many.base is not base
    assert len(many.added) == 0
    assert len(many) == 110_000


def test_a_change_that_changes_nothing_is_the_same_generation() -> None:
    held = set_of(ALL)
    assert held.change(ALL, EMPTY) is held
    assert held.change(EMPTY, random_ids(5, seed=9)) is held
    assert held.change(ALL, ALL) is held


CHANGES = st.lists(st.tuples(st.sets(st.integers(0, 63)), st.sets(st.integers(0, 63))), max_size=5)


@given(st.sets(st.integers(0, 63)), CHANGES)
def test_what_changed_between_two_generations_is_what_their_ids_say(
    start: set[int], changes: list[tuple[set[int], set[int]]]
) -> None:
    history = [set_of(ids_of_texts(TEXTS[n] for n in start))]
    for came, went in changes:
        history.append(history[-1].change(*(ids_of_texts(TEXTS[n] for n in chosen) for chosen in (came, went))))
    for now in history:
        for then in history:
            found = [ids.texts() for ids in now.since(then)]
            have, had = set(now.ids().texts()), set(then.ids().texts())
            assert found == [sorted(have - had, key=TEXTS.index), sorted(had - have, key=TEXTS.index)]


@given(st.sets(st.integers(0, 63)), CHANGES)
def test_partitions_that_are_not_empty_are_counted_whatever_came_and_went(
    start: set[int], changes: list[tuple[set[int], set[int]]]
) -> None:
    held = set_of(ids_of_texts(TEXTS[n] for n in start))
    for came, went in changes:
        held = held.change(*(ids_of_texts(TEXTS[n] for n in chosen) for chosen in (came, went)))
    assert held.partition_count() == len({text[2:4] for text in held.ids().texts()})


def test_ids_that_share_their_first_word_are_put_in_order_among_others() -> None:
    same = [ids_of_digests(np.frombuffer(bytes(31) + bytes([n]), np.uint8).reshape(1, 32), LETTER) for n in (1, 2, 3)]
    assert (
        ALL.with_(same[2]).with_(same[0]).with_(same[1]).texts()
        == same[0].with_(same[1]).with_(same[2]).with_(ALL).texts()
    )


@given(st.integers(0, 24), st.integers(0, 1 << 32))
@pytest.mark.clause("070-SUM-01", "070-EST-01", "070-KEY-02")
def test_a_few_ids_measure_what_columns_of_them_measure(count: int, seed: int) -> None:
    ids = random_ids(count, seed)
    assert measure_few(ids, KEY).tolist() == measure(keyed_ids(ids, KEY)).tolist() == measured(ids, KEY).tolist()


@given(st.lists(st.sampled_from(range(64)), max_size=6), st.integers(0, 64))
def test_few_ids_are_found_where_many_are(chosen: list[int], held: int) -> None:
    here, wanted = ALL.take(slice(0, held)), ids_of_texts([TEXTS[number] for number in chosen])
    assert here.positions(wanted).tolist() == [n if n < held else -1 for n in sorted(set(chosen))]


def test_ids_that_share_their_first_word_are_told_apart_one_by_one() -> None:
    rows = np.zeros((6, 32), np.uint8)
    rows[:, 31] = [0, 1, 2, 3, 4, 4]
    ids = ids_of_digests(rows, np.frombuffer(b"PPPPPS", np.uint8))
    for place in range(6):
        one = ids.take(slice(place, place + 1))
        assert ids.positions(one).tolist() == [place]
        assert EMPTY.positions(one).tolist() == [-1]
        others = np.arange(6) != place
        assert ids.take(others).positions(one).tolist() == [-1]


def test_ids_in_the_order_of_their_texts_stand_by_letter_first() -> None:
    ids = random_ids(50, seed=81)
    assert len({text[0] for text in ids.texts()}) == 3
    assert in_text_order(ids).texts() == sorted(ids.texts())
    assert in_text_order(EMPTY) is EMPTY
    of_one = ids.take(ids.letters == ord("P"))
    assert in_text_order(of_one) is of_one


def test_ids_that_begin_alike_are_sorted_by_every_further_word() -> None:
    """Somebody who grinds hashes makes the first words alike: then the others decide, one after the other."""
    rows = [(7, *rest, letter) for rest in product((1, 2), repeat=3) for letter in b"BP"]
    mixed = [rows[at * 7 % len(rows)] for at in range(len(rows))] + rows[:3]
    table = np.array(mixed, np.uint64)
    found = sort_ids(np.ascontiguousarray(table[:, :4].T), table[:, 4].astype(np.uint8))
    assert [(*found.words[:, at].tolist(), int(found.letters[at])) for at in range(len(found))] == rows


def test_ids_for_sums_keep_the_order_they_are_given_in() -> None:
    mixed = [TEXTS[at * 7 % len(TEXTS)] for at in range(len(TEXTS))]
    found = unsorted_ids("".join(mixed).encode())
    assert found.texts() == mixed
    assert measured(found, KEY).tolist() == measured(ALL, KEY).tolist()
    assert len(unsorted_ids(b"")) == 0
