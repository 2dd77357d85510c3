"""What a goal says: which predicate, whether anything can match it, and what its columns are called.

Rule: a goal that nothing can match is refused with similar predicates, whoever asks.
"""

from __future__ import annotations

from lace.datalog.language.syntax import Anonymous, Atom, Constant, Predicate, Variable
from lace.datalog.language.validate import CheckedProgram
from lace.datalog.planning.stratify import read_atom
from lace.errors import InvalidLacegram


def require_known(goal: Atom, checked: CheckedProgram, given: frozenset[Predicate]) -> None:
    """Refuse a goal that no rule and no fact can match, and suggest similar predicates."""
    known = sorted(checked.derived | checked.base | checked.profile.base | checked.profile.runtime | given)
    if goal.predicate in known:
        return
    from difflib import get_close_matches

    named_so = [str(predicate) for predicate in known if predicate.name == goal.predicate.name]
    close = get_close_matches(goal.predicate.name, [predicate.name for predicate in known], n=3)
    near = named_so or [str(predicate) for predicate in known if predicate.name in close]
    heads = near or list(map(str, sorted(checked.derived)))
    advice = f"did you mean {' or '.join(near)}?" if near else f"the rules derive {', '.join(heads) or 'nothing'}"
    raise InvalidLacegram(f"no rule and no fact mentions {goal.predicate}", rule="goal", advice=advice)


def outputs(checked: CheckedProgram) -> list[Predicate]:
    """The heads that no other rule reads, sorted."""
    read = {
        found[0].predicate
        for rule in checked.program.rules
        for found in map(read_atom, rule.body)
        if found and found[0].predicate != rule.head.predicate
    }
    return sorted(checked.derived - read)


def only_output(checked: CheckedProgram) -> Atom:
    """The head that no other rule reads."""
    found = outputs(checked)
    if len(found) != 1:
        heads = ", ".join(map(str, found or sorted(checked.derived)))
        raise InvalidLacegram(f"give a goal that says what to show; it could be {heads}", rule="goal")
    return head_of(checked, found[0])


def head_of(checked: CheckedProgram, predicate: Predicate) -> Atom:
    """The head of the first rule that derives a predicate."""
    return next(rule.head for rule in checked.program.rules if rule.head.predicate == predicate)


def column_names(goal: Atom) -> tuple[str, ...]:
    """The names of the columns: variables give theirs, other terms are numbered."""
    names: list[str] = []
    for number, term in enumerate(goal.terms, start=1):
        plain = isinstance(term, Anonymous | Constant) or term.name in names
        names.append(f"_{number}" if plain or not isinstance(term, Variable) else term.name)
    return tuple(names)
