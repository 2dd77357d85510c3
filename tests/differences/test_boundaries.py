"""Where one way of comparing gives way to another, and what is not done because it need not be."""

from __future__ import annotations

import numpy as np
import pytest

from differences.sets import KEY, random_ids
from lace.differences import ids, tree
from lace.differences.ids import EMPTY, Ids, columnar, distinct, ids_of_bytes, ids_of_texts
from lace.differences.idset import IdSet, set_of
from lace.differences.keyed import U64, keyed_ids
from lace.differences.peel import Peeler
from lace.differences.setview import SetView, measured
from lace.differences.sketch import Symbols, sketch
from lace.differences.sketchsize import CompareLimits, first_symbols, may_pay, more_symbols
from lace.differences.sums import COUNTERS, agrees
from lace.differences.tree import UNKNOWN
from lace.differences.wire import decode_short_ids, decode_summary, decode_symbols, encode_short_ids
from lace.errors import InvalidText
from lace.notation import b64a
from lace.thresholds import DifferenceThresholds

ALL = random_ids(40, seed=71)
TEXTS = ALL.texts()
EVERY = CompareLimits()


def summed(count: int, ones: int, total: int = 0) -> U64:
    """A measure of so many ids, with each of the counters at `ones`."""
    return np.array([count, total, total, *[ones] * COUNTERS], np.uint64)


def refuse(*_: object, **__: object) -> None:
    raise AssertionError("this need not be asked")


# --- the choice ------------------------------------------------------------------------------------------------------


@pytest.mark.clause("070-CHOICE-01")
@pytest.mark.parametrize(
    ("ours", "theirs", "limits", "symbols"),
    [
        # Counters that differ by 3 in sets of equal size say that 36 ids differ: 24 symbols and 1.75 for each.
        (summed(30, 13), summed(30, 10, 1), EVERY, 87),
        (summed(30, 10), summed(30, 13, 1), EVERY, 87),
        (summed(29, 13), summed(30, 10, 1), EVERY, 0),  # more than 0.6 of 59
        (summed(30, 13), summed(30, 10, 1), CompareLimits(max_symbols=87), 87),
        (summed(30, 13), summed(30, 10, 1), CompareLimits(max_symbols=86), 0),
        (summed(30, 13), summed(30, 10, 1), CompareLimits(max_listed=18), 87),
        (summed(30, 13), summed(30, 10, 1), CompareLimits(max_listed=17), 0),
        (summed(30, 10), summed(30, 10, 1), EVERY, 25),  # something differs, though none seems to
        (summed(40, 15), summed(30, 10, 1), EVERY, 41),  # at least as many as the counts say
        (summed(30, 10), summed(40, 15, 1), EVERY, 41),
        (summed(30, 10), summed(30, 10), EVERY, 0),
        (summed(30, 13), summed(30, 10), EVERY, 0),  # counters are told modulo 2^16, sums decide
    ],
)
def test_what_two_summaries_lead_to(ours: U64, theirs: U64, limits: CompareLimits, symbols: int) -> None:
    assert first_symbols(ours, theirs, limits) == symbols


def test_sums_and_count_decide_whether_a_set_is_the_one_told() -> None:
    assert agrees(summed(30, 13, 5), summed(30, 10, 5))
    for word in range(3):
        other = summed(30, 13, 5)
        other[word] += np.uint64(1)
        assert not agrees(other, summed(30, 13, 5))


@pytest.mark.parametrize(
    ("mine", "other", "pays"),
    [(0, 0, True), (4, 1, True), (1, 4, True), (5, 1, False), (1, 5, False), (1, 0, False), (100, 100, True)],
)
def test_counts_alone_tell_whether_listings_cost_less(mine: int, other: int, pays: bool) -> None:
    assert may_pay(mine, other) is pays


@pytest.mark.parametrize(
    ("given", "most", "end"),
    [(0, 1000, 24), (24, 1000, 48), (48, 1000, 72), (50, 1000, 75), (100, 150, 150), (100, 120, 120), (100, 50, 100)],
)
def test_half_as_many_symbols_more_are_asked_for(given: int, most: int, end: int) -> None:
    assert more_symbols(given, CompareLimits(max_symbols=most)) == end


