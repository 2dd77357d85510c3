"""One line of rule text to tree (030).

Rule: no recursion: the grammar nests once, inside `Cardinality`, so a hostile line costs time in proportion to its
length and no stack.
"""

from __future__ import annotations

import re
from typing import NoReturn

from lace.datalog.language.diagnosis import lacegram_error
from lace.datalog.language.syntax import (
    ANONYMOUS,
    OPERATORS,
    Atom,
    Cardinality,
    Compare,
    Constant,
    Fact,
    Literal,
    Negated,
    Operator,
    Place,
    Positive,
    Predicate,
    Rule,
    SourceText,
    Term,
    TextShape,
    TrueLiteral,
    Unequal,
    Variable,
)
from lace.datalog.limit_errors import limit_reached
from lace.errors import InvalidLacegram, InvalidText
from lace.limits import EngineLimits
from lace.notation.text import require_nfc

BUILTIN_ARITIES = {"IntCompare": 3, "LexCompare": 3, "TextShape": 4, "Cardinality": 3}  # 030-SYN-18
KEYWORDS = frozenset({"true", "not"})  # 030-SYN-21
REMOVED_BUILTIN = "Prefix"  # 030-INV-08: reserved at every arity
NO_PREDICATE = frozenset({*BUILTIN_ARITIES, *KEYWORDS, REMOVED_BUILTIN})
PREDICATE_NAME = re.compile(r"_?[A-Za-z][A-Za-z0-9_~-]*+")  # 030-SYN-09, 030-SYN-11

# Nearly every atom is spelled so; one match reads it whole. Whatever it does not match is read piece by piece.
_VALUE = r"(?:[A-Z][A-Za-z0-9_]*+|'[^'\\]*+'|_)(?=[,)])"
_PLAIN_ATOM = re.compile(rf"(_?[A-Za-z][A-Za-z0-9_~-]*+)\(((?:{_VALUE},)*+{_VALUE})?\)")
_PLAIN_TERM = re.compile(r"([A-Z][A-Za-z0-9_]*+)|'([^']*+)'|_")

WORD = re.compile(r"[A-Za-z0-9_~-]++")
SPACE = re.compile(r"[ \t]*+")
# A term and the space around it; a constant has no other escapes than \\ and \' (030-TERM-10).
TERM = re.compile(
    r"[ \t]*+(?:([A-Z][A-Za-z0-9_]*+)(?![~-])|'([^'\\]*+(?:\\[\\'][^'\\]*+)*+)'|(_)(?![A-Za-z0-9_~-]))[ \t]*+"
)
_BLANKS = (" ", "\t")
_ESCAPE = re.compile(r"\\([\\'])")
_TERM_ADVICE = "a term is a Variable (capital first), a 'constant' in single quotes, or _"


