"""What the two sides of an exchange in one process bring (050, in-process engine).

Rule: plain values; nothing here opens or changes a store.
"""

from __future__ import annotations

from typing import Any

from lace.interlace.setup.terms import Terms
from lace.limits import ExchangeLimits
from lace.notation.identifiers import Verifier
from lace.policy.exposure import Exposure
from lace.policy.operand import Module
from lace.records.keys import Signer
from lace.runtime.host.quotas import GateRules
from lace.runtime.local.preview import Preview
from lace.store.base import RecordStore
from lace.values import dataclass

UNBOUNDED = 1 << 62  # no sender budget and no transfer limit: both sides are here
LOCAL_LIMITS = ExchangeLimits(max_total_transferred_bytes=UNBOUNDED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Party:
    """One side: its store, its terms, who it is."""

    store: RecordStore
    terms: Terms
    here: Verifier | None = None
    cursor_key: str = ""
    receipts: Signer | None = None  # publish a receipt for each record stored (050-RCPT-01)
    rules: GateRules | None = None  # what it lets in; None: everything that its limits on records let in
    preview: Preview | None = None  # only find out what would move, and note it here


def local_terms(module: Module, exposures: tuple[Exposure, ...] = (), **others: Any) -> Terms:
    """Terms between two laces of one process: nothing is kept from being sent for its size."""
    bounds: dict[str, Any] = {"limits": LOCAL_LIMITS, "max_service_bytes": UNBOUNDED}
    return Terms(module=module, exposures=exposures, **{**bounds, **others})
