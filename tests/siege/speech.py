"""What a hostile peer says, as bytes: ILTP written by hand, so that nothing of ours keeps it from lying."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable

from lace.notation import b64a
from lace.notation.digest import digest
from lace.notation.tai import TAI
from lace.policy.compile import agree
from lace.policy.operand import Module
from lace.policy.select import select_all

SOURCE = "Opq_s"
SERVER = select_all()  # what a server without `--select` brings
TICK_NS = 10_000_000_000
PREFACE = "🪢: iltp/1\n"


def opening(module: Module = SERVER, **limits: int) -> bytes:
    """Preface, setup and hello of a dialer with this module."""
    return (PREFACE + setup(module) + hello(module, **limits)).encode()


def setup(module: Module) -> str:
    """A setup block; also one that begins another epoch."""
    operand = f"ExchangeOperand('0','{module.id}','{SOURCE}','selector')\n\n"
    return f"🧩: {module.id} lacegram\n{module.text}\n\n{operand}"


def hello(module: Module, *, tick_ns: int = TICK_NS, later_ns: int = 0, **limits: int) -> str:
    """The hello that goes with it."""
    lines = [
        f"HelloExchangePlan('{agree(module, SERVER).id}')",
        f"HelloTAI('{now(later_ns)}')",
        f"HelloTickInterval('{tick_ns}')",
        "HelloRecordFormat('H3')",
    ]
    agreed = {
        "max_fact_block_size": 64 << 20,
        "max_advertisement_records_listed": 100_000,
        "max_partition_summaries": 16_384,
        "max_narrowing_depth": 12,
        "max_total_transferred_bytes": 1 << 30,
        "max_loop_iterations": 1_000_000_000,
        **limits,
    }
    lines += [f"HelloLimit('{name}','{value}')" for name, value in agreed.items()]
    return "\n".join(lines) + "\n\n"


def now(later_ns: int = 0) -> TAI:
    """The time, as far as the peer is concerned."""
    return TAI.of_unix_ns(time.time_ns() + later_ns)


def bogus(seed: bytes, prefix: str = "") -> str:
    """The name of a record that nobody has."""
    return f"B.{prefix}{b64a.encode(digest(seed))[len(prefix) :]}.H3"


def listing(records: Iterable[str]) -> bytes:
    """An advertisement of these records, sorted as a listing is."""
    return "".join([f"Advertised('{record}','{SOURCE}')\n" for record in sorted(records)]).encode() + b"\n"


def requests(records: Iterable[str] = ()) -> bytes:
    """A request block."""
    return "".join([f"MayRequest('{record}')\n" for record in records]).encode() + b"\n"


def rules(text: str) -> Module:
    """A selector that carries these rules along, and reads them."""
    return Module.author(f"SelectAdvertised(P,S) :- Advertised(P,S).\nSelectHave(P) :- Have(P), not Bad(P).\n{text}\n")


def digits(count: int) -> str:
    """`D` of that many constants."""
    return "".join(f"D('{number}') :- true.\n" for number in range(count))


def counter() -> Module:
    """One new row a round, 65,536 rounds."""
    alphabet = "0123456789abcdef"
    steps = "".join(f"S('{a}','{b}') :- true.\n" for a, b in itertools.pairwise(alphabet))
    return rules(
        f"{steps}N('0','0','0','0') :- true.\n"
        "N(A,B,C,E) :- N(A,B,C,D), S(D,E).\n"
        "N(A,B,E,'0') :- N(A,B,C,'f'), S(C,E).\n"
        "N(A,E,'0','0') :- N(A,B,'f','f'), S(B,E).\n"
        "N(E,'0','0','0') :- N(A,'f','f','f'), S(A,E).\n"
        "Bad(P) :- Have(P), N('f','f','f','f'), N('g','0','0','0').\n"
    )


def joins(width: int = 100) -> Module:
    """Joins of 10^8 rows of which none is left."""
    return rules(
        f"{digits(width)}E(A,B) :- D(A), D(B).\nT(A) :- E(A,B), E(B,C), E(C,G), not E(A,G).\nBad(P) :- Have(P), T(P).\n"
    )


def products(width: int = 24) -> Module:
    """Rows that are kept: memory."""
    return rules(
        f"{digits(width)}X(A,B,C,E,F,G) :- D(A), D(B), D(C), D(E), D(F), D(G).\nBad(P) :- Have(P), X(P,_,_,_,_,_).\n"
    )


def closure(width: int = 60) -> Module:
    """Reachability over all that is there, recursive in two atoms."""
    return rules(
        f"{digits(width)}E(A,B) :- D(A), D(B).\nR(A,B) :- E(A,B).\nR(A,C) :- R(A,B), R(B,C).\n"
        "Bad(P) :- Have(P), R(P,P).\n"
    )


def counting(width: int = 80) -> Module:
    """Counts over large products."""
    return rules(
        f"{digits(width)}E(A,B) :- D(A), D(B).\nT(A) :- D(A), Cardinality(E(_,_),'<','1').\n"
        "M(A,B,C) :- D(A), D(B), D(C).\nBad(P) :- Have(P), Cardinality(M(_,_,_),'<','2').\n"
    )


def many_predicates(count: int = 100, width: int = 50) -> Module:
    """Predicates of which each is kept, and grows with the records that there are."""
    many = "".join(f"X{n}(A,B,P) :- D(A), D(B), Have(P), P != '{n}'.\n" for n in range(count))
    bad = "".join(f"Bad(P) :- Have(P), X{n}(P,_,_).\n" for n in range(count))
    return rules(f"{digits(min(width, 250 - 2 * count))}{many}{bad}")


def follower() -> Module:
    """A recursive selector over record facts: dear to follow when records go."""
    return Module.author(
        "SelectAdvertised(P,S) :- Advertised(P,S).\n"
        "Near(P,Q) :- Field(P,'Group',_,G), Field(Q,'Group',_,G).\n"
        "Far(P,Q) :- Near(P,Q).\n"
        "Far(P,R) :- Far(P,Q), Near(Q,R).\n"
        "SelectHave(P) :- Have(P), Far(P,P).\n"
    )


def ticks(count: int, start: TAI) -> bytes:
    """Many tick blocks, each later than the one before."""
    return "".join(f"TickReady('{start.plus_ns(TICK_NS * n)}')\n\n" for n in range(1, count + 1)).encode()
