"""Why a fact holds, and why another does not (030: every derived fact is explainable from its inputs)."""

from lace.datalog.explain.absence import Absence, Attempt, BlockedBy, MissingFact, TestFailed, WrongCount, why_not
from lace.datalog.explain.known import DerivedFacts, Known
from lace.datalog.explain.proof import Absent, Counted, Held, Proof, Supported, why

__all__ = [
    "Absence",
    "Absent",
    "Attempt",
    "BlockedBy",
    "Counted",
    "DerivedFacts",
    "Held",
    "Known",
    "MissingFact",
    "Proof",
    "Supported",
    "TestFailed",
    "WrongCount",
    "why",
    "why_not",
]
