"""The grammar of 030: what is a rule, what is not, and what an error says."""

from __future__ import annotations

import pytest

from lace.datalog.formatting import format_program
from lace.datalog.parser import parse_program

clause = pytest.mark.clause

VALID = [
    pytest.param("A(X) :- B(X).", marks=clause("030-SYN-02", "030-SYN-14")),
    pytest.param("A() :- TransportEncrypted().", marks=clause("030-SYN-06")),
    pytest.param("KnownVerifier('V.example.H3') :- true.", marks=clause("030-SYN-08")),
    pytest.param("a(X) :- A~b(X), x-1(X), P_(X), z~(X).", marks=clause("030-SYN-09")),
    pytest.param("_Trace(X) :- _seen-1(X).", marks=clause("030-SYN-11")),
    pytest.param("A(X) :- B(X), not C(X), not TransportEncrypted().", marks=clause("030-SYN-15")),
    pytest.param("A(X) :- B(X,Y), X != Y, X != 'a', 'a' != X.", marks=clause("030-SYN-17", "030-EQ-08")),
    pytest.param("A(X) :- true, B(X), true.", marks=clause("030-SYN-20")),
    pytest.param("A(X) :- B(X,Y_2b), C(_,_).", marks=clause("030-TERM-01", "030-TERM-03")),
    pytest.param("A('\\\\','\\'','a\\'b') :- true.", marks=clause("030-TERM-09")),
    pytest.param("A('\t#,).:- = \"🖧 é') :- true.", marks=clause("030-TERM-13", "030-EQ-06", "030-TERM-07")),
    pytest.param("A('') :- true.", marks=clause("030-VAL-05")),
    pytest.param("notA(X) :- trueB(X), nothing(X), not-(X).", marks=clause("030-SYN-09")),
    pytest.param("A(X) :- B(X), IntCompare(X,'<','3'), LexCompare('a','>=',X), TextShape(X,'a','/',X).",
                 marks=clause("030-SYN-18")),
    pytest.param("A(X) :- B(X), Cardinality(C(X,_,Y),'<=',X), Cardinality(D(),'>','0').", marks=clause("030-SYN-18")),
]  # fmt: skip


@pytest.mark.parametrize("line", VALID)
def test_canonical_lines_parse_and_print_as_they_stand(line: str) -> None:
    program = parse_program(line)
    assert len(program.rules) == 1
    assert format_program(program) == line
