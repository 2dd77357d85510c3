"""The newest-N idiom (030-CARD-12, P31): predicates that only order candidates, so that counting is ranking.

Rule: a predicate is ranked only if the rank is equal to the count for every possible fact; anything else is evaluated
as ordinary facts. As facts the idiom is quadratic, as a rank it is a sort.

Why `max` and `min`: y is counted for x when some key of y stands beyond some key of x, so when the most extreme key of
y stands beyond the least extreme key of x. This stays exact for candidates with several keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from lace.datalog.language.syntax import (
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
from lace.datalog.planning.plan import Rank, Scan
from lace.datalog.planning.planner import free_place, scan_of
from lace.datalog.planning.stratify import read_atom
from lace.values import dataclass

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
    others_only: bool = False  # x is not counted for itself, whatever its keys
    named: tuple[tuple[int, int], ...] = ()  # groups that the head names: there, in the row


class _Use(NamedTuple):
    """A count that a rank could stand for: the counted atom, its free place, and the rows that its rule reads."""

    atom: Atom
    free: int
    rows: list[Atom]


Ranks = Mapping[tuple[Predicate, int], Rank]


def ranked_predicates(program: Program, outputs: Iterable[Predicate] = ()) -> Ranks:
    """(predicate, place of the free argument) → rank, for predicates that only counts read, each of them a rank."""
    rules: dict[Predicate, list[Rule]] = {}
    for rule in program.rules:
        rules.setdefault(rule.head.predicate, []).append(rule)
    found: dict[tuple[Predicate, int], Rank] = {}
    for predicate, uses in _uses(program).items():
        if predicate not in rules or predicate in set(outputs):
            continue
        ranks = {use.free: _rank_behind(rules[predicate], use.free) for use in uses if use is not None}
        if all(use is not None and _stands_for(ranks[use.free], use) for use in uses):
            found.update({(predicate, free): rank for free, rank in ranks.items() if rank is not None})
    return found


def _uses(program: Program) -> dict[Predicate, list[_Use | None]]:
    """How each predicate is read: a count that leaves one place free, None for any other use."""
    uses: dict[Predicate, list[_Use | None]] = {}
    for rule in program.rules:
        rows = [literal.atom for literal in rule.body if isinstance(literal, Positive)]
        outer = frozenset(term.name for row in rows for term in row.terms if isinstance(term, Variable))
        for literal in rule.body:
            read = read_atom(literal)
            if read is None:
                continue
            free = free_place(scan_of(read[0], outer)) if isinstance(literal, Cardinality) else -1
            uses.setdefault(read[0].predicate, []).append(_Use(read[0], free, rows) if free >= 0 else None)
    return uses


def _rank_behind(rules: list[Rule], free: int) -> Rank | None:
    """The rank of what is counted by leaving a place free, if there is one."""
    places = (place for place in range(rules[0].head.predicate.arity) if place != free)
    ranks = (rank_of(rules, place, free) for place in places)
    return next((rank for rank in ranks if rank is not None), None)


def _stands_for(rank: Rank | None, use: _Use) -> bool:
    """Whether a count is the rank: where it names groups, its rule has to read them from a row of that candidate."""
    if rank is None or not rank.group_places:
        return rank is not None
    place_of = {name: place for place, name in rank.candidates.variables}
    wanted: dict[int, Term] = {place: Constant(text) for place, text in rank.candidates.constants}
    wanted[place_of[ID]] = use.atom.terms[rank.place]
    wanted |= {own: use.atom.terms[there] for there, own in rank.group_places}
    return any(
        row.predicate == rank.candidates.predicate and all(row.terms[place] == term for place, term in wanted.items())
        for row in use.rows
    )


def rank_of(rules: list[Rule], x_place: int, y_place: int) -> Rank | None:
    """How rules order candidates, if counting the values that they derive at one place for another is ranking it."""
    orderings = [_ordering(rule, x_place, y_place) for rule in rules]
    match orderings:
        case [_Ordering() as only]:
            return _make_rank(only, None, x_place)
        case [_Ordering() as one, _Ordering() as two]:
            tie, main = (one, two) if one.compared == one.identity else (two, one)
            return _make_rank(main, tie, x_place) if _is_tie_of(tie, main) else None
        case _:
            return None


def _is_tie_of(tie: _Ordering, main: _Ordering) -> bool:
    """Equal keys are equal texts, so only texts can carry a tie; a strict main order keeps the two rules apart."""
    same = (tie.predicate, tie.constants, tie.identity) == (main.predicate, main.constants, main.identity)
    strict = main.operator in ("<", ">") and main.kind == "lex" and tie.kind == "lex"
    strict = strict and (not main.others_only or tie.operator in ("<", ">"))
    main_by_key = main.compared != main.identity and tie.compared == tie.identity
    return same and strict and main_by_key and tie.named == main.named and tie.shared == main.shared | {main.compared}


def _make_rank(main: _Ordering, tie: _Ordering | None, place: int) -> Rank:
    names = {main.identity: ID}
    if main.compared != main.identity:
        names[main.compared] = KEY
    groups = {place: f"Group{place}" for place in sorted(main.shared)}
    variables = tuple(sorted((names | groups).items()))
    scan = Scan(main.predicate, variables, main.constants)
    tie_kind, tie_operator = (tie.kind, tie.operator) if tie else ("", main.operator)
    return Rank(
        candidates=scan,
        kind=main.kind,
        operator=main.operator,
        tie_kind=tie_kind,
        tie_operator=tie_operator,
        groups=tuple(groups.values()),
        others_only=main.others_only,
        place=place,
        group_places=main.named,
    )


def _ordering(rule: Rule, x_place: int, y_place: int) -> _Ordering | None:
    body = [literal for literal in rule.body if not isinstance(literal, TrueLiteral)]
    atoms = [literal.atom for literal in body if isinstance(literal, Positive)]
    tests = [literal for literal in body if isinstance(literal, Compare)]
    unequal = [{literal.left, literal.right} for literal in body if isinstance(literal, Unequal)]
    x, y = rule.head.terms[x_place], rule.head.terms[y_place]
    if len(body) != 3 + len(unequal) or len(atoms) != 2 or len(tests) != 1 or x == y:
        return None
    if not (isinstance(x, Variable) and isinstance(y, Variable)):
        return None
    of_x = [atom for atom in atoms if x in atom.terms and y not in atom.terms]
    of_y = [atom for atom in atoms if y in atom.terms and x not in atom.terms]
    if len(of_x) != 1 or len(of_y) != 1 or of_x[0].predicate != of_y[0].predicate:
        return None
    found = _match(of_x[0], of_y[0], x, y, tests[0])
    if found is None:
        return None
    found = _with_names(found, rule.head, of_x[0], {x_place, y_place})
    return found and _without_self(found, unequal, {x, y}, {tests[0].left, tests[0].right})


def _with_names(found: _Ordering, head: Atom, row: Atom, ordered: set[int]) -> _Ordering | None:
    """What a head says beside the two it orders: nothing but groups, each once, and then keys must all be comparable,
    or a candidate could have a key in one group and something else in another."""
    named: list[tuple[int, int]] = []
    for place, term in enumerate(head.terms):
        if place in ordered:
            continue
        own = [n for n in found.shared if row.terms[n] == term]
        if not own or found.kind != "lex":
            return None
        named.append((place, own[0]))
    return replace(found, named=tuple(named)) if len({own for _, own in named}) == len(named) else None


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
            return _Ordering(of_x.predicate, constants, identity, frozenset(shared), place, test.kind, operator)
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
