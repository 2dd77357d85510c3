"""Exchange phases and the moves between them (050, the grammar of the profile).

Rule: every move of an interlace machine is a row of MOVES. Nothing here knows bytes, stores or which peer we are.
"""

from __future__ import annotations

from enum import StrEnum

from lace.errors import LocalProtocolError


class Phase(StrEnum):
    """What both sides are doing."""

    NEW = "not started"
    SETUP = "exchanging operands"
    HELLO = "negotiating"
    PREPARE = "compiling the local policy"
    LISTING = "advertising"
    SELECTION = "choosing partitions"
    ANSWER = "answering partitions"
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
    WANTED = "a request list is not empty"
    NOT_SETTLED = "quiet, but listings may still change"
    SETTLED = "a fixed point in an open exchange"
    DONE = "a fixed point in a bounded exchange"
    TRANSFERRED = "both responses are complete"
    LOOP = "a side starts the next loop"
    OPERAND = "a side has another operand"
    CLOSE = "closed or aborted"


MOVES: dict[tuple[Phase, Move], Phase] = {
    (Phase.NEW, Move.START): Phase.SETUP,
    (Phase.SETUP, Move.AGREED): Phase.HELLO,  # 050-SETUP-01
    (Phase.HELLO, Move.AGREED): Phase.PREPARE,
    (Phase.PREPARE, Move.READY): Phase.LISTING,
    (Phase.LISTING, Move.LISTED): Phase.REQUEST,  # 050-DRV-01
    (Phase.LISTING, Move.SUMMARISED): Phase.SELECTION,  # P16
    (Phase.SELECTION, Move.SELECTED): Phase.ANSWER,
    (Phase.SELECTION, Move.NOTHING_SELECTED): Phase.REQUEST,
    (Phase.ANSWER, Move.ANSWERED): Phase.SELECTION,
    (Phase.REQUEST, Move.WANTED): Phase.TRANSFER,
    (Phase.REQUEST, Move.NOT_SETTLED): Phase.LISTING,  # P13
    (Phase.REQUEST, Move.SETTLED): Phase.IDLE,  # 050-OPEN-01
    (Phase.REQUEST, Move.DONE): Phase.CLOSED,  # 050-BOUND-07
    (Phase.TRANSFER, Move.TRANSFERRED): Phase.LISTING,
    (Phase.IDLE, Move.LOOP): Phase.LISTING,  # P20
    (Phase.IDLE, Move.OPERAND): Phase.SETUP,
    (Phase.LISTING, Move.OPERAND): Phase.SETUP,  # P20: a setup block stands where an adv could start
    **{(phase, Move.CLOSE): Phase.CLOSED for phase in Phase},
}

# Phases in which the peer's silence runs against the phase timeout (050-LIM-08: not at a fixed point).
TIMED = frozenset({
    Phase.SETUP, Phase.HELLO, Phase.LISTING, Phase.SELECTION, Phase.ANSWER, Phase.REQUEST, Phase.TRANSFER,
})  # fmt: skip


def move(phase: Phase, why: Move) -> Phase:
    """The phase that follows."""
    try:
        return MOVES[phase, why]
    except KeyError:
        raise LocalProtocolError(f"no move from {phase.value!r} because {why.value!r}") from None
