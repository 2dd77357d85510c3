"""Programs whose goals are easy to answer badly, with facts made of a seed.

Rule: each is the shape of a published program, written in Lace's rules.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

Row = tuple[str, ...]
Facts = Iterator[tuple[str, Row]]

# A replicated list of characters: what stands after what, when every insertion names what it was made behind.
REPLICATED_LIST = """\
HasChild(P) :- Insert(_,P).
LaterChild(P,B) :- Insert(A,P), Insert(B,P), IntCompare(A,'>',B).
FirstChild(P,C) :- Insert(C,P), not LaterChild(P,C).
LaterSibling(A,B) :- Insert(A,P), Insert(B,P), IntCompare(A,'>',B).
BeyondNext(A,C) :- LaterSibling(A,B), LaterSibling(B,C).
NextSibling(A,B) :- LaterSibling(A,B), not BeyondNext(A,B).
HasNextSibling(A) :- LaterSibling(A,_).
AfterFamily(A,B) :- NextSibling(A,B).
AfterFamily(A,B) :- Insert(A,P), not HasNextSibling(A), AfterFamily(P,B).
Next(A,B) :- FirstChild(A,B).
Next(A,B) :- Insert(A,_), not HasChild(A), AfterFamily(A,B).
Value(A,V) :- Assign(A,V), not Removed(A).
HasValue(A) :- Value(A,_).
Skip(A,B) :- Next(A,B).
Skip(A,C) :- Next(A,B), not HasValue(B), Skip(B,C).
Visible(A,B) :- HasValue(A), Skip(A,B), HasValue(B).
Shown(A,B,V) :- Visible(A,B), Value(B,V).
"""

# What a pointer may point to: assignments, loads and stores, as in the analysis of a C program.
POINTS_TO = """\
Points(V,O) :- Address(V,O).
Points(V,O) :- Copy(V,W), Points(W,O).
Points(V,O) :- Load(V,W), Points(W,H), Holds(H,O).
Holds(H,O) :- Store(V,W), Points(V,H), Points(W,O).
"""


def typing(size: int) -> Facts:
    """Two writers: mostly one character behind the last one, sometimes somewhere else, some removed."""
    draw = random.Random(5)
    for number in range(1, size + 1):
        behind = number - 1 if draw.random() < 0.97 else draw.randrange(number)
        yield "Insert", (str(number), str(behind))
        yield "Assign", (str(number), draw.choice("abcdefgh"))
        if draw.random() < 0.3:
            yield "Removed", (str(number),)


def pointers(size: int) -> Facts:
    """Variables in modules, with some that all of them share."""
    draw = random.Random(6)

    def variable(of: int) -> str:
        return f"v{(of + draw.randrange(-200, 200)) % size if draw.random() < 0.9 else draw.randrange(size // 100)}"

    for number in range(size):
        kind = draw.random()
        if kind < 0.35:
            yield "Address", (f"v{number}", f"o{number % (size // 8)}")
        if kind < 0.8:
            yield "Copy", (variable(number), f"v{number}")
        if kind > 0.9:
            yield "Load", (variable(number), f"v{number}")
        if kind < 0.08:
            yield "Store", (f"v{number}", variable(number))
