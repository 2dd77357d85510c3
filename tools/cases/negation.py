"""Stratified negation, and strata on top of each other."""

from __future__ import annotations

from cases.case import Case

U = ["a", "b", "c", "d"]
E = {("a", "b"), ("b", "c"), ("c", "b"), ("d", "d")}
REACH_A = {"b", "c"}

CASES = [
    Case("not-base", "A(X) :- U(X), not B(X).", {"U": U, "B": ["b", "x"]}, {"A": ["a", "c", "d"]}),
    Case("not-undefined", "A(X) :- U(X), not Undefined(X).", {"U": U}, {"A": U}),
    Case("not-derived", "B(X) :- E(X,_).\nA(X) :- U(X), not B(X).", {"U": [*U, "e"], "E": E}, {"B": U, "A": ["e"]}),
    Case("not-two-columns", "A(X,Y) :- U(X), U(Y), not E(X,Y).", {"U": U, "E": E},
         {"A": [(x, y) for x in U for y in U if (x, y) not in E]}),
    Case("not-repeated-variable", "A(X) :- U(X), not E(X,X).", {"U": U, "E": E}, {"A": ["a", "b", "c"]}),
    Case("not-anonymous", "A(X) :- U(X), not E(_,X).", {"U": U, "E": E}, {"A": ["a"]}),
    Case("not-two-anonymous", "A() :- not E(_,_).\nB() :- not F(_,_).", {"E": E}, {"B": [()]}),
    Case("not-constant", "A(X) :- U(X), not E(X,'b').", {"U": U, "E": E}, {"A": ["b", "d"]}),
    Case("not-all-constants", "A(X) :- U(X), not E('a','b').\nB(X) :- U(X), not E('b','a').", {"U": U, "E": E}, {"B": U}),
    Case("not-zero-arity", "A(X) :- U(X), not On().\nB(X) :- U(X), not Off().", {"U": U, "On": [()]}, {"B": U}),
    Case("not-alone-in-body", "A('x') :- not Off().\nB('x') :- not On().", {"On": [()]}, {"A": ["x"]}),
    Case("not-first-in-body", "A(X) :- not B(X), U(X).", {"U": U, "B": ["a"]}, {"A": ["b", "c", "d"]}),
    Case("not-same-predicate-as-positive", "A(X,Y) :- E(X,Y), not E(Y,X).", {"E": E}, {"A": [("a", "b")]}),
    Case("not-contradiction", "A(X) :- U(X), not U(X).", {"U": U}, {}),
    Case("not-twice", "A(X) :- U(X), not B(X), not C(X).", {"U": U, "B": ["a"], "C": ["b"]}, {"A": ["c", "d"]}),
    Case("not-of-not", "B(X) :- U(X), not C(X).\nA(X) :- U(X), not B(X).", {"U": U, "C": ["a", "c"]},
         {"B": ["b", "d"], "A": ["a", "c"]}),
    Case("not-four-strata", "A1(X) :- U(X), not A0(X).\nA2(X) :- U(X), not A1(X).\nA3(X) :- U(X), not A2(X).\nA4(X) :- U(X), not A3(X).",
         {"U": U, "A0": ["a"]}, {"A1": ["b", "c", "d"], "A2": ["a"], "A3": ["b", "c", "d"], "A4": ["a"]}),
    Case("not-closure", "T(X,Y) :- E(X,Y).\nT(X,Z) :- E(X,Y), T(Y,Z).\nN(X,Y) :- U(X), U(Y), not T(X,Y).", {"U": U, "E": E},
         {"T": [("a", "b"), ("a", "c"), ("b", "c"), ("b", "b"), ("c", "b"), ("c", "c"), ("d", "d")],
          "N": [(x, y) for x in U for y in U
                if (x, y) not in {("a", "b"), ("a", "c"), ("b", "c"), ("b", "b"), ("c", "b"), ("c", "c"), ("d", "d")}]}),
    Case("not-inside-recursion", "R('a') :- true.\nR(Y) :- R(X), E(X,Y), not Blocked(Y).",
         {"E": {("a", "b"), ("b", "c"), ("c", "d"), ("a", "e")}, "Blocked": ["c"]}, {"R": ["a", "b", "e"]}),
    Case("not-unreachable", "R(Y) :- E('a',Y).\nR(Y) :- R(X), E(X,Y).\nLost(X) :- U(X), not R(X).", {"U": U, "E": E},
         {"R": REACH_A, "Lost": ["a", "d"]}),
    Case("not-and-unequal", "Sibling(X,Y) :- P(Z,X), P(Z,Y), X != Y.\nOnly(X) :- P(_,X), not Sib(X).\nSib(X) :- Sibling(X,_).",
         {"P": [("m", "x"), ("m", "y"), ("n", "z")]}, {"Sibling": [("x", "y"), ("y", "x")], "Sib": ["x", "y"], "Only": ["z"]}),
    Case("not-maximum", "Less(X) :- V(X), V(Y), IntCompare(X,'<',Y).\nMax(X) :- V(X), not Less(X).",
         {"V": ["3", "10", "9", "-4"]}, {"Less": ["3", "9", "-4"], "Max": ["10"]}),
    Case("not-lexical-minimum", "More(X) :- V(X), V(Y), LexCompare(X,'>',Y).\nMin(X) :- V(X), not More(X).",
         {"V": ["3", "10", "9", "~"]}, {"More": ["3", "9", "~"], "Min": ["10"]}),
    Case("not-set-difference-by-pairs", "D(X,Y) :- A(X,Y), not B(X,Y).", {"A": [("1", "2"), ("2", "1")], "B": [("2", "1")]},
         {"D": [("1", "2")]}),
    Case("not-with-builtin-on-same-variable", "A(X) :- U(X), X != 'a', not B(X), LexCompare(X,'<','d').", {"U": U, "B": ["b"]},
         {"A": ["c"]}),
    Case("not-mixed-with-cardinality", "A(X) :- U(X), not B(X), Cardinality(E(X,_),'>=','1').", {"U": U, "E": E, "B": ["a"]},
         {"A": ["b", "c", "d"]}),
    Case("not-win-move-acyclic", "Move1(X) :- M(X,_).\nLose0(X) :- U(X), not Move1(X).\nWin1(X) :- M(X,Y), Lose0(Y).",
         {"U": U, "M": [("a", "b"), ("b", "c"), ("c", "d")]}, {"Move1": ["a", "b", "c"], "Lose0": ["d"], "Win1": ["c"]}),
]  # fmt: skip
