"""What is listed, summarised, selected and narrowed, at the bounds where it is decided otherwise (050, P14, P16)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from interlace.deciding import RECORDS, ROOT, SOURCE, reason_of
from lace.interlace.claims.advertisement import (
    bare_claims,
)
from lace.interlace.claims.partitions import Partition
from lace.interlace.effects import SetHandle
from lace.interlace.inputs import Evaluated
from lace.interlace.loop.listingsize import RECORD_BYTES, SUMMARY_BYTES, measured_bytes, uses_partitions
from lace.interlace.loop.partitioned import Offers, Reconciliation, read_summaries
from lace.interlace.setup.hello import (
    NO_FIELDS,
    FieldSchema,
)
from lace.interlace.vocabulary import (
    ADVERTISEMENT_PARTITION,
    LIST_PARTITION,
    NARROW_PARTITION,
)
from lace.limits import ExchangeLimits
from lace.notation.fact import Fact, Predicate

# --- which partitions are listed and which narrowed ------------------------------------------------------------------


def selected(
    unknown: Sequence[tuple[str, int, int]], schema: FieldSchema = NO_FIELDS, **limits: int
) -> tuple[list[str], list[str]]:
    """Prefix, the peer's count and ours of each: the prefixes that are listed, and those that are narrowed."""
    reconciliation = Reconciliation(SetHandle(0, 0), SOURCE, schema, ExchangeLimits(**limits))
    offered = [Partition(prefix, count, ROOT) for prefix, count, _ in unknown]
    reconciliation.offer(offered)
    reconciliation.settle({one: known for one, (_, _, known) in zip(offered, unknown, strict=True)})
    facts = reconciliation.select()
    assert all(predicate in (LIST_PARTITION, NARROW_PARTITION) for predicate, _ in facts)
    listed, narrowed = ([p for q, (p,) in facts if q == which] for which in (LIST_PARTITION, NARROW_PARTITION))
    return listed, narrowed


BARE = RECORD_BYTES + len(SOURCE)  # a claim without fields


@pytest.mark.clause("050-LIST-11", "050-PART-17")
@pytest.mark.parametrize(
    ("unknown", "limits", "expected"),
    [
        # nothing known: children would be listed all the same
        ([("00", 64, 0)], {}, (["00"], [])),
        ([("00", 1000, 0)], {}, (["00"], [])),
        # one of many differs: a summary of each child, and the listing of one
        ([("00", 1000, 999)], {}, ([], ["00"])),
        ([("00", 1000, 1001)], {}, ([], ["00"])),
        ([("00", 1000, 1000)], {}, ([], ["00"])),
        # all children differ
        ([("00", 1000, 936)], {}, (["00"], [])),
        ([("00", 1000, 1064)], {}, (["00"], [])),
        # of few records summaries cost more than they save
        ([("00", 2, 1)], {}, (["00"], [])),
        ([("00", 1, 1)], {}, (["00"], [])),
        # what no answer can hold is narrowed, whatever is known
        ([("00", 11, 0)], {"max_advertisement_records_listed": 10}, ([], ["00"])),
        ([("00", 10, 0)], {"max_advertisement_records_listed": 10}, (["00"], [])),
        # as many records as an answer holds, the others later
        ([("00", 6, 0), ("01", 4, 0), ("02", 1, 0)], {"max_advertisement_records_listed": 10}, (["00", "01"], [])),
        ([("02", 1, 0), ("00", 6, 0), ("01", 5, 0)], {"max_advertisement_records_listed": 10}, (["00", "02"], [])),
        # by bytes
        ([("00", 3, 0), ("01", 1, 0)], {"max_fact_block_size": 4 * BARE}, (["00", "01"], [])),
        ([("00", 3, 0), ("01", 2, 0)], {"max_fact_block_size": 4 * BARE}, (["00"], [])),
        ([("00", 1, 0)], {"max_fact_block_size": 8}, (["00"], [])),  # one record is always asked for
        # narrowing has a depth, and both sides a bound of summaries
        ([("00", 1000, 999)], {"max_narrowing_depth": 0}, (["00"], [])),
        ([("00", 1000, 999)], {"max_narrowing_depth": 1}, ([], ["00"])),
        ([("00", 1000, 999)], {"max_partition_summaries": 65}, ([], ["00"])),
        ([("00", 1000, 999)], {"max_partition_summaries": 64}, (["00"], [])),
        ([("00", 1000, 999), ("01", 1000, 999)], {"max_partition_summaries": 130}, ([], ["00", "01"])),
        ([("00", 1000, 999), ("01", 1000, 999)], {"max_partition_summaries": 129}, (["01"], ["00"])),
        ([("00", 20, 19)], {"max_partition_summaries": 21}, (["00"], [])),
        # 64 children of a prefix of two symbols take 64 * (85 + 2) bytes
        ([("00", 1000, 999)], {"max_fact_block_size": 64 * (SUMMARY_BYTES + 2)}, ([], ["00"])),
        (
            [("00", 1000, 999), ("01", 1000, 0)],
            {"max_fact_block_size": 64 * (SUMMARY_BYTES + 2) + 1000 * BARE},
            (["01"], ["00"]),
        ),
        (
            [("00", 1000, 999), ("01", 1000, 0)],
            {"max_fact_block_size": 64 * (SUMMARY_BYTES + 2) + 1000 * BARE - 1},
            ([], ["00"]),
        ),
        ([], {}, ([], [])),
    ],
)
def test_a_selection_learns_what_is_unknown_at_the_least_cost(
    unknown: list[tuple[str, int, int]], limits: dict[str, int], expected: tuple[list[str], list[str]]
) -> None:
    assert selected(unknown, **limits) == expected


