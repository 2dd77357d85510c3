"""The partitioned way (050, P14, P16): sets are summarised by prefix, and only what differs is listed or narrowed.

Rule: everything we say is computed from the effective send set alone (050-SEND-10), which does not change between a
loop's advertisement and its last answer. The host says which of the peer's partitions it cannot name; here it is
decided how to learn them, within the limits of both sides, and nothing of an answer counts before the host has checked
it against its summary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NoReturn

from lace.errors import excerpt
from lace.interlace.claims.advertisement import Claims
from lace.interlace.claims.partitions import START_LENGTH, Partition
from lace.interlace.core import Core
from lace.interlace.effects import Reconcile, SendListing, SetHandle, Summarise
from lace.interlace.inputs import ClaimsTaken, Reconciled, Summarised
from lace.interlace.loop.blocks import BlockReader
from lace.interlace.loop.epoch import Epoch
from lace.interlace.loop.listingsize import RECORD_BYTES, SUMMARY_BYTES
from lace.interlace.loop.way import PeerAdvertisement, Progress, Way, WayAnswer, unasked
from lace.interlace.phases import Move, Question
from lace.interlace.reasons import AbortReason, ProtocolAbort
from lace.interlace.setup.hello import FieldSchema, is_canonical_decimal
from lace.interlace.vocabulary import ADVERTISEMENT_PARTITION, LIST_PARTITION, NARROW_PARTITION, Block
from lace.limits import ExchangeLimits
from lace.notation import b64a
from lace.notation.fact import Fact
from lace.values import dataclass

_CHILDREN = 64
_SYMBOLS = frozenset(b64a.ALPHABET)
_FIELD_BYTES = 1025  # the longest line
_ALL_FIELDS_GUESS = 16  # lines of a record when every field is advertised


def read_summaries(facts: Sequence[Fact], length: int | None) -> list[Partition]:
    """Summary lines, of prefixes of this length if given; an identical repeat is one fact (P18)."""
    return [_read_summary(fact, length) for fact in dict.fromkeys(facts)]


def _read_summary(fact: Fact, length: int | None) -> Partition:
    """One summary line (050-LIST-07, 050-PART-04)."""
    prefix, count, root = fact.values
    is_prefix = len(prefix) >= START_LENGTH and _SYMBOLS.issuperset(prefix)
    if not is_prefix or (length is not None and len(prefix) != length):
        _malformed(f"prefix {excerpt(prefix)}", "050-PART-04")
    if not is_canonical_decimal(count) or count == "0":
        _malformed(f"count {excerpt(count)} of {prefix}", "050-LIST-07")
    if not b64a.is_canonical(root, 32):
        _malformed(f"root {excerpt(root)} of {prefix}", "050-LIST-07")
    return Partition(prefix, int(count), root)


class PartitionedWay(Way):
    """The phases SELECTION and ANSWER: each side selects what it cannot name, and the other lists or narrows it."""

    def __init__(self, core: Core, epoch: Epoch) -> None:
        super().__init__(core, epoch)
        self._offers = Offers(epoch.agreement.negotiated.limits)
        self._listed: list[str] = []  # prefixes that the peer wants listed
        self._children: list[Fact] = []  # summaries that follow a listing under way
        self._reconciliation: Reconciliation | None = None  # unless the peer listed its set
        self._selection: list[Fact] = []  # ours
        self._peer_selection: list[Fact] = []
        self._peer_answer: tuple[Claims, list[Partition]] = [], []

    def advertise(self) -> Progress:
        """Summarise what we may send."""
        epoch = self._epoch
        self._core.ask(Question.SUMMARIES, Summarise(own=epoch.own, source=epoch.agreement.own_source))
        return Progress.OPEN

    def meet(self, theirs: PeerAdvertisement) -> Progress:
        """Have the peer's listing or summaries taken over, as far as they can be named."""
        if theirs.listing is not None:
            return self._take_listing(theirs.listing)
        agreement = self._epoch.agreement
        self._reconciliation = Reconciliation(
            self._epoch.own, agreement.peer_source, agreement.negotiated.schema, agreement.negotiated.limits
        )
        self._core.ask(Question.THEIR_SUMMARIES, self._reconciliation.offer(theirs.partitions))
        return Progress.OPEN

    def answer(self, question: Question, item: WayAnswer) -> Progress:
        """Our own side summarised a set, or took over what the peer said."""
        match item:
            case Summarised(partitions) if question is Question.SUMMARIES:
                self._offers.offer(partitions)
                return self._end_advertisement([*map(summary_fact, partitions), *self._epoch.tick_facts()])
            case Summarised(children):
                self._offers.offer(children)
                self._children = [summary_fact(child) for child in children]
                return self._list_selected()
            case ClaimsTaken() | Reconciled():
                self._epoch.note_claims(item)
                if self._reconciliation is not None and isinstance(item, Reconciled):
                    self._reconciliation.settle(item.unknown)
                self._core.enter(Move.ANSWERED if question is Question.THEIR_ANSWER else Move.SUMMARISED)
                return self._send_selection()
            case _:
                raise unasked(question, item)

    def receive(self, block: BlockReader) -> Progress:
        """What the peer wants listed and narrowed, or what it lists and narrows for us."""
        if block.kind is Block.SELECTION:
            self._peer_selection = block.facts
            self._core.received = True
            return self._after_selections()
        self._peer_answer = block.claims(), read_summaries(block.facts, None)
        if self._reconciliation is None and any(self._peer_answer):
            raise ProtocolAbort(AbortReason.MALFORMED_FACT_BLOCK, "an answer to no selection", "050-PART-18")
        self._core.received = True
        return self._check_answer()

    def _send_selection(self) -> Progress:
        self._selection = self._reconciliation.select() if self._reconciliation is not None else []
        self._core.send_block(self._selection)
        self._core.sent = True
        return self._after_selections()

    def _after_selections(self) -> Progress:
        if not self._core.is_phase_done:
            return Progress.OPEN
        if not self._selection and not self._peer_selection:  # P16: the last LF is the empty selection of both sides
            self._core.enter(Move.NOTHING_SELECTED)
            return Progress.KNOWN
        self._core.enter(Move.SELECTED)
        return self._answer_selection()

    def _answer_selection(self) -> Progress:
        """Every partition that the peer selected: listed, or as its children."""
        answer = self._offers.answer(self._peer_selection)
        self._listed = sorted(answer.listed)
        if not answer.narrowed:
            return self._list_selected()
        epoch = self._epoch
        summarise = Summarise(own=epoch.own, source=epoch.agreement.own_source, parents=answer.narrowed)
        self._core.ask(Question.CHILDREN, summarise)
        return Progress.OPEN

    def _list_selected(self) -> Progress:
        if not self._listed:
            return self.listing_sent()
        epoch = self._epoch
        self._core.emit(SendListing(own=epoch.own, source=epoch.agreement.own_source, prefixes=self._listed))
        return Progress.OPEN

    def listing_sent(self) -> Progress:
        """Our listing of what the peer selected is out."""
        self._core.send_block(self._children)
        self._children = []
        self._core.sent = True
        return self._check_answer()

    def _check_answer(self) -> Progress:
        if not self._core.is_phase_done:
            return Progress.OPEN
        if self._reconciliation is None:
            self._core.enter(Move.ANSWERED)
            return self._send_selection()
        claims, children = self._peer_answer
        self._core.ask(Question.THEIR_ANSWER, self._reconciliation.answer(claims, children))
        return Progress.OPEN


