"""Programs whose counts are ranks, and facts that make their order interesting."""

from __future__ import annotations

from random import Random

from lace.datalog.language.syntax import Fact, Predicate

CANDIDATE = Predicate("Cand", 2)
GROUPED = Predicate("Post", 3)
LIMIT = Predicate("Limit", 1)
_TWO = "Before(P,Q) :- Cand(P,T), Cand(Q,T), LexCompare(Q,'{tie}',P).\n"
_MAIN = "Before(P,Q) :- Cand(P,TP), Cand(Q,TQ), LexCompare(TQ,'{main}',TP).\n"
_COUNT = "\nTop(P) :- Cand(P,_), Cardinality(B(P,_),'<','2')."
_TOP = "Top(P) :- Cand(P,_), Cardinality(Before(P,Q),'{op}','{n}')."


def two(tie: str, main: str, op: str, n: str) -> str:
    """Order by key, ties by identity."""
    return (_TWO + _MAIN + _TOP).format(tie=tie, main=main, op=op, n=n)


RANKED = {
    "newest": two(">", ">", "<", "2"),
    "oldest": two("<", "<", "<", "2"),
    "newest but ties by smaller id": two("<", ">", "<", "2"),
    "all but the newest": two(">", ">", ">=", "1"),
    "ties count themselves": two(">=", ">", "<=", "2"),
    "no integer": two(">", ">", "<", "two"),
    "huge": two(">", ">", "<", "9" * 40),
    "no ties": _MAIN.format(main=">") + _TOP.format(op="<", n="2"),
    "no ties, older or equal": _MAIN.format(main="<=") + _TOP.format(op="<=", n="2"),
    "integers": "B(P,Q) :- Cand(P,S), IntCompare(T,'>',S), Cand(Q,T)." + _COUNT,
    "by identity": "B(P,Q) :- Cand(P,_), Cand(Q,_), LexCompare(P,'<',Q).\n"
    "Top(P) :- Cand(P,_), Cardinality(B(P,X),'<','2').",
    "asked from the other side": "B(Q,P) :- Cand(P,S), Cand(Q,T), LexCompare(T,'>',S).\n"
    "Top(P) :- Cand(P,_), Cardinality(B(_,P),'<','2').",
    "a bound of its own": "B(P,Q) :- Cand(P,S), Cand(Q,T), LexCompare(T,'>',S).\n"
    "Top(P) :- Cand(P,_), Limit(N), Cardinality(B(P,_),'<',N).",
    "not a candidate": "B(P,Q) :- Cand(P,S), Cand(Q,T), LexCompare(T,'>',S).\n"
    "Top(P) :- Cand(_,P), Cardinality(B(P,_),'<','2').",
    "per group": "B(P,Q) :- Post(P,G,S), Post(Q,G,T), LexCompare(T,'>',S).\n"
    "Top(P) :- Post(P,_,_), Cardinality(B(P,_),'<','1').",
    "per group with ties": "B(P,Q) :- Post(P,G,T), Post(Q,G,T), LexCompare(Q,'>',P).\n"
    "B(P,Q) :- Post(P,G,S), Post(Q,G,T), LexCompare(S,'<',T).\n"
    "Top(P) :- Post(P,_,_), Cardinality(B(P,_),'<','1').",
    "candidates are derived": "C(P,T) :- Cand(P,T), P != 'b'.\nB(P,Q) :- C(P,S), C(Q,T), LexCompare(T,'>',S).\n"
    "Top(P) :- C(P,_), Cardinality(B(P,_),'<','2'), not Limit(P).",
    "candidates have constants": "B(P,Q) :- Post(P,'g',S), Post(Q,'g',T), LexCompare(T,'>',S).\n"
    "Top(P) :- Post(P,_,_), Cardinality(B(P,_),'<','2').",
}

