"""Exchange modules and selector operands: which rule texts may take part in a plan (040, P5).

Rule: a Module is made by `Module.author` (our own source) or `Module.receive` (canonical bytes from outside), and
either refuses it with every reason at once. Its origin is never read from its text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from functools import lru_cache
from typing import Self

from lace.datalog.language.annotations import read_annotated_all
from lace.datalog.language.canonical import Lacegram, canonical_text, lacegram_id
from lace.datalog.language.formatting import format_program
from lace.datalog.language.parser import parse_all_errors
from lace.datalog.language.syntax import Atom, Predicate, Program, Rule
from lace.datalog.language.validate import Profile, check_all, check_program
from lace.datalog.planning.stratify import reachable
from lace.errors import InvalidExchangePlan, InvalidInput, InvalidLacegram, InvalidText, excerpt
from lace.facts.predicates import (
    ADVERTISEMENT_PREDICATES,
    ALLOW_QUERY_RECORD,
    CAN_QUERY_RECORD,
    MAY_REQUEST,
    MAY_SEND,
    RECORD_PREDICATES,
    RUNTIME_PREDICATES,
    SELECT_ADVERTISED,
    SELECT_HAVE,
)
from lace.limits import KIB, EngineLimits
from lace.notation.identifiers import LacegramId
from lace.notation.text import decode_text
from lace.policy.origin import OperandIdentity, Origin, assign_origins
from lace.policy.rewrite import body_atoms, heads
from lace.values import dataclass

SCOPE_PREFIXES = ("o0_", "o1_")  # by operand index: lexical hygiene of the lowered program, never identity
BASE_PREDICATES = frozenset((*RECORD_PREDICATES, *RUNTIME_PREDICATES, *ADVERTISEMENT_PREDICATES))
# 040-FACET-09..11, 040-EXPOSE-03, 040-EXPOSE-07: neither defined nor read by a shared operand (P5).
RESERVED = {
    MAY_SEND: "may-send",
    MAY_REQUEST: "may-request",
    CAN_QUERY_RECORD: "can-query-record",
    ALLOW_QUERY_RECORD: "allow-query-record",
}
EXPORTS = {SELECT_HAVE: "missing-select-have", SELECT_ADVERTISED: "missing-select-advertised"}
_DEFAULT_LIMITS = EngineLimits()
_REMEMBERED_BYTES = 8 * KIB
SELECTOR_PROFILE = Profile(
    name="selector",
    base=BASE_PREDICATES,
    runtime=frozenset((*RUNTIME_PREDICATES, *ADVERTISEMENT_PREDICATES)),
    forbidden_heads=frozenset(RESERVED),
    forbidden_bodies=frozenset(RESERVED),
    reserved_prefixes=SCOPE_PREFIXES,
)
# What 030 alone asks of an operand: the names that P5 reserves are judged here, each under a code of its own.
_LANGUAGE = Profile(name="exchange", base=BASE_PREDICATES, runtime=SELECTOR_PROFILE.runtime, may_use_underscore=True)


class Facet(StrEnum):
    """The exported predicate family of a shared module; the standard profile has one (040-TERM-08)."""

    SELECTOR = "selector"


@dataclass(frozen=True, slots=True)
class Module:
    """A canonical lacegram and its facet, checked as a shared selector (040-TERM-02)."""

    lacegram: Lacegram
    facet: Facet = Facet.SELECTOR

    @classmethod
    def author(cls, source: str, *, name: str = "<rules>", limits: EngineLimits = _DEFAULT_LIMITS) -> Self:
        """The module of authored rules, comments and annotations left out, written canonically (P1, 040-PROV-01)."""
        read, errors = read_annotated_all(source, name=name, limits=limits)
        refuse(name, [*errors, *selector_findings(read.program, limits)])
        return cls.of_rules(read.program.rules, limits=limits)

    @classmethod
    def of_rules(cls, rules: Iterable[Rule], *, limits: EngineLimits = _DEFAULT_LIMITS) -> Self:
        """The module of rules in hand, written canonically."""
        data = canonical_text(Program(tuple(rules))).encode()
        return cls(_checked(data, limits, "<rules>"))

    @classmethod
    def receive(
        cls,
        data: bytes,
        *,
        announced: LacegramId,
        facet: str = Facet.SELECTOR,
        limits: EngineLimits = _DEFAULT_LIMITS,
    ) -> Self:
        """The module of received bytes, which must be canonical and hash to the announced id (040-OPERAND-03)."""
        if facet not in set(Facet):
            raise InvalidExchangePlan("no such facet in the standard profile", rule="facet", found=excerpt(facet))
        lacegram = _checked(data, limits, announced)
        if lacegram.id != announced:
            raise InvalidExchangePlan(
                "the module bytes have another identifier than announced",
                rule="module-id",
                place=announced,
                found=lacegram.id,
            )
        return cls(lacegram, Facet(facet))

    @property
    def id(self) -> LacegramId:
        """`R.` of its canonical text."""
        return self.lacegram.id

    @property
    def text(self) -> str:
        """Its canonical text."""
        return self.lacegram.text

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Its rules in the order of the text."""
        return self.lacegram.program.rules

    @property
    def have_reads_advertisements(self) -> bool:
        """Whether SelectHave depends on what a peer advertises, directly or through helpers (P13)."""
        return not reachable(self.rules, (SELECT_HAVE,)).isdisjoint(ADVERTISEMENT_PREDICATES)

    def reads(self, predicates: Iterable[Predicate]) -> bool:
        """Whether any rule reads one of these predicates."""
        return not {atom.predicate for atom in body_atoms(self.rules)}.isdisjoint(predicates)

    def identity(self, index: int, *, nonce: str = "", verifier: str = "") -> OperandIdentity:
        """What its opaque origin is computed from at an operand index (P8)."""
        return OperandIdentity(index=index, facet=self.facet, module=self.id, nonce=nonce, verifier=verifier)


