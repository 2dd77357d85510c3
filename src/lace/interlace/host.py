"""Everything a machine may ask of its own side (050): one surface, whatever stands behind it.

Rule: a host speaks of our records by the handle of a set and of the peer's claims by how they change; every call can
be cancelled and counts what it cost. There is one host for each link. What links share, and where the work is done (in
this thread, in a process that can be killed, on a cluster), is the host's own affair.

A host may block: the driver of a machine calls it where blocking hurts nobody, one call at a time, except that `load`
and `list` are stepped while `judge` and `commit` go on. `perform` is the only place that turns effects into calls and
failures into answers, so that an exchange ends the same way whatever drives it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Generic, Protocol, TypeVar, assert_never

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

Arrived = tuple[str, bytes]
"""The hash that was asked for, and the bytes that came under its name."""

Loaded = list[tuple[str, bytes | None]]
"""Requested hashes, each with its stored bytes, or None if it may not be sent or is no longer there."""


class Cancelled(LaceError):
    """A call was given up by its caller."""


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

    __slots__ = ("_is_cancelled", "account", "bytes", "cpu_s", "max_rows", "payer", "rows")

    def __init__(self, max_rows: int | None = None, payer: Payer | None = None) -> None:
        self.max_rows = max_rows
        self.payer = payer
        self.account: Hashable = None  # whose turn it takes where calls wait for one; None: of whom the host is for
        self.rows = 0
        self.bytes = 0
        self.cpu_s = 0.0  # beside that of the calling thread: more by other processes, less by what others pay
        self._is_cancelled = False

    def cancel(self) -> None:
        """Have the host give up as soon as it looks."""
        self._is_cancelled = True

    @property
    def is_cancelled(self) -> bool:
        """Whether nobody waits any more."""
        return self._is_cancelled

    def check(self) -> None:
        """Raise Cancelled if nobody waits any more."""
        if self.is_cancelled:
            raise Cancelled("the call was cancelled")

    def charge(self, *, rows: int = 0, size: int = 0) -> None:
        """Count work that is about to be done; raises if it is more than was granted, or unwanted."""
        self.rows += rows
        self.bytes += size
        self.check()
        if self.max_rows is not None and self.rows > self.max_rows:
            raise LimitExceeded("max_rows", self.max_rows, "rows touched by one call")


Judged = TypeVar("Judged")


class AtOnce(Protocol):
    """What a host answers where it neither waits nor does much: a driver may ask on its event loop."""

    def answer(self, effect: HostEffect) -> given.HostAnswer | None:
        """The answer that the host would give; None if it has to be asked itself."""

    def listed(self, wanted: SendListing) -> Sequence[Advertisement] | None:
        """All that `list` would give."""

    def loaded(self, wanted: SendRecords) -> Loaded | None:
        """All that `load` would give."""

    def foresee(self, listed: int) -> None:
        """The peer is listing, and has listed so many records so far; nothing of it counts yet."""

    @property
    def is_ready(self) -> bool:
        """Whether `rest` has nothing to do."""

    @property
    def shared(self) -> Shared | None:
        """What this link has in common with others that have the same object here."""


class Shared(Protocol):
    """What is worked out once for several links."""

    @property
    def is_current(self) -> bool:
        """Whether it has seen all that was stored."""

    def refresh(self, call: Call) -> None:
        """Follow the store."""

    def refresh_shortly(self, call: Call) -> None:
        """The same, if it waits for nobody and a few records are all there is to look at."""


class Host(Protocol, Generic[Judged]):
    """One side of one link."""

    @property
    def at_once(self) -> AtOnce | None:
        """Quick answers, if this host has any."""

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
        """Keep the peer's claims for the next exchange; losing them costs a listing, so failing is no error."""

    def load(self, wanted: SendRecords, call: Call) -> Iterator[Loaded]:
        """Stored bytes in batches of bounded size, every hash once; each step may block."""

    def judge(self, records: Sequence[Arrived], call: Call) -> Judged:
        """Validate a batch; several may be judged at a time."""

    def commit(self, judged: Judged, call: Call) -> Sequence[given.RecordsStored | given.RecordsRejected]:
        """Store what is valid of a batch, durable on return; batches are committed in their order."""

    def close(self) -> None:
        """Let go of everything that is held for this link."""


def perform(host: Host[Judged], effect: HostEffect, call: Call) -> given.HostAnswer | None:
    """Carry out what a machine asks of its own side; the answer, if the effect has one."""
    try:
        return _perform(host, effect, call)
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
