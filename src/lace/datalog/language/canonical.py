"""Canonical lacegram text and the `R.` and `U.` identifiers (030, P1, P2).

Rule: text is canonical iff formatting its parse gives the same bytes; nothing received is ever repaired. What the bytes
of a rule are, spaces included, is decided in `formatting`.
"""

from __future__ import annotations

from dataclasses import field
from typing import Self

from lace.datalog.language.formatting import (
    format_atom,
    format_fact,
    format_literal,
    format_program,
    format_rule,
    format_term,
)
from lace.datalog.language.parser import parse_program
from lace.datalog.language.syntax import Program, Rule
from lace.datalog.language.validate import LOCAL_PROFILE, CheckedProgram, Profile, check_program
from lace.errors import InvalidLacegram, InvalidText
from lace.limits import EngineLimits
from lace.notation.digest import digest, domain_digest
from lace.notation.identifiers import LacegramId, RuleId
from lace.notation.text import decode_text
from lace.values import dataclass

RULE_DOMAIN = "lace-rule/v1"  # 030-RID-05
_DEFAULT_LIMITS = EngineLimits()


def canonical_text(program: Program) -> str:
    """The text to exchange: canonical rule lines in byte order, exact repeats dropped (P1, 030-CANON-11)."""
    return "\n".join(sorted({format_rule(rule) for rule in program.rules}))


def is_canonical(text: str | bytes, limits: EngineLimits = _DEFAULT_LIMITS) -> bool:
    """Whether formatting the parse of a text gives the same bytes (030-CANON-01); rule order is not judged."""
    try:
        return _parse_canonical(text, "<rules>", limits) is not None
    except InvalidLacegram:
        return False


def _parse_canonical(text: str | bytes, name: str, limits: EngineLimits) -> Program | None:
    spelled = _decode(text, name) if isinstance(text, bytes) else text
    program = parse_program(spelled, name=name, limits=limits)
    return program if format_program(program) == spelled else None


def _decode(data: bytes, name: str) -> str:
    try:
        return decode_text(data, name)
    except InvalidText as error:
        raise InvalidLacegram(error.message, rule=error.rule, place=name, found=error.found) from None


def lacegram_id(canonical: bytes) -> LacegramId:
    """`R.`: the digest of canonical text, without a domain string (030-RID-01)."""
    return LacegramId.of(digest(canonical))


def rule_id(rule: Rule | str) -> RuleId:
    """`U.`: the digest of a canonical rule line, without LF, behind its domain (030-RID-05, 030-RID-06)."""
    line = rule if isinstance(rule, str) else format_rule(rule)
    return RuleId.of(domain_digest(RULE_DOMAIN, line.encode()))


@dataclass(frozen=True, slots=True)
class Lacegram:
    """Canonical text, its identifier, and the program it spells; checked by a profile (030-CANON-14)."""

    text: str
    id: LacegramId
    checked: CheckedProgram = field(compare=False, repr=False)

    @property
    def program(self) -> Program:
        """The rules in the order of the text."""
        return self.checked.program

    @classmethod
    def parse_canonical(
        cls,
        data: bytes,
        *,
        profile: Profile = LOCAL_PROFILE,
        limits: EngineLimits = _DEFAULT_LIMITS,
        name: str = "<lacegram>",
    ) -> Self:
        """The door for received bytes: canonical and valid as they stand, or InvalidLacegram."""
        program = _parse_canonical(data, name, limits)
        if program is None:
            message = "the text is valid but not canonical"
            raise InvalidLacegram(message, rule="canonical", place=name, advice="lace fmt writes canonical text")
        return cls(data.decode(), lacegram_id(data), check_program(program, profile, limits))

    @classmethod
    def from_program(
        cls, program: Program, *, profile: Profile = LOCAL_PROFILE, limits: EngineLimits = _DEFAULT_LIMITS
    ) -> Self:
        """The door for authored rules: written canonically, then checked."""
        return cls.parse_canonical(canonical_text(program).encode(), profile=profile, limits=limits)


__all__ = [
    "Lacegram",
    "canonical_text",
    "format_atom",
    "format_fact",
    "format_literal",
    "format_program",
    "format_rule",
    "format_term",
    "is_canonical",
    "lacegram_id",
    "rule_id",
]
