"""Which rules order candidates, so that a count is a rank, and which only look like it."""

from __future__ import annotations

import pytest

from lace.datalog.language.parser import parse_program
from lace.datalog.language.syntax import Predicate
from lace.datalog.planning.plan import Rank
from lace.datalog.planning.ranking import rank_of, ranked_predicates


def shown(rank: Rank | None) -> str | None:
    if rank is None:
        return None
    others = ", others only" if rank.others_only else ""
    return f"{rank} by {rank.place}, groups {','.join(rank.groups)} {rank.group_places}{others}"


RANKED = [  # rules, the rank of the first place, the rank of the second
    (
        "B(P,Q) :- Cand(P,S), Cand(Q,T), LexCompare(T,'>',S).",
        "rank lex > of Scan Cand(Id,Key) by 0, groups  ()",
        "rank lex < of Scan Cand(Id,Key) by 1, groups  ()",
    ),
    (
        "B(P,Q) :- Cand(P,S), Cand(Q,T), LexCompare(S,'<',T).",
        "rank lex > of Scan Cand(Id,Key) by 0, groups  ()",
        "rank lex < of Scan Cand(Id,Key) by 1, groups  ()",
    ),
    (
        "B(P,Q) :- Cand(P,S), Cand(Q,T), LexCompare(S,'>=',T).",
        "rank lex <= of Scan Cand(Id,Key) by 0, groups  ()",
        "rank lex >= of Scan Cand(Id,Key) by 1, groups  ()",
    ),
    (
        "B(P,Q) :- Cand(P,S), Cand(Q,T), LexCompare(S,'<=',T).",
        "rank lex >= of Scan Cand(Id,Key) by 0, groups  ()",
        "rank lex <= of Scan Cand(Id,Key) by 1, groups  ()",
    ),
    (
        "B(P,Q) :- Cand(P,S), Cand(Q,T), IntCompare(T,'<',S).",
        "rank int < of Scan Cand(Id,Key) by 0, groups  ()",
        "rank int > of Scan Cand(Id,Key) by 1, groups  ()",
    ),
    (
        "B(P,Q) :- true, Cand(Q,T), LexCompare(T,'>',S), Cand(P,S).",
        "rank lex > of Scan Cand(Id,Key) by 0, groups  ()",
        "rank lex < of Scan Cand(Id,Key) by 1, groups  ()",
    ),
    (
        "B(P,Q) :- Cand(P,_), Cand(Q,_), LexCompare(P,'<',Q).",
        "rank lex > of Scan Cand(Id,_) by 0, groups  ()",
        "rank lex < of Scan Cand(Id,_) by 1, groups  ()",
    ),
    (
        "B(P,Q) :- Post(P,'g',S), Post(Q,'g',T), LexCompare(T,'>',S).",
        "rank lex > of Scan Post(Id,'g',Key) by 0, groups  ()",
        "rank lex < of Scan Post(Id,'g',Key) by 1, groups  ()",
    ),
    (
        "B(P,Q) :- Post(S,G,P), Post(T,G,Q), LexCompare(T,'>',S).",
        "rank lex > of Scan Post(Key,Group1,Id) by 0, groups Group1 ()",
        "rank lex < of Scan Post(Key,Group1,Id) by 1, groups Group1 ()",
    ),
    (
        "B(P,Q) :- Wide(H,P,G,S), Wide(H,Q,G,T), LexCompare(T,'>',S).",
        "rank lex > of Scan Wide(Group0,Id,Group2,Key) by 0, groups Group0,Group2 ()",
        "rank lex < of Scan Wide(Group0,Id,Group2,Key) by 1, groups Group0,Group2 ()",
    ),
    (
        "B(P,Q) :- Cand(P,S), Cand(Q,T), LexCompare(T,'>',S), P != Q.",
        "rank lex > of Scan Cand(Id,Key) by 0, groups  (), others only",
        "rank lex < of Scan Cand(Id,Key) by 1, groups  (), others only",
    ),
    (
        "B(P,Q) :- Cand(P,S), Cand(Q,T), LexCompare(T,'>=',S), S != T.",
        "rank lex > of Scan Cand(Id,Key) by 0, groups  ()",
        "rank lex < of Scan Cand(Id,Key) by 1, groups  ()",
    ),
    (
        "B(P,Q) :- Cand(P,S), Cand(Q,T), LexCompare(T,'<=',S), T != S, Q != P.",
        "rank lex < of Scan Cand(Id,Key) by 0, groups  (), others only",
        "rank lex > of Scan Cand(Id,Key) by 1, groups  (), others only",
    ),
    (
        "B(P,Q) :- Cand(P,S), Cand(Q,T), IntCompare(T,'>',S), S != T.",
        "rank int > of Scan Cand(Id,Key) by 0, groups  ()",
        "rank int < of Scan Cand(Id,Key) by 1, groups  ()",
    ),
    (
        "B(P,Q) :- Cand(P,_), Cand(Q,_), LexCompare(Q,'>=',P), P != Q.",
        "rank lex > of Scan Cand(Id,_) by 0, groups  ()",
        "rank lex < of Scan Cand(Id,_) by 1, groups  ()",
    ),
    (
        "B(P,Q,G) :- Post(P,G,S), Post(Q,G,T), LexCompare(T,'>',S).",
        "rank lex > of Scan Post(Id,Group1,Key) by 0, groups Group1 ((2, 1),)",
        "rank lex < of Scan Post(Id,Group1,Key) by 1, groups Group1 ((2, 1),)",
    ),
    (
        "B(P,Q,G,H) :- Wide(H,P,G,S), Wide(H,Q,G,T), LexCompare(T,'>',S).",
        "rank lex > of Scan Wide(Group0,Id,Group2,Key) by 0, groups Group0,Group2 ((2, 2), (3, 0))",
        "rank lex < of Scan Wide(Group0,Id,Group2,Key) by 1, groups Group0,Group2 ((2, 2), (3, 0))",
    ),
    (
        "B(P,Q) :- Cand(P,T), Cand(Q,T), LexCompare(Q,'>',P).\nB(P,Q) :- Cand(P,S), Cand(Q,T), LexCompare(T,'>',S).",
        "rank lex >, ties lex > of Scan Cand(Id,Key) by 0, groups  ()",
        "rank lex <, ties lex < of Scan Cand(Id,Key) by 1, groups  ()",
    ),
    (
        "B(P,Q) :- Cand(P,S), Cand(Q,T), LexCompare(T,'<',S).\nB(P,Q) :- Cand(P,T), Cand(Q,T), LexCompare(Q,'<=',P).",
        "rank lex <, ties lex <= of Scan Cand(Id,Key) by 0, groups  ()",
        "rank lex >, ties lex >= of Scan Cand(Id,Key) by 1, groups  ()",
    ),
    (
        "B(P,Q) :- Cand(P,T), Cand(Q,T), LexCompare(Q,'>',P).\n"
        "B(P,Q) :- Cand(P,S), Cand(Q,T), LexCompare(T,'>',S), P != Q.",
        "rank lex >, ties lex > of Scan Cand(Id,Key) by 0, groups  (), others only",
        "rank lex <, ties lex < of Scan Cand(Id,Key) by 1, groups  (), others only",
    ),
    (
        "B(P,Q,G) :- Post(P,G,T), Post(Q,G,T), LexCompare(Q,'>',P).\n"
        "B(P,Q,G) :- Post(P,G,S), Post(Q,G,T), LexCompare(T,'>',S).",
        "rank lex >, ties lex > of Scan Post(Id,Group1,Key) by 0, groups Group1 ((2, 1),)",
        "rank lex <, ties lex < of Scan Post(Id,Group1,Key) by 1, groups Group1 ((2, 1),)",
    ),
    (
        "B(P,Q) :- Post(P,'g',T), Post(Q,'g',T), LexCompare(Q,'>',P).\n"
        "B(P,Q) :- Post(P,'g',S), Post(Q,'g',T), LexCompare(T,'>',S).",
        "rank lex >, ties lex > of Scan Post(Id,'g',Key) by 0, groups  ()",
        "rank lex <, ties lex < of Scan Post(Id,'g',Key) by 1, groups  ()",
    ),
]

