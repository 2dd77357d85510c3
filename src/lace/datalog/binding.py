"""Bindings: what the variables of a rule stand for.

Rule: `_` takes any value and binds nothing.
"""

from __future__ import annotations

from lace.datalog.source import Row
from lace.datalog.syntax import Atom, Constant, Term, Variable

Binding = dict[str, str]


def match(atom: Atom, row: Row, binding: Binding) -> Binding | None:
    """The binding extended so that the atom is the row, or None; `_` takes any value and binds nothing."""
    extended = dict(binding)
    for term, value in zip(atom.terms, row, strict=True):
        if isinstance(term, Constant) and term.value != value:
            return None
        if isinstance(term, Variable) and extended.setdefault(term.name, value) != value:
            return None
    return extended


def value_of(term: Term, binding: Binding) -> str:
    """The text that a term stands for."""
    if isinstance(term, Variable):
        return binding[term.name]
    assert isinstance(term, Constant)
    return term.value
