"""Rule text to tree (030): one rule a line.

Rule: spelling may vary where it carries no meaning (spaces, tabs, blank lines); nothing is repaired.
"""

from __future__ import annotations

from collections.abc import Iterator

from lace.datalog.lineparser import LineParser
from lace.datalog.syntax import Atom, Fact, Program, Rule, SourceText
from lace.errors import InvalidLacegram, LimitExceeded
from lace.limits import EngineLimits

_DEFAULT_LIMITS = EngineLimits()


def parse_program(text: str, *, name: str = "<rules>", limits: EngineLimits = _DEFAULT_LIMITS) -> Program:
    """The program that a text spells; the first error of the text is raised."""
    program, errors = parse_all_errors(text, name=name, limits=limits)
    if errors:
        raise errors[0]
    return program


def parse_all_errors(
    text: str, *, name: str = "<rules>", limits: EngineLimits = _DEFAULT_LIMITS
) -> tuple[Program, list[InvalidLacegram]]:
    """The rules that could be read, and one error for each line that could not."""
    source = SourceText(name, text)
    rules: list[Rule] = []
    errors: list[InvalidLacegram] = []
    for number, line in rule_lines(text):
        if len(rules) + len(errors) >= limits.max_rules:
            raise LimitExceeded("max_rules", limits.max_rules, f"{name}:{number}")
        try:
            rules.append(LineParser(source, number, line, limits).rule())
        except InvalidLacegram as error:
            errors.append(error)
    return Program(tuple(rules), source), errors


def parse_atom(text: str, *, name: str = "<goal>", limits: EngineLimits = _DEFAULT_LIMITS) -> Atom:
    """One atom, such as the goal `Selected(P)` or `Selected('P…')`."""
    return LineParser(SourceText(name, text), 1, text, limits).whole_atom()


def parse_facts(text: str, *, name: str = "<facts>", limits: EngineLimits = _DEFAULT_LIMITS) -> Iterator[Fact]:
    """Fact lines, `Name('value','value')`; blank lines, `#` comments and a final period are allowed."""
    source = SourceText(name, text)
    for number, line in rule_lines(text):
        if not line.lstrip(" \t").startswith("#"):
            yield LineParser(source, number, line, limits).fact()


def rule_lines(text: str) -> Iterator[tuple[int, str]]:
    """The non-blank lines of a text with their numbers; a CR before LF counts as space."""
    for number, line in enumerate(text.split("\n"), start=1):
        line = line.removesuffix("\r")
        if line.strip(" \t"):
            yield number, line
