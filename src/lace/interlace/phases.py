"""Exchange phases, the moves between them, and what each phase waits for (050, the grammar of the profile).

Rule: every move of an interlace machine is a row of MOVES, every block it reads a row of READS, every question to its
own side a row of QUESTIONS. Nothing here knows bytes, stores or which peer we are.
"""

from __future__ import annotations

from enum import StrEnum

from lace.errors import LocalProtocolError
from lace.interlace.vocabulary import Block


class Phase(StrEnum):
    """What both sides are doing."""

    NEW = "not started"
    SETUP = "exchanging operands"
    HELLO = "negotiating"
    PREPARE = "compiling the local policy"
    LISTING = "advertising"
    SELECTION = "choosing partitions"
    ANSWER = "answering partitions"
    SYMBOLS = "sketching a set"
    REPLY = "naming what differs"
    TOLD = "listing what was named"
    REQUEST = "exchanging request lists"
    TRANSFER = "transferring records"
    IDLE = "at a fixed point"
    CLOSED = "closed"


class Move(StrEnum):
    """Why a phase is left."""

    START = "our side starts"
    AGREED = "both blocks were read and agree"
    READY = "the local policy is ready"
    LISTED = "both listings are complete"
    SUMMARISED = "a side sent summaries"
    SELECTED = "a side selected partitions"
    NOTHING_SELECTED = "both selections are empty"
    ANSWERED = "both answers were read"
    DIFFERING = "two summaries differ"
    SKETCHED = "symbols were sent"
    MORE = "the symbols do not suffice"
    NAMED = "what differs was named"
    ASKED = "a side could not make out the other's set"
    CAUGHT_UP = "a side sent a summary and the other did not"
    DROPPED = "the standard advertisement follows"
    WANTED = "a request list is not empty"
    NOT_SETTLED = "quiet, but listings may still change"
    SETTLED = "a fixed point in an exchange that stays"
    TRANSFERRED = "both responses are complete"
    LOOP = "a side starts the next loop"
    OPERAND = "a side has another operand"
    CLOSE = "closed or aborted"


# The three ways of a loop, from LISTING to REQUEST.
_LISTED = {
    (Phase.LISTING, Move.LISTED): Phase.REQUEST,  # 050-DRV-01
}
_PARTITIONED = {  # P16
    (Phase.LISTING, Move.SUMMARISED): Phase.SELECTION,
    (Phase.SELECTION, Move.SELECTED): Phase.ANSWER,
    (Phase.ANSWER, Move.ANSWERED): Phase.SELECTION,
    (Phase.SELECTION, Move.NOTHING_SELECTED): Phase.REQUEST,
}
_COMPARED = {  # 070
    (Phase.LISTING, Move.LISTED): Phase.REQUEST,  # equal, or explained by the changes that were listed
    (Phase.LISTING, Move.DIFFERING): Phase.SYMBOLS,
    (Phase.SYMBOLS, Move.SKETCHED): Phase.REPLY,
    (Phase.REPLY, Move.MORE): Phase.SYMBOLS,
    (Phase.REPLY, Move.NAMED): Phase.TOLD,
    (Phase.TOLD, Move.LISTED): Phase.REQUEST,
    (Phase.REQUEST, Move.ASKED): Phase.SYMBOLS,  # 070-BASE-04
    (Phase.LISTING, Move.CAUGHT_UP): Phase.LISTING,  # 070-ADV-02: now by a standard way
    **{  # 070-DROP-02: the same
        (phase, Move.DROPPED): Phase.LISTING for phase in (Phase.SYMBOLS, Phase.REPLY, Phase.TOLD, Phase.REQUEST)
    },
}