def test_fields_make_a_listing_longer() -> None:
    """Each field may take the longest line; of all fields sixteen are expected."""
    for names, lines in ((frozenset[str](), 0), (frozenset({"Group", "App"}), 2), (None, 16)):
        size = 2 * (BARE + lines * 1025)
        assert selected([("00", 2, 0)], FieldSchema(names), max_fact_block_size=size) == (["00"], [])
        if lines:
            assert selected([("00", 2, 0)], FieldSchema(names), max_fact_block_size=size - 1) == ([], ["00"])


def test_a_partition_that_no_answer_can_hold_is_told_with_its_size() -> None:
    most = {"max_advertisement_records_listed": 2, "max_narrowing_depth": 0}
    said = reason_of(lambda: selected([("01", 3, 0), ("00", 4, 0)], **most))
    assert said == "partition 00 has 4 records, more than any answer may hold"


def test_what_was_selected_is_owed_once() -> None:
    reconciliation = Reconciliation(SetHandle(7, 0), SOURCE, NO_FIELDS, ExchangeLimits(max_partition_summaries=70))
    whole, part = Partition("00", 1000, ROOT), Partition("01", 2, ROOT)
    assert reconciliation.offer([whole, part]).offered == [whole, part]
    reconciliation.settle({whole: 999, part: 0})
    assert len(reconciliation.select()) == 2
    children = [Partition("000", 600, ROOT), Partition("001", 400, ROOT)]
    answer = reconciliation.answer(bare_claims(RECORDS[:2]), children)
    assert (answer.own.number, answer.parents, answer.listed) == (7, ["00"], [part])
    assert (answer.offered, list(answer.claims)) == (children, bare_claims(RECORDS[:2]))
    assert reconciliation.select() == []
    again = reconciliation.answer([], [])
    assert (again.parents, again.listed) == ([], [])


