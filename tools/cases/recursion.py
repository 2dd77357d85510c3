"""Recursion: linear, non-linear, mutual, through constants, on graphs of every shape."""

from __future__ import annotations

import random

from cases.case import Case

Edge = tuple[str, str]


def closure(edges: set[Edge]) -> set[Edge]:
    """Reachability by at least one edge, by breadth-first search from each node."""
    after: dict[str, set[str]] = {}
    for x, y in edges:
        after.setdefault(x, set()).add(y)
    found: set[Edge] = set()
    for start in after:
        seen: set[str] = set()
        frontier = set(after[start])
        while frontier:
            seen |= frontier
            frontier = {z for y in frontier for z in after.get(y, ())} - seen
        found |= {(start, y) for y in seen}
    return found


def _random_graph(nodes: int, edges: int, seed: int) -> set[Edge]:
    rng = random.Random(seed)
    return {(str(rng.randrange(nodes)), str(rng.randrange(nodes))) for _ in range(edges)}


GRAPHS: dict[str, set[Edge]] = {
    "empty": set(),
    "one-edge": {("a", "b")},
    "loop": {("a", "a")},
    "chain": {(str(n), str(n + 1)) for n in range(12)},
    "cycle": {(str(n), str((n + 1) % 7)) for n in range(7)},
    "two-cycles": {("a", "b"), ("b", "a"), ("b", "c"), ("c", "d"), ("d", "c")},
    "diamond": {("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("d", "e")},
    "grid": {(f"{x},{y}", f"{x + dx},{y + dy}") for x in range(4) for y in range(4) for dx, dy in ((0, 1), (1, 0))},
    "random": _random_graph(15, 24, 7),
    "dense": _random_graph(8, 40, 8),
}
CLOSURES = {
    "right-linear": "T(X,Y) :- E(X,Y).\nT(X,Z) :- E(X,Y), T(Y,Z).",
    "left-linear": "T(X,Y) :- E(X,Y).\nT(X,Z) :- T(X,Y), E(Y,Z).",
    "non-linear": "T(X,Y) :- E(X,Y).\nT(X,Z) :- T(X,Y), T(Y,Z).",
}
PARENTS = {("r", "a"), ("r", "b"), ("a", "c"), ("a", "d"), ("b", "e"), ("c", "f"), ("e", "g")}
DEPTH = {"r": 0, "a": 1, "b": 1, "c": 2, "d": 2, "e": 2, "f": 3, "g": 3}
NEXT = {(str(n), str(n + 1)) for n in range(9)}

CASES = [
    Case(f"closure-{style}-{shape}", rules, {"E": edges}, {"T": closure(edges)})
    for style, rules in CLOSURES.items()
    for shape, edges in GRAPHS.items()
] + [
    Case("recursion-mutual-even-odd", "Even('0') :- true.\nOdd(Y) :- Even(X), Next(X,Y).\nEven(Y) :- Odd(X), Next(X,Y).",
         {"Next": NEXT}, {"Even": ["0", "2", "4", "6", "8"], "Odd": ["1", "3", "5", "7", "9"]}),
    Case("recursion-mutual-three", "A('0') :- true.\nB(Y) :- A(X), Next(X,Y).\nC(Y) :- B(X), Next(X,Y).\nA(Y) :- C(X), Next(X,Y).",
         {"Next": NEXT}, {"A": ["0", "3", "6", "9"], "B": ["1", "4", "7"], "C": ["2", "5", "8"]}),
    Case("recursion-without-base-derives-nothing", "A(X) :- B(X).\nB(X) :- A(X).\nC(X) :- C(X).", {}, {}),
    Case("recursion-same-generation", "Sg(X,X) :- Node(X).\nSg(X,Y) :- Par(P,X), Sg(P,Q), Par(Q,Y).",
         {"Node": list(DEPTH), "Par": PARENTS}, {"Sg": [(x, y) for x in DEPTH for y in DEPTH if DEPTH[x] == DEPTH[y]]}),
    Case("recursion-from-a-constant", "R(Y) :- E('b',Y).\nR(Z) :- R(Y), E(Y,Z).", {"E": GRAPHS["two-cycles"]},
         {"R": ["a", "b", "c", "d"]}),
    Case("recursion-zero-arity", "On() :- On().\nOff() :- Off().\nOff() :- Start().", {"Start": [()]}, {"Off": [()]}),
    Case("recursion-swap", "S(X,Y) :- E(X,Y).\nS(Y,X) :- S(X,Y).", {"E": GRAPHS["diamond"]},
         {"S": GRAPHS["diamond"] | {(y, x) for x, y in GRAPHS["diamond"]}}),
    Case("recursion-rotate", "R(A,B,C) :- T(A,B,C).\nR(B,C,A) :- R(A,B,C).", {"T": [("1", "2", "3")]},
         {"R": [("1", "2", "3"), ("2", "3", "1"), ("3", "1", "2")]}),
    Case("recursion-undirected-components", "C(X,Y) :- E(X,Y).\nC(Y,X) :- E(X,Y).\nC(X,Z) :- C(X,Y), C(Y,Z).",
         {"E": {("a", "b"), ("c", "b"), ("x", "y")}},
         {"C": [(x, y) for g in ("abc", "xy") for x in g for y in g]}),
    Case("recursion-two-predicates-one-closure", "P(X,Y) :- E(X,Y).\nQ(X,Z) :- P(X,Y), E(Y,Z).\nP(X,Z) :- Q(X,Y), E(Y,Z).",
         {"E": GRAPHS["chain"]},
         {"P": [(str(x), str(y)) for x in range(13) for y in range(x + 1, 13) if (y - x) % 2 == 1],
          "Q": [(str(x), str(y)) for x in range(13) for y in range(x + 1, 13) if (y - x) % 2 == 0]}),
    Case("recursion-with-comparison", "R('0') :- true.\nR(Y) :- R(X), Next(X,Y), IntCompare(Y,'<','5').", {"Next": NEXT},
         {"R": ["0", "1", "2", "3", "4"]}),
    Case("recursion-with-text-shape", "R('a/0') :- true.\nR(Y) :- R(X), E(X,Y), TextShape(Y,'a/','','').",
         {"E": {("a/0", "a/1"), ("a/1", "b/2"), ("b/2", "a/3"), ("a/1", "a/4")}}, {"R": ["a/0", "a/1", "a/4"]}),
    Case("recursion-with-unequal", "P(X,Y) :- E(X,Y).\nP(X,Z) :- P(X,Y), E(Y,Z), X != Z.", {"E": GRAPHS["cycle"]},
         {"P": [(x, y) for x in "0123456" for y in "0123456" if x != y]}),
    Case("recursion-quadratic-body", "T(X,Y) :- E(X,Y).\nT(X,W) :- T(X,Y), T(Y,Z), T(Z,W).", {"E": GRAPHS["chain"]},
         {"T": [(str(x), str(y)) for x in range(13) for y in range(x + 1, 13) if (y - x) % 2 == 1]}),
    Case("recursion-strata-above-and-below", "B(X,Y) :- E(X,Y), X != Y.\nT(X,Y) :- B(X,Y).\nT(X,Z) :- T(X,Y), B(Y,Z).\n"
         "Leaf(Y) :- T(_,Y), not Inner(Y).\nInner(X) :- B(X,_).\nDown(Y,X) :- Leaf(Y), T(X,Y).",
         {"E": {("a", "b"), ("b", "c"), ("c", "c"), ("a", "d")}},
         {"B": [("a", "b"), ("b", "c"), ("a", "d")], "T": [("a", "b"), ("b", "c"), ("a", "c"), ("a", "d")],
          "Leaf": ["c", "d"], "Inner": ["a", "b"], "Down": [("c", "a"), ("c", "b"), ("d", "a")]}),
    Case("recursion-counted-above", "T(X,Y) :- E(X,Y).\nT(X,Z) :- T(X,Y), T(Y,Z).\nHub(X) :- E(X,_), Cardinality(T(X,_),'>=','3').",
         {"E": GRAPHS["diamond"]}, {"T": closure(GRAPHS["diamond"]), "Hub": ["a"]}),
    Case("recursion-no-new-values", "S(X,Y) :- E(X,Y).\nS(Y,Z) :- S(X,Y), S(X,Z).", {"E": {("a", "b"), ("a", "c")}},
         {"S": [("a", "b"), ("a", "c"), *((x, y) for x in "bc" for y in "bc")]}),
    Case("recursion-head-constant-feeds-itself", "L('start','0') :- true.\nL(Y,'1') :- L(X,_), E(X,Y).",
         {"E": {("start", "m"), ("m", "start")}}, {"L": [("start", "0"), ("m", "1"), ("start", "1")]}),
    Case("recursion-andersen", "Pt(Y,X) :- AddressOf(Y,X).\nPt(Y,X) :- Assign(Y,Z), Pt(Z,X).\nPt(Y,W) :- Load(Y,X), Pt(X,Z), Pt(Z,W).\n"
         "Pt(Z,W) :- Store(Y,X), Pt(Y,Z), Pt(X,W).",
         {"AddressOf": [("p", "a"), ("q", "b")], "Assign": [("r", "p")], "Store": [("r", "q")], "Load": [("s", "p")]},
         {"Pt": [("p", "a"), ("q", "b"), ("r", "a"), ("a", "b"), ("s", "b")]}),
]  # fmt: skip
