"""The compared way (070): two summaries, and symbols of a sketch where they differ, instead of two listings.

Rule: it ends in one of two places: requests, with the peer's advertisement state known; or the standard advertisement
of the same loop. Whatever is in doubt is dropped. Nothing here touches a set: the host measures, sketches, decodes and
checks.
"""

from __future__ import annotations

from collections.abc import Sequence

from lace.differences.keyed import U64
from lace.differences.sketch import MAX_SYMBOLS, Symbols
from lace.differences.sketchsize import first_symbols, may_pay, more_symbols
from lace.differences.sums import agrees
from lace.differences.wire import (
    SYMBOLS_PER_LINE,
    decode_short_ids,
    decode_symbols,
    encode_short_ids,
    encode_summary,
    encode_symbols,
)
from lace.errors import InvalidText, LocalProtocolError
from lace.interlace.claims.advertisement import Claims
from lace.interlace.core import Core
from lace.interlace.effects import Decode, Measure, SendFacts, SendListing, Sketch, TakeChange, TakeDifference
from lace.interlace.inputs import Decoded, DifferenceTaken, Measured, Sketched
from lace.interlace.loop.blocks import BlockReader
from lace.interlace.loop.differencefacts import DROP, Summary, malformed, only, read_summary, summary_facts
from lace.interlace.loop.epoch import Epoch
from lace.interlace.loop.requests import OneLine
from lace.interlace.loop.way import PeerAdvertisement, Progress, Way, WayAnswer, unasked
from lace.interlace.phases import Move, Phase, Question
from lace.interlace.setup.hello import is_canonical_decimal
from lace.interlace.vocabulary import (
    DIFFERENCE_LACKS,
    DIFFERENCE_MORE,
    DIFFERENCE_SUMMARY,
    DIFFERENCE_SYMBOLS,
)
from lace.notation.fact import Fact


class ComparedWay(Way):
    """Summaries in the place of listings; with a base, also how the set changed since the loop before (070-BASE-01)."""

    def __init__(self, core: Core, epoch: Epoch, one_line: OneLine) -> None:
        super().__init__(core, epoch)
        self._one_line = one_line
        self._has_base = epoch.compared is not None
        self._ours: Measured | None = None
        self._theirs: Summary | None = None
        self._summary: list[Fact] = []  # ours, which follows a listing under way
        self._sketching: Sketching | None = None
        self._is_equal = False

    def advertise(self) -> Progress:
        """Have our set measured: a teller sums only where it must (070-ADV-03)."""
        has_base, epoch = self._has_base, self._epoch
        sums = has_base or self._core.config.is_asker
        self._core.ask(Question.MEASURE, Measure(own=epoch.own, since=epoch.compared, root=not has_base, sums=sums))
        return Progress.OPEN

    def answer(self, question: Question, item: WayAnswer) -> Progress:
        """Our own side measured a set, took over what the peer said, or went on with the sketch."""
        if self._sketching is not None:
            return self._ended(self._sketching.answer(question, item))
        match item:
            case Measured():
                return self._send_summary(item)
            case DifferenceTaken():
                return self._change_taken(item)
            case _:
                raise unasked(question, item)

    def _send_summary(self, found: Measured) -> Progress:
        self._ours = found
        self._summary = summary_facts(found)
        listed = self._changes(found.added or ()) if self._has_base else []
        self._one_line.by_us = listed
        if not listed:
            return self.listing_sent()
        source = self._epoch.agreement.own_source
        self._core.emit(SendListing(own=self._epoch.own, source=source, records=listed))
        return Progress.OPEN

    def _changes(self, added: Sequence[str]) -> list[str]:
        """Which of the records that came since the base the peer has to be told of: not those that it sent itself, if
        they all are in the set; and none at all if there are too many, then it will ask."""
        arrived = self._epoch.arrived
        listed = [record for record in added if record not in arrived] if arrived.issubset(added) else list(added)
        limits = self._epoch.agreement.negotiated.limits
        return listed if len(listed) <= limits.max_advertisement_records_listed else []

    def listing_sent(self) -> Progress:
        """Our listing of what changed, or of what differs, is out."""
        if self._sketching is not None:
            return self._ended(self._sketching.listing_sent())
        return self._end_advertisement([*self._summary, *self._epoch.tick_facts()])

    def meet(self, theirs: PeerAdvertisement) -> Progress:
        """Both summaries are there."""
        core, own, ours = self._core, self._epoch.own, self._ours
        if ours is None or theirs.summary is None:
            raise LocalProtocolError("a comparison without two summaries")
        said = self._theirs = theirs.summary
        if self._are_equal(ours, said):
            self._is_equal, crossed = self._epoch.ends_when_equal, frozenset(core.refusals.crossed)
            told = self._asked_sums(ours, said)
            effect = TakeDifference(own=own, claims=(), told=told, is_equal=True, crossed=crossed)
            core.ask(Question.THEIR_CHANGE, effect)
        elif self._has_base and theirs.listing is not None and said.sums is not None:
            added, sent = theirs.listing.added, tuple(self._epoch.sent)
            self._one_line.by_peer = [claim.hash for claim in added]
            change = TakeChange(own=own, added=added, removed=said.withdrawn, sent=sent, told=said.sums)
            core.ask(Question.THEIR_CHANGE, change)
        else:
            return self.sketch(Move.DIFFERING)
        return Progress.OPEN

    def _are_equal(self, ours: Measured, theirs: Summary) -> bool:
        """070-EQUAL-01 by the root; with a base by the sums, which both sides have then (070-BASE-02)."""
        if not self._has_base:
            return (ours.count, ours.root) == (theirs.count, theirs.root)
        return ours.measured is not None and theirs.sums is not None and agrees(ours.measured, theirs.sums)

    def _asked_sums(self, ours: Measured, theirs: Summary) -> U64:
        """The asker's sums, which are those of both."""
        sums = ours.measured if self._core.config.is_asker else theirs.sums
        if sums is None:
            raise LocalProtocolError("an asker without sums")
        return sums

    def _change_taken(self, answer: DifferenceTaken) -> Progress:
        """THEIR_CHANGE is answered."""
        if answer.agrees:
            self._epoch.note_claims(answer)
        self._core.enter(Move.LISTED)
        if not answer.agrees:
            return Progress.UNEXPLAINED
        return Progress.EQUAL if self._is_equal and answer.holds_crossed else Progress.KNOWN  # 071-RIDE-03

    # --- the sketch --------------------------------------------------------------------------------------------

    def sketch(self, why: Move) -> Progress:
        """Find out by symbols how the sets differ."""
        if self._ours is None or self._theirs is None:
            raise LocalProtocolError("a comparison without two summaries")
        self._sketching = Sketching(self._core, self._epoch, self._ours.measured, self._theirs)
        return self._ended(self._sketching.begin(why))

    def receive(self, block: BlockReader) -> Progress:
        """A block of the sketch."""
        if self._sketching is None:
            raise LocalProtocolError("no sketch is under way")
        return self._ended(self._sketching.receive(block))

    def _ended(self, progress: Progress) -> Progress:
        """Let go of the sketch when it is over."""
        sketching = self._sketching
        if sketching is not None and progress in (Progress.KNOWN, Progress.DOUBTED):
            self._one_line.by_us, self._one_line.by_peer = sketching.listed, sketching.offered
            self._sketching = None
            self._core.enter(Move.LISTED)
        return progress


