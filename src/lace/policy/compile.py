"""Two operands into the exchange plan that both sides agree on (040).

Rule: a plan is a function of the two operands and the lowering alone; exposure, stores, hello facts and limits never
reach its identifier.
"""

from __future__ import annotations

from dataclasses import dataclass

from lace.datalog.syntax import Predicate
from lace.errors import InvalidExchangePlan
from lace.notation.identifiers import ExchangePlanId
from lace.policy.operand import Module, SelectorOperand, assign_operands
from lace.policy.transcript import FieldRequirements, Lowering, OperandEntry, Transcript, write_transcript


@dataclass(frozen=True, slots=True)
class ExchangePlan:
    """The faceted exchange plan of one epoch (040-TERM-09)."""

    operands: tuple[SelectorOperand, SelectorOperand]
    contents: Transcript

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

    @property
    def have_reads_advertisements(self) -> bool:
        """Whether SelectHave of either operand depends on advertisements, so that P13 waits for a repeated listing."""
        return any(operand.module.have_reads_advertisements for operand in self.operands)

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
    return ExchangePlan((first, second), write_transcript((_entry(first), _entry(second)), requirements, lowering))


def agree(first: Module, second: Module, *, lowering: Lowering = Lowering.STANDARD) -> ExchangePlan:
    """The plan of two modules under the origins computed from them (P8); both sides get the same one."""
    return compile_plan(*assign_operands(first, second), lowering=lowering)


def _entry(operand: SelectorOperand) -> OperandEntry:
    return OperandEntry(operand.facet, operand.module.id, operand.origin)
