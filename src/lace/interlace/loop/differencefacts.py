"""What the blocks of a comparison say (070): summaries of sets, and the lines that stand alone in a block.

Rule: what is malformed aborts here, as it is read (070-FACT-02); nothing here knows what is done with it.
"""

from __future__ import annotations

from collections.abc import Sequence

from lace.differences.keyed import U64
from lace.differences.wire import decode_root, decode_summary, encode_root, encode_summary
from lace.errors import InvalidText
from lace.interlace.claims.advertisement import require_record_ids
from lace.interlace.inputs import Measured
from lace.interlace.reasons import AbortReason, ProtocolAbort
from lace.interlace.vocabulary import (
    DIFFERENCE_ASK,
    DIFFERENCE_DROP,
    DIFFERENCE_ROOT,
    DIFFERENCE_SUMMARY,
    DIFFERENCE_WITHDRAWN,
)
from lace.notation.fact import Fact
from lace.values import dataclass

DROP = Fact(DIFFERENCE_DROP, ())
ASK = Fact(DIFFERENCE_ASK, ())


def malformed(detail: str) -> ProtocolAbort:
    """070-FACT-02."""
    return ProtocolAbort(AbortReason.MALFORMED_FACT_BLOCK, detail, "070-FACT-02")


@dataclass(frozen=True, slots=True, eq=False)
class Summary:
    """What an `adv` says of the sender's set."""

    count: int
    root: bytes | None = None  # without a base
    sums: U64 | None = None  # with a base, and always the asker's
    withdrawn: Sequence[str] = ()


def read_summary(facts: Sequence[Fact]) -> Summary | None:
    """The peer's `adv`, if it is a summary."""
    said = {
        predicate: [values for found, values in facts if found == predicate]
        for predicate in (DIFFERENCE_ROOT, DIFFERENCE_SUMMARY)
    }
    withdrawn = [values[0] for predicate, values in facts if predicate == DIFFERENCE_WITHDRAWN]
    if not any(said.values()):
        if withdrawn:
            raise malformed("records withdrawn without a summary")
        return None
    if max(map(len, said.values())) > 1:
        raise malformed("two summaries")
    require_record_ids(withdrawn)
    try:
        counts, root, sums = set[int](), None, None
        for count, text in said[DIFFERENCE_ROOT]:
            found, root = decode_root(count, text)
            counts.add(found)
        for texts in said[DIFFERENCE_SUMMARY]:
            sums = decode_summary(*texts)
            counts.add(int(sums[0]))
    except InvalidText as error:
        raise malformed(str(error)) from None
    if len(counts) > 1:
        raise malformed("a root and sums of different counts")
    return Summary(counts.pop(), root, sums, withdrawn)


def only(facts: Sequence[Fact], fact: Fact, others: bool) -> bool:
    """Whether a block says just this; beside anything else it may not stand."""
    if fact not in facts:
        return False
    if len(facts) > 1 or others:
        raise malformed(f"{fact.predicate.name} beside other lines")
    return True


def summary_facts(found: Measured) -> list[Fact]:
    """Our summary, and what we withdraw since the loop before."""
    facts = [Fact(DIFFERENCE_WITHDRAWN, (record,)) for record in found.removed or ()]
    if found.root:
        facts.append(Fact(DIFFERENCE_ROOT, encode_root(found.count, found.root)))
    if found.measured is not None:
        facts.append(Fact(DIFFERENCE_SUMMARY, encode_summary(found.measured)))
    return facts