_THREE = "\nTop(P) :- Post(P,G,_), Cardinality(B(G,P,_),'<','2')."
RANKED |= {
    "the group in the head": "B(G,P,Q) :- Post(P,G,S), Post(Q,G,T), LexCompare(T,'>',S)." + _THREE,
    "the group in the head, ties": "B(G,P,Q) :- Post(P,G,T), Post(Q,G,T), LexCompare(Q,'>',P).\n"
    "B(G,P,Q) :- Post(P,G,S), Post(Q,G,T), LexCompare(S,'<',T)." + _THREE,
    "the group in the head, last": "B(Q,P,G) :- Post(P,G,S), Post(Q,G,T), LexCompare(T,'<=',S), P != Q.\n"
    "Top(P) :- Post(P,G,_), Cardinality(B(_,P,G),'<','1').",
}

_NEWER = "B(P,Q) :- Cand(P,S), Cand(Q,T), LexCompare(T,'{op}',S), {more}." + _COUNT
RANKED |= {
    "but not itself": _NEWER.format(op=">", more="P != Q"),
    "or equal, but not itself": _NEWER.format(op=">=", more="Q != P"),
    "keys that differ": _NEWER.format(op=">=", more="S != T"),
    "keys that differ anyway": _NEWER.format(op="<", more="T != S, P != Q"),
    "integers but not itself": "B(P,Q) :- Cand(P,S), IntCompare(T,'>=',S), Cand(Q,T), P != Q." + _COUNT,
    "ties, but not itself": two(">", ">", "<", "2").replace("TP).", "TP), P != Q."),
    "per group but not itself": "B(P,Q) :- Post(P,G,S), Post(Q,G,T), LexCompare(T,'>',S), P != Q.\n"
    "Top(P) :- Post(P,_,_), Cardinality(B(P,_),'<','2').",
}

# Nobody counts here, but whether anything stands beyond is a count too.
EXISTING = {
    "none newer": "Old(P) :- Cand(P,S), Cand(Q,T), LexCompare(T,'>',S).\nTop(P) :- Cand(P,_), not Old(P).",
    "none newer, the other not named": "Old(P) :- Cand(P,S), Cand(_,T), LexCompare(S,'<',T).\n"
    "Top(P) :- Cand(P,_), not Old(P).",
    "none older or as old": "Old(P) :- Cand(P,S), Cand(Q,T), LexCompare(T,'<=',S), P != Q.\n"
    "Top(P) :- Cand(P,_), not Old(P).",
    "none newer by number": "Old(P) :- Cand(P,S), Cand(Q,T), IntCompare(T,'>',S).\nTop(P) :- Cand(P,_), not Old(P).",
    "with ties": "Old(P) :- Cand(P,S), Cand(Q,T), LexCompare(T,'>',S).\n"
    "Old(P) :- Cand(P,S), Cand(Q,S), LexCompare(Q,'>',P).\nTop(P) :- Cand(P,_), not Old(P).",
    "newest of each": "Old(P) :- Post(P,G,S), Post(Q,G,T), LexCompare(T,'>',S).\nTop(P) :- Post(P,_,_), not Old(P).",
    "the row itself": "Old(P,S) :- Cand(P,S), Cand(_,T), LexCompare(T,'>',S).\nTop(P) :- Cand(P,S), not Old(P,S).",
    "of some": "Old(P) :- Cand(P,S), Limit(S), Cand(Q,T), LexCompare(T,'>',S).\nTop(P) :- Cand(P,_), not Old(P).",
    "the greatest": "Less(S) :- Cand(_,S), Cand(_,T), LexCompare(T,'>',S).\nTop(P) :- Cand(P,S), not Less(S).",
    "nobody before": two(">", ">", "<", "1").replace("Cardinality(Before(P,Q),'<','1')", "not Before(P,_)"),
    "nobody before, and counted": two(">", ">", "<", "3") + "\nFirst(P) :- Cand(P,_), not Before(P,_).",
    "nobody after": "B(Q,P) :- Cand(P,S), Cand(Q,T), LexCompare(T,'<',S), P != Q.\nTop(P) :- Cand(P,_), not B(_,P).",
    "nobody of the group": "B(G,P,Q) :- Post(P,G,S), Post(Q,G,T), LexCompare(T,'>',S).\n"
    "Top(P) :- Post(P,G,_), not B(G,P,_).",
    "said at once": "Top(P) :- Cand(P,S), Cand(_,T), LexCompare(T,'>',S), not Limit(P).",
}

