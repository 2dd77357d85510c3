"""Programs that 030 refuses, with the code of the refusal, and evaluations that pass a limit."""

from __future__ import annotations

from cases.case import Case

BAD = "InvalidLacegram"
OVER = "LimitExceeded"

REFUSED = {
    # the invalid examples of 030
    "unbound-head-variable": ("Selected(P,V) :- Field(P,'Group',_,'u').", "unsafe"),
    "anonymous-head": ("Selected(_) :- Have(P).", "anonymous-head"),
    "anonymous-in-builtin": ("Selected(P) :- Have(P), TextShape(_,'links/','','').", "anonymous-builtin"),
    "underscore-name-as-term": ("Selected(P) :- Have(P), Field(P,'Group',_Name,'u').", "underscore-term"),
    "shadows-have": ("Have(P) :- true.", "shadowing"),
    "shadows-have-ground": ("Have('x') :- true.", "shadowing"),
    "negative-cycle-unguarded": ("A(P) :- not B(P).\nB(P) :- not A(P).", "unsafe"),
    "negative-cycle": ("A(P) :- Have(P), not B(P).\nB(P) :- Have(P), not A(P).", "unstratified"),
    "cardinality-cycle": ("A(P) :- Candidate(P), Cardinality(A(Q),'<','100').", "unstratified"),
    "prefix": ("Selected(P) :- Have(P), Field(P,'Name',_,K), Prefix(K,'links/').", "removed-builtin"),
    "equality": ("A(X) :- B(X,Y), X = Y.", "equality"),
    # and more of each kind
    "equality-constant": ("A(X) :- B(X), X = 'a'.", "equality"),
    "negative-self": ("A(X) :- B(X), not A(X).", "unstratified"),
    "negative-cycle-of-three": ("A(X) :- U(X), not C(X).\nB(X) :- A(X).\nC(X) :- B(X).", "unstratified"),
    "negative-cycle-that-never-fires": ("A('a') :- Never('b'), not A('c').", "unstratified"),
    "cardinality-cycle-through-two": ("A(X) :- U(X), Cardinality(B(X),'<','1').\nB(X) :- A(X).", "unstratified"),
    "unbound-in-negation": ("A(X) :- B(X), not C(Y).", "unsafe"),
    "unbound-in-unequal": ("A(X) :- B(X), X != Y.", "unsafe"),
    "unbound-in-int-compare": ("A(X) :- B(X), IntCompare(Y,'<','1').", "unsafe"),
    "unbound-in-lex-compare": ("A(X) :- B(X), LexCompare(Y,'<','1').", "unsafe"),
    "unbound-in-text-shape": ("A(X) :- B(X), TextShape(Y,'','','').", "unsafe"),
    "bound-only-by-cardinality": ("A(Q) :- Cardinality(B(Q),'>','0').", "unsafe"),
    "local-shared-by-two-cardinalities": ("A() :- Cardinality(B(Q),'>','0'), Cardinality(C(Q),'>','0').", "unsafe"),
    "unbound-cardinality-bound": ("A(X) :- B(X), Cardinality(C(X),'<',N).", "unsafe"),
    "anonymous-in-unequal": ("A(X) :- B(X), X != _.", "anonymous-builtin"),
    "anonymous-in-int-compare": ("A(X) :- B(X), IntCompare(X,'<',_).", "anonymous-builtin"),
    "anonymous-in-lex-compare": ("A(X) :- B(X), LexCompare(_,'<',X).", "anonymous-builtin"),
    "shadows-field": ("Field(A,B,C,D) :- E(A,B,C,D).", "shadowing"),
    "shadows-record-link": ("RecordLink(A,B,C,D,E) :- F(A,B,C,D,E).", "shadowing"),
    "shadows-blob-hash": ("BlobHash(A,B) :- E(A,B).", "shadowing"),
    "shadows-plex-hash": ("PlexHash(A,B) :- E(A,B).", "shadowing"),
    "no-period": ("A(X) :- B(X)", "rule-end"),
    "no-body": ("A('a').", "rule-body"),
    "two-rules-on-a-line": ("A(X) :- B(X). C(X) :- B(X).", "trailing-text"),
    "rule-over-two-lines": ("A(X) :- B(X),\n  C(X).", "body-atom"),
    "comment": ("# why\nA(X) :- B(X).", "comment"),
    "no-parentheses": ("A() :- TransportEncrypted.", "parentheses"),
    "predicate-name-digit": ("1A(X) :- B(X).", "predicate-name"),
    "predicate-name-accent": ("A(X) :- É(X).", "body-atom"),
    "predicate-name-double-underscore": ("A(X) :- __B(X).", "predicate-name"),
    "not-true": ("A(X) :- B(X), not true.", "not-operand"),
    "not-not": ("A(X) :- B(X), not not C(X).", "not-operand"),
    "not-builtin": ("A(X) :- B(X), not IntCompare(X,'<','1').", "not-operand"),
    "builtin-head": ("IntCompare(X) :- B(X).", "builtin-head"),
    "builtin-arity": ("A(X) :- B(X), TextShape(X,'a','').", "builtin-arity"),
    "true-as-predicate": ("true() :- B().", "keyword"),
    "not-as-predicate": ("A(X) :- B(X), not(X).", "keyword"),
    "lower-case-term": ("A(X) :- B(X,links).", "lower-case-term"),
    "bare-number": ("A(X) :- B(X), IntCompare(X,'<',3).", "bare-number"),
    "double-quotes": ('A("a") :- true.', "constant-quotes"),
    "unclosed-constant": ("A('a) :- true.", "constant-open"),
    "unknown-escape": ("A('a\\n') :- true.", "constant-escape"),
    "operator-unknown": ("A(X) :- B(X), IntCompare(X,'=','1').", "operator"),
    "operator-variable": ("A(X) :- B(X,O), LexCompare(X,O,'1').", "operator"),
    "cardinality-operator": ("A(X) :- B(X), Cardinality(B(Y),'==','1').", "operator"),
    "delimiters-variable": ("A(X) :- B(X,D), TextShape(X,'',D,'').", "delimiters"),
    "counted-negation": ("A(X) :- B(X), Cardinality(not B(X),'<','1').", "counted-atom"),
    "counted-builtin": ("A(X) :- B(X), Cardinality(IntCompare(X,'<','1'),'<','1').", "counted-atom"),
    "disjunction": ("A(X) :- B(X); C(X).", "body-separator"),
    "nested-term": ("A(X) :- B(C(X)).", "separator"),
    "decomposed-letter": ("A('e\u0301') :- true.", "text-nfc"),
}  # fmt: skip

