"""An exchange in which nothing moves: what the two sides would ask each other for (050).

Rule: to the peer it is an ordinary exchange, with our rules, our listing and our fixed point. We ask for nothing and
say of everything that it asks for that it is not available, so both sides end in good order and neither store has
changed. What would only be asked for after other records have come cannot be seen this way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace

from lace.facts.derive import field_occurrences
from lace.interlace import effects as asked
from lace.interlace import inputs as given
from lace.interlace.claims.advertisement import Advertisement, FieldClaim
from lace.interlace.host import Call, Loaded
from lace.interlace.setup.terms import Terms
from lace.policy.operand import Module
from lace.records.validate import validate
from lace.runtime.host.host import LocalHost
from lace.store.base import RecordStore
from lace.values import dataclass

_ANY_LENGTH = 1 << 40  # a request list that is never written may be as long as it likes


@dataclass(slots=True)
class Preview:
    """What was found out; it grows while the exchange runs."""

    their_module: Module | None = None  # the peer's rules, as it brought them
    offered: Sequence[Advertisement] = ()  # what it lists that we may not send ourselves
    wanted: list[Advertisement] = field(default_factory=list)  # what we would ask for of that
    asked_for: dict[str, Advertisement] = field(default_factory=dict)  # what it asked for and would get
    sendable: int = 0  # how many records we may send
    max_records: int = 1_000_000  # that are kept of what either side wants
    watched: str = ""  # a record that somebody asks about
    has_watched: bool = False  # the peer says that it has that record


class PreviewHost(LocalHost):
    """A host that finds out and gives nothing."""

    def __init__(self, store: RecordStore, terms: Terms, preview: Preview) -> None:
        super().__init__(store, terms)
        self._preview = preview
        self._limits = terms.record_limits

    def prepare(self, wanted: asked.PreparePolicy, call: Call) -> given.PolicyPrepared:
        """Under a plan, which names the peer's rules."""
        self._preview.their_module = wanted.plan.operands[1 - wanted.local_index].module
        return super().prepare(wanted, call)

    def evaluate(self, wanted: asked.Evaluate, call: Call) -> given.Evaluated:
        """All that we would ask for is noted, and none of it asked."""
        if not wanted.max_requests:
            return super().evaluate(wanted, call)
        all_of_it = replace(wanted, max_requests=self._preview.max_records, max_request_bytes=_ANY_LENGTH)
        found = super().evaluate(all_of_it, call)
        preview, requests = self._preview, set(found.requests)
        preview.offered = self._offered(preview.max_records)
        preview.wanted = [claim for claim in preview.offered if claim.hash in requests]
        preview.sendable = found.own.count
        return replace(found, requests=())

    def take_claims(self, wanted: asked.TakeClaims, call: Call) -> given.ClaimsTaken:
        """As ever; what is watched is looked for."""
        taken = super().take_claims(wanted, call)
        self._look()
        return taken

    def reconcile(self, wanted: asked.Reconcile, call: Call) -> given.Reconciled:
        """As ever; what is watched is looked for."""
        settled = super().reconcile(wanted, call)
        self._look()
        return settled

    def take_difference(self, wanted: asked.TakeDifference | asked.TakeChange, call: Call) -> given.DifferenceTaken:
        """As ever; what is watched is looked for. Equal sets end here: nobody asks what to request (070-EQUAL-03)."""
        taken = super().take_difference(wanted, call)
        self._look()
        return taken

    def _look(self) -> None:
        preview = self._preview
        preview.has_watched = bool(preview.watched and self._prepared().claims.among([preview.watched]))

    def _offered(self, most: int) -> Sequence[Advertisement]:
        policy = self._prepared()
        return (policy.claims.listing() if policy.own is None else policy.claims.beyond(policy.own))[:most]

    def load(self, wanted: asked.SendRecords, call: Call) -> Iterator[Loaded]:
        """Nothing is available; what could have been had is noted."""
        for batch in super().load(wanted, call):
            for record, data in batch:
                if data is not None and len(self._preview.asked_for) < self._preview.max_records:
                    self._preview.asked_for[record] = self._as_claim(record, data)
            yield [(record, None) for record, _ in batch]

    def _as_claim(self, record: str, data: bytes) -> Advertisement:
        fields = field_occurrences(validate(data, limits=self._limits, verify_signature=False))
        return Advertisement(record, tuple(FieldClaim(name, str(index), value) for name, index, value in fields))

    def keep_claims(self, wanted: asked.KeepClaims, call: Call) -> None:
        """Nothing is kept: the store stays as it is."""
