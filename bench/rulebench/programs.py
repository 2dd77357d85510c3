"""The programs and facts that `bench/datalog.py` measures, for Lace and, in their own words, for clingo and nemo.

Rule: every engine answers the same question about the same facts; the number of answers is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

Row = tuple[str, ...]
Facts = dict[str, list[Row]]  # predicate name → rows

LACE_SELECTOR = (
    "Selected(P) :- Have(P), Field(P,'Group',_,'u'), Field(P,'App',_,'ding'), Field(P,'Name',_,K), "
    "TextShape(K,'links/','','')."
)
LACE_MEMBERS = (
    "Blocked(V) :- Have(P), Field(P,'Group',_,'keys'), Field(P,'App',_,'blocked'), Field(P,'Name',_,V).\n"
    "Member(V) :- Have(P), Field(P,'Group',_,'keys'), Field(P,'App',_,'member'), Field(P,'Name',_,V).\n"
    "Selected(P) :- Have(P), Field(P,'Group',_,'u'), Field(P,'App',_,'ding'), Field(P,'Signed-By',_,V), Member(V), "
    "not Blocked(V)."
)
LACE_EVIDENCE = (
    "Selected(P) :- Have(P), Field(P,'Group',_,'u'), Field(P,'App',_,'ding').\n"
    "Selected(T) :- Selected(P), RecordLink(P,'+Link',_,'evidence',T), Have(T)."
)
LACE_NEWEST = (
    "Before(P,Q) :- Candidate(P,T), Candidate(Q,T), LexCompare(Q,'>',P).\n"
    "Before(P,Q) :- Candidate(P,TP), Candidate(Q,TQ), LexCompare(TQ,'>',TP).\n"
    "Candidate(P,T) :- Have(P), Field(P,'Group',_,'u'), Field(P,'App',_,'ding'), Field(P,'Name',_,K), "
    "TextShape(K,'links/','',''), Field(P,'TAI',_,T).\n"
    "Selected(P) :- Candidate(P,T), Cardinality(Before(P,Q),'<','100')."
)
LACE_CLOSURE = "Path(X,Y) :- Edge(X,Y).\nPath(X,Y) :- Path(X,Z), Edge(Z,Y)."
POINTS_TO = """Flow(Y,X) :- Assign(Y,X).
Flow(X,X) :- Assign(X,_).
Flow(X,X) :- Assign(_,X).
Flow(X,Y) :- Flow(X,Z), Flow(Z,Y).
Flow(Y,X) :- Assign(Y,Z), Memory(Z,X).
Memory(X,W) :- Load(Y,X), Alias(Y,Z), Load(Z,W).
Memory(X,X) :- Assign(_,X).
Alias(X,Y) :- Flow(Z,X), Flow(Z,Y).
Alias(X,Y) :- Flow(Z,X), Memory(Z,W), Flow(W,Y)."""
LACE_GENERATION = "Same(X,Y) :- Up(X,Z), Up(Y,Z).\nSame(X,Y) :- Up(X,A), Same(A,B), Up(Y,B)."

CLINGO_SELECTOR = (
    'selected(P) :- have(P), field(P,"Group",_,"u"), field(P,"App",_,"ding"), field(P,"Name",_,K), underlinks(K).'
)
CLINGO_MEMBERS = (
    'blocked(V) :- have(P), field(P,"Group",_,"keys"), field(P,"App",_,"blocked"), field(P,"Name",_,V).\n'
    'member(V) :- have(P), field(P,"Group",_,"keys"), field(P,"App",_,"member"), field(P,"Name",_,V).\n'
    'selected(P) :- have(P), field(P,"Group",_,"u"), field(P,"App",_,"ding"), field(P,"Signed-By",_,V), member(V), '
    "not blocked(V)."
)
CLINGO_EVIDENCE = (
    'selected(P) :- have(P), field(P,"Group",_,"u"), field(P,"App",_,"ding").\n'
    'selected(T) :- selected(P), recordlink(P,"+Link",_,"evidence",T), have(T).'
)
CLINGO_NEWEST = (
    'candidate(P,T) :- have(P), field(P,"Group",_,"u"), field(P,"App",_,"ding"), field(P,"Name",_,K), underlinks(K), '
    'field(P,"TAI",_,T).\n'
    "before(P,Q) :- candidate(P,T), candidate(Q,T), Q > P.\n"
    "before(P,Q) :- candidate(P,TP), candidate(Q,TQ), TQ > TP.\n"
    "selected(P) :- candidate(P,T), #count { Q : before(P,Q) } < 100."
)
CLINGO_CLOSURE = "path(X,Y) :- edge(X,Y).\npath(X,Y) :- path(X,Z), edge(Z,Y)."
CLINGO_GENERATION = "same(X,Y) :- up(X,Z), up(Y,Z).\nsame(X,Y) :- up(X,A), same(A,B), up(Y,B)."

NEMO_SELECTOR = (
    'selected(?P) :- have(?P), field(?P,"Group",?I1,"u"), field(?P,"App",?I2,"ding"), field(?P,"Name",?I3,?K), '
    'STRSTARTS(?K,"links/").'
)
NEMO_MEMBERS = (
    'blocked(?V) :- have(?P), field(?P,"Group",?I1,"keys"), field(?P,"App",?I2,"blocked"), field(?P,"Name",?I3,?V).\n'
    'member(?V) :- have(?P), field(?P,"Group",?I1,"keys"), field(?P,"App",?I2,"member"), field(?P,"Name",?I3,?V).\n'
    'selected(?P) :- have(?P), field(?P,"Group",?I1,"u"), field(?P,"App",?I2,"ding"), field(?P,"Signed-By",?I3,?V), '
    "member(?V), ~blocked(?V)."
)
NEMO_EVIDENCE = (
    'selected(?P) :- have(?P), field(?P,"Group",?I1,"u"), field(?P,"App",?I2,"ding").\n'
    'selected(?T) :- selected(?P), recordlink(?P,"+Link",?I1,"evidence",?T), have(?T).'
)
NEMO_NEWEST = (
    'candidate(?P,?T) :- have(?P), field(?P,"Group",?I1,"u"), field(?P,"App",?I2,"ding"), field(?P,"Name",?I3,?K), '
    'STRSTARTS(?K,"links/"), field(?P,"TAI",?I4,?T).\n'
    "before(?P,?Q) :- candidate(?P,?T), candidate(?Q,?T), COMPARE(?Q,?P) > 0.\n"
    "before(?P,?Q) :- candidate(?P,?S), candidate(?Q,?T), COMPARE(?T,?S) > 0.\n"
    "newer(?P,#count(?Q)) :- before(?P,?Q).\n"
    "some(?P) :- newer(?P,?N).\n"
    "selected(?P) :- candidate(?P,?T), ~some(?P).\n"
    "selected(?P) :- newer(?P,?N), ?N < 100."
)
NEMO_CLOSURE = "path(?X,?Y) :- edge(?X,?Y).\npath(?X,?Y) :- path(?X,?Z), edge(?Z,?Y)."
NEMO_GENERATION = "same(?X,?Y) :- up(?X,?Z), up(?Y,?Z).\nsame(?X,?Y) :- up(?X,?A), same(?A,?B), up(?Y,?B)."


@dataclass(frozen=True, slots=True)
class Question:
    """One program in the words of each engine, and what its answers are called."""

    name: str
    kind: str  # "records" or "graph"
    facts: Callable[[int], Iterable[tuple[str, Row]]]
    answer: tuple[str, int]
    lace: str
    clingo: str
    nemo: str
    sizes: tuple[int, int]
    growth: tuple[int, int, int, int]
    quick: int


def records(count: int) -> Iterator[tuple[str, Row]]:
    """Eight facts a record: Have, six fields, and a link from every record to an earlier one."""
    random = Random(7)
    hashes = [f"P.{random.getrandbits(256):043x}"[:45] + ".H3" for _ in range(count)]
    signers = [f"V.{random.getrandbits(256):043x}"[:45] + ".H3" for _ in range(max(10, count // 200))]
    for n, record in enumerate(hashes):
        yield "Have", (record,)
        for name, value in _fields(n, random, signers):
            yield "Field", (record, name, "0", value)
        yield "RecordLink", (record, "+Link", "0", "evidence" if n % 2 else "reply", hashes[random.randrange(n + 1)])


def _fields(n: int, random: Random, signers: list[str]) -> Iterator[tuple[str, str]]:
    kind = random.randrange(100)
    if kind < 2:  # a key record: who is a member, who is blocked
        group, app, name = "keys", "member" if kind else "blocked", random.choice(signers)
    else:
        group = "u" if kind < 52 else f"g{kind % 10}"
        app = random.choice(("ding", "dong"))
        name = f"{random.choice(('links', 'notes'))}/{n:x}"
    yield "Group", group
    yield "App", app
    yield "Name", name
    yield "TAI", f"{1_700_000_000 + random.randrange(50_000_000)}:{random.randrange(10**9):09}"
    yield "Signed-By", random.choice(signers)
    yield "Data-Length", str(random.randrange(5000))


def grid(side: int) -> Iterator[tuple[str, Row]]:
    """Edges right and down in a square."""
    for x in range(side):
        for y in range(side):
            if x + 1 < side:
                yield "Edge", (f"n{x}_{y}", f"n{x + 1}_{y}")
            if y + 1 < side:
                yield "Edge", (f"n{x}_{y}", f"n{x}_{y + 1}")


def random_graph(nodes: int) -> Iterator[tuple[str, Row]]:
    """Twice as many edges as nodes."""
    random = Random(1)
    for _ in range(2 * nodes):
        yield "Edge", (f"n{random.randrange(nodes)}", f"n{random.randrange(nodes)}")


def chains(length: int) -> Iterator[tuple[str, Row]]:
    """Ten chains."""
    for chain in range(10):
        for n in range(length):
            yield "Edge", (f"c{chain}_{n}", f"c{chain}_{n + 1}")


def tree(depth: int) -> Iterator[tuple[str, Row]]:
    """A binary tree, child to parent."""
    level = ["r"]
    for _ in range(depth):
        yield from (("Up", (node + side, node)) for node in level for side in "01")
        level = [node + side for node in level for side in "01"]


PATH, SELECTED = ("Path", 2), ("Selected", 1)
RECORD_SIZES, RECORD_GROWTH = (100_000, 1_000_000), (12_500, 25_000, 50_000, 100_000)
QUESTIONS = (
    Question("group/app/name selector", "records", records, SELECTED, LACE_SELECTOR, CLINGO_SELECTOR, NEMO_SELECTOR,
             RECORD_SIZES, RECORD_GROWTH, 5_000),
    Question("members, not blocked", "records", records, SELECTED, LACE_MEMBERS, CLINGO_MEMBERS, NEMO_MEMBERS,
             RECORD_SIZES, RECORD_GROWTH, 5_000),
    Question("evidence closure", "records", records, SELECTED, LACE_EVIDENCE, CLINGO_EVIDENCE, NEMO_EVIDENCE,
             RECORD_SIZES, RECORD_GROWTH, 5_000),
    Question("newest 100", "records", records, SELECTED, LACE_NEWEST, CLINGO_NEWEST, NEMO_NEWEST,
             RECORD_SIZES, RECORD_GROWTH, 3_000),
    Question("closure of a grid", "graph", grid, PATH, LACE_CLOSURE, CLINGO_CLOSURE, NEMO_CLOSURE,
             (25, 50), (15, 25, 35, 50), 12),
    Question("closure of a random graph", "graph", random_graph, PATH, LACE_CLOSURE, CLINGO_CLOSURE, NEMO_CLOSURE,
             (500, 1500), (250, 500, 1000, 2000), 200),
    Question("closure of chains", "graph", chains, PATH, LACE_CLOSURE, CLINGO_CLOSURE, NEMO_CLOSURE,
             (100, 315), (80, 160, 320, 640), 50),
    Question("same generation in a tree", "graph", tree, ("Same", 2), LACE_GENERATION, CLINGO_GENERATION,
             NEMO_GENERATION, (8, 10), (7, 8, 9, 10), 6),
)  # fmt: skip
BY_NAME = {question.name: question for question in QUESTIONS}


def clingo_text(facts: Iterable[tuple[str, Row]]) -> str:
    """Facts as clingo reads them. It has no text builtins, so it is told which names stand under links/."""
    lines: list[str] = []
    for name, row in facts:
        lines.append(f"{name.lower()}({','.join(map(_quoted, row))}).")
        if name == "Field" and row[1] == "Name" and row[3].startswith("links/"):
            lines.append(f"underlinks({_quoted(row[3])}).")
    return "\n".join(lines)


def write_csv(facts: Iterable[tuple[str, Row]], folder: Path) -> dict[str, int]:
    """Facts as nemo reads them fastest, one file a predicate; the arity of each."""
    rows: dict[str, list[Row]] = {}
    for name, row in facts:
        rows.setdefault(name.lower(), []).append(row)
    for name, found in rows.items():
        with (folder / f"{name}.csv").open("w", encoding="utf-8") as file:
            file.writelines(",".join(row) + "\n" for row in found)
    return {name: len(found[0]) for name, found in rows.items()}


def nemo_import(folder: Path, name: str, arity: int) -> str:
    """The line that reads one file."""
    return f'@import {name} :- csv{{resource="{folder / name}.csv", format=({",".join(["string"] * arity)})}}.'


def nemo_variables(arity: int) -> str:
    """As many different variables."""
    return ",".join(f"?V{n}" for n in range(arity))


def _quoted(text: str) -> str:
    return f'"{text}"'
