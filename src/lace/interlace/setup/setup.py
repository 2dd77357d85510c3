"""Setup facts (050): which selector operand a side brings, and from where.

Rule: what the peer says of its origin is a claim; the label that counts is computed from both operands (P8).
"""

from __future__ import annotations

from collections.abc import Sequence

from lace.errors import InvalidInput, excerpt
from lace.interlace.reasons import REFUSAL_TEXTS, AbortReason, ExchangeRefusal, ProtocolAbort
from lace.interlace.vocabulary import EXCHANGE_OPERAND, EXCHANGE_REFUSED
from lace.notation.fact import Fact
from lace.notation.identifiers import LacegramId, Verifier
from lace.policy.origin import read_claim
from lace.values import dataclass

SELECTOR = "selector"


@dataclass(frozen=True, slots=True)
class Setup:
    """The one fact of a setup block, checked for form."""

    index: int
    module: LacegramId
    origin: str
    claimed: Verifier | None  # provisional until the end of hello (050-SIGN-08)

    def fact(self) -> Fact:
        """The `ExchangeOperand` fact."""
        return Fact(EXCHANGE_OPERAND, (str(self.index), self.module, self.origin, SELECTOR))


def read_setup(facts: Sequence[Fact], own_index: int, own: Verifier | None) -> Setup:
    """The peer's setup block (050-SETF-02, 050-SETUP-03). Vocabulary was checked."""
    _heed_refusal(facts)
    if len(facts) != 1:
        raise ProtocolAbort(
            AbortReason.MALFORMED_FACT_BLOCK, f"a setup block has one operand, not {len(facts)}", "050-SETF-02"
        )
    index, module, origin, facet = facts[0].values
    if index not in ("0", "1") or int(index) == own_index:  # 050-SETF-03: equal indexes abort
        raise ProtocolAbort(AbortReason.MALFORMED_FACT_BLOCK, f"operand index {excerpt(index)}", "050-SETF-03")
    if facet != SELECTOR:
        raise ProtocolAbort(AbortReason.MALFORMED_FACT_BLOCK, f"facet {excerpt(facet)}", "050-SETUP-11")
    try:
        module_id = LacegramId.parse(module)  # 050-SETF-07
    except InvalidInput as error:
        raise ProtocolAbort(AbortReason.MALFORMED_FACT_BLOCK, str(error), "050-SETF-07") from None
    try:
        claimed = read_claim(origin, own=own)  # 050-SIGN-09
    except InvalidInput as error:
        raise ProtocolAbort(AbortReason.PEER_VERIFIER_MISMATCH, str(error), "050-SIGN-09") from None
    return Setup(int(index), module_id, origin, claimed)


def _heed_refusal(facts: Sequence[Fact]) -> None:
    """A peer that refuses the exchange says that and nothing else (072-FACT-01, 072-TELL-03)."""
    words = [values[0] for predicate, values in facts if predicate == EXCHANGE_REFUSED]
    if not words:
        return
    if len(facts) != 1 or words[0] not in list(ExchangeRefusal):
        detail = f"a refusal is one fact with a known reason, not {len(facts)} with {excerpt(words[0])}"
        raise ProtocolAbort(AbortReason.MALFORMED_FACT_BLOCK, detail, "072-FACT-02")
    raise ProtocolAbort(AbortReason.REFUSED_BY_PEER, REFUSAL_TEXTS[ExchangeRefusal(words[0])], "072-TELL-03")
