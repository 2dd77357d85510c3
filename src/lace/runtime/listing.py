"""The listing that was made last, kept for the next link: the peers of a node are told much the same.

Rule: it is given out only for exactly the records it was made of; so it makes no difference but in time.
"""

from __future__ import annotations

from collections.abc import Iterable

from lace.interlace.advertisement import Advertisement, bare_claims

SHORT = 1_000  # claims that are made as soon as found


class RememberedListing:
    """One long listing of bare claims, of at most so many records. It is shared: nobody may change it."""

    def __init__(self, max_claims: int) -> None:
        self._max_claims = max_claims
        self._last: tuple[list[str], list[Advertisement]] = [], []

    def claims(self, records: Iterable[str]) -> list[Advertisement]:
        """A claim about each of some records, sorted."""
        given = list(records)
        made_of, claims = self._last  # read once: another thread may replace it
        if made_of == given:
            return claims
        claims = bare_claims(sorted(given))
        if SHORT < len(given) <= self._max_claims:
            self._last = given, claims
        return claims