CHAIN = {"E": [(str(n), str(n + 1)) for n in range(10)]}
STEPS = "T(X,Y) :- E(X,Y).\nT(X,Z) :- T(X,Y), E(Y,Z)."
REACHED = [(str(x), str(y)) for x in range(11) for y in range(x + 1, 11)]

LIMITS = [
    Case("limit-iterations-reached", STEPS, CHAIN, {"T": REACHED}, limits={"max_stratum_iterations": 10}),
    Case("limit-iterations-passed", STEPS, CHAIN, error=f"{OVER} max_stratum_iterations", limits={"max_stratum_iterations": 9}),
    Case("limit-derived-reached", STEPS, CHAIN, {"T": REACHED}, limits={"max_derived_facts_per_predicate": 55}),
    Case("limit-derived-passed", STEPS, CHAIN, error=f"{OVER} max_derived_facts_per_predicate",
         limits={"max_derived_facts_per_predicate": 54}),
    Case("limit-derived-counts-each-predicate", "A(X) :- U(X).\nB(X) :- U(X).", {"U": ["1", "2", "3"]},
         {"A": ["1", "2", "3"], "B": ["1", "2", "3"]}, limits={"max_derived_facts_per_predicate": 3}),
    Case("limit-derived-cross-product", "P(X,Y) :- U(X), U(Y).", {"U": [str(n) for n in range(20)]},
         error=f"{OVER} max_derived_facts_per_predicate", limits={"max_derived_facts_per_predicate": 399}),
    Case("limit-base-reached", "A(X) :- E(X,_).", CHAIN, {"A": [str(n) for n in range(10)]}, limits={"max_base_facts": 10}),
    Case("limit-base-passed", "A(X) :- E(X,_).", CHAIN, error=f"{OVER} max_base_facts", limits={"max_base_facts": 9}),
    Case("limit-rules-passed", "A('1') :- true.\nA('2') :- true.", error=f"{OVER} max_rules", limits={"max_rules": 1}),
    Case("limit-rules-reached", "A('1') :- true.\nA('2') :- true.", expected={"A": ["1", "2"]}, limits={"max_rules": 2}),
    Case("limit-arity-passed", "A(X) :- B(X,_,_).", error=f"{OVER} max_tuple_arity", limits={"max_tuple_arity": 2}),
    Case("limit-constant-passed", "A('abcdé') :- true.", error=f"{OVER} max_value_bytes", limits={"max_value_bytes": 5}),
    Case("limit-constant-reached", "A('abcdé') :- true.", expected={"A": ["abcdé"]}, limits={"max_value_bytes": 6}),
    Case("limit-fact-value-passed", "A(X) :- B(X).", {"B": ["é" * 3]}, error=f"{OVER} max_value_bytes", limits={"max_value_bytes": 5}),
    Case("limit-256-rules", "\n".join(f"A('{n}') :- true." for n in range(256)), expected={"A": [str(n) for n in range(256)]}),
    Case("limit-257-rules", "\n".join(f"A('{n}') :- true." for n in range(257)), error=f"{OVER} max_rules"),
    Case("limit-nine-columns", "A() :- B(A,B,C,D,E,F,G,H,I).", error=f"{OVER} max_tuple_arity"),
    Case("limit-constant-of-1025-bytes", f"A('{'x' * 1025}') :- true.", error=f"{OVER} max_value_bytes"),
    Case("invalid-facts-for-a-head", "E(X,Y) :- B(X,Y).", CHAIN, error=f"{BAD} shadowing"),
]  # fmt: skip

CASES = [Case(f"invalid-{name}", rules, error=f"{BAD} {code}") for name, (rules, code) in REFUSED.items()] + LIMITS