@dataclass(frozen=True, slots=True)
class PartitionAnswer:
    """What one selection block asks of us."""

    listed: list[str]  # prefixes
    narrowed: list[str]


@lru_cache(maxsize=1 << 14)  # in an open exchange nearly all summaries are those of the loop before
def summary_fact(partition: Partition) -> Fact:
    """A summary as its fact (050-LIST-04)."""
    return Fact(ADVERTISEMENT_PARTITION, (partition.prefix, str(partition.count), partition.root))


class Offers:
    """What we offered in this loop; each prefix can be chosen once (050-PART-19)."""

    def __init__(self, limits: ExchangeLimits) -> None:
        self._limits = limits
        self._open: dict[str, int] = {}  # how many records each prefix on offer has
        self._offered = 0

    def offer(self, partitions: Sequence[Partition]) -> None:
        """Summaries that we send now."""
        self._offered += len(partitions)
        if self._offered > self._limits.max_partition_summaries:
            raise ProtocolAbort(
                AbortReason.MALFORMED_PARTITION_SUMMARY,
                f"the peer's narrowing would need more than {self._limits.max_partition_summaries} summaries",
                "050-LIM-04",
            )
        self._open.update((partition.prefix, partition.count) for partition in partitions)

    def answer(self, selection: Sequence[Fact]) -> PartitionAnswer:
        """What a selection block asks for; vocabulary was checked."""
        answer = PartitionAnswer([], [])
        count = 0
        for predicate, (prefix,) in dict.fromkeys(selection):  # P18: an identical repeat is one fact
            if prefix not in self._open:
                raise ProtocolAbort(
                    AbortReason.MALFORMED_FACT_BLOCK, f"partition {excerpt(prefix)} is not on offer", "050-PART-19"
                )
            records = self._open.pop(prefix)
            if predicate == LIST_PARTITION:
                answer.listed.append(prefix)
                count += records
            else:
                self._require_depth(prefix)
                answer.narrowed.append(prefix)
        if count > self._limits.max_advertisement_records_listed:  # 050-LIST-11: the selecting side paces
            raise ProtocolAbort(
                AbortReason.MALFORMED_FACT_BLOCK, f"the peer selected {count} records at once", "050-LIM-03"
            )
        return answer

    def _require_depth(self, prefix: str) -> None:
        if len(prefix) - START_LENGTH >= self._limits.max_narrowing_depth:  # 050-LIM-05
            raise ProtocolAbort(
                AbortReason.MALFORMED_FACT_BLOCK, f"partition {excerpt(prefix)} is as narrow as agreed", "050-LIM-05"
            )


