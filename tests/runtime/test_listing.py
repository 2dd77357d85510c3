"""A remembered listing is the one that would be made."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lace.interlace.advertisement import bare_claims
from lace.notation.digest import digest
from lace.notation.identifiers import RecordHash
from lace.runtime.listing import SHORT, RememberedListing

RECORDS = [str(RecordHash.of("S", digest(str(number).encode()))) for number in range(SHORT + 3)]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.booleans()), max_size=6), st.integers(0, 2 * SHORT))
def test_the_same_claims_whatever_was_listed_before(asked: list[tuple[int, int, bool]], most: int) -> None:
    listing = RememberedListing(most)
    for first, left_out, is_short in asked:
        records = RECORDS[first : 5 if is_short else len(RECORDS) - left_out]
        assert listing.claims(records) == bare_claims(sorted(records))


def test_a_long_listing_is_made_once_and_short_ones_do_not_replace_it() -> None:
    listing = RememberedListing(len(RECORDS))
    made = listing.claims(RECORDS)
    listing.claims(RECORDS[:5])
    assert listing.claims("".join(record) for record in RECORDS) is made
    assert listing.claims(RECORDS[1:]) is not made
    bounded = RememberedListing(len(RECORDS) - 1)
    assert bounded.claims(RECORDS) is not bounded.claims(RECORDS)
