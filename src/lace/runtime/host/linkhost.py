"""What the host of a link is, wherever its records stand: a plan, our set under it, the peer's claims (050, 070).

Rule: nothing here knows where records are. A set is named by its number, which is good until the next evaluation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from lace.errors import LocalProtocolError
from lace.intake.received import JudgedBatch
from lace.interlace import effects as asked
from lace.interlace import inputs as given
from lace.interlace.claims.cursor import decode_cursor
from lace.interlace.claims.peerclaims import PeerClaims
from lace.interlace.claims.relative import OwnSet
from lace.interlace.host import Call, Shared, committed
from lace.interlace.setup.terms import Terms
from lace.runtime.host.cursors import CursorBook
from lace.runtime.host.quotas import QuotaGate
from lace.runtime.host.setcomparer import SetComparer

Own = TypeVar("Own", bound=OwnSet)
Claims = TypeVar("Claims", bound=PeerClaims)


class Agreed(Generic[Own, Claims]):
    """What is worked with under one plan: our set as last evaluated, and the peer's claims."""

    def __init__(self, wanted: asked.PreparePolicy, claims: Claims, comparer: SetComparer[Own] | None) -> None:
        self.wanted = wanted
        self.claims = claims
        self.own: Own | None = None
        self.told: Own | None = None  # that `differences` were last given of
        self.comparer = comparer


Under = TypeVar("Under", bound=Agreed[Any, Any])


class LinkHost(ABC, Generic[Own, Claims, Under]):
    """One link's side, as far as it does not depend on where records are."""

    def __init__(self, terms: Terms, gate: QuotaGate, cursors: CursorBook) -> None:
        self._terms = terms
        self._gate = gate  # what the peer may bring
        self._cursors = cursors
        self._agreed: Under | None = None

    @property
    def answers_now(self) -> bool:
        """No, unless a host holds what it needs for that in memory."""
        return False

    @property
    def shared(self) -> Shared | None:
        """Nothing, unless a host knows what others have too."""
        return None

    def expect(self, claimed: int) -> None:
        """Nothing has to be started."""

    def _prepared(self) -> Under:
        if self._agreed is None:
            raise LocalProtocolError("nothing was prepared")
        return self._agreed

    def _set(self, handle: asked.SetHandle) -> Own:
        own: Own | None = self._prepared().own
        if own is None or handle.number != own.number:
            raise LocalProtocolError("the set of an evaluation that was followed by another")
        return own

    # --- the peer's claims -------------------------------------------------------------------------------------

    @abstractmethod
    def _no_claims(self, source: str) -> Claims:
        """The claims of a peer that has told nothing yet."""

    def _claims_for(self, wanted: asked.PreparePolicy) -> Claims:
        if wanted.keeps_claims and self._agreed is not None:
            held: Claims = self._agreed.claims
            held.begin_anew()
            return held
        claims = self._no_claims(wanted.peer_source)
        kept = self._cursors.get(wanted.cursor_key)
        if kept is not None:
            cursor = decode_cursor(kept, wanted.plan.id, wanted.peer_source, self._terms.max_cursor_bytes)
            if cursor is not None:
                claims.restore(cursor)
        return claims

    def keep_claims(self, wanted: asked.KeepClaims, call: Call) -> None:
        """Keep them with the records; losing them costs the next exchange a listing, so failures are not errors."""
        call.needs_time()
        agreed = self._prepared()
        if agreed.claims.is_relative:  # what differs is found out again for less than it costs to keep
            return
        kept = agreed.claims.as_cursor(agreed.wanted.plan.id).encode()
        call.charge(rows=len(agreed.claims), size=len(kept))
        self._cursors.keep(wanted.key, kept)

    # --- differences (070) -------------------------------------------------------------------------------------

    def measure(self, wanted: asked.Measure, call: Call) -> given.Measured:
        """Our set under the key of the epoch."""
        return self._comparer().measure(wanted, self._set(wanted.own), call)

    def sketch(self, wanted: asked.Sketch, call: Call) -> given.Sketched:
        """Symbols of our set."""
        call.needs_time()
        return self._comparer().sketch(wanted, self._set(wanted.own), call)

    def decode(self, wanted: asked.Decode, call: Call) -> given.Decoded:
        """What the peer's symbols say."""
        call.needs_time()
        return self._comparer().decode(wanted, self._set(wanted.own), call)

    def take_difference(self, wanted: asked.TakeDifference | asked.TakeChange, call: Call) -> given.DifferenceTaken:
        """What the peer has, relative to our set."""
        return self._comparer().take(wanted, self._set(wanted.own), self._prepared().claims, call)

    def _comparer(self) -> SetComparer[Own]:
        comparer: SetComparer[Own] | None = self._prepared().comparer
        if comparer is None:
            raise LocalProtocolError("no comparison of sets was agreed")
        return comparer

    # --- records -----------------------------------------------------------------------------------------------

    def commit(self, judged: JudgedBatch, call: Call) -> Sequence[given.RecordsStored | given.RecordsRejected]:
        """Durable on return, all or none of a batch."""
        call.needs_time()
        call.check()
        passed = self._gate.commit(judged)
        return committed(passed.stored, passed.refused, passed.words)