# --- ids -------------------------------------------------------------------------------------------------------------


def test_sets_that_do_not_change_are_handed_on_as_they_are() -> None:
    half = ALL.take(slice(0, 20))
    assert ALL.without(EMPTY) is ALL
    assert EMPTY.without(ALL) is EMPTY
    assert ALL.with_(EMPTY) is ALL
    assert EMPTY.with_(ALL) is ALL
    assert ALL.with_(half) is ALL
    assert ALL.without(half).with_(half).texts() == TEXTS
    assert ALL.nbytes == 33 * 40


@pytest.mark.parametrize("values", [[], [3], [3, 3], [4, 3], [3, 4, 3], [3, 3, 3]])
def test_distinct_values_are_sorted_and_each_once(values: list[int]) -> None:
    assert distinct(np.array(values, np.int64)).tolist() == sorted(set(values))


@pytest.mark.parametrize("count", [1, 4, 5, 12])
def test_ids_that_are_not_there_are_nowhere(count: int) -> None:
    strange = random_ids(count, seed=72)
    assert ALL.positions(strange).tolist() == [-1] * count
    assert EMPTY.positions(strange).tolist() == [-1] * count
    assert ALL.positions(EMPTY).tolist() == []
    assert not EMPTY.among(strange).any()


def test_one_text_is_read_once_and_many_are_not_kept() -> None:
    assert ids_of_texts(TEXTS[:1]) is ids_of_texts(TEXTS[:1])
    assert ids_of_texts(TEXTS[:2]) is not ids_of_texts(TEXTS[:2])
    with pytest.raises(InvalidText) as caught:
        ids_of_texts([TEXTS[0], "wrong", "wronger"])
    assert caught.value.found == "'wrong'"


def test_columns_hold_h3_ids_and_no_others() -> None:
    others = ["P.00.H4", f"{TEXTS[0]}\n{TEXTS[1]}", "", TEXTS[0][:-1]]
    assert columnar([TEXTS[0], *others, TEXTS[1]]) == TEXTS[:2]


def test_kept_ids_are_sorted_again_only_where_they_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = ALL.to_bytes()
    assert ids_of_bytes(kept[:33] + kept[:33] + kept[33:66]).texts() == TEXTS[:2]
    assert ids_of_bytes(kept[33:66] + kept[:33]).texts() == TEXTS[:2]
    with pytest.raises(InvalidText) as caught:
        ids_of_bytes(kept[:-1])
    assert caught.value.found == "1319 bytes"
    monkeypatch.setattr(ids, "sort_ids", refuse)
    assert ids_of_bytes(kept).texts() == TEXTS


def test_kept_ids_are_read_piece_by_piece() -> None:
    assert ids_of_bytes(ALL.to_bytes(), rows_at_once=7).texts() == TEXTS


# --- sets that change ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("held", "pending"), [(0, 4096), (100, 4096), (80_000, 5000)])
def test_changes_are_kept_beside_a_set_up_to_a_share_of_it(held: int, pending: int) -> None:
    base = random_ids(held, seed=73)
    went = min(held, 40)
    came = pending - went
    fresh = random_ids(pending + 1, seed=74)
    beside = set_of(base).change(fresh.take(slice(0, came)), base.take(slice(0, went)))
    assert beside.base is base
    assert (len(beside.added), len(beside.removed)) == (came, went)
    merged = beside.change(fresh.take(slice(came, came + 1)), EMPTY)
    assert merged.base is not base
    assert (len(merged.base), len(merged.added), len(merged.removed)) == (held + came + 1 - went, 0, 0)
    assert [found.texts() for found in merged.since(beside)] == [fresh.take(slice(came, came + 1)).texts(), []]


