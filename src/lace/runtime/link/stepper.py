"""One side of one exchange, without I/O: what its session asks for is done now where that is possible, and else handed
out as jobs (050, 060).

Rule: `step` never waits. It carries out requests in their order for as long as the host answers without waiting, and
returns jobs for the rest. The runner of the link does the jobs and returns each result: in threads (`drive`), one
after the other in its own thread (`synchronous`), or for two machines in turn (`local`). There is no other way from a
session to a host.

What waits here, each with a bound: `requests` of the session, records gathered into a batch, `batches` that are being
judged and committed, and one service that lists or loads as fast as the peer takes it.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from functools import partial
from typing import Any, Protocol, cast

from lace.errors import LaceError
from lace.interlace import effects as asked
from lace.interlace import inputs as given
from lace.interlace.claims.advertisement import Advertisement
from lace.interlace.events import Advertising, EpochBegan, Event, FixedPoint
from lace.interlace.host import NOT_NOW, Arrived, Call, Cancelled, Host, NotNow, at_hand, limit_of, perform, store
from lace.interlace.machine import InterlaceMachine
from lace.interlace.setup.terms import Terms
from lace.limits import SECOND_NS
from lace.runtime.link.account import LinkAccount
from lace.runtime.link.session import CheckedResource, CheckResource, ReceivedRecords, Request, checked
from lace.runtime.node.bounds import DriveLimits
from lace.values import dataclass


class JobPlace(Enum):
    """Where a job is best done."""

    THREAD = "reads or writes the store"
    EVALUATION = "may wait for its turn to evaluate, and take long"
    HASHING = "hashes the roots of a whole set, which everybody's short questions should not wait behind"
    COMMIT = "writes the store; one at a time"
    JUDGE = "may wait for worker processes"


@dataclass(frozen=True, slots=True)
class LinkJob:
    """Something that may block; `done` has to be called with what `work` returned, where the link is stepped."""

    place: JobPlace
    work: Callable[[Call], Any]
    done: Callable[[Any, int], None]


def _place_of(request: asked.HostEffect) -> JobPlace:
    match request:
        case asked.PreparePolicy() | asked.Evaluate():
            return JobPlace.EVALUATION
        case asked.Summarise() | asked.Reconcile():
            return JobPlace.HASHING
        case _:
            return JobPlace.THREAD


class SteppedSession(Protocol):
    """What a stepper needs of a session: over bytes, or with its peer in this process."""

    machine: InterlaceMachine
    terms: Terms

    @property
    def next_timer(self) -> int | None: ...
    def requests(self) -> list[Request]: ...
    def answer(self, answer: given.LocalInput, now_ns: int) -> None: ...
    def resource_checked(self, checked: CheckedResource, now_ns: int) -> None: ...
    def put_listing(self, advertisements: Sequence[Advertisement], source: str) -> None: ...
    def put_records(self, records: Sequence[tuple[str, bytes]]) -> None: ...
    def takes_more(self, max_unsent_bytes: int) -> bool: ...


class LinkStepper:
    """A session, its host, and what is under way between the two."""

    def __init__(
        self,
        session: SteppedSession,
        host: Host[Any],
        limits: DriveLimits | None = None,
        *,
        account: LinkAccount | None = None,
        on_event: Callable[[Event], None] | None = None,
        on_stored: Callable[[], None] | None = None,
    ) -> None:
        self.session = session
        self.host = host
        self.requests: deque[Request] = deque()
        self.storing_bytes: int = 0  # received, and not yet committed
        self._limits = limits or DriveLimits()
        self._on_event = on_event
        self._on_stored = on_stored
        self._account = account  # what the peer causes is charged to it; None where nobody pays
        self.is_held_up: bool = False  # by a job that the next request waits for
        self._is_ended = False
        self._service: _Service | None = None
        self._intake = LinkIntake(self._limits)

    # --- what is known of it -----------------------------------------------------------------------------------

    @property
    def next_timer(self) -> int | None:
        """When to step again, though nothing has come."""
        timers = [due for due in (self.session.next_timer, self._intake.closes_at_ns) if due is not None]
        return min(timers, default=None)

    @property
    def is_drained(self) -> bool:
        """Whether little of what was put is still unsent."""
        return self.session.takes_more(self._limits.max_unsent_bytes)

    # --- moving ------------------------------------------------------------------------------------------------

    def collect(self) -> None:
        """Take over what the session asks for."""
        for request in self.session.requests():
            if self._is_ended and not isinstance(request, asked.Report | asked.KeepClaims):
                continue
            if isinstance(request, ReceivedRecords):
                self.storing_bytes += request.size
            self.requests.append(request)

    def step(self, now_ns: int) -> list[LinkJob]:
        """Do what can be done now; what has to be done elsewhere."""
        jobs: list[LinkJob] = []
        self.collect()
        for _ in range(self._limits.steps_a_turn):
            if not self._may_take:
                break
            jobs += self.carry_out(self.requests.popleft(), now_ns)
            self.collect()
        self._close_batch(now_ns)
        return jobs + self.jobs()

    def jobs(self) -> list[LinkJob]:
        """Jobs for what waits behind the requests, as far as they can be begun now."""
        jobs = list(self._intake.jobs(self))
        if self._can_serve:
            jobs += [self._service.next_job()] if self._service is not None else []
        return jobs

    @property
    def can_step(self) -> bool:
        """Whether a step would bring anything, at the time of the last one."""
        return self._can_serve or self._may_take

    @property
    def _may_take(self) -> bool:
        if self.is_held_up or not self.requests:
            return False
        return not (self._intake.is_full and isinstance(self.requests[0], ReceivedRecords))

    @property
    def _can_serve(self) -> bool:
        return self._service is not None and not self._service.is_busy and self.is_drained

    def end(self) -> None:
        """The exchange is over: of what is left only reports and the peer's claims are of use to anybody."""
        self.collect()
        self._is_ended = True
        self._intake.close_batch()
        self._service = None
        kept = [request for request in self.requests if isinstance(request, asked.Report | asked.KeepClaims)]
        self.requests = deque(kept)

    def flush(self) -> None:
        """Nothing more comes for now: what was gathered is a batch."""
        self._intake.close_batch()

    # --- requests ----------------------------------------------------------------------------------------------

    def carry_out(self, request: Request, now_ns: int) -> list[LinkJob]:
        """One request: now, or by the job that is returned. Records are gathered, and a long answer is served by
        `jobs`."""
        if isinstance(request, ReceivedRecords):
            self._intake.add(request, now_ns)
            return []
        self._intake.close_batch()  # records are judged before what was asked for after them is done
        job = self._done_or_job(request, now_ns)
        self.is_held_up = job is not None
        return [] if job is None else [job]

    def _done_or_job(self, request: Request, now_ns: int) -> LinkJob | None:
        match request:
            case ReceivedRecords():
                raise AssertionError("records are gathered")
            case CheckResource(resource):
                check = partial(checked, resource, self.session.terms.engine_limits)
                if len(resource.text) > self._limits.short_rules_bytes:
                    return self._job(JobPlace.THREAD, lambda _: check(), self.session.resource_checked)
                self.session.resource_checked(check(), now_ns)
            case asked.SendListing() | asked.SendRecords():
                self._serve(request, now_ns)
            case asked.Report(event):
                self.tell(event)
                if isinstance(event, FixedPoint) and self.session.terms.is_open:
                    return self._rest()
            case _:
                return self._ask(request, now_ns)
        return None

    def _ask(self, request: asked.HostEffect, now_ns: int) -> LinkJob | None:
        is_long = isinstance(request, asked.PreparePolicy | asked.Evaluate)
        is_put_off = (
            is_long and self._account is not None and self._account.is_in_debt
        )  # nothing is begun, however quick
        if not is_put_off:
            answer = perform(self.host, request, Call(may_wait=False))
            if answer is not NOT_NOW:
                self._answer(answer, now_ns)
                return None
        return self._job(_place_of(request), partial(perform, self.host, request), self._answer)

    def _rest(self) -> LinkJob | None:
        if self.host.answers_now:
            with contextlib.suppress(NotNow):
                self.host.rest(Call(may_wait=False))
                return None
        return self._job(JobPlace.EVALUATION, partial(_rest, self.host), lambda _, __: None)

    def _job(self, place: JobPlace, work: Callable[[Call], Any], done: Callable[[Any, int], None]) -> LinkJob:
        """One that the next requests wait for."""

        def end(found: Any, now_ns: int) -> None:
            self.is_held_up = False
            done(found, now_ns)

        return LinkJob(place, work, end)

    def _answer(self, answer: Any, now_ns: int) -> None:
        if answer is not None and not self.session.machine.is_closed:
            self.session.answer(answer, now_ns)

    def tell(self, event: Event) -> None:
        """Something happened that costs the peer, or that the application may want to hear."""
        if self._account is not None and isinstance(event, Advertising | EpochBegan):
            self._account.charge("epochs" if isinstance(event, EpochBegan) else "loops", 1)
        if self._on_event is not None:
            self._on_event(event)

    # --- what goes out -----------------------------------------------------------------------------------------

    def _serve(self, request: asked.SendListing | asked.SendRecords, now_ns: int) -> None:
        service = _Service(self, request, now_ns)
        if not self.is_drained or not service.is_done_now(now_ns):
            self._service = service  # its first job comes with this step

    def end_service(self, answer: given.LocalInput, now_ns: int) -> None:
        """All of a listing or a transfer was written, or it failed."""
        self._service = None
        self._answer(answer, now_ns)

    @property
    def service_ns(self) -> int:
        return self._limits.service_ns

    # --- what comes in -----------------------------------------------------------------------------------------

    def _close_batch(self, now_ns: int) -> None:
        """A small batch waits a moment for more of the records that were asked for."""
        closes_at = self._intake.closes_at_ns
        if closes_at is not None and (now_ns >= closes_at or not self.session.machine.expects_records):
            self._intake.close_batch()

    def end_batch(self, answers: Sequence[given.LocalInput], size: int, now_ns: int) -> None:
        """A batch is durable, or refused."""
        self.storing_bytes -= size
        for answer in answers:
            self._answer(answer, now_ns)
            if self._on_stored is not None and isinstance(answer, given.RecordsStored):
                self._on_stored()