NOT_RANKED = [
    "B(P,Q) :- Cand(P,S), Cand(Q,T), LexCompare(T,'>',S), LexCompare(T,'>',S).",
    "B(P,Q) :- Cand(P,S), Cand(Q,T), Cand(_,_), LexCompare(T,'>',S).",
    "B(P,Q) :- Cand(P,S), Cand(Q,T), LexCompare(T,'>',S), not Limit(P).",
    "B(P,Q) :- Cand(P,S), Cand(Q,T), not Limit(P).",
    "B(P,Q) :- Cand(P,S), LexCompare(Q,'>',S), LexCompare(P,'>',S).",
    "B(P,P) :- Cand(P,S), Cand(Q,T), LexCompare(T,'>',S).",
    "B('a',Q) :- Cand(P,S), Cand(Q,T), LexCompare(T,'>',S).",
    "B(P,'a') :- Cand(P,S), Cand(Q,T), LexCompare(T,'>',S).",
    "B(P,Q) :- Post(P,Q,S), Post(Q,P,T), LexCompare(T,'>',S).",
    "B(P,Q) :- Post(P,Q,S), Post(P,Q,T), LexCompare(T,'>',S).",
    "B(P,Q) :- Cand(P,S), Rand(Q,T), LexCompare(T,'>',S).",
    "B(P,Q) :- Post(P,'g',S), Post(Q,'h',T), LexCompare(T,'>',S).",
    "B(P,Q) :- Post(P,'g',S), Post(Q,G,T), LexCompare(T,'>',S).",
    "B(P,Q) :- Post(P,_,S), Post(Q,G,T), LexCompare(T,'>',S).",
    "B(P,Q) :- Cand(P,S), Cand(T,Q), LexCompare(T,'>',S).",
    "B(P,Q) :- Post(P,S,S), Post(Q,T,T), LexCompare(T,'>',S).",
    "B(P,Q) :- Post(P,P,S), Post(Q,Q,T), LexCompare(T,'>',S).",
    "B(P,Q) :- Post(P,S,G), Post(Q,G,T), LexCompare(T,'>',G).",
    "B(P,Q) :- Post(P,G,S), Post(Q,H,G), LexCompare(H,'>',G).",
    "B(P,Q) :- Cand(P,S), Cand(Q,T), LexCompare(T,'>','5').",
    "B(P,Q) :- Post(P,G,S), Post(Q,G,T), LexCompare(G,'>=',G).",
    "B(P,Q) :- Cand(P,S), Cand(Q,T), LexCompare(Q,'>',S).",
    "B(P,Q) :- Cand(P,S), Cand(Q,T), LexCompare(S,'>=',S).",
    "B(P,Q) :- Cand(P,S), Cand(Q,T), LexCompare(T,'>',S), P != S.",
    "B(P,Q) :- Cand(P,S), Cand(Q,T), LexCompare(T,'>',S), P != 'a'.",
    "B(P,Q) :- Cand(P,S), Cand(Q,T), IntCompare(T,'>=',S), S != T.",
    "B(P,Q,S) :- Cand(P,S), Cand(Q,T), LexCompare(T,'>',S).",
    "B(P,Q,'g') :- Post(P,'g',S), Post(Q,'g',T), LexCompare(T,'>',S).",
    "B(P,Q,G) :- Post(P,G,S), Post(Q,G,T), IntCompare(T,'>',S).",
    "B(P,Q,G,G) :- Post(P,G,S), Post(Q,G,T), LexCompare(T,'>',S).",
    (
        "B(P,Q) :- Cand(P,S), Cand(Q,T), LexCompare(T,'>',S).\n"
        "B(P,Q) :- Cand(P,S), Cand(Q,T), LexCompare(T,'>',S), P != Q."
    ),
    ("B(P,Q) :- Rand(P,T), Rand(Q,T), LexCompare(Q,'>',P).\nB(P,Q) :- Cand(P,S), Cand(Q,T), LexCompare(T,'>',S)."),
    (
        "B(P,Q) :- Post(P,'h',T), Post(Q,'h',T), LexCompare(Q,'>',P).\n"
        "B(P,Q) :- Post(P,'g',S), Post(Q,'g',T), LexCompare(T,'>',S)."
    ),
    (
        "B(P,Q) :- Post(T,_,P), Post(T,_,Q), LexCompare(Q,'>',P).\n"
        "B(P,Q) :- Post(P,_,S), Post(Q,_,T), LexCompare(T,'>',S)."
    ),
    ("B(P,Q) :- Cand(P,T), Cand(Q,T), LexCompare(Q,'>',P).\nB(P,Q) :- Cand(P,S), Cand(Q,T), LexCompare(T,'>=',S)."),
    ("B(P,Q) :- Cand(P,T), Cand(Q,T), LexCompare(Q,'>',P).\nB(P,Q) :- Cand(P,S), Cand(Q,T), IntCompare(T,'>',S)."),
    ("B(P,Q) :- Cand(P,T), Cand(Q,T), IntCompare(Q,'>',P).\nB(P,Q) :- Cand(P,S), Cand(Q,T), LexCompare(T,'>',S)."),
    (
        "B(P,Q) :- Cand(P,T), Cand(Q,T), LexCompare(Q,'>=',P).\n"
        "B(P,Q) :- Cand(P,S), Cand(Q,T), LexCompare(T,'>',S), P != Q."
    ),
    ("B(P,Q) :- Cand(P,_), Cand(Q,_), LexCompare(Q,'>',P).\nB(P,Q) :- Cand(P,S), Cand(Q,T), LexCompare(T,'>',S)."),
    (  # ties by another key, which may be equal too
        "B(P,Q) :- Post(P,S,_), Post(Q,T,_), LexCompare(T,'>',S).\n"
        "B(P,Q) :- Post(P,T,K), Post(Q,T,L), LexCompare(L,'>',K)."
    ),
    ("B(P,Q) :- Cand(P,_), Cand(Q,_), LexCompare(Q,'>',P).\nB(P,Q) :- Cand(P,_), Cand(Q,_), LexCompare(Q,'>',P)."),
    (
        "B(P,Q,G) :- Post(P,G,T), Post(Q,G,T), LexCompare(Q,'>',P).\n"
        "B(P,Q,H) :- Post(P,G,S), Post(Q,G,T), LexCompare(T,'>',S)."
    ),
    (
        "B(P,Q,G) :- Wide(H,P,G,T), Wide(H,Q,G,T), LexCompare(Q,'>',P).\n"
        "B(P,Q,H) :- Wide(H,P,G,S), Wide(H,Q,G,T), LexCompare(T,'>',S)."
    ),
    (
        "B(P,Q) :- Cand(P,T), Cand(Q,T), LexCompare(Q,'>',P).\n"
        "B(P,Q) :- Cand(P,S), Cand(Q,T), LexCompare(T,'>',S).\n"
        "B(P,Q) :- Cand(P,S), Cand(Q,T), LexCompare(T,'>',S)."
    ),
]