def test_neighbours_are_told_apart_without_looking_at_all_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    first = set_of(ALL.take(slice(0, 30)))
    second = first.change(ALL.take(slice(30, 33)), ALL.take(slice(0, 2)))
    third = second.change(ALL.take(slice(33, 34)), ALL.take(slice(30, 31)))
    assert first.change(EMPTY, EMPTY) is first
    monkeypatch.setattr(IdSet, "ids", refuse)
    assert second.step is not None
    assert second.since(first) == (second.step.came, second.step.went)
    assert [found is EMPTY for found in first.since(first)] == [True, True]
    came, went = third.since(first)
    assert came.texts() == TEXTS[31:34]
    assert went.texts() == TEXTS[:2]


def test_a_generation_is_near_the_one_before_if_little_changed() -> None:
    first = set_of(ALL.take(slice(0, 30)))
    second = first.change(ALL.take(slice(30, 33)), ALL.take(slice(0, 2)))
    third = second.change(ALL.take(slice(33, 34)), EMPTY)
    assert first.is_near(first, 0)
    assert second.is_near(first, 5)
    assert not second.is_near(first, 4)
    assert not first.is_near(second, 5)
    assert not third.is_near(first, 9)


def test_a_measure_of_a_set_asks_for_no_part_that_is_empty() -> None:
    asked: list[int] = []

    def count(part: Ids) -> U64:
        asked.append(len(part))
        return np.array([len(part)], np.uint64)

    held = set_of(ALL.take(slice(0, 30)))
    more, less = held.change(ALL.take(slice(30, 32)), EMPTY), held.change(EMPTY, ALL.take(slice(0, 3)))
    assert [int(one.linear(count)[0]) for one in (held, more, less)] == [30, 32, 27]
    assert asked == [30, 30, 2, 30, 3]


@pytest.mark.parametrize("count", [0, 1, 2, 12, 13, 40])
def test_ids_are_measured_one_by_one_as_in_columns(count: int) -> None:
    some = ALL.take(slice(0, count))
    by_column, one_by_one = (measured(some, KEY, DifferenceThresholds(scalar_sums=most)) for most in (0, 100))
    assert by_column.tolist() == one_by_one.tolist() == measured(some, KEY).tolist()
    assert int(by_column[0]) == count


def test_a_view_sums_up_only_if_asked() -> None:
    held = set_of(ALL)
    assert not SetView(held, KEY).measured.any()
    assert SetView(held, KEY, sums=True).measured.tolist() == measured(ALL, KEY).tolist()


def test_a_single_name_is_looked_for_like_many() -> None:
    for place in range(40):
        named = SetView(set_of(ALL), KEY).named(keyed_ids(ALL.take(slice(place, place + 1)), KEY).short)
        assert named is not None
        assert named.texts() == TEXTS[place : place + 1]
    assert SetView(set_of(ALL), KEY).named(np.array([2**64 - 1], np.uint64)) is None


@pytest.mark.parametrize("stale", [0, 1, 100, tree.PARTS])
def test_parts_cut_from_one_walk_are_those_cut_one_by_one(stale: int) -> None:
    held = set_of(ALL)
    known = UNKNOWN.of(held)
    parts = np.zeros(tree.PARTS, np.bool_)
    parts[:stale] = True
    for most in (0, tree.PARTS):
        found = tree.Tree(known.digests, parts).of(held, DifferenceThresholds(cut_parts=most))
        assert found.root() == known.root()
    assert known.of(held) is known


# --- sketches --------------------------------------------------------------------------------------------------------


def test_as_many_ids_as_symbols_may_be_a_difference() -> None:
    short = keyed_ids(ALL.take(slice(0, 1)), KEY).short
    for ours in (True, False):
        peeler = Peeler(KEY)
        mine, theirs = (short, short[:0]) if ours else (short[:0], short)
        found = peeler.give(sketch(mine, KEY, 0, 1).minus(sketch(theirs, KEY, 0, 1)))
        assert found is not None
        assert (len(found), peeler.found, peeler.symbols, peeler.is_hopeless) == (1, 1, 1, False)
        assert (found.mine if ours else found.theirs).tolist() == short.tolist()


