"""Everything a machine may ask of its own side (050): one surface, whatever stands behind it.

Rule: a host speaks of our records by the handle of a set and of the peer's claims by how they change; every call can
be cancelled and counts what it cost. There is one host for each link. What links share, and where the work is done (in
this thread, in a process that can be killed, on a cluster), is the host's own affair.

A call says whether it may wait. One that may is made where blocking hurts nobody, one at a time, except that `load` and
`list` are stepped while `judge` and `commit` go on. One that may not is answered as it would be otherwise, or with
NOT_NOW: then nothing was done, and the host is asked again by a call that may wait. `perform` is the only place that
turns effects into calls and failures into answers, so that an exchange ends the same way whatever drives it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Final, Generic, Literal, Protocol, TypeVar, assert_never

from lace.errors import LaceError, LimitExceeded, StoreError
from lace.interlace import inputs as given
from lace.interlace.claims.advertisement import Advertisement
from lace.interlace.effects import (
    Decode,
    Evaluate,
    HostEffect,
    KeepClaims,
    Measure,
    PreparePolicy,
    Reconcile,
    SendChanges,
    SendListing,
    SendRecords,
    Sketch,
    Summarise,
    TakeChange,
    TakeClaims,
    TakeDifference,
)
from lace.interlace.loop.refusals import Reason
from lace.notation.identifiers import RecordHash
from lace.notation.stopping import Interrupt, never

Arrived = tuple[str, bytes]
"""The hash that was asked for, and the bytes that came under its name."""

Loaded = list[tuple[str, bytes | None]]
"""Requested hashes, each with its stored bytes, or None if it may not be sent or is no longer there."""


class Cancelled(LaceError):
    """A call was given up by its caller."""


class NotNow(LaceError):
    """A call that may not wait would have to."""


class _Later(Enum):
    NOT_NOW = "ask again, and wait"


NOT_NOW: Final = _Later.NOT_NOW
"""What `perform` answers where the host would have to wait, and was asked not to."""
NotNowAnswer = Literal[_Later.NOT_NOW]


class ListingMismatch(LaceError):
    """What the peer listed is not what its summaries promised (050-PART-15, 050-PART-16)."""

    def __init__(self, detail: str, clause: str) -> None:
        super().__init__(detail)
        self.detail = detail
        self.clause = clause


class Payer(Protocol):
    """Whose account processor time is charged to; may be called from any thread, and after its link has ended."""

    def pay(self, cpu_s: float) -> None: ...


class Call:
    """One call to a host: cancelled from any thread, charged by the host as it works.

    `rows` counts facts, claims and records that were touched, `bytes` those that were read or written. Equal calls
    over equal views cost the same.
    """

    __slots__ = ("_interrupt", "_is_cancelled", "account", "bytes", "cpu_s", "max_rows", "may_wait", "payer", "rows")

    def __init__(
        self,
        max_rows: int | None = None,
        payer: Payer | None = None,
        *,
        may_wait: bool = True,
        interrupt: Interrupt = never,
    ) -> None:
        self.max_rows: int | None = max_rows
        self.payer: Payer | None = payer
        self.may_wait: bool = may_wait  # False on an event loop, where other links would wait as well
        self.account: Hashable = None  # whose turn it takes where calls wait for one; None: of whom the host is for
        self.rows: int = 0
        self.bytes: int = 0
        self.cpu_s: float = 0.0  # beside that of the calling thread: more by other processes, less by what others pay
        self._is_cancelled = False
        self._interrupt = interrupt  # asked by whoever does the work

    def cancel(self) -> None:
        """Have the host give up as soon as it looks."""
        self._is_cancelled = True

    @property
    def is_cancelled(self) -> bool:
        """Whether nobody waits any more."""
        return self._is_cancelled or self._interrupt()

    def check(self) -> None:
        """Raise Cancelled if nobody waits any more."""
        if self.is_cancelled:
            raise Cancelled("the call was cancelled")

    def needs_time(self) -> None:
        """What follows reads the store's file, waits for somebody or takes a while: NotNow if that may not be."""
        if not self.may_wait:
            raise NotNow("the call would have to wait")

    def charge(self, *, rows: int = 0, size: int = 0) -> None:
        """Count work that is about to be done; raises if it is more than was granted, or unwanted."""
        self.rows += rows
        self.bytes += size
        self.check()
        if self.max_rows is not None and self.rows > self.max_rows:
            raise LimitExceeded("max_rows", self.max_rows, "rows touched by one call")


Judged = TypeVar("Judged")
Wanted = TypeVar("Wanted")
Batch = TypeVar("Batch")


class Shared(Protocol):
    """What is worked out once for several links."""

    @property
    def is_current(self) -> bool:
        """Whether it has seen all that was stored."""

    def refresh(self, call: Call) -> None:
        """Follow the store. A call that may not wait follows a few records; NotNow if there are more."""