@pytest.mark.parametrize(("text", "by_first", "by_second"), RANKED)
def test_an_ordering_is_recognised_from_either_side(text: str, by_first: str, by_second: str) -> None:
    rules = list(parse_program(text).rules)
    assert shown(rank_of(rules, 0, 1)) == by_first
    assert shown(rank_of(rules, 1, 0)) == by_second


@pytest.mark.parametrize("text", NOT_RANKED)
def test_what_differs_from_an_ordering_anywhere_is_none(text: str) -> None:
    rules = list(parse_program(text).rules)
    assert rank_of(rules, 0, 1) is None
    assert rank_of(rules, 1, 0) is None


BEFORE = "B(P,Q) :- Cand(P,S), Cand(Q,T), LexCompare(T,'>',S).\n"
GROUPED = "B(G,P,Q) :- Post(P,G,S), Post(Q,G,T), LexCompare(T,'>',S).\n"
IN_H = "B(G,P,Q) :- Wide('h',P,G,S), Wide('h',Q,G,T), LexCompare(T,'>',S).\n"
USES = [  # rules, the places that may be left free
    (BEFORE + "Top(P) :- Cand(P,_), Cardinality(B(P,_),'<','2').", [1]),
    (BEFORE + "Top(P) :- Cand(P,_), Cardinality(B(_,P),'<','2').", [0]),
    (BEFORE + "Top(P) :- Cand(P,_), Cardinality(B(P,Q),'<','2'), Cardinality(B(Q2,P),'<','2').", [0, 1]),
    (BEFORE + "Top(P) :- Cand(P,Q), Cardinality(B(P,Q),'<','2').", []),
    (BEFORE + "Top(P) :- Cand(P,_), Cardinality(B(_,_),'<','2').", []),
    (BEFORE + "Top(P) :- Cand(P,_), Cardinality(B('a',_),'<','2').", []),
    (BEFORE + "Top(P) :- Cand(P,_), Cardinality(B(P,_),'<','2'), not B(P,P).", []),
    (BEFORE + "Top(P) :- Cand(P,_), Cardinality(B(P,_),'<','2').\nSeen(P) :- B(P,_).", []),
    (BEFORE, []),
    ("Top(P) :- Cand(P,_), Cardinality(B(P,_),'<','2').", []),
    (GROUPED + "Top(P) :- Post(P,G,_), Cardinality(B(G,P,_),'<','2').", [2]),
    (GROUPED + "Top(P) :- Post(P,_,_), Post(_,G,_), Cardinality(B(G,P,_),'<','2').", []),
    (GROUPED + "Top(P) :- Cand(P,G), Cardinality(B(G,P,_),'<','2').", []),
    (GROUPED + "Top(P) :- Post(P,_,G), Cardinality(B(G,P,_),'<','2').", []),
    (GROUPED + "Top(P) :- Post(P,G,_), Cardinality(B(G,P,_),'<','2'), Cardinality(B(G,_,P),'<','2').", [1, 2]),
    (GROUPED + "Top(P) :- Post(P,G,_), Cardinality(B(G,P,_),'<','2').\n"
     "One(P) :- Cand(P,G), Cardinality(B(G,P,_),'<','2').", []),
    (IN_H + "Top(P) :- Wide('h',P,G,_), Cardinality(B(G,P,_),'<','2').", [2]),
    (IN_H + "Top(P) :- Wide('i',P,G,_), Cardinality(B(G,P,_),'<','2').", []),
    (IN_H + "Top(P) :- Wide(_,P,G,_), Cardinality(B(G,P,_),'<','2').", []),
]  # fmt: skip


@pytest.mark.parametrize(("text", "free"), USES)
def test_a_predicate_is_ranked_if_every_use_of_it_is_a_count_that_a_rank_answers(text: str, free: list[int]) -> None:
    program = parse_program(text)
    found = ranked_predicates(program)
    assert sorted(place for _, place in found) == free
    assert {predicate.name for predicate, _ in found} == ({"B"} if free else set())
    assert all(rank.place != place for (_, place), rank in found.items())
    arity = 3 if text.startswith("B(G") else 2
    assert ranked_predicates(program, [Predicate("B", arity)]) == {}  # its facts themselves are wanted
    assert ranked_predicates(program, [Predicate("B", arity + 1)]).keys() == found.keys()