@pytest.mark.clause("050-PART-18", "050-LIM-04", "050-LIST-09")
@pytest.mark.parametrize(
    ("children", "said"),
    [
        ([("010", 1000)], "010 was not asked for"),
        ([("000", 500), ("000", 500)], "two summaries of one child of 00"),
        ([("000", 999)], "the children of 00 do not add up to 1000"),
        ([("000", 1001)], "the children of 00 do not add up to 1000"),
        ([], "the children of 00 do not add up to 1000"),
        ([(f"00{symbol}", 1) for symbol in "0123456789a"], "more than 11 summaries in a loop"),
    ],
)
def test_an_answer_is_the_children_that_were_asked_for(children: list[tuple[str, int]], said: str) -> None:
    count, most = (1000, 65) if len(children) < 11 else (10, 11)
    limits = ExchangeLimits(max_partition_summaries=most, max_advertisement_records_listed=5)
    reconciliation = Reconciliation(SetHandle(0, 0), SOURCE, NO_FIELDS, limits)
    whole = Partition("00", count, ROOT)
    reconciliation.offer([whole])
    reconciliation.settle({whole: 0})
    assert reconciliation.select() == [Fact(NARROW_PARTITION, ("00",))]
    assert reason_of(lambda: reconciliation.answer([], [Partition(p, n, ROOT) for p, n in children])) == said


def test_summaries_are_counted_over_a_whole_loop() -> None:
    offered = [Partition(prefix, 1, ROOT) for prefix in ("00", "01", "02")]
    exact, short = (
        Reconciliation(SetHandle(0, 0), SOURCE, NO_FIELDS, ExchangeLimits(max_partition_summaries=most))
        for most in (3, 2)
    )
    assert exact.offer(offered).offered == offered
    assert reason_of(lambda: short.offer(offered)) == "more than 2 summaries in a loop"
    twice = [Partition("00", 1, ROOT), Partition("00", 2, ROOT)]
    fresh = Reconciliation(SetHandle(0, 0), SOURCE, NO_FIELDS, ExchangeLimits())
    assert reason_of(lambda: fresh.offer(twice)) == "two summaries of one prefix"


def summary(prefix: str, count: str, root: str) -> Fact:
    return Fact(ADVERTISEMENT_PARTITION, (prefix, count, root))


@pytest.mark.clause("050-LIST-07", "050-PART-04")
@pytest.mark.parametrize("length", [2, None])
def test_summaries_are_read_line_by_line(length: int | None) -> None:
    good = [summary("00", "1", ROOT), summary("~z", "9" * 40, ROOT), summary("00", "1", ROOT)]
    expected = [Partition("00", 1, ROOT), Partition("~z", int("9" * 40), ROOT)]
    assert read_summaries(good, length) == expected
    assert read_summaries([], length) == []
    bad = {
        summary("0", "1", ROOT): "prefix '0'",
        summary("0.", "1", ROOT): "prefix '0.'",
        summary("00", "0", ROOT): "count '0' of 00",
        summary("00", "01", ROOT): "count '01' of 00",
        summary("00", "1" * 41, ROOT): f"count '{'1' * 41}' of 00",
        summary("00", "", ROOT): "count '' of 00",
        summary("00", "1", ROOT[1:]): f"root '{ROOT[1:]}' of 00",
        summary("00", "1", ROOT[1:] + "1"): f"root '{ROOT[1:]}1' of 00",
        summary("00", f"1 {ROOT}\n00 1", ROOT): f"count '1 {ROOT}\\n00 1' of 00",
    }
    for fact, said in bad.items():
        assert reason_of(lambda fact=fact: read_summaries([*good, fact], length)) == said  # type: ignore[misc]
    long = summary("000", "1", ROOT)
    if length is None:
        assert read_summaries([long], None) == [Partition("000", 1, ROOT)]
    else:
        assert reason_of(lambda: read_summaries([long], length)) == "prefix '000'"


# --- our own advertisement -------------------------------------------------------------------------------------------


