"""Fact lines (050): `Predicate('constant',...)`, one fact a line, one spelling a fact.

Rule: formatting what was parsed gives the same bytes; any other spelling is refused (P18).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain
from operator import methodcaller

from lace.errors import InvalidText, excerpt
from lace.notation.fact import Fact, FactColumn, Predicate, facts_of
from lace.notation.text import decode_text, quote, require_nfc

_NAME = r"[A-Za-z][A-Za-z0-9_~-]*+"
_PLAIN = r"'[^'\\\r\n]*+'"
_ESCAPED = r"'(?:[^'\\\r\n]|\\['\\])*+'"
# Nearly every line on a stream has no escape: one match and one split read it.
_PLAIN_LINE = re.compile(rf"({_NAME})\(({_PLAIN}(?:,{_PLAIN})*+)?\)")
_PLAIN_LINES = re.compile(rf"^({_NAME})\(({_PLAIN}(?:,{_PLAIN})*+)?\)\n", re.MULTILINE)
_ESCAPED_LINE = re.compile(rf"({_NAME})\(({_ESCAPED}(?:,{_ESCAPED})*+)\)")
_ESCAPED_CONSTANT = re.compile(_ESCAPED)
_ESCAPE = re.compile(r"\\(.)")
_NAME_ALONE = re.compile(_NAME)
_GAP = "','"  # between two constants
_count_gaps, _split_at_gaps = methodcaller("count", _GAP), methodcaller("split", _GAP)


def format_fact(fact: Fact) -> str:
    """A fact as its line, without LF.

    >>> print(format_fact(Fact(Predicate("Have", 1), ("it's",))))
    Have('it\\'s')
    """
    return f"{fact[0][0]}({','.join(map(quote, fact[1]))})"


def format_facts(facts: Sequence[Fact]) -> str:
    """Facts as their lines, each with its LF; quick where no value needs an escape."""
    if isinstance(facts, FactColumn):
        return _format_column(facts)
    if _needs_escape("".join(chain.from_iterable([values for _, values in facts]))):
        return "".join([f"{format_fact(fact)}\n" for fact in facts])
    return "".join([f"{name}('{_GAP.join(row)}')\n" if row else f"{name}()\n" for (name, _), row in facts])


def _format_column(column: FactColumn) -> str:
    if not column.firsts:
        return ""
    rest = "".join([f",{quote(value)}" for value in column.rest])
    before, after = f"{column.predicate.name}('", f"'{rest})\n"
    firsts = column.firsts
    if _needs_escape("".join(firsts)):
        firsts = [quote(first)[1:-1] for first in firsts]
    return before + (after + before).join(firsts) + after


def _needs_escape(text: str) -> bool:
    return "'" in text or "\\" in text


def parse_fact(line: str | bytes, max_bytes: int) -> Fact:
    """The fact of one line (its LF already taken off), or InvalidText."""
    if isinstance(line, bytes):
        if len(line) > max_bytes:
            raise _too_long(len(line), max_bytes)
        text = line.decode("ascii") if line.isascii() else decode_text(line, "fact line")
    else:
        text = line
        if len(text) > max_bytes or (not text.isascii() and len(text.encode("utf-8", "replace")) > max_bytes):
            raise _too_long(len(text), max_bytes)
        require_nfc(text, "fact line")
    match = _PLAIN_LINE.fullmatch(text)
    if match is None:
        return _parse_escaped(text)
    name, constants = match.groups()
    # A plain constant holds no quote, so `','` occurs only between constants.
    values = tuple(constants[1:-1].split("','")) if constants else ()
    return Fact(Predicate(name, len(values)), values)


def parse_plain_run(run: bytes) -> Sequence[Fact] | None:
    """The facts of many lines, each with its LF and within its limit, if all are ASCII without an escape; else None."""
    if not run.isascii():
        return None
    text = run.decode("ascii")
    alike = _parse_column(text) or parse_alike(text)
    if alike is not None:
        return alike
    found = _PLAIN_LINES.findall(text)
    if len(found) != run.count(b"\n"):  # a match is one whole line
        return None
    predicates: dict[tuple[str, int], Predicate] = {}
    facts = []
    for name, constants in found:
        values = tuple(constants[1:-1].split("','")) if constants else ()
        key = name, len(values)
        predicate = predicates.get(key)
        if predicate is None:
            predicate = predicates[key] = Predicate(*key)
        facts.append(Fact(predicate, values))
    return facts


def _parse_column(text: str) -> FactColumn | None:
    """The facts of plain lines that differ in their first constant only; else None."""
    first_line = _PLAIN_LINES.match(text)
    if first_line is None or first_line[2] is None:
        return None
    name, constants = first_line.groups()
    _, gap, rest = constants[1:-1].partition(_GAP)
    begins, ends = f"{name}('", f"{gap}{rest}')\n"
    if not text.endswith(ends):
        return None
    firsts = text[len(begins) : -len(ends)].split(ends + begins)
    values = tuple(rest.split(_GAP)) if gap else ()
    # As many line ends as lines and as many quotes as stand around constants: so there are none inside.
    is_plain = text.count("\n") == len(firsts) and text.count("'") == 2 * (len(values) + 1) * len(firsts)
    if not is_plain or "\\" in text or "\r" in text:
        return None
    return FactColumn(Predicate(name, len(values) + 1), firsts, values)


def parse_alike(text: str) -> list[Fact] | None:
    """The facts of plain lines that all have the same predicate, as those of a long listing do; else None."""
    name = text[: text.find("(")]
    begins, ends = f"{name}('", "')\n"
    if not (_NAME_ALONE.fullmatch(name) and text.startswith(begins) and text.endswith(ends)):
        return None
    rows = text[len(begins) : -len(ends)].split(ends + begins)
    gaps = rows[0].count(_GAP)
    # As many line ends as rows and as many quotes as stand around constants: so there are none inside.
    is_plain = text.count("\n") == len(rows) and text.count("'") == 2 * (gaps + 1) * len(rows)
    if not is_plain or "\\" in text or "\r" in text or set(map(_count_gaps, rows)) != {gaps}:
        return None
    return facts_of(Predicate(name, gaps + 1), map(tuple, map(_split_at_gaps, rows)))


def _parse_escaped(text: str) -> Fact:
    match = _ESCAPED_LINE.fullmatch(text)
    if match is None:
        raise InvalidText(
            "a fact line is Predicate('constant',...) without spaces between or anything after",
            rule="fact-syntax",
            found=excerpt(text),
        )
    values = tuple(_ESCAPE.sub(r"\1", constant[1:-1]) for constant in _ESCAPED_CONSTANT.findall(match[2]))
    return Fact(Predicate(match[1], len(values)), values)


def _too_long(size: int, max_bytes: int) -> InvalidText:
    return InvalidText(f"a fact line has at most {max_bytes} bytes", rule="fact-line-length", found=f"{size} bytes")
