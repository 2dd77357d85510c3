"""One moment of what may be sent: what is made for one link is there for all."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlace.pair import plex
from lace.differences.ids import EMPTY, ids_of_texts
from lace.differences.idset import set_of
from lace.interlace.claims.advertisement import Advertisement, FieldClaim
from lace.interlace.claims.partitions import AdvertisementSet, Partition, Parts, summarise
from lace.interlace.claims.peerclaims import PeerClaims
from lace.interlace.effects import TakeClaims
from lace.interlace.host import Call
from lace.records.validate import validate
from lace.runtime.rules.generation import Generation
from tries import tries

RECORDS = sorted(str(validate(plex(f"n/{number}")).hash) for number in range(30))
SOURCES = ("Opq_s", "Opq_other")


class Made:
    """Advertisements with a field of some length, and how often each was made."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, records: Iterable[str]) -> list[Advertisement]:
        wanted = sorted(records)
        self.asked += wanted
        return [Advertisement(record, (FieldClaim("Name", "0", "x" * RECORDS.index(record)),)) for record in wanted]


def test_an_advertisement_is_made_once_for_all_links() -> None:
    made = Made()
    own = Generation(0, set_of(EMPTY), made, 1024).then(RECORDS[:5], [])
    first = own.some(RECORDS[3:1:-1])
    assert own.some(RECORDS[2:4]) == first == sorted(first)
    assert own.some(RECORDS[2:5])[:2] == first
    assert sorted(made.asked) == RECORDS[2:5]


def test_of_links_that_ask_for_roots_at_once_one_works_them_out() -> None:
    own = Generation(0, set_of(EMPTY), Made(), 1024).then(RECORDS, [])
    expected = Generation(0, set_of(EMPTY), Made(), 1024).then(RECORDS, []).standard.summaries(SOURCES[0])
    at_work, worked_out, calls = threading.Event(), list[int](), [Call() for _ in range(4)]

    def work_out(parts: Parts, source: str, longest: int) -> list[Partition]:
        worked_out.append(len(parts))
        at_work.wait(0.2)  # nobody else begins meanwhile
        return summarise(parts, source, longest)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda call: own.summaries(SOURCES[0], work_out, call), calls))
    assert found == [expected] * 4
    assert worked_out == [len(expected)]
    assert sorted(call.rows for call in calls) == [0, 0, 0, len(RECORDS)]


@tries(30)
@given(st.lists(st.tuples(st.sets(st.sampled_from(RECORDS)), st.sets(st.sampled_from(RECORDS))), max_size=5))
def test_the_length_of_a_listing_follows_the_set(steps: list[tuple[set[str], set[str]]]) -> None:
    own = Generation(0, set_of(EMPTY), Made(), 1024)
    held: set[str] = set()
    for came, went in steps:
        own.listing_bytes(SOURCES[len(held) % 2])  # some lengths are followed, some worked out anew
        came, went = came - went, went & held
        held = (held - went) | came
        own = own.then(sorted(came), sorted(went))
        for source in SOURCES:
            anew = Generation(0, own.ids, Made(), 1024)
            assert own.listing_bytes(source) == anew.listing_bytes(source)


MIXED = sorted(letter + record[1:] for record in RECORDS[:9] for letter in "BPS")


@pytest.mark.parametrize("at_once", [1, 4, 100])
@pytest.mark.parametrize("held", [[], RECORDS[:1], RECORDS, MIXED, MIXED[::2]])
def test_a_listing_in_pieces_is_the_listing(held: list[str], at_once: int) -> None:
    """Sorted by P, letters first, whatever the order of the columns, and whether somebody had it spelled out or not."""
    bare, spelled = (Generation(0, set_of(ids_of_texts(held)), made_bare, 1024, is_bare=True) for _ in range(2))
    assert len(spelled.standard) == len(held)
    for own in (bare, spelled):
        pieces = list(own.listed(at_once))
        assert [claim.hash for piece in pieces for claim in piece] == sorted(held)
        assert [len(piece) for piece in pieces[:-1]] == [at_once] * (len(pieces) - 1)
        assert [claim for piece in pieces for claim in piece] == own.listing()
    with_fields = Generation(0, set_of(ids_of_texts(RECORDS)), Made(), 1024)
    assert [claim for piece in with_fields.listed(at_once) for claim in piece] == with_fields.listing()


@tries(60)
@given(st.sets(st.sampled_from(RECORDS)), st.lists(st.sampled_from([*RECORDS, "P.of another format.X9"]), max_size=40))
def test_those_of_some_records_that_are_in_the_set_come_in_the_order_asked(held: set[str], asked: list[str]) -> None:
    own = Generation(0, set_of(EMPTY), Made(), 1024).then(sorted(held), [])
    assert own.among(asked) == [record for record in asked if record in held]


@given(st.sets(st.sampled_from(RECORDS)), st.sets(st.sampled_from(RECORDS)), st.sampled_from(["", "B.xyz.H9"]))
@tries(60)
def test_claims_beyond_our_set_are_the_same_whether_it_is_spelled_out_or_not(
    ours: set[str], theirs: set[str], foreign: str
) -> None:
    named = sorted({*theirs, foreign} - {""})
    claims = PeerClaims("Opq_s", 1024)
    claims.take(TakeClaims(added=[Advertisement(record) for record in named], is_whole=True))
    columns, spelled = (Generation(0, set_of(EMPTY), Made(), 1024).then(sorted(ours), []) for _ in range(2))
    assert len(spelled.standard) == len(ours)
    assert (columns.spelled_out, spelled.spelled_out) == (None, spelled.standard)
    wanted = [Advertisement(record) for record in named if record not in ours]
    assert claims.beyond(columns) == claims.beyond(spelled) == wanted


@tries(40)
@given(
    st.sets(st.sampled_from(RECORDS), min_size=1),
    st.lists(st.tuples(st.booleans(), st.sets(st.sampled_from(RECORDS)), st.sets(st.sampled_from(RECORDS)))),
)
def test_a_set_without_fields_says_in_columns_what_it_says_one_by_one(
    first: set[str], steps: list[tuple[bool, set[str], set[str]]]
) -> None:
    """Whether its changes are told or found, and whether roots were known before."""
    roots = {SOURCES[0]: plainly(first).summaries(SOURCES[0])}
    own = Generation(0, set_of(EMPTY), made_bare, 1024, is_bare=True, min_columns=1).holding(
        set_of(ids_of_texts(sorted(first))), roots=roots
    )
    held = set(first)
    for told, came, went in steps:
        went = (went & held) - came
        held = (held | came) - went
        own = own.then(sorted(came), sorted(went)) if told else own.anew(ids_of_texts(held))
        plain = plainly(held)
        assert own.standard.listing() == plain.listing()
        for source in SOURCES:
            assert own.standard.summaries(source) == plain.summaries(source)
            assert own.listing_bytes(source) == plain.size_under(source)
            assert own.known_roots().get(source, []) == plain.summaries(source)  # of nothing there are none


def made_bare(records: Iterable[str]) -> list[Advertisement]:
    return [Advertisement(record) for record in sorted(records)]


def plainly(records: Iterable[str]) -> AdvertisementSet:
    plain = AdvertisementSet(1024)
    plain.put_all(made_bare(records))
    return plain