class _CallOfJobs(Call):
    """One call that goes on in several jobs: it is cancelled when the job is that it goes on in now."""

    __slots__ = ("of",)

    def __init__(self) -> None:
        super().__init__()
        self.of: Call | None = None

    @property
    def is_cancelled(self) -> bool:
        return self.of is not None and self.of.is_cancelled


class _Service:
    """A listing or records on their way out: a batch for each job, and the next one when the peer has taken most."""

    def __init__(self, link: LinkStepper, request: asked.SendListing | asked.SendRecords, now_ns: int) -> None:
        self._link = link
        self._request = request
        self._began_ns = now_ns
        self._fitting = Fitting(request) if isinstance(request, asked.SendRecords) else None
        self._named: list[str] = []
        self._call = _CallOfJobs()
        self._batches = self._ask(request, self._call)  # a generator: nothing is done before the first job
        self.is_busy = False

    def is_done_now(self, now_ns: int) -> bool:
        """Whether there was no need to wait for any of it."""
        found = at_hand(self._link.host, self._ask, self._request)
        for batch in found or ():
            self._put(batch)
        if found is not None:
            self._link.end_service(self._answer, now_ns)
        return found is not None

    def next_job(self) -> LinkJob:
        self.is_busy = True
        return LinkJob(JobPlace.THREAD, self._load, self._loaded)

    def _ask(self, request: asked.SendListing | asked.SendRecords, call: Call) -> Iterator[Any]:
        host = self._link.host
        return host.list(request, call) if isinstance(request, asked.SendListing) else host.load(request, call)

    def _load(self, call: Call) -> Any:
        self._call.of = call
        try:
            return next(self._batches, None)
        except LaceError as error:
            return given.LocalFailed(str(error), limit_of(error))
        finally:
            call.cpu_s, self._call.cpu_s = call.cpu_s + self._call.cpu_s, 0.0

    def _loaded(self, found: Any, now_ns: int) -> None:
        self.is_busy = False
        if isinstance(found, given.LocalFailed):
            self._link.end_service(found, now_ns)
            return
        if found:
            self._put(found)
        is_late = self._fitting is not None and now_ns - self._began_ns > self._link.service_ns
        if not found or is_late or (self._fitting is not None and self._fitting.is_full):
            self._link.end_service(self._answer, now_ns)

    def _put(self, batch: Any) -> None:
        session = self._link.session
        if isinstance(self._request, asked.SendListing):
            session.put_listing(batch, self._request.source)
            self._named += self._request.names(batch)
        elif self._fitting is not None:
            session.put_records(self._fitting.take_all(batch))

    @property
    def _answer(self) -> given.LocalInput:
        if self._fitting is None:
            return given.ListingSent(self._named)
        return given.RecordsSent(self._fitting.sent, self._fitting.missing)


