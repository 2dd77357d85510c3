"""The block that is being read (050, fact blocks): its kind, its size, what it holds so far.

Rule: a block is checked as it comes in, so that a hostile one ends early; nothing of it counts before its blank line.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import itemgetter

from lace.facts.predicates import ADVERTISED, ADVERTISED_FIELD, MAY_REQUEST
from lace.interlace.claims.advertisement import Advertisement, Claims, ListingReader, require_record_ids
from lace.interlace.effects import TakeClaims
from lace.interlace.inputs import ChangesReceived
from lace.interlace.reasons import AbortReason, ProtocolAbort
from lace.interlace.setup.agreement import Agreement
from lace.interlace.vocabulary import TICK_READY, Block, allowed_in, refuse
from lace.limits import ExchangeLimits
from lace.notation.fact import Fact, FactColumn, Predicate

_all_but_first = itemgetter(slice(1, None))


class BlockReader:
    """Facts of one block; listings go straight into their reader."""

    def __init__(
        self,
        kind: Block,
        max_size: int,
        listing: ListingReader | None = None,
        *,
        differences: bool = False,
        refusals: int = 0,
    ) -> None:
        self.kind = kind
        # `differences`: whether 070 is spoken; `refusals`: which version of 071 is, 0 for none.
        self._allowed = allowed_in(kind, differences, refusals)
        self._max_size = max_size
        self._size = 0
        self._listing = listing
        self.facts: list[Fact] = []  # all but requests, ticks and listed claims
        self.requested: dict[str, None] = {}  # each once, in the order in which they came
        self.ticks: list[str] = []
        self.changes: ChangesReceived | None = None

    @property
    def size(self) -> int:
        """Bytes of lines read so far."""
        return self._size

    @property
    def lists(self) -> bool:
        """Whether it holds advertisement records."""
        return self._listing is not None and not self._listing.is_empty

    @property
    def listed(self) -> int:
        """How many records it has listed so far."""
        return len(self._listing) if self._listing is not None else 0

    @property
    def is_tick(self) -> bool:
        """A block of TickReady lines alone (P19)."""
        return bool(self.ticks) and not self.facts and not self.requested and not self.lists and self.changes is None

    def read(self, facts: Sequence[Fact], size: int) -> None:
        """Some lines of the block."""
        self._size += size
        if self._size > self._max_size:  # 050-LIM-02
            raise ProtocolAbort(AbortReason.OVERSIZED_FACT_BLOCK, f"more than {self._max_size} bytes", "050-LIM-02")
        if isinstance(facts, FactColumn):
            self._read_column(facts)
            return
        listing = self._listing
        for predicate, run in groupby(facts, itemgetter(0)):
            self._require(predicate)
            if listing is not None and predicate == ADVERTISED_FIELD:
                for _, values in run:
                    listing.add_field(values)
            elif listing is not None and predicate == ADVERTISED:
                self._read_advertised([values for _, values in run], listing)
            elif predicate in (TICK_READY, MAY_REQUEST):
                self._read_column(FactColumn(predicate, [values[0] for _, values in run], ()))
            else:
                self.facts += run

    def _read_advertised(self, lines: Sequence[Sequence[str]], listing: ListingReader) -> None:
        """A run of them: of one line where records have fields, and of very many where they have none."""
        if len(lines) == 1:
            listing.add_record(lines[0])
            return
        for (source,), alike in groupby(lines, _all_but_first):
            listing.add_records([record for record, _ in alike], source)

    def _require(self, predicate: Predicate) -> None:
        if predicate not in self._allowed:
            refuse(predicate, self.kind)

    def _read_column(self, column: FactColumn) -> None:
        predicate = column.predicate
        self._require(predicate)
        if predicate == TICK_READY:
            self.ticks += column.firsts
        elif predicate == MAY_REQUEST:
            require_record_ids(column.firsts)
            self.requested.update(dict.fromkeys(column.firsts))
        elif self._listing is not None and predicate == ADVERTISED:
            self._listing.add_records(column.firsts, *column.rest)
        elif self._listing is not None and predicate == ADVERTISED_FIELD:
            for _, values in column:
                self._listing.add_field(values)
        else:
            self.facts += column

    def read_claims(self, claims: Iterable[Advertisement]) -> None:
        """Advertisement records as values (050-FACT-12)."""
        if self._listing is None:
            raise ProtocolAbort(AbortReason.MALFORMED_FACT_BLOCK, "advertisements out of phase", "050-FACT-10")
        for claim in claims:
            self._listing.add_claim(claim)

    def listing(self) -> TakeClaims:
        """What an `adv` without summaries says of the peer's claims: all of them, or how they changed (050-ENG-07)."""
        if self.changes is None:
            return TakeClaims(added=self.claims(), is_whole=True)
        return TakeClaims(added=self.changes.added, removed=self.changes.removed, is_whole=self.changes.is_whole)

    def claims(self) -> Claims:
        """The listed claims, sorted by P."""
        return [] if self._listing is None else self._listing.finish()


def reader_for(kind: Block, agreement: Agreement | None, own: ExchangeLimits) -> BlockReader:
    """A reader for the next block of a kind; listings are read under the agreed schema and the peer's label."""
    if agreement is None:
        return BlockReader(kind, own.max_fact_block_size)
    negotiated, listing = agreement.negotiated, None
    limits = negotiated.limits
    if kind in (Block.LISTING, Block.ANSWER, Block.REPLY, Block.TOLD):
        most = limits.max_advertisement_records_listed
        listing = ListingReader(agreement.peer_source, negotiated.schema.names, most)
    return BlockReader(
        kind,
        limits.max_fact_block_size,
        listing,
        differences=negotiated.differences,
        refusals=negotiated.refusals,
    )
