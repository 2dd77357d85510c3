"""The processes in which rules of peers run, who gets one next, and the warden who ends what must end.

Rule: there are few of them whatever peers do; turns go to the account that used least, one network after the other; a
process belongs to one link until another needs it more. Everything here may block and runs in threads.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import threading
import time
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import TypeVar

from lace.errors import EvaluationStopped, LaceError, LimitExceeded
from lace.interlace.host import Call, NotNow
from lace.limits import MIB
from lace.runtime.node.fairness import FairDoor
from lace.transports.fairqueue import FairQueue
from lace.values import dataclass
from lace.workers.pool import Worker, WorkerDied
from lace.workers.process import Job

T = TypeVar("T")
_LOOK_S = 0.02  # how often the warden looks, and a waiting thread whether anybody still waits for it
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")

# Memory of a guest is bounded, so rules cannot bring these upon themselves; what they can (a crash) has other signals.
BY_THE_SYSTEM = (signal.SIGKILL, signal.SIGTERM)

MAX_WAITING = "max_waiting"  # a limit that the rules which meet it did not cause

Name = tuple[str, str]
"""A rule text by its identifier, and who looks: the same rules over the same view cost the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestLimits:
    """What rules of peers may use."""

    first_rows: int = 1 << 20  # touched here, beside everybody else; honest selectors need a part of it
    max_rows: int = 1 << 28  # touched in a process of their own
    first_held_bytes: int = 8 * MIB  # derived facts, and rows of the step at work: here
    base_held_bytes: int = 24 * MIB  # and in a process of their own
    record_held_bytes: int = 256  # for each record of the store: the owner's own rules stand in there too
    record_read_bytes: int = 256  # for each record: what a process reads of it, beside what it may hold
    max_cpu_s: float = 10.0  # of one evaluation
    processes: int = 2  # that evaluate at a time
    max_process_bytes: int = 192 * MIB  # of them together; one may run however large the store is
    max_waiting: int = 256  # evaluations in line; the next one is refused
    yields_by: int = 15  # the nice value: everything else on the machine goes first
    max_remembered: int = 4096  # rule texts known to cost much
    penalty_s: float = 60.0  # for which rules that were stopped are not tried again
    max_answer_rows: int = 1 << 20  # facts that one evaluation brings back, where they are derived for an archive

    def held_bytes(self, records: int, *, is_first: bool = False) -> int:
        """What an evaluation over a store of this size may hold."""
        base = self.first_held_bytes if is_first else self.base_held_bytes
        return base + records * self.record_held_bytes

    def process_bytes(self, held_bytes: int, records: int = 0) -> int:
        """What a process may grow by that may hold this much, over a store of this size."""
        return 2 * held_bytes + records * self.record_read_bytes + 32 * MIB  # a step copies

    def places(self, process_bytes: int) -> int:
        """How many processes may evaluate at a time if each may grow by this much."""
        return max(1, min(self.processes, self.max_process_bytes // process_bytes))


def confine(process_bytes: int) -> None:
    """In a guest's process: no more memory than this beyond what it has, and no core files."""
    with open("/proc/self/statm", encoding="ascii") as file:
        data = int(file.read().split()[5]) * _PAGE
    most = data + process_bytes  # the exact limit is the engine's own
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


@dataclass(eq=False)
class Room:
    """A process, and the evaluation that runs in it."""

    worker: Worker
    is_fresh: bool = True  # nothing has been prepared in it
    is_busy: bool = False
    call: Call | None = None
    began_cpu_s: float = 0.0
    ended_because: str = ""
    used_at: float = 0.0

    def ask(self, job: Job[T]) -> T:
        """An answer, or why there is none."""
        try:
            return self.worker.ask(job)
        except WorkerDied:
            self.is_fresh = True
            # The pipes of a process close a moment before it has ended, so its end is waited for.
            if not self.ended_because and (number := self.worker.ended_by()) in BY_THE_SYSTEM:
                raise GuestKilled(f"the process of a peer's rules was ended from outside by signal {number}") from None
            raise EvaluationStopped(self.ended_because or "the process of a peer's rules ended") from None

    def cpu_s(self) -> float:
        """Processor seconds of the process so far."""
        try:
            with open(f"/proc/{self.worker.pid}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / _TICKS


class GuestKilled(LaceError):
    """Somebody else ended the process of a peer's rules: the system was short of memory, or its owner said so. That
    is no fault of the rules."""


def _not_now() -> None:
    raise NotNow("somebody else is at it")


class GuestHouse:
    """Rooms for rules of peers; shared by all links of a node.

    Without a path every guest stays where it is, unless what is asked of a room brings its facts along.
    """

    def __init__(
        self, path: Path | None, limits: GuestLimits | None = None, threads: int = 4, *, facts_come_along: bool = False
    ) -> None:
        self.path = path
        self._has_rooms = facts_come_along or path is not None
        self.limits: GuestLimits = limits or GuestLimits()
        # One core is the event loop's: it waits for each of those that compute in turn, at every system call.
        self.places: int = max(1, min(threads, (os.cpu_count() or 1) - 1))
        self.ours: FairDoor = FairDoor(self.places)
        self.guests: FairDoor = FairDoor(1)  # guests who try their luck here do so one at a time
        self._lock = threading.Condition()
        self.rooms: list[Room] = []
        self.leaving: int = 0  # processes that were killed and still hold their memory
        self._waiting: FairQueue[object] = FairQueue(self.limits.max_remembered)  # for a room
        self.costly: OrderedDict[Name, float] = OrderedDict()  # until when they are not tried again
        self._warden: threading.Thread | None = None
        self._is_closed = False

    # --- evaluations in this process ---------------------------------------------------------------------------

    @contextlib.contextmanager
    def here(self, is_ours: bool, guest: Hashable, call: Call) -> Iterator[None]:
        """A turn to evaluate beside everybody else."""
        with (self.ours if is_ours else self.guests).inside(guest, call.check):
            yield

    @contextlib.contextmanager
    def here_if_free(self, is_ours: bool, guest: Hashable) -> Iterator[None]:
        """The same if nobody has to be waited for; else NotNow."""
        with (self.ours if is_ours else self.guests).inside(guest, _not_now):
            yield

    def is_known_as_costly(self, name: Name) -> bool:
        """Whether these rules need a process of their own."""
        with self._lock:
            return self._has_rooms and name in self.costly

    def note_costly(self, name: Name, until: float = 0.0) -> None:
        """These rules asked for more than a little."""
        with self._lock:
            self.costly[name] = max(until, self.costly.pop(name, 0.0))
            while len(self.costly) > self.limits.max_remembered:
                self.costly.popitem(last=False)

    def note_stopped(self, name: Name) -> None:
        """These rules were stopped for what they cost: not again for a while."""
        self.note_costly(name, time.monotonic() + self.limits.penalty_s)

    # --- evaluations elsewhere ---------------------------------------------------------------------------------

    @contextlib.contextmanager
    def turn(self, guest: Hashable, name: Name, room: Room | None, call: Call, process_bytes: int) -> Iterator[Room]:
        """A room for one evaluation that may grow by so much: the one a link had, if nobody took it meanwhile, or a
        fresh one."""
        self.refuse_again(name)
        room = self._wait_for_room(guest, room, call, self.limits.places(process_bytes))
        started = room.began_cpu_s
        try:
            yield room
        except (LimitExceeded, EvaluationStopped):
            if not call.is_cancelled:
                self.note_stopped(name)
            raise
        finally:
            call.cpu_s += (used := max(0.0, room.cpu_s() - started))
            self._give_back(guest, room, used)

    def refuse_again(self, name: Name) -> None:
        """Raise what refuses rules that were stopped a moment ago."""
        with self._lock:
            if self.costly.get(name, 0.0) > time.monotonic():
                raise LimitExceeded("max_cpu_s", int(self.limits.max_cpu_s), "the same rules were stopped a moment ago")

    def _wait_for_room(self, guest: Hashable, had: Room | None, call: Call, places: int) -> Room:
        mine = object()
        with self._lock:
            if len(self._waiting) >= self.limits.max_waiting:
                raise LimitExceeded(MAX_WAITING, self.limits.max_waiting, "evaluations of peers' rules that wait")
            self._waiting.put(guest, mine)
            try:
                while not (self._waiting.first() is mine and (room := self._free_room(had, places)) is not None):
                    if call.is_cancelled or self._is_closed:
                        raise EvaluationStopped("nobody waits for this evaluation any more")
                    self._lock.wait(_LOOK_S)
                self._waiting.take()
            finally:
                self._waiting.withdraw(guest, mine)
                self._lock.notify_all()
            room.is_busy, room.call, room.ended_because = True, call, ""
            room.began_cpu_s = room.cpu_s()
            self._watch()
            return room

    def free_room(self, had: Room | None, places: int) -> Room | None:
        """A room that nobody uses; None if one has to be waited for."""
        with self._lock:
            return self._free_room(had, places)

    def _free_room(self, had: Room | None, places: int) -> Room | None:
        if had is not None and had in self.rooms and not had.is_busy:
            return had
        if len(self.rooms) + self.leaving < places:
            return self._new_room()
        idle = [room for room in self.rooms if not room.is_busy]
        if not idle:
            return None
        if not self.leaving:
            self._drop(min(idle, key=lambda room: room.used_at))  # its link starts over when it comes again
        return None  # until that process is gone

    def _new_room(self) -> Room:
        room = Room(Worker())
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, room.worker.pid, self.limits.yields_by)
        self.rooms.append(room)
        # Whatever ends the process, it is reaped at once, though nobody asks it for anything at the moment. By a thread
        # of its own: the thread that drops a room may be the event loop's.
        threading.Thread(target=self._reap, args=(room,), name="lace-reaper", daemon=True).start()
        return room

    def _give_back(self, guest: Hashable, room: Room, cpu_s: float) -> None:
        with self._lock:
            room.is_busy, room.call, room.used_at = False, None, time.monotonic()
            self._waiting.charge(guest, cpu_s)
            if room.is_fresh or room.ended_because:
                self._drop(room)
            self._lock.notify_all()

    def leave(self, room: Room) -> None:
        """A link is gone."""
        with self._lock:
            if room in self.rooms and not room.is_busy:
                self._drop(room)
                self._lock.notify_all()

    def _drop(self, room: Room) -> None:
        if room in self.rooms:
            self.rooms.remove(room)
            self.leaving += 1
        room.is_fresh = True
        room.worker.kill()

    def _reap(self, room: Room) -> None:
        room.worker.wait()
        with self._lock:
            if room in self.rooms:
                self.rooms.remove(room)
                self.leaving += 1
            room.is_fresh = True
            room.worker.reap()
            while room.is_busy:  # its pipes are somebody's who has yet to notice
                self._lock.wait(_LOOK_S)
        try:
            room.worker.close()
        finally:
            with self._lock:
                self.leaving -= 1
                self._lock.notify_all()

    # --- the warden --------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        if self._warden is None:
            self._warden = threading.Thread(target=self._look_around, name="lace-warden", daemon=True)
            self._warden.start()

    def _look_around(self) -> None:
        while True:
            time.sleep(_LOOK_S)
            with self._lock:
                if not any(room.is_busy for room in self.rooms):
                    self._warden = None
                    return
                for room in self.rooms:
                    why = self._reason_to_end(room)
                    if why and not room.ended_because:
                        room.ended_because = why
                        room.worker.kill()

    def _reason_to_end(self, room: Room) -> str:
        if not room.is_busy or room.call is None:
            return ""
        if room.call.is_cancelled or self._is_closed:
            return "nobody waits for this evaluation any more"
        if room.cpu_s() - room.began_cpu_s > self.limits.max_cpu_s:
            return f"the peer's rules took more than {self.limits.max_cpu_s:g} s of processor time"
        return ""

    def close(self) -> None:
        """End every process."""
        with self._lock:
            self._is_closed = True
            for room in list(self.rooms):
                room.ended_because = "the node ended"
                room.worker.kill()
                if not room.is_busy:
                    self._drop(room)
            self._lock.notify_all()
