"""IntCompare, LexCompare, TextShape, `!=` and Cardinality, edge by edge."""

from __future__ import annotations

import operator
import re
from itertools import product

from cases.case import Case, quote

OPS = {"lt": ("<", operator.lt), "le": ("<=", operator.le), "gt": (">", operator.gt), "ge": (">=", operator.ge)}
DIGITS = re.compile(r"-?[0-9]+", re.ASCII)

INTEGERS = {
    "small": ["0", "1", "2", "9", "10", "11", "99", "100"],
    "negative": ["-1", "-2", "-9", "-10", "0", "1", "-100"],
    "zeros": ["0", "00", "-0", "-00", "007", "7", "-007", "-7"],
    "int64": ["9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "0"],
    "uint64": ["18446744073709551615", "18446744073709551616", "340282366920938463463374607431768211456"],
    "long": ["1" + "0" * 900, "9" * 900, "-1" + "0" * 900, "-" + "9" * 900, "9" * 899 + "8"],
    "not-integers": ["", "1.0", " 1", "1 ", "+1", "x", "-", "--1", "1e3", "0x1", "1", "١", "²", "1_0"],
}
TEXTS = {
    "ascii": ["a", "b", "Z", "z", "0", "~", " ", "!"],
    "prefix": ["", "a", "aa", "ab", "b", "a ", "a\t"],
    "digits": ["9", "10", "1", "010", "2"],
    "planes": ["z", "é", "ÿ", "Ā", "߿", "ࠀ", "\ufffd", "\ue000", "𐀀", "🖧", "\U0010fffd"],
    "tai": ["1640995200:000000001", "1640995200:999999999", "1640995201:000000000", "0999999999:999999999"],
    "b64a": ["0000", "000z", "00_0", "0Z00", "~~~~", "zzzz"],
}


def _int(text: str) -> int | None:
    if not DIGITS.fullmatch(text):
        return None
    sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text)
    number = 0
    for digit in digits:
        number = number * 10 + ord(digit) - ord("0")
    return sign * number


def _int_holds(left: str, test: object, right: str) -> bool:
    a, b = _int(left), _int(right)
    return a is not None and b is not None and bool(test(a, b))  # type: ignore[operator]  # one of OPS


def _compare_cases() -> list[Case]:
    cases = []
    for (word, (op, test)), (family, values) in product(OPS.items(), INTEGERS.items()):
        pairs = list(product(values, values))
        yes = [pair for pair in pairs if _int_holds(pair[0], test, pair[1])]
        rules = f"Yes(X,Y) :- Pair(X,Y), IntCompare(X,'{op}',Y)."
        cases.append(Case(f"int-{word}-{family}", rules, {"Pair": pairs}, {"Yes": yes}))
    for (word, (op, test)), (family, values) in product(OPS.items(), TEXTS.items()):
        pairs = list(product(values, values))
        yes = [(a, b) for a, b in pairs if test(a.encode(), b.encode())]
        rules = f"Yes(X,Y) :- Pair(X,Y), LexCompare(X,'{op}',Y)."
        cases.append(Case(f"lex-{word}-{family}", rules, {"Pair": pairs}, {"Yes": yes}))
    for word, (op, test) in OPS.items():
        numbers = ["1", "2", "03", "x", ""]
        left = [n for n in numbers if _int_holds("2", test, n)]
        right = [n for n in numbers if _int_holds(n, test, "2")]
        rules = f"Left(X) :- N(X), IntCompare('2','{op}',X).\nRight(X) :- N(X), IntCompare(X,'{op}','2')."
        cases.append(Case(f"int-{word}-constant-side", rules, {"N": numbers}, {"Left": left, "Right": right}))
        both = f"A() :- IntCompare('1','{op}','2').\nB() :- LexCompare('b','{op}','a').\nC() :- IntCompare('x','{op}','1')."
        expected = {name: [()] for name, holds in (("A", test(1, 2)), ("B", test("b", "a"))) if holds}
        cases.append(Case(f"compare-{word}-two-constants", both, {}, expected))
        same = f"I(X) :- N(X), IntCompare(X,'{op}',X).\nL(X) :- N(X), LexCompare(X,'{op}',X)."
        equal = "=" in op
        reflexive = {"I": [n for n in numbers if equal and _int(n) is not None], "L": numbers if equal else []}
        cases.append(Case(f"compare-{word}-same-variable", same, {"N": numbers}, reflexive))
    return cases


