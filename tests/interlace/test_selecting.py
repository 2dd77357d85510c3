"""Which of a peer's partitions are listed and which narrowed (050-LIST-11, P16), by sums that are worked out here.

A summary is 85 bytes and its prefix; a claim without fields is 74 bytes and the label of its source, here `Opq_s`: 79.
"""

from __future__ import annotations

import pytest

from interlace.scripted import limits_with
from lace.interlace.claims.advertisement import Advertisement, FieldClaim, ListingReader
from lace.interlace.claims.partitions import Partition
from lace.interlace.effects import SetHandle
from lace.interlace.loop.partitioned import Reconciliation, read_summaries
from lace.interlace.reasons import AbortReason, ProtocolAbort
from lace.interlace.setup.hello import FieldSchema
from lace.interlace.vocabulary import ADVERTISEMENT_PARTITION
from lace.notation import b64a
from lace.notation.digest import digest
from lace.notation.fact import Fact
from lace.notation.identifiers import RecordHash

mark = pytest.mark
LIST, NARROW = "ListAdvertisementPartition", "NarrowAdvertisementPartition"


def chosen(
    unknown: dict[tuple[str, int], int], source: str = "Opq_s", fields: frozenset[str] = frozenset(), **limits: int
) -> list[tuple[str, str]]:
    """What is done about partitions of so many records, of which so many are known: (word, prefix)."""
    reconciling = Reconciliation(SetHandle(0, 0), source, FieldSchema(fields), limits_with(**limits))
    reconciling.settle({Partition(prefix, count, "root"): known for (prefix, count), known in unknown.items()})
    return [(fact.predicate.name, fact.values[0]) for fact in reconciling.select()]


def word_for(count: int, known: int, source: str = "Opq_s", prefix: str = "ab", **limits: int) -> str:
    [(word, _)] = chosen({(prefix, count): known}, source, **limits)
    return word


@mark.clause("050-LIST-11")
@pytest.mark.parametrize(
    ("count", "known", "word"),
    [
        (128, 0, LIST),  # nothing is known there: every child would have to be listed
        # 128 claims are 10,112 bytes; 64 children are 5,568, and each that differs lists 2 claims, 158 bytes
        (128, 127, NARROW),
        (128, 128, NARROW),  # as many, but others: one child differs at least
        (128, 100, NARROW),  # 28 differ: 5,568 + 4,424 = 9,992
        (128, 99, LIST),  # 29 differ: 10,150
        (128, 156, NARROW),  # 28 more than the peer has
        (128, 157, LIST),
        (128, 1, LIST),  # at most 64 children can differ
        # below 65 records a child has one: 64 * 87 bytes of children are more than 64 * 79
        (64, 63, LIST),
        (2, 1, LIST),
        (71, 70, LIST),  # 5,568 + 79 * 71 / 64 = 5,656, and a listing 5,609
        (72, 71, NARROW),  # 5,657 and 5,688
    ],
)
def test_the_cheaper_way_is_chosen(count: int, known: int, word: str) -> None:
    assert word_for(count, known) == word


@mark.clause("050-LIST-11")
def test_of_two_ways_that_cost_the_same_the_listing_is_chosen() -> None:
    """A label of 13 bytes makes a claim 87, as long as a summary: 64 * 87 + 32 * 2 * 87 = 128 * 87."""
    assert word_for(128, 96, "Opq_123456789") == LIST
    assert word_for(128, 97, "Opq_123456789") == NARROW


@mark.clause("050-LIST-11")
@pytest.mark.parametrize(
    ("limit", "enough", "count"),
    [
        ("max_partition_summaries", 64, 101),  # so many children
        ("max_partition_summaries", 64, 640),
        ("max_fact_block_size", 5_568, 101),  # 64 lines of 87 bytes
    ],
)
def test_a_partition_too_long_to_list_is_narrowed_where_its_children_just_fit(
    limit: str, enough: int, count: int
) -> None:
    limits = {"max_advertisement_records_listed": 100, limit: enough}
    assert word_for(count, 0, **limits) == NARROW
    with pytest.raises(ProtocolAbort, match="more than any answer may hold") as error:
        word_for(count, 0, **{**limits, limit: enough - 1})
    assert error.value.reason is AbortReason.LOCAL_FAILURE
    assert error.value.limit == "max_advertisement_records_listed"


@mark.clause("050-LIST-11")
def test_prefixes_grow_to_the_agreed_depth_and_no_further() -> None:
    limits = {"max_advertisement_records_listed": 100, "max_narrowing_depth": 3}
    assert word_for(101, 0, prefix="abcd", **limits) == NARROW
    with pytest.raises(ProtocolAbort):
        word_for(101, 0, prefix="abcde", **limits)
    assert word_for(100, 0, prefix="abcde", **limits) == LIST


