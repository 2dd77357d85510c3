"""Why a fact holds: a proof in which every derived fact stands on facts of smaller rank.

Rule: a rank is given only to a fact whose whole body has one, so a proof is finite and no fact supports itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from itertools import islice

from lace.datalog.binding import Binding, value_of
from lace.datalog.explain.known import Known, bind_head, supports
from lace.datalog.language.formatting import format_fact
from lace.datalog.language.syntax import (
    ANONYMOUS,
    Atom,
    Cardinality,
    Compare,
    Constant,
    Fact,
    Literal,
    Negated,
    Operator,
    Positive,
    Rule,
    Term,
    TextShape,
    TrueLiteral,
    Unequal,
    Variable,
)
from lace.datalog.source import Row
from lace.errors import LimitExceeded, NotFound
from lace.limits import ExplainLimits
from lace.values import dataclass

_DEFAULT_LIMITS = ExplainLimits()


@dataclass(frozen=True, slots=True)
class Absent:
    """A negated atom holds: no fact matches."""

    atom: Atom  # with the values that are bound


@dataclass(frozen=True, slots=True)
class Counted:
    """A cardinality test holds."""

    atom: Atom
    operator: Operator
    bound: str
    count: int
    examples: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class Held:
    """A builtin holds for these values."""

    literal: Unequal | Compare | TextShape | TrueLiteral


@dataclass(frozen=True, slots=True, eq=False)
class Proof:
    """A fact with the rule that gave it and why each body atom held; a base fact has neither. Proofs are shared."""

    fact: Fact
    rank: int  # 0 for base facts; greater than that of every fact it stands on
    rule: Rule | None = None
    body: tuple[Step, ...] = ()

    def __repr__(self) -> str:
        return f"<Proof of {format_fact(self.fact)}, rank {self.rank}>"


@dataclass(frozen=True, slots=True, eq=False)
class Supported:
    """A positive atom holds by this fact."""

    proof: Proof


Step = Supported | Absent | Counted | Held


def why(known: Known, fact: Fact, limits: ExplainLimits = _DEFAULT_LIMITS) -> Proof:
    """A proof of a fact that holds; NotFound if it does not."""
    if not known.holds(fact):
        raise NotFound(f"{format_fact(fact)} does not hold")
    if not known.is_derived(fact.predicate):
        return Proof(fact, 0)
    return _Search(known, limits).prove(fact)


@dataclass(slots=True, eq=False)
class _Instance:
    """One way in which a rule derives a fact."""

    node: _Node
    rule: Rule
    binding: Binding
    rows: dict[int, Row]  # the row that each positive atom took, by its place in the body
    derived: tuple[Fact, ...]
    missing: set[Fact]


@dataclass(slots=True, eq=False)
class _Node:
    """A derived fact that the proof may use."""

    fact: Fact
    instances: Iterator[_Instance] | None = None
    rank: int = 0  # 0: not proven yet
    chosen: _Instance | None = None
    waiting: list[_Instance] = field(default_factory=list)


class _Search:
    """Follows rules backwards from the fact, newest facts first, one instance at a time, and ranks what is grounded.

    A fact of a recursive predicate may at first be met on a circle only; then one more instance of every open fact is
    drawn, and so on. All instances come in the end, so whatever holds is proven.
    """

    def __init__(self, known: Known, limits: ExplainLimits) -> None:
        self._known = known
        self._limits = limits
        self._nodes: dict[Fact, _Node] = {}
        self._fresh: list[_Node] = []

    def prove(self, fact: Fact) -> Proof:
        goal = self._node(fact)
        while not goal.rank:
            if not self._fresh:
                self._fresh = [node for node in reversed(self._nodes.values()) if not node.rank and node.instances]
                if not self._fresh:
                    raise NotFound(f"{format_fact(fact)} follows from nothing that holds")
            node = self._fresh.pop()
            if not node.rank:
                self._draw(node)
        return self._built(goal)

    def _node(self, fact: Fact) -> _Node:
        node = self._nodes.get(fact)
        if node is None:
            if len(self._nodes) >= self._limits.max_facts:
                raise LimitExceeded("max_facts", self._limits.max_facts, "facts looked at for one proof")
            node = self._nodes[fact] = _Node(fact)
            node.instances = self._instances(node)
            self._fresh.append(node)
        return node

    def _instances(self, node: _Node) -> Iterator[_Instance]:
        for rule in self._known.rules[node.fact.predicate]:
            binding = bind_head(rule, node.fact.values)
            if binding is None:
                continue
            order = self._known.order(rule, binding)
            for solution, rows in supports(self._known, [rule.body[place] for place in order], binding):
                taken = {place: row for place, row in zip(order, rows, strict=True) if row is not None}
                yield self._instance(node, rule, solution, taken)

    def _instance(self, node: _Node, rule: Rule, binding: Binding, rows: dict[int, Row]) -> _Instance:
        facts = [Fact(_atom_of(rule.body[place]).predicate, row) for place, row in rows.items()]
        derived = tuple(fact for fact in facts if self._known.is_derived(fact.predicate))
        return _Instance(node, rule, binding, rows, derived, set())

    def _draw(self, node: _Node) -> None:
        assert node.instances is not None
        instance = next(node.instances, None)
        if instance is None:
            node.instances = None
            return
        parts = [self._node(fact) for fact in instance.derived]
        instance.missing = {part.fact for part in parts if not part.rank}
        if not instance.missing:
            self._ground(instance)
        for part in parts:
            if not part.rank:
                part.waiting.append(instance)

    def _ground(self, instance: _Instance) -> None:
        """Rank a fact, and whatever was waiting for it."""
        ready = [instance]
        while ready:
            instance = ready.pop()
            node = instance.node
            if node.rank:
                continue
            node.rank = 1 + max((self._nodes[fact].rank for fact in instance.derived), default=0)
            node.chosen = instance
            for waiting in node.waiting:
                waiting.missing.discard(node.fact)
                if not waiting.missing:
                    ready.append(waiting)
            node.waiting.clear()

    def _built(self, goal: _Node) -> Proof:
        """Proofs from the smallest rank up, each once."""
        needed, queue = {goal.fact: goal}, [goal]
        while queue:
            chosen = queue.pop().chosen
            assert chosen is not None
            for fact in chosen.derived:
                if fact not in needed:
                    needed[fact] = self._nodes[fact]
                    queue.append(needed[fact])
        proofs: dict[Fact, Proof] = {}
        for node in sorted(needed.values(), key=lambda node: node.rank):
            assert node.chosen is not None
            steps = tuple(self._step(node.chosen, place, proofs) for place in range(len(node.chosen.rule.body)))
            proofs[node.fact] = Proof(node.fact, node.rank, node.chosen.rule, steps)
        return proofs[goal.fact]

    def _step(self, instance: _Instance, place: int, proofs: dict[Fact, Proof]) -> Step:
        literal, binding = instance.rule.body[place], instance.binding
        match literal:
            case Positive(atom):
                fact = Fact(atom.predicate, instance.rows[place])
                return Supported(proofs.get(fact) or Proof(fact, 0))
            case Negated(atom):
                return Absent(substituted(atom, binding))
            case Cardinality():
                return counted(self._known, literal, binding, self._limits)
            case Unequal() | Compare() | TextShape() | TrueLiteral():
                return Held(substituted_test(literal, binding))


def _atom_of(literal: Literal) -> Atom:
    assert isinstance(literal, Positive)
    return literal.atom


def counted(known: Known, literal: Cardinality, binding: Binding, limits: ExplainLimits) -> Counted:
    """The count of a cardinality test, with a few of the facts counted."""
    rows = known.matches(literal.atom, binding)
    examples = [Fact(literal.atom.predicate, row) for row in islice(rows, limits.max_examples)]
    count = len(examples) + sum(1 for _ in rows)
    atom = substituted(literal.atom, binding)
    return Counted(atom, literal.operator, value_of(literal.bound, binding), count, tuple(examples))


def substituted(atom: Atom, binding: Binding) -> Atom:
    """The atom with the values of its bound variables."""
    return Atom(atom.predicate, tuple(_value(term, binding) for term in atom.terms))


def _value(term: Term, binding: Binding) -> Term:
    if isinstance(term, Variable):
        return Constant(binding[term.name]) if term.name in binding else term
    return term if isinstance(term, Constant) else ANONYMOUS


def substituted_test(
    test: Unequal | Compare | TextShape | TrueLiteral, binding: Binding
) -> Unequal | Compare | TextShape | TrueLiteral:
    """The builtin with its values."""
    match test:
        case Unequal(left, right):
            return Unequal(_value(left, binding), _value(right, binding))
        case Compare(kind, left, operator, right):
            return Compare(kind, _value(left, binding), operator, _value(right, binding))
        case TextShape(text, start, delimiters, end):
            return TextShape(_value(text, binding), _value(start, binding), delimiters, _value(end, binding))
        case TrueLiteral():
            return TrueLiteral()
