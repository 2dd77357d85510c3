"""Conjunction, union, terms and values."""

from __future__ import annotations

from itertools import product

from cases.case import Case

E = {("a", "b"), ("b", "c"), ("c", "a"), ("a", "a"), ("c", "d")}
F = {("a", "1"), ("b", "2"), ("c", "1"), ("e", "3")}
ODD = ["", " ", "  ", "\t", "'", "\\", "\\'", "a'b", '"', "#", ",", ")", ".", ":-", "=", "_", "X", "not A(X)", "true", "é", "ß",
       "İ", "🖧", "𝔘", "\u200d", "\u00a0", "a\u0338b", "‮abc", "0", "00", "\x00", "\x7f", "\u2028"]  # fmt: skip
LONG = "é" * 512  # 1024 bytes

CASES = [
    Case("join-two-atoms", "A(X,Z) :- E(X,Y), E(Y,Z).", {"E": E}, {"A": [(x, z) for x, y in E for w, z in E if y == w]}),
    Case("join-three-atoms", "A(X,W) :- E(X,Y), E(Y,Z), F(Z,W).", {"E": E, "F": F},
         {"A": [(x, w) for x, y in E for y2, z in E for z2, w in F if y == y2 and z == z2]}),
    Case("join-triangle", "A(X,Y,Z) :- E(X,Y), E(Y,Z), E(Z,X).", {"E": E},
         {"A": [(x, y, z) for x, y in E for z in "abcd" if (y, z) in E and (z, x) in E]}),
    Case("join-repeated-variable", "A(X) :- E(X,X).", {"E": E}, {"A": ["a"]}),
    Case("join-repeated-in-head", "A(X,X) :- E(X,_).", {"E": E}, {"A": [(x, x) for x, _ in E]}),
    Case("join-constant", "A(Y) :- E('a',Y).", {"E": E}, {"A": ["b", "a"]}),
    Case("join-two-constants", "A() :- E('a','b').\nB() :- E('b','a').", {"E": E}, {"A": [()]}),
    Case("join-constant-in-head", "A('k',X) :- E(X,'a').", {"E": E}, {"A": [("k", "c"), ("k", "a")]}),
    Case("join-anonymous-independent", "A() :- E(_,_).\nB(X) :- E(X,_), E(_,X).", {"E": E},
         {"A": [()], "B": [x for x in "abcd" if any(e[0] == x for e in E) and any(e[1] == x for e in E)]}),
    Case("join-cross-product", "A(X,Y) :- F(X,_), F(Y,_).", {"F": F}, {"A": [(x, y) for x, _ in F for y, _ in F]}),
    Case("join-on-two-columns", "A(X,Y) :- E(X,Y), G(Y,X).", {"E": E, "G": {("b", "a"), ("a", "a"), ("a", "b")}},
         {"A": [("a", "b"), ("a", "a")]}),
    Case("join-same-atom-twice", "A(X,Y) :- E(X,Y), E(X,Y).", {"E": E}, {"A": E}),
    Case("join-empty-side", "A(X) :- E(X,Y), Nothing(Y).", {"E": E}, {}),
    Case("join-zero-arity-guard", "A(X) :- E(X,_), On().\nB(X) :- E(X,_), Off().", {"E": E, "On": [()]},
         {"A": [x for x, _ in E]}),
    Case("join-zero-arity-only", "A() :- On().\nB() :- Off().", {"On": [()]}, {"A": [()]}),
    Case("join-star", "A(X,P,Q,R) :- C(X), P1(X,P), P2(X,Q), P3(X,R).",
         {"C": ["1", "2"], "P1": [("1", "a"), ("2", "b"), ("2", "c")], "P2": [("1", "d"), ("2", "e")],
          "P3": [("1", "f"), ("3", "g"), ("2", "h")]},
         {"A": [("1", "a", "d", "f"), ("2", "b", "e", "h"), ("2", "c", "e", "h")]}),
    Case("join-swapped-head", "A(Y,X) :- E(X,Y).", {"E": E}, {"A": [(y, x) for x, y in E]}),
    Case("join-name-with-two-arities", "P(X) :- P(X,_).\nP(X,Y,Z) :- P(X,Y), P(Y,Z).", {"P": {("a", "b"), ("b", "c")}},
         {"P": [("a",), ("b",), ("a", "b", "c")]}),
    Case("join-names-of-every-kind", "a~b(X) :- x-1(X).\nP_(X) :- a~b(X).\n_Local(X) :- P_(X).\nz(X) :- _Local(X).",
         {"x-1": ["v"]}, {"a~b": ["v"], "P_": ["v"], "_Local": ["v"], "z": ["v"]}),
    Case("join-variables-of-every-kind", "A(X1,Y_2,ZZz) :- T(X1,Y_2,ZZz).", {"T": [("a", "b", "c")]}, {"A": [("a", "b", "c")]}),
    Case("join-eight-columns", "A(H,G,F,E,D,C,B,A) :- T(A,B,C,D,E,F,G,H).", {"T": [tuple("abcdefgh")]}, {"A": [tuple("hgfedcba")]}),
    Case("join-variable-names-are-local", "A(X) :- E(X,Y), F(Y,_).\nB(Y) :- E(X,Y), F(X,_).", {"E": E, "F": F},
         {"A": [x for x, y in E if y in "abce"], "B": [y for x, y in E if x in "abce"]}),
    Case("union-two-rules", "A(X) :- E(X,_).\nA(Y) :- E(_,Y).", {"E": E}, {"A": "abcd"}),
    Case("union-duplicate-rule", "A(X) :- E(X,_).\nA(X) :- E(X,_).", {"E": E}, {"A": "abc"}),
    Case("union-facts-and-rules", "A('z') :- true.\nA(X) :- E(X,'d').", {"E": E}, {"A": ["z", "c"]}),
    Case("union-blank-lines-and-spaces", "\n\n  A( X ):-E(X ,_) .\n\n\tA(Y)  :-  E( _,Y).\n", {"E": E}, {"A": "abcd"}),
    Case("body-true-alone", "KnownVerifier('V.example.H3') :- true.", {}, {"KnownVerifier": ["V.example.H3"]}),
    Case("body-true-beside-others", "A(X) :- true, E(X,'b'), true.", {"E": E}, {"A": ["a"]}),
    Case("body-undefined-predicate", "A(X) :- Undefined(X).", {}, {}),
    Case("program-empty", "", {"E": E}, {}),
    Case("program-no-facts", "A(X) :- E(X,Y), F(Y,Z).", {}, {}),
    Case("program-chain-of-copies", "\n".join(f"P{n + 1}(X) :- P{n}(X)." for n in range(20)), {"P0": ["v"]},
         {f"P{n + 1}": ["v"] for n in range(20)}),
    Case("program-rules-in-any-order", "C(X) :- B(X).\nB(X) :- A(X).\nA(X) :- E(X,_).", {"E": E},
         {"A": "abc", "B": "abc", "C": "abc"}),
    Case("values-odd-texts", "A(X) :- V(X).", {"V": ODD}, {"A": ODD}),
    Case("values-odd-texts-joined", "A(X,Y) :- V(X), V(Y), X != Y.", {"V": ODD[:12]},
         {"A": [(x, y) for x, y in product(ODD[:12], ODD[:12]) if x != y]}),
    Case("values-odd-constants", "A(X) :- V(X,'it\\'s').\nA(X) :- V(X,'\\\\').\nA(X) :- V(X,'').\nA(X) :- V(X,'a,b) :- c.').",
         {"V": [("1", "it's"), ("2", "\\"), ("3", ""), ("4", "a,b) :- c."), ("5", "its")]}, {"A": "1234"}),
    Case("values-constant-makes-new-text", "A('it\\'s \\\\ new 🖧') :- true.\nB(X) :- A(X).", {},
         {"A": ["it's \\ new 🖧"], "B": ["it's \\ new 🖧"]}),
    Case("values-are-exact-bytes", "Same(X,Y) :- V(X), V(Y), E(X,Y).", {"V": ["1", "01", "a", "A"], "E": {("1", "01"), ("a", "a")}},
         {"Same": [("1", "01"), ("a", "a")]}),
    Case("values-numbers-are-texts", "A(X) :- V(X), W(X).", {"V": ["1", "2"], "W": ["01", "2"]}, {"A": ["2"]}),
    Case("values-long", "A(X,Y) :- V(X), V(Y).", {"V": [LONG, LONG[:-1] + "e"]},
         {"A": [(x, y) for x, y in product([LONG, LONG[:-1] + "e"], repeat=2)]}),
    Case("values-head-constant-only", "A('1','1') :- E(_,_).\nB('1') :- Nothing(_).", {"E": E}, {"A": [("1", "1")]}),
]  # fmt: skip
