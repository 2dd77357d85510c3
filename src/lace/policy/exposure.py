"""Local query exposure: which records a viewer's rules may see (040 and 020, P9).

Rule: exposure is local policy. It is never sent, never read from a peer, and one more module only narrows a view.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Self

from lace.datalog.language.annotations import read_annotated_all
from lace.datalog.language.canonical import canonical_text, lacegram_id
from lace.datalog.language.formatting import format_rule, format_term
from lace.datalog.language.parser import parse_program
from lace.datalog.language.syntax import Atom, Constant, Positive, Program, Rule, Term, Variable
from lace.datalog.language.validate import Profile, check_all
from lace.datalog.planning.stratify import reachable
from lace.errors import InvalidExchangePlan, InvalidInput
from lace.facts.predicates import (
    ALLOW_QUERY_RECORD,
    CAN_QUERY_RECORD,
    HAVE,
    MAY_REQUEST,
    MAY_SEND,
    RUNTIME_PREDICATES,
    SELECT_ADVERTISED,
    SELECT_HAVE,
)
from lace.limits import EngineLimits
from lace.notation.identifiers import LacegramId
from lace.policy.operand import BASE_PREDICATES, SCOPE_PREFIXES, Module, refuse
from lace.policy.origin import Viewer, is_opaque
from lace.policy.rewrite import body_atoms, heads, rename, scope, substitute
from lace.policy.words import refuse_unknown_word
from lace.values import dataclass

_ENFORCEMENT = frozenset((MAY_SEND, MAY_REQUEST, CAN_QUERY_RECORD))
EXPOSURE_PROFILE = Profile(
    name="exposure",
    base=BASE_PREDICATES,
    runtime=frozenset(RUNTIME_PREDICATES),
    forbidden_heads=_ENFORCEMENT | {SELECT_HAVE, SELECT_ADVERTISED},  # 030-SHADOW-15: heads of selectors only
    forbidden_bodies=_ENFORCEMENT,
    reserved_prefixes=SCOPE_PREFIXES,
    may_use_underscore=True,
)
_SELECTED_SCOPE = "s_"  # our selector's own predicates, inside the exposure made of it
_EVERY_RECORD = "AllowQueryRecord(Viewer,P) :- Have(P)."
_DEFAULT_LIMITS = EngineLimits()
_SOME_VIEWER = Viewer("V.viewer")  # safety does not depend on who looks


@dataclass(frozen=True, slots=True)
class Exposure:
    """One local exposure module: rules for AllowQueryRecord/2 with private helpers (040-EXPOSE-01)."""

    text: str
    id: LacegramId
    program: Program

    @classmethod
    def author(cls, source: str, *, name: str = "<exposure>", limits: EngineLimits = _DEFAULT_LIMITS) -> Self:
        """The exposure of authored rules, or every reason to refuse them."""
        read, errors = read_annotated_all(source, name=name, limits=limits)
        refuse(name, [*errors, *_findings(read.program, limits)])
        return cls._canonical(read.program, limits)

    @classmethod
    def of_rules(cls, rules: Iterable[Rule], *, limits: EngineLimits = _DEFAULT_LIMITS) -> Self:
        """The exposure of rules in hand."""
        program = Program(tuple(rules))
        refuse("<exposure>", _findings(program, limits))
        return cls._canonical(program, limits)

    @classmethod
    def _canonical(cls, program: Program, limits: EngineLimits) -> Self:
        text = canonical_text(program)
        return cls(text, lacegram_id(text.encode()), parse_program(text, name="<exposure>", limits=limits))

    def rules_for(self, viewer: Viewer) -> Iterator[tuple[Rule, Rule]]:
        """Its rules, each as written and as it reads for one viewer.

        Rules that allow another viewer only are left out, unless a rule reads what is allowed to others than this one.
        """
        bound_rules = [for_viewer(rule, viewer) for rule in self.program.rules]
        allowed = [atom for atom in body_atoms(bound_rules) if atom.predicate == ALLOW_QUERY_RECORD]
        recursive = any(atom.terms[0] != Constant(viewer) for atom in allowed)
        for rule in self.program.rules:
            bound = for_viewer(rule, viewer)
            if recursive or bound.head.predicate != ALLOW_QUERY_RECORD or bound.head.terms[0] == Constant(viewer):
                yield rule, bound

    def shows_all(self, viewer: Viewer) -> bool:
        """Whether a rule allows the viewer every stored record, as written: `AllowQueryRecord(V,P) :- Have(P).`"""
        return any(_allows_all(bound, viewer) for _, bound in self.rules_for(viewer))


def for_viewer(rule: Rule, viewer: Viewer) -> Rule:
    """An AllowQueryRecord rule with a variable viewer replaced by the viewer throughout (P9, 020-GATE-05)."""
    if rule.head.predicate != ALLOW_QUERY_RECORD:
        return rule
    first = rule.head.terms[0]
    return substitute(rule, first, Constant(viewer)) if isinstance(first, Variable) else rule


def shown_as_to(exposure: Exposure, viewer: Viewer) -> Exposure:
    """The exposure that shows to anybody what this one shows to a viewer: for a peer who could prove to be it."""
    rules = "\n".join(format_rule(for_viewer(rule, viewer)) for rule in exposure.program.rules)
    name = ALLOW_QUERY_RECORD.name
    return Exposure.author(rules.replace(f"{name}({format_term(Constant(viewer))},", f"{name}(WhoeverLooks,"))


def for_some_viewer(program: Program) -> Program:
    """An exposure as it reads for any viewer: a rule need not bind the viewer to be safe (P9)."""
    return replace(program, rules=tuple(for_viewer(rule, _SOME_VIEWER) for rule in program.rules))


def expose_all() -> Exposure:
    """Every stored record, to every viewer."""
    return Exposure.author(_EVERY_RECORD)


def shows_everything(exposures: Iterable[Exposure]) -> bool:
    """Whether no module of a lace's exposure hides anything from anybody; False where there is none, or any doubt."""
    texts = {exposure.text for exposure in exposures}
    return texts == {_EVERY_RECORD}