@dataclass(frozen=True, slots=True)
class SelectorOperand:
    """A module with the index and the origin that setup assigned to it (040-TERM-03)."""

    index: int  # P7: 0 for the side that opens the connection
    module: Module
    origin: Origin

    @property
    def facet(self) -> Facet:
        """The facet role of its module."""
        return self.module.facet


def assign_operands(first: Module, second: Module) -> tuple[SelectorOperand, SelectorOperand]:
    """Both sides' modules as operands 0 and 1 under their computed origins (P7, P8)."""
    labels = assign_origins(first.identity(0), second.identity(1))
    return SelectorOperand(0, first, labels[0]), SelectorOperand(1, second, labels[1])


def selector_findings(program: Program, limits: EngineLimits = _DEFAULT_LIMITS) -> list[InvalidInput]:
    """Everything that keeps a program from being a shared selector module."""
    language = check_all(program, _LANGUAGE, limits)  # 040-OPERAND-04
    return [*language, *_reserved_name_findings(program), *_missing_exports(program)]


def refuse(name: str, findings: Iterable[InvalidInput]) -> None:
    """Raise one error that holds all findings, if there are any."""
    reasons = tuple(findings)
    if reasons:
        count = f"{len(reasons)} reasons" if len(reasons) > 1 else "one reason"
        raise InvalidExchangePlan(
            f"the module is refused for {count}", rule=reasons[0].rule, place=name, findings=reasons
        )


def reserved_name(predicate: Predicate) -> str:
    """The code of the reservation that a predicate falls under in shared operands, or "" (P5)."""
    if predicate in RESERVED:
        return RESERVED[predicate]
    if predicate.name.startswith(SCOPE_PREFIXES):  # 040-SCOPE-08
        return "scope-prefix"
    return "underscore" if predicate.name.startswith("_") else ""


def _checked(data: bytes, limits: EngineLimits, name: str) -> Lacegram:
    """A selector's lacegram; those of small texts are remembered, for the same few come over many links and epochs."""
    return (_remembered if len(data) <= _REMEMBERED_BYTES else _read_selector)(data, limits, name)


@lru_cache(maxsize=32)  # what is refused is raised and not kept
def _remembered(data: bytes, limits: EngineLimits, name: str) -> Lacegram:
    return _read_selector(data, limits, name)


def _read_selector(data: bytes, limits: EngineLimits, name: str) -> Lacegram:
    try:
        text = decode_text(data, name)
    except InvalidText as error:
        refuse(name, [error])
        raise
    program, errors = parse_all_errors(text, name=name, limits=limits)
    findings: list[InvalidInput] = [*errors]
    if not errors and format_program(program) != text:  # 040-OPERAND-03
        findings.append(InvalidLacegram("the text is valid but not canonical", rule="canonical", place=name))
    refuse(name, [*findings, *selector_findings(program, limits)])
    return Lacegram(text, lacegram_id(data), check_program(program, SELECTOR_PROFILE, limits))


def _reserved_name_findings(program: Program) -> Iterator[InvalidInput]:
    for rule in program.rules:
        for verb, atom in (("defines", rule.head), *(("reads", atom) for atom in body_atoms((rule,)))):
            code = reserved_name(atom.predicate)
            if code:
                yield InvalidExchangePlan(
                    f"a shared operand {verb} {atom.predicate}, which is reserved",
                    rule=f"{verb}-{code}",
                    place=_place(program, atom),
                )


def _missing_exports(program: Program) -> Iterator[InvalidInput]:
    defined = heads(program.rules)
    for predicate, code in EXPORTS.items():  # 040-OPERAND-05
        if predicate not in defined:
            yield InvalidExchangePlan(
                f"a selector module has to define {predicate}", rule=code, place=program.source.name
            )


def _place(program: Program, atom: Atom) -> str:
    return f"{program.source.name}:{atom.place.line}:{atom.place.column}" if atom.place.line else program.source.name
