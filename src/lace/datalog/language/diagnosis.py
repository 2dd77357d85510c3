"""How an error in a rule text is told: place, picture with a caret, advice (030).

Rule: whatever the text, a picture is short: one line, cut around the caret.
"""

from __future__ import annotations

from collections.abc import Sequence

from lace.datalog.language.syntax import NO_SOURCE, Compare, Place, Rule, SourceText
from lace.errors import InvalidLacegram

_BEFORE, _AFTER = 70, 40


def picture(line: str, column: int) -> str:
    """The line and a caret under its column (from 1), cut to what fits a terminal.

    >>> print(picture("A(x) :- B(X).", 3))
    A(x) :- B(X).
      ^
    """
    index = min(max(column - 1, 0), len(line))
    start = max(0, index - _BEFORE) if len(line) > _BEFORE + _AFTER else 0
    lead = "…" if start else ""
    end = min(len(line), index + _AFTER)
    tail = "…" if end < len(line) else ""
    shown = "".join(c if c.isprintable() else "\ufffd" for c in line[start:end].replace("\t", " "))
    return f"{lead}{shown}{tail}\n{' ' * (len(lead) + index - start)}^"


def wide_join_advice(rule: Rule | None, on: Sequence[str] = ()) -> str:
    """What to write instead of a rule that pairs too many rows; `on` are the variables that it joined on already."""
    if on:
        shared = (
            f"some values of {' and '.join(on)} have very many facts on both sides: let another atom or a constant "
            "say which of them are meant, or raise the limit if so many answers are"
        )
    else:
        shared = "let the atoms share a variable or a constant, so that fewer rows meet"
    if rule is None or not any(isinstance(literal, Compare) for literal in rule.body):
        return shared
    return (
        f"{shared}; or compare two rows of one predicate, which says all that is asked of them, and read the result "
        "only by Cardinality(…(P,Q),'<','100') or by `not`, so that it is sorted instead of paired"
    )


def lacegram_error(
    source: SourceText, place: Place, line_text: str, rule: str, message: str, advice: str = "", found: str = ""
) -> InvalidLacegram:
    """An error at a place of a source text."""
    if place.line == 0:
        return InvalidLacegram(message, rule=rule, place=source.name, found=found, advice=advice)
    where = f"{source.name}:{place.line}:{place.column}" if source.name else f"{place.line}:{place.column}"
    return InvalidLacegram(
        message,
        rule=rule,
        place=where,
        found=found,
        line=place.line,
        column=place.column,
        picture=picture(line_text, place.column) if source is not NO_SOURCE else "",
        advice=advice,
    )
