"""Annotated source: rules with `#` comments and `#:json` annotations (030, P6).

Rule: stripped before canonicalization; neither comments nor annotations ever reach canonical text or its identifier.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from typing import Any, NoReturn

from lace.datalog.language.canonical import Lacegram, format_rule, rule_id
from lace.datalog.language.diagnosis import lacegram_error
from lace.datalog.language.lineparser import LineParser
from lace.datalog.language.syntax import Place, Program, Rule, SourceText
from lace.datalog.language.validate import LOCAL_PROFILE, Profile, check_program
from lace.datalog.limit_errors import limit_reached
from lace.errors import InvalidLacegram, InvalidText
from lace.limits import EngineLimits
from lace.notation.identifiers import RuleId
from lace.notation.text import require_nfc
from lace.values import dataclass

Annotation = dict[str, Any]
Sidecar = dict[RuleId, Annotation]
MARKER = "#:json"
_DEFAULT_LIMITS = EngineLimits()


@dataclass(frozen=True, slots=True)
class AnnotatedRule:
    """A rule with the comment lines before it and its merged annotation."""

    rule: Rule
    comments: tuple[str, ...]
    annotation: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AnnotatedSource:
    """An annotated source text, read."""

    header: tuple[str, ...]  # comment lines that a blank line parts from the first rule
    entries: tuple[AnnotatedRule, ...]
    footer: tuple[str, ...]  # comment lines after the last rule
    program: Program

    @property
    def sidecar(self) -> Sidecar:
        """Annotations by rule id; equal rules merge theirs in order (P6)."""
        found: Sidecar = {}
        for entry in self.entries:
            if entry.annotation:
                found.setdefault(rule_id(entry.rule), {}).update(entry.annotation)
        return found


@dataclass(frozen=True, slots=True)
class Canonicalized:
    """What canonicalizing annotated source gives (030-ANN-09)."""

    lacegram: Lacegram
    sidecar: Sidecar


def read_annotated(text: str, *, name: str = "<rules>", limits: EngineLimits = _DEFAULT_LIMITS) -> AnnotatedSource:
    """The annotated source that a text spells; its first error is raised."""
    source, errors = read_annotated_all(text, name=name, limits=limits)
    if errors:
        raise errors[0]
    return source


def read_annotated_all(
    text: str, *, name: str = "<rules>", limits: EngineLimits = _DEFAULT_LIMITS
) -> tuple[AnnotatedSource, list[InvalidLacegram]]:
    """What could be read, and one error for each line that could not."""
    reader = _Reader(SourceText(name, text), limits)
    for number, line in enumerate(text.split("\n"), start=1):
        try:
            reader.read(number, line.removesuffix("\r"))
        except InvalidLacegram as error:
            reader.errors.append(error)
    return reader.finish(), reader.errors


def canonicalize(
    text: str, *, profile: Profile = LOCAL_PROFILE, limits: EngineLimits = _DEFAULT_LIMITS, name: str = "<rules>"
) -> Canonicalized:
    """Canonical text, its `R.` id and the sidecar of an annotated source."""
    source = read_annotated(text, name=name, limits=limits)
    check_program(source.program, profile, limits)  # here, so that an error shows the authored line
    return Canonicalized(Lacegram.from_program(source.program, profile=profile, limits=limits), source.sidecar)


def format_annotated(source: AnnotatedSource) -> str:
    """The source with canonical spelling and order; each comment stays with its rule, equal rules become one."""
    merged: dict[str, list[str]] = {}
    for entry in source.entries:
        merged.setdefault(format_rule(entry.rule), []).extend(entry.comments)
    lines = [*source.header, ""] if source.header else []
    for line in sorted(merged):
        if merged[line] and lines and lines[-1]:
            lines.append("")
        lines += [*merged[line], line]
    if source.footer:
        lines += ["", *source.footer] if lines else source.footer
    return "".join(f"{line}\n" for line in lines)


@dataclass(slots=True)
class _Reader:
    source: SourceText
    limits: EngineLimits
    header: list[str] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)  # since the last rule, blank lines as ""
    annotation: Annotation = field(default_factory=dict)
    pending: tuple[int, str] | None = None  # the last #:json line that no rule has taken yet
    entries: list[AnnotatedRule] = field(default_factory=list)
    errors: list[InvalidLacegram] = field(default_factory=list)

    def read(self, number: int, line: str) -> None:
        """Take one line."""
        text = line.strip(" \t")
        if not text:
            self.comments.append("")
        elif text.startswith("#"):
            self._comment(number, text)
        else:
            self._rule(number, line)

    def finish(self) -> AnnotatedSource:
        """What was read; a `#:json` line without a rule is one more error (030-ANN-08)."""
        if self.pending is not None:
            number, text = self.pending
            finding = "this annotation belongs to no rule", "put it before the rule that it describes"
            self.errors.append(self._error(number, text, "annotation-dangling", *finding))
        program = Program(tuple(entry.rule for entry in self.entries), self.source)
        footer = tuple(line for line in self.comments if line)
        return AnnotatedSource(tuple(self.header), tuple(self.entries), footer, program)

    def _comment(self, number: int, text: str) -> None:
        try:
            require_nfc(text)
        except InvalidText as error:
            raise self._error(number, text, error.rule, error.message, "save the text as UTF-8 in NFC") from None
        if text.startswith(MARKER):
            self.annotation.update(self._object(number, text))  # 030-ANN-06: shallow, later keys win
            self.pending = (number, text)
        self.comments.append(text)

    def _object(self, number: int, text: str) -> Annotation:
        advice = f'write {MARKER} {{"label":"…"}}, one object on one line'
        body = text[len(MARKER) :]
        if body and (not body.startswith(" ") or body[1:2] in (" ", "\t")):  # P6
            raise self._error(number, text, "annotation-form", f"{MARKER} is followed by one space", advice)
        try:
            value = json.loads(text[len(MARKER) :], parse_constant=_refuse_constant)
            json.dumps(value, ensure_ascii=False).encode()  # an escape can spell a lone surrogate
        except (ValueError, RecursionError):
            raise self._error(number, text, "annotation-json", "the annotation is not JSON", advice) from None
        if not isinstance(value, dict):
            raise self._error(number, text, "annotation-object", "an annotation is one JSON object", advice)
        return value

    def _rule(self, number: int, line: str) -> None:
        if len(self.entries) + len(self.errors) >= self.limits.max_rules:
            raise limit_reached("max_rules", self.limits.max_rules, f"{self.source.name}:{number}")
        comments, annotation = self.comments, self.annotation
        self.comments, self.annotation, self.pending = [], {}, None
        rule = LineParser(self.source, number, line, self.limits).rule()
        if not self.entries and "" in comments:
            comments = self._take_header(comments)
        kept = tuple(comment for comment in comments if comment)
        self.entries.append(AnnotatedRule(rule, kept, annotation))

    def _take_header(self, comments: list[str]) -> list[str]:
        """Before the first rule, human comments up to the last blank line are about the whole file."""
        first = next((i for i, comment in enumerate(comments) if comment.startswith(MARKER)), len(comments))
        cut = max((i + 1 for i, comment in enumerate(comments[:first]) if not comment), default=0)
        self.header = _without_repeated_blanks(comments[:cut])
        return comments[cut:]

    def _error(self, number: int, text: str, rule: str, message: str, advice: str) -> InvalidLacegram:
        return lacegram_error(self.source, Place(number, 1), text, rule, message, advice)


def _without_repeated_blanks(lines: list[str]) -> list[str]:
    kept: list[str] = []
    for line in lines:
        if line or (kept and kept[-1]):
            kept.append(line)
    while kept and not kept[-1]:
        kept.pop()
    return kept


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)  # NaN and Infinity are not JSON
