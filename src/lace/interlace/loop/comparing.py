"""One loop's comparison of two sets (070): from two summaries to how they differ, or to the standard advertisement.

Rule: the teller (operand 1) sends symbols, the asker (operand 0) decodes them; each phase here belongs to one of them.
Whatever is in doubt is dropped, and the loop that owns this goes on with P14 or P16. Nothing here touches a set: the
host measures, sketches, decodes and checks.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto

from lace.differences.keyed import U64
from lace.differences.sketch import MAX_SYMBOLS, Symbols
from lace.differences.sketchsize import Way, choose, may_pay, more_symbols
from lace.differences.wire import (
    SYMBOLS_PER_LINE,
    decode_root,
    decode_short_ids,
    decode_summary,
    decode_symbols,
    encode_root,
    encode_short_ids,
    encode_summary,
    encode_symbols,
)
from lace.errors import InvalidText, LocalProtocolError
from lace.interlace.claims.advertisement import Claims, require_record_ids
from lace.interlace.core import Core
from lace.interlace.effects import Decode, Measure, SendFacts, SendListing, Sketch, TakeDifference
from lace.interlace.inputs import Decoded, DifferenceTaken, Measured
from lace.interlace.loop.blocks import BlockReader
from lace.interlace.loop.epoch import Epoch
from lace.interlace.phases import Move, Phase, Question
from lace.interlace.reasons import AbortReason, ProtocolAbort
from lace.interlace.setup.hello import is_canonical_decimal
from lace.interlace.vocabulary import (
    DIFFERENCE_ASK,
    DIFFERENCE_DROP,
    DIFFERENCE_LACKS,
    DIFFERENCE_MORE,
    DIFFERENCE_ROOT,
    DIFFERENCE_SUMMARY,
    DIFFERENCE_SYMBOLS,
    DIFFERENCE_WITHDRAWN,
)
from lace.notation.fact import Fact
from lace.values import dataclass

DROP = Fact(DIFFERENCE_DROP, ())
ASK = Fact(DIFFERENCE_ASK, ())


class ComparisonOutcome(Enum):
    """Where a comparison stands."""

    OPEN = auto()
    AGREED = auto()  # the peer's advertisement state is known: requests follow
    DOUBTED = auto()  # the same place, but the sums do not agree
    DROPPED = auto()  # the standard advertisement follows


def malformed(detail: str) -> ProtocolAbort:
    """070-FACT-02."""
    return ProtocolAbort(AbortReason.MALFORMED_FACT_BLOCK, detail, "070-FACT-02")


@dataclass(frozen=True, slots=True, eq=False)
class Summary:
    """What an `adv` says of the sender's set."""

    count: int
    root: bytes | None = None  # without a base
    sums: U64 | None = None  # with a base, and always the asker's
    withdrawn: Sequence[str] = ()


def read_summary(facts: Sequence[Fact]) -> Summary | None:
    """The peer's `adv`, if it is a summary."""
    said = {
        predicate: [values for found, values in facts if found == predicate]
        for predicate in (DIFFERENCE_ROOT, DIFFERENCE_SUMMARY)
    }
    withdrawn = [values[0] for predicate, values in facts if predicate == DIFFERENCE_WITHDRAWN]
    if not any(said.values()):
        if withdrawn:
            raise malformed("records withdrawn without a summary")
        return None
    if max(map(len, said.values())) > 1:
        raise malformed("two summaries")
    require_record_ids(withdrawn)
    try:
        counts, root, sums = set[int](), None, None
        for count, text in said[DIFFERENCE_ROOT]:
            found, root = decode_root(count, text)
            counts.add(found)
        for texts in said[DIFFERENCE_SUMMARY]:
            sums = decode_summary(*texts)
            counts.add(int(sums[0]))
    except InvalidText as error:
        raise malformed(str(error)) from None
    if len(counts) > 1:
        raise malformed("a root and sums of different counts")
    return Summary(counts.pop(), root, sums, withdrawn)


def only(facts: Sequence[Fact], fact: Fact, others: bool) -> bool:
    """Whether a block says just this; beside anything else it may not stand."""
    if fact not in facts:
        return False
    if len(facts) > 1 or others:
        raise malformed(f"{fact.predicate.name} beside other lines")
    return True