def test_an_id_that_comes_twice_leaves_no_hope() -> None:
    """A symbol of one id that holds another as well, at a place which that one does not take."""
    short = keyed_ids(ALL.take(slice(0, 2)), KEY).short
    first, second = sketch(short[:1], KEY, 0, 40), sketch(short[1:], KEY, 0, 40)
    place = int(np.flatnonzero((first.counts == 0) & (second.counts == 1))[0])
    forged = first.plus(second)
    for column, added in zip(forged, first, strict=True):
        column[place : place + 1] += added[:1]
    peeler = Peeler(KEY)
    assert peeler.give(forged) is None
    assert peeler.is_hopeless
    assert not Peeler(KEY).is_hopeless


@pytest.mark.parametrize("start", [0, 1, 2, 7, 30])
def test_symbols_from_the_middle_are_those_of_the_whole(start: int) -> None:
    short = keyed_ids(ALL, KEY).short
    whole, part = sketch(short, KEY, 0, 40), sketch(short, KEY, start, 40)
    assert [column.tolist() for column in part] == [column[start:].tolist() for column in whole]
    assert len(sketch(short, KEY, 40, start)) == 0
    assert [column.tolist() for column in sketch(short[:0], KEY, start, 40)] == [[0] * (40 - start)] * 3


# --- texts -----------------------------------------------------------------------------------------------------------


def test_no_symbols_and_no_ids_are_no_texts() -> None:
    assert len(decode_symbols([], 3)) == 0
    assert decode_short_ids([]).tolist() == []
    assert list(encode_short_ids(np.zeros(0, np.uint64))) == []


@pytest.mark.parametrize(("values", "good"), [([5], True), ([5, 6], True), ([6, 5], False), ([5, 5], False)])
def test_short_ids_ascend(values: list[int], good: bool) -> None:
    texts = [b64a.encode(np.array(values, ">u8").tobytes())]
    if good:
        assert decode_short_ids(texts).tolist() == values
    else:
        with pytest.raises(InvalidText, match="not ascending"):
            decode_short_ids(texts)


@pytest.mark.parametrize(
    ("read", "found"),
    [
        (lambda: decode_symbols([("0", b64a.encode(bytes(25)))], 0), "25 bytes in a line"),
        (lambda: decode_symbols([("0", b64a.encode(bytes(13 * 57)))], 0), "741 bytes in a line"),
        (lambda: decode_symbols([("0", "")], 0), "0 bytes in a line"),
        (lambda: decode_symbols([("3", b64a.encode(bytes(26))), ("4", b64a.encode(bytes(13)))], 3), "'4'"),
        (lambda: decode_symbols([("03", b64a.encode(bytes(26)))], 3), "'03'"),
        (lambda: decode_short_ids([b64a.encode(bytes(9))]), "9 bytes in a line"),
        (lambda: decode_short_ids([b64a.encode(bytes(12))] * 2), "12 bytes in a line"),
        (lambda: decode_short_ids([b64a.encode(bytes(8 * 91))]), "728 bytes in a line"),
        (lambda: decode_short_ids([""]), "0 bytes in a line"),
        (lambda: decode_summary("1" * 19, "0" * 22, "0" * 64), f"{'1' * 19!r}"),
        (lambda: decode_summary("1" * 200, "0" * 22, "0" * 64), f"{'1' * 80!r}"),
    ],
)
def test_what_was_found_instead_is_said(read: object, found: str) -> None:
    with pytest.raises(InvalidText) as caught:
        read()  # type: ignore[operator]
    assert caught.value.found == found
    assert int(decode_summary("1" * 18, "0" * 22, "0" * 64)[0]) == int("1" * 18)


def test_counts_of_symbols_wrap() -> None:
    one = Symbols(np.array([200], np.uint8), np.array([2**64 - 1], np.uint64), np.array([2**32 - 1], np.uint32))
    assert [column.tolist() for column in one.plus(one)] == [[144], [2**64 - 2], [2**32 - 2]]
    assert [column.tolist() for column in one.minus(one)] == [[0], [0], [0]]
    assert [column.tolist() for column in one.then(one)] == [[200] * 2, [2**64 - 1] * 2, [2**32 - 1] * 2]