class _Batch:
    """Records that are judged and committed together."""

    def __init__(self, records: list[Arrived], size: int) -> None:
        self.records = records
        self.size = size
        self.is_begun = self.is_judged = False
        self.judged: Any = None

    def note(self, judged: Any, now_ns: int) -> None:
        self.is_judged, self.judged = True, judged


class LinkIntake:
    """Received records on their way into the store: several batches are judged at a time, and committed in order.

    Many records are judged and stored in half the time of few. Of a few short ones the two are one job: to hand them
    from thread to thread takes longer.
    """

    def __init__(self, limits: DriveLimits) -> None:
        self._limits = limits
        self._gathered: list[Arrived] = []
        self._size = 0
        self._batches: deque[_Batch] = deque()
        self._is_committing = False
        self.closes_at_ns: int | None = None  # when what was gathered waits no longer for more

    @property
    def is_full(self) -> bool:
        """Whether more would have to wait: then the peer does."""
        return len(self._batches) > self._limits.verify_slices

    def add(self, received: ReceivedRecords, now_ns: int) -> None:
        self._gathered += received.records
        self._size += received.size
        self.closes_at_ns = now_ns + int(self._limits.linger_s * SECOND_NS)
        if self._size >= self._limits.max_batch_bytes or len(self._gathered) >= self._limits.max_batch_records:
            self.close_batch()

    def close_batch(self) -> None:
        if self._gathered:
            self._batches.append(_Batch(self._gathered, self._size))
        self._gathered, self._size, self.closes_at_ns = [], 0, None

    def jobs(self, link: LinkStepper) -> Iterator[LinkJob]:
        """What can be begun now."""
        for batch in list(self._batches):
            if not batch.is_begun and not self._is_short(batch):
                batch.is_begun = True
                yield LinkJob(JobPlace.JUDGE, partial(link.host.judge, batch.records), batch.note)
        head = self._batches[0] if self._batches else None
        if head is None or self._is_committing or not (head.is_judged or self._is_short(head)):
            return
        self._is_committing = True
        if head.is_judged:
            work: Callable[[Call], Any] = partial(store, link.host, head.judged)
        else:
            work = partial(judge_and_store, link.host, head.records)
        yield LinkJob(JobPlace.COMMIT, work, partial(self._committed, link))

    def _committed(self, link: LinkStepper, answers: Sequence[given.LocalInput], now_ns: int) -> None:
        self._is_committing = False
        link.end_batch(answers, self._batches.popleft().size, now_ns)

    def _is_short(self, batch: _Batch) -> bool:
        limits = self._limits
        return len(batch.records) <= limits.one_job_records and batch.size <= limits.one_job_bytes


