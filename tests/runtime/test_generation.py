"""One moment of what may be sent: what is made for one link is there for all."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from interlace.pair import plex
from lace.differences.ids import EMPTY
from lace.differences.idset import set_of
from lace.interlace.advertisement import Advertisement, FieldClaim
from lace.interlace.claims import PeerClaims
from lace.interlace.effects import TakeClaims
from lace.records.validate import validate
from lace.runtime.generation import Generation
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