class Reconciliation:
    """One loop's partitions of the peer, from its summaries until none is left to learn."""

    def __init__(self, own: SetHandle, source: str, schema: FieldSchema, limits: ExchangeLimits) -> None:
        self._own = own
        self._source = source
        self._limits = limits
        self._pending: dict[str, tuple[Partition, int]] = {}  # with how many claims we know there
        self._listing: list[Partition] = []
        self._narrowing: list[Partition] = []
        self._summaries = 0
        lines = _ALL_FIELDS_GUESS if schema.names is None else len(schema.names)
        self._record_bytes = RECORD_BYTES + len(source.encode()) + lines * _FIELD_BYTES

    def offer(self, partitions: Sequence[Partition]) -> Reconcile:
        """The peer's starting partitions: every non-empty one, so an absent prefix means count 0 (050-LIST-09)."""
        self._count_summaries(len(partitions))
        if len({partition.prefix for partition in partitions}) != len(partitions):
            _malformed("two summaries of one prefix", "050-LIST-09")
        return Reconcile(own=self._own, offered=partitions)

    def settle(self, unknown: Mapping[Partition, int]) -> None:
        """What the host cannot name is left to selection."""
        self._pending.update((partition.prefix, (partition, known)) for partition, known in unknown.items())

    def select(self) -> list[Fact]:
        """The next selection block; empty when all partitions are settled (050-LIST-11)."""
        room_records = self._limits.max_advertisement_records_listed
        room_bytes = self._limits.max_fact_block_size
        facts: list[Fact] = []
        reserved = self._summaries
        for prefix, (partition, known) in sorted(self._pending.items()):
            children = min(_CHILDREN, partition.count)
            may_narrow = (
                len(prefix) - START_LENGTH < self._limits.max_narrowing_depth
                and reserved + children <= self._limits.max_partition_summaries
                and room_bytes >= children * (SUMMARY_BYTES + len(prefix))
            )
            fits = partition.count <= self._limits.max_advertisement_records_listed and (
                partition.count == 1 or partition.count * self._record_bytes <= self._limits.max_fact_block_size
            )
            if may_narrow and (not fits or self._narrowing_is_cheaper(partition, known)):
                facts.append(Fact(NARROW_PARTITION, (prefix,)))
                self._narrowing.append(partition)
                reserved += children
                room_bytes -= children * (SUMMARY_BYTES + len(prefix))
            elif (
                fits
                and partition.count <= room_records
                and (not facts or partition.count * self._record_bytes <= room_bytes)
            ):
                facts.append(Fact(LIST_PARTITION, (prefix,)))
                self._listing.append(partition)
                room_records -= partition.count
                room_bytes -= partition.count * self._record_bytes
        for chosen in (*self._listing, *self._narrowing):
            del self._pending[chosen.prefix]
        self._require_progress(facts)
        return facts

    def _require_progress(self, facts: Sequence[Fact]) -> None:
        if self._pending and not facts:
            prefix = min(self._pending)
            raise ProtocolAbort(
                AbortReason.LOCAL_FAILURE,
                f"partition {prefix} has {self._pending[prefix][0].count} records, more than any answer may hold",
                "050-LIST-11",
                "max_advertisement_records_listed",
            )

    def _narrowing_is_cheaper(self, partition: Partition, known: int) -> bool:
        """Compare a listing with child summaries and the listing of the children that probably differ."""
        if not known:
            return False
        children = min(_CHILDREN, partition.count)
        differing = min(children, max(1, abs(partition.count - known)))
        record = RECORD_BYTES + len(self._source)
        narrow = children * (SUMMARY_BYTES + len(partition.prefix)) + differing * record * partition.count / children
        return narrow < partition.count * record

    def answer(self, claims: Claims, children: Sequence[Partition]) -> Reconcile:
        """The answer block: every selected partition, listed or as its children (050-PART-14, 050-PART-18)."""
        self._count_summaries(len(children))
        listed, self._listing = self._listing, []
        narrowed, self._narrowing = self._narrowing, []
        _require_families(narrowed, children)
        return Reconcile(
            own=self._own,
            offered=children,
            parents=[parent.prefix for parent in narrowed],
            listed=listed,
            claims=claims,
        )

    def _count_summaries(self, count: int) -> None:
        self._summaries += count
        if self._summaries > self._limits.max_partition_summaries:  # 050-LIM-04
            _malformed(f"more than {self._limits.max_partition_summaries} summaries in a loop", "050-LIM-04")


def _require_families(parents: Sequence[Partition], children: Sequence[Partition]) -> None:
    """Each narrowed partition has been answered by its children, and they add up to it (050-PART-18)."""
    families: dict[str, dict[str, int]] = {parent.prefix: {} for parent in parents}
    for child in children:
        family = families.get(child.prefix[:-1])
        if family is None:
            _malformed(f"{child.prefix} was not asked for", "050-PART-18")
        if child.prefix in family:
            _malformed(f"two summaries of one child of {child.prefix[:-1]}", "050-PART-18")
        family[child.prefix] = child.count
    for parent in parents:
        if sum(families[parent.prefix].values()) != parent.count:
            _malformed(f"the children of {parent.prefix} do not add up to {parent.count}", "050-PART-18")


def _malformed(detail: str, clause: str) -> NoReturn:
    raise ProtocolAbort(AbortReason.MALFORMED_PARTITION_SUMMARY, detail, clause)