@pytest.mark.clause("050-LIST-10", "050-LIM-02", "050-LIM-03")
@pytest.mark.parametrize(
    ("count", "size", "partitions", "agreed", "expected"),
    [
        (10, 1000, 4, True, False),
        (10, 1001, 4, True, True),  # over the threshold
        (10, 1001, 4, False, False),
        (10, 1001, 11, True, False),  # summaries that do not fit
        (10, 2000, 11, True, False),
        (10, 2001, 4, True, True),
        (11, 900, 4, True, True),  # more records than may be listed
        (11, 900, 10, True, True),
        (10, 2001, 4, False, "2001 bytes passes max_fact_block_size, and no partitions are agreed"),
        (10, 2001, 11, True, "2001 bytes passes max_fact_block_size, and its 11 partitions are too many"),
        (11, 900, 4, False, "11 records passes max_advertisement_records_listed, and no partitions are agreed"),
        (0, 0, 0, True, False),
    ],
)  # fmt: skip
def test_a_listing_is_summarised_where_it_is_long_or_not_allowed(
    count: int, size: int, partitions: int, agreed: bool, expected: bool | str
) -> None:
    limits = ExchangeLimits(max_fact_block_size=2000, max_advertisement_records_listed=10, max_partition_summaries=10)
    found = Evaluated(own=SetHandle(1, count), partitions=partitions, listing_bytes=size)

    def ask() -> bool:
        return uses_partitions(found, limits, agreed=agreed, threshold_bytes=1000)

    if isinstance(expected, str):
        assert reason_of(ask) == f"our listing of {expected}"
    else:
        assert ask() is expected


@pytest.mark.parametrize(
    ("limits", "agreed", "expected"),
    [
        ({}, True, 1000),
        ({}, False, 64 << 20),
        ({"max_partition_summaries": 4096}, True, 1000),
        ({"max_partition_summaries": 4095}, True, 64 << 20),
        ({"max_fact_block_size": 4096 * SUMMARY_BYTES}, True, 1000),
        ({"max_fact_block_size": 4096 * SUMMARY_BYTES - 1}, True, 4096 * SUMMARY_BYTES - 1),
        ({"max_fact_block_size": 10}, False, 1000),
    ],
)
def test_a_listing_is_measured_as_far_as_it_decides(limits: dict[str, int], agreed: bool, expected: int) -> None:
    assert measured_bytes(ExchangeLimits(**limits), agreed=agreed, threshold_bytes=1000) == expected


@pytest.mark.clause("050-PART-19", "050-LIM-05", "050-LIM-03", "050-LIM-04")
def test_an_offer_is_chosen_once_and_within_the_limits() -> None:
    limits = ExchangeLimits(max_partition_summaries=4, max_narrowing_depth=1, max_advertisement_records_listed=5)

    def offers() -> Offers:
        made = Offers(limits)
        made.offer([Partition("00", 3, ROOT), Partition("01", 2, ROOT)])
        made.offer([Partition("000", 1, ROOT), Partition("02", 1, ROOT)])
        return made

    def choose(*chosen: tuple[Predicate, str]) -> Callable[[], object]:
        return lambda: offers().answer([Fact(predicate, (prefix,)) for predicate, prefix in chosen])

    both = offers().answer(
        [Fact(LIST_PARTITION, ("00",)), Fact(NARROW_PARTITION, ("01",)), Fact(LIST_PARTITION, ("00",))]
    )
    assert (both.listed, both.narrowed) == (["00"], ["01"])
    assert choose((LIST_PARTITION, "00"), (LIST_PARTITION, "01"))()
    assert reason_of(choose((LIST_PARTITION, "00"), (LIST_PARTITION, "01"), (LIST_PARTITION, "000"))) == (
        "the peer selected 6 records at once"
    )
    assert reason_of(choose((LIST_PARTITION, "03"))) == "partition '03' is not on offer"
    assert reason_of(choose((LIST_PARTITION, "00"), (NARROW_PARTITION, "00"))) == "partition '00' is not on offer"
    assert reason_of(choose((NARROW_PARTITION, "000"))) == "partition '000' is as narrow as agreed"
    full = offers()
    assert reason_of(lambda: full.offer([Partition("03", 1, ROOT)])) == (
        "the peer's narrowing would need more than 4 summaries"
    )
