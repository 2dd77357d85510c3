"""What becomes of a peer's word that it did not keep a record (P37)."""

from __future__ import annotations

from collections.abc import Mapping

from lace.errors import excerpt
from lace.interlace.core import Core
from lace.interlace.events import RefusedByPeer
from lace.interlace.reasons import AbortReason, ProtocolAbort


def accept_refusals(core: Core, reasons: Mapping[str, str]) -> None:
    """Each is about a record that was sent and not refused before; others abort (071-FACT-03), as P21 has it."""
    for record in reasons:
        if not core.ledger.has_sent(record):
            raise ProtocolAbort(
                AbortReason.MALFORMED_FACT_BLOCK, f"Refused for {excerpt(record)}, which was not sent", "071-FACT-03"
            )
    if reasons:
        core.ledger.refuse(reasons)
        core.report(RefusedByPeer(reasons))
