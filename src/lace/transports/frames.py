"""WebSocket frames at the pace of a server: what is below the stream costs the event loop too (060).

Rule: all connections of a listener together have the event loop for a few milliseconds at a time, the network that used
least first; what came faster waits unread. Requests to become a WebSocket take their turns apart from frames, for each
leads to a hundred times the work of a frame: otherwise a newcomer would wait with its first words until every
network of a crowd has had as much. Frames that carry nothing (pings, pongs, empty messages) are allowed for as many as
keep a connection alive, for each of them costs us as much as one that carries something and no account sees it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Hashable
from time import thread_time

from websockets.asyncio.server import ServerConnection
from websockets.frames import Frame
from websockets.http11 import Request, Response
from websockets.protocol import State

from lace.transports.fairqueue import FairQueue, after_others

_TURN_S = 0.002  # of the event loop's thread, for all connections, before it does something else
_UPGRADE_S = 0.003  # about what follows from a request: an upgrade, and a link that begins and ends
_LEAST_PIECE, _MOST_PIECE = 512, 8192  # bytes given to the parser at a time, by whether frames carry something
IDLE_FRAMES = 100  # that carry nothing, at once
IDLE_FRAMES_PER_S = 10.0  # and in the long run


class Turns:
    """Whose bytes are parsed next: of the network that used least, so that nobody gains by many connections."""

    def __init__(self) -> None:
        self._waiting: FairQueue[PacedConnection] = FairQueue()
        self._is_waiting: set[PacedConnection] = set()
        self._left_s = _TURN_S
        self._is_due = False

    def take(self, connection: PacedConnection) -> None:
        """Bytes came: parse them now if there is time, else in turn."""
        if not self._waiting:
            while connection.has_backlog and self._left_s > 0:
                self._waiting.pass_by(connection.network)
                self._spend(connection)
        if connection.has_backlog and connection not in self._is_waiting:
            self._is_waiting.add(connection)
            self._waiting.put(connection.network, connection)
        if not self._is_due:
            self._is_due = True
            after_others(self._go_on)

    def charge(self, network: str, seconds: float) -> None:
        """Work was done for somebody, or is about to be done."""
        self._left_s -= seconds
        self._waiting.charge(network, seconds)

    def _go_on(self) -> None:
        self._left_s = _TURN_S
        try:
            while self._left_s > 0 and (taken := self._waiting.take()) is not None:
                self._spend_next(*taken)
        finally:
            self._is_due = bool(self._waiting)
            if self._is_due:
                after_others(self._go_on)

    def _spend_next(self, network: Hashable, connection: PacedConnection) -> None:
        try:
            if connection.has_backlog:
                self._spend(connection)
        finally:
            if connection.has_backlog:
                self._waiting.put(network, connection)
            else:
                self._is_waiting.discard(connection)

    def _spend(self, connection: PacedConnection) -> None:
        started = thread_time()
        connection.parse_piece()
        self.charge(connection.network, thread_time() - started)


class PacedConnection(ServerConnection):
    """A server connection that parses what it received in turn with others."""

    turns: Turns  # of frames
    requests: Turns
    network = ""  # whom it counts for until an exchange begins; told before the connection is made
    cut_because: str = ""
    _is_full = False  # messages wait that nobody has taken
    _is_lost = False
    _is_told = False  # that it is lost
    _lost_by: Exception | None = None
    _parsed = 0  # bytes of the first of the backlog
    _piece = _LEAST_PIECE
    _has_idle = False  # the last piece held a frame that carries nothing
    _idle_frames = float(IDLE_FRAMES)
    _idle_at = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # As the library's own class does it, less the handler: the maker of this connection starts that.
        super(ServerConnection, self).connection_made(transport)
        self._backlog: deque[bytes] = deque()
        self.recv_messages.pause = self._pause
        self.recv_messages.resume = self._resume

    def _take_turns(self) -> None:
        turns = self.requests if self.protocol.state is State.CONNECTING else self.turns
        turns.take(self)

    @property
    def has_backlog(self) -> bool:
        """Whether there is something to parse, and room for what comes of it."""
        return bool(self._backlog) and (self._is_lost or not self._is_full)

    def data_received(self, data: bytes) -> None:
        self._backlog.append(data)
        self._take_turns()
        if self._backlog:
            self.transport.pause_reading()

    def parse_piece(self) -> None:
        """Some of what was received; read on once it is all parsed."""
        data, start, size = self._backlog[0], self._parsed, self._piece
        self._parsed, self._has_idle = start + size, False
        if self._parsed >= len(data):
            self._backlog.popleft()
            self._parsed = 0
        super().data_received(data[start : start + size])
        self._piece = _LEAST_PIECE if self._has_idle else min(_MOST_PIECE, 2 * size)
        if self._backlog:
            return
        if self._is_lost:
            self._tell_lost()
        elif not self._is_full:
            self.transport.resume_reading()

    def _tell_lost(self) -> None:
        """Once: what came before it is parsed, or forgotten."""
        if not self._is_told:
            self._is_told = True
            super().connection_lost(self._lost_by)

    def _pause(self) -> None:
        self._is_full = True
        self.transport.pause_reading()

    def _resume(self) -> None:
        self._is_full = False
        if self._backlog:
            self._take_turns()
        else:
            self.transport.resume_reading()

    def eof_received(self) -> None:
        if not self._backlog:  # else the transport closes, and what came before is parsed before that is told
            super().eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_lost, self._lost_by = True, exc
        if self._backlog:
            self._take_turns()
        else:
            self._tell_lost()

    def process_event(self, event: Frame | Request | Response) -> None:
        if not isinstance(event, Frame):
            self.requests.charge(self.network, _UPGRADE_S)
        elif not self.cut_because and self._is_idle(event):
            self._count_idle()
        super().process_event(event)

    @staticmethod
    def _is_idle(frame: Frame) -> bool:
        return not frame.data or frame.opcode >= 8  # a control frame

    def _count_idle(self) -> None:
        self._has_idle = True
        now = self.loop.time()
        passed, self._idle_at = now - self._idle_at, now
        self._idle_frames = min(float(IDLE_FRAMES), self._idle_frames + passed * IDLE_FRAMES_PER_S) - 1
        if self._idle_frames < 0:
            self.cut_because = "the peer sends frames that carry nothing"
            self.drop()

    def drop(self) -> None:
        """End it, and forget what came."""
        self._backlog.clear()
        self._parsed = 0
        self.transport.abort()
        if (
            self._is_lost
        ):  # the transport does not report it again, and a task that waits for the end would wait forever
            self._tell_lost()
