"""Token buckets: what a link may use, and how bytes are cut before they cause work."""

from __future__ import annotations

import asyncio
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lace.limits import SECOND_NS
from lace.notation.tai import TAI
from lace.runtime.clock import SteadyTai
from lace.runtime.link.turns import LoopTurns
from lace.runtime.node.metering import AccountBook, LinkMeter, LinkRates, Rate, slices
from lace.runtime.node.pulse import Pulse

RATES = LinkRates(blocks=Rate(10, 20), cpu_s=Rate(0.5, 2))


def test_a_burst_is_free_and_what_goes_beyond_it_is_waited_for() -> None:
    meter = LinkMeter(RATES, 0)
    meter.charge("blocks", 20, 0)
    assert meter.debt(0) is None
    meter.charge("blocks", 5, 0)
    debt = meter.debt(0)
    assert debt is not None
    assert (debt.account, debt.wait_s) == ("blocks", 0.5)
    assert meter.debt(SECOND_NS // 2) is None


def test_the_account_that_takes_longest_is_named() -> None:
    meter = LinkMeter(RATES, 0)
    meter.charge("blocks", 25, 0)
    meter.charge("cpu_s", 4, 0)
    debt = meter.debt(0)
    assert debt is not None
    assert (debt.account, debt.wait_s) == ("cpu_s", 4.0)
    assert meter.used["blocks"] == 25


def test_an_account_never_holds_more_than_its_burst_and_a_clock_that_stands_gives_nothing() -> None:
    meter = LinkMeter(RATES, 0)
    meter.charge("blocks", 21, 1000 * SECOND_NS)
    assert meter.debt(1000 * SECOND_NS) is not None
    assert meter.debt(999 * SECOND_NS) is not None


def test_whoever_comes_again_finds_what_it_owed() -> None:
    book, rates = AccountBook(), LinkRates(cpu_s=Rate(1, 10), peer_cpu_s=Rate(1, 10))
    first = LinkMeter(rates, 0, book.of("192.0.2.1", rates, 0))
    first.charge("cpu_s", 25, 0)
    again = LinkMeter(rates, 0, book.of("192.0.2.1", rates, 0))
    debt = again.debt(0)
    assert debt is not None
    assert (debt.account, debt.wait_s) == ("cpu_s of all its links", 15.0)
    assert again.used["cpu_s"] == 0
    assert LinkMeter(rates, 0, book.of("192.0.2.2", rates, 0)).debt(0) is None
    assert again.debt(15 * SECOND_NS) is None


def test_links_of_one_peer_pay_from_one_account_at_the_same_time() -> None:
    book, rates = AccountBook(), LinkRates(cpu_s=Rate(1, 10), peer_cpu_s=Rate(1, 10))
    links = [LinkMeter(rates, 0, book.of("p", rates, 0)) for _ in range(4)]
    for link in links:
        link.charge("cpu_s", 5, 0)
    assert [link.debt(0) is not None for link in links] == [True] * 4
    links[0].charge("blocks", 1, 0)  # nothing but processor time is shared
    assert links[1].used["blocks"] == 0


def test_accounts_that_are_full_again_are_forgotten_and_there_is_an_end_to_their_number() -> None:
    book, rates = AccountBook(max_peers=3), LinkRates(peer_cpu_s=Rate(1, 10))
    for number in range(3):
        book.of(f"p{number}", rates, 0).charge(5, 0)
    book.of("another", rates, 10 * SECOND_NS)
    assert len(book) <= 1
    for number in range(50):
        book.of(f"q{number}", rates, 0).charge(500, 0)
    assert len(book) == 3
    assert book.of("q49", rates, 0).wait_s(0) > 0


@given(st.lists(st.sampled_from([b"\n", b"\n\n", b"TickReady('x')\n", b"abc"]), max_size=400), st.integers(1, 5))
def test_slices_are_the_same_bytes_and_hold_few_blocks_each(parts: list[bytes], most: int) -> None:
    data = b"".join(parts)
    pieces = list(slices(data, most))
    assert b"".join(pieces) == data
    assert all(piece.count(b"\n\n") <= most for piece in pieces)
    assert all(pieces) or pieces == [b""]


def test_a_loop_that_is_given_work_beats_at_once_and_quickly_from_then_on() -> None:
    """What is done in many turns between two beats of an idle loop is not one stall."""

    async def beats(wakes: int) -> int:
        pulse, seen = Pulse(interval_s=3600.0), list[int]()

        def now_ns() -> int:
            seen.append(1)
            return time.monotonic_ns()

        turns = LoopTurns()
        turns.on_work = pulse.wake
        beating = asyncio.create_task(pulse.beat(now_ns))
        await asyncio.sleep(0)
        for _ in range(wakes):
            await turns.done("a peer", lambda: None)
            while len(seen) < 3:  # the start, the wake, and one soon after it
                await asyncio.sleep(0.001)
        beating.cancel()
        await asyncio.gather(beating, return_exceptions=True)
        return len(seen)

    assert asyncio.run(beats(0)) == 1
    assert asyncio.run(beats(1)) >= 3


def test_the_pulse_tells_how_long_a_loop_was_held() -> None:
    async def run() -> Pulse:
        pulse = Pulse()
        beating = asyncio.create_task(pulse.beat(time.monotonic_ns))
        await asyncio.sleep(0.03)
        until = time.thread_time() + 0.2
        while time.thread_time() < until:
            pass
        await asyncio.sleep(0.03)
        beating.cancel()
        return pulse

    pulse = asyncio.run(run())
    assert pulse.busy_s >= 0.2
    assert pulse.stall_s >= 0.15
    assert pulse.own_s <= pulse.stall_s
    pulse.reset()
    assert (pulse.stall_s, pulse.own_s, pulse.busy_s) == (0.0, 0.0, 0.0)


def test_known_links_have_more_of_everything_and_still_bounds() -> None:
    rates = LinkRates()
    known = rates.for_known()
    for account in ("blocks", "loops", "epochs", "bytes", "cpu_s"):
        stranger, friend = getattr(rates, account), getattr(known, account)
        assert (friend.per_s, friend.burst) == (stranger.per_s * 20, stranger.burst * 20)
    assert known.max_wait_s == rates.max_wait_s
    meter = LinkMeter(known, 0)
    meter.charge("loops", 60 * 20 + 100, 0)
    debt = meter.debt(0)
    assert debt is not None
    assert (debt.account, debt.wait_s) == ("loops", 1.0)


class ClockThatIsSet:
    """The machine's clock, and somebody who sets it."""

    def __init__(self) -> None:
        self.unix_ns, self.passed_ns = 1_800_000_000 * SECOND_NS, 0

    def tai(self) -> TAI:
        return TAI.of_unix_ns(self.unix_ns + self.passed_ns)

    def monotonic_ns(self) -> int:
        return self.passed_ns


@pytest.mark.parametrize("set_by_s", [-86_400, -1, 0, 86_400])
def test_accounts_fill_as_time_passes_whatever_the_clock_is_set_to(set_by_s: int) -> None:
    """One that is set back would keep whoever owes waiting until it has caught up; one set ahead would forgive all."""

    clock = ClockThatIsSet()
    time, accounts, rates = SteadyTai(clock), AccountBook(), LinkRates(peer_cpu_s=Rate(1.0, 10.0))
    accounts.of("192.0.2.1", rates, time.now_ns).charge(30.0, time.now_ns)
    assert accounts.of("192.0.2.1", rates, time.now_ns).wait_s(time.now_ns) == pytest.approx(20.0)
    clock.unix_ns += set_by_s * SECOND_NS
    clock.passed_ns += 5 * SECOND_NS
    assert accounts.of("192.0.2.1", rates, time.now_ns).wait_s(time.now_ns) == pytest.approx(15.0)
