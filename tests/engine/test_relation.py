"""What a relation remembers of its rows: how they are packed, and in how many pieces they are kept."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.columns import ArraySource
from lace.datalog.engine import evaluate
from lace.datalog.engine.index import Codes
from lace.datalog.engine.rank_counts import key_ranks
from lace.datalog.engine.relation import BitmapSeen, HashedSeen, Packing, Seen, SortedSeen
from lace.datalog.engine.runs import SourceRun
from lace.datalog.language.parser import parse_program
from lace.datalog.language.syntax import Fact, Predicate
from lace.datalog.language.validate import RAW_PROFILE, check_program


@pytest.mark.parametrize(
    ("domain", "bits"), [(0, 1), (1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (256, 8), (257, 9), (65_536, 16), (65_537, 17)]
)
def test_a_code_takes_the_bits_of_the_largest_one(domain: int, bits: int) -> None:
    assert Packing(1, domain).bits == bits
    assert Packing(3, domain).total == 3 * bits


@pytest.mark.parametrize(
    ("arity", "domain", "word"),
    [(2, 65_536, np.uint32), (2, 65_537, np.uint64), (3, 2_048, np.uint64), (1, 9, np.uint32)],
)
def test_keys_of_32_bits_are_half_as_long(arity: int, domain: int, word: type) -> None:
    top = [np.array([domain - 1, 0], np.uint32) for _ in range(arity)]
    keys = Packing(arity, domain).pack(top)
    assert keys.dtype == word
    assert [column.tolist() for column in Packing(arity, domain).unpack(keys)] == [[domain - 1, 0]] * arity


KINDS = {
    "bitmap": lambda arity, domain: BitmapSeen(Packing(arity, domain)),
    "sorted": lambda arity, domain: SortedSeen(Packing(arity, domain)),
    "hashed": HashedSeen,
}


def columns_of(rows: list[tuple[int, ...]], arity: int) -> list[Codes]:
    return [np.array([row[place] for row in rows], np.uint32) for place in range(arity)]


@pytest.mark.parametrize("kind", KINDS)
@given(st.integers(0, 2**32))
def test_each_row_is_fresh_once(kind: str, seed: int) -> None:
    random = Random(seed)
    arity, domain = random.randint(1, 3), random.choice((1, 2, 5, 60))
    seen: Seen = KINDS[kind](arity, domain)
    known: set[tuple[int, ...]] = set()
    for _ in range(random.randint(1, 8)):
        rows = [tuple(random.randrange(domain) for _ in range(arity)) for _ in range(random.randint(0, 40))]
        fresh = list(zip(*(column.tolist() for column in seen.fresh(columns_of(rows, arity))), strict=True))
        assert len(set(fresh)) == len(fresh)
        assert set(fresh) == set(rows) - known
        known |= set(rows)


@pytest.mark.parametrize("kind", ["sorted", "hashed"])
def test_pieces_at_least_halve_from_one_to_the_next(kind: str) -> None:
    """So few of them are searched, and a row is copied as often as a number has digits."""
    seen = KINDS[kind](1, 1 << 20)
    lengths = []
    for code in range(8):
        seen.fresh([np.array([code], np.uint32)])
        pieces = seen.levels if kind == "sorted" else [run.column(0) for run in seen.runs]
        lengths.append([len(piece) for piece in pieces])
    assert lengths == [[1], [2], [2, 1], [4], [4, 1], [4, 2], [4, 2, 1], [8]]


def test_what_is_held_is_counted_in_bytes() -> None:
    rows = [np.arange(100, dtype=np.uint32)]
    bitmap, ordered, wide = BitmapSeen(Packing(1, 1000)), SortedSeen(Packing(1, 1000)), HashedSeen(1, 1000)
    assert (bitmap.nbytes, ordered.nbytes) == (1024, 0)
    bitmap.fresh(rows)
    ordered.fresh(rows)
    assert (bitmap.nbytes, ordered.nbytes) == (1024, 400)
    wide.fresh(rows)
    assert wide.nbytes >= 400


def test_a_source_that_keeps_parts_is_asked_for_the_part_of_a_row() -> None:
    field = Predicate("Field", 3)
    source = ArraySource([Fact(field, row) for row in [("a", "a", "x"), ("b", "b", "x"), ("c", "b", "y")]])
    run = SourceRun(source, field, source.code_count)
    assert source.codes(["a", "x", "b"]) == [0, 1, 2]
    assert run.part_for([-1, 0, -1]).rows == 1
    assert run.part_for([-1, 2, -1]).rows == 2
    assert run.part_for([0, 2, -1]).rows == 2  # the source keeps no parts by the first place
    assert run.part_for([2, -1, 0]) is run
    assert run.part_for([-1, 1, -1]).rows == 0  # a code that the source has, but never there


def test_no_keys_have_no_ranks() -> None:
    assert key_ranks(np.empty(0, np.uint32), "text", None, 4).shape == (0,)  # type: ignore[arg-type]


def test_facts_without_values_and_facts_with_them_as_lines_of_json() -> None:
    program = check_program(parse_program("Some() :- Edge(X,Y).\nTo(Y) :- Edge(X,Y).\nNone() :- To('z')."), RAW_PROFILE)
    found = evaluate(program, [Fact(Predicate("Edge", 2), ("a", end)) for end in ("c", "b")])
    assert list(found.json_lines(Predicate("Some", 0))) == ["{}\n"]
    assert list(found.json_lines(Predicate("None", 0))) == []
    assert "".join(found.json_lines(Predicate("To", 1), ["Y"])) == '{"Y": "b"}\n{"Y": "c"}\n'
    assert found.rows_between(Predicate("Some", 0), 0, 5) == [()]
    assert found.rows_between(Predicate("To", 1), 1, 5) == [("c",)]
