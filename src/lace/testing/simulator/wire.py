"""The bytes between two sessions, with time and chance of the wire's own: pieces, delays, a flipped bit, a cut.

Rule: real bytes of real sessions. Where nothing is broken every byte arrives, in order; the seed alone decides what
goes wrong, and where. Wires that run together share one clock.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from lace.interlace.events import Event
from lace.runtime.host.host import LocalHost
from lace.runtime.link.session import Outcome, Session
from lace.runtime.link.synchronous import carry_out
from lace.testing.simulator.scene import Weather

MS = 1_000_000
USUAL_NS = 20 * MS  # from one end to the other
SLOW_NS = (150 * MS, 900 * MS)
LOST_AFTER_NS = 3_000 * MS  # until the ends of a cut wire notice
MAX_STEPS = 20_000  # of one wire: a scene is small


@dataclass(frozen=True, slots=True)
class WirePlan:
    """Where a wire goes wrong: offsets into what an end writes."""

    cut: tuple[int, int] | None = None  # (which end's bytes, after how many of them)
    flip: tuple[int, int, int] | None = None  # (which end's bytes, which byte, which bit)
    slow: bool = False
    seed: int = 0
    usual_ns: int = USUAL_NS
    silent: tuple[bool, bool] = (False, False)  # whether an end is heard no more after its first words


def plan_for(weather: Weather, undisturbed: tuple[int, int]) -> WirePlan:
    """What a seed does to an exchange whose two ends would write so many bytes."""
    chance = random.Random(weather.seed)  # noqa: S311 - a seed, not a secret
    cut_end, cut_part, flip_end, flip_part, bit = (
        chance.randrange(2), chance.random(), chance.randrange(2), chance.random(), chance.randrange(8)
    )  # fmt: skip
    cut = (cut_end, int(cut_part * undisturbed[cut_end])) if weather.cut else None
    flip = (flip_end, int(flip_part * undisturbed[flip_end]), bit) if weather.corrupt else None
    return WirePlan(cut, flip, weather.delay, weather.seed)


@dataclass(frozen=True, slots=True)
class Crossed:
    """Some bytes as they arrived: when, from which end, and what the wire did to them."""

    ns: int
    source: int
    data: bytes


@dataclass
class WireEnd:
    """One side: its session, its host, and what it wrote."""

    session: Session
    host: LocalHost
    written: int = 0
    events: list[tuple[int, Event]] = field(default_factory=list)
    is_told_of_end: bool = False


@dataclass(order=True)
class _Arrival:
    """What reaches an end at a moment; no data is the end of the stream."""

    ns: int
    order: int
    to: int = field(compare=False)
    data: bytes = field(compare=False, default=b"")


class Wire:
    """Two ends and a clock that jumps from arrival to arrival."""

    def __init__(self, ends: tuple[WireEnd, WireEnd], plan: WirePlan, start_ns: int) -> None:
        self.ends = ends
        self.now_ns = self._start_ns = start_ns
        self._plan = plan
        self._chance = random.Random(plan.seed + 1)  # noqa: S311 - the same
        self._queue: list[_Arrival] = []
        self._order = 0
        self._last_ns = [start_ns, start_ns]  # of arrivals at each end: bytes never overtake each other
        self.passed: list[Crossed] = []
        self.cut_at: int | None = None  # nanoseconds after the start, as is the other
        self.flipped_at: int | None = None

    @property
    def elapsed_ns(self) -> int:
        return self.now_ns - self._start_ns

    @property
    def is_cut(self) -> bool:
        """Whether nothing passes any more."""
        return self.cut_at is not None

    def start(self) -> None:
        """Both ends say what they say first."""
        for end in self.ends:
            end.session.start(self.now_ns)
        for number in (0, 1):
            self._work(number)

    @property
    def next_ns(self) -> int | None:
        """When something happens next; None if nothing ever will."""
        if all(end.session.outcome is not None for end in self.ends):
            return None
        if self._queue:
            return max(self.now_ns, self._queue[0].ns)
        timers = [end.session.next_timer for end in self.ends if end.session.outcome is None]
        due = min((timer for timer in timers if timer is not None), default=None)
        return None if due is None else max(self.now_ns, due)

    def step(self) -> None:
        """The next arrival, or the next timer where nothing is under way."""
        if self._queue:
            self._arrive(heapq.heappop(self._queue))
        else:
            self._fire_timers()

    def _fire_timers(self) -> None:
        due = self.next_ns
        if due is None:
            return
        self.now_ns = due
        for number, end in enumerate(self.ends):
            if end.session.next_timer is not None and end.session.outcome is None:
                end.session.handle_timer(self.now_ns)
                self._work(number)

    def _arrive(self, arrival: _Arrival) -> None:
        end = self.ends[arrival.to]
        self.now_ns = max(self.now_ns, arrival.ns)
        if arrival.data:
            self.passed.append(Crossed(self.elapsed_ns, 1 - arrival.to, arrival.data))
        if end.session.outcome is not None:
            return
        if arrival.data:
            end.session.receive_data(arrival.data, self.now_ns)
        else:
            end.session.receive_eof(self.now_ns)
        self._work(arrival.to)

    def _work(self, number: int) -> None:
        """Carry out what a session asks for, and put what it writes on the wire."""
        end = self.ends[number]
        moved = True
        while moved:
            moved = end.session.is_behind  # a long block is read a piece at a time
            if moved:
                end.session.go_on(self.now_ns)
            for request in end.session.requests():
                moved = True
                event = carry_out(end.session, end.host, request, self.now_ns)
                if event is not None:
                    end.events.append((self.elapsed_ns, event))
            while data := end.session.data_to_send():
                moved = True
                self._send(number, data)
        if end.session.outcome is not None and not end.is_told_of_end:
            end.is_told_of_end = True
            self._put(1 - number, b"", self._delay())

    # --- what the wire does ------------------------------------------------------------------------------------

    def _send(self, source: int, data: bytes) -> None:
        if self.is_cut or (self._plan.silent[source] and self.ends[source].written):
            return
        data = self._spoiled(source, data)
        end = self.ends[source]
        start, end.written = end.written, end.written + len(data)
        cut = self._plan.cut
        if cut is not None and cut[0] == source and end.written >= cut[1]:
            data = data[: max(0, cut[1] - start)]
            end.written = start + len(data)
        for piece in self._pieces(data):
            self._put(1 - source, piece, self._delay())
        if cut is not None and cut[0] == source and end.written >= cut[1]:
            self._break()

    def _break(self) -> None:
        """Both directions are gone; each end hears so after a while."""
        self.cut_at = self.elapsed_ns
        for number in (0, 1):
            self.ends[number].is_told_of_end = True
            self._put(number, b"", LOST_AFTER_NS)

    def _spoiled(self, source: int, data: bytes) -> bytes:
        flip = self._plan.flip
        if flip is None or flip[0] != source:
            return data
        place = flip[1] - self.ends[source].written
        if not 0 <= place < len(data):
            return data
        self.flipped_at = self.elapsed_ns
        return data[:place] + bytes([data[place] ^ 1 << flip[2]]) + data[place + 1 :]

    def _pieces(self, data: bytes) -> Iterator[bytes]:
        """What is written at once need not arrive at once."""
        if not self._plan.slow:
            yield data
            return
        while data:
            size = self._chance.randint(1, max(1, len(data)))
            yield data[:size]
            data = data[size:]

    def _delay(self) -> int:
        return self._chance.randint(*SLOW_NS) if self._plan.slow else self._plan.usual_ns

    def _put(self, to: int, data: bytes, delay_ns: int) -> None:
        self._last_ns[to] = max(self._last_ns[to], self.now_ns + delay_ns)
        self._order += 1
        heapq.heappush(self._queue, _Arrival(self._last_ns[to], self._order, to, data))


def run_together(wires: Sequence[Wire], watch: Callable[[Wire], None] = lambda _: None) -> None:
    """Run wires on one clock until all of their ends are done, or nothing moves any more."""
    for wire in wires:
        wire.start()
    for _ in range(MAX_STEPS * len(wires)):
        due = [(next_ns, number) for number, wire in enumerate(wires) if (next_ns := wire.next_ns) is not None]
        if not due:
            return
        wire = wires[min(due)[1]]
        wire.step()
        watch(wire)


def outcome_of(end: WireEnd) -> Outcome:
    """How it ended for one side; a side that never heard of an end is said to wait."""
    return end.session.outcome or Outcome(end.session.machine.result(), abort="waiting", detail="for the other side")