def judge_and_store(host: Host[Any], records: Sequence[Arrived], call: Call) -> Sequence[given.LocalInput]:
    """A few records at once; what our set becomes by them is worked out here as well, while it is all at hand."""
    answers = store(host, host.judge(records, call), call)
    shared = host.shared
    if shared is not None and any(isinstance(one, given.RecordsStored) for one in answers):
        following = Call(payer=call.payer, may_wait=False)
        with contextlib.suppress(LaceError):  # NotNow; any other error the next caller that asks for the set gets too
            shared.refresh(following)
        call.cpu_s += following.cpu_s
    return answers


def _rest(host: Host[Any], call: Call) -> None:
    with contextlib.suppress(Cancelled):  # the link has ended
        host.rest(call)


class Fitting:
    """Which of the requested records fit into one transfer phase."""

    def __init__(self, request: asked.SendRecords) -> None:
        self._request = request
        self._total = 0
        self.sent: list[tuple[str, int]] = []
        self.missing: list[str] = []
        self.is_full: bool = False

    def take_all(self, batch: Sequence[tuple[str, bytes | None]]) -> list[tuple[str, bytes]]:
        """What of a batch is sent; the first that does not fit ends the service."""
        sizes = [(record, len(stored)) for record, stored in batch if stored is not None]
        size = sum([length for _, length in sizes])
        bound = min(self._request.limit_bytes, self._request.budget_bytes)
        if len(sizes) == len(batch) and self._total + size <= bound and not self.is_full:
            self._total += size
            self.sent += sizes
            return cast("list[tuple[str, bytes]]", list(batch))
        return self._take_each(batch)

    def _take_each(self, batch: Sequence[tuple[str, bytes | None]]) -> list[tuple[str, bytes]]:
        taken: list[tuple[str, bytes]] = []
        for record, stored in batch:
            if self.is_full:
                break
            if stored is None:
                self.missing.append(record)
                continue
            self._total += len(stored)
            over_budget = bool(self.sent) and self._total > self._request.budget_bytes
            if self._total > self._request.limit_bytes or over_budget:
                self.is_full = True
                break
            self.sent.append((record, len(stored)))
            taken.append((record, stored))
        return taken
