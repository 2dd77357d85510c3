"""The newest-N idiom (030-CARD-12, P31): predicates that only order candidates, so that counting is ranking.

Rule: a predicate is ranked only if the rank is equal to the count for every possible fact; anything else is evaluated
as ordinary facts. As facts the idiom is quadratic, as a rank it is a sort.

Why `max` and `min`: y is counted for x when some key of y stands beyond some key of x, so when the most extreme key of
y stands beyond the least extreme key of x. This stays exact for candidates with several keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from lace.datalog.plan import Rank, Scan
from lace.datalog.planner import rankable, scan_of
from lace.datalog.stratify import read_atom
from lace.datalog.syntax import (
    Anonymous,
    Atom,
    Cardinality,
    Compare,
    Constant,
    Operator,
    Positive,
    Predicate,
    Program,
    Rule,
    Term,
    TrueLiteral,
    Unequal,
    Variable,
)

ID, KEY = "Id", "Key"
_FLIPPED: dict[Operator, Operator] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}

_STRICT: dict[Operator, Operator] = {"<": "<", "<=": "<", ">": ">", ">=": ">"}


@dataclass(frozen=True, slots=True)
class _Ordering:
    """One ordering rule: y is counted for x when their rows agree on `shared` and compare at `compared`."""

    predicate: Predicate
    constants: tuple[tuple[int, str], ...]
    identity: int
    shared: frozenset[int]
    compared: int
    kind: str
    operator: Operator  # y against x
    others_only: bool  # x is not counted for itself, whatever its keys


def ranked_predicates(program: Program, outputs: Iterable[Predicate] = ()) -> Mapping[tuple[Predicate, int], Rank]:
    """(predicate, place of the bound argument) → rank, for predicates that only rankable counts read."""
    rules: dict[Predicate, list[Rule]] = {}
    for rule in program.rules:
        rules.setdefault(rule.head.predicate, []).append(rule)
    uses = _uses(program)
    found: dict[tuple[Predicate, int], Rank] = {}
    for predicate, counted in uses.items():
        if predicate not in rules or predicate in set(outputs) or not counted:
            continue
        ranks = {place: rank_of(rules[predicate], place) for place in {place for place in counted if place is not None}}
        if None not in counted and all(ranks.values()):
            found.update({(predicate, place): rank for place, rank in ranks.items() if rank is not None})
    return found


def _uses(program: Program) -> dict[Predicate, list[int | None]]:
    """How each predicate is read: the bound place of a rankable count, None for any other use."""
    uses: dict[Predicate, list[int | None]] = {}
    for rule in program.rules:
        outer = {
            t.name for lit in rule.body if isinstance(lit, Positive) for t in lit.atom.terms if isinstance(t, Variable)
        }
        for literal in rule.body:
            read = read_atom(literal)
            if read is None:
                continue
            place = None
            if isinstance(literal, Cardinality):
                scan = scan_of(literal.atom, frozenset(outer))
                place = scan.variables[0][0] if rankable(scan) else None
            uses.setdefault(read[0].predicate, []).append(place)
    return uses


def rank_of(rules: list[Rule], x_place: int) -> Rank | None:
    """How rules order candidates, if counting what they derive for the value at a place is ranking it."""
    orderings = [_ordering(rule, x_place) for rule in rules]
    match orderings:
        case [_Ordering() as only]:
            return _make_rank(only, None)
        case [_Ordering() as one, _Ordering() as two]:
            tie, main = (one, two) if one.compared == one.identity else (two, one)
            return _make_rank(main, tie) if _is_tie_of(tie, main) else None
        case _:
            return None


def _is_tie_of(tie: _Ordering, main: _Ordering) -> bool:
    """Equal keys are equal texts, so only texts can carry a tie; a strict main order keeps the two rules apart."""
    same = (tie.predicate, tie.constants, tie.identity) == (main.predicate, main.constants, main.identity)
    strict = main.operator in ("<", ">") and main.kind == "lex" and tie.kind == "lex"
    strict = strict and (not main.others_only or tie.operator in ("<", ">"))
    main_by_key = main.compared != main.identity and tie.compared == tie.identity
    return same and strict and main_by_key and tie.shared == main.shared | {main.compared}


def _make_rank(main: _Ordering, tie: _Ordering | None) -> Rank:
    names = {main.identity: ID}
    if main.compared != main.identity:
        names[main.compared] = KEY
    groups = {place: f"Group{place}" for place in sorted(main.shared)}
    variables = tuple(sorted((names | groups).items()))
    scan = Scan(main.predicate, variables, main.constants)
    tie_kind, tie_operator = (tie.kind, tie.operator) if tie else ("", main.operator)
    return Rank(scan, main.kind, main.operator, tie_kind, tie_operator, tuple(groups.values()), main.others_only)


def _ordering(rule: Rule, x_place: int) -> _Ordering | None:
    body = [literal for literal in rule.body if not isinstance(literal, TrueLiteral)]
    atoms = [literal.atom for literal in body if isinstance(literal, Positive)]
    tests = [literal for literal in body if isinstance(literal, Compare)]
    unequal = [{literal.left, literal.right} for literal in body if isinstance(literal, Unequal)]
    x, y = rule.head.terms[x_place], rule.head.terms[1 - x_place]
    if len(body) != 3 + len(unequal) or len(atoms) != 2 or len(tests) != 1 or x == y:
        return None
    if not (isinstance(x, Variable) and isinstance(y, Variable)):
        return None
    of_x = [atom for atom in atoms if x in atom.terms and y not in atom.terms]
    of_y = [atom for atom in atoms if y in atom.terms and x not in atom.terms]
    if len(of_x) != 1 or len(of_y) != 1 or of_x[0].predicate != of_y[0].predicate:
        return None
    found = _match(of_x[0], of_y[0], x, y, tests[0])
    return _without_self(found, unequal, {x, y}, {tests[0].left, tests[0].right}) if found is not None else None


def _without_self(found: _Ordering, unequal: list[set[Term]], ids: set[Term], keys: set[Term]) -> _Ordering | None:
    """What inequalities add: between identities, that x is not counted for itself; between keys nothing, if the order
    is strict, and that it is strict, if texts are compared."""
    for pair in unequal:
        if pair == keys and (found.operator in ("<", ">") or found.kind == "lex"):
            found = replace(found, operator=_STRICT[found.operator])
        elif pair == ids:
            found = replace(found, others_only=True)
        else:
            return None
    return found


def _match(of_x: Atom, of_y: Atom, x: Variable, y: Variable, test: Compare) -> _Ordering | None:
    """The two atoms must be one pattern, place by place."""
    identity = -1
    shared: set[int] = set()
    own: dict[int, tuple[Term, Term]] = {}
    for place, (left, right) in enumerate(zip(of_x.terms, of_y.terms, strict=True)):
        match left, right:
            case (Constant(), Constant()) if left == right:
                pass
            case (Anonymous(), Anonymous()):
                pass
            case (Variable(), Variable()):
                if (left, right) == (x, y) and identity < 0:
                    identity = place
                elif left == right:
                    shared.add(place)
                own[place] = (left, right)
            case _:
                return None
    if identity < 0 or not _all_once(of_x) or not _all_once(of_y) or _shared_elsewhere(of_x, of_y, shared):
        return None
    sides = {pair: place for place, pair in own.items()}
    constants = tuple((n, term.value) for n, term in enumerate(of_x.terms) if isinstance(term, Constant))
    for y_side, x_side, operator in (
        (test.left, test.right, test.operator),
        (test.right, test.left, _FLIPPED[test.operator]),
    ):
        place = sides.get((x_side, y_side), -1) if _are_variables(x_side, y_side) else -1
        if place >= 0 and place not in shared:
            return _Ordering(of_x.predicate, constants, identity, frozenset(shared), place, test.kind, operator, False)
    return None


def _are_variables(*terms: Term) -> bool:
    return all(isinstance(term, Variable) for term in terms)


def _shared_elsewhere(of_x: Atom, of_y: Atom, shared: set[int]) -> bool:
    """Whether a variable stands in both atoms at different places."""
    both = {term for term in of_x.terms if isinstance(term, Variable)} & set(of_y.terms)
    return both != {of_x.terms[place] for place in shared}


def _all_once(atom: Atom) -> bool:
    names = [term.name for term in atom.terms if isinstance(term, Variable)]
    return len(names) == len(set(names))
