"""Rule text to tree (030): one rule a line.

Rule: spelling may vary where it carries no meaning (spaces, tabs, blank lines); nothing is repaired.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter

from lace.datalog.language.lineparser import NO_PREDICATE, PREDICATE_NAME, LineParser
from lace.datalog.language.syntax import Atom, Fact, Predicate, Program, Rule, SourceText
from lace.datalog.limit_errors import limit_reached
from lace.errors import InvalidLacegram
from lace.limits import EngineLimits
from lace.notation.fact import facts_of
from lace.notation.text import is_nfc

_DEFAULT_LIMITS = EngineLimits()
PIECE_CHARS = 1 << 18  # characters of fact lines that are read at once
_VALUE = r"'[^'\\\r\n]*+'"
_PLAIN_FACTS = re.compile(rf"^({PREDICATE_NAME.pattern})\(((?:{_VALUE},)*+{_VALUE})?\)\.?\r?\n", re.MULTILINE)


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
            raise limit_reached("max_rules", limits.max_rules, f"{name}:{number}")
        try:
            rules.append(LineParser(source, number, line, limits).rule())
        except InvalidLacegram as error:
            errors.append(error)
    return Program(tuple(rules), source), errors


def parse_atom(text: str, *, limits: EngineLimits = _DEFAULT_LIMITS) -> Atom:
    """One atom, such as the goal `Selected(P)` or `Selected('P…')`."""
    return LineParser(SourceText("<goal>", text), 1, text, limits).whole_atom()


def parse_facts(
    text: str, *, name: str = "<facts>", limits: EngineLimits = _DEFAULT_LIMITS, piece_chars: int = PIECE_CHARS
) -> Iterator[Fact]:
    """Fact lines, `Name('value','value')`; blank lines, `#` comments and a final period are allowed."""
    source = SourceText(name, text)
    start, first = 0, 1
    while start < len(text):
        end = text.find("\n", start + piece_chars) + 1 or len(text)
        piece = text[start:end]
        plain = plain_facts(piece, limits)
        yield from _facts_by_line(source, piece, first, limits) if plain is None else plain
        start, first = end, first + piece.count("\n")


def _facts_by_line(source: SourceText, piece: str, first: int, limits: EngineLimits) -> Iterator[Fact]:
    for number, line in rule_lines(piece, first):
        if not line.lstrip(" \t").startswith("#"):
            yield LineParser(source, number, line, limits).fact()


def plain_facts(piece: str, limits: EngineLimits) -> list[Fact] | None:
    """The facts of lines that are spelled as nearly all are, at once; None where one line needs a closer look."""
    if not piece.endswith("\n"):
        piece += "\n"
    found = _PLAIN_FACTS.findall(piece)
    if len(found) != piece.count("\n") or not is_nfc(piece):  # a match is one whole line
        return None
    longest = max([len(constants) for _, constants in found])
    if 4 * longest > limits.max_value_bytes or not _is_encodable(piece):
        return None
    facts: list[Fact] = []
    for name, alike in groupby(found, itemgetter(0)):
        # A plain constant holds no quote, so `','` occurs only between constants.
        rows = [tuple(constants[1:-1].split("','")) if constants else () for _, constants in alike]
        if name in NO_PREDICATE or max(map(len, rows)) > limits.max_tuple_arity:
            return None
        for arity, run in groupby(rows, len):
            facts += facts_of(Predicate(name, arity), run)
    return facts


def _is_encodable(text: str) -> bool:
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:  # a lone surrogate
        return False


def rule_lines(text: str, first: int = 1) -> Iterator[tuple[int, str]]:
    """The non-blank lines of a text with their numbers; a CR before LF counts as space."""
    for number, line in enumerate(text.split("\n"), start=first):
        line = line.removesuffix("\r")
        if line.strip(" \t"):
            yield number, line
