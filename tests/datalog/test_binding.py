"""What the variables of an atom stand for."""

from __future__ import annotations

import pytest

from lace.datalog.binding import Binding, match, value_of
from lace.datalog.language.parser import parse_atom
from lace.datalog.language.syntax import Constant, Variable


@pytest.mark.parametrize(
    ("atom", "row", "known", "bound"),
    [
        ("A(X,Y)", ("1", "2"), {}, {"X": "1", "Y": "2"}),
        ("A(X,X)", ("1", "1"), {}, {"X": "1"}),
        ("A(X,X)", ("1", "2"), {}, None),
        ("A(X,Y)", ("1", "2"), {"X": "1", "Z": "9"}, {"X": "1", "Y": "2", "Z": "9"}),
        ("A(X,Y)", ("1", "2"), {"Y": "1"}, None),
        ("A('1',_)", ("1", "2"), {"X": "3"}, {"X": "3"}),
        ("A('1',_)", ("2", "2"), {}, None),
        ("A()", (), {"X": "3"}, {"X": "3"}),
    ],
)
def test_an_atom_matches_a_row_that_has_its_constants_and_its_bindings(
    atom: str, row: tuple[str, ...], known: Binding, bound: Binding | None
) -> None:
    before = dict(known)
    assert match(parse_atom(atom), row, known) == bound
    assert known == before


def test_a_term_stands_for_its_text() -> None:
    assert value_of(Variable("X"), {"X": "1"}) == "1"
    assert value_of(Constant("X"), {"X": "1"}) == "X"