MOVES: dict[tuple[Phase, Move], Phase] = {
    (Phase.NEW, Move.START): Phase.SETUP,
    (Phase.SETUP, Move.AGREED): Phase.HELLO,  # 050-SETUP-01
    (Phase.HELLO, Move.AGREED): Phase.PREPARE,
    (Phase.PREPARE, Move.READY): Phase.LISTING,
    **_LISTED,
    **_PARTITIONED,
    **_COMPARED,
    (Phase.REQUEST, Move.WANTED): Phase.TRANSFER,
    (Phase.REQUEST, Move.NOT_SETTLED): Phase.LISTING,  # P13
    (Phase.REQUEST, Move.SETTLED): Phase.IDLE,  # 050-OPEN-01; a bounded exchange closes instead (050-BOUND-07)
    (Phase.TRANSFER, Move.TRANSFERRED): Phase.LISTING,
    (Phase.IDLE, Move.LOOP): Phase.LISTING,  # P20
    (Phase.IDLE, Move.OPERAND): Phase.SETUP,
    (Phase.LISTING, Move.OPERAND): Phase.SETUP,  # P20: a setup block stands where an adv could start
    **{(phase, Move.CLOSE): Phase.CLOSED for phase in Phase if phase not in (Phase.NEW, Phase.CLOSED)},
}

# The block that each phase reads of the peer. Where a listing may come a setup block may stand instead (P20), and a
# record batch comes before the availability block (P11).
READS: dict[Phase, Block] = {
    Phase.SETUP: Block.SETUP,
    Phase.HELLO: Block.HELLO,
    Phase.LISTING: Block.LISTING,
    Phase.SELECTION: Block.SELECTION,
    Phase.ANSWER: Block.ANSWER,
    Phase.SYMBOLS: Block.SYMBOLS,  # read by the asker
    Phase.REPLY: Block.REPLY,  # read by the teller
    Phase.TOLD: Block.TOLD,  # read by the asker
    Phase.REQUEST: Block.REQUEST,
    Phase.TRANSFER: Block.AVAILABILITY,
    Phase.IDLE: Block.LISTING,  # it starts the next loop
}

# Phases in which the peer's silence runs against the phase timeout (050-LIM-08: not at a fixed point).
TIMED = frozenset(READS) - {Phase.IDLE}


class Question(StrEnum):
    """What our own side was asked and the exchange stands still for; the peer's next item waits meanwhile."""

    POLICY = "make the policy of a new epoch"
    WHAT_TO_LIST = "evaluate what we may send"
    SUMMARIES = "summarise what we may send"
    THEIR_LISTING = "take over the peer's listing"
    THEIR_SUMMARIES = "compare the peer's summaries"
    CHILDREN = "summarise the partitions that the peer narrows"
    THEIR_ANSWER = "check and take over the peer's answer"
    MEASURE = "measure what we may send"
    THEIR_CHANGE = "take over how the peer's set changed"
    OWN_SUMS = "sum up what we may send"
    SYMBOLS = "sketch what we may send"
    THEIR_SYMBOLS = "decode the peer's sketch"
    THEIR_REPLY = "check and take over the difference that the peer named"
    THEIR_RECORDS = "check and take over the difference that we named"
    WHAT_TO_REQUEST = "evaluate what we may request"
    WHAT_TO_SERVE = "evaluate what we may still send"
    ANY_NEWS = "evaluate whether there is anything new"


QUESTIONS: dict[Question, Phase] = {
    Question.POLICY: Phase.PREPARE,
    Question.WHAT_TO_LIST: Phase.LISTING,
    Question.SUMMARIES: Phase.LISTING,
    Question.THEIR_LISTING: Phase.LISTING,
    Question.THEIR_SUMMARIES: Phase.LISTING,
    Question.CHILDREN: Phase.ANSWER,
    Question.THEIR_ANSWER: Phase.ANSWER,
    Question.MEASURE: Phase.LISTING,
    Question.THEIR_CHANGE: Phase.LISTING,
    Question.OWN_SUMS: Phase.SYMBOLS,
    Question.SYMBOLS: Phase.SYMBOLS,
    Question.THEIR_SYMBOLS: Phase.SYMBOLS,
    Question.THEIR_REPLY: Phase.REPLY,
    Question.THEIR_RECORDS: Phase.TOLD,
    Question.WHAT_TO_REQUEST: Phase.REQUEST,
    Question.WHAT_TO_SERVE: Phase.TRANSFER,
    Question.ANY_NEWS: Phase.IDLE,
}


def move(phase: Phase, why: Move) -> Phase:
    """The phase that follows."""
    try:
        return MOVES[phase, why]
    except KeyError:
        raise LocalProtocolError(f"no move from {phase.value!r} because {why.value!r}") from None
