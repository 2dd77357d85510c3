"""What a driver may ask a machine at any moment, from before its start to its end."""

from __future__ import annotations

import pytest

from interlace.deciding import reason_of
from interlace.pair import START_NS, blob, hash_of
from interlace.scripted import Scripted, limits_with
from lace.errors import LocalProtocolError
from lace.facts.predicates import MAY_REQUEST
from lace.interlace import inputs as given
from lace.interlace.claims.advertisement import bare_claims
from lace.interlace.loop.blocks import BlockReader
from lace.interlace.loop.requests import OneLine
from lace.interlace.machine import InterlaceMachine
from lace.interlace.phases import Phase
from lace.interlace.reasons import AbortReason
from lace.interlace.vocabulary import DIFFERENCE_ALL, Block
from lace.notation.fact import Fact

X, Y, Z, W = (blob(data) for data in (b"x", b"y", b"z", b"w"))
SECOND = 1_000_000_000


def test_before_anything_is_agreed_there_is_nothing_to_tell() -> None:
    machine = InterlaceMachine(Scripted().side.machine.config)
    assert machine.phase is Phase.NEW
    assert machine.advertised is None
    assert (machine.outstanding, machine.refused) == (frozenset(), frozenset())
    assert (machine.foreign_claims, machine.block_bytes) == (0, 0)
    assert machine.next_timer is None
    for said in (
        machine.packs, machine.wants_peer_input, machine.is_closed, machine.is_resting, machine.is_batch_open,
        machine.expects_records, machine.expects_record(hash_of(X)),
    ):  # fmt: skip
        assert said is False
    for ask in (lambda: machine.epoch, lambda: machine.agreement):
        with pytest.raises(LocalProtocolError, match="nothing is agreed yet"):
            ask()
    assert machine.module is machine.config.terms.module


def test_what_it_holds_and_waits_for_is_told_as_it_changes() -> None:
    wire = Scripted(stored=(X, Y), limits=limits_with(phase_timeout_ns=7 * SECOND))
    machine = wire.side.machine
    assert (machine.phase, machine.wants_peer_input, machine.next_timer) == (Phase.SETUP, True, START_NS + 7 * SECOND)
    assert machine.advertised is None
    wire.open()
    assert machine.phase is Phase.LISTING
    assert machine.advertised == (1, machine.epoch.own)
    assert machine.epoch.own.count == 2
    assert machine.block_bytes == 0
    line = wire.advertised(hash_of(Z))
    wire.begin(line)
    assert machine.block_bytes == len(line) + 1
    assert machine.foreign_claims == 0
    wire.begin(wire.advertised(hash_of(W)), wire.advertised(hash_of(X)))
    wire.give(given.BlockEnded())
    assert machine.block_bytes == 0
    assert machine.foreign_claims == 1  # three claims, and two records of ours
    assert machine.outstanding == {hash_of(Z), hash_of(W)}
    assert machine.phase is Phase.REQUEST
    assert not machine.expects_record(hash_of(Z))  # not before the peer has said what it wants
    assert not machine.expects_records
    wire.say()
    assert machine.phase is Phase.TRANSFER
    assert machine.is_batch_open
    assert machine.expects_records
    assert machine.expects_record(hash_of(Z))
    assert not machine.expects_record(hash_of(X))
    wire.send_records(Z)
    assert machine.outstanding == {hash_of(W)}
    assert not machine.expects_record(hash_of(Z))
    wire.give(given.BlockEnded())
    assert not machine.is_batch_open
    assert not machine.expects_record(hash_of(W))
    wire.say(f"NotAvailable('{hash_of(W)}')")
    assert machine.refused == {hash_of(W)}
    assert not machine.is_closed


@pytest.mark.clause("050-LIM-08")
def test_silence_counts_while_something_is_due() -> None:
    wire = Scripted(limits=limits_with(phase_timeout_ns=7 * SECOND))
    wire.now_ns += 7 * SECOND - 1
    wire.give(given.TimerFired())
    assert wire.reason is None
    wire.now_ns += 1
    wire.give(given.TimerFired())
    assert wire.reason is AbortReason.PHASE_TIMEOUT
    assert wire.side.machine.is_closed
    assert wire.side.machine.next_timer is None
    assert wire.side.machine.receive(given.TimerFired(), wire.now_ns) == []


def test_time_does_not_go_back() -> None:
    wire = Scripted(limits=limits_with(phase_timeout_ns=7 * SECOND))
    wire.now_ns = START_NS - 5 * SECOND
    wire.setup()
    assert wire.side.machine.next_timer == START_NS + 7 * SECOND


@pytest.mark.clause("070-ALL-01", "070-ALL-02")
@pytest.mark.parametrize(
    ("counts", "requested", "listed", "expected"),
    [
        ([], [], 3, []),
        ([], ["b", "a", "b"], 3, ["b", "a"]),
        (["3"], [], 3, ["0", "1", "2"]),
        (["2"], [], 3, "all of '2' records asked for, and 3 were listed"),
        (["03"], [], 3, "all of '03' records asked for, and 3 were listed"),
        (["3", "3"], [], 3, "asked for twice"),
        (["3"], ["a"], 3, "asked for twice"),
        (["0"], [], 0, "asked for twice"),
    ],
)
def test_all_that_was_listed_is_asked_for_by_its_number(
    counts: list[str], requested: list[str], listed: int, expected: list[str] | str
) -> None:
    lines = OneLine(16)
    lines.by_us = [str(number) for number in range(listed)]
    block = BlockReader(Block.REQUEST, 1000, differences=True)
    block.read([Fact(DIFFERENCE_ALL, (count,)) for count in counts], 1)
    block.requested.update(dict.fromkeys(requested))  # ids are checked as they are read
    if isinstance(expected, list):
        for lines.is_whole_set in (False, True):  # what differs, or our whole set
            assert lines.requested_of_us(block) == expected
            assert lines.is_asked_for_all == (bool(counts) and lines.is_whole_set)
    else:
        assert expected in reason_of(lambda: lines.requested_of_us(block))


@pytest.mark.clause("070-ALL-01")
@pytest.mark.parametrize(
    ("requested", "listed", "is_one_line"),
    [(16, 16, True), (15, 15, False), (16, 17, False), (17, 16, False), (0, 0, False)],
)
def test_many_records_that_are_all_that_was_listed_take_one_line(
    requested: int, listed: int, is_one_line: bool
) -> None:
    lines = OneLine(16)
    lines.by_peer = [str(number) for number in reversed(range(listed))]
    wanted = [str(number) for number in range(requested)]
    facts = list(lines.request_facts(wanted))
    assert (facts == [Fact(DIFFERENCE_ALL, (str(listed),))]) is is_one_line
    if not is_one_line:
        assert facts == [Fact(MAY_REQUEST, (one,)) for one in wanted]
    lines.by_peer = [str(number + 1) for number in range(requested)]
    assert list(lines.request_facts(wanted)) == [Fact(MAY_REQUEST, (one,)) for one in wanted]
    lines.by_peer, lines.whole_listing = (), bare_claims(map(str, range(listed)))
    assert list(lines.request_facts(wanted)) == facts
    lines.whole_listing = bare_claims(str(number + 1) for number in range(requested))
    assert list(lines.request_facts(wanted)) == [Fact(MAY_REQUEST, (one,)) for one in wanted]