def expose_selected(module: Module) -> Exposure:
    """What the local selector selects of the stored records; advertisements count as none here (P9)."""
    if any(_is_every_record(rule, rule.head.terms[0]) for rule in module.rules if rule.head.predicate == SELECT_HAVE):
        return expose_all()
    needed = reachable(module.rules, (SELECT_HAVE,))
    scoped = scope(_SELECTED_SCOPE, shared=BASE_PREDICATES)
    record = Variable("P")
    allow = Rule(
        Atom(ALLOW_QUERY_RECORD, (Variable("Viewer"), record)),
        (Positive(Atom(scoped(SELECT_HAVE), (record,))), Positive(Atom(HAVE, (record,)))),
    )
    chosen = [rename(rule, scoped) for rule in module.rules if rule.head.predicate in needed]
    return Exposure.of_rules([*chosen, allow])


EXPOSURE_WORDS = ("all", "selected", "none")


def expose(choice: str, *, selector: Module | None) -> tuple[Exposure, ...]:
    """The exposure modules of `all`, `selected` or `none`, or of a rule text (040-EXPOSE-05)."""
    match choice.strip():
        case "none":
            return ()
        case "all":
            return (expose_all(),)
        case "selected":
            return (expose_selected(selector),) if selector is not None else ()
        case _:
            refuse_unknown_word(choice, EXPOSURE_WORDS, rule="expose-word")
            return (Exposure.author(choice),)


def _allows_all(rule: Rule, viewer: Viewer) -> bool:
    if rule.head.predicate != ALLOW_QUERY_RECORD or rule.head.terms[0] != Constant(viewer):
        return False
    return _is_every_record(rule, rule.head.terms[1])


def _is_every_record(rule: Rule, record: Term) -> bool:
    return isinstance(record, Variable) and rule.body == (Positive(Atom(HAVE, (record,))),)


def _findings(program: Program, limits: EngineLimits) -> list[InvalidInput]:
    findings: list[InvalidInput] = [*check_all(for_some_viewer(program), EXPOSURE_PROFILE, limits)]
    if ALLOW_QUERY_RECORD not in heads(program.rules):
        message = f"an exposure module has to define {ALLOW_QUERY_RECORD}"
        findings.append(InvalidExchangePlan(message, rule="missing-allow-query-record", place=program.source.name))
    return [*findings, *_opaque_grants(program)]


def _opaque_grants(program: Program) -> Iterator[InvalidInput]:
    """040-OPQ-09: an exchange-local label is not an identity, so nothing can be granted to one by name."""
    for rule in program.rules:
        first = rule.head.terms[0] if rule.head.predicate == ALLOW_QUERY_RECORD else None
        if isinstance(first, Constant) and is_opaque(first.value):
            message = "an exposure names an opaque label, which is another peer's in the next exchange"
            yield InvalidExchangePlan(message, rule="grants-opaque", place=program.source.name, found=first.value)