class LineParser:
    """Reads one line as a rule, an atom or a fact; `at` is the next character."""

    __slots__ = ("at", "limits", "line", "number", "source")

    def __init__(self, source: SourceText, number: int, line: str, limits: EngineLimits) -> None:
        self.source: SourceText = source
        self.number: int = number
        self.line: str = line
        self.limits: EngineLimits = limits
        self.at: int = 0
        try:
            require_nfc(line)  # 030-SYN-01
        except InvalidText as error:
            raise self._error(0, error.rule, error.message, "save the text as UTF-8 in NFC") from None
        for forbidden in "\r\n":
            if forbidden in line:  # 030-TERM-11, 030-TERM-12
                self._fail(line.index(forbidden), "line-break", "no rule and no constant may hold CR or LF")

    # the three things a line can be

    def rule(self) -> Rule:
        """`Head :- Atom, Atom.` and nothing after it."""
        self._skip_space()
        if self.line.startswith("#", self.at):
            self._fail(self.at, "comment", "a lacegram holds no comments", "comments belong to annotated source")
        start = self.at
        head = self._head()
        self._expect_arrow()
        body = [self._literal()]
        while self._take(","):
            body.append(self._literal())
        if not self._take("."):
            self._fail_after_literal()
        self._expect_end("a rule ends with its line", "write one rule a line")  # 030-SYN-03
        return Rule(head, tuple(body), Place(self.number, start + 1))

    def whole_atom(self) -> Atom:
        """One predicate atom and nothing after it."""
        self._skip_space()
        atom = self._predicate_atom("a goal")
        self._expect_end("a goal is one atom", "for example Selected(P)")
        return atom

    def fact(self) -> Fact:
        """`Name('value',…)`, with or without a period."""
        self._skip_space()
        atom = self._predicate_atom("a fact")
        self._take(".")
        self._expect_end("a fact ends with its line", "write one fact a line")
        values = [term.value for term in atom.terms if isinstance(term, Constant)]
        if len(values) != len(atom.terms):
            self._fail(atom.place.column - 1, "fact-ground", "a fact holds constants only", "quote each value: 'a'")
        return Fact(atom.predicate, tuple(values))

    # parts

    def _head(self) -> Atom:
        word = WORD.match(self.line, self.at)
        if word is not None and word[0] in BUILTIN_ARITIES:  # 030-SYN-19
            self._fail(self.at, "builtin-head", f"{word[0]} is a builtin and cannot be defined", "choose another name")
        return self._predicate_atom("a rule head")

    def _literal(self) -> Literal:
        self._skip_space()
        plain = self._plain_atom()
        if plain is not None:
            return Positive(plain)
        start = self.at
        word = WORD.match(self.line, start)
        if word is None:
            return self._inequality()
        name = word[0]
        self.at = word.end()
        self._skip_space()
        if self.line.startswith("(", self.at):
            self.at = start
            if name in BUILTIN_ARITIES:
                return self._builtin(name)
            return Positive(self._predicate_atom("a body atom"))
        if name == "true":
            return TrueLiteral(Place(self.number, start + 1))
        if name == "not":
            return self._negated()
        self.at = start
        return self._inequality()

    def _negated(self) -> Negated:
        word = WORD.match(self.line, self.at)
        if word is None or word[0] in KEYWORDS or word[0] in BUILTIN_ARITIES or self._starts_inequality():
            advice = "not stands only before Predicate(…)"  # 030-SYN-16
            self._fail(self.at, "not-operand", "this cannot be negated", advice, self._found(self.at))
        return Negated(self._predicate_atom("a negated atom"))

    def _starts_inequality(self) -> bool:
        term = TERM.match(self.line, self.at)
        return term is not None and self.line.startswith(("!=", "="), term.end())

    def _inequality(self) -> Unequal:
        start = self.at
        if TERM.match(self.line, start) is None or not self._starts_inequality():
            self._fail_literal(start)
        left = self._term()
        if not self._take("!="):  # 030-EQ-01: `=` is not an atom and is never normalised away
            advice = "write the same variable, or the constant, in both places; to tell values apart use !="
            self._fail(self.at, "equality", "= is not Lace Datalog", advice)
        return Unequal(left, self._term(), Place(self.number, start + 1))

    def _plain_atom(self) -> Atom | None:
        """An atom without spaces and escapes, or None."""
        found = _PLAIN_ATOM.match(self.line, self.at)
        if found is None or found[1] in NO_PREDICATE:
            return None
        terms: list[Term] = []
        for term in _PLAIN_TERM.finditer(found[2] or ""):
            variable, constant = term.groups()
            if variable is not None:
                terms.append(Variable(variable))
            else:
                terms.append(ANONYMOUS if constant is None else Constant(self._constant(constant, self.at)))
        if len(terms) > self.limits.max_tuple_arity:
            return None
        place = Place(self.number, self.at + 1)
        self.at = found.end()
        return Atom(Predicate(found[1], len(terms)), tuple(terms), place)

    def _predicate_atom(self, what: str) -> Atom:
        plain = self._plain_atom()
        if plain is not None:
            return plain
        start = self.at
        name = self._predicate_name(what)
        terms, _ = self._terms()
        return Atom(Predicate(name, len(terms)), tuple(terms), Place(self.number, start + 1))

    def _predicate_name(self, what: str) -> str:
        start = self.at
        word = WORD.match(self.line, start)
        if word is None or PREDICATE_NAME.fullmatch(word[0]) is None:  # 030-SYN-10, 030-SYN-12
            advice = "a predicate is named by an ASCII letter, then letters, digits, _, ~ or -"
            self._fail(start, "predicate-name", f"{what} begins with a predicate name", advice, self._found(start))
        name = word[0]
        self.at = word.end()
        self._skip_space()
        if not self.line.startswith("(", self.at):  # 030-SYN-07
            self._fail(start, "parentheses", f"{name} has no parentheses", f"write {name}() for arity 0")
        if name in KEYWORDS:
            self._fail(start, "keyword", f"{name} is a keyword, not a predicate", "choose another name")
        if name in BUILTIN_ARITIES:
            self._fail(start, "builtin-name", f"{what} cannot be the builtin {name}", "use a predicate of your own")
        if name == REMOVED_BUILTIN:
            self._fail(start, "removed-builtin", "Prefix is no longer a builtin", "use TextShape(K,'links/','','')")
        return name

    def _terms(self) -> tuple[list[Term], list[int]]:
        """The terms in parentheses, and where each begins."""
        self._require_open()
        terms: list[Term] = []
        starts: list[int] = []
        if self._take(")"):
            return terms, starts
        while True:
            if len(terms) >= self.limits.max_tuple_arity:
                raise limit_reached("max_tuple_arity", self.limits.max_tuple_arity, self._where(self.at))
            self._skip_space()
            starts.append(self.at)
            terms.append(self._term())
            if self._take(")"):
                return terms, starts
            if not self._take(","):
                self._fail(self.at, "separator", "expected , or ) after a term", "", self._found(self.at))

    # builtins

    def _builtin(self, name: str) -> Literal:
        start = self.at
        self.at += len(name)
        place = Place(self.number, start + 1)
        if name == "Cardinality":
            return self._cardinality(place)
        self._skip_space()
        terms, starts = self._terms()
        self._require_arity(name, len(terms), start)
        if name == "TextShape":
            delimiters = terms[2]
            if not isinstance(delimiters, Constant):  # 030-SHAPE-02
                self._fail(starts[2], "delimiters", "the delimiters of TextShape are a constant", "write '/' or ''")
            return TextShape(terms[0], terms[1], delimiters.value, terms[3], place)
        operator = self._operator(terms[1], starts[1])
        return Compare("int" if name == "IntCompare" else "lex", terms[0], operator, terms[2], place)

    def _require_arity(self, name: str, arity: int, start: int) -> None:
        if arity != BUILTIN_ARITIES[name]:
            forms = {"TextShape": "TextShape(Text,Start,'delims',End)"}
            advice = "write " + forms.get(name, f"{name}(A,'<',B)")
            self._fail(start, "builtin-arity", f"{name} has {BUILTIN_ARITIES[name]} terms, not {arity}", advice)

    def _cardinality(self, place: Place) -> Cardinality:
        self._skip_space()
        self._require_open()
        self._skip_space()
        word = WORD.match(self.line, self.at)
        if word is None or word[0] in KEYWORDS or word[0] in BUILTIN_ARITIES:  # 030-CARD-10
            advice = "write Cardinality(Predicate(…),'<','100')"
            self._fail(self.at, "counted-atom", "Cardinality counts one predicate atom", advice, self._found(self.at))
        atom = self._predicate_atom("a counted atom")
        rest: list[tuple[Term, int]] = []
        while len(rest) < 2 and self._take(","):
            self._skip_space()
            start = self.at
            rest.append((self._term(), start))
        if len(rest) != 2 or not self._take(")"):
            self._fail(place.column - 1, "builtin-arity", "Cardinality has three parts", "Cardinality(P(X),'<','100')")
        return Cardinality(atom, self._operator(rest[0][0], rest[0][1]), rest[1][0], place)

    def _operator(self, term: Term, start: int) -> Operator:
        for operator in OPERATORS:
            if isinstance(term, Constant) and term.value == operator:
                return operator
        # 030-INT-03, 030-INT-04, 030-LEX-02, 030-CARD-05
        return self._fail(start, "operator", "the operator is one of the constants '<', '<=', '>', '>='")

    def _expect_arrow(self) -> None:
        if self._take(":-"):
            return
        if self.line.startswith(".", self.at):  # 030-SYN-05
            self._fail(self.at, "rule-body", "a rule has a body", "a fact is written Head('a') :- true.")
        self._fail(self.at, "rule-arrow", "expected :- after the head", "a rule is Head(X) :- Body(X).")

    # refusing

    def _fail_after_literal(self) -> NoReturn:
        if self.at >= len(self.line):  # 030-SYN-04
            self._fail(self.at, "rule-end", "a rule ends with a period on its own line", "add .")
        if self.line.startswith("=", self.at):
            self._fail(self.at, "equality", "= is not Lace Datalog", "to tell values apart use !=")
        self._fail(self.at, "body-separator", "expected , or . after a body atom", "", self._found(self.at))

    def _fail_literal(self, start: int) -> NoReturn:
        """No body atom begins here: say what is most likely meant."""
        word = WORD.match(self.line, start)
        if word is None or word[0] == "_":
            if self.line[start : start + 1] in ("'", '"'):
                self.at = start
                self._term()
            forms = "P(X), not P(X), X != Y, a builtin, or true"
            self._fail(start, "body-atom", "a body atom is missing here", f"it is {forms}", self._found(start))
        end = SPACE.match(self.line, word.end())
        following = self.line[end.end() :] if end is not None else ""
        if following.startswith("="):
            self._fail(start, "equality", "= is not Lace Datalog", "to tell values apart use !=")
        if following.startswith("!="):
            self.at = start
            self._fail_term()
        advice = f"write {word[0]}() for arity 0"
        self._fail(start, "parentheses", f"{word[0]} has no parentheses", advice)  # 030-SYN-07

    # terms

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
            raise limit_reached("max_value_bytes", allowed, self._where(start))
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
            self._fail(start, "underscore-term", f"{word[0]} is not a term", advice)
        if word[0][0].isdigit() or word[0][0] == "-":
            self._fail(start, "bare-number", "numbers are constants too", f"write '{word[0]}'")
        if word[0][0].isupper():  # 030-TERM-01
            self._fail(start, "variable-name", f"{word[0]} is not a variable", "variables hold letters, digits and _")
        self._fail(start, "lower-case-term", f"{word[0]} is not a term", f"write '{word[0]}' or a capital first letter")

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