SHAPE_TEXTS = [
    "", "a", "b", "ab", "ba", "aba", "abba", "a/b", "a/b/c", "a//b", "/a", "a/", "/", "//", "a.b", "a./b", "links/",
    "links/bob/msg", "links/bob.msg", "links/msg", "links/bob/alice/msg", "links/.msg", "links//msg", "links/b/", "Links/x",
    "links/a.md", "links/é/msg", "a.json", ".json", "a.json.json", "é/é", "éaé", "ãxé", "x🖧y", "🖧", "links/x🖧msg", "it's/a",
    "back\\slash", "a/msg", "links/bob/msg/", "links/bob/msgs",
]  # fmt: skip
SHAPES = [
    ("", "", ""), ("a", "", ""), ("links/", "", ""), ("", "", ".json"), ("", "", "a"), ("ab", "", "ba"), ("a", "", "a"),
    ("links/", "", ".md"), ("links/", "./", "msg"), ("links/", "/", "msg"), ("links/", "/", ""), ("", "/", ""),
    ("", "/", "b"), ("a/", "/", "c"), ("", "/", "b/c"), ("", "//", "b"), ("", "/.", "b"), ("", "é", ""), ("", "é", "é"),
    ("ã", "é", ""), ("x", "🖧", "y"), ("links/", "🖧", "msg"), ("é", "", "é"), ("it's", "/", "a"), ("", "'", "s/a"),
    ("back", "", "slash"), ("", "\\", "slash"), ("links/bob", "/.", "msg"), ("", "a", "a"), ("", "ab", ""), ("a", "b", "a"),
]  # fmt: skip


def _shape(text: str, start: str, delims: str, end: str) -> bool:
    if delims:
        inside = "[" + re.escape(delims).replace("/", "\\/") + "]"
        outside = "[^" + inside[1:]
        pattern = f"{re.escape(start)}{outside}+{inside}{re.escape(end)}"
    else:
        pattern = f"{re.escape(start)}.*{re.escape(end)}"
    return re.fullmatch(pattern, text, re.DOTALL) is not None


def _shape_cases() -> list[Case]:
    cases = []
    for number, (start, delims, end) in enumerate(SHAPES):
        rules = f"Yes(K) :- Text(K), TextShape(K,{quote(start)},{quote(delims)},{quote(end)})."
        yes = [text for text in SHAPE_TEXTS if _shape(text, start, delims, end)]
        cases.append(Case(f"shape-{number:02}", rules, {"Text": SHAPE_TEXTS}, {"Yes": yes}))
    parts = [(start, end) for start, _, end in SHAPES[:16]]
    for delims in ("", "/", "./"):
        rules = f"Yes(K,S,E) :- Text(K), Part(S,E), TextShape(K,S,{quote(delims)},E)."
        yes3 = [(t, s, e) for t in SHAPE_TEXTS for s, e in parts if _shape(t, s, delims, e)]
        name = {"": "none", "/": "slash", "./": "dot-slash"}[delims]
        cases.append(Case(f"shape-variable-parts-{name}", rules, {"Text": SHAPE_TEXTS, "Part": parts}, {"Yes": yes3}))
    rules = "Own(K) :- Text(K), TextShape(K,K,'','').\nDouble(K) :- Text(K), TextShape(K,K,'',K).\nAll() :- TextShape('ab','a','','b')."
    own = {"Own": SHAPE_TEXTS, "Double": [""], "All": [()]}
    cases.append(Case("shape-text-as-its-own-part", rules, {"Text": SHAPE_TEXTS}, own))
    return cases


def _unequal_cases() -> list[Case]:
    values = ["a", "A", "", "1", "01", "é", "e"]
    pairs = list(product(values, values))
    apart = [(x, y) for x, y in pairs if x != y]
    others = [v for v in values if v != "a"]
    return [
        Case("unequal-two-variables", "Yes(X,Y) :- Pair(X,Y), X != Y.", {"Pair": pairs}, {"Yes": apart}),
        Case("unequal-constant-right", "Yes(X) :- V(X), X != 'a'.", {"V": values}, {"Yes": others}),
        Case("unequal-constant-left", "Yes(X) :- V(X), 'a' != X.", {"V": values}, {"Yes": others}),
        Case("unequal-same-variable", "Yes(X) :- V(X), X != X.", {"V": values}, {}),
        Case("unequal-two-constants", "A() :- 'a' != 'b'.\nB() :- 'a' != 'a'.", {}, {"A": [()]}),
        Case("unequal-before-its-atom", "Yes(X,Y) :- X != Y, V(X), V(Y).", {"V": values}, {"Yes": apart}),
        Case("unequal-equals-sign-in-constant", "Yes(X) :- V(X), X != 'a = b'.", {"V": ["a = b", "c"]}, {"Yes": ["c"]}),
    ]


EDGES = {("a", "1"), ("a", "2"), ("a", "3"), ("b", "1"), ("b", "b"), ("c", "c"), ("d", "")}
NODES = ["a", "b", "c", "d", "none"]


