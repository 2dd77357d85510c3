"""What each item of a stream is for, in a sentence (060, 050), for whatever shows a conversation to people.

Rule: an explanation says what an item is for, never what to think of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from lace.facts.predicates import ADVERTISED, ADVERTISED_FIELD, MAY_REQUEST
from lace.interlace import vocabulary as said

KINDS = {
    "preface": "Opens the stream: this side speaks ILTP version 1.",
    "resource": "A rule text that the other side may not know yet, named by its hash.",
    "record": "A record, with the hash that it claims; it is stored only if its bytes hold to that.",
    "end": "A blank line: this side's part of the phase is complete.",
    "close": "This side ended the stream.",
    "fault": "These bytes break the rules of the stream; the rest of this direction is not read.",
}
FACTS = {
    said.EXCHANGE_OPERAND.name: "This side's rules, by their hash, as operand of the plan.",
    said.EXCHANGE_REFUSED.name: "This side refuses the whole exchange, and why.",
    said.HELLO_EXCHANGE_PLAN.name: "The plan that this side computed; both must say the same.",
    said.HELLO_SIGNER.name: "Who this side is.",
    said.HELLO_TAI.name: "This side's clock.",
    said.HELLO_TICK_INTERVAL.name: "How often the shared time moves in an open exchange.",
    said.HELLO_RECORD_FORMAT.name: "A record format that this side understands.",
    said.HELLO_ADVERTISED_FIELD.name: "A field that this side's listing can carry, for rules or quotas that read it.",
    said.HELLO_ALL_ADVERTISED_FIELDS.name: "This side's listing will carry every field.",
    said.HELLO_LIMIT.name: "A limit of this side.",
    ADVERTISED.name: "A record that this side has and would send.",
    ADVERTISED_FIELD.name: "A field of an advertised record.",
    said.ADVERTISEMENT_PARTITION.name: "All advertised records whose hashes begin so, as a count and a root.",
    said.LIST_PARTITION.name: "The other side's summary of this partition differs: list it.",
    said.NARROW_PARTITION.name: "The other side's summary of this partition differs: cut it finer.",
    said.DIFFERENCE_ROOT.name: "How many records this side has to offer, and a root that only this very set has.",
    said.DIFFERENCE_SUMMARY.name: "All of this side's set in one line: how many, and sums that differ where sets do.",
    said.DIFFERENCE_WITHDRAWN.name: "A record that was in this side's set a loop ago and is not any more.",
    said.DIFFERENCE_SYMBOLS.name: "A sketch of this side's set; enough of it tells the other side what differs.",
    said.DIFFERENCE_MORE.name: "The sketch does not suffice yet: more of it.",
    said.DIFFERENCE_LACKS.name: "What the other side has and this side lacks, by short names.",
    said.DIFFERENCE_ALL.name: "This side asks for every record that the other one just listed.",
    said.DIFFERENCE_ASK.name: "This side could not make out the other's set: compare the sets by sketches.",
    said.DIFFERENCE_DROP.name: "Comparing sets does not pay: go on with plain advertisements.",
    MAY_REQUEST.name: "A record that this side asks for.",
    said.NOT_AVAILABLE.name: "A record that was asked for and cannot be sent any more.",
    said.REFUSED.name: "A record that came and that this side did not keep, and why.",
    said.DECLINED_COUNT.name: "How many records this side wants and does not ask for, because it would not keep them.",
    said.DECLINED.name: "A record that this side wants and does not ask for, and why.",
    said.TICK_READY.name: "This side is ready for the next moment of the shared time.",
}


def explanation(kind: str, text: str, facts: Sequence[str]) -> str:
    """What an item is for."""
    if kind != "facts":
        return KINDS.get(kind, "")
    names = dict.fromkeys(fact.partition("(")[0] for fact in facts)
    return " ".join(f"{FACTS[name]}" for name in names if name in FACTS) or text
