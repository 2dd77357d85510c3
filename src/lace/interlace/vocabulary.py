"""The control predicates of 050 and the blocks each may stand in.

Rule: a fact of another phase, an unknown one or one of another arity aborts (P18). Control facts are never facts of
an evaluation (050-SETF-08, 050-HELF-09, 050-REQF-05).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from functools import cache
from typing import NoReturn

from lace.errors import excerpt
from lace.facts.predicates import ADVERTISED, ADVERTISED_FIELD, MAY_REQUEST
from lace.interlace.reasons import AbortReason, ProtocolAbort
from lace.notation.fact import Fact, Predicate

EXCHANGE_OPERAND = Predicate("ExchangeOperand", 4)
EXCHANGE_REFUSED = Predicate("ExchangeRefused", 1)  # 072-FACT-01

HELLO_EXCHANGE_PLAN = Predicate("HelloExchangePlan", 1)
HELLO_SIGNER = Predicate("HelloSigner", 1)
HELLO_TAI = Predicate("HelloTAI", 1)
HELLO_TICK_INTERVAL = Predicate("HelloTickInterval", 1)
HELLO_RECORD_FORMAT = Predicate("HelloRecordFormat", 1)
HELLO_ADVERTISED_FIELD = Predicate("HelloAdvertisedField", 1)
HELLO_ALL_ADVERTISED_FIELDS = Predicate("HelloAllAdvertisedFields", 0)
HELLO_LIMIT = Predicate("HelloLimit", 2)

ADVERTISEMENT_PARTITION = Predicate("AdvertisementPartition", 3)
LIST_PARTITION = Predicate("ListAdvertisementPartition", 1)
NARROW_PARTITION = Predicate("NarrowAdvertisementPartition", 1)

DIFFERENCE_ROOT = Predicate("DifferenceRoot", 2)
DIFFERENCE_SUMMARY = Predicate("DifferenceSummary", 3)
DIFFERENCE_WITHDRAWN = Predicate("DifferenceWithdrawn", 1)
DIFFERENCE_SYMBOLS = Predicate("DifferenceSymbols", 2)
DIFFERENCE_MORE = Predicate("DifferenceMore", 1)
DIFFERENCE_LACKS = Predicate("DifferenceLacks", 1)
DIFFERENCE_ALL = Predicate("DifferenceAll", 1)
DIFFERENCE_ASK = Predicate("DifferenceAsk", 0)
DIFFERENCE_DROP = Predicate("DifferenceDrop", 0)
DIFFERENCES = frozenset({
    DIFFERENCE_ROOT, DIFFERENCE_SUMMARY, DIFFERENCE_WITHDRAWN, DIFFERENCE_SYMBOLS, DIFFERENCE_MORE, DIFFERENCE_LACKS,
    DIFFERENCE_ALL, DIFFERENCE_ASK, DIFFERENCE_DROP,
})  # fmt: skip

REFUSED = Predicate("Refused", 2)
DECLINED = Predicate("Declined", 2)
DECLINED_COUNT = Predicate("DeclinedCount", 2)
REFUSALS = {REFUSED: 1, DECLINED: 2, DECLINED_COUNT: 2}  # each from this version of 071 on

NOT_AVAILABLE = Predicate("NotAvailable", 1)
TICK_READY = Predicate("TickReady", 1)


class Block(Enum):
    """The kinds of fact block and what each may hold."""

    SETUP = frozenset({EXCHANGE_OPERAND, EXCHANGE_REFUSED})
    HELLO = frozenset({
        HELLO_EXCHANGE_PLAN, HELLO_SIGNER, HELLO_TAI, HELLO_TICK_INTERVAL, HELLO_RECORD_FORMAT,
        HELLO_ADVERTISED_FIELD, HELLO_ALL_ADVERTISED_FIELDS, HELLO_LIMIT,
    })  # fmt: skip
    LISTING = frozenset({
        ADVERTISED, ADVERTISED_FIELD, ADVERTISEMENT_PARTITION, TICK_READY, DIFFERENCE_ROOT, DIFFERENCE_SUMMARY,
        DIFFERENCE_WITHDRAWN,
    })  # fmt: skip
    SELECTION = frozenset({LIST_PARTITION, NARROW_PARTITION})  # 050-TICK-17: no TickReady here
    ANSWER = frozenset({ADVERTISED, ADVERTISED_FIELD, ADVERTISEMENT_PARTITION})
    SYMBOLS = frozenset({DIFFERENCE_SUMMARY, DIFFERENCE_SYMBOLS, DIFFERENCE_DROP})  # 070-FACT-03: nor here
    REPLY = frozenset({DIFFERENCE_MORE, DIFFERENCE_LACKS, DIFFERENCE_DROP, ADVERTISED, ADVERTISED_FIELD})
    TOLD = frozenset({DIFFERENCE_DROP, ADVERTISED, ADVERTISED_FIELD})
    REQUEST = frozenset({
        MAY_REQUEST, TICK_READY, DIFFERENCE_ALL, DIFFERENCE_ASK, DIFFERENCE_DROP, REFUSED, DECLINED, DECLINED_COUNT,
    })  # fmt: skip
    AVAILABILITY = frozenset({NOT_AVAILABLE, TICK_READY, REFUSED})


@cache
def allowed_in(block: Block, differences: bool, refusals: int) -> frozenset[Predicate]:
    """What a block may hold under the capabilities that are spoken: 070, and a version of 071 (P33)."""
    found: frozenset[Predicate] = block.value
    later = {predicate for predicate, version in REFUSALS.items() if version > refusals}
    return found - later if differences else found - later - DIFFERENCES


def refuse(predicate: Predicate, block: Block) -> NoReturn:
    """Abort on a fact that does not belong into this block (050-FACT-10), or to a capability that is off."""
    raise ProtocolAbort(
        AbortReason.MALFORMED_FACT_BLOCK, f"{excerpt(str(predicate))} in a {block.name.lower()} block", "050-FACT-10"
    )


def require_at_most_once(facts: Sequence[Fact], predicate: Predicate) -> None:
    """Abort on a repeat of a fact that stands once, even an identical one (P18)."""
    if sum(found == predicate for found, _ in facts) > 1:
        raise ProtocolAbort(AbortReason.MALFORMED_FACT_BLOCK, f"{predicate} stands more than once", "050-FACT-11")
