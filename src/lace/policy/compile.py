"""Two operands into the exchange plan that both sides agree on (040).

Rule: a plan is a function of the two operands and the lowering alone; exposure, stores, hello facts and limits never
reach its identifier.
"""

from __future__ import annotations

from functools import lru_cache

from lace.datalog.language.syntax import Predicate
from lace.errors import InvalidExchangePlan
from lace.limits import KIB
from lace.notation.identifiers import ExchangePlanId
from lace.policy.operand import Module, SelectorOperand, assign_operands
from lace.policy.transcript import FieldRequirements, Lowering, OperandEntry, Transcript, write_transcript
from lace.values import dataclass

_REMEMBERED_CHARACTERS = 4 * KIB  # of both texts together


@dataclass(frozen=True, slots=True)
class ExchangePlan:
    """The faceted exchange plan of one epoch (040-TERM-09)."""

    operands: tuple[SelectorOperand, SelectorOperand]
    contents: Transcript
    # Whether SelectHave of either operand depends on advertisements, so that P13 waits for a repeated listing.
    have_reads_advertisements: bool

    @property
    def id(self) -> ExchangePlanId:
        """`E.` of its transcript."""
        return self.contents.id

    @property
    def transcript(self) -> str:
        """The canonical transcript, without a final LF."""
        return self.contents.text

    @property
    def requirements(self) -> FieldRequirements:
        """The advertised fields that the operands' rules read."""
        return self.contents.requirements

    @property
    def lowering(self) -> Lowering:
        """How the merged selection is enforced."""
        return self.contents.lowering

    def reads(self, *predicates: Predicate) -> bool:
        """Whether a rule of either operand reads one of these predicates."""
        return any(operand.module.reads(predicates) for operand in self.operands)


def compile_plan(
    first: SelectorOperand, second: SelectorOperand, *, lowering: Lowering = Lowering.STANDARD
) -> ExchangePlan:
    """The plan of operands 0 and 1, whose origins setup has assigned (040-TERM-04, 040-OPERAND-07)."""
    indexes = [first.index, second.index]
    if indexes != [0, 1]:  # 040-OPERAND-01
        found = ", ".join(map(str, indexes))
        raise InvalidExchangePlan("a plan takes operand 0 and operand 1", rule="operand-index", found=found)
    if first.origin == second.origin:  # 040-OPQ-05
        raise InvalidExchangePlan("two operands have one origin", rule="origin-equal", found=first.origin)
    requirements = FieldRequirements.of((*first.module.rules, *second.module.rules))
    contents = write_transcript((_entry(first), _entry(second)), requirements, lowering)
    waits = first.module.have_reads_advertisements or second.module.have_reads_advertisements
    return ExchangePlan((first, second), contents, waits)


def agree(first: Module, second: Module, *, lowering: Lowering = Lowering.STANDARD) -> ExchangePlan:
    """The plan of two modules under the origins computed from them (P8); both sides get the same one."""
    is_small = len(first.text) + len(second.text) <= _REMEMBERED_CHARACTERS
    return (_remembered if is_small else _agree)(first, second, lowering)


@lru_cache(maxsize=128)  # the same few pairs meet again and again, on other links and in later epochs
def _remembered(first: Module, second: Module, lowering: Lowering) -> ExchangePlan:
    return _agree(first, second, lowering)


def _agree(first: Module, second: Module, lowering: Lowering) -> ExchangePlan:
    return compile_plan(*assign_operands(first, second), lowering=lowering)


def _entry(operand: SelectorOperand) -> OperandEntry:
    return OperandEntry(operand.facet, operand.module.id, operand.origin)