@mark.clause("050-LIST-11")
def test_a_partition_whose_claims_fill_a_block_is_listed_and_one_byte_less_narrows_it() -> None:
    assert word_for(100, 0, max_fact_block_size=7_900) == LIST
    assert word_for(100, 0, max_fact_block_size=7_899) == NARROW
    assert word_for(1, 0, max_fact_block_size=78) == LIST  # one record is always listed: nothing smaller is


@mark.clause("050-LIST-11")
def test_fields_make_claims_longer() -> None:
    """A line of a field may have 1,025 bytes: 10 records with two fields are 21,290."""
    fields = frozenset({"App", "Group"})
    assert chosen({("ab", 10): 0}, fields=fields, max_fact_block_size=21_290) == [(LIST, "ab")]
    assert chosen({("ab", 10): 0}, fields=fields, max_fact_block_size=21_289) == [(NARROW, "ab")]


@mark.clause("050-LIST-11", "050-PART-14")
def test_a_selection_asks_for_no_more_than_one_answer_may_hold() -> None:
    three = {("aa", 40): 0, ("bb", 40): 0, ("cc", 20): 0}
    assert chosen(three, max_advertisement_records_listed=100) == [(LIST, "aa"), (LIST, "bb"), (LIST, "cc")]
    assert chosen(three, max_advertisement_records_listed=99) == [(LIST, "aa"), (LIST, "bb")]
    assert chosen(three, max_advertisement_records_listed=79) == [(LIST, "aa"), (LIST, "cc")]
    assert chosen(three, max_fact_block_size=7_900) == [(LIST, "aa"), (LIST, "bb"), (LIST, "cc")]
    assert chosen(three, max_fact_block_size=7_899) == [(LIST, "aa"), (LIST, "bb")]


@mark.clause("050-LIST-11", "050-PART-14")
def test_children_that_were_asked_for_take_their_room_from_the_others() -> None:
    two = {("aa", 200): 200, ("bb", 200): 200}
    assert chosen(two, max_partition_summaries=128) == [(NARROW, "aa"), (NARROW, "bb")]
    assert chosen(two, max_partition_summaries=127) == [(NARROW, "aa"), (LIST, "bb")]
    # 64 lines of 87 bytes each, or 200 of 79
    assert chosen(two, max_fact_block_size=11_136 + 15_800) == [(NARROW, "aa"), (NARROW, "bb")]
    assert chosen({("aa", 200): 200, ("bb", 9): 0}, max_fact_block_size=15_800) == [(NARROW, "aa"), (LIST, "bb")]


ROOT_TEXT = b64a.encode(bytes(32))


@mark.clause("050-PART-04", "050-LIST-07")
def test_a_summary_of_the_shortest_prefix_and_of_longer_ones_is_read() -> None:
    for prefix in ("ab", "abc", "abcd"):
        fact = Fact(ADVERTISEMENT_PARTITION, (prefix, "1", ROOT_TEXT))
        assert read_summaries([fact, fact], None) == [Partition(prefix, 1, ROOT_TEXT)]
        assert read_summaries([fact], len(prefix)) == [Partition(prefix, 1, ROOT_TEXT)]
        with pytest.raises(ProtocolAbort, match="prefix"):
            read_summaries([fact], len(prefix) + 1)
    for prefix in ("", "a", "a!"):
        with pytest.raises(ProtocolAbort, match="prefix"):
            read_summaries([Fact(ADVERTISEMENT_PARTITION, (prefix, "1", ROOT_TEXT))], None)


@mark.clause("050-LIST-07")
def test_of_several_summaries_the_one_that_is_wrong_is_named() -> None:
    good, bad = (
        Fact(ADVERTISEMENT_PARTITION, (prefix, count, ROOT_TEXT)) for prefix, count in (("ab", "1"), ("cd", "0"))
    )
    for facts in ([good, bad], [bad, good]):
        with pytest.raises(ProtocolAbort, match="count '0' of cd"):
            read_summaries(facts, None)


@mark.clause("050-ADVF-06")
def test_nobody_lists_records_or_their_fields_as_another_source() -> None:
    record = str(RecordHash.of("P", digest(b"")))
    reader = ListingReader("Opq_s", None, 10)
    with pytest.raises(ProtocolAbort, match="source 'Opq_t'") as error:
        reader.add_records([record], "Opq_t")
    assert error.value.reason is AbortReason.MALFORMED_FACT_BLOCK
    reader.add_records([record], "Opq_s")
    with pytest.raises(ProtocolAbort, match="source 'Opq_t'"):
        reader.add_field([record, "Opq_t", "App", "0", "notes"])
    reader.add_field([record, "Opq_s", "App", "0", "notes"])
    assert list(reader.finish()) == [Advertisement(RecordHash(record), (FieldClaim("App", "0", "notes"),))]
