"""Two sessions with their real stores and policies, joined by nothing but bytes: a whole exchange without a socket."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from interlace.fakehost import FakeHost
from interlace.pair import START_NS
from lace.interlace.events import Event
from lace.interlace.host import Host
from lace.interlace.setup.terms import MachineConfig, Terms
from lace.runtime.link.session import Outcome, Session
from lace.runtime.link.synchronous import carry_out
from lace.store.base import RecordStore

MakeHost = Callable[[RecordStore, Terms], Host[Any]]


@dataclass
class End:
    """One end of a memory link."""

    config: MachineConfig
    store: RecordStore
    make_host: MakeHost = FakeHost
    sent: bytearray = field(default_factory=bytearray)  # everything it wrote
    events: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.session = Session(self.config)
        self.host = self.make_host(self.store, self.config.terms)
        self.taken = 0  # how many of the peer's bytes it was given

    @property
    def outcome(self) -> Outcome:
        assert self.session.outcome is not None, self.session.machine.phase
        return self.session.outcome

    @property
    def have(self) -> set[str]:
        return {str(record) for _, record in self.store.records_since()}

    def perform(self, now_ns: int) -> bool:
        """Carry out what the session asks for, and collect what it writes."""
        moved = self.session.is_behind
        if moved:
            self.session.go_on(now_ns)
        while requests := self.session.requests():
            moved = True
            for request in requests:
                event = carry_out(self.session, self.host, request, now_ns)
                self.events += [event] if event is not None else []
        while data := self.session.data_to_send():
            self.sent += data
            moved = True
        return moved


Cut = Callable[[End], int | None]  # after how many bytes written by an end the link breaks


class MemoryLink:
    """Bytes from each end to the other, in pieces of a chosen size."""

    def __init__(self, ends: Sequence[End], *, piece: int = 1 << 20, cut_after: int | None = None) -> None:
        self.ends = tuple(ends)
        self.now_ns = START_NS
        self._piece = piece
        self._cut_after = cut_after  # bytes of the first end that still arrive; then both directions are gone

    def run(self) -> None:
        """Until nothing moves any more; an end that finished closes the stream."""
        for end in self.ends:
            end.session.start(self.now_ns)
        moved = True
        while moved:
            steps = [self.step(end, self.ends[1 - index]) for index, end in enumerate(self.ends)]
            moved = any(steps)

    def step(self, end: End, peer: End) -> bool:
        moved = end.perform(self.now_ns)
        if end.session.outcome is not None:
            return moved
        limit = len(peer.sent)
        is_cut = self._cut_after is not None and peer is self.ends[0] and limit >= self._cut_after
        if is_cut and self._cut_after is not None:
            limit = self._cut_after
        if end.taken < limit:
            data = bytes(peer.sent[end.taken : min(limit, end.taken + self._piece)])
            end.taken += len(data)
            end.session.receive_data(data, self.now_ns)
            return True
        if (is_cut or peer.session.outcome is not None) and end.session.outcome is None and not moved:
            end.session.receive_eof(self.now_ns)
            end.perform(self.now_ns)
            return end.session.outcome is not None
        return moved