class Comparison:
    """The phases SYMBOLS, REPLY and TOLD of one loop: in each one side speaks, and a phase is over with its block."""

    def __init__(self, core: Core, epoch: Epoch, ours: U64 | None, theirs: Summary) -> None:
        self._core = core
        self._epoch = epoch
        self._ours = ours
        self._count = theirs.count
        self._theirs = theirs.sums
        self._limits = core.terms.compare_limits
        self._is_asker = core.config.index == 0
        self._have = 0  # symbols sent or received
        self._wanted = 0  # that we asked for; the first come unasked
        self._absent: Sequence[str] = ()  # of our records, that the peer lacks
        self.listed: Sequence[str] = ()  # by us
        self.offered: Sequence[str] = ()  # listed by the peer
        self.outcome = ComparisonOutcome.OPEN

    # --- symbols -----------------------------------------------------------------------------------------------

    def begin(self, why: Move) -> None:
        """The sketch begins."""
        self._core.enter(why)
        if self._is_asker:
            return
        if not may_pay(self._epoch.own.count, self._count):
            self._drop()
        elif self._ours is None:
            self._core.ask(Question.OWN_SUMS, Measure(own=self._epoch.own))
        else:
            self._choose(self._ours)

    def summed(self, found: Measured) -> None:
        """OWN_SUMS is answered."""
        if found.measured is None:
            raise LocalProtocolError("a set was summed without sums")
        self._ours = found.measured
        self._choose(found.measured)

    def _choose(self, ours: U64) -> None:
        choice = choose(ours, self._told, self._limits)
        if choice.way is Way.SKETCH:
            self._sketch(choice.symbols)
        else:
            self._drop()

    @property
    def _told(self) -> U64:
        """What the peer says its set sums up to."""
        if self._theirs is None:
            raise LocalProtocolError("a comparison without the peer's sums")
        return self._theirs

    def _sketch(self, end: int) -> None:
        self._core.ask(Question.SYMBOLS, Sketch(own=self._epoch.own, start=self._have, end=end))

    def send_symbols(self, symbols: Symbols) -> None:
        """SYMBOLS is answered."""
        core, start = self._core, self._have
        self._have += len(symbols)
        facts = [
            Fact(DIFFERENCE_SYMBOLS, (str(start + SYMBOLS_PER_LINE * line), text))
            for line, text in enumerate(encode_symbols(symbols))
        ]
        if start == 0 and self._ours is not None:  # 070-TELL-03
            facts.insert(0, Fact(DIFFERENCE_SUMMARY, encode_summary(self._ours)))
        core.send_block(facts)
        core.enter(Move.SKETCHED)

    def receive(self, block: BlockReader) -> None:
        """A block of the phase that this is in."""
        if only(block.facts, DROP, block.lists):
            self._end(ComparisonOutcome.DROPPED)
        elif self._core.phase is Phase.SYMBOLS:
            self._receive_symbols(block)
        elif self._core.phase is Phase.REPLY:
            self._receive_reply(block)
        else:
            claims = self._note_offered(block)
            effect = TakeDifference(own=self._epoch.own, absent=self._absent, claims=claims, told=self._told)
            self._core.ask(Question.THEIR_RECORDS, effect)

    def _receive_symbols(self, block: BlockReader) -> None:
        """The teller's symbols."""
        facts = self._read_sums(block.facts) if self._have == 0 else block.facts
        symbols = self._read_symbols(facts)
        self._core.ask(Question.THEIR_SYMBOLS, Decode(own=self._epoch.own, start=self._have, symbols=symbols))
        self._have += len(symbols)

    def _read_sums(self, facts: Sequence[Fact]) -> Sequence[Fact]:
        """The teller's sums stand before its first symbols; what follows them."""
        told = read_summary(facts[:1])
        if told is None or told.sums is None or told.count != self._count:
            raise malformed("symbols without the sums that belong to them")
        self._theirs = told.sums
        return facts[1:]

    def _read_symbols(self, facts: Sequence[Fact]) -> Symbols:
        if not facts or any(predicate != DIFFERENCE_SYMBOLS for predicate, _ in facts):
            raise malformed("no symbols, or sums among them")
        try:
            symbols = decode_symbols((values for _, values in facts), self._have)
        except InvalidText as error:
            raise malformed(str(error)) from None
        # 070-TELL-02. A teller that gave one at a time would have all of them passed over again for each.
        if self._wanted and self._have + len(symbols) != self._wanted:
            raise malformed(f"{self._have + len(symbols)} symbols where {self._wanted} were asked for")
        return symbols

    # --- reply -------------------------------------------------------------------------------------------------

    def decoded(self, found: Decoded) -> None:
        """THEIR_SYMBOLS is answered: say what differs, or that more is needed."""
        core = self._core
        core.enter(Move.SKETCHED)
        core.received = True
        if found.lacking is None:
            end = more_symbols(self._have, self._limits)
            if found.is_hopeless or end <= self._have:
                self._drop()
                return
            self._wanted = end
            core.send_block([Fact(DIFFERENCE_MORE, (str(end),))])
            core.enter(Move.MORE)
            return
        if max(len(found.lacking), len(found.absent)) > self._most_listed:
            self._drop()
            return
        self._absent = found.absent
        facts = [Fact(DIFFERENCE_LACKS, (text,)) for text in encode_short_ids(found.lacking)]
        if facts:
            core.emit(SendFacts(facts))
        self._list(found.absent)

    @property
    def _most_listed(self) -> int:
        return self._epoch.agreement.negotiated.limits.max_advertisement_records_listed

    def _note_offered(self, block: BlockReader) -> Claims:
        claims = block.claims()
        self.offered = [claim.hash for claim in claims]
        return claims

    def _list(self, records: Sequence[str]) -> None:
        self.listed = records
        if records:
            source = self._epoch.agreement.own_source
            self._core.emit(SendListing(own=self._epoch.own, source=source, records=records))
        else:
            self.listing_sent()

    def listing_sent(self) -> None:
        """Our listing of what the peer lacks is out."""
        core = self._core
        core.send_block([])
        if core.phase is Phase.REPLY:
            core.enter(Move.NAMED)
        else:
            self._end(ComparisonOutcome.AGREED)

    def _receive_reply(self, block: BlockReader) -> None:
        """The asker wants more symbols, or names what it lacks."""
        more = [values[0] for predicate, values in block.facts if predicate == DIFFERENCE_MORE]
        if more:
            self._answer_more(more, block)
            return
        try:
            short = decode_short_ids([values[0] for _, values in block.facts])
        except InvalidText as error:
            raise malformed(str(error)) from None
        if len(short) > self._most_listed:
            raise malformed(f"{len(short)} records named at once")
        claims = self._note_offered(block)
        effect = TakeDifference(own=self._epoch.own, named=short, claims=claims, told=self._told)
        self._core.ask(Question.THEIR_REPLY, effect)

    def _answer_more(self, more: Sequence[str], block: BlockReader) -> None:
        if len(block.facts) > 1 or block.lists or not is_canonical_decimal(more[0]):
            raise malformed("more symbols asked for beside other lines")
        end = int(more[0])
        if not self._have < end <= MAX_SYMBOLS:
            raise malformed(f"symbols up to {end} asked for")
        self._core.enter(Move.MORE)
        if end > self._limits.max_symbols:
            self._drop()
        else:
            self._sketch(end)

    # --- the end -----------------------------------------------------------------------------------------------

    def taken(self, answer: DifferenceTaken) -> None:
        """THEIR_REPLY or THEIR_RECORDS is answered (070-END-01)."""
        core = self._core
        if core.phase is Phase.REPLY:
            core.enter(Move.NAMED)
            core.received = True
            if answer.agrees:
                self._list(answer.absent)
            else:
                self._drop()
        else:
            self._end(ComparisonOutcome.AGREED if answer.agrees else ComparisonOutcome.DOUBTED)

    def _drop(self) -> None:
        """070-DROP-01: in the place of our next block."""
        self._core.send_block([DROP])
        self._end(ComparisonOutcome.DROPPED)

    def _end(self, outcome: ComparisonOutcome) -> None:
        self.outcome = outcome


def summary_facts(found: Measured) -> list[Fact]:
    """Our summary, and what we withdraw since the loop before."""
    facts = [Fact(DIFFERENCE_WITHDRAWN, (record,)) for record in found.removed or ()]
    if found.root:
        facts.append(Fact(DIFFERENCE_ROOT, encode_root(found.count, found.root)))
    if found.measured is not None:
        facts.append(Fact(DIFFERENCE_SUMMARY, encode_summary(found.measured)))
    return facts
