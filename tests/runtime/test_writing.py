"""What goes out: a long answer is made piece by piece, and others have their turn between two of them."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from interlace.pair import ALL, config_of
from lace.errors import TransportError
from lace.interlace.vocabulary import NOT_AVAILABLE
from lace.notation.fact import FactColumn
from lace.runtime.link.session import Session
from lace.runtime.link.turns import LoopTurns
from lace.runtime.link.writing import LONG_PIECE, Writing, Written
from siege.speech import bogus


class Sink:
    """A stream that takes everything at once, and notes in which round of the loop."""

    def __init__(self, fault: BaseException | None = None) -> None:
        self.pieces: list[tuple[int, bytes]] = []
        self.rounds = 0
        self._fault = fault

    async def send(self, data: bytes) -> None:
        if self._fault is not None:
            raise self._fault
        self.pieces.append((self.rounds, data))

    async def count(self) -> None:
        while True:
            await asyncio.sleep(0)
            self.rounds += 1


class Slow:
    """A clock by which each piece of work takes a second."""

    now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def written(session: Session, sink: Sink) -> tuple[Written, bytes]:
    async def run() -> Written:
        counting = asyncio.create_task(sink.count())
        writing = Writing(sink, session, LoopTurns(clock=Slow()).of("a peer"), None, 5.0)  # type: ignore[arg-type]
        try:
            return await writing.flush(lambda: None)
        finally:
            counting.cancel()

    return asyncio.run(run()), b"".join(data for _, data in sink.pieces)


def session_that_says(count: int) -> tuple[Session, bytes]:
    """So many lines, and what they are."""
    session = Session(config_of(0, ALL))
    names = [bogus(number.to_bytes(4, "big")) for number in range(count)]
    session.outbox.put_facts(FactColumn(NOT_AVAILABLE, names), packs=False)
    session.outbox.end_block()
    return session, b"".join(b"NotAvailable('%s')\n" % name.encode() for name in names) + b"\n"


def test_each_piece_of_a_long_answer_is_made_in_a_round_of_its_own() -> None:
    """A stream with room in its buffer makes nobody wait, and all of it would be one long round."""
    session, wanted = session_that_says(40_000)
    sink = Sink()
    assert written(session, sink) == (Written.ALL, wanted)
    assert len(sink.pieces) > 4
    assert all(len(data) > LONG_PIECE for _, data in sink.pieces[:-1])
    rounds = [number for number, _ in sink.pieces]
    assert all(later > earlier for earlier, later in pairwise(rounds[1:]))  # two fit into what was left of the first


def test_a_short_answer_waits_for_no_turn() -> None:
    session, wanted = session_that_says(3)
    sink = Sink()
    assert written(session, sink) == (Written.ALL, wanted)
    assert [number for number, _ in sink.pieces] == [0]


@pytest.mark.parametrize(("fault", "end"), [(TransportError("gone"), Written.LOST), (TimeoutError(), Written.STUCK)])
def test_how_it_failed_is_told(fault: BaseException, end: Written) -> None:
    session, _ = session_that_says(3)
    assert written(session, Sink(fault)) == (end, b"")
