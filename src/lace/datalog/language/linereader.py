"""One line of text read piece by piece: space, marks and terms, and every refusal with its place and advice.

Rule: nothing is repaired, and what is refused is told by where it begins.
"""

from __future__ import annotations

import re
from typing import NoReturn

from lace.datalog.language.diagnosis import lacegram_error
from lace.datalog.language.syntax import ANONYMOUS, Constant, Place, SourceText, Term, Variable
from lace.datalog.reached import reached
from lace.errors import InvalidLacegram, InvalidText
from lace.limits import EngineLimits
from lace.notation.text import require_nfc

WORD = re.compile(r"[A-Za-z0-9_~-]++")
SPACE = re.compile(r"[ \t]*+")
# A term and the space around it; a constant has no other escapes than \\ and \' (030-TERM-10).
TERM = re.compile(
    r"[ \t]*+(?:([A-Z][A-Za-z0-9_]*+)(?![~-])|'([^'\\]*+(?:\\[\\'][^'\\]*+)*+)'|(_)(?![A-Za-z0-9_~-]))[ \t]*+"
)
_BLANKS = (" ", "\t")
_ESCAPE = re.compile(r"\\([\\'])")
_TERM_ADVICE = "a term is a Variable (capital first), a 'constant' in single quotes, or _"


class LineReader:
    """Reads one line; `at` is the next character."""

    __slots__ = ("at", "limits", "line", "number", "source")

    def __init__(self, source: SourceText, number: int, line: str, limits: EngineLimits) -> None:
        self.source = source
        self.number = number
        self.line = line
        self.limits = limits
        self.at = 0
        try:
            require_nfc(line)  # 030-SYN-01
        except InvalidText as error:
            raise self._error(0, error.rule, error.message, "save the text as UTF-8 in NFC") from None
        for forbidden in "\r\n":
            if forbidden in line:  # 030-TERM-11, 030-TERM-12
                self._fail(line.index(forbidden), "line-break", "CR and LF can stand in no rule and no constant")

    def _term(self) -> Term:
        found = TERM.match(self.line, self.at)
        if found is None:
            self._fail_term()
        variable, constant, _ = found.groups()
        start = self.at
        self.at = found.end()
        if variable is not None:
            return Variable(variable)
        if constant is None:
            return ANONYMOUS
        return Constant(self._constant(constant, start))

    def _constant(self, spelled: str, start: int) -> str:
        value = _ESCAPE.sub(r"\1", spelled) if "\\" in spelled else spelled
        allowed = self.limits.max_value_bytes  # 030-TERM-14: counted after decoding
        if len(value.encode()) > allowed:
            raise reached("max_value_bytes", allowed, self._where(start))
        return value

    # reading

    def _skip_space(self) -> None:
        if self.line[self.at : self.at + 1] in _BLANKS:
            space = SPACE.match(self.line, self.at)
            assert space is not None
            self.at = space.end()

    def _take(self, mark: str) -> bool:
        if not self.line.startswith(mark, self.at):
            self._skip_space()
        if self.line.startswith(mark, self.at):
            self.at += len(mark)
            return True
        return False

    def _require_open(self) -> None:
        if not self._take("("):
            self._fail(self.at, "parentheses", "expected (", "", self._found(self.at))

    def _expect_end(self, message: str, advice: str) -> None:
        self._skip_space()
        if self.at < len(self.line):
            self._fail(self.at, "trailing-text", message, advice, self._found(self.at))

    # refusing

    def _fail_term(self) -> NoReturn:
        """No term stands here: say why."""
        self._skip_space()
        start = self.at
        if self.line.startswith("'", start):
            self._fail_constant(start)
        if self.line.startswith('"', start):
            self._fail(start, "constant-quotes", "constants are single-quoted", "write 'text'")
        word = WORD.match(self.line, start)
        if word is None:
            self._fail(start, "term", "a term is missing here", _TERM_ADVICE, self._found(start))
        if word[0].startswith("_"):  # 030-TERM-05
            advice = "use _ alone, or a variable that begins with a capital"
            self._fail(start, "underscore-term", f"{word[0]} is no term", advice)
        if word[0][0].isdigit() or word[0][0] == "-":
            self._fail(start, "bare-number", "numbers are constants too", f"write '{word[0]}'")
        if word[0][0].isupper():  # 030-TERM-01
            self._fail(start, "variable-name", f"{word[0]} is no variable", "variables hold letters, digits and _")
        self._fail(start, "lower-case-term", f"{word[0]} is no term", f"write '{word[0]}' or a capital first letter")

    def _fail_constant(self, start: int) -> NoReturn:
        index = start + 1
        while index < len(self.line) and self.line[index] != "'":
            if self.line[index] == "\\":
                if self.line[index + 1 : index + 2] not in ("\\", "'"):
                    advice = "only \\\\ and \\' are escapes"
                    self._fail(index, "constant-escape", "unknown escape in a constant", advice)
                index += 1
            index += 1
        self._fail(start, "constant-open", "the constant is not closed on its line", "constants hold no line breaks")

    def _found(self, start: int) -> str:
        return repr(self.line[start : start + 12]) if start < len(self.line) else "the end of the line"

    def _where(self, start: int) -> str:
        return f"{self.source.name}:{self.number}:{start + 1}"

    def _error(self, start: int, rule: str, message: str, advice: str = "", found: str = "") -> InvalidLacegram:
        place = Place(self.number, start + 1)
        return lacegram_error(self.source, place, self.line, rule, message, advice, found)

    def _fail(self, start: int, rule: str, message: str, advice: str = "", found: str = "") -> NoReturn:
        raise self._error(start, rule, message, advice, found)
