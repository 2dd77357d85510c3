"""Bindings: what the variables of a rule stand for.

Rule: `_` takes any value and binds nothing.
"""

from __future__ import annotations

from lace.datalog.language.syntax import Atom, Constant, Term, Variable
from lace.datalog.source import Row

Binding = dict[str, str]


def match(atom: Atom, row: Row, binding: Binding) -> Binding | None:
    """The binding extended so that the atom is the row, or None; the one given stays as it is."""
    extended = binding
    for term, value in zip(atom.terms, row, strict=True):
        if isinstance(term, Constant):
            if term.value != value:
                return None
        elif isinstance(term, Variable):
            bound = extended.get(term.name)
            if bound is None:
                extended = {**extended, term.name: value}
            elif bound != value:
                return None
    return extended


def value_of(term: Term, binding: Binding) -> str:
    """The text that a term stands for."""
    if isinstance(term, Variable):
        return binding[term.name]
    assert isinstance(term, Constant)
    return term.value