# Here somebody reads the other row, or it is chosen otherwise.
NOT_EXISTING = {
    "the other is shown": "Old(P,Q) :- Cand(P,S), Cand(Q,T), LexCompare(T,'>',S).\nTop(P) :- Cand(P,_), not Old(P,P).",
    "pairs are read too": _MAIN.format(main=">") + "Top(P) :- Cand(P,_), not Before(P,_).\nSeen(Q) :- Before('a',Q).",
    "one of each": _MAIN.format(main=">") + "Top(P) :- Cand(P,_), not Before(_,_).",
    "the other is limited": "Old(P) :- Cand(P,S), Cand(Q,T), Limit(T), LexCompare(T,'>',S).\n"
    "Top(P) :- Cand(P,_), not Old(P).",
    "the other differs in what is read": "Old(P,S) :- Cand(P,S), Cand(Q,T), LexCompare(T,'>',S), P != Q.\n"
    "Top(P) :- Cand(P,S), not Old(P,S).",
    "two tests": "Old(P) :- Cand(P,S), Cand(Q,T), LexCompare(T,'>',S), IntCompare(T,'>',S).\n"
    "Top(P) :- Cand(P,_), not Old(P).",
    "compared with a constant": "Old(P) :- Cand(P,S), Cand(Q,T), LexCompare(T,'>','5').\n"
    "Top(P) :- Cand(P,_), not Old(P).",
}

# These look like ranks and are none: they must be evaluated as facts.
NOT_RANKED = {
    "different sides": "B(P,Q) :- Cand(P,S), Post(Q,_,T), LexCompare(T,'>',S)." + _COUNT,
    "crossed places": "B(P,Q) :- Post(P,S,T), Post(Q,T,U), LexCompare(U,'>',T)." + _COUNT,
    "read as facts too": _MAIN.format(main=">") + _TOP.format(op="<", n="2") + "\nSeen(Q) :- Before('a',Q).",
    "both places bound": _MAIN.format(main=">") + "Top(P) :- Cand(P,Q), Cardinality(Before(P,Q),'<','1').",
    "repeated local": _MAIN.format(main=">=") + "Top(P) :- Cand(P,_), Cardinality(Before(Q,Q),'<','1').",
    "one more condition": "B(P,Q) :- Cand(P,S), Cand(Q,T), LexCompare(T,'>',S), Limit(Q)." + _COUNT,
    "a tie on numbers": "B(P,Q) :- Cand(P,T), Cand(Q,T), LexCompare(Q,'>',P).\n"
    "B(P,Q) :- Cand(P,S), Cand(Q,T), IntCompare(T,'>',S)." + _COUNT,
    "a group of somebody else": "B(G,P,Q) :- Post(P,G,S), Post(Q,G,T), LexCompare(T,'>',S).\n"
    "Top(P) :- Post(P,_,_), Post(_,G,_), Cardinality(B(G,P,_),'<','1').",
    "numbers, the group in the head": "B(G,P,Q) :- Post(P,G,S), Post(Q,G,T), IntCompare(T,'>',S)." + _THREE,
    "the key in the head": "B(S,P,Q) :- Post(P,G,S), Post(Q,G,T), LexCompare(T,'>',S).\n"
    "Top(P) :- Post(P,_,S), Cardinality(B(S,P,_),'<','2').",
}

ORDERS = RANKED | NOT_RANKED | EXISTING | NOT_EXISTING


def rank_fact(random: Random) -> Fact:
    """A candidate; several keys, groups and ties happen."""
    identity, key = random.choice("abcdefgé"), random.choice(("1", "01", "2", "3", "10", "x", "a"))
    match random.randint(0, 5):
        case 0:
            return Fact(GROUPED, (identity, "g", key))
        case 1:
            return Fact(GROUPED, (identity, "g" if identity < "e" else "h", key))
        case 2:
            return Fact(LIMIT, (random.choice(("1", "2", "x")),))
        case _:
            return Fact(CANDIDATE, (identity, key))
