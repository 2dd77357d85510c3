"""Predicates in the order in which they can be completed (030, stratification).

Rule: judged on the predicate graph alone, never on data, and the order never depends on the order of rules.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Literal as Choice

from lace.datalog.language.syntax import Atom, Cardinality, Literal, Negated, Positive, Predicate, Program, Rule
from lace.values import dataclass

Sign = Choice["positive", "negative", "counted"]
Graph = dict[Predicate, set[Predicate]]


@dataclass(frozen=True, slots=True)
class Dependency:
    """`head` depends on `body` by a literal of one rule (030-STRAT-01..03)."""

    head: Predicate
    body: Predicate
    sign: Sign
    rule: Rule
    atom: Atom


@dataclass(frozen=True, slots=True)
class Stratum:
    """One strongly connected component of derived predicates: they are completed together."""

    predicates: tuple[Predicate, ...]  # sorted
    rules: tuple[Rule, ...]  # in program order, exact repeats dropped
    recursive: bool
    level: int  # every derived predicate read here has this level (recursion) or a lower one


def read_atom(literal: Literal) -> tuple[Atom, Sign] | None:
    """The atom whose facts a literal reads, and how."""
    match literal:
        case Positive(atom):
            return atom, "positive"
        case Negated(atom):
            return atom, "negative"
        case Cardinality(atom):
            return atom, "counted"
        case _:
            return None


def dependencies(program: Program) -> Iterator[Dependency]:
    """Every dependency of the program, in the order of its text."""
    for rule in program.rules:
        for literal in rule.body:
            read = read_atom(literal)
            if read is not None:
                yield Dependency(rule.head.predicate, read[0].predicate, read[1], rule, read[0])


def strata(program: Program) -> tuple[Stratum, ...]:
    """The components in topological order: by level, then by name."""
    graph = derived_graph(program)
    rules: dict[Predicate, dict[Rule, None]] = {}
    for rule in program.rules:
        rules.setdefault(rule.head.predicate, {})[rule] = None
    order = {rule: index for index, rule in reversed(list(enumerate(program.rules)))}
    levels: dict[Predicate, int] = {}
    found: list[Stratum] = []
    for component in components(graph):
        members = set(component)
        below = {body for member in component for body in graph[member]} - members
        level = 1 + max((levels[body] for body in below), default=-1)
        levels.update(dict.fromkeys(component, level))
        own = sorted((rule for member in component for rule in rules[member]), key=order.__getitem__)
        recursive = len(component) > 1 or component[0] in graph[component[0]]
        found.append(Stratum(tuple(sorted(component)), tuple(own), recursive, level))
    return tuple(sorted(found, key=lambda stratum: (stratum.level, stratum.predicates)))


def derived_graph(program: Program) -> Graph:
    """Each derived predicate with the derived predicates that its rules read."""
    graph: Graph = {rule.head.predicate: set() for rule in program.rules}
    for edge in dependencies(program):
        if edge.body in graph:
            graph[edge.head].add(edge.body)
    return graph


def reachable(rules: Iterable[Rule], goals: Iterable[Predicate]) -> frozenset[Predicate]:
    """The goals and every predicate that they read, directly or through others."""
    reads: Graph = {}
    for rule in rules:
        found = (read_atom(literal) for literal in rule.body)
        reads.setdefault(rule.head.predicate, set()).update(read[0].predicate for read in found if read is not None)
    seen: set[Predicate] = set()
    waiting = set(goals)
    while waiting:
        seen |= waiting
        waiting = {body for head in waiting for body in reads.get(head, ())} - seen
    return frozenset(seen)


def components(graph: Graph) -> Iterator[list[Predicate]]:
    """Strongly connected components, those read before those that read them (Tarjan, with a stack of its own)."""
    index: dict[Predicate, int] = {}
    low: dict[Predicate, int] = {}
    open_nodes: list[Predicate] = []
    is_open: set[Predicate] = set()
    for root in sorted(graph):
        if root in index:
            continue
        work = [(root, iter(sorted(graph[root])))]
        index[root] = low[root] = len(index)
        open_nodes.append(root)
        is_open.add(root)
        while work:
            node, successors = work[-1]
            for successor in successors:
                if successor not in index:
                    index[successor] = low[successor] = len(index)
                    open_nodes.append(successor)
                    is_open.add(successor)
                    work.append((successor, iter(sorted(graph[successor]))))
                    break
                if successor in is_open:
                    low[node] = min(low[node], index[successor])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    cut = open_nodes.index(node)
                    component = open_nodes[cut:]
                    del open_nodes[cut:]
                    is_open.difference_update(component)
                    yield component


@dataclass(frozen=True, slots=True)
class ForbiddenCycle:
    """A dependency through `not` or `Cardinality` that leads back to its own head."""

    edge: Dependency
    path: tuple[Predicate, ...]  # from the head, over what the edge reads, back to the head


def forbidden_cycles(program: Program) -> Iterator[ForbiddenCycle]:
    """One shortest cycle for each negated or counted dependency inside a component (030-STRAT-04, 030-STRAT-05)."""
    graph = derived_graph(program)
    component_of = {member: n for n, component in enumerate(components(graph)) for member in component}
    for edge in dependencies(program):
        inside = edge.body in graph and component_of[edge.body] == component_of[edge.head]
        if edge.sign != "positive" and inside:
            yield ForbiddenCycle(edge, (edge.head, *_shortest_path(graph, edge.body, edge.head)))


def _shortest_path(graph: Graph, start: Predicate, goal: Predicate) -> list[Predicate]:
    came_from: dict[Predicate, Predicate | None] = {start: None}
    queue = deque([start])
    while queue and goal not in came_from:
        node = queue.popleft()
        for successor in sorted(graph[node]):
            if successor not in came_from:
                came_from[successor] = node
                queue.append(successor)
    path: list[Predicate] = []
    node_or_none: Predicate | None = goal
    while node_or_none is not None:
        path.append(node_or_none)
        node_or_none = came_from[node_or_none]
    return path[::-1]
