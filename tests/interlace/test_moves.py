"""The tables of the machine tell the whole truth: exchanges take every row of them, and no other (050, grammar)."""

from __future__ import annotations

import pytest

from interlace.pair import Pair, changed, group_module, make_pair, plex
from lace.interlace import core
from lace.interlace import inputs as given
from lace.interlace.phases import MOVES, QUESTIONS, READS, TIMED, Move, Phase, Question
from lace.policy.operand import Module

BY_CLAIM = Module.author(
    "SelectHave(P) :- Have(P), Advertised(_,_).\nSelectHave(P) :- Have(P), Field(P,'Group',_,'u').\n"
    "SelectAdvertised(P,S) :- Advertised(P,S)."
)
STANDARD = {
    (Phase.NEW, Move.START),
    (Phase.SETUP, Move.AGREED),
    (Phase.HELLO, Move.AGREED),
    (Phase.PREPARE, Move.READY),
    (Phase.LISTING, Move.LISTED),
    (Phase.LISTING, Move.SUMMARISED),
    (Phase.SELECTION, Move.SELECTED),
    (Phase.SELECTION, Move.NOTHING_SELECTED),
    (Phase.ANSWER, Move.ANSWERED),
    (Phase.REQUEST, Move.WANTED),
    (Phase.REQUEST, Move.NOT_SETTLED),
    (Phase.REQUEST, Move.SETTLED),
    (Phase.REQUEST, Move.CLOSE),
    (Phase.TRANSFER, Move.TRANSFERRED),
    (Phase.IDLE, Move.LOOP),
    (Phase.IDLE, Move.OPERAND),
    (Phase.IDLE, Move.CLOSE),
    (Phase.LISTING, Move.OPERAND),
}


def filled(pair: Pair, *, common: int = 0) -> Pair:
    for index, side in enumerate(pair.sides):
        side.put(*(plex(f"{index} {number}") for number in range(3)), *(plex(f"both {n}") for n in range(common)))
    return pair


def test_exchanges_take_every_move_of_the_standard_and_ask_every_question(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: set[tuple[Phase, Move]] = set()
    asked: set[Question] = set()
    original, ask = core.move, core.Core.ask

    def recorded(phase: Phase, why: Move) -> Phase:
        taken.add((phase, why))
        return original(phase, why)

    def heard(self: core.Core, question: Question, effect: object) -> None:
        asked.add(question)
        ask(self, question, effect)  # type: ignore[arg-type]

    monkeypatch.setattr(core, "move", recorded)
    monkeypatch.setattr(core.Core, "ask", heard)
    filled(make_pair()).exchange()
    filled(make_pair(BY_CLAIM, BY_CLAIM)).exchange()
    filled(make_pair(partition_threshold_bytes=0), common=4).exchange()
    pair = filled(make_pair(is_open=True))
    pair.start()
    pair.run()
    pair.sides[0].put(plex("news"))
    pair.give(pair.sides[0], given.LocalChanged())
    pair.run()
    pair.sides[0].put(plex("more"))  # its listing crosses the setup of the other side
    pair.give(pair.sides[0], given.LocalChanged())
    pair.give(pair.sides[1], changed(group_module("u")))
    pair.run()
    for side in pair.sides:  # both at once
        pair.give(side, changed(group_module("u" if side is pair.sides[0] else "v")))
    pair.run()
    pair.give(pair.sides[0], given.CloseRequested())
    pair.run()
    assert taken >= STANDARD
    assert taken <= MOVES.keys()
    standard = {question for question in Question if not question.value.endswith(_OF_070)}
    assert asked >= standard - {Question.CHILDREN}  # which takes thousands of records: see test_partitions


_OF_070 = (
    "measure what we may send",
    "take over how the peer's set changed",
    "sum up what we may send",
    "sketch what we may send",
    "decode the peer's sketch",
    "check and take over the difference that the peer named",
    "check and take over the difference that we named",
)


def test_the_tables_speak_of_the_same_phases() -> None:
    assert set(READS) == set(Phase) - {Phase.NEW, Phase.PREPARE, Phase.CLOSED}
    assert set(READS) - {Phase.IDLE} == TIMED
    assert set(QUESTIONS) == set(Question)
    assert set(QUESTIONS.values()) <= {Phase.PREPARE, *READS}
    assert {phase for phase, why in MOVES if why is Move.CLOSE} == set(Phase) - {Phase.NEW, Phase.CLOSED}
    assert all(after is not Phase.NEW and before is not Phase.CLOSED for (before, _), after in MOVES.items())
