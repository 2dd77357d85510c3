"""Why an exchange ends early: the failure table of 050, one member a row.

Rule: a peer's fault is an `Abort` with one of these reasons; nothing else ends an exchange that is not complete.
"""

from __future__ import annotations

from enum import StrEnum

from lace.errors import RemoteProtocolError


class AbortReason(StrEnum):
    """The aborting rows of the table, then the ends that 050 names outside of it."""

    PEER_VERIFIER_MISMATCH = "peer verifier mismatch"  # 050-ERR-02
    EXCHANGE_PLAN_MISMATCH = "exchange plan identifier mismatch"  # 050-ERR-03
    UNSUPPORTED_RECORD_FORMAT = "unsupported record format"  # 050-ERR-04
    UNSUPPORTED_FIELD_SCHEMA = "unsupported advertisement field schema"  # 050-ERR-05
    MALFORMED_FACT_BLOCK = "malformed fact block"  # 050-ERR-06
    MALFORMED_MODULE = "malformed exchange module"  # 050-ERR-07
    PLAN_COMPILATION_FAILED = "exchange-plan compilation failure"  # 050-ERR-08
    MALFORMED_PREPARED_POLICY = "malformed prepared policy"  # 050-ERR-09
    MALFORMED_PARTITION_SUMMARY = "malformed partition summary"  # 050-ERR-10
    LIST_ROOT_MISMATCH = "advertisement list root mismatch"  # 050-ERR-11
    PHASE_TIMEOUT = "phase timeout"  # 050-ERR-12
    OVERSIZED_FACT_BLOCK = "oversized fact block"  # 050-ERR-13
    TRANSFER_LIMIT_EXCEEDED = "transfer limit exceeded"  # 050-ERR-14
    RECORD_NOT_REQUESTED = "record response with no current outstanding requested hash"  # 050-ERR-15
    EVALUATION_FAILED = "evaluation error"  # 050-EVAL-04
    STREAM_BROKEN = "stream broken in the middle of a phase"  # 060: a disconnect that is not at a phase boundary
    REFUSED_BY_PEER = "refused by the peer"  # 072-TELL-03: it has no terms for us, and says so
    REFUSED_BY_US = "refused by our side"
    LOCAL_FAILURE = "local failure"  # our own store or listing; the peer did nothing wrong


class ExchangeRefusal(StrEnum):
    """Why a side refuses a whole exchange, as the peer is told (072-REASON-01)."""

    POLICY = "policy"
    TRUST = "trust"
    FAILED = "failed"


REFUSAL_TEXTS = {
    ExchangeRefusal.POLICY: "its policy has no terms for us",
    ExchangeRefusal.TRUST: "it exchanges with peers that it trusts, and our key is not one of theirs",
    ExchangeRefusal.FAILED: "it failed to decide about us",
}


class ProtocolAbort(RemoteProtocolError):
    """Raised inside the machine where a row of the table applies; `receive` turns it into an `Abort` effect."""

    def __init__(self, reason: AbortReason, detail: str, clause: str = "", limit: str = "") -> None:
        super().__init__(f"{reason.value}: {detail}")
        self.reason = reason
        self.detail = detail
        self.clause = clause
        self.limit = limit  # the name of the limit of our own that was reached, if it was one
