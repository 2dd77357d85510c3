"""The examples of 030 over record facts, and programs like them."""

from __future__ import annotations

import re

from cases.case import Case

# id, group, app, name, TAI, signer
RECORDS = [
    ("P.1.H3", "u", "ding", "links/a", "1640995200:000000001", "V.x.H3"),
    ("P.2.H3", "u", "ding", "links/b/msg", "1640995200:000000002", "V.y.H3"),
    ("P.3.H3", "u", "ding", "links/c.msg", "1640995200:000000002", "V.x.H3"),
    ("P.4.H3", "u", "dong", "links/d", "1640995200:000000004", "V.z.H3"),
    ("P.5.H3", "v", "ding", "links/e", "1640995200:000000005", "V.x.H3"),
    ("P.6.H3", "u", "ding", "notes/f", "1640995200:000000006", "V.x.H3"),
    ("P.7.H3", "u", "ding", "links/", "1640995200:000000007", "V.z.H3"),
    ("P.8.H3", "keys", "blocked", "V.z.H3", "1640995200:000000008", "V.x.H3"),
    ("P.9.H3", "u", "ding", "links/bob/alice/msg", "1640995200:000000009", ""),
]
LINKS = [
    ("P.1.H3", "P.2.H3"),
    ("P.2.H3", "P.3.H3"),
    ("P.3.H3", "P.1.H3"),
    ("P.4.H3", "P.404.H3"),
    ("P.404.H3", "P.5.H3"),
]


def _facts() -> dict[str, list[tuple[str, ...]]]:
    fields = []
    for record, group, app, name, tai, signer in RECORDS:
        fields += [
            (record, "Group", "0", group),
            (record, "App", "1", app),
            (record, "Name", "2", name),
            (record, "TAI", "3", tai),
        ]
        fields += [(record, "Signed-By", "4", signer)] if signer else []
    links = [(a, "+Link", "0", "evidence", b) for a, b in LINKS] + [("P.1.H3", "+Link", "1", "other", "P.6.H3")]
    return {"Have": [(r[0],) for r in RECORDS], "Field": fields, "RecordLink": links}


FACTS = _facts()
CANDIDATES = [(r[4], r[0]) for r in RECORDS if r[1] == "u" and r[2] == "ding" and r[3].startswith("links/")]
SELECT = "Have(P), Field(P,'Group',_,'u'), Field(P,'App',_,'ding'), Field(P,'Name',_,K), TextShape(K,'links/','','')"
NEWEST = f"""Before(P,Q) :- Candidate(P,T), Candidate(Q,T), LexCompare(Q,'>',P).
Before(P,Q) :- Candidate(P,TP), Candidate(Q,TQ), LexCompare(TQ,'>',TP).
Candidate(P,T) :- {SELECT}, Field(P,'TAI',_,T).
Selected(P) :- Candidate(P,T), Cardinality(Before(P,Q),'<','%s')."""


def _newest(number: str) -> Case:
    ranked = sorted(CANDIDATES, reverse=True)
    before = [(p, q) for t, p in ranked for u, q in ranked if (u, q) > (t, p)]
    selected = [p for _, p in ranked[: max(int(number), 0)]]
    expected = {"Candidate": [(p, t) for t, p in CANDIDATES], "Before": before, "Selected": selected}
    return Case(f"records-newest-{number}", NEWEST % number, FACTS, expected)


SIGNED = [(r[0], r[5]) for r in RECORDS if r[5]]
HAVE = {r[0] for r in RECORDS}


def _evidence_closure() -> list[str]:
    found = {"P.1.H3"}
    while True:
        more = {b for a, b in LINKS if a in found and a in HAVE} | found
        if more == found:
            return sorted(found)
        found = more


CASES = [
    Case("records-group-app-name", f"Selected(P) :- {SELECT}.", FACTS, {"Selected": [p for _, p in CANDIDATES]}),
    Case("records-evidence-target", "Support(Target) :- Have(P), RecordLink(P,'+Link',_,'evidence',Target).", FACTS,
         {"Support": [b for a, b in LINKS if a in HAVE]}),
    Case("records-name-shape", "Selected(P) :- Have(P), Field(P,'Name',_,K), TextShape(K,'links/','./','msg').", FACTS,
         {"Selected": [r[0] for r in RECORDS if re.fullmatch(r"links/[^./]+[./]msg", r[3])]}),
    Case("records-not-blocked", "Blocked(V) :- Have(P), Field(P,'Group',_,'keys'), Field(P,'App',_,'blocked'), Field(P,'Name',_,V).\n"
         "Selected(P) :- Have(P), Field(P,'Signed-By',_,V), not Blocked(V).", FACTS,
         {"Blocked": ["V.z.H3"], "Selected": [p for p, v in SIGNED if v != "V.z.H3"]}),
    Case("records-evidence-closure", "Need('P.1.H3') :- true.\nNeed(Q) :- Need(P), Have(P), RecordLink(P,_,_,'evidence',Q).", FACTS,
         {"Need": _evidence_closure()}),
    Case("records-missing-targets", "Missing(Q) :- Have(P), RecordLink(P,_,_,_,Q), not Have(Q).", FACTS, {"Missing": ["P.404.H3"]}),
    Case("records-unsigned", "Unsigned(P) :- Have(P), not Field(P,'Signed-By',_,_).", FACTS, {"Unsigned": ["P.9.H3"]}),
    Case("records-signers-with-several", "Busy(V) :- Signed(_,V), Cardinality(Signed(_,V),'>','1').\n"
         "Signed(P,V) :- Have(P), Field(P,'Signed-By',_,V).", FACTS,
         {"Signed": SIGNED, "Busy": [v for v in {v for _, v in SIGNED} if sum(w == v for _, w in SIGNED) > 1]}),
    Case("records-tip-of-each-name", "Older(P) :- At(P,K,T), At(Q,K,U), LexCompare(U,'>',T).\n"
         "At(P,K,T) :- Have(P), Field(P,'Group',_,K), Field(P,'TAI',_,T).\nTip(K,P) :- At(P,K,_), not Older(P).", FACTS,
         {"At": [(r[0], r[1], r[4]) for r in RECORDS],
          "Older": [r[0] for r in RECORDS if any(s[1] == r[1] and s[4] > r[4] for s in RECORDS)],
          "Tip": [(r[1], r[0]) for r in RECORDS if not any(s[1] == r[1] and s[4] > r[4] for s in RECORDS)]}),
    Case("records-claims-are-no-records", "Known(P) :- Advertised(P,_), Have(P).\nClaimed(P) :- Advertised(P,_), not Have(P).",
         {**FACTS, "Advertised": [("P.1.H3", "V.x.H3"), ("P.99.H3", "V.x.H3")]}, {"Known": ["P.1.H3"], "Claimed": ["P.99.H3"]}),
    *(_newest(number) for number in ("0", "1", "2", "3", "100", "-1")),
]  # fmt: skip