class Sketching:
    """The phases SYMBOLS, REPLY and TOLD: in each one side speaks, and a phase is over with its block.

    The teller (operand 1) sends symbols, the asker (operand 0) decodes them and says what each side lacks.
    """

    def __init__(self, core: Core, epoch: Epoch, ours: U64 | None, theirs: Summary) -> None:
        self._core = core
        self._epoch = epoch
        self._ours = ours
        self._count = theirs.count
        self._theirs = theirs.sums
        self._limits = core.terms.compare_limits
        self._have = 0  # symbols sent or received
        self._wanted = 0  # that we asked for; the first come unasked
        self._absent: Sequence[str] = ()  # of our records, that the peer lacks
        self.listed: Sequence[str] = ()  # by us
        self.offered: Sequence[str] = ()  # listed by the peer

    def begin(self, why: Move) -> Progress:
        """Enter SYMBOLS."""
        self._core.enter(why)
        if self._core.config.is_asker:
            return Progress.OPEN
        if not may_pay(self._epoch.own.count, self._count):
            return self._drop()
        if self._ours is None:
            self._core.ask(Question.OWN_SUMS, Measure(own=self._epoch.own))
            return Progress.OPEN
        return self._send_first(self._ours)

    def answer(self, question: Question, item: WayAnswer) -> Progress:
        """Our own side went on with the sketch."""
        match item:
            case Measured(measured=sums) if sums is not None:
                self._ours = sums
                return self._send_first(sums)
            case Sketched(symbols):
                return self._send_symbols(symbols)
            case Decoded():
                return self._reply(item)
            case DifferenceTaken():
                return self._taken(item)
            case _:
                raise unasked(question, item)

    def receive(self, block: BlockReader) -> Progress:
        """A block of the phase that this is in."""
        if only(block.facts, DROP, block.lists):
            return Progress.DROPPED
        match self._core.phase:
            case Phase.SYMBOLS:
                self._receive_symbols(block)
            case Phase.REPLY:
                return self._receive_reply(block)
            case _:
                claims = self._note_offered(block)
                effect = TakeDifference(own=self._epoch.own, absent=self._absent, claims=claims, told=self._told)
                self._core.ask(Question.THEIR_RECORDS, effect)
        return Progress.OPEN

    # --- symbols -----------------------------------------------------------------------------------------------

    def _send_first(self, ours: U64) -> Progress:
        symbols = first_symbols(ours, self._told, self._limits)
        return self._sketch(symbols) if symbols else self._drop()

    @property
    def _told(self) -> U64:
        """What the peer says its set sums up to."""
        if self._theirs is None:
            raise LocalProtocolError("a comparison without the peer's sums")
        return self._theirs

    def _sketch(self, end: int) -> Progress:
        self._core.ask(Question.SYMBOLS, Sketch(own=self._epoch.own, start=self._have, end=end))
        return Progress.OPEN

    def _send_symbols(self, symbols: Symbols) -> Progress:
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
        return Progress.OPEN

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

    def _reply(self, found: Decoded) -> Progress:
        """Say what differs, or that more symbols are needed."""
        core = self._core
        core.enter(Move.SKETCHED)
        core.received = True
        if found.lacking is None:
            return self._ask_for_more(is_hopeless=found.is_hopeless)
        if max(len(found.lacking), len(found.absent)) > self._most_listed:
            return self._drop()
        self._absent = found.absent
        facts = [Fact(DIFFERENCE_LACKS, (text,)) for text in encode_short_ids(found.lacking)]
        if facts:
            core.emit(SendFacts(facts))
        return self._list(found.absent)

    def _ask_for_more(self, *, is_hopeless: bool) -> Progress:
        end = more_symbols(self._have, self._limits)
        if is_hopeless or end <= self._have:
            return self._drop()
        self._wanted = end
        self._core.send_block([Fact(DIFFERENCE_MORE, (str(end),))])
        self._core.enter(Move.MORE)
        return Progress.OPEN

    @property
    def _most_listed(self) -> int:
        return self._epoch.agreement.negotiated.limits.max_advertisement_records_listed

    def _note_offered(self, block: BlockReader) -> Claims:
        claims = block.claims()
        self.offered = [claim.hash for claim in claims]
        return claims

    def _list(self, records: Sequence[str]) -> Progress:
        self.listed = records
        if not records:
            return self.listing_sent()
        source = self._epoch.agreement.own_source
        self._core.emit(SendListing(own=self._epoch.own, source=source, records=records))
        return Progress.OPEN

    def listing_sent(self) -> Progress:
        """Our listing of what the peer lacks is out."""
        core = self._core
        core.send_block([])
        if core.phase is Phase.REPLY:
            core.enter(Move.NAMED)
            return Progress.OPEN
        return Progress.KNOWN

    def _receive_reply(self, block: BlockReader) -> Progress:
        """The asker wants more symbols, or names what it lacks."""
        more = [values[0] for predicate, values in block.facts if predicate == DIFFERENCE_MORE]
        if more:
            return self._answer_more(more, block)
        try:
            short = decode_short_ids([values[0] for _, values in block.facts])
        except InvalidText as error:
            raise malformed(str(error)) from None
        if len(short) > self._most_listed:
            raise malformed(f"{len(short)} records named at once")
        claims = self._note_offered(block)
        effect = TakeDifference(own=self._epoch.own, named=short, claims=claims, told=self._told)
        self._core.ask(Question.THEIR_REPLY, effect)
        return Progress.OPEN

    def _answer_more(self, more: Sequence[str], block: BlockReader) -> Progress:
        if len(block.facts) > 1 or block.lists or not is_canonical_decimal(more[0]):
            raise malformed("more symbols asked for beside other lines")
        end = int(more[0])
        if not self._have < end <= MAX_SYMBOLS:
            raise malformed(f"symbols up to {end} asked for")
        self._core.enter(Move.MORE)
        return self._sketch(end) if end <= self._limits.max_symbols else self._drop()

    # --- the end -----------------------------------------------------------------------------------------------

    def _taken(self, answer: DifferenceTaken) -> Progress:
        """THEIR_REPLY or THEIR_RECORDS is answered (070-END-01)."""
        core = self._core
        if answer.agrees:
            self._epoch.note_claims(answer)
        if core.phase is not Phase.REPLY:
            return Progress.KNOWN if answer.agrees else Progress.DOUBTED
        core.enter(Move.NAMED)
        core.received = True
        return self._list(answer.absent) if answer.agrees else self._drop()

    def _drop(self) -> Progress:
        """070-DROP-01: in the place of our next block."""
        self._core.send_block([DROP])
        return Progress.DROPPED