def _cardinality_cases() -> list[Case]:
    count = {n: sum(1 for e in EDGES if e[0] == n) for n in NODES}
    facts = {"Node": NODES, "E": EDGES}
    cases = []
    for (word, (op, test)), bound in product(OPS.items(), ["0", "1", "2", "3", "-1", "03", "x", "", "9" * 60]):
        number = _int(bound)
        yes = [n for n in NODES if number is not None and test(count[n], number)]
        rules = f"Yes(N) :- Node(N), Cardinality(E(N,Q),'{op}',{quote(bound)})."
        label = {"x": "word", "": "empty", "9" * 60: "huge"}.get(bound, bound)
        cases.append(Case(f"cardinality-{word}-{label}", rules, facts, {"Yes": yes}))
    for word, (op, test) in OPS.items():
        bounds = [("a", "3"), ("a", "2"), ("b", "2"), ("b", "02"), ("none", "0"), ("none", "-1"), ("c", "x"), ("c", "")]
        yes2 = [(n, b) for n, b in bounds if (number := _int(b)) is not None and test(count[n], number)]
        rules = f"Yes(N,B) :- Bound(N,B), Cardinality(E(N,_),'{op}',B)."
        cases.append(Case(f"cardinality-{word}-variable-bound", rules, {"Bound": bounds, "E": EDGES}, {"Yes": yes2}))
    cases += [
        Case("cardinality-undefined-predicate", "Yes(N) :- Node(N), Cardinality(Undefined(X),'<','1').", facts, {"Yes": NODES}),
        Case("cardinality-nothing-bound", "Yes() :- Cardinality(E(X,Y),'>=','7').\nNo() :- Cardinality(E(X,Y),'>','7').",
             facts, {"Yes": [()]}),
        Case("cardinality-zero-arity", "One() :- Cardinality(On(),'>=','1').\nTwo() :- Cardinality(On(),'>=','2').\n"
             "None() :- Cardinality(Off(),'<','1').", {"On": [()]}, {"One": [()], "None": [()]}),
        Case("cardinality-repeated-local", "Yes() :- Cardinality(E(X,X),'>=','2').\nNo() :- Cardinality(E(X,X),'>','2').",
             facts, {"Yes": [()]}),
        Case("cardinality-repeated-bound", "Yes(N) :- Node(N), Cardinality(E(N,N),'>','0').", facts, {"Yes": ["b", "c"]}),
        Case("cardinality-constant-inside", "Yes(N) :- Node(N), Cardinality(E(N,'1'),'>','0').", facts, {"Yes": ["a", "b"]}),
        Case("cardinality-all-bound", "Yes(N,M) :- Node(N), Node(M), Cardinality(E(N,M),'<','1').", facts,
             {"Yes": [(n, m) for n in NODES for m in NODES if (n, m) not in EDGES]}),
        Case("cardinality-anonymous-counts-facts", "Yes(A) :- T(A,_,_), Cardinality(T(A,_,_),'>','1').",
             {"T": [("a", "x", "1"), ("a", "x", "2"), ("b", "y", "1")]}, {"Yes": ["a"]}),
        Case("cardinality-of-derived", "Out(X,Y) :- E(X,Y), X != Y.\nYes(N) :- Node(N), Cardinality(Out(N,_),'<','2').", facts,
             {"Out": [e for e in EDGES if e[0] != e[1]],
              "Yes": [n for n in NODES if sum(e[0] == n and e[0] != e[1] for e in EDGES) < 2]}),
        Case("cardinality-of-union", "U(X) :- A(X).\nU(X) :- B(X).\nYes() :- Cardinality(U(_),'<=','3').\n"
             "No() :- Cardinality(U(_),'<','3').", {"A": ["1", "2"], "B": ["2", "3"]},
             {"U": ["1", "2", "3"], "Yes": [()]}),
        Case("cardinality-of-closure", "T(X,Y) :- E(X,Y).\nT(X,Z) :- T(X,Y), E(Y,Z).\n"
             "Far(X) :- E(X,_), Cardinality(T(X,_),'>','1').",
             {"E": [("1", "2"), ("2", "3"), ("3", "4")]},
             {"T": [("1", "2"), ("1", "3"), ("1", "4"), ("2", "3"), ("2", "4"), ("3", "4")], "Far": ["1", "2"]}),
        Case("cardinality-two-in-one-rule", "Yes(N) :- Node(N), Cardinality(E(N,Q),'>','0'), Cardinality(E(R,N),'<','1').",
             facts, {"Yes": [n for n in NODES if count[n] > 0 and not any(e[1] == n for e in EDGES)]}),
        Case("cardinality-in-recursion", "R('a') :- true.\nR(Y) :- R(X), E(X,Y), Cardinality(Block(Y),'<','1').",
             {"E": [("a", "b"), ("b", "c"), ("c", "d"), ("b", "x")], "Block": ["c"]}, {"R": ["a", "b", "x"]}),
        Case("cardinality-before-its-atom", "Yes(N) :- Cardinality(E(N,Q),'>','1'), Node(N).", facts, {"Yes": ["a", "b"]}),
        Case("cardinality-bound-from-same-atom", "Yes(N,B) :- Want(N,B), Cardinality(Want(N,B),'>=',B).",
             {"Want": [("a", "1"), ("a", "2"), ("b", "0")]}, {"Yes": [("a", "1"), ("b", "0")]}),
    ]  # fmt: skip
    return cases


CASES = _compare_cases() + _shape_cases() + _unequal_cases() + _cardinality_cases()