class Host(Protocol, Generic[Judged]):
    """One side of one link."""

    @property
    def answers_now(self) -> bool:
        """Whether calls that may not wait are of any use; a host that has nothing in memory says no."""

    @property
    def shared(self) -> Shared | None:
        """What this link has in common with others that have the same object here."""

    def expect(self, claimed: int) -> None:
        """The peer has listed so many records so far: what is needed to take in many may be started. Never waits."""

    @property
    def cursor(self) -> object:
        """A value that is another one whenever the store has changed; to be compared and nothing else."""

    def prepare(self, wanted: PreparePolicy, call: Call) -> given.PolicyPrepared:
        """The local executable of a plan, and the peer's claims to begin with; raises what refuses it."""

    def evaluate(self, wanted: Evaluate, call: Call) -> given.Evaluated:
        """What we may send and request now; raises what stopped it."""

    def rest(self, call: Call) -> None:
        """Both sides are at a fixed point: from here on small changes are likely."""

    def summarise(self, wanted: Summarise, call: Call) -> given.Summarised:
        """Counts and roots of a set's partitions."""

    def list(self, wanted: SendListing, call: Call) -> Iterator[Sequence[Advertisement]]:
        """A set's advertisements, sorted, in batches of bounded size; each step may block."""

    def differences(self, wanted: SendChanges, call: Call) -> given.ChangesReceived:
        """How a set differs from the one that was asked for last."""

    def take_claims(self, wanted: TakeClaims, call: Call) -> given.ClaimsTaken:
        """What the peer claims from now on."""

    def reconcile(self, wanted: Reconcile, call: Call) -> given.Reconciled:
        """What the peer claims from now on, as far as its summaries tell; raises ListingMismatch."""

    def measure(self, wanted: Measure, call: Call) -> given.Measured:
        """A set's measure under the key of the epoch, and its change since it was measured last."""

    def sketch(self, wanted: Sketch, call: Call) -> given.Sketched:
        """Symbols of a set's sketch."""

    def decode(self, wanted: Decode, call: Call) -> given.Decoded:
        """How a set differs from the one whose symbols are given, as far as these tell."""

    def take_difference(self, wanted: TakeDifference | TakeChange, call: Call) -> given.DifferenceTaken:
        """What the peer claims from now on, if that adds up to what it told."""

    def keep_claims(self, wanted: KeepClaims, call: Call) -> None:
        """Keep the peer's claims for the next exchange; losing them costs a listing, so a failure is not an error."""

    def load(self, wanted: SendRecords, call: Call) -> Iterator[Loaded]:
        """Stored bytes in batches of bounded size, every hash once; each step may block."""

    def judge(self, records: Sequence[Arrived], call: Call) -> Judged:
        """Validate a batch; several may be judged at a time."""

    def commit(self, judged: Judged, call: Call) -> Sequence[given.RecordsStored | given.RecordsRejected]:
        """Store what is valid of a batch, durable on return; batches are committed in their order."""

    def close(self) -> None:
        """Let go of everything that is held for this link."""


def perform(host: Host[Judged], effect: HostEffect, call: Call) -> given.HostAnswer | NotNowAnswer | None:
    """Carry out what a machine asks of its own side; the answer, if the effect has one. NOT_NOW only if the call may
    not wait."""
    if not call.may_wait and not host.answers_now:
        return NOT_NOW
    try:
        return _perform(host, effect, call)
    except NotNow:
        return NOT_NOW
    except StoreError as error:
        return given.LocalFailed(str(error))
    except ListingMismatch as error:
        return given.ListingRefused(error.detail, error.clause)
    except LaceError as error:
        if isinstance(effect, PreparePolicy):
            return given.PolicyRefused(str(error))
        if isinstance(effect, Evaluate):
            return given.EvaluationFailed(str(error), limit_of(error))
        return given.LocalFailed(str(error), limit_of(error))


def at_hand(host: Host[Judged], ask: Callable[[Wanted, Call], Iterator[Batch]], wanted: Wanted) -> list[Batch] | None:
    """All batches of a listing or of records, if there is no need to wait for any; None is NOT_NOW."""
    if not host.answers_now:
        return None
    try:
        return list(ask(wanted, Call(may_wait=False)))
    except NotNow:
        return None


def limit_of(error: LaceError) -> str:
    """The name of the limit of ours that an error is about, if it is one."""
    return error.limit if isinstance(error, LimitExceeded) else ""


def _perform(host: Host[Judged], effect: HostEffect, call: Call) -> given.HostAnswer | None:
    match effect:
        case PreparePolicy():
            return host.prepare(effect, call)
        case Evaluate():
            return host.evaluate(effect, call)
        case Summarise():
            return host.summarise(effect, call)
        case TakeClaims():
            return host.take_claims(effect, call)
        case Reconcile():
            return host.reconcile(effect, call)
        case Measure():
            return host.measure(effect, call)
        case Sketch():
            return host.sketch(effect, call)
        case Decode():
            return host.decode(effect, call)
        case TakeDifference() | TakeChange():
            return host.take_difference(effect, call)
        case KeepClaims():
            host.keep_claims(effect, call)
            return None
        case _:
            assert_never(effect)


def store(
    host: Host[Judged], judged: Judged, call: Call
) -> Sequence[given.RecordsStored | given.RecordsRejected | given.LocalFailed]:
    """Commit a judged batch; a store that fails is an answer too."""
    try:
        return host.commit(judged, call)
    except LaceError as error:
        return [given.LocalFailed(str(error), limit_of(error))]


def committed(
    stored: Sequence[RecordHash], refused: Mapping[str, str], words: Mapping[str, Reason]
) -> Sequence[given.RecordsStored | given.RecordsRejected]:
    """What `commit` answers: what of a batch is durable now, and what is not, with why."""
    kept = (given.RecordsStored(stored),) if stored else ()
    return (*kept, given.RecordsRejected(refused, words)) if refused else kept
